/* Max pooling of 2x2 windows that do not overlap, a vector of channels at a time.  If there are
   fewer channels than lanes, a store spills into the next pixel, which is written right after.  So
   pixels are computed in memory order, and the last ones, without space after them, one channel at
   a time. */
#include "geotrain/tensor/vector.h"
#include "loops.h"

GT_INLINE void max_one(float *y, uint32_t *index, const float *x, const size_t corner[4],
                       size_t c) {
  size_t best = corner[0] + c;
  for (size_t i = 1; i < 4; i++) {
    const size_t at = corner[i] + c;
    if (x[best] == x[best] && (x[at] > x[best] || x[at] != x[at])) best = at;
  }
  y[c] = x[best];
  index[c] = (uint32_t)best;
}

/* A window: x at its first channel, the distances to the right and lower neighbor, and its offset
   in x. */
typedef struct {
  const float *x;
  size_t right, below, at;
} window;

/* Takes the larger of two values and updates `where` with it.  A NaN replaces a number and is never
   replaced by one. */
GT_INLINE void take(gt_vf8 *best, gt_vi8 *where, const float *candidate, size_t distance) {
  const gt_vf8 v = *(const gt_vf8 *)candidate;
  const gt_vi8 better = (v > *best) | (v != v), at = (gt_vi8){0} + (int32_t)(uint32_t)distance;
  *best = (gt_vf8)(((gt_vi8)v & better) | ((gt_vi8)*best & ~better));
  *where = (at & better) | (*where & ~better);
}

/* Returns 0, 1, 2, ... */
GT_INLINE gt_vi8 lane(void) {
#if GT_LANES >= 8
  return (gt_vi8){0, 1, 2, 3, 4, 5, 6, 7};
#else
  return (gt_vi8){0, 1, 2, 3};
#endif
}

GT_INLINE void max_vector(float *y, uint32_t *index, const window *w, size_t c) {
  const float *x = w->x + c;
  gt_vf8 best = *(const gt_vf8 *)x;
  gt_vi8 where = {0};
  take(&best, &where, x + w->right, w->right);
  take(&best, &where, x + w->below, w->below);
  take(&best, &where, x + w->below + w->right, w->below + w->right);
  *(gt_vf8 *)(y + c) = best;
  *(gt_vi8 *)(index + c) = where + lane() + (int32_t)(uint32_t)(w->at + c);
}

static void max_forward(float *y, uint32_t *index, const float *x, const gt_conv_shape *s,
                        size_t N) {
  const size_t C = s->C, P = s->P, Q = s->Q, row = s->W * C, image = s->H * row;
  /* the end of a pixel's last vector */
  const size_t reach = (C + GT_LANES8 - 1) / GT_LANES8 * GT_LANES8;
  size_t left = N * P * Q;
  for (size_t n = 0; n < N; n++)
    for (size_t p = 0; p < P; p++)
      for (size_t q = 0; q < Q; q++, y += C, index += C, left--) {
        const size_t at = n * image + 2 * p * row + 2 * q * C;
        const window w = {x + at, C, row, at};
        size_t c = 0;
        if (left * C >= reach && N * image - at - row - C >= reach)
          for (; c < C; c += GT_LANES8) max_vector(y, index, &w, c);
        for (; c < C; c++) max_one(y, index, x, (size_t[4]){at, at + C, at + row, at + row + C}, c);
      }
}

/* Writes dx at one corner: dy if this corner was the maximum, else 0. */
GT_INLINE void spread(float *dx, const float *dy, const uint32_t *index, size_t at) {
  const gt_vi8 hit = *(const gt_vi8 *)index == lane() + (int32_t)(uint32_t)at;
  *(gt_vi8 *)dx = *(const gt_vi8 *)dy & hit;
}

static void max_backward(float *dx, const float *dy, const uint32_t *index, const gt_conv_shape *s,
                         size_t N) {
  const size_t C = s->C, Q = s->Q, row = s->W * C,
               reach = (C + GT_LANES8 - 1) / GT_LANES8 * GT_LANES8, inputs = N * s->H * row,
               outputs = N * s->P * Q * C;
  for (size_t n = 0; n < N; n++)
    for (size_t h = 0; h < 2 * s->P; h++) {
      size_t at = (n * s->H + h) * row, o = (n * s->P + h / 2) * Q * C;
      for (size_t q = 0; q < Q; q++, o += C)
        for (size_t side = 0; side < 2; side++, at += C) {
          size_t c = 0;
          if (o + reach <= outputs && at + reach <= inputs)
            for (; c < C; c += GT_LANES8) spread(dx + at + c, dy + o + c, index + o + c, at + c);
          for (; c < C; c++) dx[at + c] = index[o + c] == (uint32_t)(at + c) ? dy[o + c] : 0.0f;
        }
    }
}

const gt_pooling_loops GT_FOR_ISA(gt_pooling_loops) = {.max_forward = max_forward,
                                                       .max_backward = max_backward};
