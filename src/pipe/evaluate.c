/* The time and the waits of a schedule, and the best of several schedules. */
#include "internal.h"

static gt_ns work_of(const gt_pipe_problem *problem, size_t stage) {
  gt_ns sum = 0;
  for (size_t c = 0; c < problem->chunks; c++) {
    const gt_pipe_span *span = &problem->spans[gt_pipe_span_of(problem->stages, c, stage)];
    sum += gt_from_seconds(span->forward_s) + gt_from_seconds(span->backward_s) +
           gt_from_seconds(span->weight_s);
  }
  return sum * (gt_ns)problem->micro_batches;
}

static double idle_share(gt_ns work, gt_ns time) {
  return time > 0 ? 1.0 - (double)work / (double)time : 0.0;
}

gt_status gt_pipe_evaluate(gt_pipe_result *out, const gt_pipe_schedule *schedule,
                           const gt_pipe_problem *problem, size_t steps) {
  *out = (gt_pipe_result){0};
  if (steps < 1) return GT_FAIL(GT_ERR_JOB, "0 steps are to be evaluated; expected 1 or more");
  GT_TRY(gt_pipe_check(schedule, problem));
  gt_ns busiest = 0;
  out->nstages = schedule->stages;
  out->stages = GT_NEW_ARRAY(gt_pipe_stage_times, schedule->stages);
  for (size_t s = 0; s < schedule->stages; s++) {
    out->stages[s] =
        (gt_pipe_stage_times){.times = GT_NEW_ARRAY(gt_pipe_time, schedule->lists[s].n),
                              .peak = gt_pipe_peak(schedule, problem, s),
                              .work = work_of(problem, s)};
    if (out->stages[s].work > busiest) busiest = out->stages[s].work;
  }
  const gt_pipe_run_spec spec = {
      .problem = problem, .schedule = schedule, .steps = steps, .result = out};
  const gt_pipe_run_times times = gt_pipe_run_steps(&spec);
  if (!times.whole) gt_bug("a schedule that was checked has not ended");
  out->makespan = times.makespan;
  out->cost = times.cost;
  out->period = times.period;
  out->bubble = idle_share(busiest, times.cost);
  out->period_bubble = idle_share(busiest, times.period);
  return GT_OK;
}

void gt_pipe_result_close(gt_pipe_result *result) {
  if (!result) return;
  for (size_t s = 0; s < result->nstages; s++) gt_free(result->stages[s].times);
  gt_free(result->stages);
  *result = (gt_pipe_result){0};
}

/* ---- the best of several --------------------------------------------------------------------- */

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

/* Simulates each schedule once. */
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
