/* Elastic scheduling against a separate brute force, written from the definition in plan.h; the
   rule of load power; the WAN. */
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

/* Lists all sets that a region is allowed to use. */
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

/* Time of the region's steps and exchanges, if it never waits. */
static double own_time(const gt_plan_problem *p, const choice *c) {
  gt_plan_problem alone = *p;
  alone.nregions = 1;
  return time_of(&alone, &c);
}

/* Returns the most powerful devices within ranks_max, among equal ones the cheapest: one after
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
  double fastest_s; /* over all regions: the largest of the lowest own times */
  double rate;      /* of the cheapest sets within the limit; INFINITY: none */
} truth;

static truth brute_force(const gt_plan_problem *p, double limit_s) {
  static choice list[SETS];
  truth all = {0};
  for (size_t r = 0; r < p->nregions; r++) {
    double fastest_s = INFINITY, rate = INFINITY;
    for (size_t i = 0, n = list_choices(p, &p->regions[r], list); i < n; i++) {
      double own_s = own_time(p, &list[i]);
      fastest_s = fmin(fastest_s, own_s);
      if (own_s <= limit_s * (1 + 1e-12)) rate = fmin(rate, list[i].rate);
    }
    all.fastest_s = fmax(all.fastest_s, fastest_s);
    all.rate += rate;
  }
  return all;
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
    if (in->devices[r][0].count == 0) in->devices[r][0].count = 1;
    int64_t devices = 0;
    for (size_t t = 0; t < g->ndevices; t++) devices += in->devices[r][t].count;
    g->samples = chance(&rng, 0.3) ? 100 : (double)gt_rng_below(&rng, 250);
    if (chance(&rng, 0.3)) g->ranks_min = (int64_t)gt_rng_below(&rng, (uint64_t)devices + 1);
    if (chance(&rng, 0.3))
      g->ranks_max = (g->ranks_min > 1 ? g->ranks_min : 1) + (int64_t)gt_rng_below(&rng, 8);
    g->ps_price = chance(&rng, 0.5) ? between(&rng, 0, 1) : 0;
    g->wan_step_s = chance(&rng, 0.4) ? (double)p->batch / between(&rng, 10, 200) : 0;
  }
}

static void assert_near(double a, double b, double share) {
  if (fabs(a - b) > share * fmax(fabs(a), fabs(b))) fail_msg("%.17g is not %.17g", a, b);
}

/* The set is feasible, each region is within the limit, and T is as defined. */
static void assert_sound(const gt_plan_problem *p, const int64_t *x, double limit_s, double rate) {
  choice chosen[REGIONS];
  const choice *c[REGIONS] = {0};
  double sum = 0, time_s = gt_plan_time(p, x);
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
    sum += chosen[r].rate;
    assert_true(own_time(p, &chosen[r]) <= limit_s * (1 + 2e-12));
  }
  assert_near(time_s, time_of(p, c), 1e-12);
  assert_near(sum, rate, 1e-9);
}

static void a_set_costs_what_brute_force_finds(void) {
  int found = 0;
  const int instances = (int)cases(10000, 3000);
  for (uint64_t seed = 0; seed < (uint64_t)instances; seed++) {
    instance in;
    random_instance(&in, seed);
    gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 8, 0);
    const gt_plan_problem *p = &in.problem;
    int64_t counts[REGIONS * TYPES];
    const choice *all[REGIONS] = {0};
    choice most[REGIONS];
    double rate;
    for (size_t r = 0; r < p->nregions; r++) {
      most[r] = everything(p, &p->regions[r]);
      all[r] = &most[r];
    }
    gt_plan_everything(p, counts);
    const double all_s = time_of(p, all), limit_s = all_s * between(&rng, 0.5, 4);
    assert_near(gt_plan_time(p, counts), all_s, 1e-12);
    const truth t = brute_force(p, limit_s);
    assert_near(gt_plan_fastest(p, counts), t.fastest_s, 1e-12);
    if (gt_plan_elastic(p, limit_s, counts, &rate) != (t.rate < INFINITY))
      fail_msg("instance %d: brute force finds %g USD an hour", (int)seed, t.rate);
    if (t.rate == INFINITY) continue;
    if (fabs(rate - t.rate) > 1e-9 * t.rate)
      fail_msg("instance %d: %.12g USD an hour, brute force %.12g", (int)seed, rate, t.rate);
    assert_sound(p, counts, limit_s, rate);
    found++;
  }
  assert_true(found > instances / 2 && found < instances);
}

/* ---- individual cases ------------------------------------------------------------------------ */

/* Finds the set that is as fast as all devices in all regions; returns its T. */
static double planned(const gt_plan_problem *p, int64_t *counts) {
  double rate;
  gt_plan_everything(p, counts);
  double limit_s = gt_plan_time(p, counts);
  assert_true(gt_plan_elastic(p, limit_s, counts, &rate));
  assert_near(gt_plan_time(p, counts), limit_s, 1e-12);
  return limit_s;
}

/* Two regions of equal devices, the first with twice the data: the second keeps half, at lower cost
   and no loss of time. */
static void the_published_rule_for_data_two_to_one(void) {
  gt_plan_device device = {.count = 12, .power = 33.3, .price = 0.1};
  gt_plan_region regions[] = {{.devices = &device, .ndevices = 1, .samples = 40000},
                              {.devices = &device, .ndevices = 1, .samples = 20000}};
  gt_plan_problem p = {.regions = regions, .nregions = 2, .batch = 32, .epochs = 3};
  int64_t counts[2];
  (void)planned(&p, counts);
  assert_int_equal(counts[0], 12);
  assert_int_equal(counts[1], 6);
}

/* Different devices: 4 of power 3.0 and 8 of 1.0 against 12 of 1.0, equal data.  The region with
   the lowest load power keeps all; the other takes the cheapest set of equal power. */
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
  gt_plan_problem p = {
      .regions = &region, .nregions = 1, .local_sync = true, .batch = 10, .epochs = 1};
  int64_t counts[2];
  double rate;
  assert_true(gt_plan_elastic(&p, 800, counts, &rate));
  assert_int_equal(counts[0], 8);
  assert_int_equal(counts[1], 0);
  assert_near(gt_plan_time(&p, counts), 800, 1e-12);
  assert_near(rate, 8, 1e-12);
}

/* The WAN allows one step every 0.5 s: 4 of 12 devices are enough, and the other region adapts. */
static void where_the_wan_is_slow_the_sets_shrink(void) {
  gt_plan_device device = {.count = 12, .power = 32, .price = 0.1};
  gt_plan_region regions[] = {
      {.devices = &device, .ndevices = 1, .samples = 12800, .wan_step_s = 0.5},
      {.devices = &device, .ndevices = 1, .samples = 6400}};
  gt_plan_problem p = {.regions = regions, .nregions = 2, .batch = 64, .epochs = 1};
  int64_t counts[2];
  assert_near(planned(&p, counts), 100, 1e-12);
  assert_int_equal(counts[0], 4);
  assert_int_equal(counts[1], 2);
}

/* Barrier, until epochs, data 2:1: the short region ends after half of the exchanges.  By hand: it
   can be as slow as the long one, but not slower, so half of its devices are not enough, unlike
   without a barrier. */
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
  int64_t counts[2] = {4, 4};
  const double time_s = 400 * 0.2 + 80 * 0.5;
  assert_near(gt_plan_time(&p, counts), time_s, 1e-12);
  counts[1] = 2;
  assert_near(gt_plan_time(&p, counts), time_s + 200 * 0.2, 1e-12);
  p.barrier = false; /* no region waits before the end: half of them are enough */
  (void)planned(&p, counts);
  assert_int_equal(counts[1], 2);
}

/* `sync` until steps: 6 ranks in one region and 2 in the other make 100 batches of each region in
   as many steps, though alone they would make 17 and 50. */
static void regions_make_their_steps_together(void) {
  gt_plan_device device = {.count = 6, .power = 10, .price = 1};
  gt_plan_region regions[] = {{.devices = &device, .ndevices = 1, .samples = 500},
                              {.devices = &device, .ndevices = 1, .samples = 500}};
  gt_plan_problem p = {.regions = regions,
                       .nregions = 2,
                       .local_sync = true,
                       .batch = 5,
                       .samples = 500,
                       .together = 2};
  const int64_t counts[2] = {6, 2};
  assert_near(gt_plan_time(&p, counts), 25 * 0.5, 1e-12);
  p.together = 0;
  assert_near(gt_plan_time(&p, counts), 50 * 0.5, 1e-12);
}

/* The search for a region's devices is limited: with many devices the rate is a bound, close to
   that of the set. */
static void many_devices(void) {
  for (int64_t most = 0; most <= 1500; most += 1500) {
    gt_plan_device devices[4];
    gt_plan_region region = {
        .devices = devices, .ndevices = 4, .samples = 1e6, .ps_price = 0.1, .ranks_max = most};
    gt_plan_problem p = {.regions = &region, .nregions = 1, .batch = 64, .epochs = 10};
    gt_rng rng = gt_rng_make(5, GT_RNG_TEST, 9, 0);
    int64_t counts[4];
    double rate, sum = region.ps_price;
    for (size_t t = 0; t < 4; t++)
      devices[t] = (gt_plan_device){1000, between(&rng, 100, 2000), between(&rng, 0.05, 3)};
    gt_plan_everything(&p, counts);
    double limit_s = 1.5 * gt_plan_time(&p, counts);
    assert_true(gt_plan_elastic(&p, limit_s, counts, &rate));
    for (size_t t = 0; t < 4; t++) sum += (double)counts[t] * devices[t].price;
    if (!(rate <= sum * (1 + 1e-12) && rate >= 0.995 * sum)) fail_msg("%g of %g", rate, sum);
  }
}

/* Many devices of which only some are allowed: the cheapest ones are too slow, the fastest too
   expensive. */
static void a_limit_on_ranks(void) {
  for (uint64_t seed = 0; seed < 100; seed++) {
    gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 10, 0);
    gt_plan_device d[3];
    gt_plan_region region = {.devices = d,
                             .ndevices = 3,
                             .samples = 1e6,
                             .ranks_max = 6 + (int64_t)gt_rng_below(&rng, 15)};
    gt_plan_problem p = {.regions = &region, .nregions = 1, .batch = 64, .epochs = 1};
    int64_t counts[3], x[3] = {0};
    double rate, best = INFINITY;
    for (size_t t = 0; t < 3; t++) {
      const double power = between(&rng, 10, 100);
      d[t] = (gt_plan_device){12, power, power * power / 1000 * between(&rng, 1, 1.5)};
    }
    gt_plan_everything(&p, counts);
    const double limit_s = gt_plan_time(&p, counts) * between(&rng, 1, 1.5);
    for (x[0] = 0; x[0] <= 12; x[0]++)
      for (x[1] = 0; x[1] <= 12; x[1]++)
        for (x[2] = 0; x[2] <= 12; x[2]++) {
          const choice c = choose(&p, &region, x);
          const int64_t ranks = x[0] + x[1] + x[2];
          if (ranks >= 1 && ranks <= region.ranks_max && own_time(&p, &c) <= limit_s)
            best = fmin(best, c.rate);
        }
    assert_true(gt_plan_elastic(&p, limit_s, counts, &rate));
    assert_near(rate, best, 1e-9);
  }
}

TESTS(a_set_costs_what_brute_force_finds, the_published_rule_for_data_two_to_one,
      the_least_load_power_keeps_all_it_has, until_steps_equal_devices_are_kept,
      the_slowest_device_counts_for_all, where_the_wan_is_slow_the_sets_shrink,
      a_barrier_equalises_the_time_of_an_exchange, regions_make_their_steps_together, many_devices,
      a_limit_on_ranks)
