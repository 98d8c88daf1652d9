/* Elastic scheduling against a separate brute force, written from the definition in plan.h; the
   rule of load power; the WAN; errors. */
#include "cases.h"
#include "geotrain/plan.h"
#include "tests.h"

#define REGIONS 3
#define TYPES   3
#define SETS    125 /* 5^3 */

/* ---- brute force ----------------------------------------------------------------------------- */

typedef struct {
  int64_t x[TYPES], steps;
  double step_s, rate;
} choice;

static choice choose(const gt_plan_problem *p, const gt_plan_region *g, const int64_t *x) {
  choice c = {.rate = g->ps_price};
  int64_t ranks = 0;
  double power = 0, slowest = 1e300;
  for (size_t t = 0; t < g->ndevices; t++) {
    c.x[t] = x[t];
    ranks += x[t];
    power += (double)x[t] * g->devices[t].power;
    c.rate += (double)x[t] * g->devices[t].price;
    if (x[t] > 0 && g->devices[t].power < slowest) slowest = g->devices[t].power;
  }
  c.step_s = (double)p->batch / (p->local_sync ? slowest : power);
  if (c.step_s < g->wan_step_s) c.step_s = g->wan_step_s;
  double batches = p->epochs > 0 ? ceil(p->epochs * ceil(g->samples / (double)p->batch) - 1e-9)
                                 : ceil((double)p->samples / (double)p->batch);
  if (p->steps > 0)
    c.steps = p->steps;
  else
    c.steps = (int64_t)(p->local_sync ? ceil(batches / (double)ranks) : batches);
  return c;
}

/* T, summed over the exchanges. */
static double time_of(const gt_plan_problem *p, const choice *const *c) {
  double time_s = 0;
  if (!p->barrier) {
    for (size_t r = 0; r < p->nregions; r++)
      time_s = fmax(time_s, (double)c[r]->steps * c[r]->step_s);
    return time_s;
  }
  for (int64_t done = 0;; done += p->period) {
    double round_s = -1;
    for (size_t r = 0; r < p->nregions; r++) {
      int64_t left = c[r]->steps - done;
      if (left > p->period) left = p->period;
      if (left > 0) round_s = fmax(round_s, (double)left * c[r]->step_s);
    }
    if (round_s < 0) return time_s;
    time_s += round_s + p->exchange_s;
  }
}

static double rate_of(const gt_plan_problem *p, const choice *const *c) {
  double rate = 0;
  for (size_t r = 0; r < p->nregions; r++) rate += c[r]->rate;
  return rate;
}

/* All sets that a region may use. */
static size_t list_choices(const gt_plan_problem *p, const gt_plan_region *g, choice *list) {
  size_t n = 0;
  int64_t x[TYPES] = {0};
  for (;;) {
    int64_t ranks = 0;
    for (size_t t = 0; t < g->ndevices; t++) ranks += x[t];
    if (ranks > 0 && ranks >= g->ranks_min && (g->ranks_max == 0 || ranks <= g->ranks_max))
      list[n++] = choose(p, g, x);
    size_t t = 0;
    while (t < g->ndevices && x[t] == g->devices[t].count) x[t++] = 0;
    if (t == g->ndevices) return n;
    x[t]++;
  }
}

/* The most powerful devices that ranks_max allows, of equal ones the cheapest: one after
   another. */
static choice everything(const gt_plan_problem *p, const gt_plan_region *g) {
  int64_t x[TYPES] = {0};
  for (int64_t n = 0; g->ranks_max == 0 || n < g->ranks_max; n++) {
    size_t best = g->ndevices;
    for (size_t t = 0; t < g->ndevices; t++) {
      const gt_plan_device *d = &g->devices[t], *b = &g->devices[best < g->ndevices ? best : t];
      if (x[t] < d->count && (best == g->ndevices || d->power > b->power ||
                              (d->power == b->power && d->price < b->price)))
        best = t;
    }
    if (best == g->ndevices) break;
    x[best]++;
  }
  return choose(p, g, x);
}

typedef struct {
  bool any;
  double time_s, cost;         /* of the best plan */
  double all_time_s, all_cost; /* of everything everywhere */
} truth;

static bool better(bool fastest, const truth *best, double time_s, double cost) {
  if (!best->any) return true;
  if (!fastest) return cost < best->cost;
  return time_s < best->time_s * (1 - 1e-12) ||
         (time_s <= best->time_s * (1 + 1e-12) && cost < best->cost);
}

static choice lists[REGIONS][SETS];

static truth brute_force(const gt_plan_problem *p) {
  truth best = {0};
  choice all[REGIONS];
  const choice *c[REGIONS] = {0};
  size_t n[REGIONS], at[REGIONS] = {0};
  bool none = false;
  for (size_t r = 0; r < p->nregions; r++) {
    n[r] = list_choices(p, &p->regions[r], lists[r]);
    none = none || n[r] == 0;
    if (none) continue;
    all[r] = everything(p, &p->regions[r]);
    c[r] = &all[r];
  }
  if (none) return best;
  best.all_time_s = time_of(p, c);
  best.all_cost = (p->start_s + best.all_time_s) / 3600 * rate_of(p, c);
  bool fastest = p->budget > 0 && p->deadline_s == 0;
  double limit_s = p->deadline_s > 0 ? p->deadline_s
                   : fastest         ? 1e300
                                     : best.all_time_s,
         budget = p->budget > 0 ? p->budget : 1e300;
  for (size_t r = 0; r < p->nregions;) {
    for (r = 0; r < p->nregions; r++) c[r] = &lists[r][at[r]];
    double time_s = time_of(p, c), cost = (p->start_s + time_s) / 3600 * rate_of(p, c);
    if (time_s <= limit_s * (1 + 1e-12) && cost <= budget * (1 + 1e-12) &&
        better(fastest, &best, time_s, cost)) {
      best.any = true;
      best.time_s = time_s;
      best.cost = cost;
    }
    for (r = 0; r < p->nregions && ++at[r] == n[r]; r++) at[r] = 0;
  }
  return best;
}

/* ---- random instances ------------------------------------------------------------------------ */

typedef struct {
  gt_plan_problem problem;
  gt_plan_region regions[REGIONS];
  gt_plan_device devices[REGIONS][TYPES];
} instance;

static double between(gt_rng *rng, double low, double high) {
  return low + (high - low) * gt_rng_uniform(rng);
}

static bool chance(gt_rng *rng, double share) {
  return gt_rng_uniform(rng) < share;
}

static gt_plan_device random_device(gt_rng *rng, int kind) {
  gt_plan_device d = {.count = (int64_t)gt_rng_below(rng, 5)};
  d.power = kind == 0   ? between(rng, 5, 100)
            : kind == 1 ? (double)(10 * (1 + gt_rng_below(rng, 4)))
                        : 0.1 * (double)(1 + gt_rng_below(rng, 30));
  d.price = kind == 0   ? between(rng, 0, 3)
            : kind == 1 ? d.power / 100
                        : 0.25 * (double)gt_rng_below(rng, 8);
  return d;
}

static void random_instance(instance *in, uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 7, 0);
  *in = (instance){0};
  gt_plan_problem *p = &in->problem;
  p->regions = in->regions;
  p->nregions = 1 + gt_rng_below(&rng, REGIONS);
  p->local_sync = chance(&rng, 0.5);
  p->barrier = chance(&rng, 0.5);
  p->batch = 1 + (int64_t)gt_rng_below(&rng, 20);
  p->period = 1 + (int64_t)gt_rng_below(&rng, 6);
  p->exchange_s = chance(&rng, 0.5) ? between(&rng, 0, 2) : 0;
  p->start_s = chance(&rng, 0.5) ? between(&rng, 0, 200) : 0;
  switch (gt_rng_below(&rng, 3)) {
  case 0:
    p->epochs = chance(&rng, 0.5) ? 1 : between(&rng, 0.2, 2);
    break;
  case 1:
    p->steps = 1 + (int64_t)gt_rng_below(&rng, 30);
    break;
  default:
    p->samples = 1 + (int64_t)gt_rng_below(&rng, 300);
  }
  int kind = (int)gt_rng_below(&rng, 3);
  for (size_t r = 0; r < p->nregions; r++) {
    gt_plan_region *g = &in->regions[r];
    g->devices = in->devices[r];
    g->ndevices = 1 + gt_rng_below(&rng, TYPES);
    for (size_t t = 0; t < g->ndevices; t++) in->devices[r][t] = random_device(&rng, kind);
    /* rarely no device at all */
    if (in->devices[r][0].count == 0 && chance(&rng, 0.95)) in->devices[r][0].count = 1;
    g->samples = chance(&rng, 0.3) ? 100 : (double)gt_rng_below(&rng, 250);
    if (chance(&rng, 0.3)) g->ranks_min = (int64_t)gt_rng_below(&rng, 5);
    if (chance(&rng, 0.3)) g->ranks_max = 1 + (int64_t)gt_rng_below(&rng, 8);
    g->ps_price = chance(&rng, 0.5) ? between(&rng, 0, 1) : 0;
    g->wan_step_s = chance(&rng, 0.4) ? (double)p->batch / between(&rng, 10, 200) : 0;
  }
  double deadline = chance(&rng, 0.4) ? between(&rng, 0.4, 4) : 0,
         budget = chance(&rng, 0.4) ? between(&rng, 0.5, 1.2) : 0;
  truth t = brute_force(p);
  p->deadline_s = deadline * t.all_time_s;
  p->budget = budget * t.all_cost;
}

static void assert_near(double a, double b, double share) {
  if (fabs(a - b) > share * fmax(fabs(a), fabs(b))) fail_msg("%.17g is not %.17g", a, b);
}

/* The plan is allowed, and its figures and claims are true. */
static void assert_sound(const gt_plan_problem *p, const gt_plan_answer *a, const truth *t) {
  choice chosen[REGIONS];
  const choice *c[REGIONS] = {0};
  const int64_t *x = a->counts;
  for (size_t r = 0; r < p->nregions; x += p->regions[r++].ndevices) {
    const gt_plan_region *g = &p->regions[r];
    int64_t ranks = 0;
    for (size_t i = 0; i < g->ndevices; i++) {
      assert_true(x[i] >= 0 && x[i] <= g->devices[i].count);
      ranks += x[i];
    }
    assert_true(ranks >= 1 && ranks >= g->ranks_min &&
                (g->ranks_max == 0 || ranks <= g->ranks_max));
    chosen[r] = choose(p, g, x);
    c[r] = &chosen[r];
  }
  double time_s = time_of(p, c), cost = (p->start_s + time_s) / 3600 * rate_of(p, c);
  assert_near(a->time_s, time_s, 1e-12);
  assert_near(a->cost, cost, 1e-12);
  assert_true(cost <= t->all_cost * (1 + 1e-11));
  if (p->deadline_s > 0) assert_true(time_s <= p->deadline_s * (1 + 2e-12));
  if (p->budget > 0) assert_true(cost <= p->budget * (1 + 2e-12));
  if (p->deadline_s == 0 && p->budget == 0) assert_true(time_s <= t->all_time_s * (1 + 2e-12));
}

static void a_plan_costs_what_brute_force_finds(void) {
  int planned = 0, fastest = 0, inexact = 0;
  const int instances = (int)cases(10000, 3000);
  for (uint64_t seed = 0; seed < (uint64_t)instances; seed++) {
    instance in;
    random_instance(&in, seed);
    const gt_plan_problem *p = &in.problem;
    int64_t counts[REGIONS * TYPES];
    gt_plan_answer a = {.counts = counts};
    gt_status status = gt_plan_elastic(p, &a);
    truth t = brute_force(p);
    if ((status == GT_OK) != t.any)
      fail_msg("instance %d: status %d (%s), brute force finds %s", (int)seed, (int)status,
               gt_error_text(), t.any ? "a plan" : "none");
    if (!t.any) {
      assert_int_equal(status, GT_ERR_JOB);
      continue;
    }
    bool time_counts = p->budget > 0 && p->deadline_s == 0;
    if (fabs(a.cost - t.cost) > 1e-9 * t.cost ||
        (time_counts && fabs(a.time_s - t.time_s) > 1e-9 * t.time_s))
      fail_msg("instance %d: %.12g USD in %.12g s, brute force %.12g USD in %.12g s", (int)seed,
               a.cost, a.time_s, t.cost, t.time_s);
    assert_sound(p, &a, &t);
    assert_near(a.bound, time_counts ? t.time_s : t.cost, 1e-9);
    planned++;
    fastest += time_counts;
    inexact += !a.exact;
  }
  print_message("%d instances: %d plans, %d of them the fastest within a budget, %d not proven\n",
                instances, planned, fastest, inexact);
  assert_int_equal(inexact, 0);
  assert_true(planned > instances / 2 && planned < instances && fastest > instances / 20);
}

/* ---- individual cases ------------------------------------------------------------------------ */

/* Solves the problem; answer.counts has room for REGIONS x TYPES. */
static gt_plan_answer planned(const gt_plan_problem *p, int64_t *counts) {
  gt_plan_answer a = {.counts = counts};
  if (gt_plan_elastic(p, &a) != GT_OK) fail_msg("%s", gt_error_text());
  assert_true(a.exact);
  return a;
}

/* Two regions of equal devices, the first with twice the data: the second keeps half, at lower cost
   and no loss of time. */
static void the_published_rule_for_data_two_to_one(void) {
  gt_plan_device device = {.count = 12, .power = 33.3, .price = 0.1};
  gt_plan_region regions[] = {{.devices = &device, .ndevices = 1, .samples = 40000},
                              {.devices = &device, .ndevices = 1, .samples = 20000}};
  gt_plan_problem p = {.regions = regions, .nregions = 2, .batch = 32, .epochs = 3};
  int64_t counts[2], all[2];
  gt_plan_answer a = planned(&p, counts), everywhere = {.counts = all};
  assert_int_equal(counts[0], 12);
  assert_int_equal(counts[1], 6);
  assert_int_equal(a.slowest, 0);
  gt_plan_everything(&p, all);
  gt_plan_value(&p, &everywhere);
  assert_near(a.time_s, everywhere.time_s, 1e-12);
  assert_near(a.cost, everywhere.cost * 0.75, 1e-12);
}

/* Different devices: 4 of power 3.0 and 8 of 1.0 against 12 of 1.0, equal data.  The region with
   the least load power keeps all; the other takes the cheapest set with as much power. */
static void the_least_load_power_keeps_all_it_has(void) {
  gt_plan_device strong[] = {{.count = 4, .power = 3, .price = 0.4},
                             {.count = 8, .power = 1, .price = 0.1}},
                 weak = {.count = 12, .power = 1, .price = 0.1};
  gt_plan_region regions[] = {{.devices = strong, .ndevices = 2, .samples = 6400},
                              {.devices = &weak, .ndevices = 1, .samples = 6400}};
  gt_plan_problem p = {.regions = regions, .nregions = 2, .batch = 64, .epochs = 1};
  int64_t counts[3];
  (void)planned(&p, counts);
  assert_int_equal(counts[2], 12);
  /* 12 = 2 x 3 + 6 x 1 costs 1.4; 4 + 0 costs 1.6, 3 + 3 costs 1.5, and 1 + 9 is not available */
  assert_int_equal(counts[0], 2);
  assert_int_equal(counts[1], 6);
}

/* Until steps, the samples held do not matter. */
static void until_steps_equal_devices_are_kept(void) {
  gt_plan_device device = {.count = 5, .power = 10, .price = 1};
  gt_plan_region regions[] = {{.devices = &device, .ndevices = 1, .samples = 40000},
                              {.devices = &device, .ndevices = 1, .samples = 20000}};
  gt_plan_problem p = {.regions = regions, .nregions = 2, .batch = 32, .steps = 100};
  int64_t counts[2];
  (void)planned(&p, counts);
  assert_int_equal(counts[0], 5);
  assert_int_equal(counts[1], 5);
}

/* `sync`: two slow devices would slow down eight fast ones. */
static void the_slowest_device_counts_for_all(void) {
  gt_plan_device devices[] = {{.count = 8, .power = 10, .price = 1},
                              {.count = 2, .power = 2, .price = 0.1}};
  gt_plan_region region = {.devices = devices, .ndevices = 2, .samples = 64000};
  gt_plan_problem p = {.regions = &region,
                       .nregions = 1,
                       .local_sync = true,
                       .batch = 10,
                       .epochs = 1,
                       .deadline_s = 800};
  int64_t counts[2];
  gt_plan_answer a = planned(&p, counts);
  assert_int_equal(counts[0], 8);
  assert_int_equal(counts[1], 0);
  assert_near(a.time_s, 800, 1e-12);
}

/* The WAN allows one step every 0.5 s: 4 of 12 devices are enough, and the other region adapts. */
static void where_the_wan_is_slow_the_sets_shrink(void) {
  gt_plan_device device = {.count = 12, .power = 32, .price = 0.1};
  gt_plan_region regions[] = {
      {.devices = &device, .ndevices = 1, .samples = 12800, .wan_step_s = 0.5},
      {.devices = &device, .ndevices = 1, .samples = 6400}};
  gt_plan_problem p = {.regions = regions, .nregions = 2, .batch = 64, .epochs = 1};
  int64_t counts[2] = {12, 12};
  gt_plan_answer a = {.counts = counts};
  gt_plan_value(&p, &a);
  assert_int_equal(a.wan_bound, 1);
  assert_near(a.time_s, 100, 1e-12);
  a = planned(&p, counts);
  assert_int_equal(counts[0], 4);
  assert_int_equal(counts[1], 2);
  assert_int_equal(a.wan_bound, 0); /* its devices are now as slow as the WAN */
  assert_near(a.time_s, 100, 1e-12);
}

/* Barrier, until epochs, data 2:1, 3 devices each: the short region drops out after half of the
   exchanges.  By hand: it may be as slow as the long one, but no slower. */
static void a_barrier_equalises_the_time_of_an_exchange(void) {
  gt_plan_device few = {.count = 4, .power = 10, .price = 1},
                 many = {.count = 8, .power = 10, .price = 1};
  gt_plan_region regions[] = {{.devices = &few, .ndevices = 1, .samples = 3200},
                              {.devices = &many, .ndevices = 1, .samples = 1600}};
  gt_plan_problem p = {.regions = regions,
                       .nregions = 2,
                       .barrier = true,
                       .period = 5,
                       .exchange_s = 0.5,
                       .batch = 8,
                       .epochs = 1};
  int64_t counts[2];
  gt_plan_answer a = planned(&p, counts);
  assert_int_equal(counts[0], 4);
  assert_int_equal(counts[1], 4);
  assert_near(a.time_s, 400 * 0.2 + 80 * 0.5, 1e-12);
  p.barrier = false; /* no region waits before the end: half of them are enough */
  (void)planned(&p, counts);
  assert_int_equal(counts[1], 2);
}

/* The price of PS ranks makes a longer run more expensive: with a generous deadline, more devices
   are used than without that price. */
static void ps_ranks_are_paid_for(void) {
  gt_plan_device devices[] = {{.count = 1, .power = 10, .price = 1},
                              {.count = 10, .power = 10, .price = 1.2}};
  gt_plan_region region = {.devices = devices, .ndevices = 2, .samples = 36000};
  gt_plan_problem p = {
      .regions = &region, .nregions = 1, .batch = 10, .epochs = 1, .deadline_s = 3600};
  int64_t counts[2];
  gt_plan_answer a = planned(&p, counts);
  assert_int_equal(counts[0] + counts[1], 1);
  assert_near(a.cost, 1, 1e-12);
  region.ps_price = 2;
  (void)planned(&p, counts);
  assert_int_equal(counts[0] + counts[1], 11);
}

/* ---- no plan --------------------------------------------------------------------------------- */

static void assert_refused(const gt_plan_problem *p, const char *why) {
  int64_t counts[8];
  gt_plan_answer a = {.counts = counts};
  assert_int_equal(gt_plan_elastic(p, &a), GT_ERR_JOB);
  assert_string_equal(gt_error_text(), why);
}

static void what_cannot_be_is_said_in_one_sentence(void) {
  gt_plan_device device = {.count = 3, .power = 10, .price = 1};
  gt_plan_region regions[] = {{.devices = &device, .ndevices = 1, .samples = 3000},
                              {.devices = &device, .ndevices = 1, .samples = 3000}};
  const gt_plan_problem good = {.regions = regions, .nregions = 2, .batch = 10, .epochs = 1};
  gt_plan_problem p = good;
  p.deadline_s = 50;
  assert_refused(&p, "the deadline is 50 s; the fastest plan ends after 100 s");
  p = good;
  p.budget = 0.05;
  assert_refused(&p, "the budget is 0.05 USD; the cheapest plan costs 0.1666666667 USD");
  p.deadline_s = 120;
  assert_refused(&p, "the budget is 0.05 USD; the cheapest plan in time costs 0.1666666667 USD");
  p = good;
  p.steps = 4;
  assert_refused(&p, "exactly one of epochs, steps and samples says when training ends");
  p = good;
  regions[1].ranks_min = 4;
  assert_refused(&p, "region 1 needs 4 ranks at least and has 3 devices");
  regions[1].ranks_min = 2;
  regions[1].ranks_max = 1;
  assert_refused(&p, "region 1: at least 2 ranks and at most 1 cannot both be");
  regions[1].ndevices = 0;
  assert_refused(&p, "region 1 has no device");
  regions[1] = regions[0];
  device.price = -1;
  assert_refused(&p, "region 0: device 0 has a price of -1 USD an hour; 0 or more is needed");
  device.price = 1;
  device.power = 0;
  assert_refused(&p, "region 0: device 0 has a power of 0 samples/s; more than 0 is needed");
  p.nregions = 0;
  assert_refused(&p, "there is no region; a plan needs one at least");
}

TESTS(a_plan_costs_what_brute_force_finds, the_published_rule_for_data_two_to_one,
      the_least_load_power_keeps_all_it_has, until_steps_equal_devices_are_kept,
      the_slowest_device_counts_for_all, where_the_wan_is_slow_the_sets_shrink,
      a_barrier_equalises_the_time_of_an_exchange, ps_ranks_are_paid_for,
      what_cannot_be_is_said_in_one_sentence)
