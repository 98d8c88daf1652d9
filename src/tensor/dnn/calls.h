/* The oneDNN calls that differ between its versions 2 and 3.  The build uses calls_v2.c or
   calls_v3.c.  All other functions of oneDNN are called directly. */
#pragma once

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

/* A memory layout.  Both versions take its address. */
#if DNNL_VERSION_MAJOR >= 3
typedef struct dnnl_memory_desc gt_dnn_layout;
#else
typedef dnnl_memory_desc_t gt_dnn_layout;
#endif

/* Created for the caller, who frees them with gt_dnn_layout_close (NULL is allowed). */
gt_dnn_layout *gt_dnn_layout_tagged(int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
                                    dnnl_format_tag_t tag);
gt_dnn_layout *gt_dnn_layout_strided(int ndims, const dnnl_dims_t dims, dnnl_data_type_t type,
                                     const dnnl_dims_t strides);
/* Returns the part of another layout with extents `dims` at offset `from`. */
gt_dnn_layout *gt_dnn_layout_part(const gt_dnn_layout *of, const dnnl_dims_t dims,
                                  const dnnl_dims_t from);
void gt_dnn_layout_close(gt_dnn_layout *layout);

/* A blocked layout: blocks of some dimensions are contiguous, and strides are between blocks.
   Borrowed from the layout. */
typedef struct {
  const dnnl_dim_t *strides, *inner; /* inner: the dimension of each block */
  int ninner;
} gt_dnn_blocks;
/* Finds the blocks; false: the layout is not blocked, or holds more than the values. */
bool gt_dnn_layout_blocks(const gt_dnn_layout *layout, gt_dnn_blocks *blocks);

/* Layouts and sizes of a convolution; b NULL: no bias. */
typedef struct {
  const gt_dnn_layout *x, *w, *b, *y;
  const dnnl_dim_t *strides, *before, *behind; /* two each; padding before and after the image */
} gt_dnn_conv_call;

/* Create primitive descriptors; the caller frees them with dnnl_primitive_desc_destroy.  hint: that
   of the forward primitive. */
dnnl_primitive_desc_t gt_dnn_describe_forward(dnnl_engine_t engine, const gt_dnn_conv_call *c);
dnnl_primitive_desc_t gt_dnn_describe_input(dnnl_engine_t engine, const gt_dnn_conv_call *c,
                                            dnnl_primitive_desc_t hint);
dnnl_primitive_desc_t gt_dnn_describe_weight(dnnl_engine_t engine, const gt_dnn_conv_call *c,
                                             dnnl_primitive_desc_t hint);
/* Describes y = a b [+ c (NULL: none)]; add: the result is added to y. */
dnnl_primitive_desc_t gt_dnn_describe_product(dnnl_engine_t engine, const gt_dnn_layout *a,
                                              const gt_dnn_layout *b, const gt_dnn_layout *c,
                                              const gt_dnn_layout *y, bool add);
