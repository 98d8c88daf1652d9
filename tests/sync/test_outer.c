/* The outer optimizer of sma: its laws, its equations in float64, and restarts. */
#include "cases.h"
#include "world_run.h"

#include <math.h>

static w_spec random_outer(uint64_t seed, gt_outer outer, double lr, double momentum) {
  w_spec spec = w_random("sma", seed);
  spec.outer = outer, spec.outer_lr = lr, spec.outer_momentum = momentum;
  return spec;
}

/* anchor - (anchor - mean) rounds: R + 2 units in the last place of the largest value a round, and
   as 0 < 1 - lr curvature < 1 an error does not grow.  M = 8 covers start and targets. */
static void test_lr_1_is_the_mean(void) {
  double largest = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    w_spec spec = random_outer(seed, GT_OUTER_NONE, 0, 0);
    spec.workers = 1;
    spec.optim = w_sgd(0.1, 0);
    world *a = w_run(&spec);
    spec.outer = GT_OUTER_SGD, spec.outer_lr = 1;
    world *b = w_run(&spec);
    int64_t rounds = 1;
    for (size_t i = 0; i < spec.nregions; i++)
      rounds = spec.steps[i] > rounds ? spec.steps[i] : rounds;
    const double bound = (double)rounds * (double)(spec.nregions + 2) * 8 * ldexp(1, -23);
    assert_int_equal(a->events, b->events);
    for (size_t i = 0; i < spec.nregions; i++)
      for (size_t j = 0; j < W_PARAMS; j++) {
        const double x = (double)a->regions[i].params[j], y = (double)b->regions[i].params[j];
        if (fabs(x - y) > bound) fail_msg("seed %d: %.9g and %.9g", (int)seed, x, y);
        largest = fmax(largest, fabs(x - (double)w_start(j)));
      }
    w_close(a);
    w_close(b);
  }
  assert_true(largest > 1);
}

/* All regions hold the same model after the last round, whatever the optimizer. */
static void test_identical(void) {
  static const gt_outer outers[] = {GT_OUTER_SGD, GT_OUTER_NESTEROV, GT_OUTER_ADAM};
  for (size_t o = 0; o < 3; o++)
    for (uint64_t seed = 0; seed < 100; seed++) {
      w_spec spec = random_outer(seed, outers[o], o == 2 ? 0.05 : 0.7, 0.9);
      world *w = w_run(&spec);
      for (size_t i = 1; i < spec.nregions; i++) {
        assert_memory_equal(w->regions[0].params, w->regions[i].params,
                            sizeof w->regions[i].params);
        assert_memory_equal(w->regions[0].buffers, w->regions[i].buffers,
                            sizeof w->regions[i].buffers);
      }
      w_close(w);
    }
}

/* One parameter's anchor in float64: G, then the optimizer's step. */
typedef struct {
  double anchor, v, m, s;
} model;

static void outer_step(model *x, const w_spec *spec, double g, int round) {
  const double lr = spec->outer_lr, beta = spec->outer_momentum;
  x->v = beta * x->v + g;
  if (spec->outer == GT_OUTER_SGD) x->anchor -= lr * x->v;
  if (spec->outer == GT_OUTER_NESTEROV) x->anchor -= lr * (g + beta * x->v);
  if (spec->outer == GT_OUTER_ADAM) {
    x->m = beta * x->m + (1 - beta) * g, x->s = 0.999 * x->s + 0.001 * g * g;
    x->anchor -=
        lr * (x->m / (1 - pow(beta, round))) / (sqrt(x->s / (1 - pow(0.999, round))) + 1e-8);
  }
}

/* R regions with weights, each with f steps of SGD from the anchor; one region is done early. */
static void check_trace(gt_outer outer, double lr, double momentum, size_t nregions) {
  enum { PERIOD = 4, ROUNDS = 6 };
  w_spec spec = {.strategy = "sma",
                 .nregions = nregions,
                 .weights = {3, 1, 2},
                 .period = PERIOD,
                 .scale = 1,
                 .optim = w_sgd(0.1, 0),
                 .outer = outer,
                 .outer_lr = lr,
                 .outer_momentum = momentum,
                 .seed = 3};
  for (size_t i = 0; i < nregions; i++) spec.steps[i] = PERIOD * (i == 1 ? 4 : ROUNDS);
  world *w = w_run(&spec);
  for (size_t j = 0; j < W_PARAMS; j++) {
    model x = {.anchor = (double)w_start(j)};
    for (int round = 1; round <= ROUNDS; round++) {
      double sum = 0, weights = 0;
      for (size_t i = 0; i < nregions; i++) {
        if (i == 1 && round > 4) continue;
        double own = x.anchor;
        for (int step = 0; step < PERIOD; step++)
          own -= 0.1 * (double)w_curvature(i, j) * (own - (double)w_target(i, j));
        sum += spec.weights[i] * (x.anchor - own), weights += spec.weights[i];
      }
      outer_step(&x, &spec, sum / weights, round);
    }
    for (size_t i = 0; i < nregions; i++)
      if (fabs((double)w->regions[i].params[j] - x.anchor) > 1e-4)
        fail_msg("outer optimizer %d, region %zu, parameter %zu: %.8g; %.8g by the equations",
                 (int)outer, i, j, (double)w->regions[i].params[j], x.anchor);
  }
  w_close(w);
}

/* One region makes rounds with itself (SNOO, arXiv 2510.15830). */
static void test_equations(void) {
  for (size_t nregions = 1; nregions <= 3; nregions++) {
    check_trace(GT_OUTER_SGD, 1, 0, nregions);
    check_trace(GT_OUTER_SGD, 0.8, 0.5, nregions);
    check_trace(GT_OUTER_NESTEROV, 0.7, 0.9, nregions);
    check_trace(GT_OUTER_ADAM, 0.1, 0.9, nregions);
  }
}

/* A restart or crash at any event changes no bit. */
static void test_restarts(void) {
  const w_spec spec = {.strategy = "sma",
                       .nregions = 3,
                       .steps = {8, 5, 0},
                       .period = 3,
                       .scale = 1,
                       .outbox = 1,
                       .window = 2,
                       .slow = {1, 20, 1},
                       .seed = 21,
                       .optim = w_sgd(0.05, 0.9),
                       .outer = GT_OUTER_NESTEROV,
                       .outer_lr = 0.7,
                       .outer_momentum = 0.9};
  world *quiet = w_run(&spec);
  for (int64_t event = 0; event <= quiet->events; event += stride(3))
    for (int crash = 0; crash < 2; crash++) {
      world *w = w_open(&spec);
      w_begin(w);
      while (w->events < event) assert_true(w_step(w));
      w_restart(w, crash);
      w_run_on(w);
      for (size_t i = 0; i < spec.nregions; i++)
        assert_memory_equal(quiet->regions[i].params, w->regions[i].params,
                            sizeof w->regions[i].params);
      w_close(w);
    }
  w_close(quiet);
}

TESTS(test_lr_1_is_the_mean, test_identical, test_equations, test_restarts)
