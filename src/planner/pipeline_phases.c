/* Where the time of a stage goes in the simulated steps of a pipeline's plan. */
#include "pipeline.h"

#define KEY(constant, key, title) key,
static const char *const keys[] = {GT_PHASE_LIST(KEY)};
#undef KEY
#define TITLE(constant, key, title) title,
static const char *const titles[] = {GT_PHASE_LIST(TITLE)};
#undef TITLE

double gt_planner_pipeline_phase_s(const gt_planner_pipeline *p, size_t stage, size_t phase) {
  return gt_seconds(p->result.stages[stage].phases[phase]) / (double)GT_PIPE_STEADY;
}

const char *gt_planner_pipeline_phase_key(size_t phase) {
  return keys[phase];
}

static bool any_has(const gt_planner_pipeline *p, size_t phase) {
  for (size_t s = 0; s < p->pipe->layout.stages; s++)
    if (p->result.stages[s].phases[phase] > 0) return true;
  return false;
}

void gt_planner_pipeline_print_phases(FILE *to, const gt_planner_pipeline *p) {
  fprintf(to, "%5s", "stage");
  for (size_t i = 0; i < GT_NPHASES; i++)
    if (any_has(p, i)) fprintf(to, " %9s", titles[i]);
  fprintf(to, "\n");
  for (size_t s = 0; s < p->pipe->layout.stages; s++) {
    fprintf(to, "%5zu", s);
    for (size_t i = 0; i < GT_NPHASES; i++)
      if (any_has(p, i)) fprintf(to, " %9.4g", 1e3 * gt_planner_pipeline_phase_s(p, s, i));
    fprintf(to, "\n");
  }
  fprintf(
      to,
      "ms of a step, mean of the first %zu: passes; bubble: nothing to do; transfer: waiting for "
      "what is on\na link (docs/time-split.md)\n\n",
      GT_PIPE_STEADY);
}
