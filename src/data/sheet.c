/* Writes a sheet of pictures: a row for each class, with its first training samples. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <png.h>

#include "dataset.h"

enum { ROWS = 20, COLUMNS = 12, GAP = 2, GRAY = 128 };
#define PIXELS ((size_t)1 << 26) /* of all pictures */

typedef struct {
  gt_dataset *set;
  size_t h, w, c, rows, columns, width; /* width: of the sheet */
  uint8_t *pixels;
  float least, most; /* of float images, which are shown black and white */
} sheet;

/* Calls `take` for the first samples of each class, with their values as stored. */
static gt_status each_sample(sheet *s, void (*take)(sheet *s, size_t row, size_t column,
                                                    const void *values)) {
  const int32_t *labels = s->set->labels[GT_SPLIT_TRAIN];
  size_t *found = GT_NEW_ARRAY(size_t, s->rows), full = 0;
  void *values = gt_alloc(1, gt_dataset_row_bytes(s->set));
  gt_status status = GT_OK;
  for (size_t i = 0; i < s->set->info.ntrain && full < s->rows && status == GT_OK; i++) {
    const size_t row = (size_t)labels[i];
    if (row >= s->rows || found[row] == s->columns) continue;
    status = gt_dataset_read(s->set, GT_SPLIT_TRAIN, i, 1, values);
    if (status == GT_OK) take(s, row, found[row]++, values);
    full += found[row] == s->columns;
  }
  gt_free(values);
  gt_free(found);
  return status;
}

static void take_range(sheet *s, size_t row, size_t column, const void *values) {
  const float *x = values;
  (void)row, (void)column;
  for (size_t i = 0; i < s->h * s->w * s->c; i++) {
    s->least = fminf(s->least, x[i]);
    s->most = fmaxf(s->most, x[i]);
  }
}

static void paint(sheet *s, size_t row, size_t column, const void *values) {
  const uint8_t *bytes = values;
  const float *floats = values, range = s->most > s->least ? s->most - s->least : 1;
  uint8_t *to =
      s->pixels + ((row * (s->h + GAP) + GAP) * s->width + column * (s->w + GAP) + GAP) * s->c;
  const size_t line = s->w * s->c;
  for (size_t y = 0; y < s->h; y++, to += s->width * s->c)
    for (size_t i = 0; i < line; i++)
      to[i] = s->set->info.input == GT_INPUT_BYTES
                  ? bytes[y * line + i]
                  : (uint8_t)(255 * (floats[y * line + i] - s->least) / range);
}

static gt_status write_png(const sheet *s, size_t height, const char *path) {
  png_image image = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)s->width,
                     .height = (png_uint_32)height,
                     .format = s->c == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
  png_alloc_size_t size = 0;
  void *file = NULL;
  bool ok = png_image_write_to_memory(&image, NULL, &size, 0, s->pixels, 0, NULL);
  if (ok) file = gt_alloc(size, 1);
  ok = ok && png_image_write_to_memory(&image, file, &size, 0, s->pixels, 0, NULL);
  gt_status status = GT_OK;
  if (!ok)
    status = GT_FAIL(GT_ERR_DATA, "%s: cannot be written (%s)", path, image.message);
  else if (!gt_file_replace(path, file, size))
    status = GT_FAIL(GT_ERR_DATA, "%s: cannot be written (%s)", path, strerror(errno));
  gt_free(file);
  return status;
}

gt_status gt_dataset_sheet(gt_dataset *d, const char *path, size_t *rows, size_t *columns) {
  sheet s = {.set = d,
             .h = d->info.h,
             .w = d->info.w,
             .c = d->info.c,
             .rows = d->info.classes < ROWS ? d->info.classes : ROWS,
             .columns = COLUMNS,
             .least = INFINITY,
             .most = -INFINITY};
  if (d->info.input == GT_INPUT_IDS || (s.c != 1 && s.c != 3) || s.h * s.w <= 1 ||
      s.h * s.w > PIXELS)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: samples are %zu x %zu x %zu %s; expected images with 1 or 3 channels for a "
                   "sheet of pictures",
                   d->path, s.h, s.w, s.c, gt_data_input_names[d->info.input]);
  while (s.columns > 1 && s.rows * s.columns * s.h * s.w > PIXELS) s.columns--;
  while (s.rows * s.columns * s.h * s.w > PIXELS) s.rows--;
  s.width = s.columns * (s.w + GAP) + GAP;
  const size_t height = s.rows * (s.h + GAP) + GAP;
  s.pixels = memset(gt_alloc(s.width * height, s.c), GRAY, s.width * height * s.c);
  gt_data_h5_quiet();
  gt_status status = GT_OK;
  if (d->info.input == GT_INPUT_FLOATS) status = each_sample(&s, take_range);
  if (status == GT_OK) status = each_sample(&s, paint);
  if (status == GT_OK) status = write_png(&s, height, path);
  gt_free(s.pixels);
  *rows = s.rows;
  *columns = s.columns;
  return status;
}
