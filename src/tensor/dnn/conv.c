/* Convolutions on oneDNN, NHWC: oneDNN's own convolution, with weights in the layout that it
   prefers; or, for images so small that the change of layout costs more than it saves (the last
   stages of a network), im2col and one matrix product, which uses weights and gradients in our
   layout. */
#include <string.h>

#include "conv.h"
#include "winograd.h"

/* ---- primitives: the method of each pass by rule, and its resources -------------------------- */

enum { GEMM_ROWS = 8192, COLUMNS_MAX = 1 << 25 };

/* Output pixels up to which im2col and a product are faster than a convolution.  Without AMX, bf16
   has separate limits for strided windows (bf16_strided) and for stride 1 (bf16), where the product
   is slower. */
typedef struct {
  size_t f32, amx, bf16_strided, bf16;
} bounds;

static bool amx(void) {
  return ((unsigned)dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_amx) ==
         dnnl_cpu_isa_avx512_core_amx;
}

static bool gemm(const gt_conv_spec *c, size_t N, const bounds *up_to) {
  const size_t pixels = c->shape.P * c->shape.Q, bf16 = amx()                 ? up_to->amx
                                                        : c->shape.stride > 1 ? up_to->bf16_strided
                                                                              : up_to->bf16;
  return !c->bias && N * pixels <= GEMM_ROWS &&
         pixels <= (c->precision == GT_BF16 ? bf16 : up_to->f32);
}

/* Returns the rows of columns over which the gradient of the weights is summed.  In bf16 an odd
   number gets a row of zeros: oneDNN 2.6's bf16 product of plain factors over 63 rows uses AMX
   tiles that it has not configured (an illegal instruction). */
static size_t summed_rows(const gt_prepared_conv *c, size_t N) {
  const size_t rows = N * c->spec.shape.P * c->spec.shape.Q;
  return c->spec.precision == GT_BF16 ? (rows + 1) / 2 * 2 : rows;
}

/* True if the gradient of the input can be computed as a convolution with the weights rotated by
   180 degrees: for stride 1, where oneDNN's forward kernels are often faster than its backward
   ones, and only for whole blocks of channels, because the weights are rotated block by block. */
static bool can_turn(const gt_conv_shape *s) {
  return s->stride == 1 && s->R > 1 && s->S == s->R && s->pad < s->R && s->C % 64 == 0 &&
         s->K % 64 == 0;
}

gt_algorithm gt_dnn_conv_rule(const gt_conv_spec *c, size_t N, gt_pass_id pass) {
  static const bounds up_to[GT_PASSES] = {[GT_PASS_FORWARD] = {16, 16, 16, 0},
                                          [GT_PASS_INPUT] = {0, 16, 16, 0},
                                          [GT_PASS_WEIGHT] = {16, 64, 64, 16}};
  if (gemm(c, N, &up_to[pass])) return GT_ALGORITHM_DNN_GEMM;
  return pass == GT_PASS_INPUT && can_turn(&c->shape) && c->shape.P * c->shape.Q > 16
             ? GT_ALGORITHM_DNN_TURNED
             : GT_ALGORITHM_DNN;
}

/* The columns of a whole batch must not take too much memory. */
bool gt_dnn_conv_can(const gt_conv_spec *c, size_t N, gt_pass_id pass, gt_algorithm algorithm) {
  const gt_conv_shape *s = &c->shape;
  if (algorithm == GT_ALGORITHM_DNN_GEMM)
    return !c->bias && N * s->P * s->Q * s->R * s->S * s->C <= COLUMNS_MAX;
  if (algorithm == GT_ALGORITHM_DNN_TURNED) return pass == GT_PASS_INPUT && can_turn(s);
  if (algorithm == GT_ALGORITHM_DNN_WINOGRAD)
    return gt_winograd_serves(s) && c->in == c->precision && c->out == c->precision &&
           !(c->bias && pass == GT_PASS_WEIGHT);
  return algorithm == GT_ALGORITHM_DNN;
}

typedef struct {
  gt_dnn_layout *x, *w, *b, *y, *plain;
  dnnl_dims_t strides, pads, behind;
} descs;

/* Computes the padding after the image, which oneDNN also needs: how far the last window reads
   beyond it. */
static void pads_behind(const gt_conv_shape *s, dnnl_dims_t pads) {
  pads[0] = (dnnl_dim_t)((s->P - 1) * s->stride + s->R) - (dnnl_dim_t)(s->H + s->pad);
  pads[1] = (dnnl_dim_t)((s->Q - 1) * s->stride + s->S) - (dnnl_dim_t)(s->W + s->pad);
}

static descs describe(const gt_prepared_conv *c, size_t N, bool weight_gradient) {
  const gt_conv_shape *s = &c->spec.shape;
  const dnnl_dims_t x = {(dnnl_dim_t)N, (dnnl_dim_t)s->C, (dnnl_dim_t)s->H, (dnnl_dim_t)s->W},
                    w = {(dnnl_dim_t)s->K, (dnnl_dim_t)s->C, (dnnl_dim_t)s->R, (dnnl_dim_t)s->S},
                    b = {(dnnl_dim_t)s->K},
                    y = {(dnnl_dim_t)N, (dnnl_dim_t)s->K, (dnnl_dim_t)s->P, (dnnl_dim_t)s->Q};
  const dnnl_data_type_t type = gt_dnn_type(c->spec.precision);
  descs d = {.x = gt_dnn_layout_tagged(4, x, type, dnnl_nhwc),
             .w =
                 gt_dnn_layout_tagged(4, w, weight_gradient ? dnnl_f32 : type, dnnl_format_tag_any),
             .b = gt_dnn_layout_tagged(1, b, dnnl_f32, dnnl_a),
             .y = gt_dnn_layout_tagged(4, y, type, dnnl_nhwc),
             .plain = gt_dnn_layout_tagged(4, w, dnnl_f32, dnnl_hwio),
             .strides = {(dnnl_dim_t)s->stride, (dnnl_dim_t)s->stride},
             .pads = {(dnnl_dim_t)s->pad, (dnnl_dim_t)s->pad}};
  pads_behind(s, d.behind);
  return d;
}

static void forget(descs *d) {
  gt_dnn_layout *const layouts[] = {d->x, d->w, d->b, d->y, d->plain};
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) gt_dnn_layout_close(layouts[i]);
}

static gt_dnn_conv_call call_of(const descs *d, bool bias) {
  return (gt_dnn_conv_call){d->x, d->w, bias ? d->b : NULL, d->y, d->strides, d->pads, d->behind};
}

static void complete(gt_prepared_context *dnn, gt_dnn_stage *stage, dnnl_primitive_desc_t primitive,
                     const descs *d, bool weight_gradient, bool bias) {
  const gt_dnn_layout *w = dnnl_primitive_desc_query_md(
      primitive, weight_gradient ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
  GT_DNN(dnnl_primitive_create(&stage->run, primitive));
  stage->x = gt_dnn_memory(dnn, d->x);
  stage->w = gt_dnn_memory(dnn, w);
  stage->y = gt_dnn_memory(dnn, d->y);
  if (bias) stage->b = gt_dnn_memory(dnn, d->b);
  if (!dnnl_memory_desc_equal(w, d->plain)) {
    stage->plain = gt_dnn_memory(dnn, d->plain);
    stage->pack =
        weight_gradient ? gt_dnn_reorder(dnn, w, d->plain) : gt_dnn_reorder(dnn, d->plain, w);
    gt_dnn_reserve(dnn, GT_DNN_PACKED, dnnl_memory_desc_get_size(w));
  }
}

/* Returns the descriptor of the forward primitive, a hint for the others. */
static dnnl_primitive_desc_t forward_desc(const gt_prepared_conv *c, size_t N) {
  descs d = describe(c, N, false);
  const gt_dnn_conv_call call = call_of(&d, c->spec.bias);
  dnnl_primitive_desc_t primitive = gt_dnn_describe_forward(c->dnn->engine, &call);
  forget(&d);
  return primitive;
}

static void open_forward(gt_prepared_conv *c, gt_conv_prepared *p, dnnl_primitive_desc_t hint) {
  const gt_conv_shape *s = &c->spec.shape;
  if (p->algorithms[GT_PASS_FORWARD] == GT_ALGORITHM_DNN_GEMM) {
    gt_dnn_product_open(c->dnn, &p->forward,
                        &(gt_dnn_product){.m = p->N * s->P * s->Q,
                                          .n = s->K,
                                          .k = s->R * s->S * s->C,
                                          .packed = c->spec.precision == GT_BF16,
                                          .type = c->spec.precision,
                                          .out = c->spec.out});
    return;
  }
  descs d = describe(c, p->N, false);
  complete(c->dnn, &p->forward, hint, &d, false, c->spec.bias);
  forget(&d);
}

/* True if only channels are blocked, so that each position of the window can be copied on its
   own. */
static bool turns(const gt_dnn_layout *w, gt_dnn_blocks *b) {
  if (!gt_dnn_layout_blocks(w, b)) return false;
  for (int i = 0; i < b->ninner; i++)
    if (b->inner[i] > 1) return false;
  return true;
}

/* Opens memories for the weights of the rotated convolution: all of them (`w`), and one position of
   the window (`plain`, `b`, `pack`). */
static void open_places(gt_prepared_conv *c, gt_dnn_stage *stage, const gt_dnn_layout *w) {
  const gt_conv_shape *s = &c->spec.shape;
  const dnnl_dims_t dims = {(dnnl_dim_t)s->C, (dnnl_dim_t)s->K, 1, 1}, from = {0, 0, 0, 0},
                    strides = {(dnnl_dim_t)s->K, 1, (dnnl_dim_t)(s->C * s->K),
                               (dnnl_dim_t)(s->C * s->K)};
  gt_dnn_layout *plain = gt_dnn_layout_strided(4, dims, dnnl_f32, strides),
                *place = gt_dnn_layout_part(w, dims, from);
  stage->w = gt_dnn_memory(c->dnn, w);
  stage->plain = gt_dnn_memory(c->dnn, plain);
  stage->b = gt_dnn_memory(c->dnn, place);
  stage->pack = gt_dnn_reorder(c->dnn, plain, place);
  gt_dnn_reserve(c->dnn, GT_DNN_PACKED, dnnl_memory_desc_get_size(w));
  gt_dnn_layout_close(plain);
  gt_dnn_layout_close(place);
}

/* Opens a convolution from dy (N,P,Q,K) to dx (N,H,W,C). */
static bool open_turned(gt_prepared_conv *c, gt_conv_prepared *p) {
  const gt_conv_shape *s = &c->spec.shape;
  gt_prepared_conv back = *c;
  back.spec.shape = (gt_conv_shape){.H = s->P,
                                    .W = s->Q,
                                    .C = s->K,
                                    .K = s->C,
                                    .R = s->R,
                                    .S = s->S,
                                    .P = s->H,
                                    .Q = s->W,
                                    .stride = 1,
                                    .pad = s->R - 1 - s->pad};
  back.spec.bias = false;
  descs d = describe(&back, p->N, false);
  dnnl_primitive_desc_t primitive = forward_desc(&back, p->N);
  const gt_dnn_layout *w = dnnl_primitive_desc_query_md(primitive, dnnl_query_weights_md, 0);
  gt_dnn_blocks blocks;
  const bool can = turns(w, &blocks);
  if (can) {
    GT_DNN(dnnl_primitive_create(&p->input.run, primitive));
    p->input.x = gt_dnn_memory(c->dnn, d.x);
    p->input.y = gt_dnn_memory(c->dnn, d.y);
    open_places(c, &p->input, w);
    p->row = blocks.strides[2];
    p->column = blocks.strides[3];
  }
  dnnl_primitive_desc_destroy(primitive);
  forget(&d);
  return can;
}

static void open_input(gt_prepared_conv *c, gt_conv_prepared *p, dnnl_primitive_desc_t hint) {
  const gt_conv_shape *s = &c->spec.shape;
  if (p->algorithms[GT_PASS_INPUT] == GT_ALGORITHM_DNN_GEMM) {
    gt_dnn_product_open(c->dnn, &p->input,
                        &(gt_dnn_product){.m = p->N * s->P * s->Q,
                                          .n = s->R * s->S * s->C,
                                          .k = s->K,
                                          .tb = true,
                                          .packed = c->spec.precision == GT_BF16,
                                          .type = c->spec.precision,
                                          .out = GT_F32});
    return;
  }
  if (p->algorithms[GT_PASS_INPUT] == GT_ALGORITHM_DNN_TURNED && open_turned(c, p)) return;
  p->algorithms[GT_PASS_INPUT] =
      GT_ALGORITHM_DNN; /* also if the weights cannot be rotated block by block */
  descs d = describe(c, p->N, false);
  const gt_dnn_conv_call call = call_of(&d, false);
  dnnl_primitive_desc_t primitive = gt_dnn_describe_input(c->dnn->engine, &call, hint);
  complete(c->dnn, &p->input, primitive, &d, false, false);
  dnnl_primitive_desc_destroy(primitive);
  forget(&d);
}

static void open_weight(gt_prepared_conv *c, gt_conv_prepared *p, dnnl_primitive_desc_t hint) {
  const gt_conv_shape *s = &c->spec.shape;
  if (p->algorithms[GT_PASS_WEIGHT] == GT_ALGORITHM_DNN_GEMM) {
    gt_dnn_product_open(c->dnn, &p->weight,
                        &(gt_dnn_product){.m = s->R * s->S * s->C,
                                          .n = s->K,
                                          .k = summed_rows(c, p->N),
                                          .ta = true,
                                          .type = c->spec.precision,
                                          .out = GT_F32});
    return;
  }
  descs d = describe(c, p->N, true);
  const gt_dnn_conv_call call = call_of(&d, c->spec.bias);
  dnnl_primitive_desc_t primitive = gt_dnn_describe_weight(c->dnn->engine, &call, hint);
  complete(c->dnn, &p->weight, primitive, &d, true, c->spec.bias);
  dnnl_primitive_desc_destroy(primitive);
  forget(&d);
}

/* Reserves scratch for columns and for values converted to another type. */
static void reserve(gt_prepared_conv *c, const gt_conv_prepared *p) {
  const gt_conv_shape *s = &c->spec.shape;
  const size_t rows = summed_rows(c, p->N), columns = rows * s->R * s->S * s->C,
               image = s->H * s->W * s->C;
  if (p->algorithms[GT_PASS_FORWARD] == GT_ALGORITHM_DNN_GEMM ||
      p->algorithms[GT_PASS_WEIGHT] == GT_ALGORITHM_DNN_GEMM)
    gt_dnn_reserve(c->dnn, GT_DNN_COLUMNS, columns * gt_precision_bytes(c->spec.precision));
  if (p->algorithms[GT_PASS_INPUT] == GT_ALGORITHM_DNN_GEMM)
    gt_dnn_reserve(c->dnn, GT_DNN_COLUMNS, columns * sizeof(float));
  if (p->algorithms[GT_PASS_INPUT] == GT_ALGORITHM_DNN_GEMM)
    gt_dnn_reserve(c->dnn, GT_DNN_VALUES, image * sizeof(float));
  if (p->algorithms[GT_PASS_WEIGHT] == GT_ALGORITHM_DNN_GEMM && rows != p->N * s->P * s->Q)
    gt_dnn_reserve(c->dnn, GT_DNN_VALUES, rows * s->K * sizeof(gt_bf16));
  if (c->spec.in != c->spec.precision)
    gt_dnn_reserve(c->dnn, GT_DNN_VALUES, p->N * image * sizeof(gt_bf16));
}

static void release_primitives(gt_conv_prepared *p) {
  gt_dnn_stage_close(&p->forward);
  gt_dnn_stage_close(&p->input);
  gt_dnn_stage_close(&p->weight);
  for (int pass = 0; pass < GT_PASSES; pass++) gt_dnn_stage_close(&p->rest[pass]);
  *p = (gt_conv_prepared){0};
}

static bool ours(gt_algorithm algorithm) {
  return algorithm == GT_ALGORITHM_DNN || algorithm == GT_ALGORITHM_DNN_GEMM ||
         algorithm == GT_ALGORITHM_DNN_TURNED;
}

/* Returns the primitives for batches of N, created if needed.  When all entries are used, the
   oldest is replaced. */
static gt_conv_prepared *primitives_for(gt_prepared_conv *c, size_t N) {
  for (size_t i = 0; i < c->nsizes; i++)
    if (c->sizes[i].N == N) return &c->sizes[i];
  size_t at = c->nsizes < GT_CONV_SIZES ? c->nsizes++ : c->oldest++ % GT_CONV_SIZES;
  gt_conv_prepared *p = &c->sizes[at];
  release_primitives(p);
  p->N = N;
  for (int pass = 0; pass < GT_PASSES; pass++)
    p->algorithms[pass] = c->algorithms[pass] == GT_ALGORITHM_RULE
                              ? gt_dnn_conv_rule(&c->spec, N, (gt_pass_id)pass)
                              : c->algorithms[pass];
  dnnl_primitive_desc_t hint = forward_desc(c, N);
  if (ours(p->algorithms[GT_PASS_FORWARD])) open_forward(c, p, hint);
  if (ours(p->algorithms[GT_PASS_INPUT]) && c->spec.needs_input_gradient) open_input(c, p, hint);
  if (ours(p->algorithms[GT_PASS_WEIGHT])) open_weight(c, p, hint);
  dnnl_primitive_desc_destroy(hint);
  for (int pass = 0; pass < GT_PASSES; pass++)
    if (p->algorithms[pass] == GT_ALGORITHM_DNN_WINOGRAD &&
        (pass != GT_PASS_INPUT || c->spec.needs_input_gradient))
      gt_conv_open_winograd(c, p, (gt_pass_id)pass);
  reserve(c, p);
  return p;
}

/* ---- convolutions ---------------------------------------------------------------------------- */

gt_prepared_conv *gt_dnn_conv_create(gt_prepared_context *dnn, const gt_conv_spec *spec,
                                     const gt_algorithm *algorithms) {
  gt_prepared_conv *c = GT_NEW(gt_prepared_conv);
  *c = (gt_prepared_conv){.dnn = dnn, .spec = *spec};
  memcpy(c->algorithms, algorithms, sizeof c->algorithms);
  return c;
}

void gt_dnn_conv_close(gt_prepared_conv *c) {
  if (!c) return;
  for (size_t i = 0; i < c->nsizes; i++) release_primitives(&c->sizes[i]);
  gt_free(c);
}

void gt_dnn_conv_prepare(gt_prepared_conv *c, size_t N) {
  primitives_for(c, N);
}

/* Returns x in the type of the arithmetic. */
static const void *values(const gt_prepared_conv *c, const void *x, size_t N) {
  if (c->spec.in == c->spec.precision) return x;
  gt_to_bf16(c->dnn->areas[GT_DNN_VALUES], x,
             N * c->spec.shape.H * c->spec.shape.W * c->spec.shape.C);
  return c->dnn->areas[GT_DNN_VALUES];
}

static const void *columns(const gt_prepared_conv *c, const void *x, size_t N) {
  const gt_conv_shape *s = &c->spec.shape;
  const size_t size = gt_precision_bytes(c->spec.precision), image = s->H * s->W * s->C * size,
               unfolded = s->P * s->Q * s->R * s->S * s->C * size;
  char *to = c->dnn->areas[GT_DNN_COLUMNS];
  for (size_t n = 0; n < N; n++) gt_im2col(to + n * unfolded, (const char *)x + n * image, s, size);
  return to;
}

/* Converts the weights to the layout of the stage. */
static void load_weights(gt_prepared_context *dnn, const gt_dnn_stage *stage, const float *w) {
  gt_dnn_point(stage->w, stage->pack ? dnn->areas[GT_DNN_PACKED] : w);
  if (!stage->pack) return;
  gt_dnn_point(stage->plain, w);
  gt_dnn_move(dnn, stage, stage->plain, stage->w);
}

void gt_dnn_conv_forward(gt_prepared_conv *c, void *y, const void *x, const float *w,
                         const float *b, size_t N) {
  gt_conv_prepared *p = primitives_for(c, N);
  const gt_dnn_stage *f = &p->forward;
  if (p->algorithms[GT_PASS_FORWARD] == GT_ALGORITHM_DNN_WINOGRAD) {
    gt_conv_winograd(c, p, false, y, x, w, b);
    return;
  }
  x = values(c, x, N);
  if (p->algorithms[GT_PASS_FORWARD] == GT_ALGORITHM_DNN_GEMM) {
    gt_dnn_product_run(c->dnn, f, y, columns(c, x, N), w, NULL);
    return;
  }
  const dnnl_exec_arg_t args[4] = {
      {DNNL_ARG_SRC, f->x}, {DNNL_ARG_WEIGHTS, f->w}, {DNNL_ARG_DST, f->y}, {DNNL_ARG_BIAS, f->b}};
  load_weights(c->dnn, f, w);
  gt_dnn_point(f->x, x);
  gt_dnn_point(f->y, y);
  if (f->b) gt_dnn_point(f->b, b);
  gt_dnn_execute(c->dnn, f->run, args, f->b ? 4 : 3);
}

/* Folds the columns of the gradient (float32) back into images. */
static void fold(gt_prepared_conv *c, void *dx, size_t N) {
  const gt_conv_shape *s = &c->spec.shape;
  const size_t image = s->H * s->W * s->C, unfolded = s->P * s->Q * s->R * s->S * s->C;
  const float *from = c->dnn->areas[GT_DNN_COLUMNS];
  for (size_t n = 0; n < N; n++) {
    if (c->spec.in == GT_F32) {
      gt_col2im((float *)dx + n * image, from + n * unfolded, s);
      continue;
    }
    gt_col2im(c->dnn->areas[GT_DNN_VALUES], from + n * unfolded, s);
    gt_to_bf16((gt_bf16 *)dx + n * image, c->dnn->areas[GT_DNN_VALUES], image);
  }
}

/* Rotates the window by 180 degrees: the weights of each position go to the opposite position. */
static void load_turned(const gt_prepared_conv *c, const gt_conv_prepared *p, const float *w) {
  const gt_conv_shape *s = &c->spec.shape;
  const gt_dnn_stage *g = &p->input;
  char *packed = c->dnn->areas[GT_DNN_PACKED];
  for (size_t r = 0; r < s->R; r++)
    for (size_t t = 0; t < s->S; t++) {
      gt_dnn_point(g->plain, w + ((s->R - 1 - r) * s->S + (s->S - 1 - t)) * s->C * s->K);
      gt_dnn_point(g->b, packed + ((size_t)p->row * r + (size_t)p->column * t) *
                                      gt_precision_bytes(c->spec.precision));
      gt_dnn_move(c->dnn, g, g->plain, g->b);
    }
  gt_dnn_point(g->w, packed);
}

void gt_dnn_conv_backward_input(gt_prepared_conv *c, void *dx, const void *dy, const float *w,
                                size_t N) {
  gt_conv_prepared *p = primitives_for(c, N);
  const gt_dnn_stage *g = &p->input;
  if (p->algorithms[GT_PASS_INPUT] == GT_ALGORITHM_DNN_WINOGRAD) {
    gt_conv_winograd(c, p, true, dx, dy, w, NULL);
    return;
  }
  if (p->algorithms[GT_PASS_INPUT] == GT_ALGORITHM_DNN_TURNED) {
    const dnnl_exec_arg_t turned[3] = {
        {DNNL_ARG_SRC, g->x}, {DNNL_ARG_WEIGHTS, g->w}, {DNNL_ARG_DST, g->y}};
    load_turned(c, p, w);
    gt_dnn_point(g->x, dy);
    gt_dnn_point(g->y, dx);
    gt_dnn_execute(c->dnn, g->run, turned, 3);
    return;
  }
  if (p->algorithms[GT_PASS_INPUT] == GT_ALGORITHM_DNN_GEMM) {
    gt_dnn_product_run(c->dnn, g, c->dnn->areas[GT_DNN_COLUMNS], dy, w, NULL);
    fold(c, dx, N);
    return;
  }
  const dnnl_exec_arg_t args[3] = {
      {DNNL_ARG_DIFF_SRC, g->x}, {DNNL_ARG_WEIGHTS, g->w}, {DNNL_ARG_DIFF_DST, g->y}};
  load_weights(c->dnn, g, w);
  gt_dnn_point(g->x, dx);
  gt_dnn_point(g->y, dy);
  gt_dnn_execute(c->dnn, g->run, args, 3);
}

/* Computes the product of the columns, already in GT_DNN_COLUMNS, and dy.  A row of zeros is
   appended if summed_rows rounds up. */
static void weight_product(const gt_prepared_conv *c, const gt_conv_prepared *p, float *dw,
                           const void *dy) {
  const size_t rows = p->N * c->spec.shape.P * c->spec.shape.Q,
               width = c->spec.shape.R * c->spec.shape.S * c->spec.shape.C;
  gt_bf16 *columns_end = (gt_bf16 *)c->dnn->areas[GT_DNN_COLUMNS] + rows * width,
          *values = c->dnn->areas[GT_DNN_VALUES];
  if (summed_rows(c, p->N) != rows) {
    memset(columns_end, 0, width * sizeof *columns_end);
    memcpy(values, dy, rows * c->spec.shape.K * sizeof *values);
    memset(values + rows * c->spec.shape.K, 0, c->spec.shape.K * sizeof *values);
    dy = values;
  }
  gt_dnn_product_run(c->dnn, &p->weight, dw, c->dnn->areas[GT_DNN_COLUMNS], dy, NULL);
}

void gt_dnn_conv_backward_weight(gt_prepared_conv *c, float *dw, float *db, const void *dy,
                                 const void *x, size_t N) {
  gt_conv_prepared *p = primitives_for(c, N);
  const gt_dnn_stage *g = &p->weight;
  if (p->algorithms[GT_PASS_WEIGHT] == GT_ALGORITHM_DNN_WINOGRAD) {
    gt_conv_winograd_weight(c, p, dw, dy, x);
    return;
  }
  x = values(c, x, N);
  if (p->algorithms[GT_PASS_WEIGHT] == GT_ALGORITHM_DNN_GEMM) {
    columns(c, x, N);
    weight_product(c, p, dw, dy);
    return;
  }
  const dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, g->x},
                                   {DNNL_ARG_DIFF_WEIGHTS, g->w},
                                   {DNNL_ARG_DIFF_DST, g->y},
                                   {DNNL_ARG_DIFF_BIAS, g->b}};
  gt_dnn_point(g->x, x);
  gt_dnn_point(g->y, dy);
  gt_dnn_point(g->w, g->pack ? c->dnn->areas[GT_DNN_PACKED] : dw);
  if (g->b) gt_dnn_point(g->b, db);
  gt_dnn_execute(c->dnn, g->run, args, g->b ? 4 : 3);
  if (!g->pack) return;
  gt_dnn_point(g->plain, dw);
  gt_dnn_move(c->dnn, g, g->w, g->plain);
}
