/* Shared by the tests of kernels: random numbers between guards, in float32 or bf16. */
#pragma once

#include "tests.h"
#include "geotrain/tensor.h"

enum { GUARD = 64 };
static gt_rng rng;

static inline size_t between(size_t low, size_t high) {
  return low + (size_t)gt_rng_below(&rng, high - low + 1);
}

/* Returns n normal random numbers with guards on both sides; `release` detects writes beyond
   them. */
static inline float *numbers(size_t n) {
  float *block = GT_NEW_ARRAY(float, n + 2 * GUARD);
  for (size_t i = 0; i < n + 2 * GUARD; i++)
    block[i] = i < GUARD || i >= n + GUARD ? 12345.0f : (float)gt_rng_normal(&rng);
  return block + GUARD;
}

static inline void release(float *data, size_t n) {
  for (size_t i = 0; i < GUARD; i++) {
    assert_true(data[i - GUARD] == 12345.0f);
    assert_true(data[n + i] == 12345.0f);
  }
  gt_free(data - GUARD);
}

/* n numbers of a type.  `at`: the address for kernels; `f`: the same values in float32, after
   `read`. */
typedef struct {
  gt_precision type;
  size_t n;
  float *f;
  void *at;
  float *block; /* of bf16 numbers */
} values;

/* bf16 numbers are stored at the end of a block of floats, directly before its guard. */
static inline values values_of(gt_precision type, size_t n) {
  values v = {.type = type, .n = n, .f = numbers(n)};
  v.at = v.f;
  if (type == GT_F32) return v;
  const size_t floats = (n + 1) / 2;
  v.block = numbers(floats);
  v.at = (gt_bf16 *)(void *)(v.block + floats) - n;
  gt_to_bf16(v.at, v.f, n);
  gt_from_bf16(v.f, v.at, n);
  return v;
}

static inline void values_read(values *v) {
  if (v->type == GT_BF16) gt_from_bf16(v->f, v->at, v->n);
}

static inline void values_write(values *v) {
  if (v->type == GT_BF16) gt_to_bf16(v->at, v->f, v->n);
}

static inline void values_release(values *v) {
  if (v->type == GT_BF16) release(v->block, (v->n + 1) / 2);
  release(v->f, v->n);
}

static inline void near(float found, float right, double tolerance, const char *what, size_t i) {
  if (!(fabs((double)found - (double)right) <= tolerance))
    fail_msg("%s[%zu] is %.9g; %.9g is right, by %.3g", what, i, (double)found, (double)right,
             tolerance);
}

/* Returns the last bit of a number of this size: bf16 has 8 significant bits, so adjacent numbers
   differ by at most size / 128. */
static inline double last_bit(gt_precision type, double size) {
  return type == GT_BF16 ? size / 128 : 0.0;
}

/* Compares sums of `terms` products of normal numbers, which grow as sqrt(terms); the order of
   additions differs.  A result in bf16 can round to the adjacent number. */
static inline void same_sums(const values *found, const float *right, size_t terms,
                             const char *what) {
  for (size_t i = 0; i < found->n; i++) {
    const double size = fabs((double)right[i]);
    near(found->f[i], right[i],
         1.6e-5 * sqrt((double)terms + 1.0) * (1.0 + size) + last_bit(found->type, size), what, i);
  }
}
