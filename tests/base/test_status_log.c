/* Error texts are one line; log lines have their prefix and follow threshold and role. */
#include "geotrain/base.h"
#include "tests.h"

#include <unistd.h>

static void an_error_keeps_its_text_and_code(void) {
  must_say(GT_FAIL(GT_ERR_DATA, "%d samples; expected %d", 3, 4), GT_ERR_DATA,
           "3 samples; expected 4");
}

static void an_error_may_quote_the_last_one(void) {
  GT_FAIL(GT_ERR_CKPT, "inner");
  GT_FAIL(GT_ERR_CKPT, "outer: %s", gt_error_text());
  assert_string_equal(gt_error_text(), "outer: inner");
}

static void an_error_is_one_line_and_bounded(void) {
  char lengthy[2 * GT_ERROR_TEXT_MAX];
  memset(lengthy, 'x', sizeof lengthy - 1);
  lengthy[sizeof lengthy - 1] = '\0';
  lengthy[1] = '\n';
  GT_FAIL(GT_ERR_JOB, "%s", lengthy);
  assert_int_equal(strlen(gt_error_text()), GT_ERROR_TEXT_MAX - 1);
  assert_null(strchr(gt_error_text(), '\n'));
}

/* It quotes an escape, a bell, a delete, CSI in UTF-8 and alone; letters of other alphabets are
   kept. */
static void an_error_has_no_control_characters(void) {
  GT_FAIL(GT_ERR_JOB, "a\x1b[2J\x07\x7f b\xc2\x9b c\x9b\td \xc3\x9b\xe2\x82\x9b\xf0\x9f\x98\x80\n");
  assert_string_equal(gt_error_text(), "a?[2J?? b?? c? d \xc3\x9b\xe2\x82\x9b\xf0\x9f\x98\x80 ");
}

static void a_fault_names_its_place(void) {
  gt_fail(GT_ERR_FAULT, "/some/where/loop.c", 12, "the queue is upside down");
  assert_string_equal(gt_error_text(), "the queue is upside down (loop.c:12)");
}

static gt_status try_it(gt_status inner, bool *went_on) {
  GT_TRY(inner);
  *went_on = true;
  return GT_OK;
}

static void try_returns_a_failure_only(void) {
  bool went_on = false;
  assert_int_equal(try_it(GT_ERR_LOST, &went_on), GT_ERR_LOST);
  assert_false(went_on);
  must(try_it(GT_OK, &went_on));
  assert_true(went_on);
}

/* Captures what `speak` prints on stderr. */
static void capture(void (*speak)(void), char *text, size_t size) {
  FILE *file = tmpfile();
  assert_non_null(file);
  int keep = dup(STDERR_FILENO);
  assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
  speak();
  dup2(keep, STDERR_FILENO);
  close(keep);
  rewind(file);
  size_t n = fread(text, 1, size - 1, file);
  text[n] = '\0';
  fclose(file);
}

static void speak_at_all_levels(void) {
  gt_log(GT_LOG_ERROR, "e%d", 1);
  gt_log(GT_LOG_DEBUG, "d");
  gt_log_job(GT_LOG_INFO, "once");
}

static void lines_carry_who_speaks(void) {
  char text[256];
  capture(speak_at_all_levels, text, sizeof text);
  assert_string_equal(text, "geotrain: e1\ngeotrain: once\n");
  gt_log_identity("shanghai worker 1", false);
  gt_log_threshold(GT_LOG_DEBUG);
  capture(speak_at_all_levels, text, sizeof text);
  assert_string_equal(text, "geotrain: shanghai worker 1: e1\ngeotrain: shanghai worker 1: d\n");
  gt_log_identity("shanghai PS", true);
  gt_log_threshold(GT_LOG_ERROR);
  capture(speak_at_all_levels, text, sizeof text);
  assert_string_equal(text, "geotrain: shanghai PS: e1\n");
  gt_log_identity("", true);
  gt_log_threshold(GT_LOG_INFO);
}

static void speak_at_length(void) {
  char text[3 * GT_ERROR_TEXT_MAX];
  memset(text, 'y', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  gt_log(GT_LOG_ERROR, "%s", text);
}

static void a_long_line_still_ends(void) {
  char text[4 * GT_ERROR_TEXT_MAX];
  capture(speak_at_length, text, sizeof text);
  assert_int_equal(text[strlen(text) - 1], '\n');
  assert_true(strlen(text) > GT_ERROR_TEXT_MAX);
}

TESTS(an_error_keeps_its_text_and_code, an_error_may_quote_the_last_one,
      an_error_is_one_line_and_bounded, an_error_has_no_control_characters, a_fault_names_its_place,
      try_returns_a_failure_only, lines_carry_who_speaks, a_long_line_still_ends)
