/* Direct convolution, gradient of the weights: a block of weights stays in registers while all outputs of an image pass by. */
#include <string.h>

#include "direct.h"

/* dw of RB kernel rows times JB taps, 8 channels. */
GT_INLINE void block_8(float *dw, const float *dy, const float *x, const gt_direct *g, const size_t RB, const size_t JB) {
  gt_v8 sum[25];
  for (size_t r = 0; r < RB; r++)
    for (size_t j = 0; j < JB; j++) sum[r * JB + j] = *(const gt_v8 *)(dw + (r * g->L + j) * 8);
  const size_t row = g->row;
  for (size_t p = 0; p < g->P; p++, x += g->stride * row)
    for (size_t q = 0; q < g->Q; q++, dy += 8) {
      const gt_v8 d = *(const gt_v8 *)dy;
      const float *at = x + q * g->step;
      for (size_t r = 0; r < RB; r++)
        for (size_t j = 0; j < JB; j++) sum[r * JB + j] += at[r * row + j] * d;
    }
  for (size_t r = 0; r < RB; r++)
    for (size_t j = 0; j < JB; j++) *(gt_v8 *)(dw + (r * g->L + j) * 8) = sum[r * JB + j];
}

/* dw of JB taps of one kernel row, 16 channels. */
GT_INLINE void block_16(float *dw, const float *dy, const float *x, const gt_direct *g, const size_t JB) {
  gt_v16 sum[16];
  const size_t Kp = g->Kp;
  for (size_t j = 0; j < JB; j++) sum[j] = *(const gt_v16 *)(dw + j * Kp);
  for (size_t p = 0; p < g->P; p++, x += g->stride * g->row)
    for (size_t q = 0; q < g->Q; q++, dy += Kp) {
      const gt_v16 d = *(const gt_v16 *)dy;
      const float *at = x + q * g->step;
      for (size_t j = 0; j < JB; j++) sum[j] += at[j] * d;
    }
  for (size_t j = 0; j < JB; j++) *(gt_v16 *)(dw + j * Kp) = sum[j];
}

GT_CLONES static void image_8(float *dw, const float *dy, const float *x, const gt_direct *g) {
  if (g->R == 5 && g->L == 5) { /* one input channel */
    block_8(dw, dy, x, g, 5, 5);
    return;
  }
  if (g->R == 3 && g->L == 3) {
    block_8(dw, dy, x, g, 3, 3);
    return;
  }
  for (size_t r = 0; r < g->R; r++)
    for (size_t j = 0; j < g->L;) {
      const size_t left = g->L - j, size = left >= 15 ? 15 : left >= 9 ? 9 : left >= 6 ? 6 : left >= 3 ? 3 : 1;
      float *to = dw + (r * g->L + j) * 8;
      const float *from = x + r * g->row + j;
      switch (size) {
      case 15:
        block_8(to, dy, from, g, 1, 15);
        break;
      case 9:
        block_8(to, dy, from, g, 1, 9);
        break;
      case 6:
        block_8(to, dy, from, g, 1, 6);
        break;
      case 3:
        block_8(to, dy, from, g, 1, 3);
        break;
      default:
        block_8(to, dy, from, g, 1, 1);
      }
      j += size;
    }
}

GT_CLONES static void image_16(float *dw, const float *dy, const float *x, const gt_direct *g) {
  for (size_t k = 0; k < g->Kp; k += 16)
    for (size_t r = 0; r < g->R; r++)
      for (size_t j = 0; j < g->L;) {
        const size_t left = g->L - j, size = left == 16 || left >= 31 ? 16 : left >= 15 ? 15 : left >= 9 ? 9 : left >= 6 ? 6 : left >= 3 ? 3 : 1;
        float *to = dw + (r * g->L + j) * g->Kp + k;
        const float *from = x + r * g->row + j;
        switch (size) {
        case 16:
          block_16(to, dy + k, from, g, 16);
          break;
        case 15:
          block_16(to, dy + k, from, g, 15);
          break;
        case 9:
          block_16(to, dy + k, from, g, 9);
          break;
        case 6:
          block_16(to, dy + k, from, g, 6);
          break;
        case 3:
          block_16(to, dy + k, from, g, 3);
          break;
        default:
          block_16(to, dy + k, from, g, 1);
        }
        j += size;
      }
}

/* db (Kp) += the outputs of an image, four partial sums so that additions need not wait for each other. */
GT_CLONES static void bias(float *db, const float *dy, size_t pixels, size_t Kp) {
  for (size_t k = 0; k < Kp; k += 8) {
    gt_v8 sum[4] = {{0}};
    size_t i = 0;
    for (; i + 4 <= pixels; i += 4)
      for (size_t u = 0; u < 4; u++) sum[u] += *(const gt_v8 *)(dy + (i + u) * Kp + k);
    for (; i < pixels; i++) sum[0] += *(const gt_v8 *)(dy + i * Kp + k);
    *(gt_v8 *)(db + k) += (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
}

void gt_direct_backward_weight(float *dw, float *db, const float *dy, const float *x, const gt_conv_shape *s, size_t N, float *work) {
  const gt_direct g = gt_direct_of(s);
  float *sums = work, *biases = sums + g.R * g.L * g.Kp, *outputs = biases + g.Kp, *padded = outputs + (g.Kp == g.K ? 0 : g.P * g.Q * g.Kp);
  memset(sums, 0, (g.R * g.L + 1) * g.Kp * sizeof *sums);
  for (size_t n = 0; n < N; n++) {
    const float *d = dy + n * g.out, *from = gt_direct_pad(padded, x + n * s->H * s->W * s->C, s);
    if (g.Kp != g.K) {
      gt_direct_pack(outputs, d, g.P * g.Q, g.K, g.Kp);
      d = outputs;
    }
    if (db) bias(biases, d, g.P * g.Q, g.Kp);
    if (g.lanes == 8)
      image_8(sums, d, from, &g);
    else
      image_16(sums, d, from, &g);
  }
  for (size_t i = 0; i < g.R * g.L; i++) memcpy(dw + i * g.K, sums + i * g.Kp, g.K * sizeof *dw);
  if (db) memcpy(db, biases, g.K * sizeof *db);
}
