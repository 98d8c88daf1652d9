/* A candidate's set: its job, regions that keep their ranks, the WAN's pace, and the result if
   nothing is asked for, or more than possible. */
#include "tests.h"
#include "internal.h"

#define BEGIN                                                                                      \
  "name: test\nmodel: {name: dummy, parameters: 7850}\n"                                           \
  "regions:\n"                                                                                     \
  "  - {name: east, ranks: auto, samples: 8000, devices: [{type: A, count: 4, power: 50, price: "  \
  "0.1}]}\n"                                                                                       \
  "  - {name: west, ranks: auto, samples: 4000, devices: [{type: A, count: 3, power: 50, price: "  \
  "0.1}, {type: B, "                                                                               \
  "count: 1, power: 50, price: 0.3}]}\n"
#define FIXED                                                                                      \
  "  - {name: south, ranks: 3, samples: 4000, price: 0.1, compute: {samples_per_s: 50}}\n"
#define HUB "  - {name: hub, ranks: 1, ps_price: 0.05}\n"
#define TRAIN(until)                                                                               \
  "train: {until: {" until                                                                         \
  "}, batch: 10, optimizer: {name: sgd, lr: 0.02}, eval_every: {epochs: 0}}\n"
#define WAN(rate) "wan: {default: {bandwidth: " rate ", latency: 25 ms}}\n"

static gt_planner *open_job(const char *text) {
  gt_planner *p = NULL;
  const char *path = file_with("job.yaml", text);
  must(gt_planner_open(&p, &(gt_planner_options){.job_path = path, .margin = 0.1}));
  return p;
}

static gt_planner *find(const char *text) {
  gt_planner *p = open_job(text);
  must(gt_planner_find(p, &p->candidates[0]));
  return p;
}

/* ---- the job of a set ------------------------------------------------------------------------ */

/* The job with these devices, if everything everywhere is 4 and 3 + 1; the caller closes it. */
static gt_job *fitted(const char *text, const int64_t *counts, double factor) {
  gt_planner *p = open_job(text);
  gt_planner_candidate *c = &p->candidates[0];
  gt_job *job = NULL;
  c->everything.counts = GT_NEW_ARRAY(int64_t, p->ncounts);
  memcpy(c->everything.counts, (const int64_t[]){4, 3, 1, 2}, p->ncounts * sizeof *counts);
  c->factor = factor;
  must(gt_planner_load(&job, p, c, NULL, 0));
  gt_planner_fit(job, p, c, counts);
  gt_planner_close(p);
  return job;
}

static void test_devices_and_ranks(void) {
  gt_job *job = fitted(BEGIN FIXED TRAIN("epochs: 2")
                           WAN("1 Gbit/s") "sync: {local: async, strategy: asgd-ga}\n",
                       (const int64_t[]){2, 0, 1, 2}, 1);
  assert_int_equal(job->regions[0].ranks, 3);
  assert_int_equal(job->regions[0].devices[0].count, 2);
  assert_int_equal(job->regions[1].ranks, 2);
  assert_int_equal(job->regions[1].devices[0].count, 0);
  assert_int_equal(job->regions[1].devices[1].count, 1);
  assert_int_equal(job->regions[2].ranks, 3); /* as in the job */
  assert_true(job->train.until.epochs == 2);
  gt_job_close(job);
}

/* The factor applies to the length of training, in whatever unit it is given. */
static void test_as_many_samples_as_the_factor_says(void) {
  static const char *const sync = "sync: {local: async, strategy: asgd-ga}\n";
  static const int64_t counts[] = {2, 0, 1};
  char text[2048];
  const char *const until[] = {TRAIN("epochs: 2"), TRAIN("samples: 1001"), TRAIN("steps: 101")};
  for (size_t i = 0; i < 3; i++) {
    snprintf(text, sizeof text, "%s%s%s%s", BEGIN, until[i], WAN("1 Gbit/s"), sync);
    gt_job *job = fitted(text, counts, 1.5);
    const gt_job_interval *found = &job->train.until;
    assert_true(found->epochs == (i == 0 ? 3 : 0));
    assert_int_equal(found->samples, i == 1 ? 1502 : 0); /* rounded up from 1501.5 */
    assert_int_equal(found->steps, i == 2 ? 152 : 0);
    gt_job_close(job);
  }
}

/* With `local: sync` half of the workers make twice the steps. */
static void test_fewer_workers_make_more_steps(void) {
  gt_job *job =
      fitted(BEGIN TRAIN("steps: 100") WAN("1 Gbit/s") "sync: {local: sync, strategy: asgd-ga}\n",
             (const int64_t[]){2, 1, 1}, 1);
  assert_int_equal(job->train.until.steps, 200);
  gt_job_close(job);
  job =
      fitted(BEGIN TRAIN("steps: 100") WAN("1 Gbit/s") "sync: {local: async, strategy: asgd-ga}\n",
             (const int64_t[]){2, 1, 1}, 1);
  assert_int_equal(job->train.until.steps, 100);
  gt_job_close(job);
}

/* ---- the search ------------------------------------------------------------------------------ */

/* The east has twice the data of the west: half of the west's devices keep up, and the expensive
   one is removed first. */
static void test_no_more_than_keeps_up(void) {
  gt_planner *p = find(BEGIN TRAIN("epochs: 2")
                           WAN("1 Gbit/s") "sync: {local: async, strategy: asgd-ga, period: 8}\n");
  const gt_planner_candidate *c = &p->candidates[0];
  const gt_planner_set *set = gt_planner_proposed(c);
  assert_true(c->fits);
  assert_int_equal(set->counts[0], 4);
  assert_int_equal(set->counts[1], 2);
  assert_int_equal(set->counts[2], 0);
  const double all_s = c->everything.at[GT_PLANNER_EXPECTED].figures.wall_s;
  assert_true(set->at[GT_PLANNER_EXPECTED].figures.wall_s <= all_s * (1 + GT_PLANNER_TOLERANCE));
  assert_true(set->at[GT_PLANNER_LOW].figures.wall_s < set->at[GT_PLANNER_EXPECTED].figures.wall_s);
  assert_true(set->at[GT_PLANNER_EXPECTED].figures.wall_s <
              set->at[GT_PLANNER_HIGH].figures.wall_s);
  assert_false(c->wan_bound[0] || c->wan_bound[1]);
  gt_planner_close(p);
}

static void test_some_regions_keep_their_ranks(void) {
  gt_planner *p = find(BEGIN FIXED TRAIN("epochs: 2")
                           WAN("1 Gbit/s") "sync: {local: async, strategy: asgd-ga, period: 8}\n");
  assert_false(p->pools[0].fixed || p->pools[1].fixed);
  assert_true(p->pools[2].fixed);
  const gt_planner_set *set = gt_planner_proposed(&p->candidates[0]);
  assert_int_equal(set->counts[p->pools[2].first], 2);
  assert_int_equal(gt_planner_ranks(p, 2, set->counts), 3);
  gt_planner_close(p);
}

/* A region that only aggregates has no pool, makes no region wait, and costs only its PS. */
static void test_a_region_that_only_aggregates(void) {
  static const char *const way = "topology: hub, hub: hub}\n";
  char text[2048];
  for (int k = 0; k < 4; k++) {
    snprintf(text, sizeof text, "%s%s%s%ssync: {local: %s, strategy: %s, %s", BEGIN, HUB,
             k / 2 ? TRAIN("epochs: 2") : TRAIN("steps: 60"), WAN("1 Gbit/s"),
             k % 2 ? "async" : "sync", k / 2 ? "asgd-ga" : "ssgd", way);
    gt_planner *p = find(text);
    const gt_planner_candidate *c = &p->candidates[0];
    const gt_planner_set *set = gt_planner_proposed(c);
    const gt_cost_result *cost = &set->at[GT_PLANNER_EXPECTED].cost;
    assert_true(c->fits);
    assert_true(p->pools[2].fixed && gt_planner_ranks(p, 2, set->counts) == 1);
    assert_true(gt_planner_ranks(p, 0, set->counts) > 1 && gt_planner_ranks(p, 1, set->counts) > 1);
    assert_true(cost->regions[2].worker_usd == 0 && cost->regions[2].ps_usd > 0);
    assert_true(fabs(cost->regions[0].worker_usd + cost->regions[1].worker_usd - cost->worker_usd) <
                1e-12);
    if (k == 3) { /* as without it */
      assert_int_equal(set->counts[0], 4);
      assert_int_equal(set->counts[1] + set->counts[2], 2);
    }
    gt_planner_close(p);
  }
}

/* It has no workers by which steps would change. */
static void test_more_steps_beside_one_that_aggregates(void) {
  gt_job *job = fitted(BEGIN HUB TRAIN("steps: 100")
                           WAN("1 Gbit/s") "sync: {local: sync, strategy: ssgd, topology: tree}\n",
                       (const int64_t[]){2, 1, 1, 1}, 1);
  assert_int_equal(job->train.until.steps, 200);
  assert_int_equal(job->regions[2].ranks, 1);
  gt_job_close(job);
}

/* 31 kB in each direction for every 10 samples: no region computes at full pace, and devices that
   the WAN cannot serve are left out. */
static void test_the_pace_of_the_wan(void) {
  gt_planner *p =
      find(BEGIN TRAIN("epochs: 1") WAN("1 Mbit/s") "sync: {local: async, strategy: asgd}\n");
  const gt_planner_candidate *c = &p->candidates[0];
  assert_true(c->wan_bound[0] && c->wan_bound[1]);
  assert_false(c->whole);
  assert_true(gt_planner_cost(p, &c->set.at[GT_PLANNER_EXPECTED]) <
              0.8 * gt_planner_cost(p, &c->everything.at[GT_PLANNER_EXPECTED]));
  gt_planner_close(p);
}

/* If no set meets the deadline, this is reported and proven. */
static void test_what_no_set_can(void) {
  gt_planner *p = find(BEGIN TRAIN("epochs: 2")
                           WAN("1 Gbit/s") "sync: {local: async, strategy: asgd-ga, period: "
                                           "8}\nplan: {deadline: 60 s, start: 0 s}\n");
  const gt_planner_candidate *c = &p->candidates[0];
  assert_false(c->fits);
  assert_true(c->exact);
  must_contain(c->why, "plan.deadline is 60 s");
  gt_planner_close(p);
}

/* Repeated plans are identical. */
static void test_the_same_again(void) {
  static const char *const job =
      BEGIN TRAIN("epochs: 2") WAN("20 Mbit/s") "sync: {local: sync, strategy: sma, period: 4}\n";
  gt_planner *a = find(job), *b = find(job);
  const gt_planner_set *x = gt_planner_proposed(&a->candidates[0]),
                       *y = gt_planner_proposed(&b->candidates[0]);
  assert_memory_equal(x->counts, y->counts, a->ncounts * sizeof *x->counts);
  assert_memory_equal(&x->at[GT_PLANNER_HIGH].figures, &y->at[GT_PLANNER_HIGH].figures,
                      sizeof x->at->figures);
  assert_int_equal(a->candidates[0].sets, b->candidates[0].sets);
  gt_planner_close(a);
  gt_planner_close(b);
}

TESTS(test_devices_and_ranks, test_as_many_samples_as_the_factor_says,
      test_fewer_workers_make_more_steps, test_no_more_than_keeps_up,
      test_some_regions_keep_their_ranks, test_a_region_that_only_aggregates,
      test_more_steps_beside_one_that_aggregates, test_the_pace_of_the_wan, test_what_no_set_can,
      test_the_same_again)
