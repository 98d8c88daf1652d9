/* Direct convolution for few channels, where a GEMM's blocks are mostly empty: the supported shapes
   and the layout of the operands. */
#include <string.h>

#include "kernels.h"
#include "loops.h"

static size_t round_up(size_t n, size_t to) {
  return (n + to - 1) / to * to;
}

static gt_direct direct_of(const gt_conv_shape *s) {
  const size_t lanes = s->K <= 8 ? 8 : 16, width = s->W + 2 * s->pad;
  return (gt_direct){
      .R = s->R,
      .L = s->S * s->C,
      .K = s->K,
      .P = s->P,
      .Q = s->Q,
      .Kp = round_up(s->K, lanes),
      .Lp = round_up(s->S * s->C, 16),
      .lanes = lanes,
      .row = width * s->C,
      .step = s->stride * s->C,
      .stride = s->stride,
      .image = (s->H + 2 * s->pad) * width * s->C,
      .out = s->P * s->Q * s->K,
  };
}

/* Returns the image with its zero border: x itself if there is no padding, else a copy at `to`. */
static const float *pad(float *to, const float *x, const gt_conv_shape *s) {
  if (s->pad == 0) return x;
  const size_t border = s->pad * s->C, inner = s->W * s->C, row = inner + 2 * border;
  memset(to, 0, s->pad * row * sizeof *to);
  for (size_t h = 0; h < s->H; h++) {
    float *line = to + (h + s->pad) * row;
    memset(line, 0, border * sizeof *to);
    memcpy(line + border, x + h * inner, inner * sizeof *to);
    memset(line + border + inner, 0, border * sizeof *to);
  }
  memset(to + (s->H + s->pad) * row, 0, s->pad * row * sizeof *to);
  return to;
}

/* True for at most 16 output channels, or 32 in whole vectors; with more, a GEMM is faster.  The
   window and its weights must fit into the first-level cache. */
bool gt_direct_serves(const gt_conv_shape *s) {
  const bool few = s->K <= 16 || (s->K <= 32 && s->K % 16 == 0);
  return few && s->C <= 32 && s->R * s->S * s->C <= 800;
}

size_t gt_direct_work(const gt_conv_shape *s) {
  const gt_direct g = direct_of(s);
  const size_t weights = g.R * g.L * g.Kp + g.Kp, transposed = g.R * g.K * g.Lp;
  return weights + transposed + g.P * g.Q * g.Kp + g.image + 16;
}

static void pack(float *to, const float *from, size_t rows, size_t n, size_t np) {
  gt_loops()->direct_forward->pack(to, from, rows, n, np);
}

void gt_direct_forward(float *y, const float *x, const float *w, const float *b,
                       const gt_conv_shape *s, size_t N, float *work) {
  const gt_direct g = direct_of(s);
  float *weights = work, *bias = weights + g.R * g.L * g.Kp, *padded = bias + g.Kp;
  pack(weights, w, g.R * g.L, g.K, g.Kp);
  if (b)
    pack(bias, b, 1, g.K, g.Kp);
  else
    memset(bias, 0, g.Kp * sizeof *bias);
  for (size_t n = 0; n < N; n++)
    gt_loops()->direct_forward->image(y + n * g.out, (N - n) * g.out,
                                      pad(padded, x + n * s->H * s->W * s->C, s), weights, bias,
                                      &g);
}

/* Writes wt (R, K, Lp) from w (R, L, K). */
static void transpose(float *wt, const float *w, const gt_direct *g) {
  memset(wt, 0, g->R * g->K * g->Lp * sizeof *wt);
  for (size_t r = 0; r < g->R; r++)
    for (size_t j = 0; j < g->L; j++)
      for (size_t k = 0; k < g->K; k++)
        wt[(r * g->K + k) * g->Lp + j] = w[(r * g->L + j) * g->K + k];
}

void gt_direct_backward_input(float *dx, const float *dy, const float *w, const gt_conv_shape *s,
                              size_t N, float *work) {
  const gt_direct g = direct_of(s);
  const size_t row = s->W * s->C;
  float *wt = work, *padded = wt + g.R * g.K * g.Lp;
  transpose(wt, w, &g);
  for (size_t n = 0; n < N; n++) {
    memset(padded, 0, (g.image + 16) * sizeof *padded);
    gt_loops()->direct_input->image(padded, dy + n * g.out, wt, &g);
    for (size_t h = 0; h < s->H; h++)
      memcpy(dx + (n * s->H + h) * row, padded + (h + s->pad) * g.row + s->pad * s->C,
             row * sizeof *dx);
  }
}

void gt_direct_backward_weight(float *dw, float *db, const float *dy, const float *x,
                               const gt_conv_shape *s, size_t N, float *work) {
  const gt_direct g = direct_of(s);
  float *sums = work, *biases = sums + g.R * g.L * g.Kp, *outputs = biases + g.Kp,
        *padded = outputs + (g.Kp == g.K ? 0 : g.P * g.Q * g.Kp);
  memset(sums, 0, (g.R * g.L + 1) * g.Kp * sizeof *sums);
  for (size_t n = 0; n < N; n++) {
    const float *d = dy + n * g.out, *from = pad(padded, x + n * s->H * s->W * s->C, s);
    if (g.Kp != g.K) {
      pack(outputs, d, g.P * g.Q, g.K, g.Kp);
      d = outputs;
    }
    if (db) gt_loops()->direct_weight->bias(biases, d, g.P * g.Q, g.Kp);
    gt_loops()->direct_weight->image(sums, d, from, &g);
  }
  for (size_t i = 0; i < g.R * g.L; i++) memcpy(dw + i * g.K, sums + i * g.Kp, g.K * sizeof *dw);
  if (db) memcpy(db, biases, g.K * sizeof *db);
}
