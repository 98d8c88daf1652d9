/* idx: reader of idx files of unsigned bytes (the format of MNIST), gzip or plain.  Local. */
#pragma once

#include "geotrain/data.h"

typedef struct gt_idx gt_idx;

/* Opens a file with `ndims` dimensions (1 labels, 3 images) and reads its header.  GT_ERR_DATA
   names the file, what was found and what was expected. */
gt_status gt_idx_open(gt_idx **out, const char *path, int ndims);
/* Returns dimension i: 0 items, 1 height, 2 width; 1 if i >= ndims. */
size_t gt_idx_dim(const gt_idx *idx, int i);
/* Reads the next `count` items into out. */
gt_status gt_idx_read(gt_idx *idx, size_t count, uint8_t *out);
/* Returns the path of the file; owned by idx. */
const char *gt_idx_path(const gt_idx *idx);
/* Checks, after the last item, that the file ends there and is complete (gzip: checksum). */
gt_status gt_idx_end(gt_idx *idx);
void gt_idx_close(gt_idx *idx);
