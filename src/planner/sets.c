/* Finds a candidate's set of devices.  Everything everywhere is simulated; this gives the real
   paces of the regions and of the WAN.  Elastic scheduling chooses a set, which is simulated too.
   If it is too slow, the paces are corrected by the simulation and the choice is repeated.  The
   search by the bill then decides among the sets around it (bill.c). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/sync.h"
#include "internal.h"

#define TRIES 6 /* number of sets that are simulated before everything everywhere is proposed */
/* number of attempts to get a set from the problem other than the last one, which failed */
#define AGAIN 8
/* if its workers wait for the WAN for more than this share, the WAN sets the region's pace */
#define WAN_HOLDS 0.05

typedef struct {
  const gt_planner *p;
  gt_planner_candidate *c;
  gt_plan_problem problem;
  gt_plan_region *regions; /* of the problem */
  gt_plan_device *devices;
  double *power; /* ncounts: of one device, before correction by the simulation */
  /* nregions: the share of that power reached in a run (server, local plane, short batches) */
  double *pace;
  /* nregions: a pace at which the region, with all its devices, still keeps up with the slowest */
  double *floor;
  double limit_s;   /* limit for the expected time of the run; INFINITY: none */
  double highest_s; /* limit for the high time of the run */
  double whole_s;   /* T(everything everywhere) of the problem */
} search;

/* ---- the problem ----------------------------------------------------------------------------- */

/* The samples/s of a worker in the run. */
static double worker_power(const gt_job *job, size_t region, size_t worker) {
  const gt_job_region *r = &job->regions[region];
  gt_job_compute c = gt_job_compute_of(job, region);
  double rate = c.step_s > 0 ? (double)job->train.batch / c.step_s : c.samples_per_s;
  double share = (worker < r->nspeeds ? r->speeds[worker] : 1) *
                 (worker < r->nmeasured ? r->measured[worker] : 1);
  return rate * c.speed * share * gt_job_worker_share(job, region, worker);
}

/* The power of the one device that represents all workers of a region with fixed ranks: the slowest
   (`sync`) or the mean. */
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

/* A region that only aggregates: one worker that costs nothing and finishes at once, so that it
   never holds others up. */
static gt_plan_device no_worker(void) {
  return (gt_plan_device){1, 1e30, 0};
}

/* If no price is known, every rank has the same price. */
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
    if (device->count == 0 && device->power <= 0) device->power = 1; /* nothing can use it */
    s->power[pool->first + d] = device->power;
  }
  s->pace[r] = 1;
}

static void open_search(search *s, const gt_planner *p, gt_planner_candidate *c) {
  const gt_job *job = p->job;
  *s = (search){.p = p, .c = c, .limit_s = INFINITY, .highest_s = INFINITY};
  s->regions = GT_NEW_ARRAY(gt_plan_region, job->nregions);
  s->devices = GT_NEW_ARRAY(gt_plan_device, p->ncounts);
  s->power = GT_NEW_ARRAY(double, p->ncounts);
  s->pace = GT_NEW_ARRAY(double, job->nregions);
  s->floor = GT_NEW_ARRAY(double, job->nregions);
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

/* The workers of all regions with everything everywhere. */
static double all_workers(const search *s) {
  double workers = 0;
  for (size_t r = 0; r < s->problem.nregions; r++)
    workers += (double)gt_planner_ranks(s->p, r, s->c->everything.counts) - 1;
  return workers;
}

/* The problem has one period, in steps: a pass is as many steps as a region has workers on average
   with everything everywhere. */
static void steps_of_passes(search *s) {
  gt_plan_problem *problem = &s->problem;
  if (s->p->job->sync.period_unit != GT_PERIOD_PASS || problem->local_sync) return;
  double pass = fmax(1, all_workers(s) / (double)gt_job_training(s->p->job));
  if (s->c->period > 0) problem->period = llround(fmin((double)s->c->period * pass, 1e15));
}

/* For the problem, steps of all workers are converted into samples, the same number in each region
   (their average): fewer workers make more steps. */
static void equal_samples(search *s) {
  gt_plan_problem *problem = &s->problem;
  if (!problem->local_sync || problem->steps == 0) return;
  problem->samples = (int64_t)ceil((double)problem->steps * (double)problem->batch *
                                   all_workers(s) / (double)gt_job_training(s->p->job));
  problem->steps = 0;
}

static void close_search(search *s) {
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

/* The share of their power that the region's devices reach in this run, without the WAN. */
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

static double model_time(const search *s, int64_t *counts) {
  gt_plan_answer answer = {.counts = counts};
  gt_plan_value(&s->problem, &answer);
  return answer.time_s;
}

/* The time of an exchange for which the problem's time of this set equals the simulated one. */
static double exchange_in(search *s, const gt_planner_set *set) {
  s->problem.exchange_s = 0;
  double without = model_time(s, set->counts);
  s->problem.exchange_s = 1;
  double exchanges = model_time(s, set->counts) - without;
  return exchanges > 0 ? fmax(0, (set->at[GT_PLANNER_EXPECTED].train_s - without) / exchanges) : 0;
}

/* A region's own work with everything everywhere at the full power of its devices: per round of
   steps, or without a barrier for all steps. */
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

/* A worker's time in training, including the time it waits for the WAN. */
static double busy(const gt_region_result *seen) {
  return seen->compute_s + seen->local_wait_s + seen->wan_wait_s;
}

static bool waits(const gt_region_result *seen) {
  return seen->steps > 0 && seen->wan_wait_s > WAN_HOLDS * busy(seen);
}

/* Sets the paces from everything everywhere.  Without a barrier, a region that waits for the WAN
   makes its steps at the WAN's pace, whatever its devices. */
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
  s->whole_s = model_time(s, all->counts);
}

/* Sets of fewer workers make more steps if workers are in step, and may wait for the WAN where
   everything everywhere did not.  The pace is limited so that the set can still be fast enough. */
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

/* The set was too slow by `over` (1: too expensive): sets smaller than everything reach less than
   assumed.  Each correction is stronger than the last, because the cause may act in steps (workers
   that wait for the end of a period). */
static void learn_more(search *s, double over, int tried) {
  for (size_t r = 0; r < s->problem.nregions; r++) {
    learn_wan(s, r);
    if (!is_smaller(s, r)) continue;
    s->pace[r] =
        fmax(s->floor[r], fmin(s->pace[r] / pow(over, 1 + tried), pace_in(s, r, &s->c->set)));
  }
  set_powers(s);
}

/* ---- goals and limits ------------------------------------------------------------------------ */

static gt_status simulate(search *s, gt_planner_set *set, gt_planner_case which) {
  return gt_planner_simulate(s->p, s->c, set, which);
}

/* The problem's goals from those of the job.  A run takes longer than the problem says by a factor,
   plus the end of the run, which is the same for every set: exchange of models, results, a last
   checkpoint. */
static void set_goals(search *s) {
  const gt_job *job = s->p->job;
  const gt_planner_outcome *o = s->c->everything.at,
                           *goal =
                               &o[gt_planner_asked(s->p) ? GT_PLANNER_HIGH : GT_PLANNER_EXPECTED];
  double slower = goal->train_s / o[GT_PLANNER_EXPECTED].train_s,
         end_s = fmax(0, goal->figures.wall_s - slower * s->whole_s);
  s->highest_s = gt_planner_allowed(job);
  s->problem.start_s = (job->plan.start_s + end_s) / slower;
  if (!gt_planner_asked(s->p)) {
    s->limit_s = o[GT_PLANNER_EXPECTED].figures.wall_s * (1 + GT_PLANNER_TOLERANCE);
    s->problem.deadline_s = s->whole_s * (1 + GT_PLANNER_TOLERANCE);
  } else if (job->plan.deadline_s > 0)
    s->problem.deadline_s = fmax(gt_planner_allowed(job) - end_s, 1e-3) / slower;
  else
    s->problem.budget = fmax(job->plan.budget - goal->cost.egress_usd, 1e-9) / slower;
}

/* The factor by which the simulated set exceeds its time limits; 1 or less: it fits. */
static double miss(const search *s) {
  const gt_planner_outcome *o = s->c->set.at;
  double over = o[GT_PLANNER_EXPECTED].figures.wall_s / s->limit_s;
  return o[GT_PLANNER_HIGH].known ? fmax(over, o[GT_PLANNER_HIGH].figures.wall_s / s->highest_s)
                                  : over;
}

/* ---- the search ------------------------------------------------------------------------------ */

static bool same_counts(const search *s, const int64_t *a, const int64_t *b) {
  return memcmp(a, b, s->p->ncounts * sizeof *a) == 0;
}

/* The problem's best set.  If it is the last one again, which failed, tightens the goal to get a
   cheaper or faster one.  False: there is none. */
static bool next_set(search *s, gt_plan_answer *answer) {
  const int64_t *last = s->c->set.counts;
  bool solved = gt_plan_elastic(&s->problem, answer) == GT_OK;
  for (int k = 0; solved && last && k < AGAIN && same_counts(s, answer->counts, last); k++) {
    if (s->problem.budget > 0)
      s->problem.budget = answer->cost * (1 - 1e-6);
    else
      s->problem.deadline_s = answer->time_s * (1 - 1e-6);
    solved = gt_plan_elastic(&s->problem, answer) == GT_OK;
  }
  if (solved && last && same_counts(s, answer->counts, last)) return false;
  return solved && !same_counts(s, answer->counts, s->c->everything.counts);
}

/* Simulates the next set; *found: it fits; *more: another may fit. */
static gt_status try_set(search *s, int tried, bool *found, bool *more) {
  gt_planner_candidate *c = s->c;
  const gt_job *job = s->p->job;
  gt_plan_answer answer = {.counts = GT_NEW_ARRAY(int64_t, s->p->ncounts)};
  *found = *more = false;
  if (!next_set(s, &answer)) {
    gt_free(answer.counts);
    return GT_OK;
  }
  gt_planner_set_close(&c->set);
  c->set.counts = answer.counts;
  GT_TRY(simulate(s, &c->set, GT_PLANNER_EXPECTED));
  if (gt_planner_limited(s->p)) GT_TRY(simulate(s, &c->set, GT_PLANNER_HIGH));
  double over = miss(s);
  bool dear = job->plan.budget > 0 && c->set.at[GT_PLANNER_HIGH].cost.usd > job->plan.budget;
  *found = over <= 1 && !dear;
  if (*found) return GT_OK;
  *more = true;
  learn_more(s, fmax(over, 1), tried);
  if (job->plan.deadline_s > 0 && over > 1) s->problem.deadline_s /= over;
  if (dear && s->problem.budget > 0)
    s->problem.budget *= job->plan.budget / c->set.at[GT_PLANNER_HIGH].cost.usd * 0.999;
  return GT_OK;
}

/* Faster machines may make a simulated run slightly slower, and the reverse: orders the low and the
   high time. */
static void sort_times(gt_planner_set *set) {
  const gt_figures *expected = &set->at[GT_PLANNER_EXPECTED].figures;
  gt_figures *low = &set->at[GT_PLANNER_LOW].figures, *high = &set->at[GT_PLANNER_HIGH].figures;
  low->wall_s = fmin(low->wall_s, expected->wall_s);
  high->wall_s = fmax(high->wall_s, expected->wall_s);
}

static gt_status find(search *s) {
  gt_planner_candidate *c = s->c;
  bool found = false, more = true;
  c->everything.counts = GT_NEW_ARRAY(int64_t, s->p->ncounts);
  gt_plan_everything(&s->problem, c->everything.counts);
  equal_samples(s);
  steps_of_passes(s);
  GT_TRY(simulate(s, &c->everything, GT_PLANNER_EXPECTED));
  if (gt_planner_limited(s->p)) GT_TRY(simulate(s, &c->everything, GT_PLANNER_HIGH));
  learn(s);
  set_goals(s);
  for (int tried = 0; tried < TRIES && more; tried++) {
    GT_TRY(try_set(s, tried, &found, &more));
    c->adjusted += more;
  }
  GT_TRY(gt_planner_bill_decide(s->p, c, &s->problem, s->power, s->limit_s));
  gt_planner_set *set = c->whole ? &c->everything : &c->set;
  for (gt_planner_case k = GT_PLANNER_LOW; k < GT_PLANNER_CASES; k++) GT_TRY(simulate(s, set, k));
  sort_times(set);
  c->fits = gt_planner_fits(s->p, set, c->whole, c->why, sizeof c->why);
  return GT_OK;
}

gt_status gt_planner_find(const gt_planner *p, gt_planner_candidate *c) {
  search s;
  open_search(&s, p, c);
  gt_status status = find(&s);
  close_search(&s);
  return status;
}
