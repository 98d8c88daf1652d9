/* The transforms of Winograd's convolution F(2x2, 3x3) (Lavin and Gray 2016), a vector of channels
   at a time: 4 x 4 inputs, which overlap by two, give 2 x 2 outputs with 16 products instead of 36.
   In v, m and z, the channels of tile t at position i of 16 start at (i g->stride + t) times the
   number of channels.  m is float32; images, v and z are of `type`. */
#include "bf16_vector.h"
#include "loops.h"

/* Computes B^T d of four numbers in a line. */
GT_INLINE void input_line(gt_vf *t, gt_vf a, gt_vf b, gt_vf c, gt_vf d) {
  t[0] = a - c;
  t[1] = b + c;
  t[2] = c - b;
  t[3] = b - d;
}

/* Loads one tile's channels [c, c + GT_LANES), zero outside the image. */
GT_INLINE void load_tile(gt_vf d[4][4], const void *x, gt_precision type, const gt_tiles *g,
                         size_t image, long row, long column, size_t c) {
  for (long i = 0; i < 4; i++)
    for (long j = 0; j < 4; j++) {
      const bool inside =
          row + i >= 0 && row + i < (long)g->H && column + j >= 0 && column + j < (long)g->W;
      d[i][j] =
          inside ? gt_load(x, image + ((size_t)(row + i) * g->W + (size_t)(column + j)) * g->C + c,
                           type)
                 : (gt_vf){0};
    }
}

GT_INLINE void load_inner(gt_vf d[4][4], const void *x, gt_precision type, const gt_tiles *g,
                          size_t image, long row, long column, size_t c) {
  const size_t at = image + ((size_t)row * g->W + (size_t)column) * g->C + c;
  for (size_t i = 0; i < 4; i++)
    for (size_t j = 0; j < 4; j++) d[i][j] = gt_load(x, at + (i * g->W + j) * g->C, type);
}

/* Computes v = B^T d B. */
GT_INLINE void input_of(void *v, const void *x, gt_precision type, const gt_tiles *g, size_t first,
                        size_t count) {
  const size_t per_image = g->rows * g->columns, place = g->stride * g->C;
  for (size_t t = 0; t < count; t++) {
    const size_t n = (first + t) / per_image, at = (first + t) % per_image;
    const long row = 2 * (long)(at / g->columns) - (long)g->pad,
               column = 2 * (long)(at % g->columns) - (long)g->pad;
    const bool inner = row >= 0 && column >= 0 && row + 4 <= (long)g->H && column + 4 <= (long)g->W;
    const size_t image = n * g->H * g->W * g->C;
    for (size_t c = 0; c < g->C; c += GT_LANES) {
      gt_vf d[4][4], half[4][4], line[4];
      if (inner)
        load_inner(d, x, type, g, image, row, column, c);
      else
        load_tile(d, x, type, g, image, row, column, c);
      for (size_t j = 0; j < 4; j++) {
        input_line(line, d[0][j], d[1][j], d[2][j], d[3][j]);
        for (size_t i = 0; i < 4; i++) half[i][j] = line[i];
      }
      for (size_t i = 0; i < 4; i++) {
        input_line(line, half[i][0], half[i][1], half[i][2], half[i][3]);
        for (size_t j = 0; j < 4; j++)
          gt_store(v, (4 * i + j) * place + t * g->C + c, type, line[j]);
      }
    }
  }
}

/* Computes y = A^T m A [+ b], only for rows and columns inside the output. */
GT_INLINE void output_of(void *y, const float *m, const float *b, gt_precision type,
                         const gt_tiles *g, size_t first, size_t count) {
  const size_t per_image = g->rows * g->columns, place = g->stride * g->K;
  for (size_t t = 0; t < count; t++) {
    const size_t n = (first + t) / per_image, at = (first + t) % per_image, p = at / g->columns * 2,
                 q = at % g->columns * 2;
    const bool below = p + 1 < g->P, beside = q + 1 < g->Q;
    const size_t to = ((n * g->P + p) * g->Q + q) * g->K;
    for (size_t k = 0; k < g->K; k += GT_LANES) {
      const float *from = m + t * g->K + k;
      const gt_vf bias = b ? *(const gt_vf *)(b + k) : (gt_vf){0};
      gt_vf half[2][4];
      for (size_t j = 0; j < 4; j++) {
        const gt_vf m0 = *(const gt_vf *)(from + j * place),
                    m1 = *(const gt_vf *)(from + (4 + j) * place),
                    m2 = *(const gt_vf *)(from + (8 + j) * place),
                    m3 = *(const gt_vf *)(from + (12 + j) * place);
        half[0][j] = m0 + m1 + m2;
        half[1][j] = m1 - m2 - m3;
      }
      gt_store(y, to + k, type, half[0][0] + half[0][1] + half[0][2] + bias);
      if (beside) gt_store(y, to + g->K + k, type, half[0][1] - half[0][2] - half[0][3] + bias);
      if (below)
        gt_store(y, to + g->Q * g->K + k, type, half[1][0] + half[1][1] + half[1][2] + bias);
      if (below && beside)
        gt_store(y, to + (g->Q + 1) * g->K + k, type, half[1][1] - half[1][2] - half[1][3] + bias);
    }
  }
}

/* Computes z = A dy A^T; outputs outside the image count as 0. */
GT_INLINE void gradient_of(void *z, const void *dy, gt_precision type, const gt_tiles *g,
                           size_t first, size_t count) {
  const size_t per_image = g->rows * g->columns, place = g->stride * g->K;
  const gt_vf zero = {0};
  for (size_t t = 0; t < count; t++) {
    const size_t n = (first + t) / per_image, at = (first + t) % per_image, p = at / g->columns * 2,
                 q = at % g->columns * 2;
    const bool below = p + 1 < g->P, beside = q + 1 < g->Q;
    const size_t from = ((n * g->P + p) * g->Q + q) * g->K;
    for (size_t k = 0; k < g->K; k += GT_LANES) {
      const gt_vf a = gt_load(dy, from + k, type),
                  b = beside ? gt_load(dy, from + g->K + k, type) : zero,
                  c = below ? gt_load(dy, from + g->Q * g->K + k, type) : zero,
                  d = below && beside ? gt_load(dy, from + (g->Q + 1) * g->K + k, type) : zero;
      const gt_vf left[4] = {a, a + c, a - c, -c}, right[4] = {b, b + d, b - d, -d};
      const size_t to = t * g->K + k;
      for (size_t i = 0; i < 4; i++) {
        gt_store(z, to + (4 * i) * place, type, left[i]);
        gt_store(z, to + (4 * i + 1) * place, type, left[i] + right[i]);
        gt_store(z, to + (4 * i + 2) * place, type, left[i] - right[i]);
        gt_store(z, to + (4 * i + 3) * place, type, -right[i]);
      }
    }
  }
}

/* Computes u (16, n) = G w G^T, w (3, 3, n); turned: w rotated by 180 degrees. */
static void weights(float *u, const float *w, size_t n, bool turned) {
  for (size_t e = 0; e < n; e += GT_LANES) {
    gt_vf half[4][3];
    for (size_t s = 0; s < 3; s++) {
      const float *at = w + (turned ? 2 - s : s) * n + e;
      const gt_vf w0 = *(const gt_vf *)(at + (turned ? 6 * n : 0)),
                  w1 = *(const gt_vf *)(at + 3 * n),
                  w2 = *(const gt_vf *)(at + (turned ? 0 : 6 * n));
      half[0][s] = w0;
      half[1][s] = 0.5F * (w0 + w1 + w2);
      half[2][s] = 0.5F * (w0 - w1 + w2);
      half[3][s] = w2;
    }
    for (size_t i = 0; i < 4; i++) {
      float *to = u + 4 * i * n + e;
      *(gt_vf *)to = half[i][0];
      *(gt_vf *)(to + n) = 0.5F * (half[i][0] + half[i][1] + half[i][2]);
      *(gt_vf *)(to + 2 * n) = 0.5F * (half[i][0] - half[i][1] + half[i][2]);
      *(gt_vf *)(to + 3 * n) = half[i][2];
    }
  }
}

/* Computes dw (3, 3, n) = G^T u G, u (16, n). */
static void weight_gradient(float *dw, const float *u, size_t n) {
  for (size_t e = 0; e < n; e += GT_LANES) {
    gt_vf half[3][4];
    for (size_t j = 0; j < 4; j++) {
      const float *at = u + j * n + e;
      const gt_vf u0 = *(const gt_vf *)at, u1 = *(const gt_vf *)(at + 4 * n),
                  u2 = *(const gt_vf *)(at + 8 * n), u3 = *(const gt_vf *)(at + 12 * n);
      half[0][j] = u0 + 0.5F * (u1 + u2);
      half[1][j] = 0.5F * (u1 - u2);
      half[2][j] = 0.5F * (u1 + u2) + u3;
    }
    for (size_t r = 0; r < 3; r++) {
      float *to = dw + 3 * r * n + e;
      *(gt_vf *)to = half[r][0] + 0.5F * (half[r][1] + half[r][2]);
      *(gt_vf *)(to + n) = 0.5F * (half[r][1] - half[r][2]);
      *(gt_vf *)(to + 2 * n) = 0.5F * (half[r][1] + half[r][2]) + half[r][3];
    }
  }
}

/* ---- a copy for each type ---- */

static void input(void *v, const void *x, gt_precision type, const gt_tiles *g, size_t first,
                  size_t count) {
  if (type == GT_BF16)
    input_of(v, x, GT_BF16, g, first, count);
  else
    input_of(v, x, GT_F32, g, first, count);
}

static void output(void *y, const float *m, const float *b, gt_precision type, const gt_tiles *g,
                   size_t first, size_t count) {
  if (type == GT_BF16)
    output_of(y, m, b, GT_BF16, g, first, count);
  else
    output_of(y, m, b, GT_F32, g, first, count);
}

static void gradient(void *z, const void *dy, gt_precision type, const gt_tiles *g, size_t first,
                     size_t count) {
  if (type == GT_BF16)
    gradient_of(z, dy, GT_BF16, g, first, count);
  else
    gradient_of(z, dy, GT_F32, g, first, count);
}

const gt_winograd_loops GT_FOR_ISA(gt_winograd_loops) = {.input = input,
                                                         .output = output,
                                                         .gradient = gradient,
                                                         .weights = weights,
                                                         .weight_gradient = weight_gradient};
