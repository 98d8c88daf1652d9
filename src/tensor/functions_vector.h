/* exp, tanh and the logistic function of vectors, approximated with a few float32 operations (the
   polynomials of Cephes, Moshier 1992); and vectors shorter than a register.  For the files of
   isa/.  Compiled without contraction, every set gives the same bits. */
#pragma once

#include <string.h>

#include "geotrain/tensor/vector.h"

GT_INLINE gt_vf gt_choose(gt_vi mask, gt_vf yes, gt_vf no) {
  return (gt_vf)(((gt_vi)yes & mask) | ((gt_vi)no & ~mask));
}

/* Loads the next n of at most GT_LANES elements; the others are 0. */
GT_INLINE gt_vf gt_take(const float *x, size_t n) {
  gt_vf v = {0};
  if (n == GT_LANES) return *(const gt_vf *)x;
  memcpy(&v, x, n * sizeof *x);
  return v;
}

GT_INLINE void gt_put(float *y, gt_vf v, size_t n) {
  if (n == GT_LANES)
    *(gt_vf *)y = v;
  else
    memcpy(y, &v, n * sizeof *y);
}

/* Returns e^x for x in [-87, 88]; x is clamped to this range.  A NaN stays a NaN. */
GT_INLINE gt_vf gt_exponential(gt_vf x) {
  const float round = 12582912.0F; /* 1.5 2^23: a sum with it has no fraction */
  const gt_vf low = (gt_vf){0} - 87.0F, high = (gt_vf){0} + 88.0F;
  x = gt_choose((gt_vi)(x < low), low, gt_choose((gt_vi)(x > high), high, x));
  const gt_vf whole = x * 1.44269504F + round, n = whole - round;
  const gt_vf r = (x - n * 0.693359375F) - n * -2.12194440e-4F; /* n ln 2 in two parts */
  gt_vf p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  return p * (gt_vf)(((gt_vu)whole << 23) + 0x3f800000U); /* times 2^n */
}

GT_INLINE gt_vf gt_sigmoid(gt_vf x) {
  return 1.0F / (1.0F + gt_exponential(-x));
}

/* Returns tanh x: an odd polynomial near 0, where 1 - 2 / (e^2x + 1) would lose digits. */
GT_INLINE gt_vf gt_tangent(gt_vf x) {
  const gt_vi sign = (gt_vi)x & INT32_MIN;
  const gt_vf size = (gt_vf)((gt_vi)x ^ sign), square = x * x;
  gt_vf p = square * -5.70498872745e-3F + 2.06390887954e-2F;
  p = p * square + -5.37397155531e-2F;
  p = p * square + 1.33314422036e-1F;
  p = p * square + -3.33332819422e-1F;
  const gt_vf small = p * square * x + x,
              large = 1.0F - 2.0F / (gt_exponential(size + size) + 1.0F);
  return gt_choose((gt_vi)(size < 0.625F), small, (gt_vf)((gt_vi)large | sign));
}

/* Sixteen partial sums, added in the same order with every set. */
typedef struct {
  gt_vf lanes[GT_IN16];
} gt_sum16;

GT_INLINE float gt_sum16_total(const gt_sum16 *s) {
  float x[16];
  memcpy(x, s->lanes, sizeof x);
  for (size_t half = 8; half > 0; half /= 2)
    for (size_t i = 0; i < half; i++) x[i] += x[i + half];
  return x[0];
}
