/* Batch normalisation in as few passes over memory as it takes: forward one for the statistics and one for the values (with the residual sum and the ReLU in it),
   backward one for the sums and one for the gradient.  Per channel, both second passes are affine, so their constants are worked out between.
   Rows go by in chunks whose sums are float32, added up in double. */
#include <math.h>
#include <string.h>

#include "bf16.h"
#include "kernels.h"

enum { CHUNK = 64, WIDE = 64 }; /* rows; channels whose sums stay in registers */

/* ---- sums of a chunk ---- */

/* sum += x, squares += x^2 over `rows` rows, channels [c, c+WIDE). */
GT_INLINE void stats_wide(double *sum, double *squares, const void *x, gt_precision type, size_t first, size_t rows, size_t C, size_t c) {
  gt_v16 s[WIDE / 16] = {0}, q[WIDE / 16] = {0};
  for (size_t m = 0; m < rows; m++)
    for (size_t v = 0; v < WIDE / 16; v++) {
      const gt_v16 at = gt_load16(x, (first + m) * C + c + 16 * v, type);
      s[v] += at;
      q[v] += at * at;
    }
  for (size_t i = 0; i < WIDE; i++) {
    sum[c + i] += (double)s[i / 16][i % 16];
    squares[c + i] += (double)q[i / 16][i % 16];
  }
}

GT_INLINE void stats(double *sum, double *squares, const void *x, gt_precision type, const gt_norm_shape *n) {
  for (size_t first = 0; first < n->M; first += CHUNK) {
    const size_t rows = n->M - first < CHUNK ? n->M - first : CHUNK;
    size_t c = 0;
    for (; c + WIDE <= n->C; c += WIDE) stats_wide(sum, squares, x, type, first, rows, n->C, c);
    for (; c < n->C; c++)
      for (size_t m = 0; m < rows; m++) {
        const double at = (double)gt_load1(x, (first + m) * n->C + c, type);
        sum[c] += at;
        squares[c] += at * at;
      }
  }
}

/* ---- values ---- */

/* y = a x + b [+ add] [ReLU] */
GT_INLINE void apply(void *y, const void *x, const void *add, const float *a, const float *b, gt_precision type, bool relu, size_t M, size_t C) {
  const gt_v16 zero = {0};
  for (size_t m = 0; m < M; m++) {
    size_t c = 0;
    for (; c + 16 <= C; c += 16) {
      gt_v16 v = *(const gt_v16 *)(a + c) * gt_load16(x, m * C + c, type) + *(const gt_v16 *)(b + c);
      if (add) v += gt_load16(add, m * C + c, type);
      if (relu) v = gt_keep(~(gt_i16)(v < zero), v); /* a NaN stays a NaN */
      gt_store16(y, m * C + c, type, v);
    }
    for (; c < C; c++) {
      float v = a[c] * gt_load1(x, m * C + c, type) + b[c];
      if (add) v += gt_load1(add, m * C + c, type);
      gt_store1(y, m * C + c, type, relu && v < 0.0F ? 0.0F : v);
    }
  }
}

/* ---- backward ---- */

/* Where the gradient passes: the ReLU's output is above 0.  Without a residual that is a x + b, which needs no reading of y. */
typedef struct {
  const float *a, *b, *mean;
  const void *dy, *dy2, *y, *x;
  bool relu;
} gradient;

GT_INLINE gt_v16 gradient16(const gradient *g, size_t i, size_t c, gt_v16 x, gt_precision type) {
  const gt_v16 zero = {0};
  gt_v16 d = gt_load16(g->dy, i, type);
  if (g->dy2) d += gt_load16(g->dy2, i, type);
  if (!g->relu) return d;
  gt_v16 out = *(const gt_v16 *)(g->a + c) * x + *(const gt_v16 *)(g->b + c);
  if (g->y) out = gt_load16(g->y, i, type);
  return gt_keep((gt_i16)(out > zero), d);
}

GT_INLINE float gradient1(const gradient *g, size_t i, size_t c, float x, gt_precision type) {
  float d = gt_load1(g->dy, i, type);
  if (g->dy2) d += gt_load1(g->dy2, i, type);
  if (!g->relu) return d;
  const float out = g->y ? gt_load1(g->y, i, type) : g->a[c] * x + g->b[c];
  return out > 0.0F ? d : 0.0F;
}

enum { NARROW = 32 };

/* Sums of dz: sum += dz, product += dz (x - mean), channels [c, c+NARROW); dz itself where it is asked for. */
GT_INLINE void sums_wide(void *dz, double *sum, double *product, const gradient *g, gt_precision type, size_t first, size_t rows, size_t C,
                         size_t c) {
  gt_v16 s[NARROW / 16] = {0}, q[NARROW / 16] = {0}, mean[NARROW / 16];
  for (size_t v = 0; v < NARROW / 16; v++) mean[v] = *(const gt_v16 *)(g->mean + c + 16 * v);
  for (size_t m = 0; m < rows; m++)
    for (size_t v = 0; v < NARROW / 16; v++) {
      const size_t i = (first + m) * C + c + 16 * v;
      const gt_v16 x = gt_load16(g->x, i, type), d = gradient16(g, i, c + 16 * v, x, type);
      s[v] += d;
      q[v] += d * (x - mean[v]);
      if (dz) gt_store16(dz, i, type, d);
    }
  for (size_t i = 0; i < NARROW; i++) {
    sum[c + i] += (double)s[i / 16][i % 16];
    product[c + i] += (double)q[i / 16][i % 16];
  }
}

GT_INLINE void sums(void *dz, double *sum, double *product, const gradient *g, gt_precision type, const gt_norm_shape *n) {
  for (size_t first = 0; first < n->M; first += CHUNK) {
    const size_t rows = n->M - first < CHUNK ? n->M - first : CHUNK;
    size_t c = 0;
    for (; c + NARROW <= n->C; c += NARROW) sums_wide(dz, sum, product, g, type, first, rows, n->C, c);
    for (; c < n->C; c++)
      for (size_t m = 0; m < rows; m++) {
        const size_t i = (first + m) * n->C + c;
        const float x = gt_load1(g->x, i, type), d = gradient1(g, i, c, x, type);
        sum[c] += (double)d;
        product[c] += (double)d * ((double)x - (double)g->mean[c]);
        if (dz) gt_store1(dz, i, type, d);
      }
  }
}

/* dx = a dz + q x + r */
GT_INLINE void input_gradient(void *dx, const gradient *g, const float *q, const float *r, gt_precision type, size_t M, size_t C) {
  for (size_t m = 0; m < M; m++) {
    size_t c = 0;
    for (; c + 16 <= C; c += 16) {
      const size_t i = m * C + c;
      const gt_v16 x = gt_load16(g->x, i, type), d = gradient16(g, i, c, x, type);
      gt_store16(dx, i, type, *(const gt_v16 *)(g->a + c) * d + *(const gt_v16 *)(q + c) * x + *(const gt_v16 *)(r + c));
    }
    for (; c < C; c++) {
      const size_t i = m * C + c;
      const float x = gt_load1(g->x, i, type);
      gt_store1(dx, i, type, g->a[c] * gradient1(g, i, c, x, type) + q[c] * x + r[c]);
    }
  }
}

/* ---- one copy for each type, compiled for each instruction set ---- */

GT_CLONES static void stats_f32(double *sum, double *squares, const void *x, const gt_norm_shape *n) {
  stats(sum, squares, x, GT_F32, n);
}
GT_CLONES static void stats_bf16(double *sum, double *squares, const void *x, const gt_norm_shape *n) {
  stats(sum, squares, x, GT_BF16, n);
}
GT_CLONES static void apply_f32(void *y, const void *x, const void *add, const float *a, const float *b, bool relu, size_t M, size_t C) {
  apply(y, x, add, a, b, GT_F32, relu, M, C);
}
GT_CLONES static void apply_bf16(void *y, const void *x, const void *add, const float *a, const float *b, bool relu, size_t M, size_t C) {
  apply(y, x, add, a, b, GT_BF16, relu, M, C);
}
GT_CLONES static void sums_f32(void *dz, double *sum, double *product, const gradient *g, const gt_norm_shape *n) {
  sums(dz, sum, product, g, GT_F32, n);
}
GT_CLONES static void sums_bf16(void *dz, double *sum, double *product, const gradient *g, const gt_norm_shape *n) {
  sums(dz, sum, product, g, GT_BF16, n);
}
GT_CLONES static void input_f32(void *dx, const gradient *g, const float *q, const float *r, size_t M, size_t C) {
  input_gradient(dx, g, q, r, GT_F32, M, C);
}
GT_CLONES static void input_bf16(void *dx, const gradient *g, const float *q, const float *r, size_t M, size_t C) {
  input_gradient(dx, g, q, r, GT_BF16, M, C);
}

/* ---- the table's functions ---- */

/* The scratch: 2C doubles, then 4C floats. */
static double *doubles_of(float *work) {
  return (double *)(void *)work;
}

void gt_norm_forward(void *y, const void *x, const void *add, const float *gamma, const float *beta, float *running_mean, float *running_var,
                     float *saved, const gt_norm_shape *s, float *work) {
  double *sum = doubles_of(work), *squares = sum + s->C;
  float *a = work + 4 * s->C, *b = a + s->C;
  const double M = (double)s->M, unbiased = s->M > 1 ? M / (M - 1) : 1;
  memset(sum, 0, 2 * s->C * sizeof *sum);
  (s->type == GT_BF16 ? stats_bf16 : stats_f32)(sum, squares, x, s);
  for (size_t c = 0; c < s->C; c++) {
    const double mean = sum[c] / M, var = fmax(squares[c] / M - mean * mean, 0), inverse = 1 / sqrt(var + (double)s->epsilon);
    saved[c] = (float)mean;
    saved[s->C + c] = (float)inverse;
    running_mean[c] += s->momentum * ((float)mean - running_mean[c]);
    running_var[c] += s->momentum * ((float)(var * unbiased) - running_var[c]);
    a[c] = gamma[c] * saved[s->C + c];
    b[c] = beta[c] - a[c] * saved[c];
  }
  (s->type == GT_BF16 ? apply_bf16 : apply_f32)(y, x, add, a, b, s->relu, s->M, s->C);
}

void gt_norm_infer(void *y, const void *x, const void *add, const float *gamma, const float *beta, const float *running_mean,
                   const float *running_var, const gt_norm_shape *s, float *work) {
  float *a = work, *b = a + s->C;
  for (size_t c = 0; c < s->C; c++) {
    a[c] = gamma[c] / sqrtf(running_var[c] + s->epsilon);
    b[c] = beta[c] - a[c] * running_mean[c];
  }
  (s->type == GT_BF16 ? apply_bf16 : apply_f32)(y, x, add, a, b, s->relu, s->M, s->C);
}

void gt_norm_backward(void *dx, void *dadd, float *dgamma, float *dbeta, const void *dy, const void *dy2, const void *y, const void *x,
                      const float *gamma, const float *beta, const float *saved, const gt_norm_shape *s, float *work) {
  double *sum = doubles_of(work), *product = sum + s->C;
  float *a = work + 4 * s->C, *b = a + s->C, *q = b + s->C, *r = q + s->C;
  const float *mean = saved, *inverse = saved + s->C;
  for (size_t c = 0; c < s->C; c++) {
    a[c] = gamma[c] * inverse[c];
    b[c] = beta[c] - a[c] * mean[c];
  }
  gradient g = {.a = a, .b = b, .mean = mean, .dy = dy, .dy2 = dy2, .y = dadd ? y : NULL, .x = x, .relu = s->relu};
  memset(sum, 0, 2 * s->C * sizeof *sum);
  (s->type == GT_BF16 ? sums_bf16 : sums_f32)(dadd, sum, product, &g, s);
  for (size_t c = 0; c < s->C; c++) { /* dx = gamma inv (dz - mean(dz) - xhat mean(dz xhat)) */
    const double inv = (double)inverse[c], slope = product[c] * inv * inv / (double)s->M;
    dbeta[c] = (float)sum[c];
    dgamma[c] = (float)(product[c] * inv);
    q[c] = (float)(-(double)a[c] * slope);
    r[c] = (float)(-(double)a[c] * (sum[c] / (double)s->M - (double)mean[c] * slope));
  }
  if (dadd) { /* it holds dz */
    g.dy = dadd;
    g.dy2 = NULL;
    g.relu = false;
  }
  (s->type == GT_BF16 ? input_bf16 : input_f32)(dx, &g, q, r, s->M, s->C);
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

GT_INLINE void mean_back(void *dx, const float *dy, gt_precision type, size_t N, size_t HW, size_t C) {
  const float share = 1.0F / (float)HW;
  for (size_t n = 0; n < N; n++)
    for (size_t i = 0; i < HW; i++)
      for (size_t c = 0; c < C; c++) gt_store1(dx, (n * HW + i) * C + c, type, dy[n * C + c] * share);
}

GT_CLONES void gt_mean_forward(float *y, const void *x, gt_precision type, size_t N, size_t HW, size_t C) {
  if (type == GT_BF16)
    mean_out(y, x, GT_BF16, N, HW, C);
  else
    mean_out(y, x, GT_F32, N, HW, C);
}

GT_CLONES void gt_mean_backward(void *dx, const float *dy, gt_precision type, size_t N, size_t HW, size_t C) {
  if (type == GT_BF16)
    mean_back(dx, dy, GT_BF16, N, HW, C);
  else
    mean_back(dx, dy, GT_F32, N, HW, C);
}
