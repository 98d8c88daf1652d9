/* dgc: deep gradient compression (Lin et al. 2018, arXiv 1712.01887), for gradients of every step.
   Feedback of its own: u = m u + x, v = v + u; the largest v of each tensor are sent as float32,
   and u and v become 0 there (momentum correction and masking, algorithm 4).  The threshold comes
   from a sample; a chunk sends at most CROWD times its share.  Of a tensor that is sent whole, u is
   sent, which remains: plain momentum.  During the first `warmup` rounds the
   density falls from 1/4 by factors of 4 (section 3.3).

   Payload of a chunk: uint16 count, positions, float32 values. */
#include <math.h>

#include "internal.h"

enum { CROWD = 4, SAMPLES = 4096, HEADER = sizeof(uint16_t) };

/* Maximum number of values sent of a chunk: a payload must not be longer than the chunk. */
static const double MOST = 0.7;

static gt_status open(gt_codec *codec) {
  const double density = codec->spec.density;
  if (!(density > 0.0 && density <= 0.5))
    return GT_FAIL(GT_ERR_JOB, "the density of dgc is %g; it must be above 0 and at most 0.5",
                   density);
  gt_positions_open(codec, GT_CODEC_CHUNK);
  codec->work = gt_codec_scratch(codec, SAMPLES);
  return GT_OK;
}

static double density_at(const gt_codec_spec *spec, uint64_t round) {
  if (round >= spec->warmup) return spec->density;
  const double first = 0.25, phases = 5.0;
  const double phase = floor(phases * (double)round / (double)spec->warmup);
  return fmax(spec->density, first * pow(0.25, phase));
}

static size_t most(double density, size_t n) {
  const double limit = ceil((double)n * fmin(density * CROWD, MOST));
  return (size_t)limit;
}

static size_t chunk_bytes(size_t count) {
  return HEADER + gt_positions_bytes(count) + count * sizeof(float);
}

static size_t bound(const gt_codec *codec, const gt_codec_tensor *t, size_t step) {
  (void)step;
  const double density = density_at(&codec->spec, 0);
  const size_t whole = t->count / GT_CODEC_CHUNK, rest = t->count % GT_CODEC_CHUNK;
  return whole * chunk_bytes(most(density, GT_CODEC_CHUNK)) +
         (rest ? chunk_bytes(most(density, rest)) : 0);
}

static size_t expected(const gt_codec *codec, const gt_codec_tensor *t, uint64_t round) {
  const double sent = (double)t->count * density_at(&codec->spec, round);
  return gt_codec_chunks(t->count) * HEADER + (size_t)ceil(sent * (1.5 + sizeof(float)));
}

static const float *gather(const gt_codec *codec, const gt_codec_tensor *t, const float *x,
                           float *r) {
  float *u = r + t->offset, *v = r + codec->values + t->offset;
  codec->loops->gather(u, codec->spec.decay, x, t->count);
  codec->loops->gather(v, 1.0F, u, t->count);
  return v;
}

/* Returns the magnitude that `density` of a sample of the tensor reaches. */
static uint32_t threshold(gt_codec *codec, const gt_codec_tensor *t, const float *v,
                          double density) {
  const size_t n = t->count < SAMPLES ? t->count : SAMPLES;
  for (size_t i = 0; i < n; i++) codec->work[i] = v[i * t->count / n];
  uint32_t found = 1;
  const size_t k = (size_t)ceil((double)n * density);
  gt_positions_select(codec, codec->work, n, k, &codec->threshold);
  float least = INFINITY;
  for (size_t i = 0; i < k; i++) least = fminf(least, fabsf(codec->work[codec->index[i]]));
  if (least > 0.0F) memcpy(&found, &least, sizeof found);
  return found; /* at least 1: no value of 0 is sent */
}

static size_t encode(gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                     const float *a, unsigned char *out) {
  const double density = density_at(&codec->spec, turn->round);
  const uint32_t least = threshold(codec, t, a, density);
  unsigned char *at = out;
  for (size_t start = 0; start < t->count; start += GT_CODEC_CHUNK) {
    const size_t n = gt_codec_chunk_values(t->count, start), limit = most(density, n);
    size_t count = codec->loops->collect(codec->index, a + start, least, n);
    if (count > limit) {
      count = limit;
      uint32_t near = least;
      gt_positions_select(codec, a + start, n, count, &near);
    }
    const uint16_t header = (uint16_t)count;
    memcpy(at, &header, sizeof header);
    gt_positions_pack(at + HEADER, codec->index, count);
    unsigned char *values = at + HEADER + gt_positions_bytes(count);
    for (size_t i = 0; i < count; i++)
      gt_put_float(values + i * sizeof(float), a[start + codec->index[i]]);
    at += chunk_bytes(count);
  }
  return (size_t)(at - out);
}

static size_t count_at(const unsigned char *in) {
  uint16_t count;
  memcpy(&count, in, sizeof count);
  return count;
}

static size_t check(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                    const unsigned char *in, size_t left) {
  const double density = density_at(&codec->spec, turn->round);
  size_t all = 0;
  for (size_t start = 0; start < t->count; start += GT_CODEC_CHUNK) {
    const size_t n = gt_codec_chunk_values(t->count, start);
    if (left - all < HEADER) return 0;
    const size_t count = count_at(in + all), bytes = chunk_bytes(count);
    if (count > most(density, n) || left - all < bytes) return 0;
    const unsigned char *values = in + all + HEADER + gt_positions_bytes(count);
    if (!gt_positions_valid(in + all + HEADER, count, n) ||
        !gt_floats_valid(codec->loops, values, count))
      return 0;
    all += bytes;
  }
  return all;
}

/* For each sent value of the tensor at `in`: adds scale times the value to y, and clears u and v if
   given. */
static size_t visit(const gt_codec_tensor *t, const unsigned char *in, float scale, float *y,
                    float *u, float *v) {
  uint16_t index[GT_CODEC_CHUNK];
  const unsigned char *at = in;
  for (size_t start = 0; start < t->count; start += GT_CODEC_CHUNK) {
    const size_t count = count_at(at);
    gt_positions_unpack(index, at + HEADER, count);
    const unsigned char *values = at + HEADER + gt_positions_bytes(count);
    for (size_t i = 0; i < count; i++) {
      const size_t place = start + index[i];
      if (y) y[place] += scale * gt_get_float(values + i * sizeof(float));
      if (u) u[place] = v[place] = 0.0F;
    }
    at += chunk_bytes(count);
  }
  return (size_t)(at - in);
}

static size_t add(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                  const unsigned char *in, float scale, float *y) {
  (void)codec, (void)turn;
  return visit(t, in, scale, y, NULL, NULL);
}

static void settle(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                   const unsigned char *in, float *r) {
  (void)turn;
  (void)visit(t, in, 0.0F, NULL, r + t->offset, r + codec->values + t->offset);
}

const gt_codec_ops gt_codec_dgc = {.facts = {.steps = 1, .residuals = 2},
                                   .open = open,
                                   .bound = bound,
                                   .expected = expected,
                                   .encode = encode,
                                   .check = check,
                                   .add = add,
                                   .gather = gather,
                                   .settle = settle};
