/* Winograd's convolution F(2x2, 3x3) (Lavin and Gray 2016): inputs and weights are transformed, 16
   matrix products (OpenBLAS) with a row per tile replace nine with a row per output, and the
   results are transformed back: 2.25 times fewer multiply-adds.  Tiles are computed in groups that
   stay in the cache.  The gradient of the input is the same convolution with the weights rotated by
   180 degrees; that of the weights is the transposed algorithm. */
#include <string.h>

#include "kernels.h"
#include "loops.h"
#include "winograd.h"

#include <cblas.h>
#undef I /* complex.h defines I, here the number of inputs of a linear layer */

enum { PLACES = GT_WINOGRAD_PLACES };

bool gt_winograd_serves(const gt_conv_shape *s) {
  return s->R == 3 && s->S == 3 && s->stride == 1 && s->pad <= 2 && s->C % 16 == 0 &&
         s->K % 16 == 0;
}

/* Returns the tiles in a group: enough rows for a product, few enough that both factors stay in
   the cache.  If there are several groups, the number is even and, if possible, a divisor of all
   tiles. */
static size_t group_of(const gt_tiles *g) {
  const size_t fit = (size_t)(1 << 19) / (PLACES * (g->C + g->K)), most = fit < 64 ? 64 : fit;
  if (g->all <= most) return g->all;
  for (size_t group = most / 2 * 2; group >= most / 2 && group > 0; group -= 2)
    if (g->all % group == 0) return group;
  return most / 2 * 2;
}

gt_tiles gt_winograd_tiles(const gt_conv_shape *s, size_t N, bool back) {
  gt_tiles g = {.H = s->H, .W = s->W, .C = s->C, .P = s->P, .Q = s->Q, .K = s->K, .pad = s->pad};
  if (back)
    g = (gt_tiles){
        .H = s->P, .W = s->Q, .C = s->K, .P = s->H, .Q = s->W, .K = s->C, .pad = 2 - s->pad};
  g.rows = (g.P + 1) / 2;
  g.columns = (g.Q + 1) / 2;
  g.all = N * g.rows * g.columns;
  g.group = group_of(&g);
  g.stride = g.group;
  return g;
}

size_t gt_winograd_work(const gt_conv_shape *s, size_t N) {
  const size_t a = gt_winograd_tiles(s, N, false).group, b = gt_winograd_tiles(s, N, true).group;
  return PLACES * (s->C * s->K + (a > b ? a : b) * (s->C + s->K)) + 16;
}

/* Convolves x (N,H,W,C) to y.  For each position of the window, the weights are (C,K), or (K,C) if
   turned. */
static void convolve(float *y, const float *x, const float *w, const float *b, gt_tiles g,
                     bool turned, float *work) {
  const gt_winograd_loops *loops = gt_loops()->winograd;
  const size_t nw = g.C * g.K;
  float *u = work, *v = u + PLACES * nw, *m = v + PLACES * g.group * g.C;
  loops->weights(u, w, nw, turned);
  for (size_t first = 0; first < g.all; first += g.group) {
    const size_t count = g.stride = g.all - first < g.group ? g.all - first : g.group;
    loops->input(v, x, GT_F32, &g, first, count);
    for (size_t i = 0; i < PLACES; i++)
      cblas_sgemm(CblasRowMajor, CblasNoTrans, turned ? CblasTrans : CblasNoTrans, (blasint)count,
                  (blasint)g.K, (blasint)g.C, 1.0F, v + i * count * g.C, (blasint)g.C, u + i * nw,
                  (blasint)(turned ? g.C : g.K), 0.0F, m + i * count * g.K, (blasint)g.K);
    loops->output(y, m, b, GT_F32, &g, first, count);
  }
}

void gt_winograd_forward(float *y, const float *x, const float *w, const float *b,
                         const gt_conv_shape *s, size_t N, float *work) {
  convolve(y, x, w, b, gt_winograd_tiles(s, N, false), false, work);
}

void gt_winograd_backward_input(float *dx, const float *dy, const float *w, const gt_conv_shape *s,
                                size_t N, float *work) {
  convolve(dx, dy, w, NULL, gt_winograd_tiles(s, N, true), true, work);
}

void gt_winograd_backward_weight(float *dw, float *db, const float *dy, const float *x,
                                 const gt_conv_shape *s, size_t N, float *work) {
  const gt_winograd_loops *loops = gt_loops()->winograd;
  gt_tiles g = gt_winograd_tiles(s, N, false);
  const size_t nw = g.C * g.K;
  float *u = work, *v = u + PLACES * nw, *z = v + PLACES * g.group * g.C;
  if (db) gt_fast_rows_sum(db, dy, N * s->P * s->Q, s->K);
  memset(u, 0, PLACES * nw * sizeof *u);
  for (size_t first = 0; first < g.all; first += g.group) {
    const size_t count = g.stride = g.all - first < g.group ? g.all - first : g.group;
    loops->input(v, x, GT_F32, &g, first, count);
    loops->gradient(z, dy, GT_F32, &g, first, count);
    for (size_t i = 0; i < PLACES; i++)
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)g.C, (blasint)g.K,
                  (blasint)count, 1.0F, v + i * count * g.C, (blasint)g.C, z + i * count * g.K,
                  (blasint)g.K, 1.0F, u + i * nw, (blasint)g.K);
  }
  loops->weight_gradient(dw, u, nw);
}
