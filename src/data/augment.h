/* augment: crops and flips images when a batch is made.  Local. */
#ifndef GEOTRAIN_DATA_AUGMENT_H
#define GEOTRAIN_DATA_AUGMENT_H

#include "geotrain/data.h"

#define GT_AUGMENT_BORDER 4

/* The window of one image: first row `top` and first column `left`, -BORDER to BORDER; then
   mirrored horizontally if `flip`. */
typedef struct {
  int top, left;
  bool flip;
} gt_augment_window;

/* One generator draws the windows of batch `number`, sample by sample. */
gt_rng gt_augment_rng(const gt_order *order, int64_t number);
gt_augment_window gt_augment_draw(gt_rng *rng);

/* x (h,w,c) = the window of bytes (h,w,c), mapped by table (c,256); pixels outside the image are
   zero bytes, also mapped. */
void gt_augment_bytes(float *x, const uint8_t *bytes, const float *table, size_t h, size_t w,
                      size_t c, gt_augment_window window);
/* The same for floats, without a table; pixels outside the image are 0. */
void gt_augment_floats(float *x, const float *image, size_t h, size_t w, size_t c,
                       gt_augment_window window);

#endif
