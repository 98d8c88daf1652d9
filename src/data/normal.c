/* Means and deviations of images: exact sums over parts, the values computed from them, and the
   normalisation of a data set. */
#include <math.h>
#include <string.h>

#include "dataset.h"

static void add_block(uint64_t *sums, size_t channels, const uint8_t *bytes, size_t pixels) {
  uint64_t *of = sums + 1, *squares = of + channels;
  sums[0] += pixels;
  for (size_t i = 0; i < pixels; i++)
    for (size_t c = 0; c < channels; c++) {
      const uint64_t v = bytes[i * channels + c];
      of[c] += v;
      squares[c] += v * v;
    }
}

gt_status gt_dataset_sums(gt_dataset *d, const uint32_t *samples, size_t n, uint64_t *sums) {
  const size_t total = d->info.ntrain, row = gt_dataset_row_bytes(d),
               block = gt_data_h5_block_rows(d->x[GT_SPLIT_TRAIN], total, row);
  uint8_t *rows = gt_alloc(block, row);
  gt_status status = GT_OK;
  memset(sums, 0, GT_DATA_SUMS(d->info.c) * sizeof *sums);
  for (size_t i = 0; i < n && status == GT_OK;) {
    const size_t first = samples[i] / block * block,
                 count = total - first < block ? total - first : block;
    status = gt_dataset_read(d, GT_SPLIT_TRAIN, first, count, rows);
    for (; i < n && samples[i] < first + count && status == GT_OK; i++)
      add_block(sums, d->info.c, rows + (samples[i] - first) * row, d->info.h * d->info.w);
  }
  gt_free(rows);
  return status;
}

/* mean and std are divided by 255. */
void gt_data_moments(const uint64_t *sums, size_t channels, float *mean, float *std) {
  const double n = (double)sums[0];
  for (size_t c = 0; c < channels; c++) {
    const double m = n > 0 ? (double)sums[1 + c] / n : 0,
                 variance = n > 0 ? (double)sums[1 + channels + c] / n - m * m : 0;
    mean[c] = (float)(m / 255);
    /* constant channel: no scaling */
    std[c] = variance > 1e-9 ? (float)(sqrt(variance) / 255) : 1.0F;
  }
}

void gt_dataset_normalise(gt_dataset *d, const float *mean, const float *std) {
  memcpy(d->mean, mean, d->info.c * sizeof *mean);
  memcpy(d->std, std, d->info.c * sizeof *std);
  gt_dataset_hash_schema(d);
}
