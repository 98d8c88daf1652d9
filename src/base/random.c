/* Random numbers: SplitMix64 (Steele, Lea and Flood 2014) as a keyed counter; gamma after Marsaglia
   and Tsang (2000). */
#include "geotrain/base.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)
#define TWO_PI 6.283185307179586476925286766559

static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Absorbs the words one after the other, so that (a, b) and (b, a) are different keys. */
gt_rng gt_rng_make(uint64_t seed, gt_rng_purpose purpose, uint64_t a, uint64_t b) {
  uint64_t key = mix(seed + GOLDEN);
  key = mix((key ^ (uint64_t)purpose) + GOLDEN);
  key = mix((key ^ a) + GOLDEN);
  key = mix((key ^ b) + GOLDEN);
  return (gt_rng){.key = key, .counter = 0};
}

uint64_t gt_rng_u64(gt_rng *rng) {
  return mix(rng->key + ++rng->counter * GOLDEN);
}

double gt_rng_uniform(gt_rng *rng) {
  return (double)(gt_rng_u64(rng) >> 11) * 0x1p-53;
}

double gt_rng_normal(gt_rng *rng) {
  double u = 1.0 - gt_rng_uniform(rng); /* in (0, 1], so that the logarithm is finite */
  double angle = TWO_PI * gt_rng_uniform(rng);
  return sqrt(-2.0 * log(u)) * cos(angle);
}

uint64_t gt_rng_below(gt_rng *rng, uint64_t n) {
  /* 2^64 mod n: the number of the remaining values is a multiple of n */
  uint64_t reject = (UINT64_C(0) - n) % n;
  for (;;) {
    uint64_t x = gt_rng_u64(rng);
    if (x >= reject) return x % n;
  }
}

double gt_rng_gamma(gt_rng *rng, double shape) {
  if (shape < 1.0) {
    double u = 1.0 - gt_rng_uniform(rng);
    return gt_rng_gamma(rng, shape + 1.0) * pow(u, 1.0 / shape);
  }
  double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
  for (;;) {
    double z = gt_rng_normal(rng), v = 1.0 + c * z;
    if (v <= 0.0) continue;
    v = v * v * v;
    double u = 1.0 - gt_rng_uniform(rng);
    if (log(u) < 0.5 * z * z + d - d * v + d * log(v)) return d * v;
  }
}

/* getrandom can only fail on kernels older than 3.17. */
void gt_random_id(char id[GT_RUN_ID]) {
  uint64_t bits[2];
  if (getrandom(bits, sizeof bits, 0) != sizeof bits) {
    bits[0] = mix((uint64_t)gt_now());
    bits[1] = mix(bits[0] ^ (uint64_t)getpid());
  }
  snprintf(id, GT_RUN_ID, "%016" PRIx64 "%016" PRIx64, bits[0], bits[1]);
}
