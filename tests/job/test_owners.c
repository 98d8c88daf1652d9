/* Options that only some strategies or models have: refused with the others, omitted in a resolved
   job, named in help; jobs from before these options equal jobs with their defaults. */
#include "world.h"
#include "internal.h"

static const char base[] = "name: tiny\nmodel: {name: lenet5}\ndata: {path: d.h5}\n"
                           "train: {until: {steps: 5}, optimizer: {lr: 0.1}}\n"
                           "regions: [{name: a, ranks: 2}, {name: b, ranks: 3}]\n";

static gt_status parse(gt_job **job, const char *more) {
  char text[2048];
  snprintf(text, sizeof text, "%s%s", base, more);
  return gt_job_parse(job, "t.yaml", text);
}

static gt_job *load(const char *more) {
  gt_job *job = NULL;
  must(parse(&job, more));
  return job;
}

static void refused(const char *more, const char *expected) {
  gt_job *job = NULL;
  must_say(parse(&job, more), GT_ERR_JOB, expected);
  assert_null(job);
}

/* Every row that depends on a choice depends on a key with values, has some of them, and its
   default applies if it is omitted. */
static void the_table_is_sound(void) {
  size_t n = 0;
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    if (!row->choice) {
      assert_true(row->having == 0 && !(row->flags & KEY_LENIENT));
      continue;
    }
    const job_key *choice = gt_job_key_find(row->choice);
    size_t values = 0;
    assert_non_null(choice);
    assert_int_equal(choice->type, KEY_CHOICE);
    while (choice->values[values]) values++;
    assert_true(values < 32 && row->having > 0 && row->having < (uint32_t)1 << values);
    assert_true(row->fallback || (row->flags & KEY_OPTIONAL));
    assert_true(!strchr(row->path, '[') ||
                (row->flags & KEY_LENIENT && strncmp(row->path, "regions[].", 10) == 0));
    n++;
  }
  assert_true(n > 0);
}

static void with_others_they_are_refused(void) {
  refused("sync: {strategy: sma, exchange: gradient}\n",
          "t.yaml: sync.exchange is given and sync.strategy is sma; it is for sync.strategy asgd, "
          "asgd-ga only");
  refused("sync: {strategy: none, exchange: update}\n",
          "t.yaml: sync.exchange is given and sync.strategy is none; it is for sync.strategy asgd, "
          "asgd-ga only");
  refused("sync: {strategy: asgd, period_unit: pass}\n",
          "t.yaml: sync.period_unit is given and sync.strategy is asgd; it is for sync.strategy "
          "asgd-ga, ama, sma only");
  /* the strategy of the default */
  refused("sync: {merge: half}\n", "t.yaml: sync.merge is given and sync.strategy is asgd-ga; it "
                                   "is for sync.strategy ama only");
  refused("sync: {strategy: sma, exchange: gradient}\nplan: {strategies: [ama, ssgd]}\n",
          "t.yaml: sync.exchange is given and sync.strategy is sma; it is for sync.strategy asgd, "
          "asgd-ga only");
  refused("sync: {exchange: gradient, scale: average}\n",
          "t.yaml: sync.scale is average and sync.exchange gradient; with gradient, sync.scale "
          "must be sum or mean");
  refused("sync: {exchange: weights}\n",
          "t.yaml: sync.exchange is \"weights\"; expected one of update, gradient");
}

/* sync.period and sync.scale are read with every strategy. */
static void some_are_read_with_all(void) {
  char more[128];
  for (const char *const *name = gt_strategy_names; *name; name++) {
    snprintf(more, sizeof more, "sync: {strategy: %s, period: 5, scale: mean}\n", *name);
    gt_job *job = load(more);
    assert_true(job->sync.period == 5 && job->sync.scale == GT_SCALE_MEAN);
    gt_job_close(job);
  }
}

/* A plan compares strategies, each with its own options. */
static void a_plan_may_have_them(void) {
  gt_job *again = NULL, *job = load("sync: {strategy: sma, exchange: gradient, merge: half}\n"
                                    "plan: {strategies: [sma, asgd, ama]}\n");
  assert_true(job->sync.exchange == GT_EXCHANGED_GRADIENT && job->sync.merge == GT_MERGE_HALF);
  char *text = gt_job_resolved(job);
  must(gt_job_parse(&again, "again", text));
  assert_true(again->sync.exchange == GT_EXCHANGED_GRADIENT && again->sync.merge == GT_MERGE_HALF);
  gt_free(text);
  gt_job_close(job);
  gt_job_close(again);
}

static void check_resolved(const char *sync, const char *expected) {
  char more[128];
  snprintf(more, sizeof more, "sync: {%s}\n", sync);
  gt_job *job = load(more);
  char *text = gt_job_resolved(job);
  must_contain(text, expected);
  gt_free(text);
  gt_job_close(w_again(job));
  gt_job_close(job);
}

static void a_resolved_job_has_its_own(void) {
  check_resolved("strategy: none",
                 "sync: {local: sync, strategy: none, period: 8, topology: mesh, weights: samples, "
                 "scale: sum}\n");
  check_resolved(
      "strategy: asgd, exchange: gradient",
      "  scale: sum\n  exchange: gradient\n  on_loss: stop\n  codec: {name: none}\nwan:");
  check_resolved("strategy: asgd-ga, period_unit: pass",
                 "  period: 8\n  period_unit: pass\n  topology: mesh\n  weights: samples\n"
                 "  scale: sum\n  exchange: update\n  on_loss: stop\n  codec: {name: none}\nwan:");
  check_resolved("strategy: ama",
                 "  period: 8\n  period_unit: step\n  topology: mesh\n  weights: "
                 "samples\n  scale: sum\n  merge: weight\n  on_loss: stop\n  codec: {name: none}\n"
                 "wan:");
}

static void check_against(const char *sync, const char *there, const char *expected) {
  char more[128], text[256];
  snprintf(more, sizeof more, "sync: {%s}\n", sync);
  gt_job *job = load(more);
  char *here = gt_job_resolved(job), old[4096];
  const char *from = strstr(here, "sync:"), *to = strstr(here, "\nwan:");
  assert_true(from && to && from < to);
  snprintf(old, sizeof old, "%.*s%s%s", (int)(from - here), here, there, to);
  gt_job_difference(here, old, true, text, sizeof text);
  assert_string_equal(text, expected);
  gt_job_difference(old, here, true, text, sizeof text);
  assert_true((*text == '\0') == (*expected == '\0'));
  gt_free(here);
  gt_job_close(job);
}

/* A checkpoint from before these keys can be continued with their defaults only. */
static void jobs_of_before(void) {
  static const char ga[] = "sync: {local: sync, strategy: asgd-ga, period: 8, topology: mesh, "
                           "weights: samples, scale: sum}",
                    sma[] = "sync: {local: sync, strategy: sma, period: 8, topology: mesh, "
                            "weights: samples, scale: sum}";
  check_against("strategy: asgd-ga", ga, "");
  check_against("strategy: sma", sma, "");
  check_against("strategy: asgd-ga, exchange: gradient", ga,
                "sync.exchange is not given there and gradient here");
  check_against("strategy: sma, outer: {name: sgd}", sma,
                "sync.outer.name is not given there and sgd here");
  check_against("strategy: sma, period_unit: pass", sma,
                "sync.period_unit is not given there and pass here");
}

static void values_have_keys(void) {
  assert_true(gt_job_key_used("sync.period", "sma"));
  assert_false(gt_job_key_used("sync.period", "ssgd"));
  assert_true(gt_job_key_used("sync.exchange", "asgd"));
  assert_false(gt_job_key_used("sync.merge", "asgd-ga"));
  assert_true(gt_job_key_used("sync.weights", "none")); /* depends on no strategy */
}

static void help_names_them(void) {
  static const char *const parts[] = {"asgd, asgd-ga: what is sent; ", "ama: how far the region",
                                      "asgd-ga, ama, sma: what the period counts",
                                      "deepfm, mlp: widths of the hidden layers"};
  for (int markdown = 0; markdown < 2; markdown++) {
    char *text;
    FILE *to = open_text(&text);
    (markdown ? gt_job_help_markdown : gt_job_help)(to);
    assert_int_equal(fclose(to), 0);
    for (size_t i = 0; i < COUNT(parts); i++) must_contain(text, parts[i]);
    free(text);
  }
}

TESTS(the_table_is_sound, with_others_they_are_refused, some_are_read_with_all,
      a_plan_may_have_them, a_resolved_job_has_its_own, jobs_of_before, values_have_keys,
      help_names_them)
