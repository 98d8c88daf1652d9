/* Convolutions on oneDNN, NHWC: oneDNN's own convolution, with weights in the layout that it
   prefers; or, for images so small that the change of layout costs more than it saves (the last
   stages of a network), im2col and one matrix product, which uses weights and gradients in our
   layout. */
#include <string.h>

#include "conv.h"

gt_prepared_conv *gt_dnn_conv_create(gt_prepared_context *dnn, const gt_conv_spec *spec,
                                     const gt_way *ways) {
  gt_prepared_conv *c = GT_NEW(gt_prepared_conv);
  *c = (gt_prepared_conv){.dnn = dnn, .spec = *spec};
  memcpy(c->ways, ways, sizeof c->ways);
  return c;
}

void gt_dnn_conv_close(gt_prepared_conv *c) {
  if (!c) return;
  for (size_t i = 0; i < c->nsizes; i++) gt_conv_release(&c->sizes[i]);
  gt_free(c);
}

void gt_dnn_conv_prepare(gt_prepared_conv *c, size_t N) {
  gt_conv_prepare(c, N);
}

/* ---- running ---- */

/* x in the type of the arithmetic. */
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

/* Puts the weights into the layout that the stage needs. */
static void load_weights(gt_prepared_context *dnn, const gt_dnn_stage *stage, const float *w) {
  gt_dnn_point(stage->w, stage->pack ? dnn->areas[GT_DNN_PACKED] : w);
  if (!stage->pack) return;
  gt_dnn_point(stage->plain, w);
  gt_dnn_move(dnn, stage, stage->plain, stage->w);
}

void gt_dnn_conv_forward(gt_prepared_conv *c, void *y, const void *x, const float *w,
                         const float *b, size_t N) {
  gt_conv_prepared *p = gt_conv_prepare(c, N);
  const gt_dnn_stage *f = &p->forward;
  if (p->ways[GT_PASS_FORWARD] == GT_WAY_DNN_WINOGRAD) {
    gt_conv_winograd(c, p, false, y, x, w, b);
    return;
  }
  x = values(c, x, N);
  if (p->ways[GT_PASS_FORWARD] == GT_WAY_DNN_GEMM) {
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

/* Rotates the window by 180 degrees: the weights of each place go to the opposite place. */
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
  gt_conv_prepared *p = gt_conv_prepare(c, N);
  const gt_dnn_stage *g = &p->input;
  if (p->ways[GT_PASS_INPUT] == GT_WAY_DNN_WINOGRAD) {
    gt_conv_winograd(c, p, true, dx, dy, w, NULL);
    return;
  }
  if (p->ways[GT_PASS_INPUT] == GT_WAY_DNN_TURNED) {
    const dnnl_exec_arg_t turned[3] = {
        {DNNL_ARG_SRC, g->x}, {DNNL_ARG_WEIGHTS, g->w}, {DNNL_ARG_DST, g->y}};
    load_turned(c, p, w);
    gt_dnn_point(g->x, dy);
    gt_dnn_point(g->y, dx);
    gt_dnn_execute(c->dnn, g->run, turned, 3);
    return;
  }
  if (p->ways[GT_PASS_INPUT] == GT_WAY_DNN_GEMM) {
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

/* The product of the columns, already in GT_DNN_COLUMNS, and dy.  A row of zeros is appended if
   gt_conv_summed_rows rounds up. */
static void weight_product(const gt_prepared_conv *c, const gt_conv_prepared *p, float *dw,
                           const void *dy) {
  const size_t rows = p->N * c->spec.shape.P * c->spec.shape.Q,
               width = c->spec.shape.R * c->spec.shape.S * c->spec.shape.C;
  gt_bf16 *columns_end = (gt_bf16 *)c->dnn->areas[GT_DNN_COLUMNS] + rows * width,
          *values = c->dnn->areas[GT_DNN_VALUES];
  if (gt_conv_summed_rows(c, p->N) != rows) {
    memset(columns_end, 0, width * sizeof *columns_end);
    memcpy(values, dy, rows * c->spec.shape.K * sizeof *values);
    memset(values + rows * c->spec.shape.K, 0, c->spec.shape.K * sizeof *values);
    dy = values;
  }
  gt_dnn_product_run(c->dnn, &p->weight, dw, c->dnn->areas[GT_DNN_COLUMNS], dy, NULL);
}

void gt_dnn_conv_backward_weight(gt_prepared_conv *c, float *dw, float *db, const void *dy,
                                 const void *x, size_t N) {
  gt_conv_prepared *p = gt_conv_prepare(c, N);
  const gt_dnn_stage *g = &p->weight;
  if (p->ways[GT_PASS_WEIGHT] == GT_WAY_DNN_WINOGRAD) {
    gt_conv_winograd_weight(c, p, dw, dy, x);
    return;
  }
  x = values(c, x, N);
  if (p->ways[GT_PASS_WEIGHT] == GT_WAY_DNN_GEMM) {
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
