/* Candidates from the axes: which there are and in which order, what each overrides in the job, the
   factor of its samples, and which of the user's --set values remain. */
#include "tests.h"
#include "internal.h"

#define JOB                                                                                        \
  "name: test\nmodel: {name: dummy}\n"                                                             \
  "train: {until: {epochs: 1}, batch: 10, optimizer: {name: sgd, lr: 0.02}}\n"                     \
  "wan: {default: {bandwidth: 100 Mbit/s, latency: 25 ms}}\n"                                      \
  "regions:\n"                                                                                     \
  "  - {name: east, ranks: 2, samples: 1000, compute: {samples_per_s: 10}}\n"                      \
  "  - {name: west, ranks: 2, samples: 1000, compute: {samples_per_s: 10}}\n"
#define GA "sync: {local: async, strategy: asgd-ga, period: 8}\n"

static gt_planner *open_with(const char *text, const char *const *sets, size_t nsets) {
  gt_planner *p = NULL;
  const char *path = file_with("job.yaml", text);
  must(gt_planner_open(&p, &(gt_planner_options){.job_path = path, .sets = sets, .nsets = nsets}));
  return p;
}

static gt_planner *open_job(const char *text) {
  return open_with(text, NULL, 0);
}

/* Labels, separated by slashes. */
static void assert_labels(const gt_planner *p, const char *needed) {
  char found[512] = "";
  size_t at = 0;
  for (size_t i = 0; i < p->ncandidates; i++)
    at += (size_t)snprintf(found + at, sizeof found - at, "%s%s", i > 0 ? "/" : "",
                           p->candidates[i].label);
  assert_string_equal(found, needed);
}

static void test_own_values_where_none_are_listed(void) {
  gt_planner *p = open_job(JOB GA);
  assert_labels(p, "asgd-ga 8");
  const gt_planner_candidate *c = &p->candidates[0];
  assert_int_equal(c->noverrides, 2);
  assert_string_equal(c->overrides[0], "sync.strategy=asgd-ga");
  assert_string_equal(c->overrides[1], "sync.period=8");
  assert_string_equal(gt_planner_value(c, "sync.period"), "8");
  assert_null(gt_planner_value(c, "sync.peri")); /* not a key, only a prefix of one */
  assert_int_equal(c->strategy, GT_STRATEGY_ASGD_GA);
  assert_int_equal(c->period, 8);
  gt_planner_close(p);
}

/* The first axis varies slowest; a strategy without a period appears once, and so do repeated
   values. */
static void test_all_combinations_once(void) {
  gt_planner *p =
      open_job(JOB GA "plan: {strategies: [sma, asgd, asgd-ga, sma], periods: [4, 16, 4]}\n");
  assert_labels(p, "sma 4/sma 16/asgd/asgd-ga 4/asgd-ga 16");
  const gt_planner_candidate *asgd = &p->candidates[2];
  assert_int_equal(asgd->noverrides, 1);
  assert_null(gt_planner_value(asgd, "sync.period"));
  assert_int_equal(asgd->period, 0);
  gt_planner_close(p);
}

static void test_room_for_many(void) {
  gt_planner *p = open_job(JOB GA "plan: {strategies: [asgd-ga, ama, sma], periods: [1, 2, 3, 4, "
                                  "5, 6, 7, 8, 9, 10, 11, 12]}\n");
  assert_int_equal(p->ncandidates, 36);
  for (size_t i = 0; i < 36; i++) assert_int_equal(p->candidates[i].period, 1 + i % 12);
  gt_planner_close(p);
}

/* The job that is simulated and written: the file, --set, the candidate's values, then the
   additions; a candidate without a period keeps the job's. */
static void test_what_a_candidate_overrides(void) {
  static const char *const sets[] = {"sync.period=32", "sync.local=sync", "plan.periods=[4]"},
                           *const more[] = {"name=more"};
  gt_planner *p = open_with(JOB GA "plan: {strategies: [asgd-ga, ssgd]}\n", sets, 3);
  const int64_t periods[] = {4, 32};
  const gt_strategy strategies[] = {GT_STRATEGY_ASGD_GA, GT_STRATEGY_SSGD};
  assert_labels(p, "asgd-ga 4/ssgd");
  for (size_t i = 0; i < 2; i++) {
    gt_job *job = NULL;
    must(gt_planner_load(&job, p, &p->candidates[i], more, 1));
    assert_int_equal(job->sync.strategy, strategies[i]);
    assert_int_equal(job->sync.period, periods[i]);
    assert_int_equal(job->sync.local, GT_LOCAL_SYNC);
    assert_string_equal(job->name, "more");
    gt_job_close(job);
  }
  gt_planner_close(p);
}

/* Candidates have the options of their own strategies. */
static void test_options_of_strategies(void) {
  gt_planner *p = open_job(JOB "sync: {local: async, strategy: asgd-ga, period: 8, exchange: "
                               "gradient, period_unit: pass, merge: half}\n"
                               "plan: {strategies: [asgd-ga, ama, ssgd]}\n");
  assert_labels(p, "asgd-ga 8/ama 8/ssgd");
  for (size_t i = 0; i < p->ncandidates; i++) {
    gt_job *job = NULL;
    must(gt_planner_load(&job, p, &p->candidates[i], NULL, 0));
    assert_true(job->sync.exchange == GT_EXCHANGED_GRADIENT && job->sync.merge == GT_MERGE_HALF &&
                job->sync.period_unit == GT_PERIOD_PASS);
    gt_job_close(job);
  }
  gt_planner_close(p);
}

static void assert_factors(const char *own_and_any) {
  char text[2048];
  snprintf(text, sizeof text,
           JOB GA "plan: {strategies: [asgd-ga, sma, asgd], periods: [4, 8], "
                  "samples_factor: [%s, {strategy: asgd, factor: 2}]}\n",
           own_and_any);
  gt_planner *p = open_job(text);
  const double needed[] = {1.25, 1.5, 1, 1, 2};
  assert_labels(p, "asgd-ga 4/asgd-ga 8/sma 4/sma 8/asgd");
  for (size_t i = 0; i < 5; i++) assert_true(p->candidates[i].factor == needed[i]);
  gt_planner_close(p);
}

/* The factor for strategy and period, else for the strategy with any period, else 1; in any order
   of the list. */
static void test_factors(void) {
#define OWN "{strategy: asgd-ga, period: 8, factor: 1.5}"
#define ANY "{strategy: asgd-ga, factor: 1.25}"
  assert_factors(OWN ", " ANY);
  assert_factors(ANY ", " OWN);
}

/* With plan.codecs, a codec without a factor of its own is unproven; none never is. */
static void test_codecs(void) {
  gt_planner *p = open_job(
      JOB GA "plan: {periods: [4, 8], codecs: [none, topk, bf16], samples_factor: [{strategy: "
             "asgd-ga, factor: 2}, {strategy: asgd-ga, period: 8, codec: topk, factor: 1.5}]}\n");
  const double factors[] = {2, 1, 1, 2, 1.5, 1};
  const bool unproven[] = {false, true, true, false, false, true};
  assert_labels(p, "asgd-ga 4 none/asgd-ga 4 topk/asgd-ga 4 bf16/"
                   "asgd-ga 8 none/asgd-ga 8 topk/asgd-ga 8 bf16");
  for (size_t i = 0; i < 6; i++) {
    assert_true(p->candidates[i].factor == factors[i]);
    assert_int_equal(p->candidates[i].unproven, unproven[i]);
  }
  gt_planner_close(p);
}

/* Of two lists, the pairs of a strategy with a codec that does not suit it are no candidates. */
static void test_unsound_pairs(void) {
  gt_planner *p = open_job(
      JOB
      "sync: {strategy: sma, period: 8, topology: auto}\n"
      "plan: {strategies: [sma, ama, asgd], periods: [4, 8], codecs: [int8, topk, powersgd]}\n");
  assert_labels(p, "sma 4 int8/sma 4 topk/sma 4 powersgd/sma 8 int8/sma 8 topk/sma 8 powersgd/"
                   "ama 4 int8/ama 8 int8/asgd int8/asgd topk");
  for (size_t i = 0; i < p->ncandidates; i++) assert_true(p->candidates[i].chosen);
  gt_planner_close(p);
}

/* The job's own codec is not a candidate: it can be chosen, and has the factors of its strategy. */
static void test_own_codec(void) {
  gt_planner *p =
      open_job(JOB "sync: {local: async, strategy: asgd-ga, period: 8, codec: {name: topk}}\n"
                   "plan: {samples_factor: [{strategy: asgd-ga, factor: 2}]}\n");
  assert_labels(p, "asgd-ga 8");
  assert_true(p->candidates[0].factor == 2 && !p->candidates[0].unproven);
  gt_planner_close(p);
}

/* A job whose regions exchange nothing can be planned only with other strategies. */
static void test_nothing_to_exchange(void) {
  gt_planner *p = NULL;
  const char *path = file_with("job.yaml", JOB "sync: {strategy: none}\n");
  must_fail(gt_planner_open(&p, &(gt_planner_options){.job_path = path}), GT_ERR_JOB,
            "sync.strategy is none");
  assert_null(p);
  p = open_job(JOB "sync: {strategy: none}\nplan: {strategies: [sma]}\n");
  assert_labels(p, "sma 8");
  gt_planner_close(p);
}

static bool batch_value(char *text, size_t size, const gt_job *job, size_t i) {
  (void)job;
  snprintf(text, size, "%d", 16 << i);
  return i < 2;
}

static bool no_value(char *text, size_t size, const gt_job *job, size_t i) {
  (void)text, (void)size, (void)job, (void)i;
  return false;
}

/* A new axis is a new row; an axis without values changes nothing. */
static void test_another_axis(void) {
  const gt_planner_axis axes[] = {gt_planner_axes[0],
                                  {"sync.topology", "topology", false, no_value, NULL},
                                  gt_planner_axes[1],
                                  {"train.batch", "batch", true, batch_value, NULL},
                                  {.key = NULL}};
  gt_planner *p = open_job(JOB GA "plan: {strategies: [asgd-ga, asgd]}\n");
  must(gt_planner_list_candidates(p, axes));
  /* earlier ones remain */
  assert_labels(p, "asgd-ga 8/asgd/asgd-ga 8 16/asgd-ga 8 32/asgd 16/asgd 32");
  for (size_t i = 2; i < p->ncandidates; i++) {
    gt_job *job = NULL;
    must(gt_planner_load(&job, p, &p->candidates[i], NULL, 0));
    assert_int_equal(job->train.batch, 16 << i % 2);
    assert_int_equal(job->sync.topology, p->job->sync.topology);
    gt_job_close(job);
  }
  gt_planner_close(p);
}

/* Every key of an axis is a key of the job. */
static void test_axes_are_keys_of_the_job(void) {
  const char *path = file_with("job.yaml", JOB GA "plan: {codecs: [int8]}\n");
  for (const gt_planner_axis *axis = gt_planner_axes; axis->key; axis++) {
    gt_job *job = NULL, *again = NULL;
    char value[96], set[160];
    const char *sets[] = {set};
    must(gt_job_load(&job, path, NULL, 0));
    assert_true(axis->value(value, sizeof value, job, 0));
    assert_false(axis->value(value, sizeof value, job, 1));
    snprintf(set, sizeof set, "%s=%s", axis->key, value);
    must(gt_job_load(&again, path, sets, 1));
    gt_job_close(again);
    gt_job_close(job);
  }
}

TESTS(test_own_values_where_none_are_listed, test_all_combinations_once, test_room_for_many,
      test_what_a_candidate_overrides, test_options_of_strategies, test_factors, test_codecs,
      test_unsound_pairs, test_own_codec, test_nothing_to_exchange, test_another_axis,
      test_axes_are_keys_of_the_job)
