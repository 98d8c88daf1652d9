/* dataset: what the other files of this part know of an open data set. */
#ifndef GEOTRAIN_DATA_DATASET_H
#define GEOTRAIN_DATA_DATASET_H

#include "h5.h"

struct gt_dataset {
  hid_t file, x[2], y[2]; /* x, y by gt_split */
  char *path;
  uint64_t file_bytes;
  gt_dataset_info info;
  float *mean, *std;
  int32_t *labels[2];
};

size_t gt_dataset_count(const gt_dataset *dataset, gt_split split);
/* Bytes of one image as it is stored. */
size_t gt_dataset_row_bytes(const gt_dataset *dataset);
/* Images [first, first+count) of a split, as stored (uint8 or float32), into `out`. */
gt_status gt_dataset_read(gt_dataset *dataset, gt_split split, size_t first, size_t count, void *out);

/* check.c: each fills in what it has checked.  GT_ERR_DATA as gt_dataset_open says. */
gt_status gt_dataset_check_root(gt_dataset *dataset);
gt_status gt_dataset_check_split(gt_dataset *dataset, gt_split split);
gt_status gt_dataset_check_normalisation(gt_dataset *dataset);
gt_status gt_dataset_check_values(gt_dataset *dataset, gt_split split);

#endif
