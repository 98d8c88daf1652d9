/* links: ps
   The guard of means: a region that is excluded is in no sum and in no divisor, over every
   topology, with and without codec; regions stay identical; its state is in checkpoints. */
#include "cases.h"
#include "ps/world.h"

#include <math.h>

enum { PERIOD = 4, REGIONS = 4, BAD = 2 /* the region that is excluded */ };

typedef enum { LOST, HUGE_STEP, BUFFERS } harm;

static void harm_region(w_region *r, harm how) {
  for (size_t j = 0; j < W_PARAMS && how == LOST; j += 5) r->params[j] = NAN;
  for (size_t j = 0; j < W_PARAMS && how == HUGE_STEP; j++) r->params[j] += 1000;
  if (how == BUFFERS) r->workers[0].buffers[1] = INFINITY;
}

/* Harms the regions from `first` to `last` while they compute this step. */
static void harm_at(world *w, size_t first, size_t last, int64_t step, harm how) {
  bool done[REGIONS] = {false};
  for (size_t left = last - first + 1; left > 0;) {
    w_check(w, w_step(w));
    for (size_t i = first; i <= last; i++) {
      w_region *r = &w->regions[i];
      w_check(w, done[i] || w_view(w, i).steps < step);
      if (done[i] || w_view(w, i).steps != step - 1 || r->workers[0].work != W_TRAINING) continue;
      harm_region(r, how);
      done[i] = true;
      left--;
    }
  }
}

static w_spec guarded(gt_topology topology, gt_codec_kind kind, double density) {
  w_spec spec = {.strategy = "sma",
                 .nregions = REGIONS,
                 .workers = {1, 1, 1, 1},
                 .samples = {100, 100, 100, 100},
                 .steps = {24, 24, 24, 24},
                 .weights = {3, 1, 2, 4},
                 .options = {.period = PERIOD,
                             .outer = GT_OUTER_SGD,
                             .outer_lr = 0.8,
                             .outer_momentum = 0.5,
                             .guard = {.outlier = 10, .warmup = 3}},
                 .lag = {3 * W_MS, 3 * W_MS, 9 * W_MS, 3 * W_MS},
                 .optim = w_sgd(0.1, 0),
                 .seed = 6};
  w_place_over(&spec, topology);
  if (kind != GT_CODEC_NONE) spec.codec = w_codec(kind, density);
  return spec;
}

static world *harmed(const w_spec *spec, int64_t step, harm how, int64_t excluded) {
  world *w = w_open(spec);
  harm_at(w, BAD, BAD, step, how);
  w_run(w);
  w_check_identical(w);
  for (size_t i = 0; i < w->n; i++)
    if (w_view(w, i).excluded != (i == BAD ? excluded : 0))
      fail_msg("harm %d: %d contributions of region %zu are excluded", (int)how,
               (int)w_view(w, i).excluded, i);
  return w;
}

/* Excluded from its last round, the region might as well have ended before it. */
static void test_no_trace(void) {
  static const gt_codec_kind kinds[] = {GT_CODEC_NONE, GT_CODEC_MASK, GT_CODEC_POWERSGD,
                                        GT_CODEC_INT8, GT_CODEC_TOPK};
  for (size_t c = 0; c < 5; c++)
    for (size_t t = 0; t < (c < 3 ? 4 : W_FORWARDING); t++)
      for (int64_t delay = 0; delay < 3; delay++)
        for (harm how = LOST; how <= BUFFERS; how++) {
          w_spec spec = guarded(w_topologies[t], kinds[c], 0.5);
          spec.options.delay = delay;
          spec.steps[BAD] = 20;
          world *with = harmed(&spec, 20, how, 1);
          spec.steps[BAD] = 16;
          world *without = w_finished(&spec);
          w_check_same(with, without);
          w_close(without);
          w_close(with);
        }
}

static double excluded_mean(const double *x, const w_spec *spec, bool excluded) {
  double sum = 0, weights = 0;
  for (size_t i = 0; i < REGIONS; i++) {
    if (i == BAD && excluded) continue;
    sum += spec->weights[i] * x[i], weights += spec->weights[i];
  }
  return sum / weights;
}

/* mask with density 1 sends every value. */
static void check_equations(gt_topology topology, gt_codec_kind kind, harm how) {
  const w_spec spec = guarded(topology, kind, 1);
  world *w = harmed(&spec, 5 * PERIOD, how, 1);
  for (size_t j = 0; j < W_PARAMS; j++) {
    double anchor = (double)w_start(j), velocity = 0;
    for (int round = 1; round <= 6; round++) {
      double change[REGIONS];
      for (size_t i = 0; i < REGIONS; i++) {
        double own = anchor;
        for (int step = 0; step < PERIOD; step++)
          own -= 0.1 * w_gradient(i, PERIOD * (round - 1) + step, j, own);
        change[i] = anchor - own;
      }
      velocity = 0.5 * velocity + excluded_mean(change, &spec, round == 5);
      anchor -= 0.8 * velocity;
    }
    const double x = (double)w->regions[0].params[j];
    if (fabs(x - anchor) > 1e-4)
      fail_msg("parameter %zu: %.8g; %.8g by the equations", j, x, anchor);
  }
  w_close(w);
}

static void test_equations(void) {
  for (size_t t = 0; t < 4; t++)
    for (harm how = LOST; how <= HUGE_STEP; how++) {
      check_equations(w_topologies[t], GT_CODEC_NONE, how);
      check_equations(w_topologies[t], GT_CODEC_MASK, how);
    }
}

/* An excluded region loses the steps of the delay: its next contribution is 0, and no outlier. */
static void test_delay(void) {
  for (size_t t = 0; t < 4; t++)
    for (int64_t delay = 1; delay < PERIOD; delay++) {
      w_spec spec = guarded(w_topologies[t], GT_CODEC_NONE, 1);
      spec.options.delay = delay;
      for (size_t i = 0; i < REGIONS; i++) spec.steps[i] = 20 + delay;
      w_close(harmed(&spec, 20, HUGE_STEP, 1));
    }
}

/* If all are excluded, the anchor of the round before stays. */
static void test_nobody(void) {
  static const gt_codec_kind kinds[] = {GT_CODEC_NONE, GT_CODEC_POWERSGD, GT_CODEC_INT8};
  for (size_t c = 0; c < 3; c++)
    for (size_t t = 0; t < (c < 2 ? 4 : W_FORWARDING); t++)
      for (int64_t delay = 0; delay < 2; delay++) {
        w_spec spec = guarded(w_topologies[t], kinds[c], 0.5);
        spec.options.delay = delay;
        world *w = w_open(&spec);
        harm_at(w, 0, REGIONS - 1, 24, LOST);
        w_run(w);
        for (size_t i = 0; i < REGIONS; i++) w_check(w, w_view(w, i).excluded == 1);
        for (size_t i = 0; i < REGIONS; i++) spec.steps[i] = 20;
        world *shorter = w_finished(&spec);
        for (size_t i = 0; i < REGIONS; i++)
          w_check(w, w_same(w->regions[i].params, shorter->regions[i].params, W_PARAMS));
        w_close(shorter);
        w_close(w);
      }
}

/* Before the end of the warm-up no finite contribution is excluded; the mean is clipped. */
static void test_warmup_and_clip(void) {
  w_spec spec = guarded(GT_TOPOLOGY_MESH, GT_CODEC_NONE, 1);
  spec.options.guard.clip = 0.25;
  spec.options.outer_lr = 1, spec.options.outer_momentum = 0;
  for (size_t i = 0; i < REGIONS; i++) spec.steps[i] = 2 * PERIOD;
  world *w = harmed(&spec, 2 * PERIOD, HUGE_STEP, 0);
  double squares = 0;
  for (size_t j = 0; j < W_PARAMS; j++)
    squares += pow((double)w->regions[0].params[j] - (double)w_start(j), 2);
  assert_true(sqrt(squares) <= 2 * 0.25 + 1e-6 && sqrt(squares) > 0.25);
  w_close(w);
}

/* Whatever happens to the regions, they hold the same model at the end. */
static void test_identical(void) {
  static const gt_codec_kind kinds[] = {GT_CODEC_NONE, GT_CODEC_INT8, GT_CODEC_TOPK, GT_CODEC_MASK,
                                        GT_CODEC_POWERSGD};
  int64_t excluded = 0;
  for (uint64_t seed = 0; seed < cases(2000, 500); seed++) {
    w_spec spec = w_random_steps("sma", seed);
    const gt_codec_kind kind = kinds[seed % 5];
    const bool any = kind == GT_CODEC_NONE || gt_codec_has(kind, GT_RESUMS);
    gt_rng rng = gt_rng_make(seed, GT_RNG_TEST, 21, 0);
    w_place_over(&spec, w_topologies[seed / 5 % (any ? 4 : W_FORWARDING)]);
    spec.codec = w_codec(kind, 0.5);
    spec.options.period = 2 * (1 + (int64_t)(seed / 7 % 3));
    spec.options.fragments = kind == GT_CODEC_POWERSGD ? 1 : 1 + (int64_t)(seed / 3 % 2);
    spec.options.delay = (int64_t)(seed / 5) % spec.options.period;
    spec.options.late = (gt_late)(seed / 11 % 3);
    spec.options.local_weight = 0.5;
    spec.options.guard = (gt_guard_options){.outlier = 0.5, .warmup = (int64_t)(seed % 3)};
    spec.nonfinite_limit = 1000;
    world *w = w_open(&spec);
    for (int64_t left = 3; !w_all_in(w, GT_PS_COMPLETE) && w_step(w);) {
      const size_t i = gt_rng_below(&rng, w->n);
      const gt_ps_view v = w_view(w, i);
      const bool more = v.phase == GT_PS_TRAINING && v.steps > 0 && v.steps < spec.steps[i];
      if (left == 0 || !more || gt_rng_below(&rng, 20) > 0) continue;
      harm_region(&w->regions[i], (harm)gt_rng_below(&rng, w->n > 1 ? 3 : 2));
      left--;
    }
    for (size_t i = 0; i < w->n; i++) {
      excluded += w_view(w, i).excluded;
      for (size_t j = 0; j < W_PARAMS; j++) w_check(w, isfinite(w->regions[i].params[j]));
    }
    w_check_identical(w);
    w_close(w);
  }
  if (excluded < 300) fail_msg("%d contributions are excluded", (int)excluded);
}

/* A crash at any event changes no bit: some norms are outliers, or all regions diverge. */
static void test_crashes(void) {
  static const gt_codec_kind kinds[] = {GT_CODEC_NONE, GT_CODEC_INT8, GT_CODEC_POWERSGD};
  int64_t excluded = 0;
  for (size_t c = 0; c < 3; c++)
    for (size_t t = 0; t < (c == 1 ? W_FORWARDING : 4); t++)
      for (int64_t variant = 0; variant < 4; variant++) {
        w_spec spec = guarded(w_topologies[t], kinds[c], 0.5);
        spec.write_s = 0.01;
        spec.nonfinite_limit = 1000;
        spec.options.period = 2;
        spec.options.delay = variant % 2;
        spec.options.guard = (gt_guard_options){.outlier = 0.1, .warmup = 1};
        if (variant / 2 == 1) spec.optim = w_sgd(1e25, 0.9);
        world *quiet = w_finished(&spec);
        for (size_t i = 0; i < REGIONS; i++) excluded += w_view(quiet, i).excluded;
        for (int64_t event = variant; event < quiet->events; event += stride(41)) {
          world *w = w_open(&spec);
          w_steps(w, event);
          w_crash_now(w, (size_t)event % w->n);
          w_run_until(w, GT_PS_COMPLETE);
          w_check_same(w, quiet);
          for (size_t i = 0; i < REGIONS; i++)
            w_check(w, w_view(w, i).excluded == w_view(quiet, i).excluded);
          w_close(w);
        }
        w_close(quiet);
      }
  assert_true(excluded > 100);
}

TESTS(test_no_trace, test_equations, test_delay, test_nobody, test_warmup_and_clip, test_identical,
      test_crashes)
