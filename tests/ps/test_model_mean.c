/* The mean of the regions' models at the end: weighted, and added in region order for any order of
   arrival.  Values that are equal in all regions are copied, separately for parameters and
   statistics. */
#include "tests.h"
#include "geotrain/ps_ending.h"

#define R ((size_t)4)
#define P ((size_t)3)
#define B ((size_t)2)

static const double weights[R] = {0.4, 0.3, 0.2, 0.1};

/* Makes region r's model; parameters and buffers are equal in all regions, or not. */
static void model_of(float *model, size_t r, bool alike, bool buffers_alike) {
  for (size_t i = 0; i < P; i++) model[i] = 0.1f * (float)(i + 1) + (alike ? 0 : 0.7f * (float)r);
  for (size_t i = P; i < P + B; i++)
    model[i] = 0.3f * (float)i + (buffers_alike ? 0 : 1.3f * (float)r);
}

static void by_hand(float *mean, bool alike, bool buffers_alike) {
  float model[P + B];
  memset(mean, 0, (P + B) * sizeof *mean);
  for (size_t r = 0; r < R; r++) {
    model_of(model, r, alike, buffers_alike);
    gt_vec_axpy(gt_vec_of(mean, P + B), (float)weights[r], gt_vec_of(model, P + B));
  }
  model_of(model, 0, alike, buffers_alike);
  if (alike) memcpy(mean, model, P * sizeof *mean);
  if (buffers_alike) memcpy(mean + P, model + P, B * sizeof *mean);
}

/* order: of arrival; this region's model becomes final before the `begun`-th arrival. */
static void run(const size_t order[R - 1], size_t begun, bool alike, bool buffers_alike) {
  float own[P + B], model[P + B], wanted[P + B];
  gt_model_mean m;
  model_of(own, 0, alike, buffers_alike);
  by_hand(wanted, alike, buffers_alike);
  gt_model_mean_open(&m, R, 0, weights, P, B);
  for (size_t i = 0; i <= R - 1; i++) {
    if (i == begun) gt_model_mean_begin(&m, gt_vec_of(own, P), gt_vec_of(own + P, B));
    if (i == R - 1) break;
    model_of(model, order[i], alike, buffers_alike);
    assert_true(gt_model_mean_add(&m, order[i], model));
    assert_false(gt_model_mean_add(&m, order[i], model));
  }
  gt_vec mean = gt_model_mean_finish(&m);
  assert_int_equal(mean.n, P + B);
  for (size_t i = 0; i < P + B; i++)
    if (mean.data[i] != wanted[i])
      fail_msg("%s %zu is %.9g; expected %.9g", i < P ? "parameter" : "statistic", i,
               (double)mean.data[i], (double)wanted[i]);
  gt_model_mean_close(&m);
}

static const size_t orders[][R - 1] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3},
                                       {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};

static void in_whatever_order_they_come(void) {
  for (size_t o = 0; o < COUNT(orders); o++)
    for (size_t begun = 0; begun < R; begun++) run(orders[o], begun, false, false);
}

static void equal_parameters_and_statistics_of_their_own(void) {
  for (size_t begun = 0; begun < R; begun++) {
    run(orders[0], begun, true, false);
    run(orders[3], begun, false, true);
    run(orders[5], begun, true, true);
  }
}

/* The model of a region without weight is ignored, even if it is NaN; the others are compared among
   themselves. */
static void without_weight(size_t idle, bool alike) {
  static const double shares[R] = {0.5, 0.3, 0.2, 0};
  double of[R];
  float models[R][P + B], wanted[P + B];
  gt_model_mean m;
  size_t first = idle == 0;
  memset(wanted, 0, sizeof wanted);
  for (size_t r = 0, k = 0; r < R; r++) {
    of[r] = r == idle ? 0 : shares[k++];
    model_of(models[r], r, alike, alike);
    if (r == idle) models[r][0] = NAN;
    if (r != idle) gt_vec_axpy(gt_vec_of(wanted, P + B), (float)of[r], gt_vec_of(models[r], P + B));
  }
  if (alike) memcpy(wanted, models[first], sizeof wanted);
  gt_model_mean_open(&m, R, 0, of, P, B);
  gt_model_mean_add(&m, 3, models[3]);
  gt_model_mean_begin(&m, gt_vec_of(models[0], P), gt_vec_of(models[0] + P, B));
  gt_model_mean_add(&m, 1, models[1]);
  gt_model_mean_add(&m, 2, models[2]);
  assert_memory_equal(gt_model_mean_finish(&m).data, wanted, sizeof wanted);
  gt_model_mean_close(&m);
}

static void those_without_weight_do_not_count(void) {
  for (size_t idle = 0; idle < R; idle++) {
    without_weight(idle, false);
    without_weight(idle, true);
  }
}

/* A model that arrives in its turn is not stored. */
static void few_lie_there(void) {
  float own[P + B], model[P + B];
  gt_model_mean m;
  model_of(own, 0, false, false);
  gt_model_mean_open(&m, R, 0, weights, P, B);
  gt_model_mean_begin(&m, gt_vec_of(own, P), gt_vec_of(own + P, B));
  for (size_t r = 1; r < R; r++) {
    model_of(model, r, false, false);
    gt_model_mean_add(&m, r, model);
  }
  gt_model_mean_close(&m);
}

TESTS(in_whatever_order_they_come, equal_parameters_and_statistics_of_their_own,
      those_without_weight_do_not_count, few_lie_there)
