/* Single values of float32 or bf16: a bf16 is the upper half of a float32. */
#pragma once

#include "geotrain/tensor.h"

static inline float gt_load1(const void *x, size_t i, gt_precision type) {
  if (type == GT_F32) return ((const float *)x)[i];
  union {
    uint32_t bits;
    float value;
  } u = {(uint32_t)((const gt_bf16 *)x)[i] << 16};
  return u.value;
}

static inline void gt_store1(void *y, size_t i, gt_precision type, float value) {
  if (type == GT_F32) {
    ((float *)y)[i] = value;
    return;
  }
  union {
    float value;
    uint32_t bits;
  } u = {value};
  const bool nan = (u.bits & 0x7fffffffU) > 0x7f800000U;
  ((gt_bf16 *)y)[i] =
      (gt_bf16)(nan ? (u.bits >> 16) | 0x40U : (u.bits + 0x7fffU + ((u.bits >> 16) & 1U)) >> 16);
}
