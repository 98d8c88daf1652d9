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

/* Takes the candidate where it is larger, or a NaN; a NaN already there is larger than nothing and stays. */
#define GT_TAKE(V, M, best, where, candidate, at)                                                                                                    \
  do {                                                                                                                                               \
    const M take = (M)(((candidate) > (best)) | ((candidate) != (candidate)));                                                                       \
    (best) = (V)(((M)(candidate)&take) | ((M)(best) & ~take));                                                                                       \
    (where) = ((at)&take) | ((where) & ~take);                                                                                                       \
  } while (0)

GT_INLINE void max_8(float *y, uint32_t *index, const float *x, const size_t corner[4], size_t c) {
  static const gt_m8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
  gt_v8 best = *(const gt_v8 *)(x + corner[0] + c);
  gt_m8 where = lane + (int32_t)(uint32_t)(corner[0] + c);
  for (size_t i = 1; i < 4; i++) {
    const gt_v8 candidate = *(const gt_v8 *)(x + corner[i] + c);
    const gt_m8 at = lane + (int32_t)(uint32_t)(corner[i] + c);
    GT_TAKE(gt_v8, gt_m8, best, where, candidate, at);
  }
  *(gt_v8 *)(y + c) = best;
  *(gt_m8 *)(index + c) = where;
}

GT_INLINE void max_16(float *y, uint32_t *index, const float *x, const size_t corner[4], size_t c) {
  static const gt_m16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  gt_v16 best = *(const gt_v16 *)(x + corner[0] + c);
  gt_m16 where = lane + (int32_t)(uint32_t)(corner[0] + c);
  for (size_t i = 1; i < 4; i++) {
    const gt_v16 candidate = *(const gt_v16 *)(x + corner[i] + c);
    const gt_m16 at = lane + (int32_t)(uint32_t)(corner[i] + c);
    GT_TAKE(gt_v16, gt_m16, best, where, candidate, at);
  }
  *(gt_v16 *)(y + c) = best;
  *(gt_m16 *)(index + c) = where;
}

GT_CLONES static void max_forward(float *y, uint32_t *index, const float *x, const gt_conv_shape *s, size_t N) {
  const size_t C = s->C, outputs = N * s->P * s->Q * C, inputs = N * s->H * s->W * C;
  size_t o = 0;
  for (size_t n = 0; n < N; n++)
    for (size_t p = 0; p < s->P; p++)
      for (size_t q = 0; q < s->Q; q++, o += C) {
        const size_t a = ((n * s->H + 2 * p) * s->W + 2 * q) * C, below = a + s->W * C;
        const size_t corner[4] = {a, a + C, below, below + C};
        size_t c = 0;
        for (; c + 16 <= C; c += 16) max_16(y + o, index + o, x, corner, c);
        const bool room = o + c + 8 * ((C - c + 7) / 8) <= outputs && below + C + c + 8 * ((C - c + 7) / 8) <= inputs;
        if (room)
          for (; c < C; c += 8) max_8(y + o, index + o, x, corner, c);
        for (; c < C; c++) max_one(y + o, index + o, x, corner, c);
      }
}

/* dx at one corner: dy where this corner was the maximum, else 0. */
GT_INLINE void spread_8(float *dx, const float *dy, const uint32_t *index, size_t at, size_t c) {
  static const gt_m8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
  const gt_m8 hit = *(const gt_m8 *)(index + c) == lane + (int32_t)(uint32_t)(at + c);
  *(gt_m8 *)(dx + at + c) = *(const gt_m8 *)(dy + c) & hit;
}

GT_INLINE void spread_16(float *dx, const float *dy, const uint32_t *index, size_t at, size_t c) {
  static const gt_m16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const gt_m16 hit = *(const gt_m16 *)(index + c) == lane + (int32_t)(uint32_t)(at + c);
  *(gt_m16 *)(dx + at + c) = *(const gt_m16 *)(dy + c) & hit;
}

GT_CLONES static void max_backward(float *dx, const float *dy, const uint32_t *index, const gt_conv_shape *s, size_t N) {
  const size_t C = s->C, outputs = N * s->P * s->Q * C, inputs = N * s->H * s->W * C;
  for (size_t n = 0; n < N; n++)
    for (size_t h = 0; h < 2 * s->P; h++)
      for (size_t w = 0; w < 2 * s->Q; w++) {
        const size_t at = ((n * s->H + h) * s->W + w) * C, o = ((n * s->P + h / 2) * s->Q + w / 2) * C;
        size_t c = 0;
        for (; c + 16 <= C; c += 16) spread_16(dx, dy + o, index + o, at, c);
        const size_t reach = c + 8 * ((C - c + 7) / 8);
        if (o + reach <= outputs && at + reach <= inputs)
          for (; c < C; c += 8) spread_8(dx, dy + o, index + o, at, c);
        for (; c < C; c++) dx[at + c] = index[o + c] == (uint32_t)(at + c) ? dy[o + c] : 0.0f;
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
