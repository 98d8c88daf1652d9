/* The weighted mean of many vectors, added in a fixed tree.  Every product and sum is rounded
   separately, so the bits do not depend on the division of the vectors, on the rank that adds a
   part, or on the instruction set. */
#include "geotrain/tensor.h"
#include "loops.h"

/* A block of every vector is added while it is in the cache. */
#define BLOCK  ((size_t)512)
#define LEVELS ((size_t)20)

/* Partial sums wait for their right neighbor like the digits of a binary counter; partial[0] covers
   the most vectors. */
static void block(float *y, float scale, const float *const *x, const int64_t *samples, size_t n,
                  size_t at, size_t count) {
  const gt_vec_loops *vec = gt_loops()->vec;
  float partial[LEVELS][BLOCK];
  size_t depth = 0;
  for (size_t i = 0; i < n; i += 2) {
    if (i + 1 < n)
      vec->pair(partial[depth++], (float)samples[i], x[i] + at, (float)samples[i + 1],
                x[i + 1] + at, count);
    else
      vec->set_scaled(partial[depth++], (float)samples[i], x[i] + at, count);
    for (size_t pairs = i / 2 + 1; pairs % 2 == 0; pairs /= 2, depth--)
      vec->add(partial[depth - 2], partial[depth - 1], count);
  }
  for (; depth > 1; depth--) vec->add(partial[depth - 2], partial[depth - 1], count);
  vec->set_scaled(y + at, scale, partial[0], count);
}

void gt_vec_mean(gt_vec y, const float *const *x, const int64_t *samples, size_t n) {
  int64_t all = 0;
  for (size_t i = 0; i < n; i++) {
    if (!x[i]) return;
    all += samples[i];
  }
  if (!y.data) return;
  if (all < 1 || n > (size_t)1 << LEVELS)
    gt_bug("the mean of %zu vectors over %lld samples", n, (long long)all);
  float scale = (float)(1.0 / (double)all);
  for (size_t at = 0; at < y.n; at += BLOCK)
    block(y.data, scale, x, samples, n, at, y.n - at < BLOCK ? y.n - at : BLOCK);
}
