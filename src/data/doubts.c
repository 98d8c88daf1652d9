/* Warnings about a valid file: axes in another order, pixels or means in other units. */
#include <math.h>
#include <stdio.h>

#include "dataset.h"

/* Images whose range of values is below these are considered constant: bytes, and floats. */
static const double CONSTANT_BYTES = 2, CONSTANT_FLOATS = 1e-3;

/* Warns of PyTorch's order, 3 x 32 x 32: few rows of many channels. */
static void doubt_axes(const gt_dataset *d, void (*tell)(const char *text)) {
  const size_t h = d->info.h, w = d->info.w, c = d->info.c;
  char text[512];
  const bool usual = h == 1 || h == 3 || h == 4; /* usual numbers of channels */
  if (!usual || w <= 4 || c <= 4 || (h == 1 && w != c)) return;
  snprintf(text, sizeof text,
           "%s: images are %zu x %zu x %zu (rows, columns, channels), which looks like channels "
           "first; expected channels last: x.transpose(0, 2, 3, 1) in numpy",
           d->path, h, w, c);
  tell(text);
}

/* Finds the smallest and the largest of n values as stored. */
static void find_range(const void *values, gt_input input, size_t n, double *least, double *most) {
  *least = INFINITY;
  *most = -INFINITY;
  for (size_t i = 0; i < n; i++) {
    const double v = input == GT_INPUT_BYTES ? (double)((const uint8_t *)values)[i]
                                             : (double)((const float *)values)[i];
    *least = v < *least ? v : *least;
    *most = v > *most ? v : *most;
  }
}

static gt_status doubt_values(gt_dataset *d, void (*tell)(const char *text)) {
  const bool bytes = d->info.input == GT_INPUT_BYTES;
  const size_t row = gt_dataset_row_bytes(d),
               n = gt_data_h5_block_rows(d->x[GT_SPLIT_TRAIN], d->info.ntrain, row);
  char text[512];
  double least, most;
  void *rows = gt_alloc(n, row);
  const gt_status status = gt_dataset_read(d, GT_SPLIT_TRAIN, 0, n, rows);
  if (status == GT_OK) {
    find_range(rows, d->info.input, n * d->info.h * d->info.w * d->info.c, &least, &most);
    if (most - least <= (bytes ? CONSTANT_BYTES : CONSTANT_FLOATS)) {
      snprintf(text, sizeof text,
               "%s: the first %zu training images are almost constant, with values from %g to "
               "%g%s",
               d->path, n, least, most,
               bytes ? " of 0 to 255; floats from 0 to 1 lose their content as uint8: multiply by "
                       "255 before, or store float32"
                     : "");
      tell(text);
    }
  }
  gt_free(rows);
  return status;
}

static void doubt_units(const gt_dataset *d, void (*tell)(const char *text)) {
  char text[512];
  for (size_t c = 0; c < d->info.c; c++) {
    const double mean = (double)d->mean[c], std = (double)d->std[c];
    if (mean >= 0 && mean <= 1 && std <= 1) continue;
    snprintf(text, sizeof text,
             "%s: mean[%zu] is %g and std[%zu] %g, where images are 0 to 1 (x / 255): both are in "
             "units of 255",
             d->path, c, mean, c, std);
    tell(text);
    return;
  }
}

gt_status gt_dataset_doubts(gt_dataset *d, void (*tell)(const char *text)) {
  if (d->info.input == GT_INPUT_IDS) return GT_OK;
  gt_data_h5_quiet();
  doubt_axes(d, tell);
  if (d->info.input == GT_INPUT_BYTES) doubt_units(d, tell);
  return doubt_values(d, tell);
}
