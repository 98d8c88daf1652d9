/* int8: a float32 scale per chunk, largest magnitude / 127, and one byte per value, value / scale.
   Error: at most scale / 2 to nearest, below scale at random. */
#include "internal.h"

static size_t bytes(const gt_codec_spec *spec, size_t n) {
  (void)spec;
  return sizeof(float) + n;
}

static void encode(const gt_codec *codec, uint32_t key, unsigned char *out, const float *a,
                   size_t n) {
  const float scale = gt_codec_scale(codec, a, n) / 127.0F;
  gt_put_float(out, scale);
  if (scale > 0.0F)
    codec->loops->to_int8(out + sizeof scale, a, 1.0F / scale, codec->spec.stochastic ? &key : NULL,
                          n);
  else
    memset(out + sizeof scale, 0, n);
}

static bool check(const gt_codec *codec, const unsigned char *in, size_t n) {
  (void)codec, (void)n;
  return gt_codec_is_scale(gt_get_float(in));
}

static void add(const gt_codec *codec, uint32_t key, const unsigned char *in, float scale, float *y,
                size_t n) {
  (void)key;
  codec->loops->add_int8(y, scale * gt_get_float(in), in + sizeof scale, n);
}

static const gt_codec_chunk_ops chunk = {
    .bytes = bytes, .encode = encode, .check = check, .add = add};

const gt_codec_ops gt_codec_int8 = {
    .facts = {.steps = 1, .residuals = 1}, .chunk = &chunk, GT_CHUNKED};
