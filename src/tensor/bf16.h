/* bf16 in vectors of 16: the upper half of a float32. */
#ifndef GEOTRAIN_TENSOR_BF16_H
#define GEOTRAIN_TENSOR_BF16_H

#include "geotrain/tensor.h"
#include "simd.h"

typedef uint16_t gt_h16 __attribute__((vector_size(32), aligned(2), may_alias));
typedef uint32_t gt_u16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t gt_i16 __attribute__((vector_size(64), aligned(4), may_alias));

/* v where the mask is set, else 0. */
GT_INLINE gt_v16 gt_keep(gt_i16 mask, gt_v16 v) {
  return (gt_v16)((gt_i16)v & mask);
}

GT_INLINE gt_v16 gt_widen(gt_h16 h) {
  return (gt_v16)(__builtin_convertvector(h, gt_u16) << 16);
}

/* To nearest, ties to even.  A NaN whose payload lies below would become an infinity: it keeps its upper half and gets a bit there. */
GT_INLINE gt_h16 gt_narrow(gt_v16 v) {
  const gt_u16 bits = (gt_u16)v, nan = (gt_u16)((gt_i16)(bits & 0x7fffffffU) > 0x7f800000);
  const gt_u16 rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16, quiet = (bits >> 16) | 0x40U;
  return __builtin_convertvector((rounded & ~nan) | (quiet & nan), gt_h16);
}

/* 16 values of a row at element i, as `type` has them. */
GT_INLINE gt_v16 gt_load16(const void *x, size_t i, gt_precision type) {
  return type == GT_BF16 ? gt_widen(*(const gt_h16 *)((const gt_bf16 *)x + i)) : *(const gt_v16 *)((const float *)x + i);
}

GT_INLINE void gt_store16(void *y, size_t i, gt_precision type, gt_v16 v) {
  if (type == GT_BF16)
    *(gt_h16 *)((gt_bf16 *)y + i) = gt_narrow(v);
  else
    *(gt_v16 *)((float *)y + i) = v;
}

/* One value. */
GT_INLINE float gt_load1(const void *x, size_t i, gt_precision type) {
  if (type == GT_F32) return ((const float *)x)[i];
  union {
    uint32_t bits;
    float value;
  } u = {(uint32_t)((const gt_bf16 *)x)[i] << 16};
  return u.value;
}

GT_INLINE void gt_store1(void *y, size_t i, gt_precision type, float value) {
  if (type == GT_F32) {
    ((float *)y)[i] = value;
    return;
  }
  union {
    float value;
    uint32_t bits;
  } u = {value};
  const bool nan = (u.bits & 0x7fffffffU) > 0x7f800000U;
  ((gt_bf16 *)y)[i] = (gt_bf16)(nan ? (u.bits >> 16) | 0x40U : (u.bits + 0x7fffU + ((u.bits >> 16) & 1U)) >> 16);
}

#endif
