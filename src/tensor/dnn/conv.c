/* Convolutions on oneDNN, NHWC.  Its own convolution with weights in the layout it prefers; or, where images are so small that this layout costs more than it brings
   (the last stages of a network), columns and one matrix product, whose weights and gradients lie as they are. */
#include <string.h>

#include "dnn.h"

enum { SIZES = 8, GEMM_ROWS = 8192 };

typedef struct {
  size_t N;
  bool gemm_forward, gemm_input, gemm_weight, turned_input;
  gt_dnn_stage forward, input, weight;
  dnnl_dim_t row, column; /* turned_input: elements from one place of the window to the next in the packed weights */
} prepared;

struct gt_prepared_conv {
  gt_prepared_context *dnn;
  gt_conv_shape s;
  bool bias, needs_input;
  gt_precision in, out, precision;
  prepared sizes[SIZES];
  size_t nsizes, oldest;
};

/* ---- rules, by measurement (bench/kernels) ---- */

/* Output pixels up to which a product is faster: forward, gradient of the input, gradient of the weights. */
static bool gemm(const gt_prepared_conv *c, size_t N, size_t pixels_f32, size_t pixels_bf16) {
  const size_t pixels = c->s.P * c->s.Q;
  return !c->bias && N * pixels <= GEMM_ROWS && pixels <= (c->precision == GT_BF16 ? pixels_bf16 : pixels_f32);
}

static bool gemm_forward(const gt_prepared_conv *c, size_t N) {
  return gemm(c, N, 16, 16);
}

static bool gemm_input(const gt_prepared_conv *c, size_t N) {
  return gemm(c, N, 0, 16);
}

static bool gemm_weight(const gt_prepared_conv *c, size_t N) {
  return gemm(c, N, 16, 64);
}

/* Rows of columns that the gradient of the weights sums over.  oneDNN 2.6's bf16 product of plain factors over 63 rows uses tiles that it has not set up (an illegal
   instruction): an odd number gets a row of zeros. */
static size_t summed_rows(const gt_prepared_conv *c, size_t N) {
  const size_t rows = N * c->s.P * c->s.Q;
  return c->precision == GT_BF16 ? (rows + 1) / 2 * 2 : rows;
}

/* The gradient of the input of a convolution of stride 1 is a convolution, too, by the same weights turned round; and oneDNN's forward kernels are faster than its
   backward ones, but for the smallest images.  Whole blocks of channels only, for the weights are turned block by block. */
static bool turned_input(const gt_prepared_conv *c) {
  const gt_conv_shape *s = &c->s;
  return s->stride == 1 && s->R > 1 && s->S == s->R && s->pad < s->R && s->C % 64 == 0 && s->K % 64 == 0 && s->P * s->Q > 16;
}

const char *gt_dnn_conv_family(const gt_prepared_conv *c) {
  return gemm_forward(c, 1) || gemm_weight(c, 1) ? "dnn-gemm" : "dnn";
}

/* ---- preparing ---- */

typedef struct {
  dnnl_memory_desc_t x, w, b, y, plain;
  dnnl_dims_t strides, pads;
} descs;

static descs describe(const gt_prepared_conv *c, size_t N, bool weight_gradient) {
  const gt_conv_shape *s = &c->s;
  const dnnl_dims_t x = {(dnnl_dim_t)N, (dnnl_dim_t)s->C, (dnnl_dim_t)s->H, (dnnl_dim_t)s->W},
                    w = {(dnnl_dim_t)s->K, (dnnl_dim_t)s->C, (dnnl_dim_t)s->R, (dnnl_dim_t)s->S}, b = {(dnnl_dim_t)s->K},
                    y = {(dnnl_dim_t)N, (dnnl_dim_t)s->K, (dnnl_dim_t)s->P, (dnnl_dim_t)s->Q};
  const dnnl_data_type_t type = gt_dnn_type(c->precision);
  return (descs){.x = gt_dnn_desc(4, x, type, dnnl_nhwc),
                 .w = gt_dnn_desc(4, w, weight_gradient ? dnnl_f32 : type, dnnl_format_tag_any),
                 .b = gt_dnn_desc(1, b, dnnl_f32, dnnl_a),
                 .y = gt_dnn_desc(4, y, type, dnnl_nhwc),
                 .plain = gt_dnn_desc(4, w, dnnl_f32, dnnl_hwio),
                 .strides = {(dnnl_dim_t)s->stride, (dnnl_dim_t)s->stride},
                 .pads = {(dnnl_dim_t)s->pad, (dnnl_dim_t)s->pad}};
}

/* oneDNN wants the padding behind the image, too: what the last window reads beyond it. */
static void pads_behind(const gt_conv_shape *s, dnnl_dims_t pads) {
  pads[0] = (dnnl_dim_t)((s->P - 1) * s->stride + s->R) - (dnnl_dim_t)(s->H + s->pad);
  pads[1] = (dnnl_dim_t)((s->Q - 1) * s->stride + s->S) - (dnnl_dim_t)(s->W + s->pad);
}

static void complete(gt_prepared_context *dnn, gt_dnn_stage *stage, dnnl_primitive_desc_t primitive, const descs *d, bool weight_gradient,
                     bool bias) {
  const dnnl_memory_desc_t *w = dnnl_primitive_desc_query_md(primitive, weight_gradient ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
  GT_DNN(dnnl_primitive_create(&stage->run, primitive));
  stage->x = gt_dnn_memory(dnn, &d->x);
  stage->w = gt_dnn_memory(dnn, w);
  stage->y = gt_dnn_memory(dnn, &d->y);
  if (bias) stage->b = gt_dnn_memory(dnn, &d->b);
  if (!dnnl_memory_desc_equal(w, &d->plain)) {
    stage->plain = gt_dnn_memory(dnn, &d->plain);
    stage->pack = weight_gradient ? gt_dnn_reorder(dnn, w, &d->plain) : gt_dnn_reorder(dnn, &d->plain, w);
    gt_dnn_reserve(dnn, GT_DNN_PACKED, dnnl_memory_desc_get_size(w));
  }
}

/* The forward primitive's description is a hint to the others. */
static dnnl_primitive_desc_t forward_desc(const gt_prepared_conv *c, size_t N) {
  const descs d = describe(c, N, false);
  dnnl_dims_t behind;
  dnnl_convolution_desc_t desc;
  dnnl_primitive_desc_t primitive;
  pads_behind(&c->s, behind);
  GT_DNN(dnnl_convolution_forward_desc_init(&desc, dnnl_forward_training, dnnl_convolution_direct, &d.x, &d.w, c->bias ? &d.b : NULL, &d.y, d.strides,
                                            d.pads, behind));
  GT_DNN(dnnl_primitive_desc_create(&primitive, &desc, NULL, c->dnn->engine, NULL));
  return primitive;
}

static void open_forward(gt_prepared_conv *c, prepared *p, dnnl_primitive_desc_t hint) {
  const gt_conv_shape *s = &c->s;
  const descs d = describe(c, p->N, false);
  p->gemm_forward = gemm_forward(c, p->N);
  if (p->gemm_forward)
    gt_dnn_product_open(
        c->dnn, &p->forward,
        &(gt_dnn_product){
            .m = p->N * s->P * s->Q, .n = s->K, .k = s->R * s->S * s->C, .packed = c->precision == GT_BF16, .type = c->precision, .out = c->out});
  else
    complete(c->dnn, &p->forward, hint, &d, false, c->bias);
}

/* Blocks of input and output channels lie together, a window's places apart. */
static bool turns(const dnnl_memory_desc_t *w) {
  const dnnl_blocking_desc_t *b = &w->format_desc.blocking;
  if (w->format_kind != dnnl_blocked || w->extra.flags != dnnl_memory_extra_flag_none) return false;
  for (int i = 0; i < b->inner_nblks; i++)
    if (b->inner_idxs[i] > 1) return false;
  return true;
}

/* A convolution from dy (N,P,Q,K) to dx (N,H,W,C); `plain` and `pack` are of one place of the window. */
static bool open_turned(gt_prepared_conv *c, prepared *p) {
  const gt_conv_shape *s = &c->s;
  gt_prepared_conv back = *c;
  back.s =
      (gt_conv_shape){.H = s->P, .W = s->Q, .C = s->K, .K = s->C, .R = s->R, .S = s->S, .P = s->H, .Q = s->W, .stride = 1, .pad = s->R - 1 - s->pad};
  back.bias = false;
  const descs d = describe(&back, p->N, false);
  dnnl_primitive_desc_t primitive = forward_desc(&back, p->N);
  const dnnl_memory_desc_t *w = dnnl_primitive_desc_query_md(primitive, dnnl_query_weights_md, 0);
  const bool can = turns(w);
  if (can) {
    const dnnl_dims_t dims = {(dnnl_dim_t)s->C, (dnnl_dim_t)s->K, 1, 1}, from = {0, 0, 0, 0},
                      strides = {(dnnl_dim_t)s->K, 1, (dnnl_dim_t)(s->C * s->K), (dnnl_dim_t)(s->C * s->K)};
    dnnl_memory_desc_t plain, place;
    GT_DNN(dnnl_primitive_create(&p->input.run, primitive));
    GT_DNN(dnnl_memory_desc_init_by_strides(&plain, 4, dims, dnnl_f32, strides));
    GT_DNN(dnnl_memory_desc_init_submemory(&place, w, dims, from));
    p->input.x = gt_dnn_memory(c->dnn, &d.x);
    p->input.y = gt_dnn_memory(c->dnn, &d.y);
    p->input.w = gt_dnn_memory(c->dnn, w);
    p->input.plain = gt_dnn_memory(c->dnn, &plain);
    p->input.b = gt_dnn_memory(c->dnn, &place);
    p->input.pack = gt_dnn_reorder(c->dnn, &plain, &place);
    gt_dnn_reserve(c->dnn, GT_DNN_PACKED, dnnl_memory_desc_get_size(w));
    p->row = w->format_desc.blocking.strides[2];
    p->column = w->format_desc.blocking.strides[3];
  }
  dnnl_primitive_desc_destroy(primitive);
  return can;
}

static void open_input(gt_prepared_conv *c, prepared *p, dnnl_primitive_desc_t hint) {
  const gt_conv_shape *s = &c->s;
  const descs d = describe(c, p->N, false);
  p->gemm_input = gemm_input(c, p->N);
  if (p->gemm_input) {
    gt_dnn_product_open(c->dnn, &p->input,
                        &(gt_dnn_product){.m = p->N * s->P * s->Q,
                                          .n = s->R * s->S * s->C,
                                          .k = s->K,
                                          .tb = true,
                                          .packed = c->precision == GT_BF16,
                                          .type = c->precision,
                                          .out = GT_F32});
    return;
  }
  p->turned_input = turned_input(c) && open_turned(c, p);
  if (p->turned_input) return;
  dnnl_dims_t behind;
  dnnl_convolution_desc_t desc;
  dnnl_primitive_desc_t primitive;
  pads_behind(s, behind);
  GT_DNN(dnnl_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, &d.x, &d.w, &d.y, d.strides, d.pads, behind));
  GT_DNN(dnnl_primitive_desc_create(&primitive, &desc, NULL, c->dnn->engine, hint));
  complete(c->dnn, &p->input, primitive, &d, false, false);
  dnnl_primitive_desc_destroy(primitive);
}

static void open_weight(gt_prepared_conv *c, prepared *p, dnnl_primitive_desc_t hint) {
  const gt_conv_shape *s = &c->s;
  const descs d = describe(c, p->N, true);
  p->gemm_weight = gemm_weight(c, p->N);
  if (p->gemm_weight) {
    gt_dnn_product_open(
        c->dnn, &p->weight,
        &(gt_dnn_product){.m = s->R * s->S * s->C, .n = s->K, .k = summed_rows(c, p->N), .ta = true, .type = c->precision, .out = GT_F32});
    return;
  }
  dnnl_dims_t behind;
  dnnl_convolution_desc_t desc;
  dnnl_primitive_desc_t primitive;
  pads_behind(s, behind);
  GT_DNN(dnnl_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, &d.x, &d.w, c->bias ? &d.b : NULL, &d.y, d.strides, d.pads,
                                                     behind));
  GT_DNN(dnnl_primitive_desc_create(&primitive, &desc, NULL, c->dnn->engine, hint));
  complete(c->dnn, &p->weight, primitive, &d, true, c->bias);
  dnnl_primitive_desc_destroy(primitive);
}

/* Room for columns, and for values in another type. */
static void reserve(gt_prepared_conv *c, const prepared *p) {
  const gt_conv_shape *s = &c->s;
  const size_t rows = summed_rows(c, p->N), columns = rows * s->R * s->S * s->C, image = s->H * s->W * s->C;
  if (p->gemm_forward || p->gemm_weight) gt_dnn_reserve(c->dnn, GT_DNN_COLUMNS, columns * gt_precision_bytes(c->precision));
  if (p->gemm_input) gt_dnn_reserve(c->dnn, GT_DNN_COLUMNS, columns * sizeof(float));
  if (p->gemm_input) gt_dnn_reserve(c->dnn, GT_DNN_VALUES, image * sizeof(float));
  if (p->gemm_weight && rows != p->N * s->P * s->Q) gt_dnn_reserve(c->dnn, GT_DNN_VALUES, rows * s->K * sizeof(gt_bf16));
  if (c->in != c->precision) gt_dnn_reserve(c->dnn, GT_DNN_VALUES, p->N * image * sizeof(gt_bf16));
}

static void release(prepared *p) {
  gt_dnn_stage_close(&p->forward);
  gt_dnn_stage_close(&p->input);
  gt_dnn_stage_close(&p->weight);
  *p = (prepared){0};
}

/* The primitives for batches of N; where all places are taken, the oldest go. */
static prepared *prepare(gt_prepared_conv *c, size_t N) {
  for (size_t i = 0; i < c->nsizes; i++)
    if (c->sizes[i].N == N) return &c->sizes[i];
  size_t at = c->nsizes < SIZES ? c->nsizes++ : c->oldest++ % SIZES;
  prepared *p = &c->sizes[at];
  release(p);
  p->N = N;
  dnnl_primitive_desc_t hint = forward_desc(c, N);
  open_forward(c, p, hint);
  if (c->needs_input) open_input(c, p, hint);
  open_weight(c, p, hint);
  dnnl_primitive_desc_destroy(hint);
  reserve(c, p);
  return p;
}

gt_prepared_conv *gt_dnn_conv_create(gt_prepared_context *dnn, const gt_conv_spec *spec) {
  gt_prepared_conv *c = GT_NEW(gt_prepared_conv);
  *c = (gt_prepared_conv){.dnn = dnn,
                          .s = spec->shape,
                          .bias = spec->bias,
                          .needs_input = spec->needs_input_gradient,
                          .in = spec->in,
                          .out = spec->out,
                          .precision = spec->precision};
  return c;
}

void gt_dnn_conv_close(gt_prepared_conv *c) {
  if (!c) return;
  for (size_t i = 0; i < c->nsizes; i++) release(&c->sizes[i]);
  gt_free(c);
}

void gt_dnn_conv_prepare(gt_prepared_conv *c, size_t N) {
  prepare(c, N);
}

/* ---- running ---- */

/* x in the type that is computed in. */
static const void *values(const gt_prepared_conv *c, const void *x, size_t N) {
  if (c->in == c->precision) return x;
  gt_to_bf16(c->dnn->areas[GT_DNN_VALUES], x, N * c->s.H * c->s.W * c->s.C);
  return c->dnn->areas[GT_DNN_VALUES];
}

static const void *columns(const gt_prepared_conv *c, const void *x, size_t N) {
  const gt_conv_shape *s = &c->s;
  const size_t size = gt_precision_bytes(c->precision), image = s->H * s->W * s->C * size, unfolded = s->P * s->Q * s->R * s->S * s->C * size;
  char *to = c->dnn->areas[GT_DNN_COLUMNS];
  for (size_t n = 0; n < N; n++) gt_im2col(to + n * unfolded, (const char *)x + n * image, s, size);
  return to;
}

/* Weights in the layout that the stage wants. */
static void load_weights(gt_prepared_context *dnn, const gt_dnn_stage *stage, const float *w) {
  gt_dnn_point(stage->w, stage->pack ? dnn->areas[GT_DNN_PACKED] : w);
  if (!stage->pack) return;
  gt_dnn_point(stage->plain, w);
  gt_dnn_move(dnn, stage, stage->plain, stage->w);
}

void gt_dnn_conv_forward(gt_prepared_conv *c, void *y, const void *x, const float *w, const float *b, size_t N) {
  const prepared *p = prepare(c, N);
  const gt_dnn_stage *f = &p->forward;
  x = values(c, x, N);
  if (p->gemm_forward) {
    gt_dnn_product_run(c->dnn, f, y, columns(c, x, N), w, NULL);
    return;
  }
  const dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, f->x}, {DNNL_ARG_WEIGHTS, f->w}, {DNNL_ARG_DST, f->y}, {DNNL_ARG_BIAS, f->b}};
  load_weights(c->dnn, f, w);
  gt_dnn_point(f->x, x);
  gt_dnn_point(f->y, y);
  if (f->b) gt_dnn_point(f->b, b);
  gt_dnn_execute(c->dnn, f->run, args, f->b ? 4 : 3);
}

/* Columns of the gradient, in float32, folded image by image. */
static void fold(gt_prepared_conv *c, void *dx, size_t N) {
  const gt_conv_shape *s = &c->s;
  const size_t image = s->H * s->W * s->C, unfolded = s->P * s->Q * s->R * s->S * s->C;
  const float *from = c->dnn->areas[GT_DNN_COLUMNS];
  for (size_t n = 0; n < N; n++) {
    if (c->in == GT_F32) {
      gt_col2im((float *)dx + n * image, from + n * unfolded, s);
      continue;
    }
    gt_col2im(c->dnn->areas[GT_DNN_VALUES], from + n * unfolded, s);
    gt_to_bf16((gt_bf16 *)dx + n * image, c->dnn->areas[GT_DNN_VALUES], image);
  }
}

/* The weights of each place of the window to the opposite one. */
static void load_turned(const gt_prepared_conv *c, const prepared *p, const float *w) {
  const gt_conv_shape *s = &c->s;
  const gt_dnn_stage *g = &p->input;
  char *packed = c->dnn->areas[GT_DNN_PACKED];
  for (size_t r = 0; r < s->R; r++)
    for (size_t t = 0; t < s->S; t++) {
      gt_dnn_point(g->plain, w + ((s->R - 1 - r) * s->S + (s->S - 1 - t)) * s->C * s->K);
      gt_dnn_point(g->b, packed + ((size_t)p->row * r + (size_t)p->column * t) * gt_precision_bytes(c->precision));
      gt_dnn_move(c->dnn, g, g->plain, g->b);
    }
  gt_dnn_point(g->w, packed);
}

void gt_dnn_conv_backward_input(gt_prepared_conv *c, void *dx, const void *dy, const float *w, size_t N) {
  const prepared *p = prepare(c, N);
  const gt_dnn_stage *g = &p->input;
  if (p->turned_input) {
    const dnnl_exec_arg_t turned[3] = {{DNNL_ARG_SRC, g->x}, {DNNL_ARG_WEIGHTS, g->w}, {DNNL_ARG_DST, g->y}};
    load_turned(c, p, w);
    gt_dnn_point(g->x, dy);
    gt_dnn_point(g->y, dx);
    gt_dnn_execute(c->dnn, g->run, turned, 3);
    return;
  }
  if (p->gemm_input) {
    gt_dnn_product_run(c->dnn, g, c->dnn->areas[GT_DNN_COLUMNS], dy, w, NULL);
    fold(c, dx, N);
    return;
  }
  const dnnl_exec_arg_t args[3] = {{DNNL_ARG_DIFF_SRC, g->x}, {DNNL_ARG_WEIGHTS, g->w}, {DNNL_ARG_DIFF_DST, g->y}};
  load_weights(c->dnn, g, w);
  gt_dnn_point(g->x, dx);
  gt_dnn_point(g->y, dy);
  gt_dnn_execute(c->dnn, g->run, args, 3);
}

/* The product of columns, which are there, and dy, an odd number of rows behind which a row of zeros goes. */
static void weight_product(const gt_prepared_conv *c, const prepared *p, float *dw, const void *dy) {
  const size_t rows = p->N * c->s.P * c->s.Q, width = c->s.R * c->s.S * c->s.C;
  gt_bf16 *columns_end = (gt_bf16 *)c->dnn->areas[GT_DNN_COLUMNS] + rows * width, *values = c->dnn->areas[GT_DNN_VALUES];
  if (summed_rows(c, p->N) != rows) {
    memset(columns_end, 0, width * sizeof *columns_end);
    memcpy(values, dy, rows * c->s.K * sizeof *values);
    memset(values + rows * c->s.K, 0, c->s.K * sizeof *values);
    dy = values;
  }
  gt_dnn_product_run(c->dnn, &p->weight, dw, c->dnn->areas[GT_DNN_COLUMNS], dy, NULL);
}

void gt_dnn_conv_backward_weight(gt_prepared_conv *c, float *dw, float *db, const void *dy, const void *x, size_t N) {
  const prepared *p = prepare(c, N);
  const gt_dnn_stage *g = &p->weight;
  x = values(c, x, N);
  if (p->gemm_weight) {
    columns(c, x, N);
    weight_product(c, p, dw, dy);
    return;
  }
  const dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, g->x}, {DNNL_ARG_DIFF_WEIGHTS, g->w}, {DNNL_ARG_DIFF_DST, g->y}, {DNNL_ARG_DIFF_BIAS, g->b}};
  gt_dnn_point(g->x, x);
  gt_dnn_point(g->y, dy);
  gt_dnn_point(g->w, g->pack ? c->dnn->areas[GT_DNN_PACKED] : dw);
  if (g->b) gt_dnn_point(g->b, db);
  gt_dnn_execute(c->dnn, g->run, args, g->b ? 4 : 3);
  if (!g->pack) return;
  gt_dnn_point(g->plain, dw);
  gt_dnn_move(c->dnn, g, g->w, g->plain);
}
