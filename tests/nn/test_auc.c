/* The area under the ROC curve against its definition: over every pair of a positive and a
   negative. */
#include "tests.h"
#include "geotrain/nn.h"

#define MOST 700

static float scores[MOST];
static int32_t labels[MOST];
static uint32_t scratch[MOST + 1];

static double by_pairs(size_t n) {
  double won = 0, pairs = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) {
      if (labels[i] != 1 || labels[j] != 0) continue;
      pairs++;
      won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
  return won / pairs;
}

/* Few values give many ties; `shape` adds large, small, negative and infinite values. */
static float draw(gt_rng *rng, int shape) {
  double u = gt_rng_uniform(rng);
  switch (shape) {
  case 0:
    return (float)(2 * u - 1);
  case 1:
    return (float)((double)gt_rng_below(rng, 7) - 3);
  case 2:
    return (float)((u < 0.5 ? -1 : 1) * exp(150 * gt_rng_uniform(rng) - 75));
  default:
    return u < 0.1   ? INFINITY
           : u < 0.2 ? -INFINITY
           : u < 0.3 ? -0.0F
           : u < 0.4 ? 0.0F
                     : (float)(2 * u - 1) * 1e-40F;
  }
}

static void test_against_pairs(void) {
  for (uint64_t k = 0; k < 400; k++) {
    gt_rng rng = gt_rng_make(5, GT_RNG_SYNTH, k, 0);
    size_t n = 2 + (size_t)gt_rng_below(&rng, k < 300 ? 40 : MOST - 2);
    double positive = gt_rng_uniform(&rng);
    for (size_t i = 0; i < n; i++) {
      scores[i] = draw(&rng, (int)(k % 4));
      labels[i] = gt_rng_uniform(&rng) < positive;
    }
    labels[0] = 1;
    labels[n - 1] = 0;
    scratch[n] = 77;
    double found = gt_auc(scores, labels, n, scratch), needed = by_pairs(n);
    if (!(fabs(found - needed) <= 1e-14))
      fail_msg("case %d of %zu samples: %.17g, by pairs %.17g", (int)k, n, found, needed);
    assert_int_equal(scratch[n], 77);
  }
}

static void test_ends(void) {
  for (size_t i = 0; i < 100; i++) {
    labels[i] = i >= 60;
    scores[i] = (float)i - 50;
  }
  assert_true(gt_auc(scores, labels, 100, scratch) == 1);
  for (size_t i = 0; i < 100; i++) scores[i] = -scores[i];
  assert_true(gt_auc(scores, labels, 100, scratch) == 0);
  for (size_t i = 0; i < 100; i++) scores[i] = 0.25F;
  assert_true(gt_auc(scores, labels, 100, scratch) == 0.5);
  /* equal, whatever their signs */
  for (size_t i = 0; i < 100; i++) scores[i] = i % 2 ? 0.0F : -0.0F;
  assert_true(gt_auc(scores, labels, 100, scratch) == 0.5);
}

/* With negated scores it is 1 minus the area. */
static void test_inverse(void) {
  gt_rng rng = gt_rng_make(6, GT_RNG_SYNTH, 0, 0);
  for (size_t i = 0; i < MOST; i++) {
    labels[i] = (int32_t)gt_rng_below(&rng, 2);
    scores[i] = draw(&rng, 1) + (float)labels[i];
  }
  double found = gt_auc(scores, labels, MOST, scratch);
  assert_true(found > 0.55 && found < 0.75);
  for (size_t i = 0; i < MOST; i++) scores[i] = -scores[i];
  assert_true(fabs(gt_auc(scores, labels, MOST, scratch) - (1 - found)) < 1e-14);
}

static void test_there_is_none(void) {
  for (size_t i = 0; i < 10; i++) {
    labels[i] = 1;
    scores[i] = (float)i;
  }
  assert_true(isnan(gt_auc(scores, labels, 10, scratch)));
  memset(labels, 0, sizeof labels);
  assert_true(isnan(gt_auc(scores, labels, 10, scratch)));
  assert_true(isnan(gt_auc(scores, labels, 0, scratch)));
  labels[3] = 1;
  assert_true(!isnan(gt_auc(scores, labels, 10, scratch)));
  scores[7] = NAN;
  assert_true(isnan(gt_auc(scores, labels, 10, scratch)));
}

/* A million samples, all but a few with the same score: no order of them makes the sort slow or its
   recursion deep. */
static void test_many(void) {
  size_t n = 1000000;
  float *many = GT_NEW_ARRAY(float, n);
  int32_t *of = GT_NEW_ARRAY(int32_t, n);
  uint32_t *room = GT_NEW_ARRAY(uint32_t, n);
  for (size_t i = 0; i < n; i++) {
    many[i] = i < n / 2 ? 1.0F : (float)i;
    of[i] = i >= n / 2 || i % 2;
  }
  int64_t alive = gt_alloc_alive();
  /* The first half is tied, the second is above all of it: n/4 negatives; n/4 positives tied and
     n/2 above. */
  assert_true(fabs(gt_auc(many, of, n, room) - (0.5 * 0.25 + 0.5) / 0.75) < 1e-14);
  assert_true(gt_alloc_alive() == alive);
  gt_free(room);
  gt_free(of);
  gt_free(many);
}

/* If a model has one logit per class, the score is the logit of the second class minus that of the
   first. */
static void test_lean(void) {
  /* w of both classes, b of both */
  static const float x[3] = {1, -2, 0.5F}, params[4] = {0.25F, 1, 0.5F, -1};
  gt_graph *graph = NULL;
  gt_metrics metrics;
  gt_graph_spec spec = {.model = "dummy",
                        .shape = {1, 1, 1, 2, 0},
                        .batch_max = 4,
                        .kernels = gt_kernels_find("ref")};
  must(gt_graph_create(&graph, &spec));
  const gt_arrays *arrays = gt_graph_arrays(graph);
  assert_int_equal(arrays->params.n, 4);
  memcpy(arrays->params.data, params, sizeof params);
  gt_graph_step(graph, x, (const int32_t[3]){1, 0, 1}, 3, false, &metrics);
  scores[3] = 77;
  gt_graph_auc_scores(graph, 3, scores);
  for (size_t i = 0; i < 3; i++) assert_true(scores[i] == 0.75F * x[i] - 1.5F);
  assert_true(scores[3] == 77);
  gt_graph_close(graph);
}

TESTS(test_against_pairs, test_ends, test_inverse, test_lean, test_there_is_none, test_many)
