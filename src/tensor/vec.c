/* Vector operations on the flat arrays, used by optimizers, strategies and codecs. */
#include <string.h>

#include "geotrain/tensor.h"
#include "loops.h"

/* True if both vectors have data.  Different lengths are a bug of the caller. */
static bool both(gt_vec y, gt_vec x) {
  if (y.n != x.n) {
    gt_bug("vectors of %zu and %zu elements meet; expected equal lengths", y.n, x.n);
  }
  return y.data && x.data;
}

gt_vec gt_vec_range(gt_vec v, size_t offset, size_t count) {
  if (offset > v.n || count > v.n - offset) {
    gt_bug("range [%zu, %zu) of a vector of %zu elements", offset, offset + count, v.n);
  }
  return (gt_vec){v.data ? v.data + offset : NULL, count, v.space};
}

void gt_vec_zero(gt_vec y) {
  if (y.data) memset(y.data, 0, y.n * sizeof *y.data);
}

void gt_vec_copy(gt_vec y, gt_vec x) {
  if (both(y, x)) memcpy(y.data, x.data, y.n * sizeof *y.data);
}

void gt_vec_scale(gt_vec y, float a) {
  if (y.data) gt_loops()->vec->scale(y.data, a, y.n);
}

void gt_vec_axpy(gt_vec y, float a, gt_vec x) {
  if (both(y, x)) gt_loops()->vec->axpy(y.data, a, x.data, y.n);
}

void gt_vec_set_scaled(gt_vec y, float a, gt_vec x) {
  if (both(y, x)) gt_loops()->vec->set_scaled(y.data, a, x.data, y.n);
}

void gt_vec_lerp(gt_vec y, float a, gt_vec x) {
  if (both(y, x)) gt_loops()->vec->lerp(y.data, a, x.data, y.n);
}

void gt_vec_drop(gt_vec y, gt_vec x, double p, uint64_t key) {
  const uint32_t halves[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
  if (both(y, x))
    gt_loops()->vec->drop(y.data, (float)(1 / (1 - p)), x.data, halves, (uint32_t)(p * 0x1p32),
                          y.n);
}

bool gt_vec_finite(gt_vec x) {
  return x.data ? gt_loops()->vec->finite(x.data, x.n) : true;
}

void gt_to_bf16(gt_bf16 *y, const float *x, size_t n) {
  gt_loops()->vec->to_bf16(y, x, n);
}

void gt_from_bf16(float *y, const gt_bf16 *x, size_t n) {
  gt_loops()->vec->from_bf16(y, x, n);
}
