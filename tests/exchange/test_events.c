/* One region of an exchange, event by event: the turns of models that wait for space, and the
   rounds that a region catches up with after a resume. */
#include "tests.h"
#include "geotrain/exchange.h"

#define REGIONS 4
#define FLOATS  2
#define SELF    0
#define POSTS   16

static const double weights[REGIONS] = {0.25, 0.25, 0.25, 0.25};
static const size_t hub[REGIONS] = {SELF, SELF, SELF, SELF}, ring[] = {1, 2, 0},
                    workers[REGIONS] = {1, 1, 1, 1};

/* Region SELF. */
typedef struct {
  gt_exchange *exchange;
  gt_allreduce *rounds;
  gt_broadcast *models;
  gt_outbox *outbox;
  float own[FLOATS];
  size_t to[POSTS]; /* destination of each posted message */
  gt_frame_header heads[POSTS];
  uint64_t cookies[POSTS];
  float first[POSTS]; /* float of each posted message */
  size_t nposts;
  float mean[FLOATS], share; /* of the last round */
  int64_t applied;           /* rounds */
} region;

/* ---- gateway --------------------------------------------------------------------------------- */

static void send(void *ctx, size_t to, const gt_frame_header *head, const void *body, size_t bytes,
                 uint64_t cookie) {
  region *r = ctx;
  assert_true(r->nposts < POSTS && bytes >= sizeof(float) && bytes <= FLOATS * sizeof(float));
  memcpy(&r->first[r->nposts], body, sizeof(float));
  r->heads[r->nposts] = *head;
  r->cookies[r->nposts] = cookie;
  r->to[r->nposts++] = to;
}

/* Fills the outbox to the region. */
static void occupy(region *r, size_t to) {
  const size_t bytes = FLOATS * sizeof(float);
  gt_outbox_post(r->outbox, to,
                 &(gt_outbox_message){.payload = gt_outbox_body(r->outbox, bytes), .bytes = bytes});
}

/* The oldest message to the region has left: there is space for one more. */
static void depart(region *r, size_t to) {
  size_t i = 0;
  while (r->to[i] != to || r->cookies[i] == 0) i++;
  assert_true(gt_outbox_departed(r->outbox, to, r->cookies[i]));
  assert_true(gt_outbox_acknowledged(r->outbox, to, (int64_t)r->heads[i].sequence, false));
  r->cookies[i] = 0;
}

static void take_means(void *ctx) {
  region *r = ctx;
  gt_vec mean;
  while (gt_allreduce_next(r->rounds, &mean, &r->share)) {
    memcpy(r->mean, mean.data, sizeof r->mean);
    r->applied++;
  }
}

static void nothing(void *ctx) {
  (void)ctx;
}

static void take_model(void *ctx, size_t origin, gt_vec body) {
  (void)ctx;
  assert_float_equal(body.data[0], (float)origin, 0);
}

static gt_collective_spec spec_of(region *r, gt_msg_kind kind, void (*changed)(void *ctx)) {
  return (gt_collective_spec){
      .owner = "test/", .kind = kind, .changed = changed, .received = take_model, .ctx = r};
}

static void open_region(region *r, gt_topology topology, size_t nregions,
                        const gt_exchange_codec *codec) {
  *r = (region){.own = {7, 8}};
  const gt_outbox_spec outbox = {.nregions = nregions,
                                 .self = SELF,
                                 .outbox = 1,
                                 .window = 1,
                                 .with_memory = true,
                                 .gateway = {.ctx = r, .send = send}};
  r->outbox = gt_outbox_create(&outbox);
  gt_outbox_open(r->outbox, &(gt_outbox_use){.unit = 1, .origin = SELF});
  const gt_exchange_spec spec = {.nregions = nregions,
                                 .self = SELF,
                                 .weights = weights,
                                 .inflight = POSTS,
                                 .with_memory = true,
                                 .topology = topology,
                                 .next = topology == GT_TOPOLOGY_HUB ? hub : ring,
                                 .workers = workers,
                                 .piece = FLOATS,
                                 .codec = codec,
                                 .outbox = r->outbox};
  r->exchange = gt_exchange_create(&spec);
}

static void close_region(region *r) {
  gt_allreduce_close(r->rounds);
  gt_broadcast_close(r->models);
  gt_exchange_close(r->exchange);
  gt_outbox_close(r->outbox);
}

static gt_frame_header head_of(size_t from, gt_msg_kind kind, uint64_t value, bool routed) {
  gt_frame_header head = {.kind = (uint8_t)kind,
                          .value = value,
                          .from = (uint16_t)from,
                          .message_bytes = FLOATS * sizeof(float)};
  if (!routed) return head;
  head.flags = GT_FRAME_ROUTED;
  head.route = (gt_frame_route){.origin = (uint16_t)from, .count = FLOATS};
  return head;
}

/* Receives a message of a region, whose floats are its number. */
static void receive(region *r, size_t from, gt_msg_kind kind, uint64_t value, bool routed) {
  const float body[FLOATS] = {(float)from, (float)from};
  const gt_frame_header head = head_of(from, kind, value, routed);
  must(gt_exchange_check(r->exchange, from, &head));
  assert_int_equal(gt_exchange_receive(r->exchange, from, &head, body), GT_RECEIPT_TAKEN);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Checks that the next model leaves when there is space for one message at region 3. */
static void assert_next_model_there(region *r, size_t origin, uint64_t value) {
  const size_t before = r->nposts;
  depart(r, 3);
  gt_exchange_room(r->exchange, 3);
  assert_int_equal(r->nposts, before + 1);
  assert_int_equal(r->to[before], 3);
  assert_int_equal(r->heads[before].route.origin, origin);
  assert_int_equal(r->heads[before].value, value);
}

/* A region that sends often does not keep the models of others from a slow link. */
static void test_models_take_turns(void) {
  region r;
  open_region(&r, GT_TOPOLOGY_HUB, REGIONS, NULL);
  const gt_collective_spec spec = spec_of(&r, GT_MSG_STATE, nothing);
  r.models = gt_broadcast_open(r.exchange, &spec, FLOATS, true);
  occupy(&r, 3);
  receive(&r, 1, GT_MSG_STATE, 1, true);
  receive(&r, 2, GT_MSG_STATE, 1, true);
  assert_next_model_there(&r, 1, 1);
  receive(&r, 1, GT_MSG_STATE, 2, true);
  assert_next_model_there(&r, 2, 1);
  receive(&r, 2, GT_MSG_STATE, 2, true);
  assert_next_model_there(&r, 1, 2);
  assert_next_model_there(&r, 2, 2);
  close_region(&r);
}

static void open_rounds(region *r, gt_topology topology, const gt_exchange_codec *codec) {
  open_region(r, topology, 3, codec);
  const gt_collective_spec spec = spec_of(r, GT_MSG_UPDATE, take_means);
  r->rounds = gt_allreduce_open(r->exchange, &spec, gt_vec_of(r->own, FLOATS), gt_vec_of(NULL, 0));
}

/* Regions 0 and 1 had finished after round 1 and resume training; region 2 has contributed to round
   2 alone: region 0 takes round 2 without region 1, which holds its workers as region 0 does. */
static void test_a_resume_ends_old_rounds_without_those_that_were_done(void) {
  region before, r;
  gt_state saved = {0};
  open_rounds(&before, GT_TOPOLOGY_MESH, NULL);
  gt_allreduce_contribute(before.rounds);
  take_means(&before);
  receive(&before, 1, GT_MSG_UPDATE, 1, false);
  receive(&before, 2, GT_MSG_UPDATE, 1, false);
  assert_int_equal(before.applied, 1);
  gt_allreduce_leave(before.rounds);
  must(gt_allreduce_state(before.rounds, (gt_state_direction){.to = &saved}));

  open_rounds(&r, GT_TOPOLOGY_MESH, NULL);
  must(gt_allreduce_state(r.rounds, (gt_state_direction){.from = &saved}));
  gt_exchange_start(r.exchange);
  receive(&r, 2, GT_MSG_UPDATE, 2, false);
  gt_exchange_peer(r.exchange, 1, GT_PEER_REJOINED, &(int64_t){1});
  assert_true(gt_allreduce_holds(r.rounds));
  assert_int_equal(r.applied, 0);
  gt_exchange_peer(r.exchange, 2, GT_PEER_JOINED, &(int64_t){2});
  assert_int_equal(r.applied, 1);
  assert_float_equal(r.mean[0], 2, 0);
  assert_float_equal(r.share, 0, 0);
  assert_false(gt_allreduce_holds(r.rounds));
  gt_state_close(&saved);
  close_region(&r);
  close_region(&before);
}

/* A region's contributions are of ascending rounds, whether the first of them has been queued or is
   held. */
static void test_a_round_comes_once(void) {
  static const gt_topology topologies[] = {GT_TOPOLOGY_MESH, GT_TOPOLOGY_HUB};
  for (size_t i = 0; i < 4; i++) {
    region r;
    const bool paused = i % 2, routed = topologies[i / 2] == GT_TOPOLOGY_HUB;
    open_rounds(&r, topologies[i / 2], NULL);
    gt_exchange_pause(r.exchange, paused);
    gt_frame_header head = head_of(1, GT_MSG_UPDATE, 4, routed);
    const float body[FLOATS] = {0};
    head.route.weight = weights[1];
    must(gt_exchange_check(r.exchange, 1, &head));
    assert_int_equal(gt_exchange_receive(r.exchange, 1, &head, body),
                     paused ? GT_RECEIPT_HELD : GT_RECEIPT_TAKEN);
    must_fail(gt_exchange_check(r.exchange, 1, &head), GT_ERR_FAULT, "round 4; expected one after");
    head.value = 5;
    must(gt_exchange_check(r.exchange, 1, &head));
    close_region(&r);
  }
}

/* Of 2 floats, chunks 0 and 1 of 3 have 0 and 1 floats: the region before sends chunks 2, 1, 0
   and 2. */
static void test_chunks_behind_held_ones(void) {
  region r;
  open_rounds(&r, GT_TOPOLOGY_RING, NULL);
  gt_exchange_pause(r.exchange, true);
  static const gt_frame_route chunks[] = {
      {.offset = 1, .count = 1}, {.count = 1}, {.count = 0}, {.offset = 1, .count = 1}};
  for (size_t i = 0; i < COUNT(chunks); i++) {
    gt_frame_header head = head_of(2, GT_MSG_UPDATE, 1, true);
    const float body[FLOATS] = {0};
    head.route.weight = weights[2];
    must_fail(gt_exchange_check(r.exchange, 2, &head), GT_ERR_FAULT, "2 floats from 0 on");
    head.route.offset = chunks[i].offset;
    head.route.count = chunks[i].count;
    head.message_bytes = chunks[i].count * sizeof(float);
    must(gt_exchange_check(r.exchange, 2, &head));
    assert_int_equal(gt_exchange_receive(r.exchange, 2, &head, body), GT_RECEIPT_HELD);
  }
  close_region(&r);
}

/* Answers of the root, region 1: the first one waits to be applied, the others are held. */
static void test_answers_behind_held_ones(void) {
  region r;
  open_region(&r, GT_TOPOLOGY_CENTRAL, 3, NULL);
  const gt_collective_spec spec = spec_of(&r, GT_MSG_UPDATE, nothing);
  r.rounds = gt_allreduce_open(r.exchange, &spec, gt_vec_of(r.own, FLOATS), gt_vec_of(NULL, 0));
  for (uint64_t round = 1; round <= 4; round++) {
    gt_frame_header head = head_of(1, GT_MSG_UPDATE, round + 1, true);
    const float body[FLOATS] = {0};
    head.detail = head.route.destination_rank = 1;
    head.route.weight = 1;
    must_fail(gt_exchange_check(r.exchange, 1, &head), GT_ERR_FAULT, "expected that of round");
    head.value = round;
    must(gt_exchange_check(r.exchange, 1, &head));
    assert_int_equal(gt_exchange_receive(r.exchange, 1, &head, body),
                     round == 1 ? GT_RECEIPT_TAKEN : GT_RECEIPT_HELD);
  }
  close_region(&r);
}

/* powersgd sends a vector as it is, in its second step: the first one has nothing but this. */
static void test_nonfinite_without_factors(void) {
  static const gt_view vector = {.name = "v", .count = FLOATS, .shape = {FLOATS}, .ndims = 1};
  const gt_exchange_codec codec = {.kind = GT_CODEC_POWERSGD,
                                   .spec = {.rank = 4, .decay = 1},
                                   .tensors = &vector,
                                   .ntensors = 1};
  static const float own[] = {NAN, INFINITY, 0x1p121F, 1};
  for (size_t i = 0; i < COUNT(own); i++) {
    region r;
    open_rounds(&r, GT_TOPOLOGY_MESH, &codec);
    r.own[1] = own[i];
    gt_allreduce_contribute(r.rounds);
    take_means(&r);
    assert_int_equal(r.nposts, 2);
    assert_int_equal(isnan(r.first[0]), own[i] != 1);
    close_region(&r);
  }
}

TESTS(test_models_take_turns, test_a_resume_ends_old_rounds_without_those_that_were_done,
      test_a_round_comes_once, test_chunks_behind_held_ones, test_answers_behind_held_ones,
      test_nonfinite_without_factors)
