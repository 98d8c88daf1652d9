/* The ranks of a probe: their barrier, the collection of their measurements on rank 0, and the
   median, which is robust against a few disturbed measurements. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double gt_probe_median(double *values, size_t n) {
  if (n == 0) return 0;
  qsort(values, n, sizeof *values, by_value);
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void gt_probe_meet(gt_probe_state *p, const char *what) {
  MPI_Request request;
  (void)p;
  GT_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request));
  gt_wait_all(&request, 1, what, GT_PROBE_MEET_S, NULL, NULL);
}

void gt_probe_gather(gt_probe_state *p) {
  const gt_roles *roles = &p->run.roles;
  size_t n = p->run.job->nregions;
  bool first = roles->world_rank == 0;
  gt_probe_link *rows = first ? GT_NEW_ARRAY(gt_probe_link, n * (size_t)roles->world_size) : NULL;
  if (first) p->ranks = GT_NEW_ARRAY(gt_probe_rank, (size_t)roles->world_size);
  MPI_Request requests[2];
  GT_MPI(MPI_Igather(&p->own, (int)sizeof p->own, MPI_BYTE, p->ranks, (int)sizeof p->own, MPI_BYTE,
                     0, roles->world, &requests[0]));
  GT_MPI(MPI_Igather(p->links, (int)(n * sizeof *rows), MPI_BYTE, rows, (int)(n * sizeof *rows),
                     MPI_BYTE, 0, roles->world, &requests[1]));
  gt_wait_all(requests, 2, "the measurements of all ranks", p->limit_s, NULL, NULL);
  if (!first) return;
  p->all_links = GT_NEW_ARRAY(gt_probe_link, n * n);
  for (int i = 0; i < roles->world_size; i++)
    if (p->ranks[i].region_rank == 0)
      memcpy(&p->all_links[(size_t)p->ranks[i].region * n], &rows[(size_t)i * n], n * sizeof *rows);
  gt_free(rows);
}

const gt_probe_rank *gt_probe_ps(const gt_probe_state *p, size_t region) {
  return gt_probe_worker(p, region, -1);
}

const gt_probe_rank *gt_probe_worker(const gt_probe_state *p, size_t region, int worker) {
  for (int i = 0; i < p->run.roles.world_size; i++)
    if (p->ranks[i].region == (int32_t)region && p->ranks[i].region_rank == worker + 1)
      return &p->ranks[i];
  return NULL;
}
