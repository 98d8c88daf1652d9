/* Elementary functions and partial registers for the vector code of isa/.  exp and tanh are
   approximated with a few float32 operations (the polynomials of Cephes, Moshier 1992), which are
   rounded one by one where products are not fused with sums. */
#ifndef GEOTRAIN_TENSOR_ELEMENTARY_H
#define GEOTRAIN_TENSOR_ELEMENTARY_H

#include <string.h>

#include "geotrain/tensor/vector.h"

GT_INLINE gt_vf gt_v_choose(gt_vi mask, gt_vf yes, gt_vf no) {
  return (gt_vf)(((gt_vi)yes & mask) | ((gt_vi)no & ~mask));
}

/* The next n of at most GT_LANES elements; the others are 0. */
GT_INLINE gt_vf gt_v_take(const float *x, size_t n) {
  gt_vf v = {0};
  if (n == GT_LANES) return *(const gt_vf *)x;
  memcpy(&v, x, n * sizeof *x);
  return v;
}

GT_INLINE void gt_v_put(float *y, gt_vf v, size_t n) {
  if (n == GT_LANES)
    *(gt_vf *)y = v;
  else
    memcpy(y, &v, n * sizeof *y);
}

/* e^x for x in [-87, 88]; values beyond count as the nearer end.  A NaN stays a NaN. */
GT_INLINE gt_vf gt_v_exponential(gt_vf x) {
  const float round = 12582912.0F; /* 1.5 2^23: a sum with it has no fraction */
  const gt_vf low = (gt_vf){0} - 87.0F, high = (gt_vf){0} + 88.0F;
  x = gt_v_choose((gt_vi)(x < low), low, gt_v_choose((gt_vi)(x > high), high, x));
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

GT_INLINE gt_vf gt_v_sigmoid(gt_vf x) {
  return 1.0F / (1.0F + gt_v_exponential(-x));
}

/* Odd polynomial near 0, where 1 - 2 / (e^2x + 1) would lose digits. */
GT_INLINE gt_vf gt_v_tangent(gt_vf x) {
  const gt_vi sign = (gt_vi)x & INT32_MIN;
  const gt_vf size = (gt_vf)((gt_vi)x ^ sign), square = x * x;
  gt_vf p = square * -5.70498872745e-3F + 2.06390887954e-2F;
  p = p * square + -5.37397155531e-2F;
  p = p * square + 1.33314422036e-1F;
  p = p * square + -3.33332819422e-1F;
  const gt_vf small = p * square * x + x,
              large = 1.0F - 2.0F / (gt_v_exponential(size + size) + 1.0F);
  return gt_v_choose((gt_vi)(size < 0.625F), small, (gt_vf)((gt_vi)large | sign));
}

/* The sum and the largest of the lanes. */
GT_INLINE float gt_v_sum(gt_vf v) {
  float sum = 0.0F;
  for (int i = 0; i < GT_LANES; i++) sum += v[i];
  return sum;
}

GT_INLINE float gt_v_largest(gt_vf v) {
  float largest = v[0];
  for (int i = 1; i < GT_LANES; i++) largest = v[i] > largest ? v[i] : largest;
  return largest;
}

#endif
