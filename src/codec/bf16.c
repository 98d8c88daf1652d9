/* bf16: the upper half of a float32, rounded to nearest.  Error: at most 2^-8 of the value. */
#include "internal.h"

static size_t bytes(const gt_codec_spec *spec, size_t n) {
  (void)spec;
  return 2 * n;
}

static void encode(const gt_codec *codec, uint32_t key, unsigned char *out, const float *a,
                   size_t n) {
  (void)key;
  codec->loops->to_bf16(out, a, n);
}

static bool check(const gt_codec *codec, const unsigned char *in, size_t n) {
  return codec->loops->halves_finite(in, 0x7f80, n);
}

static void add(const gt_codec *codec, uint32_t key, const unsigned char *in, float scale, float *y,
                size_t n) {
  (void)key;
  codec->loops->add_bf16(y, scale, in, n);
}

static const gt_codec_chunk_ops chunk = {
    .bytes = bytes, .encode = encode, .check = check, .add = add};

const gt_codec_ops gt_codec_bf16 = {
    .facts = {.steps = 1, .residuals = 1}, .chunk = &chunk, GT_CHUNKED};
