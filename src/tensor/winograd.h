/* Winograd's convolution for windows of 3 x 3: the slots that it fills, and its tiles. */
#ifndef GEOTRAIN_TENSOR_WINOGRAD_H
#define GEOTRAIN_TENSOR_WINOGRAD_H

#include "geotrain/tensor.h"

/* Images (H,W,C) of which tiles of 4 x 4 make 2 x 2 outputs each of (P,Q,K): rows x columns of tiles in an image, `group` of them at a time, a place's first tile
   `stride` tiles behind that of the place before. */
typedef struct {
  size_t H, W, C, P, Q, K, pad, rows, columns, all, group, stride;
} gt_tiles;

enum { GT_WINOGRAD_PLACES = 16 };
/* Of a batch of N: from the inputs to the outputs, or from the gradient of the outputs back. */
gt_tiles gt_winograd_tiles(const gt_conv_shape *s, size_t N, bool back);
bool gt_winograd_serves(const gt_conv_shape *s);
/* Scratch that each of the three passes needs, in floats. */
size_t gt_winograd_work(const gt_conv_shape *s, size_t N);
/* As the slots of gt_kernels, for shapes that gt_winograd_serves. */
void gt_winograd_forward(float *y, const float *x, const float *w, const float *b, const gt_conv_shape *s, size_t N, float *work);
void gt_winograd_backward_input(float *dx, const float *dy, const float *w, const gt_conv_shape *s, size_t N, float *work);
void gt_winograd_backward_weight(float *dw, float *db, const float *dy, const float *x, const gt_conv_shape *s, size_t N, float *work);

#endif
