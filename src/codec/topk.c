/* topk: the values with the largest magnitudes in each chunk, with 12-bit positions (SparseLoCo,
   arXiv 2508.15706).  Values have 8 bits, with a float32 scale per tensor, or 2 bits.  With 2 bits
   a value is in one of four classes: its sign, and a bit for a magnitude above the mean of the
   values of this sign.  A class is decoded as its mean, so that the squared error of the tensor's
   sent values is at most their variance within a class.  SparseLoCo has four equal intervals of 6
   standard deviations instead; sent values lie on both sides of a gap, so that they fall into only
   two or three of these intervals.
   Payload of a tensor: header (16 or 4 bytes), then for each chunk positions and values. */
#include <math.h>

#include "internal.h"

static gt_status open(gt_codec *codec) {
  const gt_codec_spec *s = &codec->spec;
  if (!(s->density > 0.0 && s->density <= 1.0))
    return GT_FAIL(GT_ERR_JOB, "the density of topk is %g; it must be above 0 and at most 1",
                   s->density);
  if (s->bits != 2 && s->bits != 8)
    return GT_FAIL(GT_ERR_JOB, "the bits of topk are %d; they must be 2 or 8", s->bits);
  gt_positions_open(codec, codec->largest);
  return GT_OK;
}

static size_t kept(const gt_codec *codec, size_t n) {
  return (size_t)ceil((double)n * codec->spec.density);
}

static size_t header_bytes(const gt_codec *codec) {
  return codec->spec.bits == 2 ? 4 * sizeof(float) : sizeof(float);
}

static size_t chunk_bytes(const gt_codec *codec, size_t n) {
  const size_t k = kept(codec, n);
  return gt_positions_bytes(k) + (k * (size_t)codec->spec.bits + 7) / 8;
}

static size_t bound(const gt_codec *codec, const gt_codec_tensor *t, size_t step) {
  (void)step;
  const size_t whole = t->count / GT_CODEC_CHUNK, rest = t->count % GT_CODEC_CHUNK;
  return header_bytes(codec) + whole * chunk_bytes(codec, GT_CODEC_CHUNK) +
         (rest ? chunk_bytes(codec, rest) : 0);
}

/* The classes of 2-bit values: 0 and 1 are positive, 2 and 3 negative; the magnitudes of 1 and 3
   are above the mean. */
typedef struct {
  float split[2], mean[4];
} classes;

static unsigned class_of(const classes *c, float v) {
  const unsigned negative = v < 0.0F;
  return negative << 1 | (fabsf(v) > c->split[negative]);
}

static classes classify(const float *v, size_t n) {
  classes c = {.split = {0}};
  double sum[4] = {0}, side[2] = {0};
  size_t count[4] = {0}, sides[2] = {0};
  for (size_t i = 0; i < n; i++) {
    const unsigned negative = v[i] < 0.0F;
    side[negative] += fabs((double)v[i]), sides[negative]++;
  }
  for (int s = 0; s < 2; s++)
    if (sides[s]) c.split[s] = (float)(side[s] / (double)sides[s]);
  for (size_t i = 0; i < n; i++) {
    const unsigned k = class_of(&c, v[i]);
    sum[k] += (double)v[i], count[k]++;
  }
  for (int k = 0; k < 4; k++)
    if (count[k]) c.mean[k] = (float)(sum[k] / (double)count[k]);
  return c;
}

static void pack2(unsigned char *out, const classes *c, const float *v, size_t k) {
  memset(out, 0, (k * 2 + 7) / 8);
  for (size_t i = 0; i < k; i++) out[i / 4] |= (unsigned char)(class_of(c, v[i]) << i % 4 * 2);
}

static size_t encode(gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                     const float *a, unsigned char *out) {
  (void)turn;
  unsigned char *at = out + header_bytes(codec);
  float *picked = codec->picked;
  size_t total = 0;
  for (size_t start = 0; start < t->count; start += GT_CODEC_CHUNK) {
    const size_t n = gt_codec_chunk_values(t->count, start), k = kept(codec, n);
    gt_positions_select(codec, a + start, n, k, &codec->threshold);
    gt_positions_pack(at, codec->index, k);
    for (size_t i = 0; i < k; i++) picked[total + i] = a[start + codec->index[i]];
    total += k;
    at += chunk_bytes(codec, n);
  }
  classes c = {.split = {0}};
  float scale = 0.0F;
  if (codec->spec.bits == 2) {
    c = classify(picked, total);
    memcpy(out, c.mean, sizeof c.mean);
  } else {
    scale = gt_codec_scale(codec, picked, total) / 127.0F;
    gt_put_float(out, scale);
  }
  at = out + header_bytes(codec);
  for (size_t start = 0; start < t->count; start += GT_CODEC_CHUNK) {
    const size_t n = gt_codec_chunk_values(t->count, start), k = kept(codec, n);
    unsigned char *values = at + gt_positions_bytes(k);
    if (codec->spec.bits == 2)
      pack2(values, &c, picked, k);
    else if (scale > 0.0F)
      codec->loops->to_int8(values, picked, 1.0F / scale, NULL, k);
    else
      memset(values, 0, k);
    picked += k;
    at += chunk_bytes(codec, n);
  }
  return (size_t)(at - out);
}

static size_t check(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                    const unsigned char *in, size_t left) {
  const size_t all = bound(codec, t, turn->step);
  if (left < all) return 0;
  for (size_t at = 0; at < header_bytes(codec); at += sizeof(float))
    if (!gt_codec_is_scale(fabsf(gt_get_float(in + at)))) return 0;
  if (codec->spec.bits == 8 && gt_get_float(in) < 0.0F) return 0;
  in += header_bytes(codec);
  for (size_t start = 0; start < t->count; start += GT_CODEC_CHUNK) {
    const size_t n = gt_codec_chunk_values(t->count, start);
    if (!gt_positions_valid(in, kept(codec, n), n)) return 0;
    in += chunk_bytes(codec, n);
  }
  return all;
}

static size_t add(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                  const unsigned char *in, float scale, float *y) {
  (void)turn;
  uint16_t index[GT_CODEC_CHUNK];
  float level[4] = {0};
  for (size_t i = 0; i * sizeof(float) < header_bytes(codec); i++)
    level[i] = scale * gt_get_float(in + i * sizeof(float));
  const unsigned char *at = in + header_bytes(codec);
  for (size_t start = 0; start < t->count; start += GT_CODEC_CHUNK) {
    const size_t n = gt_codec_chunk_values(t->count, start), k = kept(codec, n);
    const unsigned char *values = at + gt_positions_bytes(k);
    gt_positions_unpack(index, at, k);
    if (codec->spec.bits == 2)
      for (size_t i = 0; i < k; i++) y[start + index[i]] += level[values[i / 4] >> i % 4 * 2 & 3];
    else
      for (size_t i = 0; i < k; i++) y[start + index[i]] += level[0] * (float)(int8_t)values[i];
    at += chunk_bytes(codec, n);
  }
  return (size_t)(at - in);
}

const gt_codec_ops gt_codec_topk = {.facts = {.steps = 1, .residuals = 1},
                                    .open = open,
                                    .bound = bound,
                                    .encode = encode,
                                    .check = check,
                                    .add = add};
