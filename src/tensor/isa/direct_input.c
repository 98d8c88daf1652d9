/* Direct convolution, gradient of the input: in one kernel row, each output contributes to a run of
   L contiguous inputs, which is computed in registers and added in place.  A block takes outputs of
   one column, whose runs never overlap. */
#include "geotrain/tensor/vector.h"
#include "loops.h"

/* Runs are computed 16 floats at a time, or 32 if there are enough registers. */
enum { PARTS = GT_LANES == 16 ? 2 : 1, WIDE = GT_OUTPUTS(GT_IN16) };

/* Computes PB outputs, JV times 16 floats of the run.  wt: (K, Lp), starting at these floats. */
GT_INLINE void block(float *dx, const float *dy, const float *wt, const gt_direct *g,
                     const size_t PB, const size_t JV) {
  gt_vf sum[10][PARTS * GT_IN16] = {{{0}}};
  const size_t below = g->Q * g->K, Lp = g->Lp, vectors = JV * GT_IN16;
  for (size_t k = 0; k < g->K; k++, wt += Lp) {
    gt_vf weight[PARTS * GT_IN16];
    /* Separate from the loop: clang copies a one-element array through the stack. */
    weight[0] = *(const gt_vf *)wt;
    for (size_t v = 1; v < vectors; v++) weight[v] = *(const gt_vf *)(wt + GT_LANES * v);
    for (size_t i = 0; i < PB; i++)
      for (size_t v = 0; v < vectors; v++) sum[i][v] += dy[i * below + k] * weight[v];
  }
  for (size_t i = 0; i < PB; i++)
    for (size_t v = 0; v < vectors; v++)
      *(gt_vf *)(dx + i * g->stride * g->row + GT_LANES * v) += sum[i][v];
}

GT_INLINE void column(float *dx, const float *dy, const float *wt, const gt_direct *g,
                      const size_t JV) {
  for (size_t p = 0; p < g->P;) {
    const size_t left = g->P - p;
    float *to = dx + p * g->stride * g->row;
    const float *from = dy + p * g->Q * g->K;
    if (left >= WIDE) {
      block(to, from, wt, g, WIDE, JV);
      p += WIDE;
    } else if (WIDE > 7 && left >= 7) {
      block(to, from, wt, g, 7, JV);
      p += 7;
    } else if (WIDE > 4 && left >= 4) {
      block(to, from, wt, g, 4, JV);
      p += 4;
    } else if (WIDE > 2 && left >= 2) {
      block(to, from, wt, g, 2, JV);
      p += 2;
    } else {
      block(to, from, wt, g, 1, JV);
      p++;
    }
  }
}

static void image(float *dx, const float *dy, const float *wt, const gt_direct *g) {
  for (size_t r = 0; r < g->R; r++)
    for (size_t j = 0; j < g->Lp;) {
      const size_t parts = g->Lp - j >= 32 && PARTS == 2 ? 2 : 1;
      const float *weights = wt + r * g->K * g->Lp + j;
      for (size_t q = 0; q < g->Q; q++) {
        float *to = dx + r * g->row + q * g->step + j;
        if (parts == 2)
          column(to, dy + q * g->K, weights, g, PARTS);
        else
          column(to, dy + q * g->K, weights, g, 1);
      }
      j += 16 * parts;
    }
}

const gt_direct_input_loops GT_FOR_ISA(gt_direct_input_loops) = {.image = image};
