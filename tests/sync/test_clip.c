/* links: ps
   train.clip in the strategies, computed by hand: ssgd clips the mean of the regions, not its
   parts; the gradients sent by asgd-ga are those that the sender applied. */
#include "ps/world.h"

enum { STEPS = 3 };

/* Scales g to a norm of at most `clip`; returns true if it did. */
static bool clip_to(double clip, double g[W_PARAMS]) {
  double sum = 0;
  for (size_t j = 0; j < W_PARAMS; j++) sum += g[j] * g[j];
  const double share = fmin(1, clip / sqrt(sum));
  for (size_t j = 0; j < W_PARAMS; j++) g[j] *= share;
  return share < 1;
}

static w_spec spec_of(const char *strategy, double clip) {
  w_spec spec = {.strategy = strategy,
                 .nregions = 2,
                 .workers = {1, 1},
                 .samples = {100, 100},
                 .steps = {STEPS, STEPS},
                 .options.period = STEPS,
                 .seed = 5,
                 .optim = w_sgd(0.1, 0)};
  spec.optim.clip = clip;
  return spec;
}

/* Returns how often it was clipped. */
static int check_mean(double clip, const double weights[2]) {
  double x[W_PARAMS], g[W_PARAMS];
  int clips = 0;
  w_spec spec = spec_of("ssgd", clip);
  memcpy(spec.weights, weights, 2 * sizeof *weights);
  world *w = w_finished(&spec);
  for (size_t j = 0; j < W_PARAMS; j++) x[j] = (double)w_start(j);
  for (int step = 0; step < STEPS; step++) {
    for (size_t j = 0; j < W_PARAMS; j++)
      g[j] = weights[0] * w_gradient(0, step, j, x[j]) + weights[1] * w_gradient(1, step, j, x[j]);
    clips += clip_to(clip, g);
    for (size_t j = 0; j < W_PARAMS; j++) x[j] -= 0.1 * g[j];
  }
  for (size_t r = 0; r < 2; r++)
    for (size_t j = 0; j < W_PARAMS; j++)
      assert_float_equal(w->regions[r].params[j], (float)x[j], 1e-5);
  w_close(w);
  return clips;
}

static void test_mean(void) {
  const double equal[] = {0.5, 0.5}, unequal[] = {0.25, 0.75};
  assert_int_equal(check_mean(0.5, equal), STEPS);
  assert_int_equal(check_mean(0.5, unequal), STEPS);
  assert_int_equal(check_mean(1e6, equal), 0);
}

/* Region 0 trains and sends gradients, region 1 does not train. */
static void test_sent_gradients(void) {
  double x[W_PARAMS], g[W_PARAMS], sum[W_PARAMS] = {0};
  w_spec spec = spec_of("asgd-ga", 0.5);
  spec.steps[1] = 0;
  spec.options.gradients = true;
  world *w = w_finished(&spec);
  for (size_t j = 0; j < W_PARAMS; j++) x[j] = (double)w_start(j);
  for (int step = 0; step < STEPS; step++) {
    for (size_t j = 0; j < W_PARAMS; j++) g[j] = w_gradient(0, step, j, x[j]);
    assert_true(clip_to(0.5, g));
    for (size_t j = 0; j < W_PARAMS; j++) x[j] -= 0.1 * g[j], sum[j] += g[j];
  }
  for (size_t j = 0; j < W_PARAMS; j++) {
    assert_float_equal(w->regions[0].params[j], (float)x[j], 1e-5);
    assert_float_equal(w->regions[1].params[j], (float)((double)w_start(j) - 0.1 * sum[j]), 1e-5);
  }
  w_close(w);
}

TESTS(test_mean, test_sent_gradients)
