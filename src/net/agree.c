/* Agreement: every rank gets the worst status and its text. */
#include "geotrain/net.h"

#include <stdio.h>
#include <string.h>

gt_status gt_agree(MPI_Comm comm, gt_status local, double limit_s) {
  int rank, size;
  GT_MPI(MPI_Comm_rank(comm, &rank));
  GT_MPI(MPI_Comm_size(comm, &size));
  /* The largest key is the worst status; among equals, that of the lowest rank. */
  int64_t key = (int64_t)local << 32 | (int64_t)(size - 1 - rank), worst = 0;
  MPI_Request request;
  GT_MPI(MPI_Iallreduce(&key, &worst, 1, MPI_INT64_T, MPI_MAX, comm, &request));
  gt_wait_all(&request, 1, "the other ranks to agree", limit_s, NULL, NULL);
  gt_status status = (gt_status)(worst >> 32);
  if (status == GT_OK) return GT_OK;

  int source = size - 1 - (int)(worst & INT32_MAX);
  char text[GT_ERROR_TEXT_MAX];
  snprintf(text, sizeof text, "%s", gt_error_text());
  GT_MPI(MPI_Ibcast(text, sizeof text, MPI_CHAR, source, comm, &request));
  gt_wait_all(&request, 1, "the text of another rank's error", limit_s, NULL, NULL);
  text[sizeof text - 1] = '\0';
  /* The text is complete, including its place in the source if it has one.  It is stored with a
     code that does not add a place again. */
  if (rank != source) (void)GT_FAIL(GT_ERR_LOST, "%s", text);
  return status;
}
