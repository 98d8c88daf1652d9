/* Options that only some strategies or models have: which these are, and that help names them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
  if (parse(&job, more) != GT_OK) fail_msg("%s", gt_error_text());
  return job;
}

/* Every row that depends on a choice depends on a key with values, has some of them, and a default
   that it has when it is left out. */
static void the_table_is_sound(void **state) {
  (void)state;
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
    assert_null(strchr(row->path, '['));
    n++;
  }
  assert_true(n > 0);
}

/* sync.period and sync.scale are read with every strategy. */
static void some_are_read_with_all(void **state) {
  (void)state;
  char more[128];
  for (const char *const *name = gt_strategy_names; *name; name++) {
    snprintf(more, sizeof more, "sync: {strategy: %s, period: 5, scale: mean}\n", *name);
    gt_job *job = load(more);
    assert_true(job->sync.period == 5 && job->sync.scale == GT_SCALE_MEAN);
    gt_job_close(job);
  }
}

static void values_have_keys(void **state) {
  (void)state;
  assert_true(gt_job_key_used("sync.period", "sma"));
  assert_false(gt_job_key_used("sync.period", "ssgd"));
  assert_true(gt_job_key_used("sync.weights", "none")); /* depends on no strategy */
}

static void help_names_them(void **state) {
  (void)state;
  static const char *const parts[] = {"asgd, asgd-ga: weight of updates; ",
                                      "asgd-ga, ama, sma: steps between exchanges",
                                      "deepfm: widths of the perceptron's hidden layers"};
  for (int markdown = 0; markdown < 2; markdown++) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    (markdown ? gt_job_help_markdown : gt_job_help)(to);
    assert_int_equal(fclose(to), 0);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
      if (!strstr(text, parts[i])) fail_msg("no \"%s\" in\n%s", parts[i], text);
    free(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_table_is_sound),
      cmocka_unit_test(some_are_read_with_all),
      cmocka_unit_test(values_have_keys),
      cmocka_unit_test(help_names_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
