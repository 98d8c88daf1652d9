/* Laws between strategies: asgd-ga with period 1 is asgd; sma with period 1 and plain SGD is ssgd;
   ssgd is one region with the mean gradient. */
#include "world_run.h"

#include <math.h>

static void test_ga_with_period_1_is_asgd(void) {
  for (uint64_t seed = 0; seed < 200; seed++) {
    w_spec spec = w_random("asgd", seed);
    spec.period = 1;
    world *a = w_run(&spec);
    spec.strategy = "asgd-ga";
    world *b = w_run(&spec);
    assert_int_equal(a->events, b->events);
    for (size_t i = 0; i < spec.nregions; i++) {
      assert_memory_equal(a->regions[i].params, b->regions[i].params, sizeof a->regions[i].params);
      assert_int_equal(a->regions[i].holds, b->regions[i].holds);
      for (size_t k = 0; k < spec.nregions; k++) {
        assert_int_equal(a->links[i][k].samples, b->links[i][k].samples);
        assert_int_equal(a->links[i][k].value, b->links[i][k].value);
      }
    }
    w_close(a);
    w_close(b);
  }
}

/* The two differ in the order of roundings only.  A round makes at most R + 3 roundings of numbers
   at most M in either, each of at most M 2^-24, and as 0 < 1 - lr curvature < 1 an error does not
   grow: K rounds differ by at most 2 K (R + 3) M 2^-24.  M = 8 covers start and targets. */
static void test_sma_with_period_1_is_ssgd(void) {
  double largest = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    w_spec spec = w_random("ssgd", seed);
    spec.period = 1;
    spec.workers = 1;
    spec.optim = w_sgd(0.1, 0);
    world *a = w_run(&spec);
    spec.strategy = "sma";
    world *b = w_run(&spec);
    int64_t rounds = 0;
    for (size_t i = 0; i < spec.nregions; i++)
      rounds = spec.steps[i] > rounds ? spec.steps[i] : rounds;
    double bound = 2 * (double)rounds * (double)(spec.nregions + 3) * 8 * ldexp(1, -24);
    for (size_t j = 0; j < W_PARAMS; j++) {
      double moved = fabs((double)a->regions[0].params[j] - (double)w_start(j));
      double difference = fabs((double)a->regions[0].params[j] - (double)b->regions[0].params[j]);
      assert_true(difference <= bound);
      largest = moved > largest ? moved : largest;
    }
    w_close(a);
    w_close(b);
  }
  assert_true(largest > 1); /* far more than the bound, so the law is not vacuous */
}

/* Bit for bit: the mean is formed by the same vector operations in region order. */
static void test_ssgd_is_one_region_with_the_mean(void) {
  const gt_optim_spec optims[] = {w_sgd(0.05, 0), w_sgd(0.05, 0.9), w_adamw()};
  for (size_t o = 0; o < 3; o++) {
    for (size_t nregions = 2; nregions <= 5; nregions++) {
      w_spec spec = {.strategy = "ssgd",
                     .nregions = nregions,
                     .period = 4,
                     .scale = 1,
                     .optim = optims[o],
                     .seed = 40 + nregions};
      for (size_t i = 0; i < nregions; i++) spec.steps[i] = 15;
      world *w = w_run(&spec);
      float params[W_PARAMS], mean[W_PARAMS], grads[W_PARAMS],
          share = (float)(1 / (double)nregions);
      gt_vec vmean = gt_vec_of(mean, W_PARAMS), vgrads = gt_vec_of(grads, W_PARAMS);
      gt_optim *optim = NULL;
      assert_int_equal(gt_optim_create(&optim, &spec.optim, W_PARAMS, true), GT_OK);
      for (size_t j = 0; j < W_PARAMS; j++) params[j] = w_start(j);
      for (int step = 0; step < 15; step++) {
        gt_vec_zero(vmean);
        for (size_t i = 0; i < nregions; i++) {
          for (size_t j = 0; j < W_PARAMS; j++) grads[j] = w_gradient(i, j, params[j]);
          if (i == 0)
            gt_vec_set_scaled(vmean, share, vgrads);
          else
            gt_vec_axpy(vmean, share, vgrads);
        }
        gt_optim_step(optim, gt_vec_of(params, W_PARAMS), vmean, gt_vec_of(NULL, W_PARAMS));
      }
      for (size_t i = 0; i < nregions; i++)
        assert_memory_equal(params, w->regions[i].params, sizeof params);
      gt_optim_close(optim);
      w_close(w);
    }
  }
}

/* Weights: two regions, 3 to 1, against the sum computed in float64. */
static void test_ssgd_weights(void) {
  w_spec spec = {.strategy = "ssgd",
                 .nregions = 2,
                 .steps = {10, 6},
                 .weights = {3, 1},
                 .period = 1,
                 .scale = 1,
                 .optim = w_sgd(0.1, 0),
                 .seed = 8};
  world *w = w_run(&spec);
  for (size_t j = 0; j < W_PARAMS; j++) {
    double x = (double)w_start(j);
    for (int step = 0; step < 10; step++) {
      double g0 = (double)w_curvature(0, j) * (x - (double)w_target(0, j)),
             g1 = (double)w_curvature(1, j) * (x - (double)w_target(1, j));
      x -= 0.1 * (step < 6 ? 0.75 * g0 + 0.25 * g1 : g0); /* a region that has finished contributes
                                                             zero */
    }
    assert_float_equal(w->regions[0].params[j], x, 1e-5);
  }
  w_close(w);
}

TESTS(test_ga_with_period_1_is_asgd, test_sma_with_period_1_is_ssgd,
      test_ssgd_is_one_region_with_the_mean, test_ssgd_weights)
