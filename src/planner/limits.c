/* The limits of a plan: deadline, budget and limits.wan_bytes, each by the high figure. */
#include <math.h>
#include <stdio.h>

#include "internal.h"

bool gt_planner_asked(const gt_planner *p) {
  return p->job->plan.deadline_s > 0 || p->job->plan.budget > 0;
}

double gt_planner_allowed(const gt_job *job) {
  return job->plan.deadline_s > 0 ? job->plan.deadline_s - job->plan.start_s : INFINITY;
}

/* Returns the user's limit.  A limit that an earlier plan wrote into the job is not one. */
static double most_bytes(const gt_job *job) {
  return job->limits.wan_bytes > 0 && !job->plan.predicted.strategy ? job->limits.wan_bytes
                                                                    : INFINITY;
}

bool gt_planner_limited(const gt_planner *p) {
  return gt_planner_asked(p) || most_bytes(p->job) < INFINITY;
}

/* Returns the high time, at least the expected one: slower machines can make a simulated run
   slightly faster. */
static double high_time(const gt_planner_set *set) {
  return fmax(set->at[GT_PLANNER_EXPECTED].figures.wall_s, set->at[GT_PLANNER_HIGH].figures.wall_s);
}

static double high_usd(const gt_planner_set *set) {
  return fmax(set->at[GT_PLANNER_EXPECTED].cost.usd, set->at[GT_PLANNER_HIGH].cost.usd);
}

static double high_bytes(const gt_planner_set *set) {
  return fmax(set->at[GT_PLANNER_EXPECTED].figures.wan_bytes,
              set->at[GT_PLANNER_HIGH].figures.wan_bytes);
}

/* Returns the factor by which the set exceeds its time limit. */
static double time_over(const gt_planner *p, const gt_planner_set *set) {
  double allowed_s = gt_planner_allowed(p->job);
  return allowed_s > 0 ? high_time(set) / allowed_s : 1 + high_time(set) - allowed_s;
}

static double usd_over(const gt_planner *p, const gt_planner_set *set) {
  return p->job->plan.budget > 0 ? high_usd(set) / p->job->plan.budget : 0;
}

double gt_planner_over(const gt_planner *p, const gt_planner_set *set) {
  return fmax(fmax(time_over(p, set), usd_over(p, set)), high_bytes(set) / most_bytes(p->job));
}

bool gt_planner_fits(const gt_planner *p, const gt_planner_set *set, bool whole, char *why,
                     size_t size) {
  const gt_job *job = p->job;
  const char *name = whole ? "everything everywhere" : "the best set";
  *why = '\0';
  if (time_over(p, set) > 1)
    snprintf(why, size, "plan.deadline is %.10g s; %s takes up to %.1f s, including the start",
             job->plan.deadline_s, name, high_time(set) + job->plan.start_s);
  else if (usd_over(p, set) > 1)
    snprintf(why, size, "plan.budget is %.10g USD; %s costs up to %.4g USD", job->plan.budget, name,
             high_usd(set));
  else if (high_bytes(set) > most_bytes(job))
    snprintf(why, size, "limits.wan_bytes is %.10g B; %.4g B cross the WAN", job->limits.wan_bytes,
             high_bytes(set));
  return *why == '\0';
}
