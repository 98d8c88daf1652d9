/* The loss over time: messages for runs that learn, guess, diverge, or are too short. */
#include "tests.h"
#include "geotrain/record.h"

/* A run of n steps with loss at(share of the training). */
static bool collapsed(int n, double (*at)(double done), size_t classes, char *text) {
  gt_trend t = {0};
  for (int i = 0; i < n; i++) gt_trend_add(&t, (double)i / n, 16 * at((double)i / n), 16);
  return gt_trend_collapsed(&t, classes, text, 128);
}

static double learns(double done) {
  return 2.4 * exp(-5 * done);
}

static double guesses(double done) {
  return done < 0.1 ? 1.5 + 40 * done : 2.303 + 0.03 * sin(1000 * done);
}

static double diverges(double done) {
  return done < 0.5 ? learns(done) : 0.2 + 4 * done;
}

/* It recovers before the end. */
static double recovers(double done) {
  return done > 0.4 && done < 0.82 ? 2.303 : learns(done);
}

static double breaks(double done) {
  return done > 0.9 ? NAN : learns(done);
}

static void courses(void) {
  char text[128];
  assert_false(collapsed(2000, learns, 10, text));
  assert_string_equal(text, "");
  assert_true(collapsed(2000, guesses, 10, text));
  assert_non_null(
      strstr(text, "in the last 20 % of the training: guessing among 10 classes gives 2.303"));
  assert_false(collapsed(2000, guesses, 100, text));
  assert_true(collapsed(2000, diverges, 100, text));
  must_contain(text, "loss 3.79");
  must_contain(text, "above 3 times its minimum, 0.22");
  assert_false(collapsed(2000, recovers, 10, text));
  assert_false(collapsed(2000, breaks, 10, text));
}

static void too_short(void) {
  char text[128];
  assert_true(collapsed(250, guesses, 10, text));
  assert_false(collapsed(240, guesses, 10, text));
  assert_false(collapsed(0, guesses, 10, text));
}

TESTS(courses, too_short)
