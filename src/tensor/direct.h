/* The direct convolution: the geometry of padded images, and the functions for kernel tables. */
#pragma once

#include "geotrain/tensor.h"

/* A convolution over padded images: for one kernel row, the S taps of C channels are a run of L =
   S*C contiguous values. */
typedef struct {
  size_t R, L, K, P, Q;
  size_t Kp, Lp; /* K and L rounded up to whole vectors */
  size_t lanes;  /* 8 or 16: output channels in a vector */
  /* floats between input rows, and between inputs of adjacent outputs in a row */
  size_t row, step;
  size_t stride, image, out; /* floats of a padded input image and of an output image */
} gt_direct;

/* True if the direct convolution supports this shape.  For these shapes it is the fastest kernel
   here. */
bool gt_direct_serves(const gt_conv_shape *s);
/* Returns the scratch of each of the three passes, in floats. */
size_t gt_direct_work(const gt_conv_shape *s);

/* Same contracts as in gt_kernels, for shapes that gt_direct_serves accepts. */
void gt_direct_forward(float *y, const float *x, const float *w, const float *b,
                       const gt_conv_shape *s, size_t N, float *work);
void gt_direct_backward_input(float *dx, const float *dy, const float *w, const gt_conv_shape *s,
                              size_t N, float *work);
void gt_direct_backward_weight(float *dw, float *db, const float *dy, const float *x,
                               const gt_conv_shape *s, size_t N, float *work);
