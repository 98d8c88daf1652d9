/* links: ps
   Encoded messages: laws of codecs and their error feedback, over every topology. */
#include <math.h>

#include "cases.h"
#include "ps/world.h"

static w_spec coded(const char *strategy, uint64_t seed, gt_topology topology, gt_codec_kind kind,
                    double density) {
  w_spec spec = w_random_steps(strategy, seed);
  w_place_over(&spec, topology);
  spec.codec = w_codec(kind, density);
  return spec;
}

/* mask with density 1 sends every value as float32. */
static void test_identity(void) {
  for (uint64_t seed = 0; seed < cases(400, 120); seed++) {
    w_spec spec =
        coded(seed % 2 ? "sma" : "ssgd", seed, w_topologies[seed / 2 % 4], GT_CODEC_MASK, 1);
    spec.options.outer = seed % 2 ? GT_OUTER_NESTEROV : GT_OUTER_NONE;
    spec.options.outer_lr = 0.3 + 0.1 * (double)(seed % 5);
    spec.options.outer_momentum = 0.5;
    world *w = w_finished(&spec);
    spec.codec.kind = GT_CODEC_NONE;
    world *plain = w_finished(&spec);
    w_check_same(w, plain);
    w_close(plain);
    w_close(w);
  }
}

/* All regions hold the same model after the last round; density 1/2 leaves values out. */
static void test_identical(void) {
  static const gt_codec_kind kinds[] = {GT_CODEC_BF16,     GT_CODEC_FP16, GT_CODEC_INT8,
                                        GT_CODEC_E3M0,     GT_CODEC_TOPK, GT_CODEC_MASK,
                                        GT_CODEC_POWERSGD, GT_CODEC_DGC};
  for (size_t k = 0; k < 8; k++)
    for (uint64_t seed = 0; seed < cases(200, 40); seed++) {
      const bool sma = seed % 2 && !gt_codec_has(kinds[k], GT_MOMENTUM);
      const size_t topologies = gt_codec_has(kinds[k], GT_RESUMS)     ? 4
                                : gt_codec_has(kinds[k], GT_MOMENTUM) ? 1
                                                                      : W_FORWARDING;
      const w_spec spec =
          coded(sma ? "sma" : "ssgd", seed, w_topologies[seed / 2 % topologies], kinds[k], 0.5);
      world *w = w_finished(&spec);
      w_check_identical(w);
      w_close(w);
    }
}

/* In pieces a message has the bits of a whole one, and takes as much work to apply. */
static void test_pieces(void) {
  static const gt_codec_kind kinds[] = {GT_CODEC_BF16, GT_CODEC_FP16, GT_CODEC_INT8, GT_CODEC_E3M0};
  for (uint64_t seed = 0; seed < cases(200, 40); seed++) {
    w_spec spec = coded(seed % 2 ? "sma" : "ssgd", seed, w_topologies[1 + seed / 2 % 2],
                        kinds[seed / 4 % 4], 1);
    spec.codec.spec.stochastic = seed / 16 % 2;
    spec.local_async = false; /* its steps depend on times */
    world *pieces = w_finished(&spec);
    spec.piece = W_MODEL;
    world *whole = w_finished(&spec);
    w_check_same(pieces, whole);
    for (size_t r = 0; r < whole->n; r++)
      w_check(whole, fabs(pieces->regions[r].applied - whole->regions[r].applied) < 1e-9);
    w_close(whole);
    w_close(pieces);
  }
}

/* A region has its start and the updates of all regions; what payloads leave out arrives with the
   last message. */
static void test_nothing_is_lost(void) {
  static const gt_codec_kind kinds[] = {GT_CODEC_INT8, GT_CODEC_TOPK, GT_CODEC_MASK};
  for (size_t k = 0; k < 3; k++)
    for (uint64_t seed = 0; seed < cases(200, 40); seed++) {
      w_spec spec = coded(seed % 2 ? "asgd" : "asgd-ga", seed,
                          w_topologies[seed / 2 % W_FORWARDING], kinds[k], 0.25);
      spec.optim = w_sgd(0.02, 0);
      for (size_t i = 0; i < spec.nregions; i++) spec.workers[i] = 1;
      world *w = w_finished(&spec);
      w_check_conserved(w);
      w_close(w);
    }
}

/* A simulation, which has no data, sends the messages of a run. */
static void test_simulation(void) {
  static const char *const strategies[] = {"ssgd", "sma", "asgd", "asgd-ga"};
  for (uint64_t seed = 0; seed < cases(200, 60); seed++) {
    w_spec spec = coded(strategies[seed % 4], seed, w_topologies[seed / 4 % W_FORWARDING],
                        GT_CODEC_TOPK, 0.5);
    world *run = w_finished(&spec);
    spec.no_data = true;
    world *simulated = w_finished(&spec);
    assert_int_equal(run->events, simulated->events);
    assert_int_equal(run->now, simulated->now);
    assert_true(run->bytes == simulated->bytes);
    w_close(simulated);
    w_close(run);
  }
}

TESTS(test_identity, test_identical, test_pieces, test_nothing_is_lost, test_simulation)
