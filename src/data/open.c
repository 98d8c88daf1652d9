/* Opens a data set: checks its parts and computes its hashes. */
#include "dataset.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Hashes a text, so that the hash does not depend on padding or byte order; %a prints a float
   exactly. */
void gt_dataset_hash_schema(gt_dataset *d) {
  gt_dataset_info *info = &d->info;
  size_t size = 288 + info->c * 64, at = 0;
  char *text = gt_alloc(size, 1);
  at += (size_t)snprintf(text, size, "schema %d shape %zu %zu %zu classes %zu type %s",
                         GT_DATASET_SCHEMA, info->h, info->w, info->c, info->classes,
                         gt_data_input_names[info->input]);
  if (info->input == GT_INPUT_IDS)
    at += (size_t)snprintf(text + at, size - at, " features %zu", info->features);
  if (info->vocabulary_sha256[0])
    at += (size_t)snprintf(text + at, size - at, " vocabulary %s", info->vocabulary_sha256);
  for (size_t i = 0; i < info->c && info->input == GT_INPUT_BYTES; i++)
    at += (size_t)snprintf(text + at, size - at, " %a/%a", (double)d->mean[i], (double)d->std[i]);
  gt_sha256_hex(text, at, info->schema_sha256);
  gt_free(text);
}

/* Hashes all labels and three samples of a split as stored: cheap, and equal in practice only for
   copies of one file. */
static gt_status hash_samples(gt_dataset *d, gt_split split, char sha256[65]) {
  const size_t n = gt_dataset_count(d, split), row = gt_dataset_row_bytes(d),
               labels = n * sizeof(int32_t), at[3] = {0, n / 2, n - 1};
  if (n == 0) return GT_OK;
  char *bytes = gt_alloc(labels + 3 * row, 1);
  gt_status status = GT_OK;
  memcpy(bytes, d->labels[split], labels);
  for (size_t i = 0; i < 3 && status == GT_OK; i++)
    status = gt_dataset_read(d, split, at[i], 1, bytes + labels + i * row);
  gt_sha256_hex(bytes, labels + 3 * row, sha256);
  gt_free(bytes);
  return status;
}

static gt_status open_checked(gt_dataset *d) {
  struct stat st;
  GT_TRY(gt_data_h5_open(&d->file, d->path));
  d->file_bytes = stat(d->path, &st) == 0 ? (uint64_t)st.st_size : 0;
  GT_TRY(gt_dataset_check_root(d));
  GT_TRY(gt_dataset_check_split(d, GT_SPLIT_TRAIN));
  GT_TRY(gt_dataset_check_split(d, GT_SPLIT_TEST));
  GT_TRY(gt_dataset_check_input(d));
  GT_TRY(gt_dataset_check_values(d, GT_SPLIT_TRAIN));
  GT_TRY(gt_dataset_check_values(d, GT_SPLIT_TEST));
  gt_dataset_hash_schema(d);
  GT_TRY(hash_samples(d, GT_SPLIT_TRAIN, d->info.samples_sha256));
  return hash_samples(d, GT_SPLIT_TEST, d->info.tests_sha256);
}

gt_status gt_dataset_open(gt_dataset **out, const char *path) {
  gt_dataset *d = GT_NEW(gt_dataset);
  *out = NULL;
  d->file = -1;
  for (int s = 0; s < 2; s++) d->x[s] = d->y[s] = -1;
  d->path = gt_strdup(path);
  gt_status status = open_checked(d);
  if (status == GT_OK)
    *out = d;
  else
    gt_dataset_close(d);
  return status;
}
