/* ranks: 2; processors: 1; wraps: gt_panic */
/* Activations and their gradients interleaved with data, under every timing: they arrive whole and
   in the order queued, are reported when they have left, and the ledger counts every byte.  Invalid
   headers are refused. */
#include "panic.h"
#include "geotrain/net_mpi.h"
#include "internal.h"

#define LIMIT_S     60.0
#define PAYLOAD_MAX ((size_t)3 << 20)
#define MESSAGES    UINT64_C(120)
#define SEED        9
#define NO_EVENT    (GT_NEVER - 1)

typedef enum { DIRECT, EMULATED, VIRTUAL } timing;

static const gt_link_spec link_of = {.bandwidth_bps = 2e9, .latency_s = 0.003, .back_s = 0.003};
static gt_peers *world;
static int rank;
static uint8_t *pool; /* the same bytes on both ranks: payloads are parts of it */

/* ---- messages -------------------------------------------------------------------------------- */

/* Message `number` (from 1) of a rank; every rank can compute it. */
typedef struct {
  gt_frame_header head;
  size_t bytes, at; /* at: in the pool */
} sent;

static size_t size_of(gt_rng *rng, uint64_t number) {
  static const size_t special[] = {0, 1, GT_FRAME_PAYLOAD_MAX, GT_FRAME_PAYLOAD_MAX + 1,
                                   PAYLOAD_MAX};
  if (number <= 10) return special[(number - 1) % 5]; /* of both kinds */
  return (size_t)gt_rng_below(rng, number % 16 == 0 ? PAYLOAD_MAX + 1 : 30000);
}

static gt_frame_route route_of(int from, uint64_t number) {
  return (gt_frame_route){.origin = (uint16_t)from,
                          .origin_rank = (uint16_t)(1 + number % 3),
                          .destination = (uint16_t)(1 - from),
                          .destination_rank = (uint16_t)(1 + number % 2),
                          .offset = number % 8,
                          .count = 4};
}

/* Returns a message: every third is data, which has a sequence; the kinds of the others vary. */
static sent message_of(int from, uint64_t number) {
  gt_rng rng = gt_rng_make(SEED, GT_RNG_TEST, (uint64_t)from, number);
  sent m = {.bytes = size_of(&rng, number), .at = (size_t)gt_rng_below(&rng, 1000)};
  const bool data = number > 10 && number % 3 == 0;
  m.head = (gt_frame_header){.value = number, .range = (uint32_t)(number % 5)};
  if (data) {
    m.head.kind = GT_MSG_STATE;
    m.head.sequence = number;
    return m;
  }
  m.head.kind = (number - 1) / 5 % 2 ? GT_MSG_ACT_GRADIENT : GT_MSG_ACTIVATION;
  m.head.flags = GT_FRAME_ROUTED;
  m.head.route = route_of(from, number);
  return m;
}

/* ---- a side ---------------------------------------------------------------------------------- */

typedef struct {
  gt_gateway *g;
  timing timing;
  uint64_t received, departed, control;
  const uint8_t *buffer; /* the buffer in which messages of several frames are reassembled */
  gt_link_state link;    /* of the incoming direction, by the model */
  gt_ns at, safe;
} side;

static gt_ns arrival_by_the_model(side *s, const sent *m) {
  gt_ns arrive = 0;
  for (size_t taken = 0, first = 1; first || taken < m->bytes; first = 0) {
    const size_t left = m->bytes - taken,
                 n = left < GT_FRAME_PAYLOAD_MAX ? left : GT_FRAME_PAYLOAD_MAX;
    taken += n;
    arrive = gt_link_step(&s->link, &link_of, NULL, n + gt_header_bytes(&m->head), 0).arrive;
  }
  return arrive;
}

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                       gt_ns now) {
  side *s = ctx;
  if (gt_msg_is_control(head->kind)) {
    s->control++;
    return;
  }
  const sent m = message_of((int)peer, ++s->received);
  if (s->buffer) assert_ptr_equal(s->g->receivers[peer].message, s->buffer); /* it is kept */
  s->buffer = s->g->receivers[peer].message;
  assert_int_equal(head->kind, m.head.kind);
  assert_int_equal(head->value, s->received);
  assert_int_equal(head->range, m.head.range);
  assert_int_equal(head->sequence, m.head.sequence);
  assert_int_equal(head->flags, m.head.flags);
  assert_int_equal(head->from, peer);
  assert_memory_equal(&head->route, &m.head.route, sizeof m.head.route);
  assert_int_equal(head->message_bytes, m.bytes);
  if (m.bytes) assert_memory_equal(payload, pool + m.at, m.bytes);
  if (s->timing == VIRTUAL) assert_int_equal(now, arrival_by_the_model(s, &m));
}

static void on_departed(void *ctx, size_t peer, uint64_t cookie, gt_ns now) {
  (void)peer, (void)now;
  side *s = ctx;
  assert_int_equal(cookie, ++s->departed);
}

static void open_side(side *s, timing how, gt_peers *peers) {
  const gt_link_spec links[2] = {link_of, link_of};
  const gt_ns delay = gt_link_delay_min(&link_of), delays[4] = {0, delay, delay, 0};
  const gt_gateway_spec spec = {.nregions = 2,
                                .names = (const char *const[]){"a", "b"},
                                .self = (size_t)rank,
                                .links = links,
                                .emulate = how == EMULATED,
                                .virtual_clock = how == VIRTUAL,
                                .seed = SEED,
                                .payload_max = PAYLOAD_MAX};
  const gt_gateway_events events = {.ctx = s, .on_message = on_message, .on_departed = on_departed};
  *s = (side){.timing = how, .link = gt_link_start(SEED, (size_t)(1 - rank), (size_t)rank, 0)};
  s->g = gt_gateway_create(peers, &spec, &events);
  if (how == VIRTUAL) gt_gateway_virtual(s->g, delays);
  gt_peers_meet(peers, &(gt_peers_wait){.what = "the other side", .limit_s = LIMIT_S});
}

static bool done(const side *s) {
  return s->received == MESSAGES && s->departed == MESSAGES;
}

static void run_really(side *s) {
  gt_backoff backoff = {0};
  const gt_ns deadline = gt_now() + gt_from_seconds(LIMIT_S);
  while (!done(s) || s->control == 0) {
    assert_true(gt_now() < deadline);
    if (gt_gateway_poll(s->g, gt_now()))
      gt_backoff_reset(&backoff);
    else
      gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, gt_gateway_next(s->g, NULL));
  }
}

static void agree(side *s, gt_ns next) {
  gt_backoff backoff = {0};
  const gt_ns deadline = gt_now() + gt_from_seconds(LIMIT_S);
  gt_gateway_propose(s->g, next == GT_NEVER ? NO_EVENT : next);
  while (!gt_gateway_agreed(s->g, &s->safe)) {
    assert_true(gt_now() < deadline);
    gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, GT_NEVER);
  }
}

static void run_virtually(side *s) {
  while (!done(s)) {
    const gt_ns frame = gt_gateway_arrival(s->g), link = gt_gateway_next(s->g, NULL);
    gt_ns next = frame < link ? frame : link;
    if (next < s->at) next = s->at;
    if (next >= s->safe) {
      agree(s, next);
      continue;
    }
    s->at = next;
    if (frame <= link)
      gt_gateway_deliver(s->g, s->at);
    else
      gt_gateway_poll(s->g, s->at);
  }
  gt_gateway_propose(s->g, GT_NEVER);
}

static void check_ledger(const side *s) {
  const gt_ledger_row *rows = gt_gateway_ledger(s->g, 1 - (size_t)rank);
  gt_ledger_row sum[GT_LEDGER_KINDS] = {{0}};
  for (uint64_t i = 1; i <= MESSAGES; i++) {
    const sent m = message_of(rank, i);
    gt_ledger_row *row = &sum[m.head.kind];
    const size_t frames = m.bytes ? (m.bytes + GT_FRAME_PAYLOAD_MAX - 1) / GT_FRAME_PAYLOAD_MAX : 1;
    row->messages++;
    row->frames += (int64_t)frames;
    row->payload_bytes += (int64_t)m.bytes;
    row->wire_bytes += (int64_t)(m.bytes + frames * (gt_msg_is_data(m.head.kind) ? 64 : 96));
  }
  for (uint32_t k = 0; k < GT_LEDGER_KINDS; k++) {
    if (!gt_msg_is_traffic(k)) continue;
    assert_memory_equal(&rows[k], &sum[k], sizeof sum[k]);
    assert_true((sum[k].messages > 0) == (k != GT_MSG_UPDATE));
  }
}

/* Uses its own communicator, because one side can end while frames of the other are in flight. */
static void exchange(timing how) {
  side s;
  MPI_Comm comm;
  MPI_Comm_dup(gt_peers_mpi(world), &comm);
  gt_peers *own = gt_peers_of_mpi(comm, true);
  open_side(&s, how, own);
  for (uint64_t i = 1; i <= MESSAGES; i++) {
    const sent m = message_of(rank, i);
    gt_gateway_send(s.g, 1 - (size_t)rank, &m.head, pool + m.at, m.bytes, i,
                    how == VIRTUAL ? 0 : gt_now());
  }
  if (how == VIRTUAL) {
    run_virtually(&s);
  } else {
    gt_gateway_send(s.g, 1 - (size_t)rank, &(gt_frame_header){.kind = GT_MSG_PING}, NULL, 0, 0,
                    gt_now());
    run_really(&s);
  }
  check_ledger(&s);
  assert_non_null(s.buffer);
  gt_gateway_close(s.g, LIMIT_S);
  gt_peers_close(own);
  assert_int_equal(gt_alloc_alive(), 2); /* the pool and the world */
}

static void sent_at_once(void) {
  exchange(DIRECT);
}

static void emulated(void) {
  exchange(EMULATED);
}

/* Arrivals are those of the link model, with headers of 96 bytes. */
static void under_the_virtual_clock(void) {
  exchange(VIRTUAL);
}

/* ---- headers --------------------------------------------------------------------------------- */

typedef struct {
  gt_gateway *g;
  const gt_frame_header *head;
  bool hand_on;
} arrival;

/* Receives the frame of this header, from the other region, as if from the transport. */
static void arrive(const arrival *a) {
  uint8_t frame[GT_FRAME_HEADER_MAX + 64] = {0};
  const size_t bytes = gt_header_bytes(a->head) + a->head->frame_bytes;
  memcpy(frame, a->head, gt_header_bytes(a->head));
  gt_receive_check(a->g, 1 - (size_t)rank, frame, bytes);
  if (a->hand_on) gt_receive_hand_on(a->g, 1 - (size_t)rank, frame, 0);
}

static void refused(const arrival *a, const char *why) {
  must_panic(why, arrive(a));
}

static gt_frame_header first_frame(void) {
  return (gt_frame_header){.magic = GT_FRAME_MAGIC,
                           .kind = GT_MSG_ACTIVATION,
                           .from = (uint16_t)(1 - rank),
                           .frame_bytes = 40,
                           .message_bytes = 100,
                           .value = 5,
                           .range = 1,
                           .flags = GT_FRAME_ROUTED,
                           .route = route_of(1 - rank, 5)};
}

static void routes_are_needed(void) {
  side s;
  open_side(&s, DIRECT, world);
  gt_frame_header h = first_frame();
  const arrival a = {.g = s.g, .head = &h};
  arrive(&a);
  h.kind = GT_MSG_ACT_GRADIENT;
  arrive(&a);
  h.flags = 0, refused(&a, "is an activation without a route (kind 35");
  h.kind = GT_MSG_MODEL;
  arrive(&a);
  h.flags = GT_FRAME_ROUTED, refused(&a, "has a route but is not data");
  h.kind = GT_MSG_PING, refused(&a, "has a route but is not data");
  h.kind = GT_MSG_UPDATE;
  arrive(&a);
  h = first_frame(), h.route.weight = 0.5, refused(&a, "with a weight");
  h = first_frame(), h.kind = GT_MSG_ACT_GRADIENT + 1, h.flags = 0;
  refused(&a, "has an unknown kind");
  gt_gateway_close(s.g, LIMIT_S);
}

/* Frames of two activations, or of an activation and data, do not mix. */
static void messages_do_not_mix(void) {
  side s;
  open_side(&s, DIRECT, world);
  gt_frame_header h = first_frame();
  const arrival a = {.g = s.g, .head = &h, .hand_on = true};
  arrive(&a);
  const gt_frame_header second = h;
  h = second, h.frame_offset = 40, h.value = 6, refused(&a, "interrupts another message");
  h = second, h.frame_offset = 40, h.range = 2, refused(&a, "interrupts another message");
  h = second, h.frame_offset = 40, h.route.offset++, refused(&a, "interrupts another message");
  h = second, h.frame_offset = 40, h.route.destination_rank++;
  refused(&a, "interrupts another message");
  h = second, h.frame_offset = 40, h.kind = GT_MSG_ACT_GRADIENT;
  refused(&a, "interrupts another message");
  h = second, h.frame_offset = 40, h.kind = GT_MSG_UPDATE;
  refused(&a, "interrupts another message");
  h = second, refused(&a, "leaves a gap in its message");
  h = second, h.frame_offset = 40;
  arrive(&a);
  gt_gateway_close(s.g, LIMIT_S);
}

int main(void) {
  world = gt_net_start(LIMIT_S);
  rank = (int)world->rank;
  pool = gt_alloc(PAYLOAD_MAX + 1000, 1);
  gt_rng rng = gt_rng_make(SEED, GT_RNG_TEST, 77, 0);
  for (size_t i = 0; i < PAYLOAD_MAX + 1000; i++) pool[i] = (uint8_t)gt_rng_u64(&rng);
  int failed = RUN_TESTS(NULL, NULL, sent_at_once, emulated, under_the_virtual_clock,
                         routes_are_needed, messages_do_not_mix);
  gt_free(pool);
  gt_net_finalize(world, LIMIT_S);
  return failed;
}
