/* links: ps
   Rounds with a quorum: without late regions they are those of all regions, bit for bit; every step
   of every region is in the model once, with the weight of its lateness; regions are identical at
   the end; checkpoints have all that is in flight. */
#include "cases.h"
#include "ps/world.h"

#include <math.h>

static w_spec random_quorum(uint64_t seed, gt_ns grace) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 31, 0);
  w_spec s = w_random_steps("sma", seed);
  w_place_over(&s, GT_TOPOLOGY_HUB);
  s.options.outer = gt_rng_below(&rng, 2) ? GT_OUTER_NESTEROV : GT_OUTER_NONE;
  s.options.outer_lr = 0.7, s.options.outer_momentum = 0.5;
  s.options.quorum = 0.5 + 0.5 * gt_rng_uniform(&rng);
  s.options.grace = grace;
  for (size_t i = 0; i < s.nregions; i++) s.slow[i] = gt_rng_below(&rng, 3) ? 1 : 4;
  return s;
}

/* Without a quorum an outer optimizer with rate 1 sends differences too. */
static void test_nobody_is_late(void) {
  for (uint64_t seed = 0; seed < cases(400, 60); seed++) {
    w_spec spec = random_quorum(seed, 1000 * GT_SECOND);
    spec.local_async = false; /* else models depend on times */
    if (spec.options.outer == GT_OUTER_NONE)
      spec.options.outer = GT_OUTER_SGD, spec.options.outer_lr = 1, spec.options.outer_momentum = 0;
    world *a = w_finished(&spec);
    spec.options.quorum = 0;
    world *b = w_finished(&spec);
    w_check_same(a, b);
    w_close(b);
    w_close(a);
  }
}

/* ---- each step once -------------------------------------------------------------------------- */

enum { ROUNDS = 128, PERIOD = 3 };
#define RATE 0.01

static uint64_t masks[ROUNDS]; /* of each round: the regions in its mean, as bits */
static int64_t newest, late;

/* The gradient depends neither on the model nor on the batch, so a contribution is known. */
static double slope(size_t region, size_t j) {
  return 1 + (double)region + 0.5 * (double)(j % 3);
}

static void order_slope(w_region *r, w_worker *worker, const gt_ps_order *o) {
  w_plain.order(r, worker, o);
  for (size_t j = 0; j < W_PARAMS && o->kind == GT_PS_TRAIN; j++)
    worker->grads[j] = (float)slope(r->id, j);
}

static void note_mean(w_region *r, size_t to, const w_frame *f) {
  w_plain.post(r, to, f);
  if (r->world->spec.next[r->id] != r->id) return;
  newest = (int64_t)f->head.value;
  assert_in_range(newest, 1, ROUNDS - 1);
  masks[newest] = f->head.detail;
}

static w_spec slopes(uint64_t seed) {
  gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 32, 0);
  w_spec s = random_quorum(seed, (gt_ns)gt_rng_below(&rng, 3) * 15 * W_MS);
  s.nregions = 2 + (size_t)gt_rng_below(&rng, W_REGIONS - 1);
  w_place_over(&s, GT_TOPOLOGY_HUB);
  s.options.outer = GT_OUTER_NONE;
  s.options.period = PERIOD;
  s.options.delay = (int64_t)gt_rng_below(&rng, PERIOD);
  s.options.quorum = 0.51;
  s.optim = w_sgd(RATE, 0);
  s.local_async = false;
  for (size_t i = 0; i < s.nregions; i++) {
    s.steps[i] = PERIOD * (2 + (int64_t)gt_rng_below(&rng, 8));
    s.workers[i] = 1 + (size_t)gt_rng_below(&rng, 2);
    s.samples[i] = 200;
    s.weights[i] = 0.25 + gt_rng_uniform(&rng);
    s.lag[i] = gt_rng_below(&rng, 3) ? 2 * W_MS : 60 * W_MS;
    s.slow[i] = gt_rng_below(&rng, 3) ? 1 : 4;
  }
  return s;
}

/* The model after all means, in float64, from the regions of each. */
static void check_model(world *w) {
  double moved[W_PARAMS] = {0};
  int64_t parts[W_REGIONS] = {0}, last[W_REGIONS] = {0};
  for (int64_t round = 1; round <= newest; round++) {
    double weights = 0, mean[W_PARAMS] = {0};
    for (size_t i = 0; i < w->n; i++) {
      if (!(masks[round] >> i & 1)) continue;
      const int64_t behind = round - last[i] - 1;
      const double weight = w->weights[i] / (1 + 0.25 * (double)behind);
      late += behind > 0 && parts[i] > 0;
      weights += weight;
      for (size_t j = 0; j < W_PARAMS; j++) mean[j] += weight * PERIOD * RATE * slope(i, j);
      last[i] = round;
      parts[i]++;
    }
    w_check(w, weights > 0);
    for (size_t j = 0; j < W_PARAMS; j++) moved[j] += mean[j] / weights;
  }
  for (size_t i = 0; i < w->n; i++) w_check(w, parts[i] == w->spec.steps[i] / PERIOD);
  for (size_t j = 0; j < W_PARAMS; j++) {
    const double x = (double)w->regions[0].params[j], expected = (double)w_start(j) - moved[j];
    if (fabs(x - expected) > 1e-5 * (1 + fabs(moved[j])))
      fail_msg("seed %d, parameter %zu: %.8g; %.8g by the equations", (int)w->spec.seed, j, x,
               expected);
  }
}

static world *open_slopes(const w_spec *spec) {
  static w_problem problem;
  problem = w_plain;
  problem.order = order_slope;
  problem.post = note_mean;
  memset(masks, 0, sizeof masks);
  newest = 0;
  world *w = w_open(spec);
  w->problem = &problem;
  return w;
}

static void test_each_step_once(void) {
  for (uint64_t seed = 0; seed < cases(2000, 200); seed++) {
    const w_spec spec = slopes(seed);
    world *w = open_slopes(&spec);
    w_run(w);
    w_check_identical(w);
    check_model(w);
    w_close(w);
  }
  assert_true(late > 100);
}

/* A crash at any event.  What is late after it differs, because times do. */
static void test_crashes(void) {
  int64_t worlds = 0;
  late = 0;
  for (uint64_t seed = 0; seed < cases(40, 6); seed++) {
    const w_spec spec = slopes(1000 + seed);
    world *quiet = open_slopes(&spec);
    w_run(quiet);
    const int64_t events = quiet->events;
    w_close(quiet);
    for (int64_t event = worlds++ % stride(8); event < events; event += stride(8)) {
      world *w = open_slopes(&spec);
      w_steps(w, event);
      w_crash_now(w, (size_t)event % w->n);
      w_run_until(w, GT_PS_COMPLETE);
      w_check_identical(w);
      check_model(w);
      w_close(w);
    }
  }
  assert_true(late > 100);
}

/* ---- all options ----------------------------------------------------------------------------- */

static void test_identical(void) {
  static const gt_codec_kind kinds[] = {GT_CODEC_NONE, GT_CODEC_TOPK, GT_CODEC_INT8};
  for (uint64_t seed = 0; seed < cases(2000, 200); seed++) {
    gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 33, 0);
    w_spec spec = random_quorum(seed, (gt_ns)gt_rng_below(&rng, 3) * 10 * W_MS);
    if (seed % 3) spec.codec = w_codec(kinds[seed % 3], 0.5);
    spec.options.period = 2 * (1 + (int64_t)gt_rng_below(&rng, 3));
    spec.options.fragments = 1 + (int64_t)gt_rng_below(&rng, 2);
    spec.options.delay = (int64_t)gt_rng_below(&rng, (uint64_t)spec.options.period);
    spec.options.late = (gt_late)gt_rng_below(&rng, 3);
    spec.options.local_weight = 0.5;
    if (gt_rng_below(&rng, 2)) spec.options.guard = (gt_guard_options){.outlier = 0.5, .warmup = 1};
    spec.no_data = seed % 16 == 7;
    world *w = w_finished(&spec);
    w_check_identical(w);
    w_close(w);
    w = w_open(&spec);
    w_steps(w, (int64_t)gt_rng_below(&rng, 200));
    w_crash_now(w, (size_t)gt_rng_below(&rng, w->n));
    w_run_until(w, GT_PS_COMPLETE);
    w_check_identical(w);
    w_close(w);
  }
}

TESTS(test_nobody_is_late, test_each_step_once, test_crashes, test_identical)
