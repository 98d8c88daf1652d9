/* Lower bounds for sets.  Time: a region's batches at the full power of its devices, or the traffic
   of the fewest steps over the busiest link.  Cost: the machines for that time, and the egress of
   the fewest steps.  The rest of a simulation (servers, waiting, evaluations, checkpoints) only
   makes a set slower and more expensive. */
#include <math.h>
#include <string.h>

#include "geotrain/data.h"
#include "geotrain/sync.h"
#include "search.h"

#define VARIATION 0.1  /* lower bound of a step with varying steps, relative to the mean step */
#define FREE      1e30 /* samples/s: computing takes no time */
#define BELIEVED  1e-6 /* relative tolerance: simulated times are whole nanoseconds */
#define PARTLY    0.99 /* factor for bytes extrapolated from a part of a run */
/* number of intervals between the fastest set and the slowest that can be better */
#define PIECES  200
#define NEVER_S 1e12

/* ---- verdicts ------------------------------------------------------------------------------ */

bool gt_planner_by_time(const gt_planner *p) {
  return p->job->plan.budget > 0 && p->job->plan.deadline_s <= 0;
}

bool gt_planner_better(const gt_planner_verdict *a, const gt_planner_verdict *b) {
  if (a->fits != b->fits) return a->fits;
  if (!a->fits) return a->over < b->over * (1 - GT_PLANNER_EQUAL);
  if (fabs(a->first - b->first) > GT_PLANNER_EQUAL * b->first) return a->first < b->first;
  return a->second < b->second * (1 - GT_PLANNER_EQUAL);
}

gt_planner_verdict gt_planner_best(const gt_planner_set_search *s) {
  return s->nkept > 0
             ? s->verdicts[0]
             : (gt_planner_verdict){.over = INFINITY, .first = INFINITY, .second = INFINITY};
}

bool gt_planner_can_be_better(const gt_planner_set_search *s, double least) {
  gt_planner_verdict best = gt_planner_best(s);
  return !best.fits || least <= best.first * (1 + GT_PLANNER_EQUAL);
}

double gt_planner_machines(const gt_planner_set_search *s, const int64_t *counts, double wall_s) {
  double cost = 0;
  for (size_t r = 0; r < s->problem.nregions; r++) {
    const gt_plan_region *region = &s->problem.regions[r];
    gt_plan_billing billing = {s->p->job->plan.billing_s, s->p->prices.regions[r].min_s};
    double rate = region->ps_price;
    for (size_t d = 0; d < region->ndevices; d++)
      rate += (double)counts[s->p->pools[r].first + d] * region->devices[d].price;
    cost += rate * gt_plan_billed(s->p->job->plan.start_s + wall_s, &billing) / 3600;
  }
  return cost;
}

/* ---- a region's time ------------------------------------------------------------------------- */

/* The work of a region. */
typedef struct {
  double batches, samples;
  /* `sync`: number of steps in which the slowest device has a short batch or none */
  double cut;
} task;

static bool is_sync(const gt_planner_set_search *s) {
  return s->p->job->sync.local == GT_LOCAL_SYNC;
}

/* Returns the samples of these batches; the last batch of an epoch can be short. */
static double samples_in(const gt_order *order, double batches) {
  double each = (double)gt_order_batches_per_epoch(order), epochs = floor(batches / each);
  return epochs * (double)order->n + (batches - epochs * each) * (double)order->batch;
}

/* Returns the work of a region. steps: of the region, if the job trains until a number of steps. */
static task task_of(const gt_planner_set_search *s, size_t r, int64_t ranks, double steps) {
  const gt_job_interval *until = &s->p->job->train.until;
  gt_order order = {.seed = s->p->job->seed,
                    .region = r,
                    .n = (size_t)s->p->shape.samples[r],
                    .batch = (size_t)s->p->job->train.batch};
  double each = (double)gt_order_batches_per_epoch(&order), n = is_sync(s) ? (double)ranks : 1;
  task t = {0};
  if (until->samples > 0) {
    t.samples = ceil((double)until->samples * s->c->factor - 1e-9);
    t.batches = ceil(t.samples / (double)order.batch);
  } else {
    t.batches = until->epochs > 0 ? ceil(until->epochs * s->c->factor * each - 1e-9) : steps * n;
    t.samples = samples_in(&order, t.batches);
  }
  t.cut = (fmod(t.batches, n) != 0) + (order.n % order.batch != 0 ? ceil(t.batches / each) : 0);
  return t;
}

static double variation(const gt_planner_set_search *s) {
  return s->p->job->compute_variation > 0 ? VARIATION : 1;
}

/* Returns the time for `ranks` ranks, the slowest of which has this power. */
static double slowest_s(const gt_planner_set_search *s, const task *t, int64_t ranks,
                        double power) {
  return fmax(0, ceil(t->batches / (double)ranks) - t->cut) * (double)s->p->job->train.batch /
         power;
}

static double region_s(const gt_planner_set_search *s, size_t r, const int64_t *counts,
                       const double *powers, double steps) {
  const gt_planner_pool *pool = &s->p->pools[r];
  double power = 0, slowest = INFINITY;
  int64_t ranks = 0;
  for (size_t i = pool->first; i < pool->first + pool->n; i++) {
    if (counts[i] == 0) continue;
    ranks += counts[i];
    power += (double)counts[i] * powers[i];
    slowest = fmin(slowest, powers[i]);
  }
  task t = task_of(s, r, ranks, steps);
  double shared_s = is_sync(s) && pool->fixed ? 0 : t.samples / power;
  return fmax(shared_s, is_sync(s) ? slowest_s(s, &t, ranks, slowest) : 0);
}

/* Returns the steps of a set.  With `sync` they are inversely proportional to the number of
   workers. */
static double steps_of(const gt_planner_set_search *s, const int64_t *counts) {
  double all = 0, set = 0, steps = (double)s->p->job->train.until.steps * s->c->factor;
  if (!is_sync(s)) return ceil(steps - 1e-9);
  for (size_t r = 0; r < s->p->job->nregions; r++) {
    all += (double)gt_planner_ranks(s->p, r, s->c->everything.counts) - 1;
    set += (double)gt_planner_ranks(s->p, r, counts) - 1;
  }
  return ceil(steps * all / set - 1e-9);
}

static double time_of(const gt_planner_set_search *s, const int64_t *counts) {
  double time_s = 0, steps = steps_of(s, counts);
  for (size_t r = 0; r < s->p->job->nregions; r++)
    time_s = fmax(time_s, region_s(s, r, counts, s->power, steps));
  return fmax(s->wan_s, time_s * variation(s));
}

/* ---- a set ----------------------------------------------------------------------------------- */

static double cost_of(const gt_planner_set_search *s, const int64_t *counts, double time_s) {
  return gt_planner_machines(s, counts, time_s) + s->egress_usd;
}

static bool is_late(const gt_planner_set_search *s, double time_s) {
  return time_s > fmin(s->limit_s, gt_planner_allowed(s->p->job)) * (1 + GT_PLANNER_EQUAL);
}

static bool is_dear(const gt_planner_set_search *s, double cost) {
  return s->p->job->plan.budget > 0 && cost > s->p->job->plan.budget * (1 + GT_PLANNER_EQUAL);
}

double gt_planner_least(const gt_planner_set_search *s, const int64_t *counts) {
  double time_s = time_of(s, counts), cost = cost_of(s, counts, time_s);
  if (is_late(s, time_s) || is_dear(s, cost)) return INFINITY;
  return gt_planner_by_time(s->p) ? time_s : cost;
}

bool gt_planner_belies(const gt_planner_set_search *s, const gt_planner_set *set) {
  const gt_planner_outcome *o = &set->at[GT_PLANNER_EXPECTED];
  double time_s = time_of(s, set->counts), cost = cost_of(s, set->counts, time_s);
  if (o->part < 1) return false;
  return o->figures.wall_s < time_s * (1 - BELIEVED) ||
         gt_planner_cost(s->p, o) < cost * (1 - BELIEVED);
}

/* ---- all sets -------------------------------------------------------------------------------- */

/* Returns a power with which the problem, which ignores short batches, takes no longer than the
   region. */
static double problem_power(const gt_planner_set_search *s, size_t r, double power) {
  const gt_plan_region *region = &s->least.regions[r];
  double batch = (double)s->p->job->train.batch, most = 1;
  int64_t all = 0;
  for (size_t d = 0; d < region->ndevices; d++) all += region->devices[d].count;
  for (int64_t n = 1; n <= (is_sync(s) ? all : 1); n++) {
    task t = task_of(s, r, n, (double)s->least.steps);
    double steps = ceil(t.batches / (is_sync(s) ? (double)n : 1));
    double kept = is_sync(s) ? steps - t.cut : t.samples / batch;
    if (!(kept > 0)) return FREE;
    most = fmax(most, steps / kept);
  }
  return power * most / variation(s);
}

/* Returns a lower bound for the rate (USD per hour, machines only) of sets that take at most
   time_s; INFINITY: none does. */
static double rate_within(const gt_planner_set_search *s, double time_s) {
  double rate;
  return gt_plan_elastic(&s->least, time_s, s->next, &rate) ? rate : INFINITY;
}

/* Returns a lower bound for the billed hours of a run of time_s. */
static double billed_hours(const gt_planner_set_search *s, double time_s) {
  double min_s = INFINITY;
  for (size_t r = 0; r < s->p->job->nregions; r++)
    min_s = fmin(min_s, s->p->prices.regions[r].min_s);
  gt_plan_billing billing = {s->p->job->plan.billing_s, min_s};
  return gt_plan_billed(s->p->job->plan.start_s + time_s, &billing) / 3600;
}

/* Returns the end of interval k.  Intervals are billing steps if these are few, otherwise they grow
   geometrically. */
static double piece_end(const gt_planner_set_search *s, double from_s, double to_s, int k) {
  double step_s = s->p->job->plan.billing_s, start_s = s->p->job->plan.start_s,
         first = ceil((start_s + from_s) / step_s);
  if ((to_s - from_s) / step_s < PIECES) return fmin(to_s, (first + k) * step_s - start_s);
  return k + 1 == PIECES ? to_s : from_s * pow(to_s / from_s, (k + 1.0) / PIECES);
}

/* Returns the lower bound over all intervals: each pays for its start and requires devices that
   reach its end. */
static double least_within(const gt_planner_set_search *s, double from_s, double to_s) {
  double least = INFINITY, begin_s = from_s;
  for (int k = 0; k < PIECES && begin_s < to_s; k++) {
    double end_s = piece_end(s, from_s, to_s, k);
    if (!(end_s > begin_s)) continue;
    /* just past the billing step */
    double paid_s = begin_s + (k > 0 ? 1e-8 * s->p->job->plan.billing_s : 0);
    double cost = billed_hours(s, paid_s) * rate_within(s, end_s) + s->egress_usd;
    if (gt_planner_by_time(s->p) && !is_dear(s, cost)) return begin_s;
    if (!gt_planner_by_time(s->p)) least = fmin(least, cost);
    begin_s = end_s;
  }
  return least;
}

/* Returns the slowest useful time: slower sets exceed a limit, or cost too much even at the lowest
   rate. */
static double slowest_of_use(const gt_planner_set_search *s) {
  double rate = rate_within(s, NEVER_S), best = gt_planner_best(s).first;
  double hours =
      gt_planner_by_time(s->p) ? s->p->job->plan.budget / rate : (best - s->egress_usd) / rate;
  double most_s = fmin(s->limit_s, gt_planner_allowed(s->p->job));
  if (rate > 0) most_s = fmin(most_s, hours * 3600 - s->p->job->plan.start_s);
  return gt_planner_by_time(s->p) ? fmin(most_s, best) : most_s;
}

double gt_planner_least_of_all(const gt_planner_set_search *s) {
  if (s->p->ncounts > GT_PLANNER_LARGE || !gt_planner_best(s).fits) return 0;
  double from_s = fmax(gt_plan_fastest(&s->least, s->next), s->wan_s), to_s = slowest_of_use(s),
         best = gt_planner_best(s).first;
  if (!(from_s > 0) || !(to_s < NEVER_S)) return 0;
  return to_s > from_s ? fmin(best, least_within(s, from_s, to_s)) : best;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Returns the bytes from region to region that every set sends.  No set makes fewer steps than
   everything everywhere, whose regions have the most workers, and every set sends all its updates.
   The bound is 0 for models (`ama`), which replace pending ones, and with sync.central, where fewer
   workers send fewer messages per step.  The caller frees them. */
static double *least_bytes(const gt_planner_set_search *s) {
  const gt_sim_forecast *all = &s->c->everything.forecast;
  const gt_sync_ops *ops = gt_sync_of(s->c->strategy);
  double *bytes = GT_NEW_ARRAY(double, all->nregions * all->nregions),
         share = all->part < 1 ? PARTLY : 1;
  if ((ops->sends == GT_MSG_STATE && !ops->waits) || s->p->job->sync.central) return bytes;
  for (size_t i = 0; i < all->nregions * all->nregions; i++)
    bytes[i] = share * all->links[i].bytes_sent;
  return bytes;
}

static double egress_of(const gt_planner_set_search *s, const double *bytes) {
  gt_cost_result cost;
  if (!s->p->prices.known) return 0;
  gt_plan_job_cost(&cost, s->p->job, &s->p->prices, 0, bytes, NULL);
  double usd = cost.egress_usd;
  gt_plan_job_cost_close(&cost);
  return usd;
}

/* Returns the seconds that the bytes take on a link; 0 with a trace, which gives no bound. */
static double passing_s(const gt_link_spec *link, double bytes) {
  return link->bandwidth_bps > 0 && !link->trace ? 8 * bytes / link->bandwidth_bps : 0;
}

/* Sets the bound of the WAN: a run ends after the busiest link, and the busiest region's access,
   has carried all bytes. */
static gt_status find_wan(gt_planner_set_search *s, const double *bytes) {
  size_t n = s->p->job->nregions;
  gt_links *links = NULL;
  gt_status status = gt_links_create(&links, s->p->job);
  for (size_t r = 0; r < n && status == GT_OK; r++) {
    const gt_link_access access = gt_links_access(links, r);
    double up = 0, down = 0;
    for (size_t p = 0; p < n; p++) {
      s->wan_s = fmax(s->wan_s, passing_s(&gt_links_from(links, r)[p], bytes[r * n + p]));
      up += bytes[r * n + p];
      down += bytes[p * n + r];
    }
    if (access.up_bps > 0) s->wan_s = fmax(s->wan_s, 8 * up / access.up_bps);
    if (access.down_bps > 0) s->wan_s = fmax(s->wan_s, 8 * down / access.down_bps);
  }
  gt_links_close(links);
  return status;
}

static gt_status open_wan(gt_planner_set_search *s) {
  double *bytes = least_bytes(s);
  s->egress_usd = egress_of(s, bytes);
  gt_status status = find_wan(s, bytes);
  gt_free(bytes);
  return status;
}

gt_status gt_planner_bounds_open(gt_planner_set_search *s) {
  size_t n = s->problem.nregions, at = 0;
  gt_plan_region *regions = GT_NEW_ARRAY(gt_plan_region, n);
  gt_plan_device *devices = GT_NEW_ARRAY(gt_plan_device, s->p->ncounts);
  s->least = s->problem;
  s->least.regions = regions;
  s->least.barrier = false;
  s->least.exchange_s = 0;
  if (s->p->job->train.until.steps > 0) { /* no set makes fewer steps */
    s->least.samples = s->least.together = 0;
    s->least.steps = (int64_t)ceil((double)s->p->job->train.until.steps * s->c->factor - 1e-9);
  }
  for (size_t r = 0; r < n; r++) {
    regions[r] = s->problem.regions[r];
    regions[r].wan_step_s = 0;
    regions[r].devices = devices + at;
    memcpy(devices + at, s->problem.regions[r].devices, regions[r].ndevices * sizeof *devices);
    for (size_t d = 0; d < regions[r].ndevices; d++)
      devices[at + d].power = problem_power(s, r, s->power[at + d]);
    at += regions[r].ndevices;
  }
  return open_wan(s);
}

void gt_planner_bounds_close(gt_planner_set_search *s) {
  if (!s->least.regions) return;
  gt_free((void *)s->least.regions[0].devices);
  gt_free((void *)s->least.regions);
  s->least.regions = NULL;
}
