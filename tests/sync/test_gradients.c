/* links: ps
   asgd and asgd-ga with gradients.  With plain SGD at one rate they equal the same strategies with
   updates; otherwise a gradient is applied at the receiver's rate, and without the sender's
   momentum. */
#include "ps/world.h"

static const char *const names[] = {"asgd", "asgd-ga"};

/* The two differ in the order of roundings only.  A step makes at most 4 roundings in a region
   (product, sum, product, addition), each of at most M 2^-24; M = 8 covers start and targets.  A
   difference d changes a later gradient by at most 1.25 d, the largest curvature, so N steps of all
   regions enlarge it by at most (1 + 1.25 lr)^N. */
static void test_plain_sgd_at_one_rate(void) {
  const double lr = 0.02;
  double largest = 0;
  for (uint64_t seed = 0; seed < 400; seed++) {
    w_spec spec = w_random_steps(names[seed % 2], seed);
    spec.optim = w_sgd(lr, 0);
    world *a = w_finished(&spec);
    spec.options.gradients = true;
    world *b = w_finished(&spec);
    int64_t steps = 0;
    for (size_t i = 0; i < spec.nregions; i++) steps += spec.steps[i];
    double bound = 8 * (double)steps * 8 * ldexp(1, -24) * pow(1 + 1.25 * lr, (double)steps);
    assert_int_equal(a->events, b->events);
    for (size_t i = 0; i < spec.nregions; i++) {
      for (size_t j = 0; j < W_PARAMS; j++) {
        double x = (double)a->regions[i].params[j], y = (double)b->regions[i].params[j];
        assert_true(fabs(x - y) <= bound);
        largest = fmax(largest, fabs(x - (double)w_start(j)));
      }
      assert_memory_equal(a->regions[i].kept.samples, b->regions[i].kept.samples,
                          sizeof a->regions[i].kept.samples);
    }
    w_close(a);
    w_close(b);
  }
  assert_true(largest > 1); /* far more than any bound, so the law is not vacuous */
}

/* Region 0 makes two steps, region 1 none.  Computes the result of region 1: with updates, and with
   gradients that it applies at its own rate. */
static void by_hand(const w_spec *spec, double update[W_PARAMS], double gradient[W_PARAMS]) {
  const gt_lr_schedule *schedule = &spec->optim.schedule;
  for (size_t j = 0; j < W_PARAMS; j++) {
    double x = (double)w_start(j), v = 0, moved = 0, sum = 0;
    for (int64_t step = 0; step < 2; step++) {
      const double g = w_gradient(0, step, j, x);
      v = spec->optim.momentum * v + g;
      x -= gt_lr_at(schedule, step) * v;
      moved -= gt_lr_at(schedule, step) * v;
      sum += g;
    }
    update[j] = (double)w_start(j) + spec->options.scale * moved;
    gradient[j] = (double)w_start(j) - spec->options.scale * gt_lr_at(schedule, 0) * sum;
  }
}

static void check_by_hand(w_spec spec) {
  double update[W_PARAMS], gradient[W_PARAMS], apart = 0;
  by_hand(&spec, update, gradient);
  world *a = w_finished(&spec);
  spec.options.gradients = true;
  world *b = w_finished(&spec);
  /* the sender's own steps do not depend on what it sends */
  assert_true(w_same(a->regions[0].params, b->regions[0].params, W_PARAMS));
  for (size_t j = 0; j < W_PARAMS; j++) {
    assert_float_equal(a->regions[1].params[j], update[j], 1e-5);
    assert_float_equal(b->regions[1].params[j], gradient[j], 1e-5);
    apart = fmax(apart, fabs(update[j] - gradient[j]));
  }
  assert_true(apart > 0.05);
  w_close(a);
  w_close(b);
}

static void test_momentum_and_rates(void) {
  for (size_t s = 0; s < 2; s++) {
    w_spec spec = {.strategy = names[s],
                   .nregions = 2,
                   .workers = {1, 1},
                   .samples = {100, 100},
                   .steps = {2, 0},
                   .options.period = 2,
                   .seed = 9};
    for (int k = 0; k < 2; k++) {
      spec.options.scale = k ? 0.5 : 1;
      spec.optim = w_sgd(0.1, 0.9);
      check_by_hand(spec);
      /* the rate rises: the sender's second step has twice the rate of a region without a step */
      spec.optim = w_sgd(0.2, 0);
      spec.optim.schedule.warmup_steps = 4;
      check_by_hand(spec);
    }
  }
}

TESTS(test_plain_sgd_at_one_rate, test_momentum_and_rates)
