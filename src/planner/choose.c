/* Chooses the cheapest candidate, the fastest and the proposed one, and the time limit for
   Slurm. */
#include <math.h>

#include "internal.h"

#define MINUTE 60.0

static const gt_planner_outcome *expected(const gt_planner_candidate *c) {
  return &gt_planner_proposed(c)->at[GT_PLANNER_EXPECTED];
}

static double time_of(const gt_planner *p, const gt_planner_candidate *c) {
  (void)p;
  return expected(c)->figures.wall_s;
}

static double cost_of(const gt_planner *p, const gt_planner_candidate *c) {
  return gt_planner_cost(p, expected(c));
}

typedef double (*value_of)(const gt_planner *, const gt_planner_candidate *);

/* The candidate with the least `first` (ties: `second`) among those that fit, or among all;
   ncandidates: there is none. */
static size_t least(const gt_planner *p, value_of first, value_of second, bool all) {
  size_t best = p->ncandidates;
  for (size_t i = 0; i < p->ncandidates; i++) {
    const gt_planner_candidate *c = &p->candidates[i], *b = &p->candidates[best];
    if (!c->fits && !all) continue;
    if (best == p->ncandidates || first(p, c) < first(p, b) ||
        (first(p, c) == first(p, b) && second(p, c) < second(p, b)))
      best = i;
  }
  return best;
}

/* No candidate fits: reports why the closest one does not. */
static gt_status none_fits(const gt_planner *p) {
  bool by_cost = p->job->plan.deadline_s <= 0 && p->job->plan.budget > 0;
  const gt_planner_candidate *c =
      &p->candidates[least(p, by_cost ? cost_of : time_of, by_cost ? time_of : cost_of, true)];
  if (p->ncandidates == 1)
    return GT_FAIL(GT_ERR_JOB, "%s: no plan is possible with %s: %s", p->job->name, c->label,
                   c->why);
  return GT_FAIL(GT_ERR_JOB,
                 "%s: no plan is possible with any of %zu candidates; with the %s of them, %s: %s",
                 p->job->name, p->ncandidates, by_cost ? "cheapest" : "fastest", c->label, c->why);
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* Slurm sends the stop signal signal_before ahead of its time limit; the limit must leave that time
   after the run. */
static double slurm_time(const gt_planner *p) {
  const gt_job *job = p->job;
  double s = job->plan.start_s +
             gt_planner_proposed(&p->candidates[p->choice])->at[GT_PLANNER_HIGH].figures.wall_s +
             job->slurm.signal_before_s;
  s = ceil(s / job->plan.billing_s - 1e-9) * job->plan.billing_s;
  return ceil(s / MINUTE - 1e-9) * MINUTE;
}

gt_status gt_planner_choose(gt_planner *p) {
  const gt_job *job = p->job;
  bool by_time = job->plan.budget > 0 && job->plan.deadline_s <= 0;
  p->cheapest = least(p, cost_of, time_of, true);
  p->fastest = least(p, time_of, cost_of, true);
  p->choice = by_time ? least(p, time_of, cost_of, false) : least(p, cost_of, time_of, false);
  if (p->choice == p->ncandidates) return none_fits(p);
  p->slurm_s = slurm_time(p);
  return GT_OK;
}
