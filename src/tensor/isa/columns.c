/* Folds columns back into an image. */
#include <string.h>

#include "columns.h"
#include "geotrain/tensor/vector.h"
#include "loops.h"

static void fold(float *dx, const float *columns, const gt_conv_shape *s) {
  const size_t C = s->C, run = s->S * C;
  memset(dx, 0, s->H * s->W * C * sizeof *dx);
  for (size_t p = 0; p < s->P; p++)
    for (size_t q = 0; q < s->Q; q++)
      for (size_t r = 0; r < s->R; r++, columns += run) {
        size_t first, last;
        if (!gt_taps(s, p, q, r, &first, &last)) continue;
        float *restrict to =
            dx + ((p * s->stride + r - s->pad) * s->W + (q * s->stride + first - s->pad)) * C;
        for (size_t i = 0; i < (last - first) * C; i++) to[i] += columns[first * C + i];
      }
}

const gt_columns_loops GT_FOR_ISA(gt_columns_loops) = {.fold = fold};
