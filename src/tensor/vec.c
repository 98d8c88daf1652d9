/* Vector operations on the flat arrays: what optimizers, strategies and codecs touch numbers through. */
#include <string.h>

#include "geotrain/tensor.h"
#include "simd.h"

/* Whether there is something to do; lengths that differ are a fault of the caller that no status can mend. */
static bool both(gt_vec y, gt_vec x) {
  if (y.n != x.n) {
    gt_bug("vectors of %zu and %zu elements meet; equal lengths are needed", y.n, x.n);
  }
  return y.data && x.data;
}

gt_vec gt_vec_range(gt_vec v, size_t offset, size_t count) {
  if (offset > v.n || count > v.n - offset) {
    gt_bug("range [%zu, %zu) of a vector of %zu elements", offset, offset + count, v.n);
  }
  return (gt_vec){v.data ? v.data + offset : NULL, count, v.space};
}

GT_CLONES static void scale(float *restrict y, float a, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] *= a;
}

GT_CLONES static void axpy(float *restrict y, float a, const float *restrict x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] += a * x[i];
}

GT_CLONES static void set_scaled(float *restrict y, float a, const float *restrict x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = a * x[i];
}

GT_CLONES static void lerp(float *restrict y, float a, const float *restrict x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] += a * (x[i] - y[i]);
}

/* An exponent of all ones is an infinity or a NaN.  Blocks let a bad vector end early and a good one run wide. */
GT_CLONES static bool finite(const float *x, size_t n) {
  for (size_t start = 0; start < n; start += 4096) {
    size_t end = n - start < 4096 ? n : start + 4096;
    uint32_t bad = 0;
    for (size_t i = start; i < end; i++) {
      uint32_t bits;
      memcpy(&bits, &x[i], sizeof bits);
      bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    if (bad) return false;
  }
  return true;
}

void gt_vec_zero(gt_vec y) {
  if (y.data) memset(y.data, 0, y.n * sizeof *y.data);
}

void gt_vec_copy(gt_vec y, gt_vec x) {
  if (both(y, x)) memcpy(y.data, x.data, y.n * sizeof *y.data);
}

void gt_vec_scale(gt_vec y, float a) {
  if (y.data) scale(y.data, a, y.n);
}

void gt_vec_axpy(gt_vec y, float a, gt_vec x) {
  if (both(y, x)) axpy(y.data, a, x.data, y.n);
}

void gt_vec_set_scaled(gt_vec y, float a, gt_vec x) {
  if (both(y, x)) set_scaled(y.data, a, x.data, y.n);
}

void gt_vec_lerp(gt_vec y, float a, gt_vec x) {
  if (both(y, x)) lerp(y.data, a, x.data, y.n);
}

bool gt_vec_finite(gt_vec x) {
  return x.data ? finite(x.data, x.n) : true;
}
