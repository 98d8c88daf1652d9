/* oneDNN 3: layouts are the library's objects, and a primitive descriptor is created in one
   call. */
#include "dnn.h"

gt_dnn_layout *gt_dnn_layout_tagged(int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
                                    dnnl_format_tag_t tag) {
  gt_dnn_layout *layout;
  GT_DNN(dnnl_memory_desc_create_with_tag(&layout, ndims, dims, type, tag));
  return layout;
}

gt_dnn_layout *gt_dnn_layout_strided(int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
                                     const dnnl_dims_t strides) {
  gt_dnn_layout *layout;
  GT_DNN(dnnl_memory_desc_create_with_strides(&layout, ndims, dims, type, strides));
  return layout;
}

gt_dnn_layout *gt_dnn_layout_part(const gt_dnn_layout *of, const dnnl_dims_t dims,
                                  const dnnl_dims_t from) {
  gt_dnn_layout *layout;
  GT_DNN(dnnl_memory_desc_create_submemory(&layout, of, dims, from));
  return layout;
}

void gt_dnn_layout_close(gt_dnn_layout *layout) {
  if (layout) GT_DNN(dnnl_memory_desc_destroy(layout));
}

/* Extra data of int8 weights cannot be queried; float weights have none. */
bool gt_dnn_layout_blocks(const gt_dnn_layout *layout, gt_dnn_blocks *blocks) {
  dnnl_format_kind_t kind;
  const dnnl_dims_t *strides, *inner;
  GT_DNN(dnnl_memory_desc_query(layout, dnnl_query_format_kind, &kind));
  if (kind != dnnl_blocked) return false;
  GT_DNN(dnnl_memory_desc_query(layout, dnnl_query_strides, &strides));
  GT_DNN(dnnl_memory_desc_query(layout, dnnl_query_inner_idxs, &inner));
  GT_DNN(dnnl_memory_desc_query(layout, dnnl_query_inner_nblks_s32, &blocks->ninner));
  blocks->strides = *strides;
  blocks->inner = *inner;
  return true;
}

static const dnnl_dims_t undilated = {0, 0};

dnnl_primitive_desc_t gt_dnn_describe_forward(dnnl_engine_t engine, const gt_dnn_conv_call *c) {
  dnnl_primitive_desc_t primitive;
  GT_DNN(dnnl_convolution_forward_primitive_desc_create(
      &primitive, engine, dnnl_forward_training, dnnl_convolution_direct, c->x, c->w, c->b, c->y,
      c->strides, undilated, c->before, c->behind, NULL));
  return primitive;
}

dnnl_primitive_desc_t gt_dnn_describe_input(dnnl_engine_t engine, const gt_dnn_conv_call *c,
                                            dnnl_primitive_desc_t hint) {
  dnnl_primitive_desc_t primitive;
  GT_DNN(dnnl_convolution_backward_data_primitive_desc_create(
      &primitive, engine, dnnl_convolution_direct, c->x, c->w, c->y, c->strides, undilated,
      c->before, c->behind, hint, NULL));
  return primitive;
}

dnnl_primitive_desc_t gt_dnn_describe_weight(dnnl_engine_t engine, const gt_dnn_conv_call *c,
                                             dnnl_primitive_desc_t hint) {
  dnnl_primitive_desc_t primitive;
  GT_DNN(dnnl_convolution_backward_weights_primitive_desc_create(
      &primitive, engine, dnnl_convolution_direct, c->x, c->w, c->b, c->y, c->strides, undilated,
      c->before, c->behind, hint, NULL));
  return primitive;
}

static dnnl_primitive_attr_t adding(void) {
  dnnl_primitive_attr_t attr;
  dnnl_post_ops_t sum;
  GT_DNN(dnnl_primitive_attr_create(&attr));
  GT_DNN(dnnl_post_ops_create(&sum));
  GT_DNN(dnnl_post_ops_append_sum(sum, 1.0F, 0, dnnl_data_type_undef));
  GT_DNN(dnnl_primitive_attr_set_post_ops(attr, sum));
  GT_DNN(dnnl_post_ops_destroy(sum));
  return attr;
}

dnnl_primitive_desc_t gt_dnn_describe_product(dnnl_engine_t engine, const gt_dnn_layout *a,
                                              const gt_dnn_layout *b, const gt_dnn_layout *c,
                                              const gt_dnn_layout *y, bool add) {
  dnnl_primitive_desc_t primitive;
  dnnl_primitive_attr_t attr = add ? adding() : NULL;
  GT_DNN(dnnl_matmul_primitive_desc_create(&primitive, engine, a, b, c, y, attr));
  if (attr) GT_DNN(dnnl_primitive_attr_destroy(attr));
  return primitive;
}
