/* Elastic scheduling: checks, choice of the search, and the reason if there is no plan. geotrain's
   rule of load power is generalised to one objective; the idea of sizing a region by its data and
   its devices is Cloudless-Training's (2023). */
#include "elastic.h"

#include <math.h>
#include <string.h>

typedef struct {
  const gt_plan_problem *problem;
  gt_plan_site *sites;
  size_t n, ncounts;
} task;

/* ---- checks ---------------------------------------------------------------------------------- */

static gt_status check_region(const gt_plan_problem *p, size_t r) {
  const gt_plan_region *region = &p->regions[r];
  int64_t all = 0;
  for (size_t t = 0; t < region->ndevices; t++) {
    const gt_plan_device *d = &region->devices[t];
    if (!(d->power > 0 && d->power < INFINITY))
      return GT_FAIL(GT_ERR_JOB,
                     "region %zu: device %zu has a power of %g samples/s; more than 0 is needed", r,
                     t, d->power);
    if (!(d->price >= 0 && d->price < INFINITY))
      return GT_FAIL(GT_ERR_JOB,
                     "region %zu: device %zu has a price of %g USD an hour; 0 or more is needed", r,
                     t, d->price);
    if (d->count < 0)
      return GT_FAIL(GT_ERR_JOB, "region %zu: device %zu has a count of %lld; 0 or more is needed",
                     r, t, (long long)d->count);
    all += d->count;
  }
  if (!(region->ps_price >= 0 && region->ps_price < INFINITY))
    return GT_FAIL(GT_ERR_JOB,
                   "region %zu: its PS rank has a price of %g USD an hour; 0 or more is needed", r,
                   region->ps_price);
  if (!(region->samples >= 0 && region->samples < INFINITY))
    return GT_FAIL(GT_ERR_JOB, "region %zu holds %g samples; 0 or more are needed", r,
                   region->samples);
  if (!(region->wan_step_s >= 0 && region->wan_step_s < INFINITY))
    return GT_FAIL(GT_ERR_JOB, "region %zu: the WAN lets a step go every %g s; 0 or more is needed",
                   r, region->wan_step_s);
  if (all == 0) return GT_FAIL(GT_ERR_JOB, "region %zu has no device", r);
  if (region->ranks_min > all)
    return GT_FAIL(GT_ERR_JOB, "region %zu needs %lld ranks at least and has %lld devices", r,
                   (long long)region->ranks_min, (long long)all);
  if (region->ranks_max > 0 && region->ranks_max < region->ranks_min)
    return GT_FAIL(GT_ERR_JOB, "region %zu: at least %lld ranks and at most %lld cannot both be", r,
                   (long long)region->ranks_min, (long long)region->ranks_max);
  return GT_OK;
}

static gt_status check(const gt_plan_problem *p) {
  if (p->nregions == 0) return GT_FAIL(GT_ERR_JOB, "there is no region; a plan needs one at least");
  if (p->batch <= 0)
    return GT_FAIL(GT_ERR_JOB, "batch is %lld; 1 or more is needed", (long long)p->batch);
  if (p->barrier && p->period <= 0)
    return GT_FAIL(GT_ERR_JOB, "period is %lld; 1 or more is needed", (long long)p->period);
  if (!(p->exchange_s >= 0 && p->exchange_s < INFINITY))
    return GT_FAIL(GT_ERR_JOB, "an exchange takes %g s; 0 or more is needed", p->exchange_s);
  if ((p->epochs > 0) + (p->steps > 0) + (p->samples > 0) != 1)
    return GT_FAIL(GT_ERR_JOB, "exactly one of epochs, steps and samples says when training ends");
  if (!(p->start_s >= 0 && p->start_s < INFINITY))
    return GT_FAIL(GT_ERR_JOB, "a start takes %g s; 0 or more is needed", p->start_s);
  if (!(p->deadline_s >= 0))
    return GT_FAIL(GT_ERR_JOB, "deadline is %g s; more than 0 is needed", p->deadline_s);
  if (!(p->budget >= 0))
    return GT_FAIL(GT_ERR_JOB, "budget is %g USD; more than 0 is needed", p->budget);
  for (size_t r = 0; r < p->nregions; r++) GT_TRY(check_region(p, r));
  return GT_OK;
}

/* ---- search ---------------------------------------------------------------------------------- */

/* All regions make the same number of steps whatever their devices, or do not wait for each other:
   only the slowest region counts. */
static bool one_time_for_all(const task *t) {
  const gt_plan_problem *p = t->problem;
  if (!p->barrier || t->n == 1 || p->steps > 0) return true;
  if (p->local_sync) return false;
  for (size_t r = 1; r < t->n; r++)
    if (t->sites[r].batches != t->sites[0].batches) return false;
  return true;
}

static double value_of(const task *t, const gt_plan_goal *goal, int64_t *counts) {
  gt_plan_answer answer = {.counts = counts};
  gt_plan_value(t->problem, &answer);
  double value = gt_plan_goal_value(goal, answer.time_s, 0);
  if (value == INFINITY || answer.cost > goal->budget * (1 + GT_PLAN_EQUAL)) return INFINITY;
  return goal->fastest ? answer.time_s : answer.cost;
}

/* The best plan for a goal. found->value INFINITY: none was found; if found->bound is INFINITY too,
   none exists. */
static void solve(const task *t, const gt_plan_goal *goal, gt_plan_found *found) {
  int64_t *counts = GT_NEW_ARRAY(int64_t, t->ncounts);
  gt_plan_everything(t->problem, found->counts);
  double everything = value_of(t, goal, found->counts);
  gt_plan_found swept = {.counts = counts};
  gt_plan_sweep(t->sites, t->n, goal, &swept);
  found->value = everything;
  found->bound = swept.bound;
  double value = swept.value < INFINITY ? value_of(t, goal, counts) : INFINITY;
  if (value < found->value) {
    found->value = value;
    memcpy(found->counts, counts, t->ncounts * sizeof *counts);
  }
  if (!one_time_for_all(t)) gt_plan_rounds(t->sites, t->n, goal, found);
  gt_free(counts);
}

static double time_of(const task *t, int64_t *counts) {
  gt_plan_answer answer = {.counts = counts};
  gt_plan_value(t->problem, &answer);
  return answer.time_s;
}

static bool proven(const gt_plan_found *found) {
  return found->bound >= found->value * (1 - 10 * GT_PLAN_EQUAL);
}

/* ---- reasons for no plan --------------------------------------------------------------------- */

static gt_status too_late(const task *t, gt_plan_found *found) {
  gt_plan_goal goal = {
      .fastest = true, .limit_s = INFINITY, .budget = INFINITY, .start_s = t->problem->start_s};
  solve(t, &goal, found);
  return GT_FAIL(GT_ERR_JOB, "the deadline is %.10g s; the fastest plan%s ends after %.10g s",
                 t->problem->deadline_s, proven(found) ? "" : " that was found", found->value);
}

static gt_status too_dear(const task *t, gt_plan_found *found, double limit_s) {
  gt_plan_goal goal = {.limit_s = limit_s, .budget = INFINITY, .start_s = t->problem->start_s};
  solve(t, &goal, found);
  return GT_FAIL(GT_ERR_JOB, "the budget is %.10g USD; the cheapest plan%s%s costs %.10g USD",
                 t->problem->budget, limit_s < INFINITY ? " in time" : "",
                 proven(found) ? "" : " that was found", found->value);
}

/* ---- a plan ---------------------------------------------------------------------------------- */

/* The fastest plan within the budget; the cheapest of equally fast ones. */
static gt_status within_budget(const task *t, gt_plan_answer *answer) {
  double budget = t->problem->budget;
  gt_plan_goal goal = {
      .fastest = true, .limit_s = INFINITY, .budget = budget, .start_s = t->problem->start_s};
  gt_plan_found found = {.counts = answer->counts};
  solve(t, &goal, &found);
  if (found.value == INFINITY) return too_dear(t, &found, INFINITY);
  answer->bound = found.bound;
  answer->exact = proven(&found);
  goal = (gt_plan_goal){.limit_s = found.value, .budget = budget, .start_s = t->problem->start_s};
  int64_t *counts = GT_NEW_ARRAY(int64_t, t->ncounts);
  gt_plan_found cheapest = {.counts = counts};
  solve(t, &goal, &cheapest);
  if (cheapest.value < INFINITY) memcpy(answer->counts, counts, t->ncounts * sizeof *counts);
  gt_free(counts);
  return GT_OK;
}

static gt_status within_deadline(const task *t, gt_plan_answer *answer) {
  const gt_plan_problem *p = t->problem;
  gt_plan_everything(p, answer->counts);
  gt_plan_goal goal = {.limit_s = p->deadline_s > 0 ? p->deadline_s : time_of(t, answer->counts),
                       .budget = INFINITY,
                       .start_s = p->start_s};
  gt_plan_found found = {.counts = answer->counts};
  solve(t, &goal, &found);
  if (found.value == INFINITY) return too_late(t, &found);
  if (p->budget > 0 && found.value > p->budget * (1 + GT_PLAN_EQUAL))
    return too_dear(t, &found, goal.limit_s);
  answer->bound = found.bound;
  answer->exact = proven(&found);
  return GT_OK;
}

gt_status gt_plan_elastic(const gt_plan_problem *problem, gt_plan_answer *answer) {
  GT_TRY(check(problem));
  task t = {.problem = problem, .n = problem->nregions, .ncounts = gt_plan_counts(problem)};
  t.sites = GT_NEW_ARRAY(gt_plan_site, t.n);
  for (size_t r = 0, first = 0; r < t.n; first += problem->regions[r++].ndevices)
    t.sites[r] = gt_plan_site_of(problem, r, first);
  bool fastest = problem->budget > 0 && !(problem->deadline_s > 0);
  gt_status status = fastest ? within_budget(&t, answer) : within_deadline(&t, answer);
  gt_free(t.sites);
  if (status != GT_OK) return status;
  gt_plan_value(problem, answer);
  if (answer->exact) answer->bound = fastest ? answer->time_s : answer->cost;
  return GT_OK;
}
