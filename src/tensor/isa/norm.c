/* The passes of batch normalisation over memory, for float32 and bf16.  Products are rounded before
   they are added, and channels that do not fill a register are computed with the same operations in
   the same order, so that every set gives the same bits. */
#include <string.h>

#include "bf16_vector.h"
#include "loops.h"

/* Rows are summed in chunks: in float32 within a chunk, in double over the chunks. */
enum { CHUNK = 64 };
/* Channels whose sums stay in registers: two sums each and, backward, also their means. */
enum { WIDE = 4 * GT_LANES, NARROW = 2 * GT_LANES };

/* ---- sums of a chunk ---- */

/* Adds to sum x and to squares x^2, for x minus its first row, so that squares do not cancel if
   values are far from 0: `rows` rows, channels [c, c+WIDE). */
GT_INLINE void stats_wide(double *sum, double *squares, const void *x, gt_precision type,
                          size_t first, size_t rows, size_t C, size_t c) {
  gt_vf s[WIDE / GT_LANES] = {0}, q[WIDE / GT_LANES] = {0}, shift[WIDE / GT_LANES];
  for (size_t v = 0; v < WIDE / GT_LANES; v++) shift[v] = gt_load(x, c + GT_LANES * v, type);
  for (size_t m = 0; m < rows; m++)
    for (size_t v = 0; v < WIDE / GT_LANES; v++) {
      const gt_vf at = gt_load(x, (first + m) * C + c + GT_LANES * v, type) - shift[v];
      s[v] += at;
      q[v] += at * at;
    }
  for (size_t i = 0; i < WIDE; i++) {
    sum[c + i] += (double)s[i / GT_LANES][i % GT_LANES];
    squares[c + i] += (double)q[i / GT_LANES][i % GT_LANES];
  }
}

/* Does the same for channel c alone, with the same operations in the same order. */
GT_INLINE void stats1(double *sum, double *squares, const void *x, gt_precision type, size_t first,
                      size_t rows, size_t C, size_t c) {
  const float shift = gt_load1(x, c, type);
  float s = 0.0F, q = 0.0F;
  for (size_t m = 0; m < rows; m++) {
    const float at = gt_load1(x, (first + m) * C + c, type) - shift;
    s += at;
    q += at * at;
  }
  sum[c] += (double)s;
  squares[c] += (double)q;
}

GT_INLINE void stats(double *sum, double *squares, const void *x, gt_precision type,
                     const gt_norm_shape *n) {
  for (size_t first = 0; first < n->M; first += CHUNK) {
    const size_t rows = n->M - first < CHUNK ? n->M - first : CHUNK;
    size_t c = 0;
    for (; c + WIDE <= n->C; c += WIDE) stats_wide(sum, squares, x, type, first, rows, n->C, c);
    for (; c < n->C; c++) stats1(sum, squares, x, type, first, rows, n->C, c);
  }
}

/* ---- values ---- */

/* Computes y = a x + b [+ add] [ReLU]. */
GT_INLINE void apply(void *y, const void *x, const void *add, const float *a, const float *b,
                     gt_precision type, bool relu, size_t M, size_t C) {
  const gt_vf zero = {0};
  for (size_t m = 0; m < M; m++) {
    size_t c = 0;
    for (; c + GT_LANES <= C; c += GT_LANES) {
      gt_vf v = *(const gt_vf *)(a + c) * gt_load(x, m * C + c, type) + *(const gt_vf *)(b + c);
      if (add) v += gt_load(add, m * C + c, type);
      if (relu) v = gt_keep(~(gt_vi)(v < zero), v); /* a NaN stays a NaN */
      gt_store(y, m * C + c, type, v);
    }
    for (; c < C; c++) {
      float v = a[c] * gt_load1(x, m * C + c, type) + b[c];
      if (add) v += gt_load1(add, m * C + c, type);
      gt_store1(y, m * C + c, type, relu && v < 0.0F ? 0.0F : v);
    }
  }
}

/* ---- backward ---- */

GT_INLINE gt_vf gradient_vector(const gt_norm_gradient *g, size_t i, size_t c, gt_vf x,
                                gt_precision type) {
  const gt_vf zero = {0};
  gt_vf d = gt_load(g->dy, i, type);
  if (g->dy2) d += gt_load(g->dy2, i, type);
  if (!g->relu) return d;
  gt_vf out = *(const gt_vf *)(g->a + c) * x + *(const gt_vf *)(g->b + c);
  if (g->y) out = gt_load(g->y, i, type);
  return gt_keep((gt_vi)(out > zero), d);
}

GT_INLINE float gradient1(const gt_norm_gradient *g, size_t i, size_t c, float x,
                          gt_precision type) {
  float d = gt_load1(g->dy, i, type);
  if (g->dy2) d += gt_load1(g->dy2, i, type);
  if (!g->relu) return d;
  const float out = g->y ? gt_load1(g->y, i, type) : g->a[c] * x + g->b[c];
  return out > 0.0F ? d : 0.0F;
}

/* Computes sums of dz: sum += dz, product += dz (x - mean), channels [c, c+NARROW).  Also writes dz
   unless it is NULL. */
GT_INLINE void sums_wide(void *dz, double *sum, double *product, const gt_norm_gradient *g,
                         gt_precision type, size_t first, size_t rows, size_t C, size_t c) {
  gt_vf s[NARROW / GT_LANES] = {0}, q[NARROW / GT_LANES] = {0}, mean[NARROW / GT_LANES];
  for (size_t v = 0; v < NARROW / GT_LANES; v++)
    mean[v] = *(const gt_vf *)(g->mean + c + GT_LANES * v);
  for (size_t m = 0; m < rows; m++)
    for (size_t v = 0; v < NARROW / GT_LANES; v++) {
      const size_t i = (first + m) * C + c + GT_LANES * v;
      const gt_vf x = gt_load(g->x, i, type), d = gradient_vector(g, i, c + GT_LANES * v, x, type);
      s[v] += d;
      q[v] += d * (x - mean[v]);
      if (dz) gt_store(dz, i, type, d);
    }
  for (size_t i = 0; i < NARROW; i++) {
    sum[c + i] += (double)s[i / GT_LANES][i % GT_LANES];
    product[c + i] += (double)q[i / GT_LANES][i % GT_LANES];
  }
}

/* Does the same for channel c alone, with the same operations in the same order. */
GT_INLINE void sums1(void *dz, double *sum, double *product, const gt_norm_gradient *g,
                     gt_precision type, size_t first, size_t rows, size_t C, size_t c) {
  float s = 0.0F, q = 0.0F;
  for (size_t m = 0; m < rows; m++) {
    const size_t i = (first + m) * C + c;
    const float x = gt_load1(g->x, i, type), d = gradient1(g, i, c, x, type);
    s += d;
    q += d * (x - g->mean[c]);
    if (dz) gt_store1(dz, i, type, d);
  }
  sum[c] += (double)s;
  product[c] += (double)q;
}

GT_INLINE void sums(void *dz, double *sum, double *product, const gt_norm_gradient *g,
                    gt_precision type, const gt_norm_shape *n) {
  for (size_t first = 0; first < n->M; first += CHUNK) {
    const size_t rows = n->M - first < CHUNK ? n->M - first : CHUNK;
    size_t c = 0;
    for (; c + NARROW <= n->C; c += NARROW)
      sums_wide(dz, sum, product, g, type, first, rows, n->C, c);
    for (; c < n->C; c++) sums1(dz, sum, product, g, type, first, rows, n->C, c);
  }
}

/* Computes dx = a dz + q x + r. */
GT_INLINE void input_gradient(void *dx, const gt_norm_gradient *g, const float *q, const float *r,
                              gt_precision type, size_t M, size_t C) {
  for (size_t m = 0; m < M; m++) {
    size_t c = 0;
    for (; c + GT_LANES <= C; c += GT_LANES) {
      const size_t i = m * C + c;
      const gt_vf x = gt_load(g->x, i, type), d = gradient_vector(g, i, c, x, type);
      gt_store(dx, i, type,
               *(const gt_vf *)(g->a + c) * d + *(const gt_vf *)(q + c) * x +
                   *(const gt_vf *)(r + c));
    }
    for (; c < C; c++) {
      const size_t i = m * C + c;
      const float x = gt_load1(g->x, i, type);
      gt_store1(dx, i, type, g->a[c] * gradient1(g, i, c, x, type) + q[c] * x + r[c]);
    }
  }
}

/* ---- a copy for each type ---- */

static void stats_of(double *sum, double *squares, const void *x, const gt_norm_shape *n) {
  if (n->type == GT_BF16)
    stats(sum, squares, x, GT_BF16, n);
  else
    stats(sum, squares, x, GT_F32, n);
}

static void apply_of(void *y, const void *x, const void *add, const float *a, const float *b,
                     const gt_norm_shape *n) {
  if (n->type == GT_BF16)
    apply(y, x, add, a, b, GT_BF16, n->relu, n->M, n->C);
  else
    apply(y, x, add, a, b, GT_F32, n->relu, n->M, n->C);
}

static void sums_of(void *dz, double *sum, double *product, const gt_norm_gradient *g,
                    const gt_norm_shape *n) {
  if (n->type == GT_BF16)
    sums(dz, sum, product, g, GT_BF16, n);
  else
    sums(dz, sum, product, g, GT_F32, n);
}

static void input_of(void *dx, const gt_norm_gradient *g, const float *q, const float *r,
                     const gt_norm_shape *n) {
  if (n->type == GT_BF16)
    input_gradient(dx, g, q, r, GT_BF16, n->M, n->C);
  else
    input_gradient(dx, g, q, r, GT_F32, n->M, n->C);
}

/* ---- the mean over an image ---- */

GT_INLINE void mean_out(float *y, const void *x, gt_precision type, size_t N, size_t HW, size_t C) {
  const float share = 1.0F / (float)HW;
  memset(y, 0, N * C * sizeof *y);
  for (size_t n = 0; n < N; n++, y += C) {
    for (size_t i = 0; i < HW; i++)
      for (size_t c = 0; c < C; c++) y[c] += gt_load1(x, (n * HW + i) * C + c, type);
    for (size_t c = 0; c < C; c++) y[c] *= share;
  }
}

GT_INLINE void mean_back(void *dx, const float *dy, gt_precision type, size_t N, size_t HW,
                         size_t C) {
  const float share = 1.0F / (float)HW;
  for (size_t n = 0; n < N; n++)
    for (size_t i = 0; i < HW; i++)
      for (size_t c = 0; c < C; c++)
        gt_store1(dx, (n * HW + i) * C + c, type, dy[n * C + c] * share);
}

static void mean_forward(float *y, const void *x, gt_precision type, size_t N, size_t HW,
                         size_t C) {
  if (type == GT_BF16)
    mean_out(y, x, GT_BF16, N, HW, C);
  else
    mean_out(y, x, GT_F32, N, HW, C);
}

static void mean_backward(void *dx, const float *dy, gt_precision type, size_t N, size_t HW,
                          size_t C) {
  if (type == GT_BF16)
    mean_back(dx, dy, GT_BF16, N, HW, C);
  else
    mean_back(dx, dy, GT_F32, N, HW, C);
}

const gt_norm_loops GT_FOR_ISA(gt_norm_loops) = {.stats = stats_of,
                                                 .apply = apply_of,
                                                 .sums = sums_of,
                                                 .input = input_of,
                                                 .mean_forward = mean_forward,
                                                 .mean_backward = mean_backward};
