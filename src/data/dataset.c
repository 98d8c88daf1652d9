/* An open data set: its samples as stored, its description, and the normalisation of its images. */
#include <math.h>
#include <stdio.h>
#include <string.h>

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

void gt_dataset_take_names(gt_dataset *d) {
  gt_class_names_hash(&d->class_names, d->info.class_names_sha256);
  d->info.class_names_bytes = d->class_names.bytes;
  d->info.class_names = d->class_names.text;
}

gt_status gt_dataset_number_classes(gt_dataset *d, const gt_class_names *all, const char *whose) {
  int32_t *map = GT_NEW_ARRAY(int32_t, d->info.classes);
  const char *missing = gt_class_names_map(&d->class_names, all, map);
  for (int s = 0; s < 2 && !missing; s++)
    for (size_t i = 0; i < gt_dataset_count(d, (gt_split)s); i++)
      d->labels[s][i] = map[d->labels[s][i]];
  gt_free(map);
  if (missing)
    return GT_FAIL(GT_ERR_DATA,
                   "%s has the class `%s`, which %s lacks; `geotrain data classes` "
                   "renames or merges classes",
                   d->path, missing, whose);
  gt_free(d->class_names.text);
  d->class_names = (gt_class_names){0};
  gt_class_names_join(&d->class_names, all);
  d->info.classes = all->n;
  gt_dataset_take_names(d);
  gt_dataset_hash_schema(d);
  return GT_OK;
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

bool gt_dataset_has_norm(const gt_dataset *d) {
  return d->info.scaled && H5Aexists(d->file, "mean") > 0;
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

/* Hashes a text form of the schema, independent of padding and byte order; %a prints a float
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
  for (size_t i = 0; i < info->c && info->scaled; i++)
    at += (size_t)snprintf(text + at, size - at, " %a/%a", (double)d->mean[i], (double)d->std[i]);
  gt_sha256_hex(text, at, info->schema_sha256);
  gt_free(text);
}

/* ---- means and standard deviations of images ------------------------------------------------- */

/* Adds with the rounding error of earlier additions (Kahan 1965). */
static void add(double *sum, double *lost, double value) {
  const double more = value - *lost, all = *sum + more;
  *lost = (all - *sum) - more;
  *sum = all;
}

void gt_data_sums_add(gt_data_sums *to, gt_input input, size_t channels, const void *rows,
                      size_t pixels) {
  const uint8_t *bytes = rows;
  const float *values = rows;
  to->sums[0] += (double)pixels;
  for (size_t c = 0; c < channels; c++) {
    double *sum = to->sums + 1 + c, *squares = sum + channels;
    uint64_t of = 0, of_squares = 0;
    for (size_t i = c; i < pixels * channels; i += channels)
      if (input == GT_INPUT_BYTES) {
        of += bytes[i];
        of_squares += (uint64_t)bytes[i] * bytes[i];
      } else {
        add(sum, &to->lost[2 * c], (double)values[i]);
        add(squares, &to->lost[2 * c + 1], (double)values[i] * (double)values[i]);
      }
    *sum += (double)of;
    *squares += (double)of_squares;
  }
}

gt_data_sums gt_data_sums_open(size_t channels) {
  return (gt_data_sums){GT_NEW_ARRAY(double, GT_DATA_SUMS(channels)),
                        GT_NEW_ARRAY(double, 2 * channels)};
}

void gt_data_sums_close(gt_data_sums *s) {
  gt_free(s->sums);
  gt_free(s->lost);
}

gt_status gt_dataset_sums(gt_dataset *d, const uint32_t *samples, size_t n, double *sums) {
  const size_t total = d->info.ntrain, row = gt_dataset_row_bytes(d),
               block = gt_data_h5_block_rows(d->x[GT_SPLIT_TRAIN], total, row);
  uint8_t *rows = gt_alloc(block, row);
  gt_data_sums all = gt_data_sums_open(d->info.c);
  gt_status status = GT_OK;
  for (size_t i = 0; i < n && status == GT_OK;) {
    const size_t first = samples[i] / block * block,
                 count = total - first < block ? total - first : block;
    status = gt_dataset_read(d, GT_SPLIT_TRAIN, first, count, rows);
    for (; i < n && samples[i] < first + count && status == GT_OK; i++)
      gt_data_sums_add(&all, d->info.input, d->info.c, rows + (samples[i] - first) * row,
                       d->info.h * d->info.w);
  }
  memcpy(sums, all.sums, GT_DATA_SUMS(d->info.c) * sizeof *sums);
  gt_data_sums_close(&all);
  gt_free(rows);
  return status;
}

void gt_data_moments(gt_input input, const double *sums, size_t channels, float *mean, float *std) {
  const double n = sums[0] > 0 ? sums[0] : 1, unit = input == GT_INPUT_BYTES ? 255 : 1;
  for (size_t c = 0; c < channels; c++) {
    const double m = sums[1 + c] / n, squares = sums[1 + channels + c] / n,
                 variance = squares - m * m,
                 least = input == GT_INPUT_BYTES ? 1e-9 : 1e-14 * squares; /* rounding */
    mean[c] = (float)(m / unit);
    std[c] = variance > least ? (float)(sqrt(variance) / unit) : 1.0F; /* constant: not scaled */
    if (input == GT_INPUT_FLOATS && m == squares) mean[c] = 0.0F, std[c] = 1.0F; /* 0 and 1 only */
    if (std[c] <= 0) std[c] = 1.0F;
  }
}

void gt_dataset_normalise(gt_dataset *d, const float *mean, const float *std) {
  memcpy(d->mean, mean, d->info.c * sizeof *mean);
  memcpy(d->std, std, d->info.c * sizeof *std);
  gt_dataset_hash_schema(d);
}
