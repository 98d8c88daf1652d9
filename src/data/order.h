/* order: which sample is at which place of an epoch, without a stored permutation.  Local. */
#ifndef GEOTRAIN_DATA_ORDER_H
#define GEOTRAIN_DATA_ORDER_H

#include "geotrain/data.h"

#define GT_ORDER_ROUNDS 8

/* A keyed permutation of 0..n-1. */
typedef struct {
  size_t n;
  int left_bits, right_bits;
  uint64_t keys[GT_ORDER_ROUNDS];
} gt_permutation;

/* The permutation of one epoch; n > 0. */
gt_permutation gt_order_permutation(const gt_order *order, int64_t epoch);
/* The sample at place i < n; a few dozen operations for any n. */
size_t gt_permutation_at(const gt_permutation *p, size_t i);

#endif
