/* links: ps
   Fragments and delayed means of sma: their equations in float64; regions are equal at the end. */
#include "cases.h"
#include "ps/world.h"
#include "../src/sync/fragment.h"

#include <math.h>

enum { PERIOD = 4, STEPS = 22, MATRIX = 16 /* parameters of the first fragment of two */ };

/* One parameter in two regions. */
typedef struct {
  double w[2], sent[2], anchor;
  int64_t steps; /* since it was sent */
  bool pending;
} parameter;

static const double weights[2] = {0.75, 0.25};

static double mean_of(const double *x) {
  return weights[0] * x[0] + weights[1] * x[1];
}

static void take_mean(parameter *x, const gt_sync_options *o) {
  double next = mean_of(x->sent);
  if (o->outer == GT_OUTER_SGD) next = x->anchor -= o->outer_lr * (x->anchor - next);
  for (size_t i = 0; i < 2; i++) {
    if (x->steps == 0 || o->late == GT_LATE_REPLACE)
      x->w[i] = next;
    else if (o->late == GT_LATE_CARRY)
      x->w[i] = next + (x->w[i] - x->sent[i]);
    else
      x->w[i] = o->local_weight * x->w[i] + (1 - o->local_weight) * next;
  }
  x->pending = false;
}

static void send(parameter *x, const gt_sync_options *o, int64_t delay) {
  x->sent[0] = x->w[0], x->sent[1] = x->w[1];
  x->steps = 0;
  x->pending = true;
  if (delay == 0) take_mean(x, o);
}

/* The parameter after a run; `at`: the step of the period at which it is sent. */
static double expected(const gt_sync_options *o, size_t j, int64_t at) {
  parameter x = {.w = {(double)w_start(j), (double)w_start(j)}, .anchor = (double)w_start(j)};
  for (int64_t step = 1; step <= STEPS; step++) {
    for (size_t i = 0; i < 2; i++) x.w[i] -= 0.1 * w_gradient(i, step - 1, j, x.w[i]);
    x.steps++;
    if (x.pending && x.steps == o->delay) take_mean(&x, o);
    if ((step - at) % PERIOD == 0) send(&x, o, o->delay);
  }
  if (x.pending) take_mean(&x, o);
  if (x.steps > 0) send(&x, o, 0);
  return x.w[0];
}

static void check_equations(const gt_sync_options *options) {
  w_spec spec = {.strategy = "sma",
                 .nregions = 2,
                 .workers = {1, 1},
                 .samples = {100, 100},
                 .steps = {STEPS, STEPS},
                 .weights = {3, 1},
                 .options = *options,
                 .lag = {3 * W_MS, 3 * W_MS},
                 .optim = w_sgd(0.1, 0),
                 .seed = 4};
  spec.options.period = PERIOD;
  world *w = w_finished(&spec);
  for (size_t j = 0; j < W_PARAMS; j++) {
    const bool first = options->fragments == 1 || j < MATRIX;
    const double x = expected(options, j, first ? PERIOD : PERIOD / 2);
    for (size_t i = 0; i < 2; i++)
      if (fabs((double)w->regions[i].params[j] - x) > 1e-4)
        fail_msg("%d fragments, delay %d, late %d, region %zu, parameter %zu: %.8g; %.8g by the "
                 "equations",
                 (int)options->fragments, (int)options->delay, (int)options->late, i, j,
                 (double)w->regions[i].params[j], x);
  }
  w_close(w);
}

static void test_equations(void) {
  static const gt_late lates[] = {GT_LATE_CARRY, GT_LATE_BLEND, GT_LATE_REPLACE};
  for (int64_t fragments = 1; fragments <= 2; fragments++)
    for (int64_t delay = 0; delay < PERIOD; delay++)
      for (size_t late = 0; late < 3; late++)
        for (int outer = 0; outer < 2; outer++)
          check_equations(&(gt_sync_options){.fragments = fragments,
                                             .delay = delay,
                                             .late = lates[late],
                                             .local_weight = 0.3,
                                             .outer = outer ? GT_OUTER_SGD : GT_OUTER_NONE,
                                             .outer_lr = 0.6});
}

/* After uneven steps and early ends all regions hold the same model, over every topology, with and
   without a codec. */
static void test_identical(void) {
  static const gt_codec_kind kinds[] = {GT_CODEC_NONE, GT_CODEC_INT8, GT_CODEC_TOPK, GT_CODEC_MASK};
  for (uint64_t seed = 0; seed < cases(2000, 500); seed++) {
    w_spec spec = w_random_steps("sma", seed);
    const gt_codec_kind kind = kinds[seed % 4];
    const bool any = kind == GT_CODEC_NONE || gt_codec_has(kind, GT_RESUMS);
    w_place_over(&spec, w_topologies[seed / 4 % (any ? 4 : W_FORWARDING)]);
    spec.codec = w_codec(kind, 0.5);
    spec.options.period = 2 * (1 + (int64_t)(seed / 7 % 3));
    spec.options.fragments = 1 + (int64_t)(seed / 3 % 2);
    spec.options.delay = (int64_t)(seed / 5) % spec.options.period;
    spec.options.late = (gt_late)(seed / 11 % 3);
    spec.options.local_weight = 0.5;
    if (seed % 3 == 0) {
      spec.options.outer = GT_OUTER_NESTEROV;
      spec.options.outer_lr = 0.7, spec.options.outer_momentum = 0.5;
    }
    world *w = w_finished(&spec);
    w_check_identical(w);
    w_close(w);
  }
}

/* Every parameter is in one fragment, and if no tensor is longer than a tenth of the mean, no
   fragment is longer than 1.1 times the mean. */
static void test_equal_fragments(void) {
  enum { TENSORS = 200, MOST = 8 };
  gt_rng rng = gt_rng_make(9, GT_RNG_TEST, 0, 0);
  for (size_t k = 0; k < 200; k++) {
    gt_view tensors[TENSORS] = {{.count = 0}};
    gt_fragment parts[MOST];
    const size_t count = 1 + k % MOST, most = 1 + (size_t)gt_rng_below(&rng, 1000);
    size_t n = 0, largest = 0, all = 0;
    for (size_t i = 0; i < TENSORS; i++) {
      tensors[i].offset = n;
      tensors[i].count = 1 + (size_t)gt_rng_below(&rng, most);
      n += tensors[i].count;
      largest = tensors[i].count > largest ? tensors[i].count : largest;
    }
    float *seen = GT_NEW_ARRAY(float, n), *ones = GT_NEW_ARRAY(float, n);
    for (size_t j = 0; j < n; j++) ones[j] = 1;
    gt_fragments_open(parts, count, tensors, TENSORS, n);
    const double mean = (double)n / (double)count;
    for (size_t p = 0; p < count; p++) {
      gt_fragment_scatter(&parts[p], gt_vec_of(seen, n), gt_vec_of(ones, parts[p].n));
      all += parts[p].n;
      if ((double)largest <= mean / 10) assert_true((double)parts[p].n <= 1.1 * mean);
    }
    assert_int_equal(all, n);
    assert_memory_equal(seen, ones, n * sizeof *seen);
    for (size_t p = 0; p < count; p++) gt_fragment_close(&parts[p]);
    gt_free(ones), gt_free(seen);
  }
}

TESTS(test_equal_fragments, test_equations, test_identical)
