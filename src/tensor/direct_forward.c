/* Direct convolution, forward: a block of neighbouring outputs stays in registers, one vector of channels each; a weight vector is loaded once a
   block, and inputs are broadcast (the blocking of Georganas et al. 2018, for channels too few for a GEMM). */
#include <string.h>

#include "direct.h"

/* PB outputs from y on, of 8 channels, inputs `step` apart; y has room for `room` floats. */
GT_INLINE void block_8(float *y, size_t room, const float *x, const float *w, const float *b, const gt_direct *g, const size_t step,
                       const size_t PB) {
  gt_v8 sum[10];
  for (size_t i = 0; i < PB; i++) sum[i] = *(const gt_v8 *)b;
  for (size_t r = 0; r < g->R; r++, x += g->row)
    for (size_t j = 0; j < g->L; j++, w += 8) {
      const gt_v8 weight = *(const gt_v8 *)w;
      for (size_t i = 0; i < PB; i++) sum[i] += x[i * step + j] * weight;
    }
  for (size_t i = 0; i < PB; i++) {
    if (i * g->K + 8 <= room)
      *(gt_v8 *)(y + i * g->K) = sum[i]; /* what spills over is the next output's, written right after */
    else
      memcpy(y + i * g->K, &sum[i], g->K * sizeof *y);
  }
}

/* The same with 16 channels; K < 16 spills, and a multiple of 16 does not. */
GT_INLINE void block_16(float *y, size_t room, const float *x, const float *w, const float *b, const gt_direct *g, const size_t PB) {
  gt_v16 sum[10];
  for (size_t i = 0; i < PB; i++) sum[i] = *(const gt_v16 *)b;
  const size_t step = g->step, Kp = g->Kp;
  for (size_t r = 0; r < g->R; r++, x += g->row)
    for (size_t j = 0; j < g->L; j++, w += Kp) {
      const gt_v16 weight = *(const gt_v16 *)w;
      for (size_t i = 0; i < PB; i++) sum[i] += x[i * step + j] * weight;
    }
  for (size_t i = 0; i < PB; i++) {
    if (i * g->K + 16 <= room)
      *(gt_v16 *)(y + i * g->K) = sum[i];
    else
      memcpy(y + i * g->K, &sum[i], g->K * sizeof *y);
  }
}

/* A row of Q outputs in blocks of 10 or less (with 14 gcc 12 runs out of address registers and spills: half the speed); each size is a loop of its own with every sum in a register, and so is the commonest step. */
GT_INLINE void row_8(float *y, size_t room, const float *x, const float *w, const float *b, const gt_direct *g, const size_t step) {
  for (size_t q = 0; q < g->Q;) {
    const size_t left = g->Q - q, size = left >= 10 ? 10 : left >= 8 ? 8 : left >= 4 ? 4 : 1;
    float *to = y + q * g->K;
    const float *from = x + q * step;
    const size_t space = room - q * g->K;
    switch (size) {
    case 10:
      block_8(to, space, from, w, b, g, step, 10);
      break;
    case 8:
      block_8(to, space, from, w, b, g, step, 8);
      break;
    case 4:
      block_8(to, space, from, w, b, g, step, 4);
      break;
    default:
      block_8(to, space, from, w, b, g, step, 1);
    }
    q += size;
  }
}

GT_INLINE void row_16(float *y, size_t room, const float *x, const float *w, const float *b, const gt_direct *g) {
  for (size_t q = 0; q < g->Q;) {
    const size_t left = g->Q - q, size = left >= 10 ? 10 : left >= 8 ? 8 : left >= 4 ? 4 : 1;
    float *to = y + q * g->K;
    const float *from = x + q * g->step;
    const size_t space = room - q * g->K;
    switch (size) {
    case 10:
      block_16(to, space, from, w, b, g, 10);
      break;
    case 8:
      block_16(to, space, from, w, b, g, 8);
      break;
    case 4:
      block_16(to, space, from, w, b, g, 4);
      break;
    default:
      block_16(to, space, from, w, b, g, 1);
    }
    q += size;
  }
}

/* One image; y has room for `room` floats, later images' included. */
GT_CLONES static void image(float *y, size_t room, const float *x, const float *w, const float *b, const gt_direct *g) {
  for (size_t p = 0; p < g->P; p++) {
    const float *from = x + p * g->stride * g->row;
    const size_t at = p * g->Q * g->K;
    if (g->lanes == 8) {
      if (g->step == 1)
        row_8(y + at, room - at, from, w, b, g, 1);
      else
        row_8(y + at, room - at, from, w, b, g, g->step);
      continue;
    }
    for (size_t k = 0; k < g->Kp; k += 16) row_16(y + at + k, room - at - k, from, w + k, b + k, g);
  }
}

void gt_direct_forward(float *y, const float *x, const float *w, const float *b, const gt_conv_shape *s, size_t N, float *work) {
  const gt_direct g = gt_direct_of(s);
  float *weights = work, *bias = weights + g.R * g.L * g.Kp, *padded = bias + g.Kp;
  gt_direct_pack(weights, w, g.R * g.L, g.K, g.Kp);
  if (b)
    gt_direct_pack(bias, b, 1, g.K, g.Kp);
  else
    memset(bias, 0, g.Kp * sizeof *bias);
  for (size_t n = 0; n < N; n++) image(y + n * g.out, (N - n) * g.out, gt_direct_pad(padded, x + n * s->H * s->W * s->C, s), weights, bias, &g);
}
