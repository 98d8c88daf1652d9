/* Acknowledgements over a store: they go with the next data to the peer, or before the next control
   message, and never wait for data that does not come. */
#include "geotrain/outbox.h"
#include "tests.h"

#define PEER  1
#define BYTES ((size_t)8)

typedef struct {
  gt_outbox *outbox;
  gt_frame_header last; /* data sent */
  size_t data, acks, others;
  uint64_t acknowledged; /* by the last ACK */
} region;

static void send(void *ctx, size_t peer, const gt_frame_header *head, const void *body,
                 size_t bytes, uint64_t cookie) {
  region *r = ctx;
  (void)peer, (void)body, (void)bytes, (void)cookie;
  if (gt_msg_is_data(head->kind)) {
    r->last = *head;
    r->data++;
  } else if (head->kind == GT_MSG_ACK) {
    r->acknowledged = head->value;
    r->acks++;
  } else
    r->others++;
}

static bool drop(void *ctx, size_t peer, uint64_t cookie) {
  (void)ctx, (void)peer, (void)cookie;
  return false;
}

static const int64_t samples = 0;
static const uint32_t number = 0;

static void open_region(region *r, bool carries) {
  *r = (region){0};
  r->outbox = gt_outbox_create(&(gt_outbox_spec){.nregions = 2,
                                                 .outbox = 2,
                                                 .window = 2,
                                                 .with_memory = true,
                                                 .carries = carries,
                                                 .samples = &samples,
                                                 .number = &number,
                                                 .gateway = {r, send, drop}});
  gt_outbox_open(r->outbox, &(gt_outbox_use){.unit = 1, .body = BYTES});
}

static void post(region *r) {
  const gt_outbox_message m = {
      .payload = gt_outbox_body(r->outbox, BYTES), .bytes = BYTES, .head = {.kind = GT_MSG_UPDATE}};
  gt_outbox_post(r->outbox, PEER, &m);
}

/* The peer's message arrives; answered: it makes the region post one. */
static void receive(region *r, int64_t sequence, bool answered) {
  gt_outbox_pause(r->outbox, PEER, true);
  if (answered) post(r);
  gt_outbox_received(r->outbox, PEER, sequence);
  gt_outbox_ack(r->outbox, PEER, 1);
  gt_outbox_pause(r->outbox, PEER, false);
}

static void an_answer_carries_the_acknowledgement(void) {
  region r;
  open_region(&r, true);
  receive(&r, 1, true);
  assert_true(r.data == 1 && r.acks == 0 && r.last.acknowledged == 1);
  assert_true(gt_outbox_acknowledged(r.outbox, PEER, 1, true));
  receive(&r, 2, false); /* the answer comes later */
  assert_true(r.data == 1 && r.acks == 0);
  post(&r);
  assert_true(r.data == 2 && r.acks == 0 && r.last.acknowledged == 2);
  gt_outbox_close(r.outbox);
}

static void a_region_that_does_not_answer_acknowledges_at_once(void) {
  region r;
  open_region(&r, true);
  receive(&r, 1, false);
  assert_true(r.acks == 1 && r.acknowledged == 1);
  post(&r);
  receive(&r, 2, false);
  assert_true(r.acks == 1);
  receive(&r, 3, false); /* the second one waits for nothing */
  assert_true(r.acks == 2 && r.acknowledged == 3);
  gt_outbox_close(r.outbox);
}

static void a_control_message_brings_what_waits(void) {
  region r;
  open_region(&r, true);
  post(&r);
  receive(&r, 1, false);
  assert_true(r.acks == 0);
  gt_outbox_control(r.outbox, PEER, (gt_frame_header){.kind = GT_MSG_DONE}, NULL, 0);
  assert_true(r.acks == 1 && r.acknowledged == 1 && r.others == 1);
  gt_outbox_control(r.outbox, PEER, (gt_frame_header){.kind = GT_MSG_BYE}, NULL, 0);
  assert_true(r.acks == 1 && r.others == 2);
  gt_outbox_close(r.outbox);
}

static void a_region_with_no_more_data_acknowledges(void) {
  region r;
  open_region(&r, true);
  post(&r);
  receive(&r, 1, false);
  assert_true(r.acks == 0);
  gt_outbox_ack_owed(r.outbox);
  assert_true(r.acks == 1 && r.acknowledged == 1 && r.others == 0);
  gt_outbox_ack_owed(r.outbox);
  assert_true(r.acks == 1);
  gt_outbox_close(r.outbox);
}

static void without_a_store_each_message_is_acknowledged(void) {
  region r;
  open_region(&r, false);
  receive(&r, 1, true);
  receive(&r, 2, true);
  assert_true(r.acks == 2 && r.acknowledged == 2 && r.last.acknowledged == 0);
  gt_outbox_close(r.outbox);
}

/* Half a round trip of 2 s is that of the acknowledgement. */
static void the_time_until_a_message_is_taken_is_measured(void) {
  region r;
  open_region(&r, false);
  gt_outbox_at(r.outbox, 2 * GT_SECOND);
  gt_outbox_pong(r.outbox, PEER, &(gt_frame_header){.kind = GT_MSG_PONG, .value = 0});
  gt_outbox_view v = gt_outbox_get_view(r.outbox, PEER);
  assert_true(v.latency_s == 1 && v.staleness_s == 0 && v.staleness_s_longest == 0);
  post(&r);
  gt_outbox_at(r.outbox, 5 * GT_SECOND);
  post(&r);
  assert_true(gt_outbox_acknowledged(r.outbox, PEER, 1, false));
  gt_outbox_at(r.outbox, 10 * GT_SECOND);
  assert_true(gt_outbox_acknowledged(r.outbox, PEER, 2, false));
  v = gt_outbox_get_view(r.outbox, PEER);
  assert_true(v.staleness_s == 3 && v.staleness_s_longest == 4);
  gt_outbox_close(r.outbox);
}

/* The gateway never says that these messages have left. */
static void messages_to_a_lost_peer_keep_no_memory(void) {
  region r;
  open_region(&r, false);
  gt_payload *body = gt_outbox_body(r.outbox, BYTES);
  for (int starts = 0; starts < 3; starts++) {
    post(&r);
    assert_ptr_not_equal(gt_outbox_body(r.outbox, BYTES), body);
    gt_outbox_lost(r.outbox, PEER);
    gt_outbox_renew(r.outbox, PEER, true);
    assert_ptr_equal(gt_outbox_body(r.outbox, BYTES), body);
  }
  gt_outbox_close(r.outbox);
}

TESTS(an_answer_carries_the_acknowledgement, a_region_that_does_not_answer_acknowledges_at_once,
      a_control_message_brings_what_waits, a_region_with_no_more_data_acknowledges,
      without_a_store_each_message_is_acknowledged, the_time_until_a_message_is_taken_is_measured,
      messages_to_a_lost_peer_keep_no_memory)
