/* Max pooling of 2x2 windows side by side, a vector of channels at a time.  Fewer channels than lanes: each store spills into the next pixel, which is
   written right after; so pixels go in the order of memory, and the last ones, behind which there is no room, one channel at a time. */
#include <string.h>

#include "kernels.h"
#include "simd.h"

static bool serves(const gt_conv_shape *s) {
  return s->R == 2 && s->S == 2 && s->stride == 2 && s->pad == 0;
}

GT_INLINE void max_one(float *y, uint32_t *index, const float *x, const size_t corner[4], size_t c) {
  size_t best = corner[0] + c;
  for (size_t i = 1; i < 4; i++) {
    const size_t at = corner[i] + c;
    if (x[best] == x[best] && (x[at] > x[best] || x[at] != x[at])) best = at;
  }
  y[c] = x[best];
  index[c] = (uint32_t)best;
}

/* What one window has: x at its first channel, the distances to its neighbours to the right and below, and its offset in x. */
typedef struct {
  const float *x;
  size_t right, below, at;
} window;

/* The larger of two, or a NaN: one that comes is taken, one that is there stays.  `where` follows. */
GT_INLINE void take_8(gt_v8 *best, gt_m8 *where, const float *candidate, size_t distance) {
  const gt_v8 v = *(const gt_v8 *)candidate;
  const gt_m8 take = (v > *best) | (v != v), at = (gt_m8){0} + (int32_t)(uint32_t)distance;
  *best = (gt_v8)(((gt_m8)v & take) | ((gt_m8)*best & ~take));
  *where = (at & take) | (*where & ~take);
}

GT_INLINE void max_8(float *y, uint32_t *index, const window *w, size_t c) {
  static const gt_m8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
  const float *x = w->x + c;
  gt_v8 best = *(const gt_v8 *)x;
  gt_m8 where = {0};
  take_8(&best, &where, x + w->right, w->right);
  take_8(&best, &where, x + w->below, w->below);
  take_8(&best, &where, x + w->below + w->right, w->below + w->right);
  *(gt_v8 *)(y + c) = best;
  *(gt_m8 *)(index + c) = where + lane + (int32_t)(uint32_t)(w->at + c);
}

GT_CLONES static void max_forward(float *y, uint32_t *index, const float *x, const gt_conv_shape *s, size_t N) {
  const size_t C = s->C, P = s->P, Q = s->Q, row = s->W * C, image = s->H * row;
  const size_t reach = (C + 7) / 8 * 8; /* where the last vector of a pixel ends */
  size_t left = N * P * Q;
  for (size_t n = 0; n < N; n++)
    for (size_t p = 0; p < P; p++)
      for (size_t q = 0; q < Q; q++, y += C, index += C, left--) {
        const size_t at = n * image + 2 * p * row + 2 * q * C;
        const window w = {x + at, C, row, at};
        size_t c = 0;
        if (left * C >= reach && N * image - at - row - C >= reach)
          for (; c < C; c += 8) max_8(y, index, &w, c);
        for (; c < C; c++) max_one(y, index, x, (size_t[4]){at, at + C, at + row, at + row + C}, c);
      }
}

/* dx at one corner: dy where this corner was the maximum, else 0. */
GT_INLINE void spread_8(float *dx, const float *dy, const uint32_t *index, size_t at) {
  static const gt_m8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
  const gt_m8 hit = *(const gt_m8 *)index == lane + (int32_t)(uint32_t)at;
  *(gt_m8 *)dx = *(const gt_m8 *)dy & hit;
}

GT_CLONES static void max_backward(float *dx, const float *dy, const uint32_t *index, const gt_conv_shape *s, size_t N) {
  const size_t C = s->C, Q = s->Q, row = s->W * C, reach = (C + 7) / 8 * 8, inputs = N * s->H * row, outputs = N * s->P * Q * C;
  for (size_t n = 0; n < N; n++)
    for (size_t h = 0; h < 2 * s->P; h++) {
      size_t at = (n * s->H + h) * row, o = (n * s->P + h / 2) * Q * C;
      for (size_t q = 0; q < Q; q++, o += C)
        for (size_t side = 0; side < 2; side++, at += C) {
          size_t c = 0;
          if (o + reach <= outputs && at + reach <= inputs)
            for (; c < C; c += 8) spread_8(dx + at + c, dy + o + c, index + o + c, at + c);
          for (; c < C; c++) dx[at + c] = index[o + c] == (uint32_t)(at + c) ? dy[o + c] : 0.0f;
        }
    }
}

/* Odd images have a last row or column that no window covers. */
static void clear_edges(float *dx, const gt_conv_shape *s, size_t N) {
  const size_t row = s->W * s->C;
  for (size_t n = 0; n < N; n++) {
    float *image = dx + n * s->H * row;
    for (size_t h = 0; h < 2 * s->P && 2 * s->Q < s->W; h++) memset(image + h * row + 2 * s->Q * s->C, 0, (s->W - 2 * s->Q) * s->C * sizeof *dx);
    for (size_t h = 2 * s->P; h < s->H; h++) memset(image + h * row, 0, row * sizeof *dx);
  }
}

void gt_pool_max_forward(float *y, uint32_t *index, const float *x, const gt_conv_shape *s, size_t N) {
  if (serves(s))
    max_forward(y, index, x, s, N);
  else
    gt_kernels_ref.maxpool_forward(y, index, x, s, N);
}

void gt_pool_max_backward(float *dx, const float *dy, const uint32_t *index, const gt_conv_shape *s, size_t N) {
  if (serves(s)) {
    max_backward(dx, dy, index, s, N);
    clear_edges(dx, s, N);
  } else {
    gt_kernels_ref.maxpool_backward(dx, dy, index, s, N);
  }
}
