/* links: ps
   The outer optimizer of sma: its laws, and its equations in float64. */
#include "ps/world.h"

static w_spec random_outer(uint64_t seed, gt_outer outer, double lr, double momentum) {
  w_spec spec = w_random_steps("sma", seed);
  spec.options.outer = outer, spec.options.outer_lr = lr, spec.options.outer_momentum = momentum;
  return spec;
}

/* anchor - (anchor - mean) rounds: R + 2 units in the last place of the largest value a round, and
   as 0 < 1 - lr curvature < 1 an error does not grow.  M = 8 covers start and targets. */
static void test_lr_1_is_the_mean(void) {
  double largest = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    w_spec spec = random_outer(seed, GT_OUTER_NONE, 0, 0);
    for (size_t i = 0; i < spec.nregions; i++) spec.workers[i] = 1;
    spec.local_async = false;
    spec.optim = w_sgd(0.1, 0);
    world *a = w_finished(&spec);
    spec.options.outer = GT_OUTER_SGD, spec.options.outer_lr = 1;
    world *b = w_finished(&spec);
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
      world *w = w_finished(&spec);
      w_check_identical(w);
      w_close(w);
    }
}

/* One parameter's anchor in float64: G, then the optimizer's step. */
typedef struct {
  double anchor, v, m, s;
} model;

static double rate(const gt_sync_options *o, int round) {
  const double tail = floor((double)o->outer_rounds / 4),
               fall = acos(-1) * (1 - ((double)o->outer_rounds - round) / tail);
  if (o->outer_lr_min == 0 || fall < 0) return o->outer_lr;
  return o->outer_lr_min + (o->outer_lr - o->outer_lr_min) * (1 + cos(fall)) / 2;
}

static void outer_step(model *x, const gt_sync_options *o, double g, int round) {
  const double lr = rate(o, round), beta = o->outer_momentum;
  x->v = beta * x->v + g;
  if (o->outer == GT_OUTER_SGD) x->anchor -= lr * x->v;
  if (o->outer == GT_OUTER_NESTEROV) x->anchor -= lr * (g + beta * x->v);
  if (o->outer == GT_OUTER_ADAM) {
    x->m = beta * x->m + (1 - beta) * g, x->s = 0.999 * x->s + 0.001 * g * g;
    x->anchor -=
        lr * (x->m / (1 - pow(beta, round))) / (sqrt(x->s / (1 - pow(0.999, round))) + 1e-8);
  }
}

/* R regions with weights, each with f steps of SGD from the anchor; one region is done early. */
static void check_trace(gt_outer outer, double lr, double lr_min, double momentum,
                        size_t nregions) {
  enum { PERIOD = 4, ROUNDS = 12 };
  w_spec spec = {.strategy = "sma",
                 .nregions = nregions,
                 .workers = {1, 1, 1},
                 .samples = {100, 100, 100},
                 .steps = {PERIOD * ROUNDS, PERIOD * 4, PERIOD * ROUNDS},
                 .weights = {3, 1, 2},
                 .options = {.period = PERIOD,
                             .outer = outer,
                             .outer_lr = lr,
                             .outer_lr_min = lr_min,
                             .outer_rounds = ROUNDS,
                             .outer_momentum = momentum},
                 .optim = w_sgd(0.1, 0),
                 .seed = 3};
  world *w = w_finished(&spec);
  for (size_t j = 0; j < W_PARAMS; j++) {
    model x = {.anchor = (double)w_start(j)};
    for (int round = 1; round <= ROUNDS; round++) {
      double sum = 0, weights = 0;
      for (size_t i = 0; i < nregions; i++) {
        if (i == 1 && round > 4) continue;
        double own = x.anchor;
        for (int step = 0; step < PERIOD; step++)
          own -= 0.1 * w_gradient(i, PERIOD * (round - 1) + step, j, own);
        sum += spec.weights[i] * (x.anchor - own), weights += spec.weights[i];
      }
      outer_step(&x, &spec.options, sum / weights, round);
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
    check_trace(GT_OUTER_SGD, 1, 0, 0, nregions);
    check_trace(GT_OUTER_SGD, 0.8, 0, 0.5, nregions);
    check_trace(GT_OUTER_SGD, 0.8, 0.1, 0.5, nregions);
    check_trace(GT_OUTER_NESTEROV, 0.7, 0, 0.9, nregions);
    check_trace(GT_OUTER_NESTEROV, 0.7, 0.2, 0.9, nregions);
    check_trace(GT_OUTER_ADAM, 0.1, 0, 0.9, nregions);
    check_trace(GT_OUTER_ADAM, 0.1, 0.01, 0.9, nregions);
  }
}

TESTS(test_lr_1_is_the_mean, test_identical, test_equations)
