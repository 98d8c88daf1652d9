/* pairs: a map from pairs of tokens to numbers.  Local; never fails. */
#ifndef GEOTRAIN_DATA_PAIRS_H
#define GEOTRAIN_DATA_PAIRS_H

#include "geotrain/base.h"

/* Open addressing; initialised to zero. */
typedef struct {
  uint64_t *keys; /* 0: empty; else a pair, plus 1 */
  uint32_t *values;
  size_t n, nslots; /* nslots: 0 or a power of two, more than twice n */
} gt_pairs;

/* A pair as one number: first that of smaller left tokens, then of smaller right ones. */
static inline uint64_t gt_pair_of(int32_t left, int32_t right) {
  return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* The value of a pair; NULL: it is not there. */
const uint32_t *gt_pairs_find(const gt_pairs *pairs, uint64_t pair);
/* Adds a pair that is not there. */
void gt_pairs_add(gt_pairs *pairs, uint64_t pair, uint32_t value);
void gt_pairs_close(gt_pairs *pairs);

#endif
