/* Samples in memory as stored, their order, and the batches made from them: bytes become floats
   through a table of 256 entries per channel, floats and ids are copied. */
#include <string.h>

#include "dataset.h"
#include "loader.h"

/* ---- augmentation ---------------------------------------------------------------------------- */

/* Random crop of the image in a border of 4, and horizontal flip (He et al., Deep Residual Learning
   for Image Recognition, 2016, 4.2). */

gt_rng gt_augment_rng(const gt_order *order, int64_t number) {
  return gt_rng_make(order->seed, GT_RNG_AUGMENT, order->region, (uint64_t)number);
}

gt_augment_window gt_augment_draw(gt_rng *rng) {
  gt_augment_window window;
  window.top = (int)gt_rng_below(rng, 2 * GT_AUGMENT_BORDER + 1) - GT_AUGMENT_BORDER;
  window.left = (int)gt_rng_below(rng, 2 * GT_AUGMENT_BORDER + 1) - GT_AUGMENT_BORDER;
  window.flip = gt_rng_below(rng, 2) == 1;
  return window;
}

/* The part of a row of the window that lies in the image: `count` pixels from column `from`, after
   `before` pixels of border.  Counted from the first pixel of the output row; in a flipped window
   this is the last column. */
typedef struct {
  size_t before, from, count;
} span;

static span span_of(size_t w, gt_augment_window window) {
  int left = window.flip ? -window.left : window.left; /* in the mirrored image */
  size_t off = (size_t)(left < 0 ? -left : left), inside = off < w ? w - off : 0;
  span s = {.before = left < 0 ? (off < w ? off : w) : 0, .count = inside};
  size_t from = left < 0 ? 0 : off; /* column in the mirrored image */
  s.from = window.flip && inside > 0 ? w - 1 - from : from;
  return s;
}

/* Returns the row of the image for row y of the window, or -1. */
static ptrdiff_t row_of(size_t y, size_t h, gt_augment_window window) {
  ptrdiff_t row = (ptrdiff_t)y + window.top;
  return row >= 0 && (size_t)row < h ? row : -1;
}

/* Writes n black pixels; returns the position after them. */
static float *black(float *x, size_t n, const float *table, size_t c) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < c; k++) *x++ = table[k * 256];
  return x;
}

/* Writes n pixels from `at` on, forwards or backwards; returns the position after them. */
static float *look_up(float *x, const uint8_t *at, size_t n, const float *table, size_t c,
                      bool backwards) {
  const ptrdiff_t step = backwards ? -(ptrdiff_t)c : (ptrdiff_t)c;
  for (size_t i = 0; i < n; i++, at += step)
    for (size_t k = 0; k < c; k++) *x++ = table[k * 256 + at[k]];
  return x;
}

void gt_augment_bytes(float *x, const uint8_t *bytes, const float *table, size_t h, size_t w,
                      size_t c, gt_augment_window window) {
  const span s = span_of(w, window);
  for (size_t y = 0; y < h; y++) {
    ptrdiff_t row = row_of(y, h, window);
    if (row < 0) {
      x = black(x, w, table, c);
      continue;
    }
    x = black(x, s.before, table, c);
    if (s.count > 0)
      x = look_up(x, bytes + ((size_t)row * w + s.from) * c, s.count, table, c, window.flip);
    x = black(x, w - s.before - s.count, table, c);
  }
}

void gt_augment_floats(float *x, const float *image, size_t h, size_t w, size_t c,
                       gt_augment_window window) {
  const span s = span_of(w, window);
  memset(x, 0, h * w * c * sizeof *x);
  for (size_t y = 0; y < h; y++, x += w * c) {
    ptrdiff_t row = row_of(y, h, window);
    if (row < 0) continue;
    for (size_t i = 0; i < s.count; i++) {
      size_t column = window.flip ? s.from - i : s.from + i;
      memcpy(x + (s.before + i) * c, image + ((size_t)row * w + column) * c, c * sizeof *x);
    }
  }
}

/* ---- order ----------------------------------------------------------------------------------- */

/* The order of samples: a keyed Feistel permutation on the next power of two, repeated until the
   result is below n (cycle walking: Black and Rogaway, Ciphers with Arbitrary Finite Domains,
   CT-RSA 2002, method 2). */

gt_permutation gt_order_permutation(const gt_order *order, int64_t epoch) {
  gt_permutation p = {.n = order->n};
  int bits = 0;
  while (bits < 63 && ((size_t)1 << bits) < order->n) bits++;
  p.left_bits = bits / 2;
  p.right_bits = bits - p.left_bits;
  gt_rng rng = gt_rng_make(order->seed, GT_RNG_ORDER, order->region, (uint64_t)epoch);
  for (int r = 0; r < GT_ORDER_ROUNDS; r++) p.keys[r] = gt_rng_u64(&rng);
  return p;
}

/* Computes the round function.  Any function gives a permutation; this one mixes well (SplitMix64's
   finalizer). */
static uint64_t mix(uint64_t half, uint64_t key) {
  uint64_t z = (half + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ key;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Applies the rounds.  Each changes one half by a function of the other, so it is invertible: a
   permutation of 0..2^bits-1. */
static uint64_t feistel(const gt_permutation *p, uint64_t v) {
  uint64_t left_mask = (UINT64_C(1) << p->left_bits) - 1,
           right_mask = (UINT64_C(1) << p->right_bits) - 1;
  uint64_t left = v >> p->right_bits, right = v & right_mask;
  for (int r = 0; r < GT_ORDER_ROUNDS; r += 2) {
    left ^= mix(right, p->keys[r]) & left_mask;
    right ^= mix(left, p->keys[r + 1]) & right_mask;
  }
  return left << p->right_bits | right;
}

size_t gt_permutation_at(const gt_permutation *p, size_t i) {
  /* A walk along the cycle from below n returns below n, and two starts never give the same result.
     n is over half the domain: under 2 steps on average. */
  uint64_t v = feistel(p, i);
  while (v >= p->n) v = feistel(p, v);
  return (size_t)v;
}

int64_t gt_order_batches_per_epoch(const gt_order *order) {
  return (int64_t)((order->n + (order->whole ? 0 : order->batch - 1)) / order->batch);
}

size_t gt_order_batch_size(const gt_order *order, int64_t number) {
  size_t first = (size_t)(number % gt_order_batches_per_epoch(order)) * order->batch;
  return order->n - first < order->batch ? order->n - first : order->batch;
}

/* ---- batches --------------------------------------------------------------------------------- */
struct gt_loader {
  gt_input input;
  gt_augment augment;
  size_t n, h, w, c, values, row_bytes; /* values: per sample; row_bytes: stored bytes per sample */
  void *rows;                           /* (n,values) of uint8, float or int32 */
  float *table;                         /* BYTES: (c,256): (v / 255 - mean) / std */
  int32_t *labels;
};

static float scale(size_t byte, float mean, float std) {
  return ((float)byte / 255.0F - mean) / std;
}

void gt_data_scale(float *x, const uint8_t *bytes, size_t pixels, size_t c, const float *mean,
                   const float *std) {
  for (size_t i = 0; i < pixels; i++)
    for (size_t k = 0; k < c; k++) x[i * c + k] = scale(bytes[i * c + k], mean[k], std[k]);
}

static void make_table(gt_loader *l, const gt_dataset *dataset) {
  l->table = GT_NEW_ARRAY(float, l->c * 256);
  for (size_t c = 0; c < l->c; c++)
    for (size_t v = 0; v < 256; v++)
      l->table[c * 256 + v] = scale(v, dataset->mean[c], dataset->std[c]);
}

void gt_data_scale_rows(float *x, size_t n, size_t c, const float *mean, const float *std) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < c; k++, x++)
      *x = (float)(((double)*x - (double)mean[k]) / (double)std[k]);
}

static gt_status check_samples(const gt_dataset *dataset, gt_split split, const uint32_t *samples,
                               size_t n) {
  size_t total = gt_dataset_count(dataset, split);
  for (size_t i = 0; i < n; i++)
    if (samples[i] >= total || (i > 0 && samples[i] <= samples[i - 1]))
      return GT_FAIL(GT_ERR_FAULT,
                     "sample %zu of a part is number %u; expected rising numbers below %zu", i,
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
  if (status == GT_OK && l->input == GT_INPUT_FLOATS && info->scaled)
    gt_data_scale_rows(l->rows, l->n, l->c, dataset->mean, dataset->std);
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
                   "data.augment is crop-flip, but the samples are ids; expected images");
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

/* Copies a sample to position i of a batch; cropped by `window` unless NULL. */
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
