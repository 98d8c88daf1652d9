/* dataset: the internal interface of an open data set. */
#pragma once

#include "class_names.h"
#include "tokens.h"

/* Largest number of features, because ids and their number are int32. */
#define GT_DATA_MAX_FEATURES 2147483646

struct gt_dataset {
  hid_t file, x[2], y[2]; /* x, y indexed by gt_split */
  char *path;
  uint64_t file_bytes;
  gt_dataset_info info;
  gt_tokens *tokens; /* NULL: no text */
  gt_class_names class_names;
  float *mean, *std;
  int32_t *labels[2];
};

/* The sums of gt_dataset_sums, and their rounding errors so far. */
typedef struct {
  double *sums, *lost;
} gt_data_sums;
gt_data_sums gt_data_sums_open(size_t channels);
void gt_data_sums_close(gt_data_sums *sums);
/* Adds the values of rows (pixels,channels). */
void gt_data_sums_add(gt_data_sums *sums, gt_input input, size_t channels, const void *rows,
                      size_t pixels);

size_t gt_dataset_count(const gt_dataset *dataset, gt_split split);
/* indexed by gt_input: "uint8", "float32", "int32" */
extern const char *const gt_data_input_names[3];
/* True if the file has mean and std. */
bool gt_dataset_has_norm(const gt_dataset *dataset);
/* Size in bytes of one sample as stored. */
size_t gt_dataset_row_bytes(const gt_dataset *dataset);
/* Sets what info has about the class names. */
void gt_dataset_take_names(gt_dataset *dataset);
/* Sets info.schema_sha256. */
void gt_dataset_hash_schema(gt_dataset *dataset);
/* Reads samples [first, first+count) of a split, as stored (uint8, float32 or int32), into
   `out`. */
gt_status gt_dataset_read(gt_dataset *dataset, gt_split split, size_t first, size_t count,
                          void *out);
