/* data_picture: decodes PNG and JPEG files, and scales them to one size.  Layer 3.  Everything is
   local. */
#pragma once

#include "geotrain/data.h"

#define GT_PICTURE_PIXELS ((size_t)1 << 28) /* more are refused before they are decoded */

typedef struct {
  size_t h, w;
  bool gray;
} gt_picture_size;

/* True if the name ends as those of pictures do: png, jpg or jpeg, in any case. */
bool gt_picture_is(const char *name);
/* Reads the header of a file.  GT_ERR_DATA names the file and the problem. */
gt_status gt_picture_look(gt_picture_size *size, const char *path);
/* Decodes a file into out (h,w,c), c 1 (gray) or 3 (RGB; the alpha channel is dropped).  A picture
   of another size is scaled until it covers h x w, with its proportions, and its middle is cut
   out.  Scaling averages with a triangle filter, as Pillow's BILINEAR; a picture of this size keeps
   its bytes.  GT_ERR_DATA: as gt_picture_look, and damaged or incomplete files. */
gt_status gt_picture_read(const char *path, size_t h, size_t w, size_t c, uint8_t *out);
