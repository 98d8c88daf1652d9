/* Max pooling, a vector of channels at a time. */
#include "bf16_vector.h"
#include "loops.h"

/* ---- 2x2 windows that do not overlap, in float32 --------------------------------------------- */

/* If there are fewer channels than lanes, a store spills into the next pixel, which is written
   right after.  So pixels are computed in memory order, and the last ones, without space after
   them, one channel at a time. */

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
  const gt_vi8 better = ((v > *best) | (v != v)) & (*best == *best),
               at = (gt_vi8){0} + (int32_t)(uint32_t)distance;
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

/* ---- windows of any size --------------------------------------------------------------------- */

typedef struct {
  size_t first, end;
} range;

/* The rows (or columns) of x that window p covers, of `size`. */
GT_INLINE range covered(size_t p, size_t reach, size_t stride, size_t pad, size_t size) {
  const size_t end = p * stride + reach;
  return (range){p * stride > pad ? p * stride - pad : 0, end < size + pad ? end - pad : size};
}

/* The windows, of `count`, that cover row (or column) h of x. */
GT_INLINE range covering(size_t h, size_t reach, size_t stride, size_t pad, size_t count) {
  const size_t end = (h + pad) / stride + 1;
  return (range){h + pad < reach ? 0 : (h + pad - reach) / stride + 1, end < count ? end : count};
}

/* What a window covers of an image of x, which begins at offset `image`. */
typedef struct {
  const void *x;
  gt_precision type;
  size_t image, row, C;
  range rows, columns;
} area;

/* Returns 0, 1, 2, ... */
GT_INLINE gt_vi lanes(void) {
  gt_vi i;
  for (int32_t k = 0; k < GT_LANES; k++) i[k] = k;
  return i;
}

/* Finds the maxima of channels [c, c + GT_LANES).  The first NaN is the maximum. */
GT_INLINE void window_max(void *y, uint32_t *index, area a, size_t c) {
  gt_vf best = {0};
  gt_vi where = {0}, found = {0};
  for (size_t h = a.rows.first; h < a.rows.end; h++)
    for (size_t w = a.columns.first; w < a.columns.end; w++) {
      const size_t at = a.image + h * a.row + w * a.C + c;
      const gt_vf v = gt_load(a.x, at, a.type);
      const gt_vi better = ~found | (((v > best) | (v != v)) & (best == best));
      best = (gt_vf)(((gt_vi)v & better) | ((gt_vi)best & ~better));
      where = ((lanes() + (int32_t)(uint32_t)at) & better) | (where & ~better);
      found = ~(gt_vi){0};
    }
  gt_store(y, c, a.type, best);
  *(gt_vi *)(index + c) = where;
}

GT_INLINE void window_max1(void *y, uint32_t *index, area a, size_t c) {
  size_t best = a.image + a.rows.first * a.row + a.columns.first * a.C + c;
  for (size_t h = a.rows.first; h < a.rows.end; h++)
    for (size_t w = a.columns.first; w < a.columns.end; w++) {
      const size_t at = a.image + h * a.row + w * a.C + c;
      const float v = gt_load1(a.x, at, a.type), b = gt_load1(a.x, best, a.type);
      if (b == b && (v > b || v != v)) best = at;
    }
  gt_store1(y, c, a.type, gt_load1(a.x, best, a.type));
  index[c] = (uint32_t)best;
}

GT_INLINE void forward_windows(void *y, uint32_t *index, const void *x, gt_precision type,
                               const gt_conv_shape *s, size_t N) {
  const size_t C = s->C, bytes = type == GT_BF16 ? sizeof(gt_bf16) : sizeof(float);
  for (size_t i = 0; i < N * s->P * s->Q; i++, index += C) {
    const area a = {.x = x,
                    .type = type,
                    .image = i / s->P / s->Q * s->H * s->W * C,
                    .row = s->W * C,
                    .C = C,
                    .rows = covered(i / s->Q % s->P, s->R, s->stride, s->pad, s->H),
                    .columns = covered(i % s->Q, s->S, s->stride, s->pad, s->W)};
    void *to = (char *)y + i * C * bytes;
    size_t c = 0;
    for (; c + GT_LANES <= C; c += GT_LANES) window_max(to, index, a, c);
    for (; c < C; c++) window_max1(to, index, a, c);
  }
}

GT_INLINE void backward_windows(void *dx, const void *dy, const uint32_t *index, gt_precision type,
                                const gt_conv_shape *s, size_t N) {
  for (size_t i = 0; i < N * s->H * s->W; i++) {
    const size_t first = i / s->H / s->W * s->P;
    const range rows = covering(i / s->W % s->H, s->R, s->stride, s->pad, s->P),
                columns = covering(i % s->W, s->S, s->stride, s->pad, s->Q);
    size_t c = 0;
    for (; c + GT_LANES <= s->C; c += GT_LANES) {
      gt_vf sum = {0};
      for (size_t p = rows.first; p < rows.end; p++)
        for (size_t q = columns.first; q < columns.end; q++) {
          const size_t o = ((first + p) * s->Q + q) * s->C + c;
          const gt_vi mine = lanes() + (int32_t)(uint32_t)(i * s->C + c);
          sum += gt_keep(*(const gt_vi *)(index + o) == mine, gt_load(dy, o, type));
        }
      gt_store(dx, i * s->C + c, type, sum);
    }
    for (; c < s->C; c++) {
      float sum = 0.0F;
      for (size_t p = rows.first; p < rows.end; p++)
        for (size_t q = columns.first; q < columns.end; q++) {
          const size_t o = ((first + p) * s->Q + q) * s->C + c;
          if (index[o] == i * s->C + c) sum += gt_load1(dy, o, type);
        }
      gt_store1(dx, i * s->C + c, type, sum);
    }
  }
}

static void window_forward(void *y, uint32_t *index, const void *x, gt_precision type,
                           const gt_conv_shape *s, size_t N) {
  if (type == GT_BF16)
    forward_windows(y, index, x, GT_BF16, s, N);
  else
    forward_windows(y, index, x, GT_F32, s, N);
}

static void window_backward(void *dx, const void *dy, const uint32_t *index, gt_precision type,
                            const gt_conv_shape *s, size_t N) {
  if (type == GT_BF16)
    backward_windows(dx, dy, index, GT_BF16, s, N);
  else
    backward_windows(dx, dy, index, GT_F32, s, N);
}

const gt_pooling_loops GT_FOR_ISA(gt_pooling_loops) = {.max_forward = max_forward,
                                                       .max_backward = max_backward,
                                                       .window_forward = window_forward,
                                                       .window_backward = window_backward};
