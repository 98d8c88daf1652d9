/* The taps of a window that lie in the image, for im2col and col2im. */
#pragma once

#include "geotrain/tensor.h"

/* Finds, for output row p and column q and kernel row r, the taps [*first, *last) that lie in the
   image; false: none. */
static inline bool gt_taps(const gt_conv_shape *s, size_t p, size_t q, size_t r, size_t *first,
                           size_t *last) {
  const size_t i = p * s->stride + r, j = q * s->stride, behind = s->W + s->pad;
  if (i < s->pad || i - s->pad >= s->H) return false;
  *first = j < s->pad ? s->pad - j : 0;
  *last = behind > j ? behind - j : 0;
  if (*first > s->S) *first = s->S;
  if (*last > s->S) *last = s->S;
  return *first < *last;
}
