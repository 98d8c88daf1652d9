/* Convolutions on oneDNN: declarations shared by preparation and execution. */
#pragma once

#include "dnn.h"

enum { GT_CONV_SIZES = 8 }; /* batch sizes whose primitives are kept */

/* Primitives for batches of N. */
typedef struct {
  size_t N;
  gt_algorithm algorithms[GT_PASSES];
  gt_dnn_stage forward, input, weight; /* Winograd: products of a group of tiles */
  gt_dnn_stage rest[GT_PASSES];        /* Winograd: products of a smaller last group */
  /* Rotated weights (GT_ALGORITHM_DNN_TURNED): elements from one row or column of the window to the
     next in the packed weights. */
  dnnl_dim_t row, column;
} gt_conv_prepared;

struct gt_prepared_conv {
  gt_prepared_context *dnn;
  gt_conv_spec spec;
  gt_algorithm algorithms[GT_PASSES]; /* requested, or GT_ALGORITHM_RULE */
  gt_conv_prepared sizes[GT_CONV_SIZES];
  size_t nsizes, oldest;
};

/* Winograd's convolution on oneDNN's products. */
void gt_conv_open_winograd(gt_prepared_conv *c, gt_conv_prepared *p, gt_pass_id pass);
void gt_conv_winograd(gt_prepared_conv *c, gt_conv_prepared *p, bool back, void *y, const void *x,
                      const float *w, const float *b);
void gt_conv_winograd_weight(gt_prepared_conv *c, gt_conv_prepared *p, float *dw, const void *dy,
                             const void *x);
