/* Phases of a pipeline's workers: the phase of each interval, and that phases always add up. */
#include "tests.h"
#include "geotrain/ps_pass_times.h"

static void is(const gt_pass_times *t, size_t worker, gt_ns held, gt_ns now, gt_phase phase,
               gt_ns needed) {
  const gt_phase_times times = gt_pass_times_of(t, worker, held, now);
  if (times.of[phase] != needed)
    fail_msg("worker %zu: phase %d is %lld, needed %lld", worker, phase, (long long)times.of[phase],
             (long long)needed);
}

static void test_a_step(void) {
  gt_pass_times *t = gt_pass_times_create(2);
  gt_pass_times_begin(t, 100);
  gt_pass_times_ordered(t, 0, false, 0, 110);
  gt_pass_times_ordered(t, 1, false, 0, 110);
  gt_pass_times_begins(t, 0, GT_PASS_F, GT_NEVER, 110);
  gt_pass_times_done(t, 0, 25, 140);               /* 5 longer than it computed */
  gt_pass_times_begins(t, 1, GT_PASS_F, 122, 140); /* sent while it waited */
  gt_pass_times_done(t, 1, 10, 150);
  gt_pass_times_begins(t, 0, GT_PASS_BW, 30, 170); /* sent before it waited */
  gt_pass_times_done(t, 0, 40, 210);
  gt_pass_times_ends(t, 0, 210);
  gt_pass_times_pushed(t, 0, 213);
  gt_pass_times_begins(t, 1, GT_PASS_W, GT_NEVER, 220);
  is(t, 1, 0, 225, GT_PHASE_BACKWARD_WEIGHT, 5); /* in flight */
  is(t, 0, 0, 225, GT_PHASE_STEP_END, 12);
  gt_pass_times_done(t, 1, 10, 230);
  gt_pass_times_ends(t, 1, 230);
  gt_pass_times_pushed(t, 1, 231);
  gt_pass_times_ordered(t, 0, false, 40, 280); /* held for 40 after 231, then 9 of the PS's work */
  gt_pass_times_ordered(t, 1, false, 40, 280);
  is(t, 0, 0, 280, GT_PHASE_FORWARD, 25);
  is(t, 0, 0, 280, GT_PHASE_BACKWARD, 40);
  is(t, 0, 0, 280, GT_PHASE_TRANSFER, 30);
  is(t, 0, 0, 280, GT_PHASE_BUBBLE, 0);
  is(t, 0, 0, 280, GT_PHASE_STEP_END, 18 + 40);
  is(t, 0, 0, 280, GT_PHASE_UPDATE, 10 + 5 + 3 + 9);
  is(t, 1, 0, 280, GT_PHASE_TRANSFER, 18);
  is(t, 1, 0, 280, GT_PHASE_BUBBLE, 12 + 70);
  is(t, 1, 0, 280, GT_PHASE_STEP_END, 40);
  is(t, 1, 0, 280, GT_PHASE_UPDATE, 10 + 1 + 9);
  gt_pass_times_close(t);
}

static void test_an_evaluation(void) {
  const gt_ns held[1] = {7};
  gt_pass_times *t = gt_pass_times_create(1);
  gt_pass_times_ordered(t, 0, true, 0, 50); /* times begin here */
  gt_pass_times_begins(t, 0, GT_PASS_F, GT_NEVER, 60);
  gt_pass_times_done(t, 0, 5, 65);
  gt_pass_times_ends(t, 0, 65);
  gt_pass_times_pushed(t, 0, 65);
  gt_pass_times_ordered(t, 0, false, 0, 90);
  is(t, 0, 0, 90, GT_PHASE_EVALUATION, 40);
  gt_pass_times_ends(t, 0, 95);
  gt_pass_times_pushed(t, 0, 95);
  gt_pass_times_end(t, held, 110);
  is(t, 0, 0, 500, GT_PHASE_STEP_END, 7);
  is(t, 0, 0, 500, GT_PHASE_UPDATE, 8);
  gt_pass_times_ordered(t, 0, true, 0, 600); /* nothing counts after the end */
  is(t, 0, 0, 700, GT_PHASE_EVALUATION, 40);
  const gt_phase_times earlier = {.of[GT_PHASE_EVALUATION] = 1000};
  gt_pass_times_add(t, 0, &earlier);
  is(t, 0, 0, 700, GT_PHASE_EVALUATION, 1040);
  gt_pass_times_close(t);
}

/* For any events in any order, phases are non-negative and add up to the time. */
static void test_they_add_up(void) {
  gt_rng rng = gt_rng_make(7, GT_RNG_COMPUTE, 0, 0);
  gt_pass_times *t = gt_pass_times_create(3);
  gt_ns now = 1000;
  gt_pass_times_begin(t, now);
  for (int i = 0; i < 20000; i++) {
    const size_t w = (size_t)(gt_rng_uniform(&rng) * 3);
    now += (gt_ns)(gt_rng_uniform(&rng) * 50);
    const gt_ns any = now - 60 + (gt_ns)(gt_rng_uniform(&rng) * 100);
    switch ((int)(gt_rng_uniform(&rng) * 5)) {
    case 0:
      gt_pass_times_ordered(t, w, i % 7 == 0, any / 100, now);
      break;
    case 1:
      gt_pass_times_begins(t, w, (gt_pass_kind)(i % 4), i % 3 ? any : GT_NEVER, now);
      break;
    case 2:
      gt_pass_times_done(t, w, any % 50, now);
      break;
    case 3:
      gt_pass_times_ends(t, w, now);
      break;
    default:
      gt_pass_times_pushed(t, w, now);
    }
    gt_ns sum = 0;
    const gt_phase_times times = gt_pass_times_of(t, w, 0, now);
    for (size_t p = 0; p < GT_NPHASES; p++) {
      assert_true(times.of[p] >= 0);
      sum += times.of[p];
    }
    assert_int_equal(sum, now - 1000);
  }
  gt_pass_times_close(t);
}

TESTS(test_a_step, test_an_evaluation, test_they_add_up)
