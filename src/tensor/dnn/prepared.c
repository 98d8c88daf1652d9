/* The table of oneDNN's prepared kernels with those of linear layers, and the availability of
   bf16. */
#include "dnn.h"

#include <string.h>

/* ---- linear layers --------------------------------------------------------------------------- */

/* Linear layers on oneDNN's matrix products.  Activations are float32; for bf16, factors are
   rounded first. */

enum { SIZES = 8 };

typedef struct {
  size_t B;
  gt_dnn_stage forward, input, weight;
} prepared;

struct gt_prepared_linear {
  gt_prepared_context *dnn;
  size_t I, O;
  bool bias;
  gt_precision precision;
  prepared sizes[SIZES];
  size_t nsizes, oldest;
};

static gt_prepared_linear *linear_create(gt_prepared_context *dnn, size_t I, size_t O, bool bias,
                                         gt_precision precision) {
  gt_prepared_linear *l = GT_NEW(gt_prepared_linear);
  *l = (gt_prepared_linear){.dnn = dnn, .I = I, .O = O, .bias = bias, .precision = precision};
  return l;
}

static void release(prepared *p) {
  gt_dnn_stage_close(&p->forward);
  gt_dnn_stage_close(&p->input);
  gt_dnn_stage_close(&p->weight);
  *p = (prepared){0};
}

static void linear_close(gt_prepared_linear *l) {
  if (!l) return;
  for (size_t i = 0; i < l->nsizes; i++) release(&l->sizes[i]);
  gt_free(l);
}

/* Returns the rows of a sum over the batch: in bf16 rounded up to an even number, with a row of
   zeros (see summed_rows in conv.c). */
static size_t summed_rows(const gt_prepared_linear *l, size_t B) {
  return l->precision == GT_BF16 ? (B + 1) / 2 * 2 : B;
}

/* Prepares y = x w^T + b; dx = dy w; dw = dy^T x. */
static prepared *prepare(gt_prepared_linear *l, size_t B) {
  for (size_t i = 0; i < l->nsizes; i++)
    if (l->sizes[i].B == B) return &l->sizes[i];
  prepared *p = &l->sizes[l->nsizes < SIZES ? l->nsizes++ : l->oldest++ % SIZES];
  const bool half = l->precision == GT_BF16;
  const size_t rows = summed_rows(l, B);
  release(p);
  p->B = B;
  gt_dnn_product_open(l->dnn, &p->forward,
                      &(gt_dnn_product){.m = B,
                                        .n = l->O,
                                        .k = l->I,
                                        .tb = true,
                                        .bias = l->bias,
                                        .packed = half,
                                        .type = l->precision,
                                        .out = GT_F32});
  gt_dnn_product_open(
      l->dnn, &p->input,
      &(gt_dnn_product){
          .m = B, .n = l->I, .k = l->O, .packed = half, .type = l->precision, .out = GT_F32});
  gt_dnn_product_open(
      l->dnn, &p->weight,
      &(gt_dnn_product){
          .m = l->O, .n = l->I, .k = rows, .ta = true, .type = l->precision, .out = GT_F32});
  if (half) {
    gt_dnn_reserve(l->dnn, GT_DNN_VALUES, rows * (l->I > l->O ? l->I : l->O) * sizeof(gt_bf16));
    gt_dnn_reserve(l->dnn, GT_DNN_COLUMNS, rows * l->I * sizeof(gt_bf16));
  }
  return p;
}

static void linear_prepare(gt_prepared_linear *l, size_t B) {
  prepare(l, B);
}

/* Returns x (B,columns) in the type of the arithmetic.  In bf16 it is converted in `area`, and
   padded with zeros to `rows` rows. */
static const void *rounded(const gt_prepared_linear *l, const float *x, size_t B, size_t rows,
                           size_t columns, gt_dnn_area area) {
  if (l->precision == GT_F32) return x;
  gt_bf16 *to = l->dnn->areas[area];
  gt_to_bf16(to, x, B * columns);
  memset(to + B * columns, 0, (rows - B) * columns * sizeof *to);
  return to;
}

static void linear_forward(gt_prepared_linear *l, float *y, const float *x, const float *w,
                           const float *b, size_t B) {
  const prepared *p = prepare(l, B);
  gt_dnn_product_run(l->dnn, &p->forward, y, rounded(l, x, B, B, l->I, GT_DNN_VALUES), w, b);
}

static void linear_backward_input(gt_prepared_linear *l, float *dx, const float *dy, const float *w,
                                  size_t B) {
  const prepared *p = prepare(l, B);
  gt_dnn_product_run(l->dnn, &p->input, dx, rounded(l, dy, B, B, l->O, GT_DNN_VALUES), w, NULL);
}

static void linear_backward_weight(gt_prepared_linear *l, float *dw, float *db, const float *dy,
                                   const float *x, size_t B) {
  const prepared *p = prepare(l, B);
  const size_t rows = summed_rows(l, B);
  const void *left = rounded(l, dy, B, rows, l->O, GT_DNN_VALUES),
             *right = rounded(l, x, B, rows, l->I, GT_DNN_COLUMNS);
  if (db) gt_fast_rows_sum(db, dy, B, l->O);
  gt_dnn_product_run(l->dnn, &p->weight, dw, left, right, NULL);
}

bool gt_kernels_bf16(const char **why) {
  (void)gt_isa_used(); /* limits oneDNN to the set before the query */
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bf16")) {
    const unsigned has = (unsigned)dnnl_get_effective_cpu_isa(),
                   needs = dnnl_cpu_isa_avx512_core_bf16;
    *why = "GEOTRAIN_ISA or DNNL_MAX_CPU_ISA keeps oneDNN from this CPU's bf16 arithmetic";
    return (has & needs) == needs;
  }
#endif
  *why = "this CPU has no bf16 arithmetic";
  return false;
}

static const gt_prepared_ops ops = {
    .create = gt_dnn_context_create,
    .close = gt_dnn_context_close,
    .bytes = gt_dnn_context_bytes,
    .conv_create = gt_dnn_conv_create,
    .conv_close = gt_dnn_conv_close,
    .conv_prepare = gt_dnn_conv_prepare,
    .conv_forward = gt_dnn_conv_forward,
    .conv_backward_input = gt_dnn_conv_backward_input,
    .conv_backward_weight = gt_dnn_conv_backward_weight,
    .conv_rule = gt_dnn_conv_rule,
    .conv_can = gt_dnn_conv_can,
    .linear_create = linear_create,
    .linear_close = linear_close,
    .linear_prepare = linear_prepare,
    .linear_forward = linear_forward,
    .linear_backward_input = linear_backward_input,
    .linear_backward_weight = linear_backward_weight,
};

const gt_prepared_ops *gt_prepared_dnn(void) {
  return &ops;
}
