/* Buffers between regions: workers' pushes do not undo the effect of an exchange during their
   computation. */
#include "world_hand.h"

/* Region 0 of two, whose weights are 3/4 and 1/4. */
static void begin(hand *f, const char *strategy, size_t workers, bool async, int64_t period) {
  static const double weights[] = {0.75, 0.25};
  gt_ps_spec spec = h_spec(f, strategy, 2, workers);
  spec.local_async = async;
  spec.weights = weights;
  spec.options.period = period;
  f->buffers[0] = f->buffers[1] = 8;
  h_open(f, &spec);
  h_start(f);
}

static void push(hand *f, size_t worker, float b) {
  h_push(f, worker, 4, 0, b);
}

/* Receives the other region's model, whose buffers are all b. */
static void a_model_comes(hand *f, float b) {
  float model[H_MODEL] = {0};
  for (size_t i = H_PARAMS; i < H_MODEL; i++) model[i] = b;
  f->sequence++;
  gt_frame_header head = {.kind = GT_MSG_STATE,
                          .from = 1,
                          .sequence = f->sequence,
                          .value = f->sequence,
                          .message_bytes = sizeof model};
  gt_ps_message(f->ps, 1, &head, model, 1);
}

static void buffers_are(const hand *f, double x) {
  for (size_t i = 0; i < H_BUFFERS; i++)
    if (!(fabs((double)f->buffers[i] - x) < 1e-5))
      fail_msg("the buffers are %g; expected %g", (double)f->buffers[i], x);
}

/* A quarter of the other's, although the worker began before it arrived. */
static void ama_keeps_what_came_meanwhile(void) {
  for (int async = 0; async < 2; async++) {
    hand f;
    begin(&f, "ama", 1, async, 100);
    a_model_comes(&f, 4);
    buffers_are(&f, 7);
    push(&f, 0, 6);
    buffers_are(&f, 0.75 * 6 + 0.25 * 4);
    push(&f, 0, 5); /* it includes the exchange */
    buffers_are(&f, 5);
    a_model_comes(&f, 1);
    a_model_comes(&f, 3);
    push(&f, 0, 4);
    buffers_are(&f, 0.75 * (0.75 * 4 + 0.25 * 1) + 0.25 * 3);
    h_close(&f);
  }
}

/* The workers began at different times; each includes the exchanges since then. */
static void ama_goes_by_each_worker(void) {
  hand f;
  begin(&f, "ama", 2, true, 100);
  a_model_comes(&f, 4);
  push(&f, 0, 6);
  buffers_are(&f, 0.75 * 6 + 0.25 * 4);
  a_model_comes(&f, 0);
  push(&f, 1, 5);
  buffers_are(&f, 0.75 * (0.75 * 5 + 0.25 * 4));
  push(&f, 0, 2);
  buffers_are(&f, 0.75 * 2);
  h_close(&f);
}

static void ama_of_a_step(void) {
  hand f;
  begin(&f, "ama", 2, false, 100);
  push(&f, 0, 6);
  a_model_comes(&f, 4);
  push(&f, 1, 4);
  buffers_are(&f, 0.75 * 5 + 0.25 * 4);
  h_close(&f);
}

/* Buffers that start non-negative stay non-negative, however different the regions are. */
static void a_variance_stays_one(void) {
  hand f;
  begin(&f, "ama", 1, true, 100);
  for (int i = 0; i < 40; i++) a_model_comes(&f, 0.001f);
  push(&f, 0, 7.2f);
  assert_true(f.buffers[0] > 0 && f.buffers[0] < 0.01f);
  h_close(&f);
}

/* Worker 0's step completes the round; worker 1 computes meanwhile. */
static void sma_keeps_the_mean(void) {
  hand f;
  begin(&f, "sma", 2, true, 1);
  push(&f, 0, 6);
  assert_true(f.sent[H_PARAMS] == 6);
  a_model_comes(&f, 2);
  buffers_are(&f, 0.75 * 6 + 0.25 * 2);
  push(&f, 1, 4);
  assert_true(fabs((double)f.sent[H_PARAMS] - (0.75 * 4 + 0.25 * 2)) < 1e-5);
  h_close(&f);
}

/* Buffers without an exchange meanwhile are taken unchanged. */
static void undisturbed_buffers_keep_their_bits(void) {
  for (int async = 0; async < 2; async++) {
    hand f;
    begin(&f, "ama", 1, async, 100);
    push(&f, 0, 0.7f);
    assert_true(f.buffers[0] == 0.7f && f.buffers[1] == 0.7f);
    h_close(&f);
  }
}

TESTS(ama_keeps_what_came_meanwhile, ama_goes_by_each_worker, ama_of_a_step, a_variance_stays_one,
      sma_keeps_the_mean, undisturbed_buffers_keep_their_bits)
