/* Layer normalisation, row by row.  Sums of a row have sixteen parts with every set, so the bits do
   not depend on the set. */
#include <math.h>

#include "functions_vector.h"
#include "loops.h"

#define EPSILON 1e-5F

/* Returns the number of elements of a step of sixteen at `d` that register `v` holds: 0 to
   GT_LANES. */
GT_INLINE size_t held(size_t D, size_t d, size_t v) {
  const size_t at = d + v * GT_LANES, left = at < D ? D - at : 0;
  return left < GT_LANES ? left : GT_LANES;
}

/* Returns a mask of the first n lanes. */
GT_INLINE gt_vi first_lanes(size_t n) {
  gt_vi number;
  for (int i = 0; i < GT_LANES; i++) number[i] = i;
  return number < (int32_t)n;
}

static float mean_of(const float *x, size_t D) {
  gt_sum16 sum = {0};
  for (size_t d = 0; d < D; d += 16)
    for (size_t v = 0; v < GT_IN16; v++)
      sum.lanes[v] += gt_take(x + d + v * GT_LANES, held(D, d, v));
  return gt_sum16_total(&sum) / (float)D;
}

static float variance_of(const float *x, float mean, size_t D) {
  gt_sum16 sum = {0};
  for (size_t d = 0; d < D; d += 16)
    for (size_t v = 0; v < GT_IN16; v++) {
      const size_t n = held(D, d, v);
      gt_vf beyond = gt_take(x + d + v * GT_LANES, n) - mean;
      if (n < GT_LANES) beyond = gt_choose(first_lanes(n), beyond, (gt_vf){0});
      sum.lanes[v] += beyond * beyond;
    }
  return gt_sum16_total(&sum) / (float)D;
}

static void forward(float *y, float *saved, const float *x, const float *gamma, const float *beta,
                    size_t M, size_t D) {
  for (size_t m = 0; m < M; m++, x += D, y += D) {
    const float mean = mean_of(x, D), inverse = 1.0F / sqrtf(variance_of(x, mean, D) + EPSILON);
    saved[2 * m] = mean;
    saved[2 * m + 1] = inverse;
    for (size_t d = 0; d < D; d += GT_LANES) {
      const size_t n = held(D, d, 0);
      gt_put(y + d,
             (gt_take(x + d, n) - mean) * inverse * gt_take(gamma + d, n) + gt_take(beta + d, n),
             n);
    }
  }
}

/* Computes dx = inverse (g - mean(g) - z mean(g z)), with z the normalised x and g = gamma dy. */
static void backward_input(float *dx, const float *dy, const float *x, const float *gamma,
                           const float *saved, size_t M, size_t D) {
  for (size_t m = 0; m < M; m++, x += D, dy += D, dx += D) {
    const float mean = saved[2 * m], inverse = saved[2 * m + 1];
    gt_sum16 sum = {0}, product = {0};
    for (size_t d = 0; d < D; d += 16)
      for (size_t v = 0; v < GT_IN16; v++) {
        const size_t at = d + v * GT_LANES, n = held(D, d, v);
        const gt_vf g = gt_take(gamma + at, n) * gt_take(dy + at, n);
        sum.lanes[v] += g; /* zero beyond the end, like g z */
        product.lanes[v] += g * ((gt_take(x + at, n) - mean) * inverse);
      }
    const float first = gt_sum16_total(&sum) / (float)D,
                second = gt_sum16_total(&product) / (float)D;
    for (size_t d = 0; d < D; d += GT_LANES) {
      const size_t n = held(D, d, 0);
      const gt_vf z = (gt_take(x + d, n) - mean) * inverse;
      gt_put(dx + d, inverse * (gt_take(gamma + d, n) * gt_take(dy + d, n) - first - z * second),
             n);
    }
  }
}

static void backward_weight(float *dgamma, float *dbeta, const float *dy, const float *x,
                            const float *saved, size_t M, size_t D) {
  memset(dgamma, 0, D * sizeof *dgamma);
  memset(dbeta, 0, D * sizeof *dbeta);
  for (size_t m = 0; m < M; m++, x += D, dy += D)
    for (size_t d = 0; d < D; d += GT_LANES) {
      const size_t n = held(D, d, 0);
      const gt_vf g = gt_take(dy + d, n), z = (gt_take(x + d, n) - saved[2 * m]) * saved[2 * m + 1];
      gt_put(dgamma + d, gt_take(dgamma + d, n) + g * z, n);
      gt_put(dbeta + d, gt_take(dbeta + d, n) + g, n);
    }
}

const gt_layernorm_loops GT_FOR_ISA(gt_layernorm_loops) = {
    .forward = forward, .backward_input = backward_input, .backward_weight = backward_weight};
