/* loader: the sample at a position of an epoch, without a stored permutation; crops and flips of
   images when a batch is made.  Local. */
#pragma once

#include "geotrain/data.h"

#define GT_ORDER_ROUNDS 8

/* A keyed permutation of 0..n-1. */
typedef struct {
  size_t n;
  int left_bits, right_bits;
  uint64_t keys[GT_ORDER_ROUNDS];
} gt_permutation;

/* Returns the permutation of one epoch; n > 0. */
gt_permutation gt_order_permutation(const gt_order *order, int64_t epoch);
/* Returns the sample at position i < n; a few dozen operations for any n. */
size_t gt_permutation_at(const gt_permutation *p, size_t i);

#define GT_AUGMENT_BORDER 4

/* The window of one image: first row `top` and first column `left`, -BORDER to BORDER; then
   mirrored horizontally if `flip`. */
typedef struct {
  int top, left;
  bool flip;
} gt_augment_window;

/* Returns the generator that draws the windows of batch `number`, sample by sample. */
gt_rng gt_augment_rng(const gt_order *order, int64_t number);
gt_augment_window gt_augment_draw(gt_rng *rng);

/* Writes x (h,w,c): the window of bytes (h,w,c), mapped by table (c,256); pixels outside the image
   are zero bytes, also mapped. */
void gt_augment_bytes(float *x, const uint8_t *bytes, const float *table, size_t h, size_t w,
                      size_t c, gt_augment_window window);
/* Does the same for floats, without a table; pixels outside the image are 0. */
void gt_augment_floats(float *x, const float *image, size_t h, size_t w, size_t c,
                       gt_augment_window window);
