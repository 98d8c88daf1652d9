/* Products with a matrix that is packed once and multiplied many times, by few rows each: a block
   of rows by two vectors of columns stays in registers (as in Goto and van de Geijn 2008). */
#include <string.h>

#include "geotrain/tensor/vector.h"
#include "loops.h"

/* Columns of a panel, and rows of a block. */
enum { WIDE = 2 * GT_LANES, ROWS = GT_OUTPUTS(2) < 8 ? GT_OUTPUTS(2) : 8 };

static void pack(float *panels, const float *w, size_t K, size_t N, bool transposed) {
  for (size_t first = 0; first < N; first += WIDE)
    for (size_t k = 0; k < K; k++)
      for (size_t n = first; n < first + WIDE; n++)
        *panels++ = n >= N ? 0.0F : transposed ? w[n * K + k] : w[k * N + n];
}

/* Adds to R rows of y, `stride` apart, a (R,K) times a panel (K,WIDE). */
GT_INLINE void block(float *y, size_t stride, const float *a, const float *panel, size_t K,
                     const size_t R) {
  gt_vf sum[ROWS][2];
  for (size_t r = 0; r < R; r++)
    for (size_t v = 0; v < 2; v++) sum[r][v] = *(const gt_vf *)(y + r * stride + v * GT_LANES);
  for (size_t k = 0; k < K; k++, panel += WIDE) {
    const gt_vf left = *(const gt_vf *)panel, right = *(const gt_vf *)(panel + GT_LANES);
    for (size_t r = 0; r < R; r++) {
      sum[r][0] += a[r * K + k] * left;
      sum[r][1] += a[r * K + k] * right;
    }
  }
  for (size_t r = 0; r < R; r++)
    for (size_t v = 0; v < 2; v++) *(gt_vf *)(y + r * stride + v * GT_LANES) = sum[r][v];
}

/* One function per block size, as in direct_forward.c. */
typedef void block_of(float *y, size_t stride, const float *a, const float *panel, size_t K);
#define BLOCK(name, R)                                                                             \
  static __attribute__((noinline)) void name(float *y, size_t stride, const float *a,              \
                                             const float *panel, size_t K) {                       \
    block(y, stride, a, panel, K, R);                                                              \
  }
BLOCK(block_most, ROWS)
BLOCK(block_4, 4)
BLOCK(block_2, 2)
BLOCK(block_1, 1)
static const struct {
  size_t rows;
  block_of *run;
} cuts[] = {{ROWS, block_most}, {4, block_4}, {2, block_2}, {1, block_1}};

static void columns(float *y, size_t stride, const float *a, const float *panel, size_t rows,
                    size_t K) {
  for (size_t r = 0, c = 0; r < rows; r += cuts[c].rows) {
    while (rows - r < cuts[c].rows) c++;
    cuts[c].run(y + r * stride, stride, a + r * K, panel, K);
  }
}

/* Multiplies by the last panel, of n < WIDE columns, through a copy of its part of y. */
static void last_columns(float *y, size_t stride, const float *a, const float *panel, size_t rows,
                         size_t K, size_t n) {
  float copy[ROWS * WIDE] = {0};
  for (size_t r = 0; r < rows; r += ROWS) {
    const size_t count = rows - r < ROWS ? rows - r : ROWS;
    for (size_t i = 0; i < count; i++) memcpy(copy + i * WIDE, y + (r + i) * stride, n * sizeof *y);
    columns(copy, WIDE, a + r * K, panel, count, K);
    for (size_t i = 0; i < count; i++) memcpy(y + (r + i) * stride, copy + i * WIDE, n * sizeof *y);
  }
}

static void multiply(float *y, const float *a, const float *panels, size_t rows, size_t K,
                     size_t N) {
  size_t n = 0;
  for (; n + WIDE <= N; n += WIDE) columns(y + n, N, a, panels + n * K, rows, K);
  if (n < N) last_columns(y + n, N, a, panels + n * K, rows, K, N - n);
}

const gt_panels_loops GT_FOR_ISA(gt_panels_loops) = {.pack = pack, .multiply = multiply};
