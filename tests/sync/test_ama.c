/* links: ps
   ama: models move towards each other without waiting, a model that has not left is replaced by the
   newer one, the last one arrives. */
#include "ps/world.h"

static double spread(const world *w) {
  double most = 0;
  for (size_t j = 0; j < W_PARAMS; j++) {
    double low = 1e30, high = -1e30;
    for (size_t i = 0; i < w->n; i++) {
      double x = (double)w->regions[i].params[j];
      low = x < low ? x : low;
      high = x > high ? x : high;
    }
    most = high - low > most ? high - low : most;
  }
  return most;
}

/* Region 0 makes `steps` steps, the others none. */
static w_spec without_learning(size_t nregions, int64_t steps) {
  w_spec spec = {
      .strategy = "ama", .nregions = nregions, .steps = {steps}, .optim = w_sgd(0, 0), .seed = 1};
  for (size_t i = 0; i < nregions; i++) {
    spec.workers[i] = 1;
    spec.samples[i] = 100;
    spec.lag[i] = 2 * W_MS;
  }
  return spec;
}

/* Without learning, for any order of messages, no model leaves the convex hull of the starts, and
   the regions converge. */
static void test_contracts(void) {
  for (uint64_t seed = 0; seed < 50; seed++) {
    w_spec spec = without_learning(2 + seed % 4, 60);
    spec.seed = seed;
    for (size_t i = 0; i < spec.nregions; i++) spec.steps[i] = 60;
    world *w = w_open(&spec);
    for (size_t i = 0; i < spec.nregions; i++) {
      for (size_t j = 0; j < W_PARAMS; j++) w->regions[i].params[j] = (float)i;
    }
    w_run_until(w, GT_PS_COMPLETE);
    for (size_t i = 0; i < spec.nregions; i++) {
      assert_true(w->regions[i].params[0] > 0 &&
                  w->regions[i].params[0] < (float)(spec.nregions - 1));
    }
    assert_true(spread(w) < 0.05 * (double)(spec.nregions - 1));
    w_close(w);
  }
}

/* One message, computed by hand: parameters and buffers of the others move by `share`, from 2 i
   and 8 towards 10 and j, which is the fixed point of the buffers in region 0. */
static void check_one_message(const w_spec *spec, float share) {
  world *w = w_open(spec);
  for (size_t i = 0; i < w->n; i++) {
    for (size_t j = 0; j < W_PARAMS; j++) w->regions[i].params[j] = i ? 2 * (float)i : 10;
    for (size_t j = 0; j < W_BUFFERS; j++) w->regions[i].buffers[j] = i ? 8 : (float)j;
  }
  w_run_until(w, GT_PS_COMPLETE);
  for (size_t i = 1; i < w->n; i++) {
    const float x = 2 * (float)i;
    for (size_t j = 0; j < W_PARAMS; j++)
      assert_float_equal(w->regions[i].params[j], x + share * (10 - x), 1e-6);
    for (size_t j = 0; j < W_BUFFERS; j++)
      assert_float_equal(w->regions[i].buffers[j], 8 + share * ((float)j - 8), 1e-6);
  }
  w_close(w);
}

static void test_weight_of_the_sender(void) {
  w_spec spec = without_learning(2, 1);
  spec.weights[0] = 1, spec.weights[1] = 3;
  check_one_message(&spec, 0.25f);
}

/* With `half` the factor is one half, for any weights and number of regions. */
static void test_half_of_a_model(void) {
  for (size_t nregions = 2; nregions <= 3; nregions++) {
    w_spec spec = without_learning(nregions, 1);
    spec.weights[0] = 1, spec.weights[1] = 3, spec.weights[2] = 4;
    spec.options.halves = true;
    check_one_message(&spec, 0.5f);
  }
}

/* Two regions with equal weights: half equals the weight, to the bit. */
static void test_half_is_the_weight_of_two_equal_regions(void) {
  int64_t moved = 0;
  for (uint64_t seed = 0; seed < 100; seed++) {
    w_spec spec = w_random_steps("ama", seed);
    if (spec.nregions != 2) continue;
    spec.weights[0] = spec.weights[1] = 0;
    world *a = w_finished(&spec);
    spec.options.halves = true;
    world *b = w_finished(&spec);
    w_check_same(a, b);
    for (size_t i = 0; i < 2; i++) moved += a->regions[i].kept.applied[1 - i] > 0;
    w_close(a);
    w_close(b);
  }
  assert_true(moved > 10);
}

/* Regions that learn from different data end closer to each other than without exchange. */
static void test_holds_regions_together(void) {
  w_spec spec = without_learning(3, 80);
  spec.strategy = "none";
  spec.steps[1] = spec.steps[2] = 80;
  spec.options.period = 2;
  spec.optim = w_sgd(0.05, 0);
  world *apart = w_finished(&spec);
  spec.strategy = "ama";
  world *w = w_finished(&spec);
  assert_true(spread(w) < 0.3 * spread(apart));
  w_close(w);
  w_close(apart);
}

static void test_replaces_and_never_waits(void) {
  for (uint64_t seed = 0; seed < 30; seed++) {
    w_spec spec = without_learning(3, 41);
    spec.seed = seed;
    spec.steps[1] = 40, spec.steps[2] = 39;
    spec.options.period = 2;
    spec.outbox = spec.window = 1;
    spec.lag[1] = 100 * W_MS;
    world *w = w_finished(&spec);
    for (size_t i = 0; i < 3; i++) {
      assert_int_equal(w_view(w, i).wan_wait, 0);
      for (size_t k = 0; k < 3; k++) {
        if (k == i) continue;
        const int64_t sent = w->links[i][k].data_sent, posted = (spec.steps[i] + 1) / 2;
        w_check(w, i == 1 || k == 1 ? sent < posted : sent == posted);
        assert_int_equal(w->regions[k].kept.applied[i], sent);
        assert_int_equal(w->regions[k].kept.applied_value[i], spec.steps[i]); /* the final model */
      }
    }
    w_close(w);
  }
}

TESTS(test_contracts, test_weight_of_the_sender, test_half_of_a_model,
      test_half_is_the_weight_of_two_equal_regions, test_holds_regions_together,
      test_replaces_and_never_waits)
