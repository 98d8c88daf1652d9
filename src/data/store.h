/* store: a data set file while it is written: under a temporary name in the same folder, then fsynced and renamed.  Local. */
#ifndef GEOTRAIN_DATA_STORE_H
#define GEOTRAIN_DATA_STORE_H

#include "h5.h"

typedef struct gt_data_store gt_data_store;

/* What a file will hold: n[split] samples of uint8 images h x w x c, of float32 ones where floats
   is true, or where features > 0 of c int32 ids below it (h and w 1). */
typedef struct {
  size_t n[2], h, w, c, features;
  bool floats;
} gt_data_shape;

/* Begins OUT: a file with both splits.  GT_ERR_DATA with the path and the reason. */
gt_status gt_data_store_create(gt_data_store **out, const char *path, const gt_data_shape *shape);
/* Writes images, ids or labels [first, first+count) of a split; training images are counted for mean and std. */
gt_status gt_data_store_images(gt_data_store *store, gt_split split, size_t first, size_t count, const uint8_t *images);
gt_status gt_data_store_floats(gt_data_store *store, gt_split split, size_t first, size_t count, const float *images);
gt_status gt_data_store_ids(gt_data_store *store, gt_split split, size_t first, size_t count, const int32_t *ids);
gt_status gt_data_store_labels(gt_data_store *store, gt_split split, size_t first, size_t count, const int32_t *labels);
/* Writes the attributes, makes the file durable and gives it its name. */
gt_status gt_data_store_finish(gt_data_store *store, const char *name, size_t classes);
/* Frees the store; what was not finished is removed.  Takes NULL. */
void gt_data_store_close(gt_data_store *store);

#endif
