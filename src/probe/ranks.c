/* The ranks of a probe: their barrier, the measurements of each, and the median, which is robust
   against a few disturbed measurements. */
#include <stdlib.h>

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
  gt_peers_meet(p->world, &(gt_peers_wait){.what = what, .limit_s = GT_PROBE_MEET_S});
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
