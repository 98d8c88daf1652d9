/* bf16 against a simple rule: the nearer of the two adjacent numbers or, in a tie, the one with an
   even last bit; a NaN stays a NaN. */
#include "numbers.h"

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Returns the value as a double, from the bits, because as floats denormal numbers would be flushed
   to 0.  The successor of the largest number counts as 2^128. */
static double size_of(uint32_t bits) {
  const int exponent = (int)(bits >> 23 & 0xffU);
  const double mantissa = (double)(bits & 0x7fffffU) + (exponent ? 0x1p23 : 0.0);
  return ldexp(bits >> 31 ? -mantissa : mantissa, (exponent ? exponent : 1) - 150);
}

static void check(gt_bf16 found, float x) {
  const uint32_t low = bits_of(x) & 0xffff0000U, high = low + 0x10000U;
  if (isnan(x)) {
    assert_true(isnan(float_of((uint32_t)found << 16)));
    assert_int_equal(found >> 15, bits_of(x) >> 31);
    return;
  }
  uint32_t right = low;
  if (!isinf(x)) {
    const double below = fabs(size_of(bits_of(x)) - size_of(low)),
                 above = fabs(size_of(high) - size_of(bits_of(x)));
    if (above < below || (above == below && (low >> 16) & 1)) right = high;
  }
  if (found != right >> 16)
    fail_msg("%08x becomes %04x; %04x is right", bits_of(x), found, right >> 16);
}

static void rounds_to_nearest(void) {
  static const uint32_t special[] = {
      0x00000000U, 0x80000000U, 0x7f800000U, 0xff800000U, 0x7fc00000U, 0xffc00000U, 0x7f800001U,
      0x7f80ffffU, 0xff808000U, 0x7fffffffU, 0x00000001U, 0x80000001U, 0x00007fffU, 0x00008000U,
      0x00008001U, 0x00018000U, 0x007fffffU, 0x00800000U, 0x3f808000U, 0x3f818000U, 0x3f808001U,
      0x3f817fffU, 0x7f7fffffU, 0xff7fffffU, 0x7f7f7fffU, 0x7f7f8000U};
  enum { SPECIAL = COUNT(special), N = 1 << 18 };
  float *x = numbers(N);
  values y = values_of(GT_BF16, N);
  for (size_t i = 0; i < N; i++) {
    const uint32_t any = (uint32_t)gt_rng_below(&rng, 1ULL << 32);
    x[i] = float_of(i % 4 == 1 ? (any & 0xffff0000U) | 0x8000U : any); /* many ties */
    if (i % 61 == 0) x[i] = float_of(special[i / 61 % SPECIAL]);
  }
  gt_to_bf16(y.at, x, N);
  for (size_t i = 0; i < N; i++) check(((gt_bf16 *)y.at)[i], x[i]);
  values_release(&y);
  release(x, N);
}

/* The last elements of an array use other code, as unaligned arrays can. */
static void every_length(void) {
  for (size_t n = 1; n < 70; n++) {
    float *x = numbers(n), *back = numbers(n);
    values y = values_of(GT_BF16, n);
    x[n - 1] = float_of(0x7f800001U), x[n / 2] = float_of(0x3f818000U);
    gt_to_bf16(y.at, x, n);
    gt_from_bf16(back, y.at, n);
    for (size_t i = 0; i < n; i++) {
      const gt_bf16 half = ((gt_bf16 *)y.at)[i];
      check(half, x[i]);
      assert_int_equal(bits_of(back[i]), (uint32_t)half << 16);
    }
    values_release(&y);
    release(x, n), release(back, n);
  }
}

/* All bf16 numbers. */
static void comes_back(void) {
  enum { ALL = 1 << 16 };
  gt_bf16 *x = GT_NEW_ARRAY(gt_bf16, ALL), *again = GT_NEW_ARRAY(gt_bf16, ALL);
  float *wide = numbers(ALL);
  for (size_t i = 0; i < ALL; i++) x[i] = (gt_bf16)i;
  gt_from_bf16(wide, x, ALL);
  gt_to_bf16(again, wide, ALL);
  for (size_t i = 0; i < ALL; i++) {
    assert_int_equal(bits_of(wide[i]), (uint32_t)i << 16);
    assert_true(again[i] == x[i] || (isnan(wide[i]) && again[i] == (x[i] | 0x40)));
  }
  release(wide, ALL);
  gt_free(again);
  gt_free(x);
}

int main(void) {
  rng = gt_rng_make(23, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, rounds_to_nearest, every_length, comes_back);
}
