/* Primitives with their memories, created once per batch size, and matrix products. */
#include "dnn.h"

/* ---- stages ---- */

void gt_dnn_stage_close(gt_dnn_stage *stage) {
  dnnl_memory_t memories[] = {stage->x, stage->w, stage->y, stage->b, stage->plain};
  if (stage->run) dnnl_primitive_destroy(stage->run);
  if (stage->pack) dnnl_primitive_destroy(stage->pack);
  for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
    if (memories[i]) dnnl_memory_destroy(memories[i]);
  *stage = (gt_dnn_stage){0};
}

dnnl_memory_t gt_dnn_memory(gt_prepared_context *dnn, const gt_dnn_layout *layout) {
  dnnl_memory_t memory;
  GT_DNN(dnnl_memory_create(&memory, layout, dnn->engine, DNNL_MEMORY_NONE));
  return memory;
}

dnnl_primitive_t gt_dnn_reorder(gt_prepared_context *dnn, const gt_dnn_layout *from,
                                const gt_dnn_layout *to) {
  dnnl_primitive_desc_t desc;
  dnnl_primitive_t primitive;
  GT_DNN(dnnl_reorder_primitive_desc_create(&desc, from, dnn->engine, to, dnn->engine, NULL));
  GT_DNN(dnnl_primitive_create(&primitive, desc));
  dnnl_primitive_desc_destroy(desc);
  return primitive;
}

void gt_dnn_execute(gt_prepared_context *dnn, dnnl_primitive_t primitive,
                    const dnnl_exec_arg_t *args, int nargs) {
  GT_DNN(dnnl_primitive_execute(primitive, dnn->stream, nargs, args));
  GT_DNN(dnnl_stream_wait(dnn->stream));
}

/* oneDNN takes a pointer to writable data even for data that it only reads. */
void gt_dnn_point(dnnl_memory_t memory, const void *data) {
  union {
    const void *given;
    void *taken;
  } u = {data};
  GT_DNN(dnnl_memory_set_data_handle(memory, u.taken));
}

void gt_dnn_move(gt_prepared_context *dnn, const gt_dnn_stage *stage, dnnl_memory_t from,
                 dnnl_memory_t to) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  gt_dnn_execute(dnn, stage->pack, args, 2);
}

/* ---- products ---- */

static gt_dnn_layout *matrix(size_t places, size_t rows, size_t columns, bool transposed,
                             gt_precision type, bool any) {
  const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns},
                    all = {(dnnl_dim_t)places, (dnnl_dim_t)rows, (dnnl_dim_t)columns};
  if (places > 0)
    return gt_dnn_layout_tagged(3, all, gt_dnn_type(type),
                                any          ? dnnl_format_tag_any
                                : transposed ? dnnl_acb
                                             : dnnl_abc);
  return gt_dnn_layout_tagged(2, dims, gt_dnn_type(type),
                              any          ? dnnl_format_tag_any
                              : transposed ? dnnl_ba
                                           : dnnl_ab);
}

/* Weights are given in plain layout and packed into the library's layout. */
static void open_packing(gt_prepared_context *dnn, gt_dnn_stage *stage, const gt_dnn_product *p,
                         const gt_dnn_layout *chosen) {
  gt_dnn_layout *plain = matrix(p->places, p->k, p->n, p->tb, GT_F32, false);
  stage->plain = gt_dnn_memory(dnn, plain);
  stage->pack = gt_dnn_reorder(dnn, plain, chosen);
  gt_dnn_reserve(dnn, GT_DNN_PACKED, dnnl_memory_desc_get_size(chosen));
  gt_dnn_layout_close(plain);
}

void gt_dnn_product_open(gt_prepared_context *dnn, gt_dnn_stage *stage, const gt_dnn_product *p) {
  gt_dnn_layout *a = matrix(p->places, p->m, p->k, p->ta, p->type, false),
                *b = matrix(p->places, p->k, p->n, p->tb, p->type, p->packed),
                *y = matrix(p->places, p->m, p->n, false, p->out, false),
                *c = p->bias ? matrix(0, 1, p->n, false, GT_F32, false) : NULL;
  dnnl_primitive_desc_t primitive = gt_dnn_describe_product(dnn->engine, a, b, c, y, p->add);
  const gt_dnn_layout *chosen = dnnl_primitive_desc_query_md(primitive, dnnl_query_weights_md, 0);
  GT_DNN(dnnl_primitive_create(&stage->run, primitive));
  stage->x = gt_dnn_memory(dnn, a);
  stage->w = gt_dnn_memory(dnn, chosen);
  stage->y = gt_dnn_memory(dnn, y);
  if (c) stage->b = gt_dnn_memory(dnn, c);
  if (p->packed) open_packing(dnn, stage, p, chosen);
  dnnl_primitive_desc_destroy(primitive);
  gt_dnn_layout *const layouts[] = {a, b, y, c};
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) gt_dnn_layout_close(layouts[i]);
}

void gt_dnn_product_run(gt_prepared_context *dnn, const gt_dnn_stage *stage, void *y, const void *a,
                        const void *b, const float *c) {
  dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, stage->x},
                             {DNNL_ARG_WEIGHTS, stage->w},
                             {DNNL_ARG_DST, stage->y},
                             {DNNL_ARG_BIAS, stage->b}};
  gt_dnn_point(stage->x, a);
  gt_dnn_point(stage->y, y);
  if (stage->b) gt_dnn_point(stage->b, c);
  gt_dnn_point(stage->w, stage->pack ? dnn->areas[GT_DNN_PACKED] : b);
  if (stage->pack && b) {
    gt_dnn_point(stage->plain, b);
    gt_dnn_move(dnn, stage, stage->plain, stage->w);
  }
  gt_dnn_execute(dnn, stage->run, args, stage->b ? 4 : 3);
}
