/* Images unfolded to columns, so that a convolution is a matrix product (im2col: Chellapilla et al. 2006), and columns folded back. */
#include <string.h>

#include "kernels.h"
#include "simd.h"

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Of output row p and column q, kernel row r: the taps [*first, *last) that lie in the image; false when none do. */
static bool taps(const gt_conv_shape *s, size_t p, size_t q, size_t r, size_t *first, size_t *last) {
  const size_t i = p * s->stride + r, j = q * s->stride;
  if (i < s->pad || i - s->pad >= s->H) return false;
  *first = j < s->pad ? least(s->pad - j, s->S) : 0;
  *last = s->W + s->pad > j ? least(s->W + s->pad - j, s->S) : 0;
  return *first < *last;
}

void gt_im2col(void *columns, const void *x, const gt_conv_shape *s, size_t size) {
  const size_t C = s->C * size, run = s->S * C; /* in bytes */
  char *to = columns;
  for (size_t p = 0; p < s->P; p++)
    for (size_t q = 0; q < s->Q; q++)
      for (size_t r = 0; r < s->R; r++, to += run) {
        size_t first, last;
        if (!taps(s, p, q, r, &first, &last)) {
          memset(to, 0, run);
          continue;
        }
        const char *from = (const char *)x + ((p * s->stride + r - s->pad) * s->W + (q * s->stride + first - s->pad)) * C;
        memset(to, 0, first * C);
        memcpy(to + first * C, from, (last - first) * C);
        memset(to + last * C, 0, (s->S - last) * C);
      }
}

GT_CLONES void gt_col2im(float *dx, const float *columns, const gt_conv_shape *s) {
  const size_t C = s->C, run = s->S * C;
  memset(dx, 0, s->H * s->W * C * sizeof *dx);
  for (size_t p = 0; p < s->P; p++)
    for (size_t q = 0; q < s->Q; q++)
      for (size_t r = 0; r < s->R; r++, columns += run) {
        size_t first, last;
        if (!taps(s, p, q, r, &first, &last)) continue;
        float *restrict to = dx + ((p * s->stride + r - s->pad) * s->W + (q * s->stride + first - s->pad)) * C;
        for (size_t i = 0; i < (last - first) * C; i++) to[i] += columns[first * C + i];
      }
}
