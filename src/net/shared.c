/* Memory that the ranks of a region share where they are on one node: a worker's gradients and parameters are read and written where they lie. */
#include "inside.h"

#include <stdlib.h>
#include <string.h>

#define SETUP_LIMIT_S 120.0

/* Every worker has one segment: gradients, parameters, buffers. */
static size_t segment_floats(size_t nparams, size_t nbuffers) {
  return 2 * gt_padded(nparams) + gt_padded(nbuffers);
}

/* Collective over region: true when all its ranks are on one node. */
static bool one_node(MPI_Comm region) {
  MPI_Comm node;
  int all, here;
  GT_MPI(MPI_Comm_size(region, &all));
  GT_MPI(MPI_Comm_split_type(region, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  GT_MPI(MPI_Comm_size(node, &here));
  GT_MPI(MPI_Comm_free(&node));
  return here == all;
}

void gt_shared_open(gt_shared *s, MPI_Comm region, size_t nparams, size_t nbuffers) {
  int rank;
  *s = (gt_shared){.window = MPI_WIN_NULL};
  GT_MPI(MPI_Comm_rank(region, &rank));
  gt_watch_begin("the shared memory of a region", SETUP_LIMIT_S);
  /* GEOTRAIN_LOCAL_PLANE=messages: as between nodes; for tests, and where shared memory is short. */
  const char *forced = getenv("GEOTRAIN_LOCAL_PLANE");
  bool wanted = !(forced && strcmp(forced, "messages") == 0);
  int agreed = wanted;
  GT_MPI(MPI_Allreduce(MPI_IN_PLACE, &agreed, 1, MPI_INT, MPI_MIN, region));
  if (one_node(region) && agreed) {
    void *base;
    size_t bytes = rank == 0 ? 0 : (segment_floats(nparams, nbuffers) + GT_LINE_FLOATS) * sizeof(float);
    GT_MPI(MPI_Win_allocate_shared((MPI_Aint)bytes, (int)sizeof(float), MPI_INFO_NULL, region, &base, &s->window));
    GT_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, s->window));
  }
  gt_watch_end();
  s->nparams = nparams;
  s->nbuffers = nbuffers;
}

void gt_shared_close(gt_shared *s) {
  if (s->window == MPI_WIN_NULL) return;
  gt_watch_begin("the end of a region's shared memory", SETUP_LIMIT_S);
  GT_MPI(MPI_Win_unlock_all(s->window));
  GT_MPI(MPI_Win_free(&s->window));
  gt_watch_end();
}

gt_segment gt_shared_segment(const gt_shared *s, int rank) {
  MPI_Aint size;
  int unit;
  char *base;
  GT_MPI(MPI_Win_shared_query(s->window, rank, &size, &unit, &base));
  float *aligned = (float *)(void *)(base + (64 - (uintptr_t)base % 64) % 64);
  return (gt_segment){.grads = aligned, .params = aligned + gt_padded(s->nparams), .buffers = aligned + 2 * gt_padded(s->nparams)};
}

void gt_shared_sync(const gt_shared *s) {
  if (s->window != MPI_WIN_NULL) GT_MPI(MPI_Win_sync(s->window));
}
