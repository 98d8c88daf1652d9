/* Vectors of float32 or bf16 values: a bf16 is the upper half of a float32.  For the files of
   isa/. */
#pragma once

#include "bf16.h"
#include "geotrain/tensor/vector.h"

/* Returns v where the mask is set, else 0. */
GT_INLINE gt_vf gt_keep(gt_vi mask, gt_vf v) {
  return (gt_vf)((gt_vi)v & mask);
}

GT_INLINE gt_vf gt_widen(gt_vh h) {
  return (gt_vf)(__builtin_convertvector(h, gt_vu) << 16);
}

/* Rounds to nearest, ties to even.  A NaN keeps its upper half and gets the quiet bit: if its
   payload is only in the lower half, it would become an infinity. */
GT_INLINE gt_vh gt_narrow(gt_vf v) {
  const gt_vu bits = (gt_vu)v, nan = (gt_vu)((gt_vi)(bits & 0x7fffffffU) > 0x7f800000);
  const gt_vu rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16, quiet = (bits >> 16) | 0x40U;
  return __builtin_convertvector((rounded & ~nan) | (quiet & nan), gt_vh);
}

/* Loads GT_LANES values of `type`, starting at element i. */
GT_INLINE gt_vf gt_load(const void *x, size_t i, gt_precision type) {
  return type == GT_BF16 ? gt_widen(*(const gt_vh *)((const gt_bf16 *)x + i))
                         : *(const gt_vf *)((const float *)x + i);
}

GT_INLINE void gt_store(void *y, size_t i, gt_precision type, gt_vf v) {
  if (type == GT_BF16)
    *(gt_vh *)((gt_bf16 *)y + i) = gt_narrow(v);
  else
    *(gt_vf *)((float *)y + i) = v;
}
