/* The primitives of a convolution on oneDNN: selects the way of each of the three passes by rule,
   and creates what it needs. */
#include "conv.h"
#include "winograd.h"

/* Limits: rows of columns by rule; elements of columns in any case. */
enum { GEMM_ROWS = 8192, COLUMNS_MAX = 1 << 25 };

/* ---- rules, by measurement (bench/kernels) ---- */

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

size_t gt_conv_summed_rows(const gt_prepared_conv *c, size_t N) {
  const size_t rows = N * c->spec.shape.P * c->spec.shape.Q;
  return c->spec.precision == GT_BF16 ? (rows + 1) / 2 * 2 : rows;
}

/* The gradient of the input of a convolution of stride 1 is also a convolution, with the weights
   rotated by 180 degrees, and oneDNN's forward kernels are often faster than its backward ones.
   Only for whole blocks of channels, because the weights are rotated block by block. */
static bool can_turn(const gt_conv_shape *s) {
  return s->stride == 1 && s->R > 1 && s->S == s->R && s->pad < s->R && s->C % 64 == 0 &&
         s->K % 64 == 0;
}

gt_way gt_dnn_conv_rule(const gt_conv_spec *c, size_t N, gt_pass_id pass) {
  static const bounds up_to[GT_PASSES] = {[GT_PASS_FORWARD] = {16, 16, 16, 0},
                                          [GT_PASS_INPUT] = {0, 16, 16, 0},
                                          [GT_PASS_WEIGHT] = {16, 64, 64, 16}};
  if (gemm(c, N, &up_to[pass])) return GT_WAY_DNN_GEMM;
  return pass == GT_PASS_INPUT && can_turn(&c->shape) && c->shape.P * c->shape.Q > 16
             ? GT_WAY_DNN_TURNED
             : GT_WAY_DNN;
}

/* The columns of a whole batch must not take too much memory. */
bool gt_dnn_conv_can(const gt_conv_spec *c, size_t N, gt_pass_id pass, gt_way way) {
  const gt_conv_shape *s = &c->shape;
  if (way == GT_WAY_DNN_GEMM)
    return !c->bias && N * s->P * s->Q * s->R * s->S * s->C <= COLUMNS_MAX;
  if (way == GT_WAY_DNN_TURNED) return pass == GT_PASS_INPUT && can_turn(s);
  if (way == GT_WAY_DNN_WINOGRAD)
    return gt_winograd_serves(s) && c->in == c->precision && c->out == c->precision &&
           !(c->bias && pass == GT_PASS_WEIGHT);
  return way == GT_WAY_DNN;
}

/* ---- primitives ---- */

typedef struct {
  gt_dnn_layout *x, *w, *b, *y, *plain;
  dnnl_dims_t strides, pads, behind;
} descs;

/* oneDNN also needs the padding behind the image: how far the last window reads beyond it. */
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

/* The descriptor of the forward primitive, a hint for the others. */
static dnnl_primitive_desc_t forward_desc(const gt_prepared_conv *c, size_t N) {
  descs d = describe(c, N, false);
  const gt_dnn_conv_call call = call_of(&d, c->spec.bias);
  dnnl_primitive_desc_t primitive = gt_dnn_describe_forward(c->dnn->engine, &call);
  forget(&d);
  return primitive;
}

static void open_forward(gt_prepared_conv *c, gt_conv_prepared *p, dnnl_primitive_desc_t hint) {
  const gt_conv_shape *s = &c->spec.shape;
  if (p->ways[GT_PASS_FORWARD] == GT_WAY_DNN_GEMM) {
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

/* Whether only channels are blocked, so that each place of the window can be copied on its own. */
static bool turns(const gt_dnn_layout *w, gt_dnn_blocks *b) {
  if (!gt_dnn_layout_blocks(w, b)) return false;
  for (int i = 0; i < b->ninner; i++)
    if (b->inner[i] > 1) return false;
  return true;
}

/* Memories for the weights of the rotated convolution: all of them (`w`), and one place of the
   window (`plain`, `b`, `pack`). */
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

/* A convolution from dy (N,P,Q,K) to dx (N,H,W,C). */
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
  if (p->ways[GT_PASS_INPUT] == GT_WAY_DNN_GEMM) {
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
  if (p->ways[GT_PASS_INPUT] == GT_WAY_DNN_TURNED && open_turned(c, p)) return;
  p->ways[GT_PASS_INPUT] = GT_WAY_DNN; /* also if the weights cannot be rotated block by block */
  descs d = describe(c, p->N, false);
  const gt_dnn_conv_call call = call_of(&d, false);
  dnnl_primitive_desc_t primitive = gt_dnn_describe_input(c->dnn->engine, &call, hint);
  complete(c->dnn, &p->input, primitive, &d, false, false);
  dnnl_primitive_desc_destroy(primitive);
  forget(&d);
}

static void open_weight(gt_prepared_conv *c, gt_conv_prepared *p, dnnl_primitive_desc_t hint) {
  const gt_conv_shape *s = &c->spec.shape;
  if (p->ways[GT_PASS_WEIGHT] == GT_WAY_DNN_GEMM) {
    gt_dnn_product_open(c->dnn, &p->weight,
                        &(gt_dnn_product){.m = s->R * s->S * s->C,
                                          .n = s->K,
                                          .k = gt_conv_summed_rows(c, p->N),
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
  const size_t rows = gt_conv_summed_rows(c, p->N), columns = rows * s->R * s->S * s->C,
               image = s->H * s->W * s->C;
  if (p->ways[GT_PASS_FORWARD] == GT_WAY_DNN_GEMM || p->ways[GT_PASS_WEIGHT] == GT_WAY_DNN_GEMM)
    gt_dnn_reserve(c->dnn, GT_DNN_COLUMNS, columns * gt_precision_bytes(c->spec.precision));
  if (p->ways[GT_PASS_INPUT] == GT_WAY_DNN_GEMM)
    gt_dnn_reserve(c->dnn, GT_DNN_COLUMNS, columns * sizeof(float));
  if (p->ways[GT_PASS_INPUT] == GT_WAY_DNN_GEMM)
    gt_dnn_reserve(c->dnn, GT_DNN_VALUES, image * sizeof(float));
  if (p->ways[GT_PASS_WEIGHT] == GT_WAY_DNN_GEMM && rows != p->N * s->P * s->Q)
    gt_dnn_reserve(c->dnn, GT_DNN_VALUES, rows * s->K * sizeof(gt_bf16));
  if (c->spec.in != c->spec.precision)
    gt_dnn_reserve(c->dnn, GT_DNN_VALUES, p->N * image * sizeof(gt_bf16));
}

void gt_conv_release(gt_conv_prepared *p) {
  gt_dnn_stage_close(&p->forward);
  gt_dnn_stage_close(&p->input);
  gt_dnn_stage_close(&p->weight);
  for (int pass = 0; pass < GT_PASSES; pass++) gt_dnn_stage_close(&p->rest[pass]);
  *p = (gt_conv_prepared){0};
}

static bool ours(gt_way way) {
  return way == GT_WAY_DNN || way == GT_WAY_DNN_GEMM || way == GT_WAY_DNN_TURNED;
}

gt_conv_prepared *gt_conv_prepare(gt_prepared_conv *c, size_t N) {
  for (size_t i = 0; i < c->nsizes; i++)
    if (c->sizes[i].N == N) return &c->sizes[i];
  size_t at = c->nsizes < GT_CONV_SIZES ? c->nsizes++ : c->oldest++ % GT_CONV_SIZES;
  gt_conv_prepared *p = &c->sizes[at];
  gt_conv_release(p);
  p->N = N;
  for (int pass = 0; pass < GT_PASSES; pass++)
    p->ways[pass] = c->ways[pass] == GT_WAY_RULE ? gt_dnn_conv_rule(&c->spec, N, (gt_pass_id)pass)
                                                 : c->ways[pass];
  dnnl_primitive_desc_t hint = forward_desc(c, N);
  if (ours(p->ways[GT_PASS_FORWARD])) open_forward(c, p, hint);
  if (ours(p->ways[GT_PASS_INPUT]) && c->spec.needs_input_gradient) open_input(c, p, hint);
  if (ours(p->ways[GT_PASS_WEIGHT])) open_weight(c, p, hint);
  dnnl_primitive_desc_destroy(hint);
  for (int pass = 0; pass < GT_PASSES; pass++)
    if (p->ways[pass] == GT_WAY_DNN_WINOGRAD &&
        (pass != GT_PASS_INPUT || c->spec.needs_input_gradient))
      gt_conv_open_winograd(c, p, (gt_pass_id)pass);
  reserve(c, p);
  return p;
}
