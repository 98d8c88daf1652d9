/* The time and the cost of a plan: the definition that the searches use as well. */
#include "elastic.h"

#include <math.h>
#include <stdlib.h>

size_t gt_plan_counts(const gt_plan_problem *problem) {
  size_t n = 0;
  for (size_t r = 0; r < problem->nregions; r++) n += problem->regions[r].ndevices;
  return n;
}

/* ---- a region -------------------------------------------------------------------------------- */

/* Counted as in gt_ps: the last batch of an epoch may be short. */
static int64_t batches_to_go(const gt_plan_problem *p, const gt_plan_region *region) {
  double batch = (double)p->batch;
  if (p->epochs > 0) return (int64_t)ceil(p->epochs * ceil(region->samples / batch) - 1e-9);
  return p->samples / p->batch + (p->samples % p->batch != 0);
}

/* The greatest common divisor of all prices (Euclid's algorithm); 0 if it would be tiny. */
static double price_unit(const gt_plan_region *region) {
  double unit = 0, greatest = 0;
  for (size_t t = 0; t < region->ndevices; t++) {
    double a = unit, b = region->devices[t].price;
    greatest = fmax(greatest, b);
    while (b > 1e-9 * greatest) {
      double rest = fabs(remainder(a, b));
      a = b;
      b = rest;
    }
    unit = a;
  }
  if (unit < 1e-6 * greatest || greatest <= 0) return 0;
  for (size_t t = 0; t < region->ndevices; t++)
    if (fabs(remainder(region->devices[t].price, unit)) > 1e-12 * greatest) return 0;
  return unit;
}

gt_plan_site gt_plan_site_of(const gt_plan_problem *problem, size_t r, size_t first) {
  const gt_plan_region *region = &problem->regions[r];
  gt_plan_site site = {
      .problem = problem, .region = region, .first = first, .unit = price_unit(region)};
  int64_t all = 0;
  for (size_t t = 0; t < region->ndevices; t++) all += region->devices[t].count;
  site.batches = problem->steps > 0 ? 0 : batches_to_go(problem, region);
  site.least = region->ranks_min > 1 ? region->ranks_min : 1;
  site.most = region->ranks_max > 0 && region->ranks_max < all ? region->ranks_max : all;
  return site;
}

int64_t gt_plan_steps(const gt_plan_site *site, int64_t ranks) {
  const gt_plan_problem *p = site->problem;
  if (p->steps > 0) return p->steps;
  if (!p->local_sync) return site->batches;
  return ranks > 0 ? site->batches / ranks + (site->batches % ranks != 0) : 0;
}

gt_plan_tempo gt_plan_pace_at(const gt_plan_site *site, int64_t ranks, double device_step_s) {
  const gt_plan_problem *p = site->problem;
  gt_plan_tempo pace = {
      .ranks = ranks, .steps = gt_plan_steps(site, ranks), .step_s = device_step_s};
  pace.wan_bound = site->region->wan_step_s > device_step_s;
  if (pace.wan_bound) pace.step_s = site->region->wan_step_s;
  pace.own_s = (double)pace.steps * pace.step_s;
  if (p->barrier) {
    int64_t exchanges = pace.steps / p->period + (pace.steps % p->period != 0);
    pace.own_s += (double)exchanges * p->exchange_s;
  }
  return pace;
}

gt_plan_tempo gt_plan_pace_of(const gt_plan_site *site, const int64_t *counts) {
  const gt_plan_region *region = site->region;
  double power = 0, slowest = INFINITY, rate = region->ps_price;
  int64_t ranks = 0;
  for (size_t t = 0; t < region->ndevices; t++) {
    if (counts[t] <= 0) continue;
    const gt_plan_device *d = &region->devices[t];
    ranks += counts[t];
    power += (double)counts[t] * d->power;
    slowest = fmin(slowest, d->power);
    rate += (double)counts[t] * d->price;
  }
  gt_plan_tempo pace = gt_plan_pace_at(
      site, ranks, (double)site->problem->batch / (site->problem->local_sync ? slowest : power));
  pace.rate = rate;
  return pace;
}

/* The order of removal: the least powerful device first, of equal ones the more expensive. */
static bool goes_first(const gt_plan_device *a, const gt_plan_device *b) {
  return a->power < b->power || (a->power == b->power && a->price > b->price);
}

void gt_plan_all_of(const gt_plan_site *site, int64_t *counts) {
  const gt_plan_region *region = site->region;
  int64_t over = -site->most;
  for (size_t t = 0; t < region->ndevices; t++) over += counts[t] = region->devices[t].count;
  while (over > 0) {
    size_t least = region->ndevices;
    for (size_t t = 0; t < region->ndevices; t++)
      if (counts[t] > 0 &&
          (least == region->ndevices || goes_first(&region->devices[t], &region->devices[least])))
        least = t;
    int64_t gone = counts[least] < over ? counts[least] : over;
    counts[least] -= gone;
    over -= gone;
  }
}

/* ---- all regions ----------------------------------------------------------------------------- */

static int by_full(const void *a, const void *b) {
  const gt_plan_shift *x = a, *y = b;
  return (x->full > y->full) - (x->full < y->full);
}

/* The time of the rounds, in groups between which no region drops out. */
static double rounds_time(const gt_plan_problem *p, gt_plan_shift *s, size_t n) {
  qsort(s, n, sizeof *s, by_full);
  for (size_t i = n; i-- > 0;)
    s[i].most_s = i + 1 < n ? fmax(s[i].step_s, s[i + 1].most_s) : s[i].step_s;
  double time_s = 0, period = (double)p->period;
  int64_t done = 0;
  for (size_t i = 0;;) {
    double last_s = 0;
    bool any = false;
    for (; i < n && s[i].full == done; i++) {
      any = any || s[i].rest > 0;
      last_s = fmax(last_s, (double)s[i].rest * s[i].step_s);
    }
    if (any) {
      time_s += fmax(last_s, i < n ? period * s[i].most_s : 0) + p->exchange_s;
      done++;
    } else if (i < n) {
      time_s += (double)(s[i].full - done) * (period * s[i].most_s + p->exchange_s);
      done = s[i].full;
    } else {
      return time_s;
    }
  }
}

double gt_plan_time(const gt_plan_problem *problem, const gt_plan_tempo *paces, size_t n,
                    gt_plan_shift *shifts) {
  if (problem->barrier) {
    int64_t period = problem->period;
    for (size_t r = 0; r < n; r++)
      shifts[r] = (gt_plan_shift){.full = paces[r].steps / period,
                                  .rest = paces[r].steps % period,
                                  .step_s = paces[r].step_s};
    return rounds_time(problem, shifts, n);
  }
  double time_s = 0;
  for (size_t r = 0; r < n; r++) time_s = fmax(time_s, paces[r].own_s);
  return time_s;
}

double gt_plan_goal_value(const gt_plan_goal *goal, double time_s, double rate) {
  double cost = (goal->start_s + time_s) / 3600 * rate;
  if (time_s > goal->limit_s * (1 + GT_PLAN_EQUAL)) return INFINITY;
  if (!goal->fastest) return cost;
  return cost > goal->budget * (1 + GT_PLAN_EQUAL) ? INFINITY : time_s;
}

void gt_plan_value(const gt_plan_problem *problem, gt_plan_answer *answer) {
  size_t n = problem->nregions, first = 0;
  gt_plan_tempo *paces = GT_NEW_ARRAY(gt_plan_tempo, n);
  gt_plan_shift *shifts = GT_NEW_ARRAY(gt_plan_shift, n);
  double rate = 0;
  answer->slowest = answer->wan_bound = 0;
  for (size_t r = 0; r < n; r++) {
    gt_plan_site site = gt_plan_site_of(problem, r, first);
    paces[r] = gt_plan_pace_of(&site, answer->counts + first);
    rate += paces[r].rate;
    answer->wan_bound += paces[r].wan_bound;
    if (paces[r].own_s > paces[answer->slowest].own_s) answer->slowest = r;
    first += problem->regions[r].ndevices;
  }
  answer->time_s = gt_plan_time(problem, paces, n, shifts);
  answer->cost = (problem->start_s + answer->time_s) / 3600 * rate;
  gt_free(shifts);
  gt_free(paces);
}

void gt_plan_everything(const gt_plan_problem *problem, int64_t *counts) {
  size_t first = 0;
  for (size_t r = 0; r < problem->nregions; r++) {
    gt_plan_site site = gt_plan_site_of(problem, r, first);
    gt_plan_all_of(&site, counts + first);
    first += problem->regions[r].ndevices;
  }
}
