/* oneDNN 2: layouts are values, and a primitive descriptor is created from an operation
   descriptor. */
#include <stdlib.h>

#include "dnn.h"

/* Copies a layout.  Uses malloc, because these copies are not counted: primitives for a new batch
   size are created in the first step with it, and oneDNN's own allocations for them are not counted
   either.  In version 3 layouts are oneDNN's own objects. */
static gt_dnn_layout *kept(const dnnl_memory_desc_t *layout) {
  gt_dnn_layout *copy = malloc(sizeof *copy);
  GT_DNN(copy ? dnnl_success : dnnl_out_of_memory);
  *copy = *layout;
  return copy;
}

gt_dnn_layout *gt_dnn_layout_tagged(int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
                                    dnnl_format_tag_t tag) {
  dnnl_memory_desc_t layout;
  GT_DNN(dnnl_memory_desc_init_by_tag(&layout, ndims, dims, type, tag));
  return kept(&layout);
}

gt_dnn_layout *gt_dnn_layout_strided(int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
                                     const dnnl_dims_t strides) {
  dnnl_memory_desc_t layout;
  GT_DNN(dnnl_memory_desc_init_by_strides(&layout, ndims, dims, type, strides));
  return kept(&layout);
}

gt_dnn_layout *gt_dnn_layout_part(const gt_dnn_layout *of, const dnnl_dims_t dims,
                                  const dnnl_dims_t from) {
  dnnl_memory_desc_t layout;
  GT_DNN(dnnl_memory_desc_init_submemory(&layout, of, dims, from));
  return kept(&layout);
}

void gt_dnn_layout_close(gt_dnn_layout *layout) {
  free(layout);
}

bool gt_dnn_layout_blocks(const gt_dnn_layout *layout, gt_dnn_blocks *blocks) {
  const dnnl_blocking_desc_t *b = &layout->format_desc.blocking;
  *blocks = (gt_dnn_blocks){b->strides, b->inner_idxs, b->inner_nblks};
  return layout->format_kind == dnnl_blocked && layout->extra.flags == dnnl_memory_extra_flag_none;
}

static dnnl_primitive_desc_t described(dnnl_engine_t engine, const void *operation,
                                       const_dnnl_primitive_attr_t attr,
                                       dnnl_primitive_desc_t hint) {
  dnnl_primitive_desc_t primitive;
  GT_DNN(dnnl_primitive_desc_create(&primitive, operation, attr, engine, hint));
  return primitive;
}

dnnl_primitive_desc_t gt_dnn_describe_forward(dnnl_engine_t engine, const gt_dnn_conv_call *c) {
  dnnl_convolution_desc_t desc;
  GT_DNN(dnnl_convolution_forward_desc_init(&desc, dnnl_forward_training, dnnl_convolution_direct,
                                            c->x, c->w, c->b, c->y, c->strides, c->before,
                                            c->behind));
  return described(engine, &desc, NULL, NULL);
}

dnnl_primitive_desc_t gt_dnn_describe_input(dnnl_engine_t engine, const gt_dnn_conv_call *c,
                                            dnnl_primitive_desc_t hint) {
  dnnl_convolution_desc_t desc;
  GT_DNN(dnnl_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, c->x, c->w, c->y,
                                                  c->strides, c->before, c->behind));
  return described(engine, &desc, NULL, hint);
}

dnnl_primitive_desc_t gt_dnn_describe_weight(dnnl_engine_t engine, const gt_dnn_conv_call *c,
                                             dnnl_primitive_desc_t hint) {
  dnnl_convolution_desc_t desc;
  GT_DNN(dnnl_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, c->x, c->w,
                                                     c->b, c->y, c->strides, c->before, c->behind));
  return described(engine, &desc, NULL, hint);
}

static dnnl_primitive_attr_t adding(void) {
  dnnl_primitive_attr_t attr;
  dnnl_post_ops_t sum;
  GT_DNN(dnnl_primitive_attr_create(&attr));
  GT_DNN(dnnl_post_ops_create(&sum));
  GT_DNN(dnnl_post_ops_append_sum(sum, 1.0F));
  GT_DNN(dnnl_primitive_attr_set_post_ops(attr, sum));
  GT_DNN(dnnl_post_ops_destroy(sum));
  return attr;
}

dnnl_primitive_desc_t gt_dnn_describe_product(dnnl_engine_t engine, const gt_dnn_layout *a,
                                              const gt_dnn_layout *b, const gt_dnn_layout *c,
                                              const gt_dnn_layout *y, bool add) {
  dnnl_matmul_desc_t desc;
  dnnl_primitive_attr_t attr = add ? adding() : NULL;
  GT_DNN(dnnl_matmul_desc_init(&desc, a, b, c, y));
  dnnl_primitive_desc_t primitive = described(engine, &desc, attr, NULL);
  if (attr) GT_DNN(dnnl_primitive_attr_destroy(attr));
  return primitive;
}
