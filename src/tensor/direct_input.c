/* Direct convolution, gradient of the input: an output's share of one kernel row is a run of L neighbours, formed in registers and added in place.
   A block takes outputs one below the other, whose runs never meet. */
#include <string.h>

#include "direct.h"

/* PB outputs, JV vectors of the run.  wt: (K, Lp) from this run on. */
GT_INLINE void block(float *dx, const float *dy, const float *wt, const gt_direct *g, const size_t PB, const size_t JV) {
  gt_v16 sum[20] = {{0}};
  const size_t below = g->Q * g->K, Lp = g->Lp;
  for (size_t k = 0; k < g->K; k++, wt += Lp) {
    gt_v16 weight[2];
    for (size_t v = 0; v < JV; v++) weight[v] = *(const gt_v16 *)(wt + 16 * v);
    for (size_t i = 0; i < PB; i++)
      for (size_t v = 0; v < JV; v++) sum[i * JV + v] += dy[i * below + k] * weight[v];
  }
  for (size_t i = 0; i < PB; i++)
    for (size_t v = 0; v < JV; v++) *(gt_v16 *)(dx + i * g->stride * g->row + 16 * v) += sum[i * JV + v];
}

GT_INLINE void column(float *dx, const float *dy, const float *wt, const gt_direct *g, const size_t JV) {
  for (size_t p = 0; p < g->P;) {
    const size_t left = g->P - p, size = left >= 10 ? 10 : left >= 7 ? 7 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    float *to = dx + p * g->stride * g->row;
    const float *from = dy + p * g->Q * g->K;
    switch (size) {
    case 10:
      block(to, from, wt, g, 10, JV);
      break;
    case 7:
      block(to, from, wt, g, 7, JV);
      break;
    case 4:
      block(to, from, wt, g, 4, JV);
      break;
    case 2:
      block(to, from, wt, g, 2, JV);
      break;
    default:
      block(to, from, wt, g, 1, JV);
    }
    p += size;
  }
}

/* dx: a padded image with a vector's room behind it, zero at the start. */
GT_CLONES static void image(float *dx, const float *dy, const float *wt, const gt_direct *g) {
  for (size_t r = 0; r < g->R; r++)
    for (size_t j = 0; j < g->Lp;) {
      const size_t vectors = g->Lp - j >= 32 ? 2 : 1;
      const float *weights = wt + r * g->K * g->Lp + j;
      for (size_t q = 0; q < g->Q; q++) {
        float *to = dx + r * g->row + q * g->step + j;
        if (vectors == 2)
          column(to, dy + q * g->K, weights, g, 2);
        else
          column(to, dy + q * g->K, weights, g, 1);
      }
      j += 16 * vectors;
    }
}

/* wt (R, K, Lp) from w (R, L, K). */
static void transpose(float *wt, const float *w, const gt_direct *g) {
  memset(wt, 0, g->R * g->K * g->Lp * sizeof *wt);
  for (size_t r = 0; r < g->R; r++)
    for (size_t j = 0; j < g->L; j++)
      for (size_t k = 0; k < g->K; k++) wt[(r * g->K + k) * g->Lp + j] = w[(r * g->L + j) * g->K + k];
}

void gt_direct_backward_input(float *dx, const float *dy, const float *w, const gt_conv_shape *s, size_t N, float *work) {
  const gt_direct g = gt_direct_of(s);
  const size_t row = s->W * s->C;
  float *wt = work, *padded = wt + g.R * g.K * g.Lp;
  transpose(wt, w, &g);
  for (size_t n = 0; n < N; n++) {
    memset(padded, 0, (g.image + 16) * sizeof *padded);
    image(padded, dy + n * g.out, wt, &g);
    for (size_t h = 0; h < s->H; h++) memcpy(dx + (n * s->H + h) * row, padded + (h + s->pad) * g.row + s->pad * s->C, row * sizeof *dx);
  }
}
