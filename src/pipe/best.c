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

static gt_pipe_worth simulate(const gt_pipe_best *best, const gt_pipe_schedule *schedule) {
  const gt_pipe_run_spec spec = {.problem = best->problem,
                                 .schedule = schedule,
                                 .steps = best->search.aim == GT_PIPE_PERIOD ? GT_PIPE_STEADY : 1};
  const gt_pipe_run_times times = gt_pipe_run_steps(&spec);
  return (gt_pipe_worth){aim_of(best, &times), times.makespan};
}

/* By simulation, once for each schedule. */
static gt_pipe_worth worth_of(gt_pipe_best *best, const gt_pipe_schedule *schedule) {
  const uint64_t mark = gt_pipe_mark(schedule);
  for (size_t i = 0; i < best->noffered; i++)
    if (best->offered[i].mark == mark) return best->offered[i].worth;
  const gt_pipe_worth worth = simulate(best, schedule);
  GT_GROW(best->offered, best->noffered, best->capacity, 64);
  best->offered[best->noffered].mark = mark;
  best->offered[best->noffered++].worth = worth;
  return worth;
}

gt_pipe_worth gt_pipe_offer(gt_pipe_best *best, gt_pipe_schedule *schedule) {
  const gt_pipe_worth worth = worth_of(best, schedule);
  if (best->schedule && !gt_pipe_better(&worth, &best->worth)) {
    gt_pipe_schedule_close(schedule);
    return worth;
  }
  gt_pipe_schedule_close(best->schedule);
  best->schedule = schedule;
  best->worth = worth;
  return worth;
}
