/* Direct convolution, forward: a block of adjacent outputs stays in registers, one or more vectors
   of channels each; weights are loaded once per block, and inputs are broadcast (the blocking of
   Georganas et al. 2018, for channels too few for a GEMM). */
#include <string.h>

#include "geotrain/tensor/vector.h"
#include "loops.h"

/* Computes PB outputs from y on, of 8 channels each; inputs are `step` apart.  If K is less than 8,
   a store spills into the next output, which is written right after. */
GT_INLINE void block_8(float *y, const float *x, const float *w, const float *b, const gt_direct *g,
                       const size_t step, const size_t PB) {
  gt_vf8 sum[10][GT_IN8];
  for (size_t i = 0; i < PB; i++)
    for (size_t v = 0; v < GT_IN8; v++) sum[i][v] = *(const gt_vf8 *)(b + v * GT_LANES8);
  for (size_t r = 0; r < g->R; r++, x += g->row)
    for (size_t j = 0; j < g->L; j++, w += 8) {
      gt_vf8 weight[GT_IN8];
      for (size_t v = 0; v < GT_IN8; v++) weight[v] = *(const gt_vf8 *)(w + v * GT_LANES8);
      for (size_t i = 0; i < PB; i++)
        for (size_t v = 0; v < GT_IN8; v++) sum[i][v] += x[i * step + j] * weight[v];
    }
  for (size_t i = 0; i < PB; i++)
    for (size_t v = 0; v < GT_IN8; v++) *(gt_vf8 *)(y + i * g->K + v * GT_LANES8) = sum[i][v];
}

/* Does the same with 16 channels. */
GT_INLINE void block_16(float *y, const float *x, const float *w, const float *b,
                        const gt_direct *g, const size_t step, const size_t PB) {
  gt_vf sum[10][GT_IN16];
  for (size_t i = 0; i < PB; i++)
    for (size_t v = 0; v < GT_IN16; v++) sum[i][v] = *(const gt_vf *)(b + v * GT_LANES);
  const size_t Kp = g->Kp;
  for (size_t r = 0; r < g->R; r++, x += g->row)
    for (size_t j = 0; j < g->L; j++, w += Kp) {
      gt_vf weight[GT_IN16];
      for (size_t v = 0; v < GT_IN16; v++) weight[v] = *(const gt_vf *)(w + v * GT_LANES);
      for (size_t i = 0; i < PB; i++)
        for (size_t v = 0; v < GT_IN16; v++) sum[i][v] += x[i * step + j] * weight[v];
    }
  for (size_t i = 0; i < PB; i++)
    for (size_t v = 0; v < GT_IN16; v++) *(gt_vf *)(y + i * g->K + v * GT_LANES) = sum[i][v];
}

/* One function per block size: if all are inlined into one function, gcc 12 keeps the sums in
   memory. */
typedef void block_of(float *y, const float *x, const float *w, const float *b, const gt_direct *g);
#define BLOCK(name, block, step, PB)                                                               \
  static __attribute__((noinline)) void name(float *y, const float *x, const float *w,             \
                                             const float *b, const gt_direct *g) {                 \
    block(y, x, w, b, g, step, PB);                                                                \
  }

/* Inputs at a variable step need an address register each, so blocks are smaller there. */
enum {
  WIDE_8 = GT_OUTPUTS(GT_IN8),
  WIDE_8_STEP = WIDE_8 < 6 ? WIDE_8 : 6,
  WIDE_16 = GT_OUTPUTS(GT_IN16)
};
BLOCK(near_8_wide, block_8, 1, WIDE_8)
BLOCK(near_8_4, block_8, 1, 4)
BLOCK(near_8_1, block_8, 1, 1)
BLOCK(apart_8_wide, block_8, g->step, WIDE_8_STEP)
BLOCK(apart_8_1, block_8, g->step, 1)
BLOCK(apart_16_wide, block_16, g->step, WIDE_16)
BLOCK(apart_16_4, block_16, g->step, WIDE_16 < 4 ? WIDE_16 : 4)
BLOCK(apart_16_1, block_16, g->step, 1)

/* The division of a row of outputs into the largest blocks that fit. */
typedef struct {
  size_t size;
  block_of *run;
} cut;
static const cut near_8[] = {{WIDE_8, near_8_wide}, {4, near_8_4}, {1, near_8_1}},
                 apart_8[] = {{WIDE_8_STEP, apart_8_wide}, {1, apart_8_1}},
                 apart_16[] = {{WIDE_16, apart_16_wide},
                               {WIDE_16 < 4 ? WIDE_16 : 4, apart_16_4},
                               {1, apart_16_1}};

/* Computes a row.  y has room for `room` floats.  A block that would write beyond them is written
   to `last` and copied. */
static void row(const cut *c, float *y, size_t room, const float *x, const float *w, const float *b,
                const gt_direct *g) {
  float last[10 * 16];
  for (size_t q = 0; q < g->Q; q += c->size) {
    while (g->Q - q < c->size) c++;
    float *to = y + q * g->K;
    const bool spills = (q + c->size - 1) * g->K + g->lanes > room;
    c->run(spills ? last : to, x + q * g->step, w, b, g);
    if (spills) memcpy(to, last, c->size * g->K * sizeof *to);
  }
}

static void image(float *y, size_t room, const float *x, const float *w, const float *b,
                  const gt_direct *g) {
  for (size_t p = 0; p < g->P; p++) {
    const float *from = x + p * g->stride * g->row;
    const size_t at = p * g->Q * g->K;
    if (g->lanes == 8) /* the most common step has its own loops */
      row(g->step == 1 ? near_8 : apart_8, y + at, room - at, from, w, b, g);
    else
      for (size_t k = 0; k < g->Kp; k += 16)
        row(apart_16, y + at + k, room - at - k, from, w + k, b + k, g);
  }
}

static void pack(float *to, const float *from, size_t rows, size_t n, size_t np) {
  size_t i = 0;
  /* Whole vectors are read while enough rows follow; values of the next row are masked. */
  if (np == 8 && n < 8) {
    gt_vi8 keep[GT_IN8] = {0};
    for (size_t l = 0; l < n; l++) keep[l / GT_LANES8][l % GT_LANES8] = -1;
    for (; (rows - i) * n >= 8; i++)
      for (size_t v = 0; v < GT_IN8; v++)
        *(gt_vi8 *)(to + i * 8 + v * GT_LANES8) =
            *(const gt_vi8 *)(from + i * n + v * GT_LANES8) & keep[v];
  }
  for (; i < rows; i++) {
    memcpy(to + i * np, from + i * n, n * sizeof *to);
    memset(to + i * np + n, 0, (np - n) * sizeof *to);
  }
}

const gt_direct_forward_loops GT_FOR_ISA(gt_direct_forward_loops) = {.pack = pack, .image = image};
