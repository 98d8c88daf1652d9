/* ReLU and sums over rows: functions of gt_kernels on the loops of isa/vec.c. */
#include <string.h>

#include "kernels.h"
#include "loops.h"

void gt_fast_relu_forward(float *y, const float *x, size_t n) {
  gt_loops()->vec->relu_forward(y, x, n);
}

void gt_fast_relu_backward(float *dx, const float *dy, const float *y, size_t n) {
  gt_loops()->vec->relu_backward(dx, dy, y, n);
}

void gt_fast_rows_fill(float *y, const float *b, size_t B, size_t O) {
  if (!b) {
    memset(y, 0, B * O * sizeof *y);
    return;
  }
  for (size_t n = 0; n < B; n++) memcpy(y + n * O, b, O * sizeof *y);
}

void gt_fast_rows_sum(float *sum, const float *y, size_t B, size_t O) {
  gt_loops()->vec->rows_sum(sum, y, B, O);
}
