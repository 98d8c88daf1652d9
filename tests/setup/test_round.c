/* A file of a round is read once, and checked: whole, finite, and suitable to resume from. */
#include <math.h>
#include <sys/stat.h>

#include "world.h"

static const gt_setup_options options;
static gt_run run;
static float numbers[4] = {1, 2, 3, 4};

static void write_numbers(int64_t round, bool doubtful) {
  gt_state state = {0};
  gt_state_add(&state, "model/", "params", GT_TYPE_F32, numbers, 4);
  w_write_round(run.run_dir, "a", round, doubtful, &state);
  gt_state_close(&state);
}

static int begin(void **unused) {
  (void)unused;
  w_begin_alone(&run, &options);
  snprintf(run.run_dir, sizeof run.run_dir, "%s", in_folder("run"));
  return 0;
}

static int end(void **unused) {
  (void)unused;
  w_end_alone(&run);
  return 0;
}

static void test_sound(void **unused) {
  (void)unused;
  write_numbers(1, false);
  assert_int_equal(gt_setup_read_round(&run, 1), GT_ROUND_SOUND);
  assert_int_equal(run.kept.info.round, 1);
  assert_non_null(gt_state_find(&run.kept.state, "model/", "params"));
}

static void test_doubtful(void **unused) {
  (void)unused;
  write_numbers(2, true);
  assert_int_equal(gt_setup_read_round(&run, 2), GT_ROUND_DOUBTFUL);
  must_contain(run.kept.why, "ckpt/2/a.h5: its model gave only non-finite gradients");
}

/* Non-finite is worse than doubtful, and takes precedence in the message. */
static void test_not_finite(void **unused) {
  (void)unused;
  numbers[2] = NAN;
  write_numbers(3, true);
  numbers[2] = 3;
  assert_int_equal(gt_setup_read_round(&run, 3), GT_ROUND_NOT_FINITE);
  must_contain(run.kept.why, "ckpt/3/a.h5: model/params has non-finite values");
}

static void test_damaged(void **unused) {
  (void)unused;
  char path[300];
  struct stat file;
  write_numbers(4, false);
  gt_ckpt_path(path, sizeof path, run.run_dir, 4, "a");
  assert_int_equal(stat(path, &file), 0);
  assert_int_equal(truncate(path, file.st_size - 100), 0);
  assert_int_equal(gt_setup_read_round(&run, 4), GT_ROUND_DAMAGED);
  assert_true(strlen(run.kept.why) > 0);
  assert_int_equal(run.kept.state.n, 0);
  assert_int_equal(gt_setup_read_round(&run, 5), GT_ROUND_DAMAGED); /* no such file */
}

/* A file is read once for repeated requests; another round replaces it. */
static void test_read_once(void **unused) {
  (void)unused;
  char path[300];
  write_numbers(6, false);
  write_numbers(7, false);
  assert_int_equal(gt_setup_read_round(&run, 6), GT_ROUND_SOUND);
  assert_int_equal(unlink(gt_ckpt_path(path, sizeof path, run.run_dir, 6, "a")), 0);
  assert_int_equal(gt_setup_read_round(&run, 6), GT_ROUND_SOUND);
  assert_int_equal(gt_setup_read_round(&run, 7), GT_ROUND_SOUND);
  assert_int_equal(run.kept.info.round, 7);
  assert_int_equal(gt_setup_read_round(&run, 6), GT_ROUND_DAMAGED);
}

/* Before the run directory is opened, the one from the options is used. */
static void test_folder_that_was_asked_for(void **unused) {
  (void)unused;
  const gt_setup_options asked = {.run_dir = in_folder("run")};
  write_numbers(8, false);
  gt_run other;
  w_begin_alone(&other, &asked);
  assert_int_equal(gt_setup_read_round(&other, 8), GT_ROUND_SOUND);
  w_end_alone(&other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_sound, begin, end),
      cmocka_unit_test_setup_teardown(test_doubtful, begin, end),
      cmocka_unit_test_setup_teardown(test_not_finite, begin, end),
      cmocka_unit_test_setup_teardown(test_damaged, begin, end),
      cmocka_unit_test_setup_teardown(test_read_once, begin, end),
      cmocka_unit_test_setup_teardown(test_folder_that_was_asked_for, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
