/* mask: float32 values at random positions.  All regions draw the same positions, so that no
   positions are sent, and payloads add up without decoding (LOSCAR-SGD, arXiv 2605.20866; SPARTA).
   A chunk is divided into strata of round(1 / density) values, the last one shorter; one position
   is drawn in each, so that every value has the same chance.  No error at the drawn positions. */
#include <math.h>

#include "internal.h"

static gt_status open(gt_codec *codec) {
  const double density = codec->spec.density;
  if (!(density >= 1.0 / GT_CODEC_CHUNK && density <= 1.0))
    return GT_FAIL(GT_ERR_JOB, "the density of mask is %g; it must be from 1/%d to 1", density,
                   GT_CODEC_CHUNK);
  return GT_OK;
}

static size_t stratum(const gt_codec_spec *spec) {
  return (size_t)lround(1.0 / spec->density);
}

static size_t drawn(const gt_codec_spec *spec, size_t n) {
  const size_t width = stratum(spec);
  return (n + width - 1) / width;
}

static size_t bytes(const gt_codec_spec *spec, size_t n) {
  return drawn(spec, n) * sizeof(float);
}

/* Returns the position drawn in the stratum that begins at `start`. */
static size_t draw(uint32_t key, size_t start, size_t width, size_t n) {
  const size_t room = n - start < width ? n - start : width;
  return start + (size_t)((uint64_t)gt_codec_hash(key, (uint32_t)start) * room >> 32);
}

static void encode(const gt_codec *codec, uint32_t key, unsigned char *out, const float *a,
                   size_t n) {
  const size_t width = stratum(&codec->spec);
  for (size_t start = 0; start < n; start += width, out += sizeof(float))
    gt_put_float(out, a[draw(key, start, width, n)]);
}

static bool check(const gt_codec *codec, const unsigned char *in, size_t n) {
  return gt_floats_valid(codec->loops, in, drawn(&codec->spec, n));
}

static void add(const gt_codec *codec, uint32_t key, const unsigned char *in, float scale, float *y,
                size_t n) {
  const size_t width = stratum(&codec->spec);
  for (size_t start = 0; start < n; start += width, in += sizeof(float))
    y[draw(key, start, width, n)] += scale * gt_get_float(in);
}

static const gt_codec_chunk_ops chunk = {
    .bytes = bytes, .encode = encode, .check = check, .add = add, .shared_key = true};

const gt_codec_ops gt_codec_mask = {
    .facts = {.steps = 1, .residuals = 1}, .chunk = &chunk, .open = open, GT_CHUNKED};
