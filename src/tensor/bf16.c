/* Arrays to bf16 and back. */
#include "bf16.h"

GT_CLONES void gt_to_bf16(gt_bf16 *y, const float *x, size_t n) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) gt_store16(y, i, GT_BF16, gt_load16(x, i, GT_F32));
  for (; i < n; i++) gt_store1(y, i, GT_BF16, x[i]);
}

GT_CLONES void gt_from_bf16(float *y, const gt_bf16 *x, size_t n) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) gt_store16(y, i, GT_F32, gt_load16(x, i, GT_BF16));
  for (; i < n; i++) y[i] = gt_load1(x, i, GT_BF16);
}
