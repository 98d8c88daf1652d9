/* Element-wise vector operations.  The compiler vectorises these loops.  Contraction of a product
   and a sum to one rounding is disabled (see src/CMakeLists.txt), so that every instruction set
   gives the same bits. */
#include <string.h>

#include "bf16_vector.h"
#include "loops.h"

static void scale(float *restrict y, float a, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] *= a;
}

static void axpy(float *restrict y, float a, const float *restrict x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] += a * x[i];
}

static void set_scaled(float *restrict y, float a, const float *restrict x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = a * x[i];
}

static void lerp(float *restrict y, float a, const float *restrict x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] += a * (x[i] - y[i]);
}

/* The finalizer of MurmurHash3 (Appleby), twice, with both halves of the key. */
GT_INLINE gt_vu hashed(gt_vu i, const uint32_t key[2]) {
  gt_vu h = i ^ key[0];
  for (int k = 0; k < 2; k++) {
    h = (h ^ (h >> 16)) * 0x85ebca6bU;
    h = (h ^ (h >> 13)) * 0xc2b2ae35U;
    h = (h ^ (h >> 16)) + key[1];
  }
  return h;
}

static void drop(float *y, float a, const float *x, const uint32_t key[2], uint32_t below,
                 size_t n) {
  gt_vu i;
  for (uint32_t k = 0; k < GT_LANES; k++) i[k] = k;
  size_t at = 0;
  for (; at + GT_LANES <= n; at += GT_LANES, i += GT_LANES) {
    const gt_vi kept = (gt_vi)(hashed(i, key) >= below);
    gt_store(y, at, GT_F32, gt_keep(kept, a * gt_load(x, at, GT_F32)));
  }
  const gt_vu last = hashed(i, key);
  for (size_t k = 0; at + k < n; k++) y[at + k] = last[k] >= below ? a * x[at + k] : 0.0F;
}

static void add(float *restrict y, const float *restrict x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] += x[i];
}

static void pair(float *restrict y, float a, const float *restrict x, float b,
                 const float *restrict z, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = a * x[i] + b * z[i];
}

/* An exponent of all ones is an infinity or a NaN.  Blocks allow an early exit and still
   vectorise. */
static bool finite(const float *x, size_t n) {
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

static void to_bf16(gt_bf16 *y, const float *x, size_t n) {
  size_t i = 0;
  for (; i + GT_LANES <= n; i += GT_LANES) gt_store(y, i, GT_BF16, gt_load(x, i, GT_F32));
  for (; i < n; i++) gt_store1(y, i, GT_BF16, x[i]);
}

static void from_bf16(float *y, const gt_bf16 *x, size_t n) {
  size_t i = 0;
  for (; i + GT_LANES <= n; i += GT_LANES) gt_store(y, i, GT_F32, gt_load(x, i, GT_BF16));
  for (; i < n; i++) y[i] = gt_load1(x, i, GT_BF16);
}

/* Written so that a NaN stays a NaN.  No restrict: y and x can be the same array. */
static void relu_forward(float *y, const float *x, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

static void relu_backward(float *dx, const float *dy, const float *y, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const float d = dy[i]; /* always read, so that the compiler uses a mask and not a branch */
    dx[i] = y[i] > 0.0f ? d : 0.0f;
  }
}

static void rows_sum(float *restrict sum, const float *restrict y, size_t B, size_t O) {
  memset(sum, 0, O * sizeof *sum);
  for (size_t n = 0; n < B; n++)
    for (size_t o = 0; o < O; o++) sum[o] += y[n * O + o];
}

const gt_vec_loops GT_FOR_ISA(gt_vec_loops) = {.scale = scale,
                                               .axpy = axpy,
                                               .set_scaled = set_scaled,
                                               .lerp = lerp,
                                               .drop = drop,
                                               .add = add,
                                               .pair = pair,
                                               .finite = finite,
                                               .to_bf16 = to_bf16,
                                               .from_bf16 = from_bf16,
                                               .relu_forward = relu_forward,
                                               .relu_backward = relu_backward,
                                               .rows_sum = rows_sum};
