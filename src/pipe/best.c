/* The best of several schedules for a problem. */
#include "internal.h"

static gt_ns aim_of(const gt_pipe_best *best, const gt_pipe_run_times *times) {
  switch (best->search.aim) {
  case GT_PIPE_COST:
    return times->cost;
  case GT_PIPE_PERIOD:
    return times->period;
  case GT_PIPE_MAKESPAN:
    break;
  }
  return times->makespan;
}

bool gt_pipe_better(const gt_pipe_worth *a, const gt_pipe_worth *b) {
  return a->aim < b->aim || (a->aim == b->aim && a->makespan < b->makespan);
}

gt_pipe_worth gt_pipe_offer(gt_pipe_best *best, gt_pipe_schedule *schedule) {
  const gt_pipe_run_spec spec = {.problem = best->problem,
                                 .schedule = schedule,
                                 .steps = best->search.aim == GT_PIPE_PERIOD ? GT_PIPE_STEADY : 1};
  const gt_pipe_run_times times = gt_pipe_run_steps(&spec);
  const gt_pipe_worth worth = {aim_of(best, &times), times.makespan};
  if (best->schedule && !gt_pipe_better(&worth, &best->worth)) {
    gt_pipe_schedule_close(schedule);
    return worth;
  }
  gt_pipe_schedule_close(best->schedule);
  best->schedule = schedule;
  best->worth = worth;
  return worth;
}
