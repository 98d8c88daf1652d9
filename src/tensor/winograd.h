/* Winograd's convolution for windows of 3 x 3: the functions for kernel tables, and its tiles. */
#pragma once

#include "geotrain/tensor.h"

/* Tiles of 4 x 4 inputs (H,W,C), each for 2 x 2 outputs (P,Q,K).  rows x columns: tiles of an
   image; all: tiles of the batch; group: tiles computed at a time; stride: distance in tiles
   between one of the 16 positions of a transformed tile and the next. */
typedef struct {
  size_t H, W, C, P, Q, K, pad, rows, columns, all, group, stride;
} gt_tiles;

enum { GT_WINOGRAD_PLACES = 16 };
/* Returns the tiles of a batch of N, forward or (back) from the gradient of the outputs to that of
   the inputs. */
gt_tiles gt_winograd_tiles(const gt_conv_shape *s, size_t N, bool back);
bool gt_winograd_serves(const gt_conv_shape *s);
/* Scratch that each of the three passes needs, in floats. */
size_t gt_winograd_work(const gt_conv_shape *s, size_t N);
/* Same contracts as in gt_kernels, for shapes that gt_winograd_serves accepts. */
void gt_winograd_forward(float *y, const float *x, const float *w, const float *b,
                         const gt_conv_shape *s, size_t N, float *work);
void gt_winograd_backward_input(float *dx, const float *dy, const float *w, const gt_conv_shape *s,
                                size_t N, float *work);
void gt_winograd_backward_weight(float *dw, float *db, const float *dy, const float *x,
                                 const gt_conv_shape *s, size_t N, float *work);
