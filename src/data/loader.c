/* Samples in memory as stored, and the batches made from them: bytes become floats through a table
   of 256 entries per channel, floats and ids are copied. */
#include <string.h>

#include "augment.h"
#include "dataset.h"
#include "order.h"

struct gt_loader {
  gt_input input;
  gt_augment augment;
  size_t n, h, w, c, values, row_bytes; /* values: per sample; row_bytes: stored bytes per sample */
  void *rows;                           /* (n,values) of uint8, float or int32 */
  float *table;                         /* BYTES: (c,256): (v / 255 - mean) / std */
  int32_t *labels;
};

static void make_table(gt_loader *l, const gt_dataset *dataset) {
  l->table = GT_NEW_ARRAY(float, l->c * 256);
  for (size_t c = 0; c < l->c; c++)
    for (int v = 0; v < 256; v++)
      l->table[c * 256 + (size_t)v] = ((float)v / 255.0F - dataset->mean[c]) / dataset->std[c];
}

static gt_status check_samples(const gt_dataset *dataset, gt_split split, const uint32_t *samples,
                               size_t n) {
  size_t total = gt_dataset_count(dataset, split);
  for (size_t i = 0; i < n; i++)
    if (samples[i] >= total || (i > 0 && samples[i] <= samples[i - 1]))
      return GT_FAIL(GT_ERR_FAULT,
                     "sample %zu of a part is number %u; rising numbers below %zu are needed", i,
                     samples[i], total);
  return GT_OK;
}

/* Reads the file in blocks, front to back, and keeps the given samples; blocks without any are
   skipped. */
static gt_status read_named(char *to, gt_dataset *dataset, gt_split split, const uint32_t *samples,
                            size_t n) {
  size_t total = gt_dataset_count(dataset, split), row = gt_dataset_row_bytes(dataset);
  size_t block = gt_data_h5_block_rows(dataset->x[split], total, row);
  char *rows = gt_alloc(block, row);
  gt_status status = GT_OK;
  for (size_t i = 0; i < n && status == GT_OK;) {
    size_t first = samples[i] / block * block,
           count = total - first < block ? total - first : block;
    status = gt_dataset_read(dataset, split, first, count, rows);
    for (; i < n && samples[i] < first + count; i++)
      memcpy(to + i * row, rows + (samples[i] - first) * row, row);
  }
  gt_free(rows);
  return status;
}

static gt_status read_all(char *to, gt_dataset *dataset, gt_split split) {
  size_t total = gt_dataset_count(dataset, split), row = gt_dataset_row_bytes(dataset);
  size_t block = gt_data_h5_block_rows(dataset->x[split], total, row);
  for (size_t first = 0; first < total; first += block)
    GT_TRY(gt_dataset_read(dataset, split, first, total - first < block ? total - first : block,
                           to + first * row));
  return GT_OK;
}

gt_status gt_loader_create(gt_loader **out, gt_dataset *dataset, gt_split split,
                           const uint32_t *samples, size_t n) {
  const gt_dataset_info *info = &dataset->info;
  const int32_t *labels = dataset->labels[split];
  *out = NULL;
  if (samples) GT_TRY(check_samples(dataset, split, samples, n));
  gt_loader *l = GT_NEW(gt_loader);
  *l = (gt_loader){.input = info->input,
                   .h = info->h,
                   .w = info->w,
                   .c = info->c,
                   .row_bytes = gt_dataset_row_bytes(dataset)};
  l->n = samples ? n : gt_dataset_count(dataset, split);
  l->values = info->h * info->w * info->c;
  l->rows = gt_alloc(l->n, l->row_bytes);
  if (l->input == GT_INPUT_BYTES) make_table(l, dataset);
  l->labels = GT_NEW_ARRAY(int32_t, l->n);
  for (size_t i = 0; i < l->n; i++) l->labels[i] = labels[samples ? samples[i] : i];
  gt_status status =
      samples ? read_named(l->rows, dataset, split, samples, n) : read_all(l->rows, dataset, split);
  if (status == GT_OK)
    *out = l;
  else
    gt_loader_close(l);
  return status;
}

void gt_loader_close(gt_loader *l) {
  if (!l) return;
  gt_free(l->labels);
  gt_free(l->table);
  gt_free(l->rows);
  gt_free(l);
}

size_t gt_loader_samples(const gt_loader *l) {
  return l->n;
}

gt_status gt_loader_augment(gt_loader *l, gt_augment augment) {
  if (augment != GT_AUGMENT_NONE && l->input == GT_INPUT_IDS)
    return GT_FAIL(GT_ERR_JOB,
                   "data.augment is crop-flip, but the samples are ids; images are needed");
  l->augment = augment;
  return GT_OK;
}

static void fill_bytes(const gt_loader *l, const uint8_t *bytes, float *x) {
  if (l->c == 1) {
    for (size_t i = 0; i < l->values; i++) x[i] = l->table[bytes[i]];
    return;
  }
  for (size_t i = 0; i < l->values; i += l->c)
    for (size_t c = 0; c < l->c; c++) x[i + c] = l->table[c * 256 + bytes[i + c]];
}

/* Copies a sample to place i of a batch; cut by `window` unless NULL. */
static void fill_one(const gt_loader *l, size_t sample, void *x, size_t i,
                     const gt_augment_window *window) {
  const char *row = (const char *)l->rows + sample * l->row_bytes;
  float *to = (float *)x + i * l->values;
  if (l->input == GT_INPUT_BYTES && window)
    gt_augment_bytes(to, (const uint8_t *)row, l->table, l->h, l->w, l->c, *window);
  else if (l->input == GT_INPUT_BYTES)
    fill_bytes(l, (const uint8_t *)row, to);
  else if (window)
    gt_augment_floats(to, (const float *)(const void *)row, l->h, l->w, l->c, *window);
  else /* floats or ids */
    memcpy((char *)x + i * l->row_bytes, row, l->row_bytes);
}

size_t gt_loader_batch(gt_loader *l, const gt_order *order, int64_t number, void *x, int32_t *y) {
  int64_t per_epoch = gt_order_batches_per_epoch(order);
  size_t first = (size_t)(number % per_epoch) * order->batch,
         size = gt_order_batch_size(order, number);
  gt_permutation permutation = gt_order_permutation(order, number / per_epoch);
  gt_rng rng = gt_augment_rng(order, number);
  for (size_t i = 0; i < size; i++) {
    size_t sample = gt_permutation_at(&permutation, first + i);
    if (l->augment == GT_AUGMENT_CROP_FLIP) {
      gt_augment_window window = gt_augment_draw(&rng);
      fill_one(l, sample, x, i, &window);
    } else
      fill_one(l, sample, x, i, NULL);
    y[i] = l->labels[sample];
  }
  return size;
}

void gt_loader_range(gt_loader *l, size_t first, size_t count, void *x, int32_t *y) {
  for (size_t i = 0; i < count; i++) fill_one(l, first + i, x, i, NULL);
  memcpy(y, l->labels + first, count * sizeof *y);
}
