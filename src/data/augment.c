/* Random crop of the image in a border of 4, and horizontal flip (He et al., Deep Residual Learning
   for Image Recognition, 2016, 4.2). */
#include "augment.h"

#include <string.h>

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

/* The row of the image for row y of the window, or -1. */
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
