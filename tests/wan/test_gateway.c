/* ranks: 2 3; processors: 1 */
/* The gateway without emulation: messages of all sizes arrive whole and in order, control overtakes
   data, the ledger counts every byte. */
#include "internal.h"
#include "tests.h"

#define LIMIT_S     40.0
#define PAYLOAD_MAX ((size_t)5 << 20)
#define MESSAGES    60

static gt_peers *world;
static int rank, size;

typedef struct {
  gt_gateway *g;
  int64_t received[8], control[8], departed[8];
  bool control_first;
} side;

/* Every rank can compute every message: sizes and bytes are drawn from (from, to, number). */
static size_t size_of(size_t from, size_t to, int64_t number) {
  static const size_t special[] = {0,
                                   1,
                                   63,
                                   64,
                                   GT_FRAME_PAYLOAD_MAX - 1,
                                   GT_FRAME_PAYLOAD_MAX,
                                   GT_FRAME_PAYLOAD_MAX + 1,
                                   PAYLOAD_MAX};
  if (number <= 8) return special[number - 1];
  gt_rng rng = gt_rng_make(5, GT_RNG_TEST, from * 8 + to, (uint64_t)number);
  return (size_t)gt_rng_below(&rng, number % 10 == 0 ? PAYLOAD_MAX + 1 : 20000);
}

static uint8_t *bytes_of(size_t from, size_t to, int64_t number, size_t n) {
  uint8_t *bytes = gt_alloc(n + 8, 1);
  gt_rng rng = gt_rng_make(6, GT_RNG_TEST, from * 8 + to, (uint64_t)number);
  for (size_t i = 0; i < n; i += 8) {
    uint64_t word = gt_rng_u64(&rng);
    memcpy(bytes + i, &word, 8);
  }
  return bytes;
}

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                       gt_ns now) {
  (void)now;
  side *s = ctx;
  if (gt_msg_is_control(head->kind)) {
    s->control[peer]++;
    assert_int_equal(head->value, s->control[peer]);
    if (s->received[peer] < MESSAGES) s->control_first = true;
    return;
  }
  int64_t number = ++s->received[peer];
  assert_int_equal(head->sequence, number);
  assert_int_equal(head->from, peer);
  assert_int_equal(head->value, 1000 + number);
  assert_int_equal(head->detail, 7);
  assert_int_equal(head->message_bytes, size_of(peer, (size_t)rank, number));
  uint8_t *expected = bytes_of(peer, (size_t)rank, number, head->message_bytes);
  if (head->message_bytes) assert_memory_equal(payload, expected, head->message_bytes);
  gt_free(expected);
}

/* Cookies are reported in the order in which messages were queued. */
static void on_departed(void *ctx, size_t peer, uint64_t cookie, gt_ns now) {
  (void)now;
  side *s = ctx;
  assert_int_equal(cookie, ++s->departed[peer]);
}

static void poll_until(side *s, bool (*done)(const side *)) {
  gt_backoff backoff = {0};
  gt_ns deadline = gt_now() + gt_from_seconds(LIMIT_S);
  while (!done(s)) {
    assert_true(gt_now() < deadline);
    if (gt_gateway_poll(s->g, gt_now()))
      gt_backoff_reset(&backoff);
    else
      gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, GT_NEVER);
  }
}

static bool all_done(const side *s) {
  for (int p = 0; p < size; p++) {
    if (p != rank && (s->received[p] < MESSAGES || s->departed[p] < MESSAGES || s->control[p] < 3))
      return false;
  }
  return true;
}

static void check_ledger(const side *s, size_t peer) {
  gt_ledger_row expected = {0};
  for (int64_t i = 1; i <= MESSAGES; i++) {
    size_t n = size_of((size_t)rank, peer, i);
    expected.messages++;
    expected.payload_bytes += (int64_t)n;
    expected.wire_bytes += (int64_t)gt_wire_bytes(n);
    expected.frames += (int64_t)(gt_wire_bytes(n) - n) / GT_FRAME_HEADER_BYTES;
  }
  const gt_ledger_row *ledger = gt_gateway_ledger(s->g, peer);
  assert_memory_equal(&ledger[GT_MSG_UPDATE], &expected, sizeof expected);
  gt_ledger_row control = {
      .messages = 3, .frames = 3, .payload_bytes = 0, .wire_bytes = 3 * GT_FRAME_HEADER_BYTES};
  assert_memory_equal(&ledger[GT_MSG_ACK], &control, sizeof control);
}

#define GROUP_MAX (3 * PAYLOAD_MAX)

/* objects: data is one frame, as over a store. */
static gt_gateway *open_with(side *s, size_t payload_max, bool objects) {
  gt_link_spec links[8] = {{0}};
  for (size_t i = 0; i < 8 && objects; i++) links[i].look_s = links[i].every_s = 1;
  gt_gateway_spec spec = {.nregions = (size_t)size,
                          .names = (const char *const[]){"a", "b", "c", "d", "e", "f", "g", "h"},
                          .self = (size_t)rank,
                          .links = links,
                          .seed = 1,
                          .payload_max = payload_max,
                          .group_max = objects ? GROUP_MAX : 0};
  gt_gateway_events events = {.ctx = s, .on_message = on_message, .on_departed = on_departed};
  gt_gateway *g = gt_gateway_create(world, &spec, &events);
  /* the previous test's gateway is closed everywhere, so it takes none of this one's frames */
  gt_peers_meet(world, &(gt_peers_wait){.what = "the other regions", .limit_s = LIMIT_S});
  return g;
}

static gt_gateway *open_gateway(side *s, size_t payload_max) {
  return open_with(s, payload_max, false);
}

static void messages_arrive_whole_and_in_order(void) {
  side s = {.g = open_gateway(&s, PAYLOAD_MAX)};
  uint8_t *payloads[8][MESSAGES + 1] = {{NULL}};
  for (size_t p = 0; p < (size_t)size; p++) {
    for (int64_t i = 1; p != (size_t)rank && i <= MESSAGES; i++) {
      size_t n = size_of((size_t)rank, p, i);
      payloads[p][i] = bytes_of((size_t)rank, p, i, n);
      gt_frame_header head = {.kind = GT_MSG_UPDATE,
                              .sequence = (uint64_t)i,
                              .value = (uint64_t)(1000 + i),
                              .detail = 7};
      gt_gateway_send(s.g, p, &head, payloads[p][i], n, (uint64_t)i, gt_now());
    }
    for (uint64_t i = 1; p != (size_t)rank && i <= 3; i++)
      gt_gateway_send(s.g, p, &(gt_frame_header){.kind = GT_MSG_ACK, .value = i}, NULL, 0, 0,
                      gt_now());
  }
  poll_until(&s, all_done);
  assert_true(s.control_first); /* queued after all data, but arrived before the end of it */
  for (size_t p = 0; p < (size_t)size; p++) {
    if (p == (size_t)rank) continue;
    check_ledger(&s, p);
    assert_int_equal(gt_gateway_queued(s.g, p), 0);
    assert_true(gt_gateway_heard(s.g, p) <= gt_now());
    for (int64_t i = 1; i <= MESSAGES; i++) gt_free(payloads[p][i]);
  }
  assert_int_equal(gt_gateway_next(s.g, NULL), GT_NEVER);
  assert_true(gt_gateway_emulation_s(s.g) == 0.0);
  gt_gateway_close(s.g, LIMIT_S);
}

/* One side sends more frames than the other has receives posted, and both close at once: neither
   blocks, and late frames are dropped. */
static void close_with_frames_in_flight(void) {
  side s = {.g = open_gateway(&s, PAYLOAD_MAX)};
  uint8_t *payload = gt_alloc(PAYLOAD_MAX, 1);
  gt_frame_header head = {.kind = GT_MSG_MODEL, .sequence = 1};
  if (rank == 0) {
    for (int i = 0; i < 2; i++) gt_gateway_send(s.g, 1, &head, payload, PAYLOAD_MAX, 0, gt_now());
    assert_int_equal(gt_gateway_queued(s.g, 1), 2);
    assert_int_equal(gt_gateway_next(s.g, NULL), 0);
    gt_gateway_poll(s.g, gt_now());
    assert_true(s.g->senders[1].launched >= 4);
    assert_true(gt_gateway_queued(s.g, 1) <= 1);
  }
  gt_gateway_close(s.g, LIMIT_S);
  gt_free(payload);
}

/* Checks that the buffer of a message is allocated when the message arrives, and freed after a
   model, which is sent once. */
static void rooms_are(const side *s, bool needed) {
  for (int p = 0; p < size; p++)
    if (p != rank && (s->g->receivers[p].message != NULL) != needed)
      fail_msg("room for %zu bytes from rank %d: %d", s->g->message_max, p, !needed);
}

static bool models_done(const side *s) {
  for (int p = 0; p < size; p++)
    if (p != rank && (s->received[p] < 1 || s->departed[p] < 1)) return false;
  return true;
}

static void count_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                          gt_ns now) {
  (void)head, (void)payload, (void)now;
  ((side *)ctx)->received[peer]++;
}

static void room_is_there_when_it_is_needed(void) {
  uint8_t *payload = gt_alloc(PAYLOAD_MAX, 1);
  for (int data = 0; data < 2; data++) {
    side s = {.g = open_gateway(&s, PAYLOAD_MAX)};
    s.g->events.on_message = count_message;
    rooms_are(&s, false);
    gt_frame_header head = {.kind = data ? GT_MSG_STATE : GT_MSG_MODEL, .sequence = (uint64_t)data};
    for (size_t p = 0; p < (size_t)size; p++)
      if (p != (size_t)rank) gt_gateway_send(s.g, p, &head, payload, PAYLOAD_MAX, 1, gt_now());
    poll_until(&s, models_done);
    rooms_are(&s, data != 0);
    gt_gateway_close(s.g, LIMIT_S);
  }
  gt_free(payload);
}

typedef struct {
  side base;
  uint8_t *group;
  int data, groups;
} store_side;

static void take_object(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                        gt_ns now) {
  store_side *s = ctx;
  (void)peer, (void)now;
  if (head->kind == GT_MSG_GROUP) {
    assert_true(head->message_bytes == GROUP_MAX);
    assert_memory_equal(payload, s->group, GROUP_MAX);
    s->groups++;
    return;
  }
  assert_true(head->frame_bytes == PAYLOAD_MAX && head->acknowledged == 7);
  s->data++;
}

static bool objects_done(const side *s) {
  const store_side *o = (const store_side *)s;
  for (int p = 0; p < size; p++)
    if (p != rank && s->departed[p] < 2) return false;
  return o->data == size - 1 && o->groups == size - 1;
}

/* Over a store data is one frame, whose header has an acknowledgement instead of an offset; the
   state of a group, which can be larger than any data, still has several frames. */
static void objects_and_groups_arrive_whole(void) {
  store_side s = {.group = bytes_of(0, 0, 1, GROUP_MAX)};
  s.base.g = open_with(&s.base, PAYLOAD_MAX, true);
  s.base.g->events =
      (gt_gateway_events){.ctx = &s, .on_message = take_object, .on_departed = on_departed};
  const gt_frame_header data = {.kind = GT_MSG_UPDATE, .sequence = 1, .acknowledged = 7},
                        group = {.kind = GT_MSG_GROUP};
  for (size_t p = 0; p < (size_t)size; p++) {
    if (p == (size_t)rank) continue;
    gt_gateway_send(s.base.g, p, &data, s.group, PAYLOAD_MAX, 1, gt_now());
    gt_gateway_send(s.base.g, p, &group, s.group, GROUP_MAX, 2, gt_now());
  }
  poll_until(&s.base, objects_done);
  gt_gateway_close(s.base.g, LIMIT_S);
  gt_free(s.group);
}

/* Steady traffic does not allocate. */
static bool five_received(const side *s) {
  for (int p = 0; p < size; p++) {
    if (p != rank && (s->received[p] < 5 || s->departed[p] < 5)) return false;
  }
  return true;
}

static void queues_do_not_allocate(void) {
  side s = {.g = open_gateway(&s, PAYLOAD_MAX)};
  uint8_t *payload[8];
  for (int64_t i = 1; i <= 5; i++) {
    for (size_t p = 0; p < (size_t)size; p++) {
      if (p == (size_t)rank) continue;
      payload[p] = bytes_of((size_t)rank, p, i, size_of((size_t)rank, p, i));
      gt_frame_header head = {.kind = GT_MSG_STATE,
                              .sequence = (uint64_t)i,
                              .value = (uint64_t)(1000 + i),
                              .detail = 7};
      int64_t before = gt_alloc_total();
      gt_gateway_send(s.g, p, &head, payload[p], size_of((size_t)rank, p, i), (uint64_t)i,
                      gt_now());
      if (i > 1) assert_int_equal(gt_alloc_total(), before);
    }
    for (size_t p = 0; p < (size_t)size; p++) {
      gt_backoff backoff = {0};
      while (p != (size_t)rank && s.departed[p] < i) {
        gt_gateway_poll(s.g, gt_now());
        gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, GT_NEVER);
      }
      if (p != (size_t)rank) gt_free(payload[p]);
    }
  }
  poll_until(&s, five_received);
  gt_gateway_close(s.g, LIMIT_S);
}

int main(void) {
  world = gt_net_start(LIMIT_S);
  rank = (int)world->rank;
  size = (int)world->size;
  int failed = RUN_TESTS(NULL, NULL, messages_arrive_whole_and_in_order,
                         close_with_frames_in_flight, room_is_there_when_it_is_needed,
                         objects_and_groups_arrive_whole, queues_do_not_allocate);
  gt_net_finalize(world, LIMIT_S);
  return failed;
}
