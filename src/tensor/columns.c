/* Images unfolded to columns, so that a convolution is a matrix product (im2col: Chellapilla et al.
   2006), and columns folded back. */
#include <string.h>

#include "columns.h"
#include "kernels.h"
#include "loops.h"

void gt_im2col(void *columns, const void *x, const gt_conv_shape *s, size_t size) {
  const size_t C = s->C * size, run = s->S * C; /* in bytes */
  char *to = columns;
  for (size_t p = 0; p < s->P; p++)
    for (size_t q = 0; q < s->Q; q++)
      for (size_t r = 0; r < s->R; r++, to += run) {
        size_t first, last;
        if (!gt_taps(s, p, q, r, &first, &last)) {
          memset(to, 0, run);
          continue;
        }
        const char *from =
            (const char *)x +
            ((p * s->stride + r - s->pad) * s->W + (q * s->stride + first - s->pad)) * C;
        memset(to, 0, first * C);
        memcpy(to + first * C, from, (last - first) * C);
        memset(to + last * C, 0, (s->S - last) * C);
      }
}

void gt_col2im(float *dx, const float *columns, const gt_conv_shape *s) {
  gt_loops()->columns->fold(dx, columns, s);
}
