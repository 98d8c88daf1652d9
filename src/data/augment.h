/* augment: how an image is cropped and flipped on its way into a batch.  Local. */
#ifndef GEOTRAIN_DATA_AUGMENT_H
#define GEOTRAIN_DATA_AUGMENT_H

#include "geotrain/data.h"

#define GT_AUGMENT_BORDER 4

/* One image's window: rows from `top` and columns from `left` on, -BORDER to BORDER; then, if so, mirrored left to right. */
typedef struct {
  int top, left;
  bool flip;
} gt_augment_window;

/* The windows of batch `number` are drawn from one generator, sample after sample. */
gt_rng gt_augment_rng(const gt_order *order, int64_t number);
gt_augment_window gt_augment_draw(gt_rng *rng);

/* x (h,w,c) = the window of bytes (h,w,c) through table (c,256); beyond the image stand zero bytes, through the table too. */
void gt_augment_bytes(float *x, const uint8_t *bytes, const float *table, size_t h, size_t w, size_t c, gt_augment_window window);
/* The same of floats, taken as they are; beyond the image stands 0. */
void gt_augment_floats(float *x, const float *image, size_t h, size_t w, size_t c, gt_augment_window window);

#endif
