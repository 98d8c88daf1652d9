/* The loops of codecs.  The compiler vectorises them; products and sums round separately, so that
   every instruction set gives the same bits. */
#include <string.h>

#include "geotrain/tensor/vector.h"
#include "loops.h"

GT_INLINE uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

GT_INLINE float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void gather(float *restrict r, float beta, const float *restrict x, size_t n) {
  for (size_t i = 0; i < n; i++) r[i] = beta * r[i] + x[i];
}

static uint32_t largest(const float *x, size_t n) {
  uint32_t most = 0;
  for (size_t i = 0; i < n; i++) {
    const uint32_t bits = bits_of(x[i]) & 0x7fffffffU;
    most = bits > most ? bits : most;
  }
  return most;
}

typedef uint16_t unaligned16 __attribute__((aligned(1), may_alias));

static bool halves_finite(const unsigned char *in, uint16_t exponent, size_t n) {
  const unaligned16 *h = (const unaligned16 *)(const void *)in;
  uint16_t bad = 0;
  for (size_t i = 0; i < n; i++) bad |= (uint16_t)((h[i] & exponent) == exponent);
  return !bad;
}

static void to_bf16(unsigned char *out, const float *x, size_t n) {
  unaligned16 *h = (unaligned16 *)(void *)out;
  for (size_t i = 0; i < n; i++) {
    const uint32_t bits = bits_of(x[i]);
    h[i] = (uint16_t)((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
  }
}

static void add_bf16(float *restrict y, float scale, const unsigned char *in, size_t n) {
  const unaligned16 *h = (const unaligned16 *)(const void *)in;
  for (size_t i = 0; i < n; i++) y[i] += scale * float_of((uint32_t)h[i] << 16);
}

/* Rounds to nearest, ties to even.  Below the least normal half, adding 1/2 moves the bits into
   their place, and rounds. */
static void to_fp16(unsigned char *out, const float *x, size_t n) {
  unaligned16 *h = (unaligned16 *)(void *)out;
  for (size_t i = 0; i < n; i++) {
    const uint32_t sign = bits_of(x[i]) & 0x80000000U;
    const uint32_t most = bits_of(65504.0F), all = bits_of(x[i]) ^ sign;
    const uint32_t bits = all < most ? all : most;
    const uint32_t small = bits_of(float_of(bits) + 0.5F) - bits_of(0.5F);
    const uint32_t normal = (bits + 0xc8000fffU + ((bits >> 13) & 1U)) >> 13;
    h[i] = (uint16_t)((bits < 0x38800000U ? small : normal) | sign >> 16);
  }
}

static void add_fp16(float *restrict y, float scale, const unsigned char *in, size_t n) {
  const unaligned16 *h = (const unaligned16 *)(const void *)in;
  for (size_t i = 0; i < n; i++) {
    const uint32_t shifted = ((uint32_t)h[i] & 0x7fffU) << 13;
    const uint32_t normal = shifted + 0x38000000U;
    const float small = float_of(shifted + 0x38800000U) - 0x1p-14F;
    const uint32_t bits = shifted < 0x00800000U ? bits_of(small) : normal;
    y[i] += scale * float_of(bits | ((uint32_t)h[i] & 0x8000U) << 16);
  }
}

/* Adding 1.5 2^23 rounds to nearest and leaves the integer in the low bits. */
static void to_int8(unsigned char *out, const float *x, float inverse, const uint32_t *key,
                    size_t n) {
  if (!key) {
    for (size_t i = 0; i < n; i++) out[i] = (unsigned char)bits_of(x[i] * inverse + 0x1.8p23F);
    return;
  }
  const uint32_t seed = *key;
  for (size_t i = 0; i < n; i++) {
    const float u = (float)(int32_t)(gt_codec_hash(seed, (uint32_t)i) >> 8) * 0x1p-24F;
    const int32_t down = (int32_t)((x[i] * inverse + 256.0F) + u) - 256;
    const int32_t low = down < -127 ? -127 : down;
    out[i] = (unsigned char)(low > 127 ? 127 : low);
  }
}

static void add_int8(float *restrict y, float scale, const unsigned char *in, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] += scale * (float)(int8_t)in[i];
}

/* Code j in 1..7 is 2^(j - 7), 0 is 0.  To nearest: half a unit of the mantissa rounds up to the
   next power of two; values below 2^-7 become 0.  At random: the mantissa is the probability of the
   next power; below 2^-6, the value is the probability of the least power. */
GT_INLINE uint32_t e3m0_code(float x, float inverse, const uint32_t *key, uint32_t i) {
  const uint32_t all = bits_of(x), sign = all >> 28 & 8U;
  const uint32_t magnitude = bits_of(float_of(all & 0x7fffffffU) * inverse);
  uint32_t code;
  if (!key) {
    const int32_t exponent = (int32_t)((magnitude + 0x00400000U) >> 23) - 120;
    const int32_t least = (int32_t)magnitude >= 0x3c000000;
    code = (uint32_t)(exponent > least ? exponent : least);
  } else {
    const uint32_t random = gt_codec_hash(*key, i) >> 9, exponent = (magnitude + random) >> 23;
    const uint32_t least = float_of(magnitude) * 0x1p29F > (float)(int32_t)random;
    code = magnitude >= 0x3c800000U ? exponent - 120 : least;
  }
  return sign | (code > 7 ? 7 : code);
}

static void to_e3m0(unsigned char *out, const float *x, float inverse, const uint32_t *key,
                    size_t n) {
  const size_t half = (n + 1) / 2, high = n / 2;
  if (!key) {
    for (size_t i = 0; i < high; i++)
      out[i] = (unsigned char)(e3m0_code(x[i], inverse, NULL, 0) |
                               e3m0_code(x[half + i], inverse, NULL, 0) << 4);
  } else {
    const uint32_t seed = *key;
    for (size_t i = 0; i < high; i++)
      out[i] = (unsigned char)(e3m0_code(x[i], inverse, &seed, (uint32_t)i) |
                               e3m0_code(x[half + i], inverse, &seed, (uint32_t)(half + i)) << 4);
  }
  if (half > high) out[high] = (unsigned char)e3m0_code(x[high], inverse, key, (uint32_t)high);
}

GT_INLINE float e3m0_value(uint32_t code) {
  const uint32_t j = code & 7U, bits = (j + 120) << 23 | (code & 8U) << 28;
  return float_of(j ? bits : 0U);
}

static void add_e3m0(float *restrict y, float scale, const unsigned char *in, size_t n) {
  const size_t half = (n + 1) / 2;
  for (size_t i = 0; i < half; i++) y[i] += scale * e3m0_value(in[i]);
  for (size_t i = half; i < n; i++) y[i] += scale * e3m0_value((uint32_t)in[i - half] >> 4);
}

static size_t count(const float *x, uint32_t least, size_t n) {
  uint32_t found = 0;
  for (size_t i = 0; i < n; i++) found += (bits_of(x[i]) & 0x7fffffffU) >= least;
  return found;
}

/* Most registers have no such value: one test of all lanes skips them. */
static size_t collect(uint16_t *index, const float *x, uint32_t least, size_t n) {
  size_t found = 0, i = 0;
  for (; i + 16 <= n; i += 16) {
    uint32_t any = 0;
    for (size_t j = 0; j < 16; j++) any |= (bits_of(x[i + j]) & 0x7fffffffU) >= least;
    if (!any) continue;
    for (size_t j = 0; j < 16; j++) {
      index[found] = (uint16_t)(i + j);
      found += (bits_of(x[i + j]) & 0x7fffffffU) >= least;
    }
  }
  for (; i < n; i++)
    if ((bits_of(x[i]) & 0x7fffffffU) >= least) index[found++] = (uint16_t)i;
  return found;
}

const gt_codec_loops GT_FOR_ISA(gt_codec_loops) = {.gather = gather,
                                                   .largest = largest,
                                                   .halves_finite = halves_finite,
                                                   .to_bf16 = to_bf16,
                                                   .add_bf16 = add_bf16,
                                                   .to_fp16 = to_fp16,
                                                   .add_fp16 = add_fp16,
                                                   .to_int8 = to_int8,
                                                   .add_int8 = add_int8,
                                                   .to_e3m0 = to_e3m0,
                                                   .add_e3m0 = add_e3m0,
                                                   .count = count,
                                                   .collect = collect};
