/* e3m0: four bits per value, sign and exponent (Streaming DiLoCo, arXiv 2501.18512), and a float32
   scale per chunk, the largest magnitude.  Code 0 is 0, code j is scale 2^(j - 7).  Error: to
   nearest, at most a third of the value or scale / 128; at random, below the value or scale / 64.
   */
#include "internal.h"

static size_t bytes(const gt_codec_spec *spec, size_t n) {
  (void)spec;
  return sizeof(float) + (n + 1) / 2;
}

static void encode(const gt_codec *codec, uint32_t key, unsigned char *out, const float *a,
                   size_t n) {
  const float scale = gt_codec_scale(codec, a, n);
  gt_put_float(out, scale);
  if (scale > 0.0F)
    codec->loops->to_e3m0(out + sizeof scale, a, 1.0F / scale, codec->spec.stochastic ? &key : NULL,
                          n);
  else
    memset(out + sizeof scale, 0, (n + 1) / 2);
}

static bool check(const gt_codec *codec, const unsigned char *in, size_t n) {
  (void)codec, (void)n;
  return gt_codec_is_scale(gt_get_float(in));
}

static void add(const gt_codec *codec, uint32_t key, const unsigned char *in, float scale, float *y,
                size_t n) {
  (void)key;
  codec->loops->add_e3m0(y, scale * gt_get_float(in), in + sizeof scale, n);
}

static const gt_codec_chunk_ops chunk = {
    .bytes = bytes, .encode = encode, .check = check, .add = add};

const gt_codec_ops gt_codec_e3m0 = {
    .facts = {.steps = 1, .residuals = 1}, .chunk = &chunk, GT_CHUNKED};
