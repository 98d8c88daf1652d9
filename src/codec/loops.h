/* Loops over values, compiled once for each instruction set from isa/loops.c.  The same bits with
   every set. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the random number of position i: a hash of 32 bits. */
static inline uint32_t gt_codec_hash(uint32_t key, uint32_t i) {
  uint32_t x = i * 0x9e3779b9U ^ key;
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  x = (x ^ (x >> 15)) * 0x846ca68bU;
  return x ^ (x >> 16);
}

typedef struct {
  /* r = beta r + x */
  void (*gather)(float *restrict r, float beta, const float *restrict x, size_t n);
  /* Returns the bits of the largest magnitude; those of a NaN exceed those of infinity. */
  uint32_t (*largest)(const float *x, size_t n);
  /* True if no half is infinite or a NaN; `exponent`: the bits of the format's exponent. */
  bool (*halves_finite)(const unsigned char *in, uint16_t exponent, size_t n);
  /* To and from halves; fp16 limits values to its largest finite one. */
  void (*to_bf16)(unsigned char *out, const float *x, size_t n);
  void (*add_bf16)(float *restrict y, float scale, const unsigned char *in, size_t n);
  void (*to_fp16)(unsigned char *out, const float *x, size_t n);
  void (*add_fp16)(float *restrict y, float scale, const unsigned char *in, size_t n);
  /* out = x / scale, rounded to nearest (key NULL) or at random by a key; inverse = 1 / scale. */
  void (*to_int8)(unsigned char *out, const float *x, float inverse, const uint32_t *key, size_t n);
  void (*add_int8)(float *restrict y, float scale, const unsigned char *in, size_t n);
  /* E3M0 codes, see e3m0.c: value i in the low half of byte i, value half + i in the high one, half
     = (n + 1) / 2. */
  void (*to_e3m0)(unsigned char *out, const float *x, float inverse, const uint32_t *key, size_t n);
  void (*add_e3m0)(float *restrict y, float scale, const unsigned char *in, size_t n);
  /* Returns how many magnitudes have bits of at least `least`. */
  size_t (*count)(const float *x, uint32_t least, size_t n);
  /* Writes their positions, ascending (room for n), and returns how many there are. */
  size_t (*collect)(uint16_t *index, const float *x, uint32_t least, size_t n);
} gt_codec_loops;
