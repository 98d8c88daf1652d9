/* Kernels on OpenBLAS: a linear layer is one GEMM; a convolution unfolds images to columns (im2col,
   Chellapilla et al. 2006) and is one GEMM per group of images, in NHWC, so that neither factor has
   to be transposed. */
#include <string.h>

#include "kernels.h"

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Returns the number of images per GEMM: enough rows to fill its blocks, few enough that their
   columns stay in the cache. */
static size_t group(const gt_conv_shape *s, size_t N) {
  const size_t rows = 1024 / (s->P * s->Q);
  return least(rows ? rows : 1, N ? N : 1);
}

static size_t conv_work(const gt_conv_shape *s, size_t N) {
  return group(s, N) * s->P * s->Q * s->R * s->S * s->C;
}

static void conv_forward(float *y, const float *x, const float *w, const float *b,
                         const gt_conv_shape *s, size_t N, float *work) {
  const size_t image = s->H * s->W * s->C, pixels = s->P * s->Q, depth = s->R * s->S * s->C,
               step = group(s, N);
  for (size_t n = 0; n < N; n += step) {
    const size_t images = least(step, N - n);
    for (size_t i = 0; i < images; i++)
      gt_im2col(work + i * pixels * depth, x + (n + i) * image, s, sizeof *x);
    float *out = y + n * pixels * s->K;
    gt_fast_rows_fill(out, b, images * pixels, s->K);
    gt_gemm(false, false, images * pixels, s->K, depth, work, w, 1.0f, out);
  }
}

static void conv_backward_input(float *dx, const float *dy, const float *w, const gt_conv_shape *s,
                                size_t N, float *work) {
  const size_t image = s->H * s->W * s->C, pixels = s->P * s->Q, depth = s->R * s->S * s->C,
               step = group(s, N);
  for (size_t n = 0; n < N; n += step) {
    const size_t images = least(step, N - n);
    gt_gemm(false, true, images * pixels, depth, s->K, dy + n * pixels * s->K, w, 0.0f, work);
    for (size_t i = 0; i < images; i++)
      gt_col2im(dx + (n + i) * image, work + i * pixels * depth, s);
  }
}

static void conv_backward_weight(float *dw, float *db, const float *dy, const float *x,
                                 const gt_conv_shape *s, size_t N, float *work) {
  const size_t image = s->H * s->W * s->C, pixels = s->P * s->Q, depth = s->R * s->S * s->C,
               step = group(s, N);
  if (db) gt_fast_rows_sum(db, dy, N * pixels, s->K);
  if (N == 0) memset(dw, 0, depth * s->K * sizeof *dw);
  for (size_t n = 0; n < N; n += step) {
    const size_t images = least(step, N - n);
    for (size_t i = 0; i < images; i++)
      gt_im2col(work + i * pixels * depth, x + (n + i) * image, s, sizeof *x);
    gt_gemm(true, false, depth, s->K, images * pixels, work, dy + n * pixels * s->K,
            n ? 1.0f : 0.0f, dw);
  }
}

void gt_blas_linear_forward(float *y, const float *x, const float *w, const float *b, size_t B,
                            size_t I, size_t O) {
  gt_fast_rows_fill(y, b, B, O);
  gt_gemm(false, true, B, O, I, x, w, 1.0f, y);
}

void gt_blas_linear_backward_input(float *dx, const float *dy, const float *w, size_t B, size_t I,
                                   size_t O) {
  gt_gemm(false, false, B, I, O, dy, w, 0.0f, dx);
}

void gt_blas_linear_backward_weight(float *dw, float *db, const float *dy, const float *x, size_t B,
                                    size_t I, size_t O) {
  if (db) gt_fast_rows_sum(db, dy, B, O);
  gt_gemm(true, false, O, I, B, dy, x, 0.0f, dw);
}

/* Below MANY, a row is too short to gain from vectors. */
double gt_blas_softmax_xent(float *dx, const float *x, const int32_t *labels, size_t B, size_t O,
                            size_t *correct) {
  enum { MANY = 256 };
  return (O < MANY ? gt_ref_softmax_xent : gt_softmax_many)(dx, x, labels, B, O, correct);
}

/* Names the operations that use other loops than OpenBLAS's; all others are "blas". */
static const char *family(const char *operation, const gt_conv_shape *s) {
  static const char *const others[][2] = {
      {"embedding", "sparse"}, {"fm", "sparse"},  {"norm", "fused"},      {"mean", "fused"},
      {"layernorm", "fused"},  {"gelu", "fused"}, {"attention", "blocks"}};
  (void)s;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(operation, others[i][0]) == 0) return others[i][1];
  return "blas";
}

const gt_kernels gt_kernels_blas = {GT_SLOTS(GT_SLOT_FAST) GT_OWN_SLOTS, .name = "blas"};
