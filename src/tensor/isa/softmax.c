/* The exponentials of a long row of logits, and their sum. */
#include "elementary.h"
#include "loops.h"

enum { BLOCK = 1024 }; /* summed in float32; blocks are added in double */

/* The largest; among equals the first. */
static size_t best(const float *x, size_t n) {
  gt_vf most = {0};
  most += x[0];
  size_t k = 0, at = 0;
  for (; k + GT_LANES <= n; k += GT_LANES) {
    const gt_vf v = *(const gt_vf *)(x + k);
    most = gt_v_choose((gt_vi)(v > most), v, most);
  }
  float largest = gt_v_largest(most);
  for (; k < n; k++) largest = x[k] > largest ? x[k] : largest;
  while (at < n && x[at] != largest) at++;
  return at < n ? at : 0; /* NaN equals nothing */
}

static float block(float *y, const float *x, float shift, size_t n) {
  gt_vf sum = {0};
  size_t k = 0;
  float rest = 0.0F;
  for (; k + GT_LANES <= n; k += GT_LANES) {
    const gt_vf e = gt_v_exponential(*(const gt_vf *)(x + k) - shift);
    if (y) *(gt_vf *)(y + k) = e;
    sum += e;
  }
  for (; k < n; k++) {
    const float e = gt_v_exponential((gt_vf){0} + (x[k] - shift))[0];
    if (y) y[k] = e;
    rest += e;
  }
  return gt_v_sum(sum) + rest;
}

static double exponentials(float *y, const float *x, float shift, size_t n) {
  double sum = 0.0;
  for (size_t k = 0; k < n; k += BLOCK)
    sum += (double)block(y ? y + k : NULL, x + k, shift, n - k < BLOCK ? n - k : BLOCK);
  return sum;
}

const gt_softmax_loops GT_FOR_ISA(gt_softmax_loops) = {.best = best, .exponentials = exponentials};
