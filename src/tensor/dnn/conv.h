/* Convolutions on oneDNN: declarations shared by preparation and execution. */
#ifndef GEOTRAIN_TENSOR_DNN_CONV_H
#define GEOTRAIN_TENSOR_DNN_CONV_H

#include "dnn.h"

enum { GT_CONV_SIZES = 8 }; /* batch sizes whose primitives are kept */

/* Primitives for batches of N. */
typedef struct {
  size_t N;
  gt_way ways[GT_PASSES];
  gt_dnn_stage forward, input, weight; /* Winograd: products of a group of tiles */
  gt_dnn_stage rest[GT_PASSES];        /* Winograd: products of a smaller last group */
  /* Rotated weights (GT_WAY_DNN_TURNED): elements from one row or column of the window to the next
     in the packed weights. */
  dnnl_dim_t row, column;
} gt_conv_prepared;

struct gt_prepared_conv {
  gt_prepared_context *dnn;
  gt_conv_spec spec;
  gt_way ways[GT_PASSES]; /* requested, or GT_WAY_RULE */
  gt_conv_prepared sizes[GT_CONV_SIZES];
  size_t nsizes, oldest;
};

/* The primitives for batches of N, created if needed.  When all entries are used, the oldest is
   replaced. */
gt_conv_prepared *gt_conv_prepare(gt_prepared_conv *c, size_t N);
void gt_conv_release(gt_conv_prepared *p);
/* Winograd's convolution on oneDNN's products. */
void gt_conv_open_winograd(gt_prepared_conv *c, gt_conv_prepared *p, gt_pass_id pass);
void gt_conv_winograd(gt_prepared_conv *c, gt_conv_prepared *p, bool back, void *y, const void *x,
                      const float *w, const float *b);
void gt_conv_winograd_weight(gt_prepared_conv *c, gt_conv_prepared *p, float *dw, const void *dy,
                             const void *x);
/* Rows of columns that the gradient of the weights sums over.  In bf16 an odd number gets a row of
   zeros: oneDNN 2.6's bf16 product of plain factors over 63 rows uses AMX tiles that it has not
   configured (an illegal instruction). */
size_t gt_conv_summed_rows(const gt_prepared_conv *c, size_t N);

#endif
