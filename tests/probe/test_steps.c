/* How a worker's steps are classified, when it pauses, and when it has made enough. */
#include "tests.h"
#include "geotrain/ps_timeline.h"
#include "internal.h"

#define TURN 96

static void count(int64_t first, int n[GT_PROBE_PHASES]) {
  for (int k = 0; k < GT_PROBE_PHASES; k++) n[k] = 0;
  for (int64_t step = first; step < first + TURN; step++) n[gt_probe_phase_of(step)]++;
}

/* The very first steps warm up code and data, those after a pause only caches. */
static void test_phases(void) {
  int n[GT_PROBE_PHASES];
  count(0, n);
  assert_int_equal(n[GT_PROBE_COLD], 3);
  assert_int_equal(n[GT_PROBE_WARM], 61);
  assert_int_equal(n[GT_PROBE_PAUSED], 4 * GT_RESUME_STEPS);
  count(7 * TURN, n);
  assert_int_equal(n[GT_PROBE_COLD], GT_RESUME_STEPS);
  assert_int_equal(n[GT_PROBE_WARM], 64 - GT_RESUME_STEPS);
  assert_int_equal(n[GT_PROBE_PAUSED], 4 * GT_RESUME_STEPS);
}

/* As many steps follow a pause as the model (ps.h) counts as cold after one, and all of them count
   as paused. */
static void test_pauses(void) {
  int pauses = 0;
  for (int64_t step = 0; step < 5 * (int64_t)TURN; step++) {
    if (!gt_probe_pause_before(step)) continue;
    pauses++;
    for (int64_t next = step; next < step + GT_RESUME_STEPS; next++) {
      assert_int_equal(gt_probe_phase_of(next), GT_PROBE_PAUSED);
      assert_int_equal(gt_probe_pause_before(next), next == step);
    }
  }
  assert_int_equal(pauses, 5 * 4);
}

static void test_enough(void) {
  assert_false(gt_probe_enough(1000, 7.9)); /* the speed of a machine varies within seconds */
  assert_true(gt_probe_enough(1000, 8));
  assert_false(gt_probe_enough(12, 29));
  assert_true(gt_probe_enough(13, 29));
  assert_false(gt_probe_enough(4, 31));
  assert_true(gt_probe_enough(5, 31)); /* a slow model */
}

/* Once the pauses of the first turn have begun, all of them are made, so that every worker's mean
   has the same number of steps. */
static void test_first_pauses_are_made(void) {
  assert_true(gt_probe_enough(63, 60));
  for (int64_t steps = 64; steps < TURN; steps++) assert_false(gt_probe_enough(steps, 60));
  assert_true(gt_probe_enough(TURN, 60));
}

TESTS(test_phases, test_pauses, test_enough, test_first_pauses_are_made)
