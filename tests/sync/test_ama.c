/* ama: models move towards each other without waiting, a model that has not left is replaced by the
   newer one, the last one arrives. */
#include "world_run.h"

static double spread(const world *w) {
  double most = 0;
  for (size_t j = 0; j < W_PARAMS; j++) {
    double low = 1e30, high = -1e30;
    for (size_t i = 0; i < w->spec.nregions; i++) {
      double x = (double)w->regions[i].params[j];
      low = x < low ? x : low;
      high = x > high ? x : high;
    }
    most = high - low > most ? high - low : most;
  }
  return most;
}

/* Without learning, for any order of messages, no model leaves the convex hull of the starts, and
   the regions converge. */
static void test_contracts(void) {
  for (uint64_t seed = 0; seed < 50; seed++) {
    w_spec spec = {.strategy = "ama",
                   .nregions = 2 + seed % 4,
                   .period = 1,
                   .scale = 1,
                   .optim = w_sgd(0, 0),
                   .seed = seed};
    for (size_t i = 0; i < spec.nregions; i++) spec.steps[i] = 60;
    world *w = w_open(&spec);
    for (size_t i = 0; i < spec.nregions; i++) {
      for (size_t j = 0; j < W_PARAMS; j++) w->regions[i].params[j] = (float)i;
    }
    w_begin(w);
    w_run_on(w);
    for (size_t i = 0; i < spec.nregions; i++) {
      assert_true(w->regions[i].params[0] > 0 &&
                  w->regions[i].params[0] < (float)(spec.nregions - 1));
    }
    assert_true(spread(w) < 0.05 * (double)(spec.nregions - 1));
    w_close(w);
  }
}

/* One message, computed by hand: parameters and buffers move by the sender's weight. */
static void test_weight_of_the_sender(void) {
  w_spec spec = {.strategy = "ama",
                 .nregions = 2,
                 .steps = {1, 0},
                 .weights = {1, 3},
                 .period = 1,
                 .scale = 1,
                 .optim = w_sgd(0, 0),
                 .seed = 1};
  world *w = w_open(&spec);
  for (size_t j = 0; j < W_PARAMS; j++) w->regions[0].params[j] = 10, w->regions[1].params[j] = 2;
  for (size_t j = 0; j < W_BUFFERS; j++)
    w->regions[0].buffers[j] = (float)j,
    w->regions[1].buffers[j] = 8; /* (0 + j) is the fixed point of the buffers in region 0 */
  w_begin(w);
  w_run_on(w);
  for (size_t j = 0; j < W_PARAMS; j++) assert_float_equal(w->regions[1].params[j], 4, 1e-6);
  for (size_t j = 0; j < W_BUFFERS; j++)
    assert_float_equal(w->regions[1].buffers[j], 8 + 0.25f * ((float)j - 8), 1e-6);
  w_close(w);
}

/* With `half` the factor is one half, for any weights and number of regions. */
static void test_half_of_a_model(void) {
  for (size_t nregions = 2; nregions <= 3; nregions++) {
    w_spec spec = {.strategy = "ama",
                   .nregions = nregions,
                   .steps = {1, 0, 0},
                   .weights = {1, 3, 4},
                   .period = 1,
                   .scale = 1,
                   .halves = true,
                   .optim = w_sgd(0, 0),
                   .seed = 1};
    world *w = w_open(&spec);
    for (size_t i = 0; i < nregions; i++) {
      for (size_t j = 0; j < W_PARAMS; j++) w->regions[i].params[j] = i ? 2 * (float)i : 10;
      for (size_t j = 0; j < W_BUFFERS; j++) w->regions[i].buffers[j] = i ? 8 : (float)j;
    }
    w_begin(w);
    w_run_on(w);
    for (size_t i = 1; i < nregions; i++) {
      for (size_t j = 0; j < W_PARAMS; j++)
        assert_float_equal(w->regions[i].params[j], 5 + (float)i, 1e-6);
      for (size_t j = 0; j < W_BUFFERS; j++)
        assert_float_equal(w->regions[i].buffers[j], 0.5f * (8 + (float)j), 1e-6);
    }
    w_close(w);
  }
}

/* Two regions with equal weights: half equals the weight, to the bit. */
static void test_half_is_the_weight_of_two_equal_regions(void) {
  size_t moved = 0;
  for (uint64_t seed = 0; seed < 100; seed++) {
    w_spec spec = w_random("ama", seed);
    if (spec.nregions != 2) continue;
    spec.weights[0] = spec.weights[1] = 0;
    world *a = w_run(&spec);
    spec.halves = true;
    world *b = w_run(&spec);
    for (size_t i = 0; i < 2; i++) {
      assert_memory_equal(a->regions[i].params, b->regions[i].params, sizeof a->regions[i].params);
      moved += a->links[1 - i][i].delivered > 0;
    }
    w_close(a);
    w_close(b);
  }
  assert_true(moved > 10);
}

/* Regions that learn from different data end closer to each other than without exchange. */
static void test_holds_regions_together(void) {
  w_spec spec = {
      .strategy = "none", .nregions = 3, .steps = {80, 80, 80}, .period = 2, .scale = 1, .seed = 6};
  world *apart = w_run(&spec);
  spec.strategy = "ama";
  world *w = w_run(&spec);
  assert_true(spread(w) < 0.3 * spread(apart));
  w_close(w);
  w_close(apart);
}

static void test_replaces_and_never_waits(void) {
  for (uint64_t seed = 0; seed < 30; seed++) {
    w_spec spec = {.strategy = "ama",
                   .nregions = 3,
                   .steps = {41, 40, 39},
                   .period = 2,
                   .scale = 1,
                   .outbox = 1,
                   .slow = {1, 60, 1},
                   .seed = seed};
    world *w = w_run(&spec);
    for (size_t i = 0; i < 3; i++) {
      assert_int_equal(w->regions[i].holds, 0);
      for (size_t k = 0; k < 3; k++) {
        if (k == i) continue;
        const w_link *link = &w->links[i][k];
        assert_int_equal(link->posted, (spec.steps[i] + 1) / 2);
        assert_int_equal(link->delivered + link->replaced, link->posted);
        assert_int_equal(link->value, spec.steps[i]); /* the final model arrived */
      }
    }
    assert_true(w->links[0][1].replaced > 0 && w->links[1][2].replaced > 0);
    w_close(w);
  }
}

TESTS(test_contracts, test_weight_of_the_sender, test_half_of_a_model,
      test_half_is_the_weight_of_two_equal_regions, test_holds_regions_together,
      test_replaces_and_never_waits)
