/* The order of samples: a keyed Feistel permutation on the next power of two, repeated until the
   result is below n (cycle walking: Black and Rogaway, Ciphers with Arbitrary Finite Domains,
   CT-RSA 2002, method 2). */
#include "order.h"

gt_permutation gt_order_permutation(const gt_order *order, int64_t epoch) {
  gt_permutation p = {.n = order->n};
  int bits = 0;
  while (bits < 63 && ((size_t)1 << bits) < order->n) bits++;
  p.left_bits = bits / 2;
  p.right_bits = bits - p.left_bits;
  gt_rng rng = gt_rng_make(order->seed, GT_RNG_ORDER, order->region, (uint64_t)epoch);
  for (int r = 0; r < GT_ORDER_ROUNDS; r++) p.keys[r] = gt_rng_u64(&rng);
  return p;
}

/* The round function.  Any function gives a permutation; this one mixes well (SplitMix64's
   finalizer). */
static uint64_t mix(uint64_t half, uint64_t key) {
  uint64_t z = (half + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ key;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Each round changes one half by a function of the other, so it is invertible: a permutation of
   0..2^bits-1. */
static uint64_t feistel(const gt_permutation *p, uint64_t v) {
  uint64_t left_mask = (UINT64_C(1) << p->left_bits) - 1,
           right_mask = (UINT64_C(1) << p->right_bits) - 1;
  uint64_t left = v >> p->right_bits, right = v & right_mask;
  for (int r = 0; r < GT_ORDER_ROUNDS; r += 2) {
    left ^= mix(right, p->keys[r]) & left_mask;
    right ^= mix(left, p->keys[r + 1]) & right_mask;
  }
  return left << p->right_bits | right;
}

size_t gt_permutation_at(const gt_permutation *p, size_t i) {
  /* A walk along the cycle from below n returns below n, and two starts never give the same result.
     n is over half the domain: under 2 steps on average. */
  uint64_t v = feistel(p, i);
  while (v >= p->n) v = feistel(p, v);
  return (size_t)v;
}

int64_t gt_order_batches_per_epoch(const gt_order *order) {
  return (int64_t)((order->n + (order->whole ? 0 : order->batch - 1)) / order->batch);
}

size_t gt_order_batch_size(const gt_order *order, int64_t number) {
  size_t first = (size_t)(number % gt_order_batches_per_epoch(order)) * order->batch;
  return order->n - first < order->batch ? order->n - first : order->batch;
}
