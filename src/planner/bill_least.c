/* Lower bounds for sets.  Time: a region's batches at the full power of its devices, or the traffic
   of the fewest steps over the busiest link; nothing else takes time.  Cost: the machines for that
   time, and the egress of the fewest steps.  Whatever a simulation adds (servers, waiting,
   evaluations, checkpoints) makes a set slower and more expensive. */
#include <math.h>
#include <string.h>

#include "geotrain/data.h"
#include "geotrain/plan.h"
#include "geotrain/sync.h"
#include "bill.h"

#define VARIATION 0.1  /* with varying steps, lower bound of a step relative to the mean step */
#define FREE      1e30 /* samples/s: computing takes no time */
#define BELIEVED  1e-6 /* relative tolerance: simulated times are whole nanoseconds */
#define PARTLY    0.99 /* factor for bytes extrapolated from a part of a run */
/* number of intervals between the fastest set and the slowest that can be better */
#define PIECES 200
/* a start time that exceeds the run time by this factor: then the cheapest set has the lowest
   rate */
#define SHIFT   1e6
#define NEVER_S 1e12
#define DEAR    1e30

/* ---- a region's time ------------------------------------------------------------------------- */

/* The work of a region. */
typedef struct {
  double batches, samples;
  /* `sync`: number of steps in which the slowest device may have a short batch, or none */
  double cut;
} task;

static bool is_sync(const gt_planner_bill *b) {
  return b->p->job->sync.local == GT_LOCAL_SYNC;
}

/* The last batch of an epoch may be short. */
static double samples_in(const gt_order *order, double batches) {
  double each = (double)gt_order_batches_per_epoch(order), epochs = floor(batches / each);
  return epochs * (double)order->n + (batches - epochs * each) * (double)order->batch;
}

/* steps: of the region, used if the job trains until a number of steps. */
static task task_of(const gt_planner_bill *b, size_t r, int64_t ranks, double steps) {
  const gt_job_interval *until = &b->p->job->train.until;
  gt_order order = {.seed = b->p->job->seed,
                    .region = r,
                    .n = (size_t)b->p->shape.samples[r],
                    .batch = (size_t)b->p->job->train.batch};
  double each = (double)gt_order_batches_per_epoch(&order), n = is_sync(b) ? (double)ranks : 1;
  task t = {0};
  if (until->samples > 0) {
    t.samples = ceil((double)until->samples * b->c->factor - 1e-9);
    t.batches = ceil(t.samples / (double)order.batch);
  } else {
    t.batches = until->epochs > 0 ? ceil(until->epochs * b->c->factor * each - 1e-9) : steps * n;
    t.samples = samples_in(&order, t.batches);
  }
  t.cut = (fmod(t.batches, n) != 0) + (order.n % order.batch != 0 ? ceil(t.batches / each) : 0);
  return t;
}

static double variation(const gt_planner_bill *b) {
  return b->p->job->compute_variation > 0 ? VARIATION : 1;
}

/* Time for `ranks` ranks, the slowest of which has this power. */
static double slowest_s(const gt_planner_bill *b, const task *t, int64_t ranks, double power) {
  return fmax(0, ceil(t->batches / (double)ranks) - t->cut) * (double)b->p->job->train.batch /
         power;
}

static double region_s(const gt_planner_bill *b, size_t r, const int64_t *counts,
                       const double *powers, double steps) {
  const gt_planner_pool *pool = &b->p->pools[r];
  double power = 0, slowest = INFINITY;
  int64_t ranks = 0;
  for (size_t i = pool->first; i < pool->first + pool->n; i++) {
    if (counts[i] == 0) continue;
    ranks += counts[i];
    power += (double)counts[i] * powers[i];
    slowest = fmin(slowest, powers[i]);
  }
  task t = task_of(b, r, ranks, steps);
  double shared_s = is_sync(b) && pool->fixed ? 0 : t.samples / power;
  return fmax(shared_s, is_sync(b) ? slowest_s(b, &t, ranks, slowest) : 0);
}

/* With `sync` the number of steps is inversely proportional to the number of workers, relative to
   everything everywhere. */
static double steps_of(const gt_planner_bill *b, const int64_t *counts) {
  double all = 0, set = 0, steps = (double)b->p->job->train.until.steps * b->c->factor;
  if (!is_sync(b)) return ceil(steps - 1e-9);
  for (size_t r = 0; r < b->p->job->nregions; r++) {
    all += (double)gt_planner_ranks(b->p, r, b->c->everything.counts) - 1;
    set += (double)gt_planner_ranks(b->p, r, counts) - 1;
  }
  return ceil(steps * all / set - 1e-9);
}

static double time_of(const gt_planner_bill *b, const int64_t *counts) {
  double time_s = 0, steps = steps_of(b, counts);
  for (size_t r = 0; r < b->p->job->nregions; r++)
    time_s = fmax(time_s, region_s(b, r, counts, b->power, steps));
  return fmax(b->wan_s, time_s * variation(b));
}

/* ---- a set ----------------------------------------------------------------------------------- */

static double cost_of(const gt_planner_bill *b, const int64_t *counts, double time_s) {
  return gt_planner_bill_machines(b, counts, time_s) + b->egress_usd;
}

static bool is_late(const gt_planner_bill *b, double time_s) {
  return time_s > fmin(b->limit_s, gt_planner_allowed(b->p->job)) * (1 + GT_PLANNER_BILL_EQUAL);
}

static bool is_dear(const gt_planner_bill *b, double cost) {
  return b->p->job->plan.budget > 0 && cost > b->p->job->plan.budget * (1 + GT_PLANNER_BILL_EQUAL);
}

double gt_planner_bill_least(const gt_planner_bill *b, const int64_t *counts) {
  double time_s = time_of(b, counts), cost = cost_of(b, counts, time_s);
  if (is_late(b, time_s) || is_dear(b, cost)) return INFINITY;
  return gt_planner_bill_by_time(b) ? time_s : cost;
}

bool gt_planner_bill_belies(const gt_planner_bill *b, const gt_planner_set *set) {
  const gt_planner_outcome *o = &set->at[GT_PLANNER_EXPECTED];
  double time_s = time_of(b, set->counts), cost = cost_of(b, set->counts, time_s);
  if (o->part < 1) return false;
  return o->figures.wall_s < time_s * (1 - BELIEVED) ||
         gt_planner_cost(b->p, o) < cost * (1 - BELIEVED);
}

/* ---- all sets -------------------------------------------------------------------------------- */

/* A power for the problem, which ignores short batches, such that its time is no longer than the
   region's. */
static double problem_power(const gt_planner_bill *b, size_t r, double power) {
  const gt_plan_region *region = &b->least.regions[r];
  double batch = (double)b->p->job->train.batch, most = 1;
  int64_t all = 0;
  for (size_t d = 0; d < region->ndevices; d++) all += region->devices[d].count;
  for (int64_t n = 1; n <= (is_sync(b) ? all : 1); n++) {
    task t = task_of(b, r, n, (double)b->least.steps);
    double steps = ceil(t.batches / (is_sync(b) ? (double)n : 1));
    double kept = is_sync(b) ? steps - t.cut : t.samples / batch;
    if (!(kept > 0)) return FREE;
    most = fmax(most, steps / kept);
  }
  return power * most / variation(b);
}

/* The lowest rate (USD per hour, machines only) of the sets that take no longer than time_s;
   INFINITY: there is none. */
static double rate_within(const gt_planner_bill *b, double time_s) {
  gt_plan_problem problem = b->least;
  gt_plan_answer answer = {.counts = b->next};
  problem.start_s = SHIFT * time_s;
  problem.deadline_s = time_s;
  if (gt_plan_elastic(&problem, &answer) != GT_OK) return INFINITY;
  return answer.bound * 3600 / (problem.start_s + time_s);
}

static double fastest_s(const gt_planner_bill *b) {
  gt_plan_problem problem = b->least;
  gt_plan_answer answer = {.counts = b->next};
  problem.budget = DEAR;
  return gt_plan_elastic(&problem, &answer) == GT_OK ? answer.bound : 0;
}

/* A lower bound for the billed hours of a run of time_s. */
static double billed_hours(const gt_planner_bill *b, double time_s) {
  double min_s = INFINITY;
  for (size_t r = 0; r < b->p->job->nregions; r++)
    min_s = fmin(min_s, b->p->prices.regions[r].min_s);
  gt_plan_billing billing = {b->p->job->plan.billing_s, min_s};
  return gt_plan_billed(b->p->job->plan.start_s + time_s, &billing) / 3600;
}

/* The end of interval k.  Intervals are billing steps if these are few, else they grow
   geometrically. */
static double piece_end(const gt_planner_bill *b, double from_s, double to_s, int k) {
  double step_s = b->p->job->plan.billing_s, start_s = b->p->job->plan.start_s,
         first = ceil((start_s + from_s) / step_s);
  if ((to_s - from_s) / step_s < PIECES) return fmin(to_s, (first + k) * step_s - start_s);
  return k + 1 == PIECES ? to_s : from_s * pow(to_s / from_s, (k + 1.0) / PIECES);
}

/* The lower bound over all intervals: each pays for its start and needs devices that reach its
   end. */
static double least_within(const gt_planner_bill *b, double from_s, double to_s) {
  double least = INFINITY, begin_s = from_s;
  for (int k = 0; k < PIECES && begin_s < to_s; k++) {
    double end_s = piece_end(b, from_s, to_s, k);
    if (!(end_s > begin_s)) continue;
    /* just past the billing step */
    double paid_s = begin_s + (k > 0 ? 1e-8 * b->p->job->plan.billing_s : 0);
    double cost = billed_hours(b, paid_s) * rate_within(b, end_s) + b->egress_usd;
    if (gt_planner_bill_by_time(b) && !is_dear(b, cost)) return begin_s;
    if (!gt_planner_bill_by_time(b)) least = fmin(least, cost);
    begin_s = end_s;
  }
  return least;
}

/* The slowest useful time: sets that take longer exceed a limit, or cost too much even at the
   lowest rate. */
static double slowest_of_use(const gt_planner_bill *b) {
  double rate = rate_within(b, NEVER_S), best = gt_planner_bill_best(b).first;
  double hours =
      gt_planner_bill_by_time(b) ? b->p->job->plan.budget / rate : (best - b->egress_usd) / rate;
  double most_s = fmin(b->limit_s, gt_planner_allowed(b->p->job));
  if (rate > 0) most_s = fmin(most_s, hours * 3600 - b->p->job->plan.start_s);
  return gt_planner_bill_by_time(b) ? fmin(most_s, best) : most_s;
}

double gt_planner_bill_least_of_all(const gt_planner_bill *b) {
  if (b->p->ncounts > GT_PLANNER_BILL_LARGE || !gt_planner_bill_best(b).fits) return 0;
  double from_s = fmax(fastest_s(b), b->wan_s), to_s = slowest_of_use(b),
         best = gt_planner_bill_best(b).first;
  if (!(from_s > 0) || !(to_s < NEVER_S)) return 0;
  return to_s > from_s ? fmin(best, least_within(b, from_s, to_s)) : best;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Bytes from region to region that every set sends: no set makes fewer steps than everything
   everywhere, whose regions have the most workers, and every set sends all its updates.  A model
   (`ama`) that has not left yet is replaced by the next one, and with sync.central fewer workers
   send fewer messages in a step, so no number is certain: 0.  The caller frees them. */
static double *least_bytes(const gt_planner_bill *b) {
  const gt_sim_forecast *all = &b->c->everything.forecast;
  const gt_sync_ops *ops = gt_sync_of(b->c->strategy);
  double *bytes = GT_NEW_ARRAY(double, all->nregions * all->nregions),
         share = all->part < 1 ? PARTLY : 1;
  if ((ops->sends == GT_MSG_STATE && !ops->waits) || b->p->job->sync.central) return bytes;
  for (size_t i = 0; i < all->nregions * all->nregions; i++)
    bytes[i] = share * all->links[i].bytes_sent;
  return bytes;
}

static double egress_of(const gt_planner_bill *b, const double *bytes) {
  gt_cost_result cost;
  if (!b->p->prices.known) return 0;
  gt_plan_job_cost(&cost, b->p->job, &b->p->prices, 0, bytes);
  double usd = cost.egress_usd;
  gt_plan_job_cost_close(&cost);
  return usd;
}

/* The time that the bytes take on a link, in seconds; 0 with a trace, which gives no bound. */
static double passing_s(const gt_link_spec *link, double bytes) {
  return link->bandwidth_bps > 0 && !link->trace ? 8 * bytes / link->bandwidth_bps : 0;
}

/* No run ends before the busiest link, or the busiest region's access, has carried all bytes. */
static gt_status find_wan(gt_planner_bill *b, const double *bytes) {
  size_t n = b->p->job->nregions;
  gt_links *links = NULL;
  gt_status status = gt_links_create(&links, b->p->job);
  for (size_t r = 0; r < n && status == GT_OK; r++) {
    double up = 0, down = 0, access_bps = b->p->job->regions[r].access_bps;
    for (size_t p = 0; p < n; p++) {
      b->wan_s = fmax(b->wan_s, passing_s(&gt_links_from(links, r)[p], bytes[r * n + p]));
      up += bytes[r * n + p];
      down += bytes[p * n + r];
    }
    if (access_bps > 0) b->wan_s = fmax(b->wan_s, 8 * fmax(up, down) / access_bps);
  }
  gt_links_close(links);
  return status;
}

static gt_status open_wan(gt_planner_bill *b) {
  double *bytes = least_bytes(b);
  b->egress_usd = egress_of(b, bytes);
  gt_status status = find_wan(b, bytes);
  gt_free(bytes);
  return status;
}

gt_status gt_planner_bill_least_open(gt_planner_bill *b) {
  size_t n = b->problem->nregions, at = 0;
  gt_plan_region *regions = GT_NEW_ARRAY(gt_plan_region, n);
  gt_plan_device *devices = GT_NEW_ARRAY(gt_plan_device, b->p->ncounts);
  b->least = *b->problem;
  b->least.regions = regions;
  b->least.barrier = false;
  b->least.exchange_s = b->least.start_s = b->least.deadline_s = b->least.budget = 0;
  if (b->p->job->train.until.steps > 0) { /* no set makes fewer steps */
    b->least.samples = 0;
    b->least.steps = (int64_t)ceil((double)b->p->job->train.until.steps * b->c->factor - 1e-9);
  }
  for (size_t r = 0; r < n; r++) {
    regions[r] = b->problem->regions[r];
    regions[r].wan_step_s = 0;
    regions[r].devices = devices + at;
    memcpy(devices + at, b->problem->regions[r].devices, regions[r].ndevices * sizeof *devices);
    for (size_t d = 0; d < regions[r].ndevices; d++)
      devices[at + d].power = problem_power(b, r, b->power[at + d]);
    at += regions[r].ndevices;
  }
  return open_wan(b);
}

void gt_planner_bill_least_close(gt_planner_bill *b) {
  if (!b->least.regions) return;
  gt_free((void *)b->least.regions[0].devices);
  gt_free((void *)b->least.regions);
  b->least.regions = NULL;
}
