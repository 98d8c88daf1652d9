/* Max pooling: vector loops for 2x2 windows that do not overlap, plain loops for other windows. */
#include <string.h>

#include "kernels.h"
#include "loops.h"

static bool serves(const gt_conv_shape *s) {
  return s->R == 2 && s->S == 2 && s->stride == 2 && s->pad == 0;
}

/* Odd images have a last row or column that no window covers. */
static void clear_edges(float *dx, const gt_conv_shape *s, size_t N) {
  const size_t row = s->W * s->C;
  for (size_t n = 0; n < N; n++) {
    float *image = dx + n * s->H * row;
    for (size_t h = 0; h < 2 * s->P && 2 * s->Q < s->W; h++)
      memset(image + h * row + 2 * s->Q * s->C, 0, (s->W - 2 * s->Q) * s->C * sizeof *dx);
    for (size_t h = 2 * s->P; h < s->H; h++) memset(image + h * row, 0, row * sizeof *dx);
  }
}

void gt_pool_max_forward(float *y, uint32_t *index, const float *x, const gt_conv_shape *s,
                         size_t N) {
  if (serves(s))
    gt_loops()->pooling->max_forward(y, index, x, s, N);
  else
    gt_kernels_ref.maxpool_forward(y, index, x, s, N);
}

void gt_pool_max_backward(float *dx, const float *dy, const uint32_t *index, const gt_conv_shape *s,
                          size_t N) {
  if (serves(s)) {
    gt_loops()->pooling->max_backward(dx, dy, index, s, N);
    clear_edges(dx, s, N);
  } else {
    gt_kernels_ref.maxpool_backward(dx, dy, index, s, N);
  }
}
