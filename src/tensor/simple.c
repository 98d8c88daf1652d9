/* Loops over rows and elements that the compiler vectorises for each instruction set. */
#include <string.h>

#include "kernels.h"
#include "simd.h"

/* Written so that a NaN stays a NaN.  No restrict: y may be x. */
GT_CLONES void gt_fast_relu_forward(float *y, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

GT_CLONES void gt_fast_relu_backward(float *dx, const float *dy, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const float d = dy[i]; /* read in any case, so that the choice becomes a mask and not a branch */
    dx[i] = y[i] > 0.0f ? d : 0.0f;
  }
}

void gt_fast_rows_fill(float *y, const float *b, size_t B, size_t O) {
  if (!b) {
    memset(y, 0, B * O * sizeof *y);
    return;
  }
  for (size_t n = 0; n < B; n++) memcpy(y + n * O, b, O * sizeof *y);
}

GT_CLONES void gt_fast_rows_sum(float *restrict sum, const float *restrict y, size_t B, size_t O) {
  memset(sum, 0, O * sizeof *sum);
  for (size_t n = 0; n < B; n++)
    for (size_t o = 0; o < O; o++) sum[o] += y[n * O + o];
}
