/* Every message of a peer is checked against the job before it is used: kind, codec, range, length,
   numbers.  Invalid messages are refused with one sentence and change nothing. */
#include "world.h"
#include "../strategies.h"

static w_spec two(const char *strategy) {
  return (w_spec){.strategy = strategy,
                  .nregions = 2,
                  .workers = {1, 1},
                  .samples = {100, 100},
                  .until = {.epochs = 2},
                  .seed = 7};
}

/* Returns the next valid data message from region 0 to region 1. */
static gt_frame_header good(const world *w) {
  bool state = sync_named(w->spec.strategy)->sends == GT_MSG_STATE;
  return (gt_frame_header){.kind = state ? GT_MSG_STATE : GT_MSG_UPDATE,
                           .sequence = 1 + (uint64_t)w->regions[1].kept.applied[0],
                           .value = 1 + (uint64_t)w->regions[1].kept.applied[0],
                           .message_bytes = (state ? W_MODEL : W_PARAMS) * sizeof(float)};
}

static void refused(world *w, const gt_frame_header *head, const char *words) {
  static const float body[2 * W_MODEL] = {1, 1, 1};
  float params[W_PARAMS];
  w_region *r = &w->regions[1];
  memcpy(params, r->params, sizeof params);
  gt_ps_view before = w_view(w, 1);
  must_fail(gt_ps_message(r->ps, 0, head, body, w->now), GT_ERR_FAULT, words);
  gt_ps_view after = w_view(w, 1);
  assert_memory_equal(params, r->params, sizeof params);
  assert_true(after.round == before.round && after.phase == before.phase &&
              after.stop_code == before.stop_code);
}

static void test_data(void) {
  static const char *const names[] = {"asgd", "ssgd", "ama", "sma"};
  for (size_t i = 0; i < 4; i++) {
    w_spec s = two(names[i]);
    world *w = w_open(&s);
    const gt_frame_header head = good(w);
    gt_frame_header h = head;
    h.kind = head.kind == GT_MSG_STATE ? GT_MSG_UPDATE : GT_MSG_STATE;
    refused(w, &h, "kind");
    h = head, h.codec = 3;
    refused(w, &h, "codec 3");
    h = head, h.range = 2;
    refused(w, &h, "range 2");
    h = head, h.message_bytes -= 4;
    refused(w, &h, "bytes");
    h = head, h.message_bytes += 4;
    refused(w, &h, "bytes");
    h = head, h.message_bytes = 0;
    refused(w, &h, "bytes");
    h = head, h.sequence += 1;
    refused(w, &h, "sequence");
    h = head, h.sequence = 0;
    refused(w, &h, "sequence");
    h = head, h.round = 2;
    refused(w, &h, "round 2");
    float body[W_MODEL] = {0};
    must(gt_ps_message(w->regions[1].ps, 0, &head, body, w->now));
    h = good(w), h.sequence = 2, h.value = 0;
    if (sync_named(names[i])->waits) refused(w, &h, "step or round 0");
    w_close(w);
  }
}

/* Returns the first valid piece from region 0 to region 1 over a hub. */
static gt_frame_header routed(const char *strategy) {
  const bool sum = sync_named(strategy)->waits;
  return (gt_frame_header){.kind = GT_MSG_UPDATE,
                           .flags = GT_FRAME_ROUTED,
                           .sequence = 1,
                           .value = 1,
                           .message_bytes = W_PIECE * sizeof(float),
                           .route = {.count = W_PIECE, .weight = sum ? 1 : 0}};
}

/* Payloads of a codec: the length of int8 is fixed; positions of topk ascend. */
static void test_encoded(void) {
  static const gt_codec_kind kinds[] = {GT_CODEC_INT8, GT_CODEC_TOPK};
  for (size_t k = 0; k < 2; k++) {
    w_spec s = two("ssgd");
    s.codec = w_codec(kinds[k], 0.5);
    world *w = w_open(&s);
    const gt_frame_header head = good(w);
    gt_frame_header h = head;
    h.codec = (uint8_t)kinds[k], h.message_bytes = 3;
    refused(w, &h, "malformed");
    h.message_bytes = W_PARAMS * sizeof(float);
    refused(w, &h, "bytes");
    if (kinds[k] == GT_CODEC_TOPK) h.message_bytes = 31, refused(w, &h, "ascending positions");
    h.message_bytes = 1000;
    refused(w, &h, "bytes");
    h.codec = GT_CODEC_BF16;
    refused(w, &h, "expected the job's codec or 0");
    w_close(w);
  }
}

static world *open_hub(const char *strategy, size_t nregions, size_t hub) {
  w_spec s = two(strategy);
  s.nregions = nregions;
  for (size_t r = 0; r < nregions; r++) {
    s.workers[r] = 1;
    s.samples[r] = 100;
    s.next[r] = hub;
  }
  s.topology = GT_TOPOLOGY_HUB;
  return w_open(&s);
}

/* Checks the required fields of every message over a hub. */
static void refused_parts(world *w, const gt_frame_header *head) {
  gt_frame_header h = *head;
  h.flags = 0;
  h.message_bytes = W_PARAMS * sizeof(float);
  refused(w, &h, "no route");
  h = *head, h.route.offset = W_PIECE;
  refused(w, &h, "6 floats from 6 on; expected 6 from 0 on");
  h = *head, h.route.count = 1, h.message_bytes = sizeof(float);
  refused(w, &h, "1 floats from 0 on; expected 6 from 0 on");
  h = *head, h.route.offset = UINT64_MAX;
  refused(w, &h, "bytes");
  h = *head, h.route.count = UINT64_MAX / 2;
  refused(w, &h, "bytes");
  h = *head, h.route.count = W_PARAMS + 1, h.message_bytes = (W_PARAMS + 1) * sizeof(float);
  refused(w, &h, "bytes");
}

static void taken(world *w, const gt_frame_header *head) {
  const float body[W_PIECE] = {0};
  must(gt_ps_message(w->regions[1].ps, 0, head, body, w->now));
}

static void test_routes_of_sums(void) {
  world *w = open_hub("ssgd", 2, 0);
  const gt_frame_header head = routed("ssgd");
  static const double weights[] = {0, -1, 3, NAN, INFINITY};
  gt_frame_header h = head;
  refused_parts(w, &head);
  for (size_t i = 0; i < COUNT(weights); i++) {
    h.route.weight = weights[i];
    refused(w, &h, "weight");
  }
  h = head, h.value = 0;
  refused(w, &h, "step or round 0");
  taken(w, &head);
  w_close(w);
  w = open_hub("ssgd", 3, 2);
  refused(w, &head, "no neighbour");
  w_close(w);
}

static void test_routes_of_updates(void) {
  world *w = open_hub("asgd", 3, 0);
  const gt_frame_header head = routed("asgd");
  gt_frame_header h = head;
  refused_parts(w, &head);
  h.route.origin = 1;
  refused(w, &h, "origin 1 cannot");
  h.route.origin = 3;
  refused(w, &h, "origin 3 cannot");
  h = head, h.value = 0;
  refused(w, &h, "step or round 0");
  h = head, h.route.origin = 2; /* forwarded */
  taken(w, &h);
  w_close(w);
}

/* A message behind one that must wait is checked as if that one had been taken. */
static void test_pieces_that_wait(void) {
  world *w = open_hub("asgd", 3, 1);
  gt_frame_header head = routed("asgd");
  for (uint64_t n = 0; n < 30; n++) { /* region 2 acknowledges none */
    head.sequence = n + 1;
    head.value = n / 3 + 1;
    head.route.offset = n % 3 * W_PIECE;
    taken(w, &head);
  }
  gt_frame_header h = head;
  h.sequence = 31;
  h.route.offset = 0;
  refused(w, &h, "step or round 10; expected one after 10");
  h.value = 11;
  h.route.offset = W_PIECE;
  refused(w, &h, "6 floats from 6 on; expected 6 from 0 on");
  h.route.offset = 0, h.route.count = 12, h.message_bytes = 12 * sizeof(float);
  refused(w, &h, "12 floats from 0 on; expected 6 from 0 on");
  h.route.count = W_PIECE, h.message_bytes = W_PIECE * sizeof(float);
  h.route.origin = 1;
  refused(w, &h, "origin 1 cannot");
  h.route.origin = 40000;
  refused(w, &h, "origin 40000 cannot");
  w_close(w);
}

/* With a codec, a piece ends where the matrix does. */
static void test_encoded_pieces(void) {
  w_spec s = two("ssgd");
  s.codec = w_codec(GT_CODEC_INT8, 1);
  s.topology = GT_TOPOLOGY_HUB;
  world *w = w_open(&s);
  gt_frame_header h = routed("ssgd");
  h.codec = GT_CODEC_INT8;
  h.message_bytes = sizeof(float) + W_PIECE;
  refused(w, &h, "6 floats from 0 on; expected 16 from 0 on");
  h.route.count = 16;
  refused(w, &h, "malformed");
  h.route.offset = UINT64_MAX;
  refused(w, &h, "expected 16 from 0 on");
  w_close(w);
}

static void test_routes_of_a_mesh(void) {
  w_spec s = two("ssgd");
  world *w = w_open(&s);
  gt_frame_header head = routed("ssgd");
  refused(w, &head, "a route");
  w_close(w);
}

static void test_none_takes_no_data(void) {
  w_spec s = two("none");
  world *w = w_open(&s);
  gt_frame_header head = good(w);
  refused(w, &head, "kind 1");
  w_close(w);
}

static void test_control(void) {
  w_spec s = two("asgd");
  world *w = w_open(&s);
  static const struct {
    gt_frame_header head;
    const char *words;
  } bad[] = {
      {{.kind = 0}, "kind 0"},
      {{.kind = GT_MSG_HELLO}, "kind 16"},
      {{.kind = GT_MSG_BYE}, "kind 24"},
      {{.kind = GT_MSG_REPORT}, "kind 32"},
      {{.kind = 255}, "kind 255"},
      {{.kind = GT_MSG_PING, .codec = 1}, "codec 1"},
      {{.kind = GT_MSG_PONG, .range = 1}, "range 1"},
      {{.kind = GT_MSG_PING, .message_bytes = 8}, "8 bytes"},
      {{.kind = GT_MSG_PONG, .value = UINT64_C(1) << 62}, "PING"},
      {{.kind = GT_MSG_ACK, .value = 1000}, "1000"},
      {{.kind = GT_MSG_ACK, .value = UINT64_MAX}, "-1"},
      {{.kind = GT_MSG_ROUND, .value = 2, .round = 1}, "round 2"},
      {{.kind = GT_MSG_ROUND, .value = 0}, "round 0"},
      {{.kind = GT_MSG_ROUND, .value = 1, .round = 4000000000u}, "round 4000000000"},
      {{.kind = GT_MSG_ROUND, .value = 1, .round = 1, .detail = 3}, "code 3"},
      {{.kind = GT_MSG_WRITTEN, .value = 9}, "round 9"},
      {{.kind = GT_MSG_WRITTEN, .value = UINT64_MAX}, "round -1"},
      {{.kind = GT_MSG_DONE, .value = UINT64_MAX}, "-1"},
      {{.kind = GT_MSG_DONE, .detail = UINT64_MAX}, "-1"},
      {{.kind = GT_MSG_DONE, .detail = 200}, "message 200"},
      {{.kind = GT_MSG_JOINED, .value = UINT64_MAX}, "-1"},
      {{.kind = GT_MSG_JOINED, .detail = UINT64_MAX}, "-1"},
      {{.kind = GT_MSG_JOINED, .detail = 200}, "message 200"},
  };
  for (size_t i = 0; i < COUNT(bad); i++) refused(w, &bad[i].head, bad[i].words);
  w_close(w);
}

/* From an unknown region, or from the region itself. */
static void test_sender(void) {
  w_spec s = two("asgd");
  world *w = w_open(&s);
  gt_frame_header head = good(w);
  const float body[W_MODEL] = {0};
  assert_int_equal(gt_ps_message(w->regions[1].ps, 1, &head, body, w->now), GT_ERR_FAULT);
  assert_int_equal(gt_ps_message(w->regions[1].ps, 2, &head, body, w->now), GT_ERR_FAULT);
  w_close(w);
}

/* Random headers: each gets an answer, and the run continues as if they had not come. */
static void test_at_random(void) {
  for (const char *const *name = gt_strategy_names; *name; name++) {
    w_spec s = two(*name);
    world *w = w_open(&s);
    gt_rng rng = gt_rng_make(11, GT_RNG_TEST, 0, 0);
    for (int i = 0; i < 4000; i++) {
      gt_frame_header h = {.kind = (uint8_t)gt_rng_below(&rng, 64),
                           .codec = (uint8_t)(1 + gt_rng_below(&rng, 3)),
                           .sequence = gt_rng_u64(&rng)};
      h.value = gt_rng_u64(&rng);
      h.detail = gt_rng_u64(&rng);
      h.message_bytes = gt_rng_below(&rng, 64);
      refused(w, &h, "");
    }
    w_run_until(w, GT_PS_COMPLETE);
    w_check_epochs(w, 2);
    w_close(w);
  }
}

TESTS(test_data, test_encoded, test_routes_of_sums, test_routes_of_updates, test_pieces_that_wait,
      test_encoded_pieces, test_routes_of_a_mesh, test_none_takes_no_data, test_control,
      test_sender, test_at_random)
