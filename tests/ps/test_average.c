/* `scale: average` over a resume: a region that had finished is excluded from the shares until it
   announces that it trains again. */
#include "world_hand.h"

static void create(hand *f, int64_t steps) {
  gt_ps_spec spec = h_spec(f, "asgd", 2, 1);
  spec.options.average = true;
  spec.until.steps = steps;
  h_open(f, &spec);
}

/* Makes a step with gradient 1; returns the part of it that is sent. */
static float share(hand *f) {
  h_push(f, 0, 4, 1, 0);
  return -f->sent[0];
}

static void comes(hand *f, gt_msg_kind kind, uint64_t sequence) {
  gt_frame_header head = {.kind = (uint8_t)kind, .from = 1, .sequence = sequence};
  (void)gt_ps_message(f->ps, 1, &head, NULL, 1);
}

static void resume(hand *again, hand *f, int64_t steps) {
  gt_state state = {0};
  create(again, steps);
  gt_ps_save(f->ps, &state);
  must(gt_ps_load(again->ps, 0, &state));
  gt_state_close(&state);
  h_close(f);
  h_start(again);
}

static void is(float found, float needed, const char *when) {
  if (found != needed)
    fail_msg("%s the update counts %g; expected %g", when, (double)found, (double)needed);
}

static void a_finished_peer_stays_out(void) {
  hand f, again;
  create(&f, 100);
  h_start(&f);
  is(share(&f), 0.5f, "while both train");
  comes(&f, GT_MSG_DONE, 0);
  is(share(&f), 1, "when the other is done");
  resume(&again, &f, 100);
  is(share(&again), 1, "after the resume");
  comes(&again, GT_MSG_JOINED, 1);
  is(share(&again), 1, "when the other has resumed and is done still,");
  comes(&again, GT_MSG_DONE, 0);
  is(share(&again), 1, "when it has said so again");
  h_close(&again);
}

static void one_that_trains_again_counts_again(void) {
  hand f, again;
  create(&f, 100);
  h_start(&f);
  comes(&f, GT_MSG_DONE, 0);
  resume(&again, &f, 100);
  comes(&again, GT_MSG_JOINED, 0);
  is(share(&again), 0.5f, "when the other makes steps again");
  h_close(&again);
}

/* It announces which of the two it is. */
static void a_resumed_region_says_whether_it_is_done(void) {
  for (int longer = 0; longer < 2; longer++) {
    hand f, again;
    create(&f, 1);
    h_start(&f);
    (void)share(&f);
    gt_frame_header ack = {.kind = GT_MSG_ACK, .value = 1};
    (void)gt_ps_message(f.ps, 1, &ack, NULL, 1);
    gt_ps_view v;
    gt_ps_get_view(f.ps, 1, &v);
    assert_int_equal(v.phase, GT_PS_FOLLOWING);
    resume(&again, &f, longer ? 5 : 1);
    assert_int_equal(again.joined.kind, GT_MSG_JOINED);
    assert_int_equal(again.joined.sequence, longer ? GT_JOINED_LATE : GT_JOINED_DONE);
    h_close(&again);
  }
}

TESTS(a_finished_peer_stays_out, one_that_trains_again_counts_again,
      a_resumed_region_says_whether_it_is_done)
