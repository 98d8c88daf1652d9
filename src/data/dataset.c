/* An open data set: its samples as stored, and its description. */
#include "dataset.h"

const char *const gt_data_input_names[3] = {"uint8", "float32", "int32"};

gt_dataset *gt_dataset_empty(const gt_dataset_info *like) {
  gt_dataset *d = GT_NEW(gt_dataset);
  d->file = -1;
  for (int s = 0; s < 2; s++) d->x[s] = d->y[s] = -1;
  d->path = gt_strdup("");
  d->info = *like;
  d->info.ntrain = d->info.ntest = 0;
  d->info.class_names = NULL;
  d->mean = GT_NEW_ARRAY(float, like->c);
  d->std = GT_NEW_ARRAY(float, like->c);
  return d;
}

void gt_dataset_close(gt_dataset *d) {
  if (!d) return;
  gt_data_h5_quiet();
  for (int s = 0; s < 2; s++) {
    gt_free(d->labels[s]);
    gt_data_h5_close(d->y[s]);
    gt_data_h5_close(d->x[s]);
  }
  gt_data_h5_close(d->file);
  gt_free(d->std);
  gt_free(d->mean);
  gt_free(d->path);
  gt_tokens_close(d->tokens);
  gt_free(d->class_names.text);
  gt_free(d);
}

const gt_dataset_info *gt_dataset_describe(const gt_dataset *d) {
  return &d->info;
}

const gt_class_names *gt_dataset_class_names(const gt_dataset *d) {
  return &d->class_names;
}

const gt_tokens *gt_dataset_tokens(const gt_dataset *d) {
  return d->tokens;
}

const int32_t *gt_dataset_labels(gt_dataset *d, gt_split split) {
  return d->labels[split];
}

const float *gt_dataset_mean(const gt_dataset *d) {
  return d->mean;
}

const float *gt_dataset_std(const gt_dataset *d) {
  return d->std;
}

size_t gt_dataset_count(const gt_dataset *d, gt_split split) {
  return split == GT_SPLIT_TRAIN ? d->info.ntrain : d->info.ntest;
}

size_t gt_dataset_row_bytes(const gt_dataset *d) {
  return d->info.h * d->info.w * d->info.c * (d->info.input == GT_INPUT_BYTES ? 1 : sizeof(float));
}

gt_status gt_dataset_read(gt_dataset *d, gt_split split, size_t first, size_t count, void *out) {
  const char *name = split == GT_SPLIT_TRAIN ? "/train/x" : "/test/x";
  /* indexed by gt_input */
  const hid_t types[] = {H5T_NATIVE_UINT8, H5T_NATIVE_FLOAT, H5T_NATIVE_INT32};
  gt_data_h5_quiet();
  return gt_data_h5_read_rows(d->x[split], d->path, name, types[d->info.input], first, count, out);
}
