/* links: ps
   Laws between strategies: asgd-ga with period 1 is asgd; sma with period 1 and plain SGD is ssgd;
   ssgd is one region with the mean gradient; a region alone is its optimizer. */
#include "ps/world.h"

static void test_ga_with_period_1_is_asgd(void) {
  for (uint64_t seed = 0; seed < 200; seed++) {
    w_spec spec = w_random_steps("asgd", seed);
    spec.options.period = 1;
    world *a = w_finished(&spec);
    spec.strategy = "asgd-ga";
    world *b = w_finished(&spec);
    assert_int_equal(a->events, b->events);
    w_check_same(b, a);
    for (size_t i = 0; i < spec.nregions; i++) {
      const w_kept *x = &a->regions[i].kept, *y = &b->regions[i].kept;
      assert_int_equal(w_view(a, i).wan_wait, w_view(b, i).wan_wait);
      assert_memory_equal(x->samples, y->samples, sizeof x->samples);
      assert_memory_equal(x->applied_value, y->applied_value, sizeof x->applied_value);
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
    w_spec spec = w_random_steps("ssgd", seed);
    for (size_t i = 0; i < spec.nregions; i++) spec.workers[i] = 1;
    spec.local_async = false;
    spec.options.period = 1;
    spec.optim = w_sgd(0.1, 0);
    world *a = w_finished(&spec);
    spec.strategy = "sma";
    world *b = w_finished(&spec);
    int64_t rounds = 0;
    for (size_t i = 0; i < spec.nregions; i++)
      rounds = spec.steps[i] > rounds ? spec.steps[i] : rounds;
    double bound = 2 * (double)rounds * (double)(spec.nregions + 3) * 8 * ldexp(1, -24);
    for (size_t j = 0; j < W_PARAMS; j++) {
      const double x = (double)a->regions[0].params[j], y = (double)b->regions[0].params[j];
      assert_true(fabs(x - y) <= bound);
      largest = fmax(largest, fabs(x - (double)w_start(j)));
    }
    w_close(a);
    w_close(b);
  }
  assert_true(largest > 1); /* far more than the bound, so the law is not vacuous */
}

/* n regions with a worker each, and so many steps. */
static w_spec equal(const char *strategy, size_t n, int64_t steps) {
  w_spec spec = {.strategy = strategy, .nregions = n, .seed = 40 + n};
  for (size_t i = 0; i < n; i++) {
    spec.workers[i] = 1;
    spec.samples[i] = 200;
    spec.steps[i] = steps;
  }
  return spec;
}

/* One optimizer with the mean gradient of regions [first, first + n), formed by the same vector
   operations in region order. */
static void direct(const w_spec *spec, size_t first, size_t n, int64_t steps, float *params) {
  float mean[W_PARAMS], grads[W_PARAMS];
  gt_vec vmean = gt_vec_of(mean, W_PARAMS), vgrads = gt_vec_of(grads, W_PARAMS);
  gt_optim *optim = NULL;
  must(gt_optim_create(&optim, &spec->optim, W_PARAMS, true));
  for (size_t j = 0; j < W_PARAMS; j++) params[j] = w_start(j);
  for (int64_t step = 0; step < steps; step++) {
    for (size_t i = 0; i < n; i++) {
      for (size_t j = 0; j < W_PARAMS; j++)
        grads[j] = (float)w_gradient(first + i, step, j, (double)params[j]);
      if (i == 0)
        gt_vec_set_scaled(vmean, (float)(1 / (double)n), vgrads);
      else
        gt_vec_axpy(vmean, (float)(1 / (double)n), vgrads);
    }
    gt_optim_step(optim, gt_vec_of(params, W_PARAMS), vmean, gt_vec_of(NULL, W_PARAMS));
  }
  gt_optim_close(optim);
}

static void test_ssgd_is_one_region_with_the_mean(void) {
  const gt_optim_spec optims[] = {w_sgd(0.05, 0), w_sgd(0.05, 0.9), w_adamw()};
  for (size_t o = 0; o < 3; o++) {
    for (size_t nregions = 2; nregions <= 5; nregions++) {
      float params[W_PARAMS];
      w_spec spec = equal("ssgd", nregions, 15);
      spec.options.period = 4;
      spec.optim = optims[o];
      world *w = w_finished(&spec);
      direct(&spec, 0, nregions, 15, params);
      for (size_t i = 0; i < nregions; i++)
        w_check(w, w_same(params, w->regions[i].params, W_PARAMS));
      w_close(w);
    }
  }
}

/* With any strategy; and every region under `none`. */
static void test_alone_is_the_optimizer(void) {
  for (const char *const *name = gt_strategy_names; *name; name++) {
    w_spec spec = equal(*name, strcmp(*name, "none") == 0 ? 3 : 1, 9);
    spec.steps[1] = 4, spec.steps[2] = 0;
    spec.options.period = 2;
    spec.optim = w_sgd(0.1, 0.9);
    world *w = w_finished(&spec);
    for (size_t i = 0; i < w->n; i++) {
      float params[W_PARAMS];
      direct(&spec, i, 1, spec.steps[i], params);
      w_check(w, w_same(params, w->regions[i].params, W_PARAMS));
      assert_int_equal(gt_optim_steps(w->regions[i].optim), spec.steps[i]);
    }
    w_close(w);
  }
}

/* Weights: two regions, 3 to 1, against the sum computed in float64. */
static void test_ssgd_weights(void) {
  w_spec spec = equal("ssgd", 2, 10);
  spec.steps[1] = 6;
  spec.weights[0] = 3, spec.weights[1] = 1;
  spec.optim = w_sgd(0.1, 0);
  world *w = w_finished(&spec);
  for (size_t j = 0; j < W_PARAMS; j++) {
    double x = (double)w_start(j);
    for (int step = 0; step < 10; step++) {
      const double g0 = w_gradient(0, step, j, x), g1 = w_gradient(1, step, j, x);
      x -= 0.1 * (step < 6 ? 0.75 * g0 + 0.25 * g1 : g0); /* a region that has finished contributes
                                                             zero */
    }
    assert_float_equal(w->regions[0].params[j], x, 1e-5);
  }
  w_close(w);
}

TESTS(test_ga_with_period_1_is_asgd, test_sma_with_period_1_is_ssgd,
      test_ssgd_is_one_region_with_the_mean, test_alone_is_the_optimizer, test_ssgd_weights)
