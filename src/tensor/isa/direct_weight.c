/* Direct convolution, gradient of the weights: a block of weights stays in registers during a loop
   over all outputs of an image. */
#include "geotrain/tensor/vector.h"
#include "loops.h"

/* Sums that fit into registers besides those of the outputs. */
enum { SUMS_8 = GT_REGISTERS / GT_IN8 - 1, SUMS_16 = GT_REGISTERS / GT_IN16 - 1 };

/* Computes dw of RB kernel rows times JB taps, 8 channels. */
GT_INLINE void block_8(float *dw, const float *dy, const float *x, const gt_direct *g,
                       const size_t RB, const size_t JB) {
  gt_vf8 sum[25][GT_IN8];
  for (size_t r = 0; r < RB; r++)
    for (size_t j = 0; j < JB; j++)
      for (size_t v = 0; v < GT_IN8; v++)
        sum[r * JB + j][v] = *(const gt_vf8 *)(dw + (r * g->L + j) * 8 + v * GT_LANES8);
  const size_t row = g->row;
  for (size_t p = 0; p < g->P; p++, x += g->stride * row)
    for (size_t q = 0; q < g->Q; q++, dy += 8) {
      gt_vf8 d[GT_IN8];
      const float *at = x + q * g->step;
      for (size_t v = 0; v < GT_IN8; v++) d[v] = *(const gt_vf8 *)(dy + v * GT_LANES8);
      for (size_t r = 0; r < RB; r++)
        for (size_t j = 0; j < JB; j++)
          for (size_t v = 0; v < GT_IN8; v++) sum[r * JB + j][v] += at[r * row + j] * d[v];
    }
  for (size_t r = 0; r < RB; r++)
    for (size_t j = 0; j < JB; j++)
      for (size_t v = 0; v < GT_IN8; v++)
        *(gt_vf8 *)(dw + (r * g->L + j) * 8 + v * GT_LANES8) = sum[r * JB + j][v];
}

/* Computes dw of JB taps of one kernel row, 16 channels. */
GT_INLINE void block_16(float *dw, const float *dy, const float *x, const gt_direct *g,
                        const size_t JB) {
  gt_vf sum[16][GT_IN16];
  const size_t Kp = g->Kp;
  for (size_t j = 0; j < JB; j++)
    for (size_t v = 0; v < GT_IN16; v++) sum[j][v] = *(const gt_vf *)(dw + j * Kp + v * GT_LANES);
  for (size_t p = 0; p < g->P; p++, x += g->stride * g->row)
    for (size_t q = 0; q < g->Q; q++, dy += Kp) {
      gt_vf d[GT_IN16];
      const float *at = x + q * g->step;
      for (size_t v = 0; v < GT_IN16; v++) d[v] = *(const gt_vf *)(dy + v * GT_LANES);
      for (size_t j = 0; j < JB; j++)
        for (size_t v = 0; v < GT_IN16; v++) sum[j][v] += at[j] * d[v];
    }
  for (size_t j = 0; j < JB; j++)
    for (size_t v = 0; v < GT_IN16; v++) *(gt_vf *)(dw + j * Kp + v * GT_LANES) = sum[j][v];
}

/* Computes one kernel row in blocks of at most SUMS_8 taps. */
GT_INLINE void row_8(float *dw, const float *dy, const float *x, const gt_direct *g) {
  for (size_t j = 0; j < g->L;) {
    const size_t left = g->L - j;
    float *to = dw + j * 8;
    if (SUMS_8 >= 15 && left >= 15) {
      block_8(to, dy, x + j, g, 1, 15);
      j += 15;
    } else if (SUMS_8 >= 9 && left >= 9) {
      block_8(to, dy, x + j, g, 1, 9);
      j += 9;
    } else if (left >= 6) {
      block_8(to, dy, x + j, g, 1, 6);
      j += 6;
    } else if (left >= 3) {
      block_8(to, dy, x + j, g, 1, 3);
      j += 3;
    } else {
      block_8(to, dy, x + j, g, 1, 1);
      j++;
    }
  }
}

/* Computes 5 x 5 taps of one input channel: all sums at once if there are enough registers, else
   two kernel rows or one at a time. */
GT_INLINE void window_5(float *dw, const float *dy, const float *x, const gt_direct *g) {
  enum { ROWS = SUMS_8 >= 25 ? 5 : SUMS_8 >= 10 ? 2 : 1 };
  size_t r = 0;
  for (; r + ROWS <= 5; r += ROWS) block_8(dw + r * 40, dy, x + r * g->row, g, ROWS, 5);
  for (; r < 5; r++) block_8(dw + r * 40, dy, x + r * g->row, g, 1, 5);
}

static void image_8(float *dw, const float *dy, const float *x, const gt_direct *g) {
  if (g->R == 5 && g->L == 5)
    window_5(dw, dy, x, g);
  else if (g->R == 3 && g->L == 3 && SUMS_8 >= 9)
    block_8(dw, dy, x, g, 3, 3);
  else
    for (size_t r = 0; r < g->R; r++) row_8(dw + r * g->L * 8, dy, x + r * g->row, g);
}

GT_INLINE void row_16(float *dw, const float *dy, const float *x, const gt_direct *g) {
  for (size_t j = 0; j < g->L;) {
    const size_t left = g->L - j;
    float *to = dw + j * g->Kp;
    if (SUMS_16 >= 16 && (left == 16 || left >= 31)) {
      block_16(to, dy, x + j, g, 16);
      j += 16;
    } else if (SUMS_16 >= 15 && left >= 15) {
      block_16(to, dy, x + j, g, 15);
      j += 15;
    } else if (SUMS_16 >= 9 && left >= 9) {
      block_16(to, dy, x + j, g, 9);
      j += 9;
    } else if (SUMS_16 >= 6 && left >= 6) {
      block_16(to, dy, x + j, g, 6);
      j += 6;
    } else if (SUMS_16 >= 3 && left >= 3) {
      block_16(to, dy, x + j, g, 3);
      j += 3;
    } else if (SUMS_16 == 2 && left >= 2) {
      block_16(to, dy, x + j, g, 2);
      j += 2;
    } else {
      block_16(to, dy, x + j, g, 1);
      j++;
    }
  }
}

static void image(float *dw, const float *dy, const float *x, const gt_direct *g) {
  if (g->lanes == 8) {
    image_8(dw, dy, x, g);
    return;
  }
  for (size_t k = 0; k < g->Kp; k += 16)
    for (size_t r = 0; r < g->R; r++) row_16(dw + r * g->L * g->Kp + k, dy + k, x + r * g->row, g);
}

/* Uses four partial sums, so that additions are independent. */
static void bias(float *db, const float *dy, size_t pixels, size_t Kp) {
  for (size_t k = 0; k < Kp; k += GT_LANES8) {
    gt_vf8 sum[4] = {{0}};
    size_t i = 0;
    for (; i + 4 <= pixels; i += 4)
      for (size_t u = 0; u < 4; u++) sum[u] += *(const gt_vf8 *)(dy + (i + u) * Kp + k);
    for (; i < pixels; i++) sum[0] += *(const gt_vf8 *)(dy + i * Kp + k);
    *(gt_vf8 *)(db + k) += (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
}

const gt_direct_weight_loops GT_FOR_ISA(gt_direct_weight_loops) = {.image = image, .bias = bias};
