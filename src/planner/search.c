/* Finds a candidate's set of devices.  Everything everywhere is simulated first, which gives the
   real paces of the regions and of the WAN.  The rule of elastic scheduling (plan.h) proposes a
   set, which is simulated too.  If the set exceeds a limit, the simulation corrects the paces and
   the rule is applied again.  The rule ignores billing steps, minimum times, and egress that
   depends on the set; therefore further sets near the best one are simulated and compared by their
   real cost.  All sets are simulated if possible, except those that cannot be better.  The lower
   bound over all sets tells how far the plan is from the best one at most. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/sync.h"
#include "search.h"

#define TRIES 6 /* number of the rule's sets that correct the paces */
/* the WAN sets a region's pace if its workers wait for the WAN for more than this share */
#define WAN_HOLDS 0.05
/* budget for the search for a candidate, in simulations of max_events each */
#define WORK       5
#define COARSE     16    /* long runs compare sets with this many times fewer events */
#define COARSE_MIN 50000 /* but with at least this many events */

typedef gt_planner_set_search search;

/* ---- the problem ----------------------------------------------------------------------------- */

/* Returns a worker's samples/s in the run. */
static double worker_power(const gt_job *job, size_t region, size_t worker) {
  const gt_job_region *r = &job->regions[region];
  gt_job_compute c = gt_job_compute_of(job, region);
  double rate = c.step_s > 0 ? (double)job->train.batch / c.step_s : c.samples_per_s;
  double share = (worker < r->nspeeds ? r->speeds[worker] : 1) *
                 (worker < r->nmeasured ? r->measured[worker] : 1);
  return rate * c.speed * share * gt_job_worker_share(job, region, worker);
}

/* Returns the power of the one device that represents all workers of a region with fixed ranks: the
   slowest (`sync`) or the mean. */
static double fixed_power(const gt_job *job, size_t region) {
  double sum = 0, least = INFINITY;
  const size_t workers = gt_job_workers(job, region);
  for (size_t w = 0; w < workers; w++) {
    double power = worker_power(job, region, w);
    sum += power;
    least = fmin(least, power);
  }
  return job->sync.local == GT_LOCAL_SYNC ? least : sum / (double)workers;
}

/* Returns the device of a region that only aggregates: one worker that costs nothing and finishes
   at once, so that no region waits for it. */
static gt_plan_device no_worker(void) {
  return (gt_plan_device){1, 1e30, 0};
}

/* Returns the price; every rank has the same if no price is known. */
static double price_of(const gt_planner *p, gt_job_price price) {
  if (!p->prices.known) return 1;
  return price.usd > 0 ? price.usd : 0;
}

static void fill_region(search *s, size_t r) {
  const gt_planner *p = s->p;
  const gt_planner_pool *pool = &p->pools[r];
  const gt_job_region *from = &p->job->regions[r];
  gt_plan_region *region = &s->regions[r];
  *region = (gt_plan_region){.devices = &s->devices[pool->first],
                             .ndevices = pool->n,
                             .samples = (double)p->shape.samples[r],
                             .ranks_min = from->ranks_min,
                             .ranks_max = from->ranks_max,
                             .ps_price = price_of(p, p->prices.regions[r].ps)};
  if (pool->fixed) {
    const int64_t workers = (int64_t)gt_job_workers(p->job, r);
    s->devices[pool->first] =
        workers > 0
            ? (gt_plan_device){workers, fixed_power(p->job, r),
                               price_of(p, gt_job_worker_price(p->job, &p->prices, r, workers))}
            : no_worker();
    region->ranks_min = (int)s->devices[pool->first].count;
    region->ranks_max = 0;
  }
  for (size_t d = 0; d < pool->n && !pool->fixed; d++)
    s->devices[pool->first + d] =
        (gt_plan_device){from->devices[d].count, gt_job_device_power(p->job, r, d),
                         price_of(p, p->prices.regions[r].devices[d])};
  for (size_t d = 0; d < pool->n; d++) {
    gt_plan_device *device = &s->devices[pool->first + d];
    if (device->count == 0 && device->power <= 0)
      device->power = 1; /* the problem requires power > 0 */
    s->power[pool->first + d] = device->power;
  }
  s->pace[r] = 1;
}

static void open_search(search *s, const gt_planner *p, gt_planner_candidate *c) {
  const gt_job *job = p->job;
  *s = (search){.p = p, .c = c, .limit_s = INFINITY};
  s->regions = GT_NEW_ARRAY(gt_plan_region, job->nregions);
  s->devices = GT_NEW_ARRAY(gt_plan_device, p->ncounts);
  s->power = GT_NEW_ARRAY(double, p->ncounts);
  s->pace = GT_NEW_ARRAY(double, job->nregions);
  s->floor = GT_NEW_ARRAY(double, job->nregions);
  s->kept = GT_NEW_ARRAY(int64_t, (GT_PLANNER_KEPT + 1) * p->ncounts);
  s->next = GT_NEW_ARRAY(int64_t, p->ncounts);
  s->seen.egress_usd = GT_NEW_ARRAY(double, job->nregions);
  gt_planner_list_open(&s->tried, p->ncounts);
  for (size_t r = 0; r < job->nregions; r++) fill_region(s, r);
  s->problem = (gt_plan_problem){
      .regions = s->regions,
      .nregions = job->nregions,
      .local_sync = job->sync.local == GT_LOCAL_SYNC,
      .barrier = gt_sync_of(c->strategy)->waits,
      .batch = job->train.batch,
      .period = c->period > 0 ? c->period : 1,
      .epochs = job->train.until.epochs * c->factor,
      .steps = (int64_t)ceil((double)job->train.until.steps * c->factor - 1e-9),
      .samples = (int64_t)ceil((double)job->train.until.samples * c->factor - 1e-9)};
}

/* Returns the number of workers of all regions with everything everywhere. */
static double all_workers(const search *s) {
  double workers = 0;
  for (size_t r = 0; r < s->problem.nregions; r++)
    workers += (double)gt_planner_ranks(s->p, r, s->c->everything.counts) - 1;
  return workers;
}

/* Converts the period from passes into steps, one for the problem: a pass is the mean number of
   workers of a region with everything everywhere. */
static void steps_of_passes(search *s) {
  gt_plan_problem *problem = &s->problem;
  if (s->p->job->sync.period_unit != GT_PERIOD_PASS || problem->local_sync) return;
  double pass = fmax(1, all_workers(s) / (double)gt_job_training(s->p->job));
  if (s->c->period > 0) problem->period = llround(fmin((double)s->c->period * pass, 1e15));
}

/* Converts steps of all workers into samples, because fewer workers make more steps.  The rule
   sizes each region for the same number of samples, the mean. */
static void equal_samples(search *s) {
  gt_plan_problem *problem = &s->problem;
  if (!problem->local_sync || problem->steps == 0) return;
  problem->together = (int64_t)gt_job_training(s->p->job);
  problem->samples = (int64_t)ceil((double)problem->steps * (double)problem->batch *
                                   all_workers(s) / (double)problem->together);
  problem->steps = 0;
}

static void close_search(search *s) {
  gt_planner_bounds_close(s);
  gt_planner_list_close(&s->tried);
  gt_free(s->seen.egress_usd);
  gt_free(s->next);
  gt_free(s->kept);
  gt_free(s->floor);
  gt_free(s->pace);
  gt_free(s->power);
  gt_free(s->devices);
  gt_free(s->regions);
}

/* ---- corrections by simulations -------------------------------------------------------------- */

static double step_by_power(const search *s, size_t r, const int64_t *counts) {
  const gt_planner_pool *pool = &s->p->pools[r];
  double sum = 0, least = INFINITY;
  for (size_t i = pool->first; i < pool->first + pool->n; i++) {
    if (counts[i] == 0) continue;
    sum += (double)counts[i] * s->power[i];
    least = fmin(least, s->power[i]);
  }
  return (double)s->problem.batch / (s->problem.local_sync ? least : sum);
}

/* Returns the share of their power that the region's devices reach in this run, without the WAN. */
static double pace_in(const search *s, size_t r, const gt_planner_set *set) {
  const gt_region_result *seen = &set->forecast.regions[r];
  double own_s =
      (seen->compute_s + seen->local_wait_s) / (double)(seen->steps > 0 ? seen->steps : 1);
  double pace = own_s > 0 ? step_by_power(s, r, set->counts) / own_s : 1;
  return fmin(fmax(pace, 0.01), 1.5);
}

static void set_powers(search *s) {
  for (size_t r = 0; r < s->problem.nregions; r++) {
    const gt_planner_pool *pool = &s->p->pools[r];
    for (size_t i = pool->first; i < pool->first + pool->n; i++)
      s->devices[i].power = s->power[i] * s->pace[r];
  }
}

/* Returns the exchange time with which the problem's time of this set equals the simulated one. */
static double exchange_in(search *s, const gt_planner_set *set) {
  s->problem.exchange_s = 0;
  double without = gt_plan_time(&s->problem, set->counts);
  s->problem.exchange_s = 1;
  double exchanges = gt_plan_time(&s->problem, set->counts) - without;
  return exchanges > 0 ? fmax(0, (set->at[GT_PLANNER_EXPECTED].train_s - without) / exchanges) : 0;
}

/* Returns a region's own work with everything everywhere at full power: per round, or without a
   barrier for all steps. */
static double own_work(const search *s, size_t r) {
  const gt_planner_set *all = &s->c->everything;
  return step_by_power(s, r, all->counts) *
         (s->problem.barrier ? 1 : (double)all->forecast.regions[r].steps);
}

static void find_floors(search *s) {
  double longest = 0;
  for (size_t r = 0; r < s->problem.nregions; r++)
    longest = fmax(longest, own_work(s, r) / s->pace[r]);
  for (size_t r = 0; r < s->problem.nregions; r++)
    s->floor[r] = fmin(own_work(s, r) / longest, s->pace[r]);
}

/* Returns a worker's time in training, including its waits for the WAN. */
static double busy(const gt_region_result *seen) {
  return seen->compute_s + seen->local_wait_s + seen->wan_wait_s;
}

static bool waits(const gt_region_result *seen) {
  return seen->steps > 0 && seen->wan_wait_s > WAN_HOLDS * busy(seen);
}

/* Sets the paces from everything everywhere.  Without a barrier, a region that waits for the WAN
   makes its steps at the WAN's pace with any devices. */
static void learn(search *s) {
  gt_planner_set *all = &s->c->everything;
  for (size_t r = 0; r < s->problem.nregions; r++) {
    const gt_region_result *seen = &all->forecast.regions[r];
    s->pace[r] = pace_in(s, r, all);
    s->c->wan_bound[r] = waits(seen);
    if (!s->problem.barrier && waits(seen))
      s->regions[r].wan_step_s = busy(seen) / (double)seen->steps;
  }
  find_floors(s);
  set_powers(s);
  if (s->problem.barrier) s->problem.exchange_s = exchange_in(s, all);
  s->whole_s = gt_plan_time(&s->problem, all->counts);
}

/* Limits the pace so that the set can still be fast enough.  With workers in step, sets of fewer
   workers make more steps, and can wait for the WAN where everything everywhere did not. */
static void learn_wan(search *s, size_t r) {
  const gt_region_result *seen = &s->c->set.forecast.regions[r],
                         *all = &s->c->everything.forecast.regions[r];
  double *step_s = &s->regions[r].wan_step_s;
  if (!s->problem.barrier && waits(seen) && all->steps > 0)
    *step_s =
        fmax(*step_s, fmin(busy(seen) / (double)seen->steps, s->whole_s / (double)all->steps));
}

static bool is_smaller(const search *s, size_t r) {
  const gt_planner_pool *pool = &s->p->pools[r];
  size_t bytes = pool->n * sizeof(int64_t);
  return memcmp(s->c->set.counts + pool->first, s->c->everything.counts + pool->first, bytes) != 0;
}

/* Corrects the paces after a set that was too slow by `over` (1: too expensive): smaller sets reach
   less than assumed.  Each correction is stronger than the last, because the cause can act in steps
   (workers that wait for the end of a period). */
static void learn_more(search *s, double over, int tried) {
  for (size_t r = 0; r < s->problem.nregions; r++) {
    learn_wan(s, r);
    if (!is_smaller(s, r)) continue;
    s->pace[r] =
        fmax(s->floor[r], fmin(s->pace[r] / pow(over, 1 + tried), pace_in(s, r, &s->c->set)));
  }
  set_powers(s);
}

/* ---- the rule's sets ------------------------------------------------------------------------- */

/* Simulates the rule's set with the best prediction.  *more: it exceeds a limit, and a set with
   corrected paces may be better. */
static gt_status try_rule(search *s, int tried, bool *more) {
  gt_planner_set *set = &s->c->set;
  gt_planner_verdict predicted, best = gt_planner_best(s), found;
  gt_planner_set_close(set);
  set->counts = GT_NEW_ARRAY(int64_t, s->p->ncounts);
  *more = gt_planner_by_rule(s, set->counts, &predicted) && gt_planner_better(&predicted, &best);
  if (!*more) return GT_OK;
  gt_planner_list_add(&s->tried, set->counts);
  GT_TRY(gt_planner_look_at(s, &s->coarse, set, &found));
  *more = !found.fits;
  s->c->adjusted += *more;
  if (*more) learn_more(s, found.over, tried);
  return GT_OK;
}

/* ---- the search ------------------------------------------------------------------------------ */

/* Simulates the best sets again with the plan's precision, then a safe one.  Takes the first that
   fits, unless a known set is better. */
static gt_status confirm(search *s) {
  size_t n = s->nkept, width = s->p->ncounts, bytes = width * sizeof *s->kept;
  int64_t *kept = s->kept;
  gt_status status = GT_OK;
  gt_planner_verdict verdict;
  if (s->safe.over > 0) memcpy(kept + n++ * width, kept + GT_PLANNER_KEPT * width, bytes);
  s->kept = GT_NEW_ARRAY(int64_t, (GT_PLANNER_KEPT + 1) * width);
  s->nkept = 0;
  s->judged_s = s->limit_s;
  gt_planner_list_close(&s->tried);
  gt_planner_list_open(&s->tried, width);
  gt_planner_take_known(s, &s->c->everything);
  bool known = false;
  for (size_t k = 0; k < n && !known && status == GT_OK; k++) {
    if (gt_planner_list_add(&s->tried, kept + k * width)) {
      gt_planner_set_close(&s->c->set);
      s->c->set.counts = GT_NEW_ARRAY(int64_t, width);
      memcpy(s->c->set.counts, kept + k * width, bytes);
      status = gt_planner_look_at(s, s->p, &s->c->set, &verdict);
    }
    known = gt_planner_best(s).fits;
  }
  gt_free(kept);
  return status;
}

/* Orders the low and the high time: faster machines can make a simulated run slightly slower. */
static void sort_times(gt_planner_set *set) {
  const gt_figures *expected = &set->at[GT_PLANNER_EXPECTED].figures;
  gt_figures *low = &set->at[GT_PLANNER_LOW].figures, *high = &set->at[GT_PLANNER_HIGH].figures;
  low->wall_s = fmin(low->wall_s, expected->wall_s);
  high->wall_s = fmax(high->wall_s, expected->wall_s);
}

static void set_gap(search *s, double least) {
  gt_planner_candidate *c = s->c;
  gt_planner_verdict best = gt_planner_best(s);
  c->gap = NAN;
  c->exact = false;
  if (s->belied) return;
  if (!best.fits)
    c->exact = least == INFINITY; /* none meets the limits */
  else if (least > 0 && best.first > 0)
    c->gap = fmax(0, 1 - least / best.first);
  if (best.fits) c->exact = c->gap <= 10 * GT_PLANNER_EQUAL;
  if (c->exact) c->gap = 0;
}

/* Simulates everything everywhere.  Without deadline and budget, its time is the limit; coarse
   times are compared with its coarse time. */
static gt_status try_everything(search *s) {
  GT_TRY(gt_planner_try(s, s->c->everything.counts));
  if (!gt_planner_asked(s->p))
    s->judged_s *=
        gt_planner_best(s).second / s->c->everything.at[GT_PLANNER_EXPECTED].figures.wall_s;
  return GT_OK;
}

static gt_status search_all(search *s) {
  double least = 0;
  bool more = true;
  if (s->fine)
    gt_planner_take_known(s, &s->c->everything);
  else
    GT_TRY(try_everything(s));
  for (int tried = 0; tried < TRIES && more; tried++) GT_TRY(try_rule(s, tried, &more));
  GT_TRY(gt_planner_climb(s));
  if (gt_planner_number_of_sets(s) <= s->p->sets_most)
    GT_TRY(gt_planner_try_all(s, &least));
  else
    least = gt_planner_least_of_all(s);
  if (!s->fine) GT_TRY(confirm(s));
  set_gap(s, least);
  return GT_OK;
}

/* Makes the best set the candidate's set. */
static void settle(const search *s) {
  gt_planner_candidate *c = s->c;
  size_t bytes = s->p->ncounts * sizeof *s->kept;
  c->whole = memcmp(s->kept, c->everything.counts, bytes) == 0;
  if (c->set.counts && !c->whole && memcmp(s->kept, c->set.counts, bytes) == 0) return;
  gt_planner_set_close(&c->set);
  if (c->whole) return;
  c->set.counts = GT_NEW_ARRAY(int64_t, s->p->ncounts);
  memcpy(c->set.counts, s->kept, bytes);
}

/* Starts the search, after everything everywhere is simulated. */
static gt_status begin(search *s) {
  const gt_planner *p = s->p;
  const gt_planner_set *all = &s->c->everything;
  s->coarse = *p;
  s->coarse.max_events = p->max_events / COARSE;
  if (s->coarse.max_events < COARSE_MIN)
    s->coarse.max_events = p->max_events < COARSE_MIN ? p->max_events : COARSE_MIN;
  s->fine =
      all->at[GT_PLANNER_EXPECTED].part >= 1 && all->forecast.totals.events <= s->coarse.max_events;
  if (s->fine) s->coarse.max_events = p->max_events;
  s->work = WORK * p->max_events;
  s->last = GT_PLANNER_EVENTS;
  if (!gt_planner_asked(p))
    s->limit_s = all->at[GT_PLANNER_EXPECTED].figures.wall_s * (1 + GT_PLANNER_TOLERANCE);
  s->judged_s = s->limit_s;
  return gt_planner_bounds_open(s);
}

static gt_status find(search *s) {
  gt_planner_candidate *c = s->c;
  c->everything.counts = GT_NEW_ARRAY(int64_t, s->p->ncounts);
  gt_plan_everything(&s->problem, c->everything.counts);
  equal_samples(s);
  steps_of_passes(s);
  GT_TRY(gt_planner_simulate(s->p, c, &c->everything, GT_PLANNER_EXPECTED));
  if (gt_planner_limited(s->p))
    GT_TRY(gt_planner_simulate(s->p, c, &c->everything, GT_PLANNER_HIGH));
  learn(s);
  GT_TRY(begin(s));
  GT_TRY(search_all(s));
  settle(s);
  gt_planner_set *set = c->whole ? &c->everything : &c->set;
  for (gt_planner_case k = GT_PLANNER_LOW; k < GT_PLANNER_CASES; k++)
    GT_TRY(gt_planner_simulate(s->p, c, set, k));
  sort_times(set);
  c->fits = gt_planner_fits(s->p, set, c->whole, c->why, sizeof c->why);
  c->unproven = c->unproven && c->fits;
  if (c->unproven)
    snprintf(c->why, sizeof c->why,
             "codec %s is lossy; without a plan.samples_factor for it, its accuracy is unknown",
             gt_codec_names[c->codec]);
  c->fits = c->fits && !c->unproven;
  return GT_OK;
}

gt_status gt_planner_find(const gt_planner *p, gt_planner_candidate *c) {
  search s;
  open_search(&s, p, c);
  gt_status status = find(&s);
  close_search(&s);
  return status;
}
