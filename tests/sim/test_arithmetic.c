/* Laws of simulations that train: they repeat to the bit, with any number of threads; a run that
   resumes after losses ends with the model of a run without losses; regions that lose and find each
   other hold the same model.  tests/e2e/simulate_train.sh compares them with real runs. */
#include "tests.h"
#include "geotrain/sim.h"
#include "geotrain/sim_shape.h"

#define REGIONS 3

typedef struct {
  gt_sim_totals totals;
  gt_fault_result faults;
  gt_sim_model model;
  gt_region_result regions[REGIONS];
} outcome;

static outcome run_by(size_t threads, const char *sync, const char *more) {
  char text[2048];
  outcome o;
  gt_job *job = NULL;
  gt_links *links = NULL;
  gt_sim_shape shape;
  gt_sim_arithmetic *arithmetic = NULL;
  gt_sim *sim = NULL;
  snprintf(text, sizeof text,
           "name: law\nseed: 7\nmodel: {name: mlp, mlp: [16]}\ndata: {path: %s}\n"
           "train: {until: {epochs: 12}, batch: 16, optimizer: {name: sgd, lr: 0.05, momentum: "
           "0.9}, eval_every: {epochs: 4}}\n"
           "regions: [{name: a, ranks: 3}, {name: b, ranks: 2}, {name: c, ranks: 2}]\n"
           "sync: {%s}\ncompute: {step: 100 ms}\nlimits: {wan_patience: 1 s}\n"
           "wan: {default: {bandwidth: 20 Mbit/s, latency: 20 ms}}\n"
           "checkpoint: {every: {steps: 8}}\n%s",
           in_folder("data.h5"), sync, more);
  must(gt_job_parse(&job, "test", text));
  must(gt_links_create(&links, job));
  must(gt_sim_shape_of(&shape, job));
  must(gt_sim_arithmetic_open(&arithmetic, job, &shape, threads));
  const gt_sim_spec spec = {.job = job,
                            .links = links,
                            .parameters = shape.parameters,
                            .buffers = shape.buffers,
                            .tensors = shape.tensors,
                            .ntensors = shape.ntensors,
                            .samples = shape.samples,
                            .tests = shape.tests,
                            .arithmetic = arithmetic};
  must(gt_sim_run(&sim, &spec));
  gt_sim_get_totals(sim, &o.totals);
  o.faults = gt_sim_faults_of(sim);
  o.model = *gt_sim_model_of(sim);
  for (size_t r = 0; r < REGIONS; r++) gt_sim_region(sim, r, &o.regions[r]);
  gt_sim_close(sim);
  gt_sim_arithmetic_close(arithmetic);
  gt_sim_shape_close(&shape);
  gt_links_close(links);
  gt_job_close(job);
  return o;
}

static outcome run(const char *sync, const char *more) {
  return run_by(1, sync, more);
}

static const char *const strategies[] = {
    "strategy: ssgd",
    "strategy: sma, period: 4",
    "strategy: asgd-ga, period: 4",
    "strategy: ama, period: 4",
    "strategy: asgd, local: async",
    ("strategy: sma, period: 4, codec: {name: e3m0}, outer: {name: sgd, lr: 0.9}, fragments: 2, "
     "delay: 1")};

#define MTBF "faults: [{mtbf: 8 s, mttr: 2 s}]\n"

static void with_on_loss(char *sync, size_t size, size_t i, const char *on_loss) {
  snprintf(sync, size, "%s, on_loss: %s", strategies[i], on_loss);
}

/* A model that has learnt, of finite values. */
static void check_learnt(const outcome *o) {
  assert_int_equal(o->model.bad, REGIONS);
  assert_int_equal(strlen(o->model.params_sha256), GT_SHA256_HEX - 1);
  assert_true(isfinite(o->model.score.loss));
  assert_true(o->totals.samples > 0);
}

/* With asynchronous strategies the order of messages is part of the result, and a loss changes
   it. */
static void test_resumes(void) {
  for (size_t i = 0; i < 2; i++) {
    char sync[256];
    with_on_loss(sync, sizeof sync, i, "stop");
    const outcome calm = run(sync, ""), lost = run(sync, MTBF);
    check_learnt(&calm);
    assert_true(calm.model.score.accuracy > 0.5);
    assert_true(lost.faults.losses > 1 && lost.faults.resumes > 1);
    assert_true(lost.totals.virtual_s > calm.totals.virtual_s);
    assert_string_equal(lost.model.params_sha256, calm.model.params_sha256);
    assert_true(lost.model.score.loss == calm.model.score.loss);
  }
}

static void test_repeats(void) {
  for (size_t i = 0; i < COUNT(strategies); i++)
    for (int stop = 0; stop < 2; stop++) {
      char sync[256];
      with_on_loss(sync, sizeof sync, i, stop ? "stop" : "continue");
      const outcome a = run(sync, MTBF), b = run_by(3, sync, MTBF);
      check_learnt(&a);
      assert_true(a.faults.losses > 0);
      assert_true(a.totals.virtual_s == b.totals.virtual_s);
      assert_string_equal(a.model.params_sha256, b.model.params_sha256);
      assert_true(a.model.score.loss == b.model.score.loss);
    }
}

/* Members hold the same model at the end, whatever was lost before. */
static void test_members(void) {
  static const char *const faults[] = {MTBF, "faults: [{link: [a, b], cut: 3 s, for: 3 s}]\n",
                                       "faults: [{coordinator: 3 s, for: 3 s}]\n",
                                       "faults: [{region: b, lost: 3 s}]\n"};
  for (size_t k = 0; k < COUNT(faults); k++)
    for (size_t i = 0; i < COUNT(strategies); i++) {
      char sync[256];
      if (i != 0 && i != 1 && i != 5) continue;
      with_on_loss(sync, sizeof sync, i, "continue");
      const outcome o = run(sync, faults[k]);
      check_learnt(&o);
      for (size_t r = 0; r < REGIONS; r++)
        if (!isnan(o.regions[r].test_loss))
          assert_true(o.regions[r].test_loss == o.model.score.loss);
    }
}

/* ---- what cannot be trained ---- */

static void refused(const char *key, const char *value, const char *why) {
  char text[512], set[256];
  const char *sets[] = {set};
  gt_job *job = NULL;
  gt_sim_shape shape;
  gt_sim_arithmetic *arithmetic = NULL;
  snprintf(text, sizeof text,
           "name: law\nmodel: {name: resnet18}\ndata: {path: %s}\n"
           "regions: [{name: a, ranks: 2}]\ncompute: {step: 100 ms}\n"
           "train: {until: {epochs: 1}, batch: 16, optimizer: {name: sgd, lr: 0.05}}\n"
           "checkpoint: {every: {steps: 8}}\n",
           in_folder("data.h5"));
  snprintf(set, sizeof set, "%s=%s", key, value);
  must(gt_job_load(&job, file_with("job.yaml", text), sets, 1));
  must(gt_sim_shape_of(&shape, job));
  must_fail(gt_sim_arithmetic_open(&arithmetic, job, &shape, 1), GT_ERR_JOB, why);
  assert_null(arithmetic);
  gt_sim_shape_close(&shape);
  gt_job_close(job);
}

static void test_refusals(void) {
  refused("train.init", "old.h5",
          "simulate --train: the job has train.init; expected a job without it");
  refused("train.choices", "c.txt", "the job has a file in train.choices; expected");
  refused("data.validation", "0.1", "the job has data.validation; expected");
  refused("train.batch", "479", "region a has 480 samples in batches of 479, the last of an epoch");
}

static int make_data(void **state) {
  const gt_synth_spec spec = {.seed = 1, .ntrain = 480, .ntest = 200, .h = 8, .w = 8, .classes = 4};
  (void)state;
  must(gt_data_synth(in_folder("data.h5"), &spec));
  return 0;
}

TESTS_BETWEEN(make_data, NULL, test_resumes, test_repeats, test_members, test_refusals)
