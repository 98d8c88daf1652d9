/* fp16: IEEE half precision, rounded to nearest, limited to 65504.  Error: at most 2^-11 of the
   value, or 2^-25. */
#include "internal.h"

static size_t bytes(const gt_codec_spec *spec, size_t n) {
  (void)spec;
  return 2 * n;
}

static void encode(const gt_codec *codec, uint32_t key, unsigned char *out, const float *a,
                   size_t n) {
  (void)key;
  codec->loops->to_fp16(out, a, n);
}

static bool check(const gt_codec *codec, const unsigned char *in, size_t n) {
  return codec->loops->halves_finite(in, 0x7c00, n);
}

static void add(const gt_codec *codec, uint32_t key, const unsigned char *in, float scale, float *y,
                size_t n) {
  (void)key;
  codec->loops->add_fp16(y, scale, in, n);
}

static const gt_codec_chunk_ops chunk = {
    .bytes = bytes, .encode = encode, .check = check, .add = add};

const gt_codec_ops gt_codec_fp16 = {
    .facts = {.steps = 1, .residuals = 1}, .chunk = &chunk, GT_CHUNKED};
