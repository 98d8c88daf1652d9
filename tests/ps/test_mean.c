/* How one PS makes a step from its workers' pushes: mean gradients, mean or last buffers, without
   non-finite ones; and the step number in orders. */
#include "world_hand.h"

/* Parameters start at 0 and the rate is 1: after a step they are the gradient's negative. */
static void begin(hand *f, size_t workers, bool async, gt_ps_interval until, int64_t eval_every) {
  gt_ps_spec spec = h_spec(f, "none", 1, workers);
  spec.local_async = async;
  spec.until = until;
  spec.eval_every.steps = eval_every;
  spec.test_samples = eval_every ? 8 : 0;
  spec.eval_chunk = 8;
  f->buffers[0] = f->buffers[1] = 9;
  h_open(f, &spec);
  h_start(f);
}

static void all_are(const float *v, size_t n, double x) {
  for (size_t i = 0; i < n; i++) assert_true(fabs((double)v[i] - x) < 1e-5);
}

static const gt_ps_interval many = {.steps = 1000};

static void sync_takes_means(void) {
  hand f;
  begin(&f, 3, false, many, 0);
  h_push(&f, 2, 2, 7, -2);
  h_push(&f, 0, 4, 1, 3);
  assert_true(f.params[0] == 0 && f.buffers[0] == 9);
  h_push(&f, 1, 4, -2, 0.5f);
  all_are(f.params, H_PARAMS, -(4.0 * 1 - 2.0 * 4 + 7.0 * 2) / 10);
  all_are(f.buffers, H_BUFFERS, (4.0 * 3 + 0.5 * 4 - 2.0 * 2) / 10);
  assert_int_equal(f.taken, 3);
  h_close(&f);
}

static void sync_leaves_out_what_is_not_finite(void) {
  hand f;
  const float never[H_PARAMS] = {NAN, NAN, NAN};
  begin(&f, 3, false, many, 0);
  f.reduced = never;
  h_push(&f, 0, 4, 1, 3);
  h_push(&f, 1, 4, NAN, 100);
  h_push(&f, 2, 2, 4, 6);
  all_are(f.params, H_PARAMS, -2);
  all_are(f.buffers, H_BUFFERS, 4);
  assert_int_equal(f.asked, 0);
  assert_int_equal(f.notes, 1);
  memset(f.params, 0, sizeof f.params);
  /* one is left */
  for (size_t w = 0; w < 3; w++) h_push(&f, w, 4, w == 1 ? 5 : 1, w == 1 ? 8.1f : INFINITY);
  all_are(f.params, H_PARAMS, -5);
  assert_true(f.buffers[0] == 8.1f && f.buffers[1] == 8.1f);
  for (size_t w = 0; w < 3; w++) h_push(&f, w, 4, NAN, 1); /* none is */
  all_are(f.params, H_PARAMS, -5);
  assert_true(f.buffers[0] == 8.1f);
  h_close(&f);
}

static void sync_uses_what_workers_formed(void) {
  hand f;
  const float mean[H_PARAMS] = {11, 12, 13};
  begin(&f, 2, false, many, 0);
  h_push(&f, 0, 4, 1, 3);
  f.reduced = mean;
  h_push(&f, 1, 4, 1, 3);
  for (size_t i = 0; i < H_PARAMS; i++) assert_true(f.params[i] == -mean[i]);
  assert_int_equal(f.asked, 1);
  h_close(&f);
}

/* A single worker's gradient is taken without any rounding. */
static void one_worker_is_taken_as_it_is(void) {
  hand f;
  begin(&f, 1, false, many, 0);
  h_push(&f, 0, 3, 0.1f, 0.7f);
  assert_true(f.params[0] == -0.1f && f.buffers[1] == 0.7f);
  assert_int_equal(f.asked, 0);
  h_close(&f);
}

static void async_takes_the_last(void) {
  hand f;
  begin(&f, 2, true, many, 0);
  assert_true(f.orders[0].step == 0 && f.orders[0].workers == 0 && !f.orders[0].common);
  h_push(&f, 1, 4, 1, 3);
  all_are(f.params, H_PARAMS, -1);
  assert_true(f.buffers[0] == 3);
  h_push(&f, 0, 4, 2, NAN);
  all_are(f.params, H_PARAMS, -1);
  assert_true(f.buffers[0] == 3);
  h_push(&f, 1, 4, 2, 4);
  all_are(f.params, H_PARAMS, -3);
  assert_true(f.buffers[0] == 4);
  assert_int_equal(f.asked, 0);
  h_close(&f);
}

static void told(const hand *f, size_t workers, int64_t step, size_t all) {
  for (size_t w = 0; w < all; w++) {
    assert_int_equal(f->orders[w].kind, w < workers ? GT_PS_TRAIN : 0);
    if (w >= workers) continue;
    assert_int_equal(f->orders[w].step, step);
    assert_int_equal(f->orders[w].workers, workers);
    assert_true(f->orders[w].common);
  }
}

/* 16 samples in batches of 4 are 4 batches: a step of three workers and one of one.  A step without
   gradients has a number, too. */
static void orders_tell_of_the_step(void) {
  hand f;
  begin(&f, 3, false, (gt_ps_interval){.epochs = 2}, 0);
  told(&f, 3, 1, 3);
  for (size_t w = 0; w < 3; w++) h_push(&f, w, 4, NAN, 1);
  told(&f, 3, 2, 3);
  for (size_t w = 0; w < 3; w++) h_push(&f, w, 4, 1, 1);
  told(&f, 2, 3, 3);
  for (size_t w = 0; w < 2; w++) h_push(&f, w, 4, 1, 1);
  told(&f, 0, 0, 3);
  h_close(&f);
}

/* All workers of a step begin together, with the current parameters. */
static void a_step_waits_for_the_evaluation(void) {
  hand f;
  begin(&f, 2, false, many, 1);
  for (size_t w = 0; w < 2; w++) h_push(&f, w, 4, 1, 1);
  assert_int_equal(f.orders[0].kind, GT_PS_EVAL);
  assert_int_equal(f.orders[1].kind, 0);
  f.params[0] = 50; /* a message came */
  gt_ps_push done = {.samples = 8, .correct = 1, .loss_sum = 1};
  f.orders[0].kind = 0;
  gt_ps_evaluated(f.ps, 0, &done, 2);
  told(&f, 2, 2, 2);
  assert_true(f.given[0] == 50 && f.given[1] == 50);
  h_close(&f);
}

TESTS(sync_takes_means, sync_leaves_out_what_is_not_finite, sync_uses_what_workers_formed,
      one_worker_is_taken_as_it_is, async_takes_the_last, orders_tell_of_the_step,
      a_step_waits_for_the_evaluation)
