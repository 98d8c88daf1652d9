/* Steps that regions make together: a region's updates begin when it has heard of all regions that
   the passes of their stages have ended. */
#include "internal.h"

static void begin(gt_pipe_together *t) {
  const gt_pipe_wan *wan = t->problem->wan;
  t->regions_left = 0;
  for (size_t s = 0; s < t->problem->stages; s++)
    t->regions_left += t->regions[wan->region[s]].left++ == 0;
}

gt_pipe_together gt_pipe_together_open(const gt_pipe_problem *problem) {
  gt_pipe_together t = {.problem = problem};
  if (!problem->agree_s) return t;
  t.regions = gt_alloc(problem->wan->nregions, sizeof *t.regions);
  begin(&t);
  return t;
}

void gt_pipe_together_close(gt_pipe_together *t) {
  gt_free(t->regions);
  t->regions = NULL;
}

bool gt_pipe_together_ended(gt_pipe_together *t, size_t stage, gt_ns now) {
  const size_t region = t->problem->wan->region[stage];
  if (--t->regions[region].left > 0) return false;
  t->regions[region].end = now;
  if (--t->regions_left > 0) return false;
  begin(t);
  return true;
}

gt_ns gt_pipe_together_from(const gt_pipe_together *t, size_t stage) {
  const gt_pipe_wan *wan = t->problem->wan;
  const size_t to = wan->region[stage];
  gt_ns from = 0;
  for (size_t s = 0; s < t->problem->stages; s++) {
    const size_t r = wan->region[s];
    const gt_ns heard =
        t->regions[r].end +
        (r == to ? 0 : gt_from_seconds(t->problem->agree_s[r * wan->nregions + to]));
    if (heard > from) from = heard;
  }
  return from;
}
