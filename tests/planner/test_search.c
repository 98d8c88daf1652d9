/* Parts of the search for a set: lists of distinct sets, comparison of verdicts,
   rejection by lower bounds, and the billing of machines. */
#include "search.h"
#include "small.h"

/* ---- lists ----------------------------------------------------------------------------------- */

#define WIDTH 3
#define MANY  1000 /* far more than the initial room */

static void fill(int64_t *counts, size_t i) {
  counts[0] = (int64_t)(i % 10);
  counts[1] = (int64_t)(i / 10 % 10);
  counts[2] = (int64_t)(i / 100);
}

static void test_a_list_has_each_set_once(void) {
  gt_planner_list list;
  int64_t counts[WIDTH];
  gt_planner_list_open(&list, WIDTH);
  for (int again = 0; again < 2; again++)
    for (size_t i = 0; i < MANY; i++) {
      fill(counts, i);
      assert_int_equal(gt_planner_list_has(&list, counts), again);
      assert_int_equal(gt_planner_list_add(&list, counts), !again);
    }
  assert_int_equal(list.n, MANY);
  for (size_t i = 0; i < MANY; i++) { /* in order of insertion */
    fill(counts, i);
    assert_memory_equal(gt_planner_list_at(&list, i), counts, sizeof counts);
  }
  gt_planner_list_close(&list);
  gt_planner_list_close(&list);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static bool is_better(gt_planner_verdict a, gt_planner_verdict b) {
  return gt_planner_better(&a, &b);
}

static void test_which_is_better(void) {
  const gt_planner_verdict good = {.fits = true, .over = 1, .first = 10, .second = 5};
  gt_planner_verdict other = good;
  assert_false(is_better(good, other)); /* equal ones are not better */
  other.first = 11;
  assert_true(is_better(good, other));
  assert_false(is_better(other, good));
  other = (gt_planner_verdict){.fits = true, .over = 1, .first = 10 * (1 + 1e-12), .second = 4};
  assert_true(is_better(other, good)); /* equal in the first quantity, less in the second */
  other = (gt_planner_verdict){.fits = false, .over = 1.1, .first = 1, .second = 1};
  /* a set that fits is better than one that does not, at any cost */
  assert_true(is_better(good, other));
  assert_false(is_better(other, good));
  const gt_planner_verdict nearer = {.fits = false, .over = 1.05, .first = 100, .second = 100};
  /* of those that do not fit, the one that exceeds by less */
  assert_true(is_better(nearer, other));
}

static void test_what_may_be_better(void) {
  gt_planner_set_search b = {.nkept = 0};
  assert_false(gt_planner_best(&b).fits);
  assert_true(gt_planner_can_be_better(&b, 1e9)); /* no set is known yet */
  b.verdicts[0] = (gt_planner_verdict){.fits = true, .first = 10};
  b.nkept = 1;
  assert_true(gt_planner_can_be_better(&b, 9));
  assert_true(gt_planner_can_be_better(&b, 10));
  assert_false(gt_planner_can_be_better(&b, 10.1));
  assert_false(gt_planner_can_be_better(&b, INFINITY));
  b.verdicts[0].fits = false;
  assert_true(gt_planner_can_be_better(&b, 10.1)); /* any that fits */
}

/* ---- bills ----------------------------------------------------------------------------------- */

static void test_what_is_wanted_least(void) {
  static const struct {
    const char *plan;
    bool by_time;
  } all[] = {{"plan: {deadline: 1 h}\n", false},
             {"plan: {budget: 1}\n", true},
             {"plan: {deadline: 1 h, budget: 1}\n", false},
             {"plan: {start: 1 s}\n", false}};
  for (size_t i = 0; i < COUNT(all); i++) {
    gt_planner p = {.job = small_job(all[i].plan)};
    assert_int_equal(gt_planner_by_time(&p), all[i].by_time);
    gt_job_close(p.job);
  }
}

/* Start and run, in whole billing steps and at least each place's minimum time, for devices and
   PS. */
static void test_what_machines_are_billed_for(void) {
  static const gt_plan_device east[] = {{4, 1, 0.5}, {2, 1, 2}}, west[] = {{4, 1, 1}};
  static const gt_plan_region regions[] = {{.devices = east, .ndevices = 2, .ps_price = 0.25},
                                           {.devices = west, .ndevices = 1, .ps_price = 3}};
  const gt_plan_problem problem = {.regions = regions, .nregions = 2};
  gt_planner_pool pools[] = {{.first = 0, .n = 2}, {.first = 2, .n = 1}};
  gt_job_region_prices prices[] = {{.min_s = 0}, {.min_s = 7200}};
  gt_planner p = {.job = small_job("plan: {start: 100 s, billing: 1 h}\n"),
                  .pools = pools,
                  .ncounts = 3,
                  .prices = {.regions = prices, .nregions = 2}};
  const gt_planner_set_search b = {.p = &p, .problem = problem};
  const int64_t counts[] = {3, 1, 2};
  const double east_rate = 3 * 0.5 + 2 + 0.25, west_rate = 2 * 1 + 3;
  /* An hour in the east and the minimum of two in the west; a started hour is billed. */
  near(gt_planner_machines(&b, counts, 3500), east_rate * 1 + west_rate * 2);
  near(gt_planner_machines(&b, counts, 3501), east_rate * 2 + west_rate * 2);
  near(gt_planner_machines(&b, counts, 7200), east_rate * 3 + west_rate * 3);
  gt_job_close(p.job);
}

/* ---- lower bounds ---------------------------------------------------------------------------- */

/* No run is faster than the busiest link, or the busiest access, carries the bytes of all runs. */
static void assert_wan_takes(double access_bps, double seconds) {
  static const gt_plan_device devices[] = {{2, 1, 0.5}};
  static const gt_plan_region regions[] = {{.devices = devices, .ndevices = 1, .samples = 64},
                                           {.devices = devices, .ndevices = 1, .samples = 64}};
  static double power[] = {1, 1};
  const gt_plan_problem problem = {.regions = regions, .nregions = 2};
  gt_sim_traffic links[4] = {{0}};
  int64_t samples[] = {64, 64};
  gt_job *job = small_job("  - {name: west, ranks: 2}\nsync: {strategy: asgd}\n"
                          "wan: {default: {bandwidth: 80 Mbit/s, latency: 1 ms}}\n");
  job->regions[0].access_bps = access_bps;
  links[1].bytes_sent = 1e8; /* east to west */
  links[2].bytes_sent = 5e7;
  gt_planner_pool pools[] = {{.first = 0, .n = 1}, {.first = 1, .n = 1}};
  gt_planner p = {.job = job, .pools = pools, .ncounts = 2, .shape = {.samples = samples}};
  gt_planner_candidate c = {.strategy = GT_STRATEGY_ASGD, .factor = 1};
  c.everything.forecast = (gt_sim_forecast){.links = links, .nregions = 2, .part = 1};
  gt_planner_set_search b = {.p = &p, .c = &c, .problem = problem, .power = power};
  must(gt_planner_bounds_open(&b));
  near(b.wan_s, seconds);
  gt_planner_bounds_close(&b);
  gt_job_close(job);
}

static void test_no_run_is_faster_than_its_bytes(void) {
  assert_wan_takes(0, 8 * 1e8 / 80e6);
  assert_wan_takes(20e6, 8 * 1e8 / 20e6);
}

TESTS(test_a_list_has_each_set_once, test_which_is_better, test_what_may_be_better,
      test_what_is_wanted_least, test_what_machines_are_billed_for,
      test_no_run_is_faster_than_its_bytes)
