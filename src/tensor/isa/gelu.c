/* GELU in its tanh form.  (1 + tanh(u)) / 2 is the logistic function of 2u, which costs one exp.
   The same bits with every set. */
#include "functions_vector.h"
#include "loops.h"

#define SLOPE 1.59576912F /* 2 sqrt(2 / pi) */
#define CUBIC 0.044715F

GT_INLINE gt_vf share_of(gt_vf x) {
  return gt_sigmoid(SLOPE * (x + CUBIC * (x * x * x)));
}

GT_INLINE gt_vf slope_of(gt_vf x) {
  const gt_vf share = share_of(x);
  return share + x * share * (1.0F - share) * (SLOPE + 3.0F * SLOPE * CUBIC * (x * x));
}

static void forward(float *y, const float *x, size_t n) {
  for (size_t i = 0; i < n; i += GT_LANES) {
    const size_t count = n - i < GT_LANES ? n - i : GT_LANES;
    const gt_vf v = gt_take(x + i, count);
    gt_put(y + i, v * share_of(v), count);
  }
}

static void backward(float *dx, const float *dy, const float *x, size_t n) {
  for (size_t i = 0; i < n; i += GT_LANES) {
    const size_t count = n - i < GT_LANES ? n - i : GT_LANES;
    gt_put(dx + i, gt_take(dy + i, count) * slope_of(gt_take(x + i, count)), count);
  }
}

const gt_gelu_loops GT_FOR_ISA(gt_gelu_loops) = {.forward = forward, .backward = backward};
