/* The options of strategies as a job gives them: the period in steps of each region, for both units
   and both local planes; the intervals of a pipeline, in its steps. */
#include "jobs.h"
#include "tests.h"
#include "geotrain/ps_of_job.h"

#define REGIONS 3

static const int64_t workers[REGIONS] = {12, 4, 1};

static gt_job *job_of(const char *sync) {
  return job_as("name: options\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
                "train: {until: {epochs: 1}, optimizer: {name: sgd, lr: 0.1}}\n"
                "regions: [{name: a, ranks: 13}, {name: b, ranks: 5}, {name: c, ranks: 2}]\n"
                "sync: {%s}\n",
                sync);
}

static gt_ps_spec spec_of(const gt_job *job, const gt_order *order, const gt_pipe_job *pipe) {
  static const gt_ps_stage stages[1];
  const gt_routes routes = {0};
  gt_links *links = NULL;
  must(gt_links_create(&links, job));
  const gt_ps_spec spec = gt_ps_spec_of(&(gt_ps_basis){.job = job,
                                                       .order = order,
                                                       .links = links,
                                                       .routes = &routes,
                                                       .parameters = 100,
                                                       .pipe = pipe,
                                                       .stages = stages,
                                                       .nstages = 1});
  gt_links_close(links);
  return spec;
}

static gt_sync_options options_of(const gt_job *job, size_t region) {
  const gt_order order = {.seed = 1, .region = region, .n = 100, .batch = 10};
  return spec_of(job, &order, NULL).options;
}

static void check_period(const char *sync, int64_t period, bool passes) {
  gt_job *job = job_of(sync);
  for (size_t r = 0; r < REGIONS; r++)
    assert_int_equal(options_of(job, r).period, period * (passes ? workers[r] : 1));
  gt_job_close(job);
}

static void test_period(void) {
  check_period("strategy: asgd-ga, period: 8", 8, false);
  check_period("strategy: asgd-ga, period: 8, local: async", 8, false);
  check_period("strategy: asgd-ga, period: 8, local: async, period_unit: step", 8, false);
  check_period("strategy: asgd-ga, period: 8, local: async, period_unit: pass", 8, true);
  check_period("strategy: asgd-ga, period: 8, local: sync, period_unit: pass", 8, false);
  check_period("strategy: ama, period: 3, local: async, period_unit: pass", 3, true);
  check_period("strategy: sma, period: 5, local: async, period_unit: pass", 5, true);
}

/* A strategy that a plan compares with another one does not inherit the other's unit. */
static void test_unit_of_another_strategy(void) {
  check_period("strategy: ssgd, period: 8, local: async, period_unit: pass}\n"
               "plan: {strategies: [ssgd, sma]",
               8, false);
}

static void test_longest_period(void) {
  gt_job *job = job_of("strategy: sma, period: 1000000000000000, local: async, period_unit: pass");
  for (size_t r = 0; r < REGIONS; r++)
    assert_true(options_of(job, r).period == (int64_t)1000000000000000);
  gt_job_close(job);
}

static void test_other_options(void) {
  gt_job *plain = job_of("strategy: asgd"),
         *other = job_of("strategy: asgd, exchange: gradient, scale: mean"),
         *average = job_of("strategy: asgd-ga, scale: average, exchange: update"),
         *half = job_of("strategy: ama, merge: half"), *weight = job_of("strategy: ama");
  gt_sync_options o = options_of(plain, 0);
  assert_true(o.scale == 1 && !o.average && !o.gradients && !o.halves);
  o = options_of(other, 1);
  assert_true(o.scale == 1.0 / REGIONS && !o.average && o.gradients);
  o = options_of(average, 2);
  assert_true(o.scale == 1 && o.average && !o.gradients);
  assert_true(options_of(half, 0).halves && !options_of(weight, 0).halves);
  gt_job_close(plain);
  gt_job_close(other);
  gt_job_close(average);
  gt_job_close(half);
  gt_job_close(weight);
}

/* Returns the number of batches until at least this many samples. */
static int64_t batches_of(const gt_order *order, int64_t samples) {
  int64_t n = 0, sum = 0;
  while (sum < samples) sum += (int64_t)gt_order_batch_size(order, n++);
  return n;
}

static void test_steps_of_a_pipeline(void) {
  static const gt_pipe_job pipe;
  const gt_order first = {.seed = 1, .region = 1, .n = 95, .batch = 10};
  gt_job *job = job_of("strategy: asgd-ga, period: 8, local: async");
  job->train.until = (gt_job_interval){.epochs = 1.25};
  job->train.eval_every = (gt_job_interval){.epochs = 0.01};
  job->checkpoint.every = (gt_job_interval){.minutes = 5};
  gt_ps_spec spec = spec_of(job, &first, &pipe);
  assert_ptr_equal(spec.strategy, &gt_ps_lockstep);
  assert_true(spec.nstages == 1 && !spec.local_async && spec.options.period == 1);
  assert_true(spec.until.steps == 13 && spec.until.epochs == 0);
  assert_true(spec.eval_every.steps == 1 && spec.eval_every.epochs == 0);
  assert_true(spec.checkpoint_every.steps == 0 && spec.checkpoint_every.minutes == 5);
  for (int64_t samples = 1; samples < 300; samples++) {
    job->train.until = (gt_job_interval){.samples = samples};
    job->train.eval_every = (gt_job_interval){.steps = samples};
    spec = spec_of(job, &first, &pipe);
    assert_true(spec.until.steps == batches_of(&first, samples) && spec.until.samples == 0);
    assert_true(spec.eval_every.steps == samples);
  }
  job->train.until = (gt_job_interval){.epochs = 1};
  assert_int_equal(gt_ps_stages_optim_of(job, &first, NULL).schedule.total_steps, 10);
  gt_job_close(job);
}

/* Updates of replicas, not of all regions, are divided by their number. */
static void test_options_of_replicas(void) {
  static const int64_t samples[4] = {300, 0, 100, 0};
  gt_job *job = NULL;
  const gt_status status = gt_job_parse(
      &job, "test",
      "name: copies\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
      "train: {batch: 8, until: {epochs: 1}, optimizer: {name: sgd, lr: 0.1}}\n"
      "regions: [{name: a, ranks: 2}, {name: b, ranks: 2}, {name: c, ranks: 2}, {name: d, ranks: "
      "2}]\n"
      "pipeline: {stages: [{region: a, last: c3}, {region: b}], labels: send, micro_batches: 2,\n"
      "  schedule: gpipe, copies: [{regions: [c, d]}]}\n"
      "sync: {strategy: asgd-ga, period: 3, scale: mean}\n");
  must(status);
  gt_ps_groups of = gt_ps_groups_of(job, 3, samples);
  assert_ptr_equal(of.strategy, gt_sync_of(GT_STRATEGY_ASGD_GA));
  assert_true(of.options.scale == 0.5 && of.options.period == 3);
  assert_true(of.nstage_group == 2 && of.stage_group[0] == 2 && of.stage_group[1] == 3);
  assert_true(of.nreplicas == 2 && of.replicas[0] == 1 && of.replicas[1] == 3);
  assert_true(of.weights[0] == 0.75 && of.weights[1] == 0.25);
  gt_ps_groups_close(&of);
  gt_job_close(job);
}

/* Every distinct test set is scored once, by the first region that has it. */
static void test_scoring_regions(void) {
  static const struct {
    const char *sync;
    const char *sets[REGIONS]; /* the hash of each region's test set; "": it has none */
    bool scores[REGIONS];
  } cases[] = {{"strategy: sma", {"a", "a", "a"}, {true, false, false}},
               {"strategy: sma", {"a", "b", "a"}, {true, true, false}},
               {"strategy: asgd", {"", "b", "c"}, {false, true, true}},
               {"strategy: ssgd", {"", "b", "b"}, {false, true, false}},
               {"strategy: ama", {"", "", ""}, {false, false, false}},
               {"strategy: none", {"", "b", "c"}, {false, true, false}}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    gt_job *job = job_of(cases[i].sync);
    gt_dataset_info infos[REGIONS] = {0};
    gt_ps_tests tests[REGIONS];
    for (size_t r = 0; r < REGIONS; r++) {
      infos[r].ntest = cases[i].sets[r][0] ? 10 + r : 0;
      snprintf(infos[r].tests_sha256, sizeof infos[r].tests_sha256, "%s", cases[i].sets[r]);
    }
    gt_ps_tests_of(job, infos, tests);
    for (size_t r = 0; r < REGIONS; r++) {
      assert_int_equal(tests[r].samples, infos[r].ntest);
      assert_int_equal(tests[r].scores, cases[i].scores[r]);
    }
    gt_job_close(job);
  }
}

/* The region with the last stage scores the model of a pipeline. */
static void test_pipelines_score_elsewhere(void) {
  gt_job *job = NULL;
  const gt_status status = gt_job_parse(
      &job, "test",
      "name: options\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
      "train: {batch: 8, until: {epochs: 1}, optimizer: {name: sgd, lr: 0.1}}\n"
      "regions: [{name: a, ranks: 2}, {name: b, ranks: 2}]\n"
      "pipeline: {stages: [{region: a, last: c3}, {region: b}], labels: send, micro_batches: 2,\n"
      "  schedule: gpipe}\n");
  must(status);
  const gt_dataset_info infos[2] = {{.ntest = 10, .tests_sha256 = "a"}};
  gt_ps_tests tests[2];
  gt_ps_tests_of(job, infos, tests);
  assert_true(tests[0].samples == 10 && !tests[0].scores && !tests[1].scores);
  gt_job_close(job);
}

/* a has half of the weight. */
static void check_begin(const char *sync, bool a, bool b, bool c, bool begins) {
  const bool there[] = {a, b, c};
  gt_job *job =
      job_as("name: options\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
             "train: {until: {epochs: 1}, optimizer: {name: sgd, lr: 0.1}}\n"
             "regions: [{name: a, ranks: 2, samples: 200}, {name: b, ranks: 2, samples: 100},\n"
             "  {name: c, ranks: 2, samples: 100}]\n"
             "sync: {strategy: sma, on_loss: continue, %s}\n",
             sync);
  assert_int_equal(gt_ps_may_begin(job, there), begins);
  gt_job_close(job);
}

static void test_regions_to_begin_with(void) {
  check_begin("min_regions: 2", true, true, false, true);
  check_begin("min_regions: 2", true, false, false, false);
  check_begin("min_regions: 2", false, true, true, false);
  check_begin("min_regions: 3", true, true, false, false);
  check_begin("min_regions: 1", true, false, false, false); /* not most of the weight */
  check_begin("min_regions: 1, tie: a", true, false, false, true);
  check_begin("min_regions: 1, tie: b", true, false, false, false);
  check_begin("min_regions: 2, weights: equal", true, false, true, true);
  /* a region that only aggregates has no samples */
  gt_job_close(job_as("name: options\nmodel: {name: lenet5}\ndata: {path: none.h5}\n"
                      "train: {until: {epochs: 1}, optimizer: {name: sgd, lr: 0.1}}\n"
                      "regions: [{name: a, ranks: 2, samples: 200}, {name: b, ranks: 1}]\n"
                      "sync: {strategy: sma, on_loss: continue, min_regions: 1}\n"));
}

TESTS(test_period, test_unit_of_another_strategy, test_longest_period, test_other_options,
      test_steps_of_a_pipeline, test_options_of_replicas, test_scoring_regions,
      test_pipelines_score_elsewhere, test_regions_to_begin_with)
