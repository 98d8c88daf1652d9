/* Payloads of a range, tensor after tensor, and error feedback (Karimireddy et al. 2019, arXiv
   1901.09847): the residual of a payload is added to the next message. */
#include "geotrain/tensor.h"
#include "loops.h"
#include "internal.h"

extern const gt_codec_loops gt_codec_loops_plain;
#if defined(__x86_64__)
extern const gt_codec_loops gt_codec_loops_avx2, gt_codec_loops_avx512;
static const gt_codec_loops *const loops[GT_ISAS] = {[GT_ISA_PLAIN] = &gt_codec_loops_plain,
                                                     [GT_ISA_AVX2] = &gt_codec_loops_avx2,
                                                     [GT_ISA_AVX512] = &gt_codec_loops_avx512};
#else
static const gt_codec_loops *const loops[GT_ISAS] = {[GT_ISA_PLAIN] = &gt_codec_loops_plain};
#endif

static const gt_codec_loops *loops_used(void) {
  return loops[gt_isa_used()];
}

#define OPS(constant, name, table, facts) [constant] = &table,
static const gt_codec_ops *const kinds[] = {GT_CODECS(OPS)};

/* Values above this are not sent: a residual must stay finite. */
#define LARGEST_BITS 0x7b800000U /* 2^120 */

gt_codec_facts gt_codec_facts_of(gt_codec_kind kind) {
  return kinds[kind]->facts;
}

static void open_tensors(gt_codec *codec, const gt_view *views) {
  const size_t dense = codec->spec.dense ? codec->spec.dense : GT_CODEC_DENSE;
  for (size_t i = 0; i < codec->ntensors; i++) {
    const gt_view *v = &views[i];
    gt_codec_tensor *t = &codec->tensors[i];
    *t = (gt_codec_tensor){.offset = v->offset - views[0].offset,
                           .count = v->count,
                           .cols = v->ndims > 1 ? v->shape[v->ndims - 1] : 1,
                           .number = i,
                           .dense = v->count < dense};
    memcpy(t->name, v->name, sizeof t->name);
    t->rows = t->count / t->cols;
    codec->values = t->offset + t->count;
    if (t->count > codec->largest) codec->largest = t->count;
  }
}

gt_status gt_codec_open(gt_codec **out, gt_codec_kind kind, const gt_codec_spec *spec,
                        const gt_view *tensors, size_t count) {
  gt_codec *codec = GT_NEW(gt_codec);
  *codec = (gt_codec){.ops = kinds[kind],
                      .loops = loops_used(),
                      .spec = *spec,
                      .name = gt_codec_names[kind],
                      .tensors = GT_NEW_ARRAY(gt_codec_tensor, count),
                      .ntensors = count};
  open_tensors(codec, tensors);
  gt_status status = GT_OK;
  if (!(spec->decay >= 0.0F && spec->decay <= 1.0F))
    status = GT_FAIL(GT_ERR_JOB, "the decay of %s is %g; it must be from 0 to 1", codec->name,
                     (double)spec->decay);
  else if (codec->ops->open)
    status = codec->ops->open(codec);
  if (status != GT_OK) gt_codec_close(codec), codec = NULL;
  *out = codec;
  return status;
}

void gt_codec_close(gt_codec *codec) {
  if (!codec) return;
  gt_free(codec->state.data);
  gt_free(codec->work);
  gt_free(codec->picked);
  gt_free(codec->keys);
  gt_free(codec->candidates);
  gt_free(codec->index);
  gt_free(codec->tensors);
  gt_free(codec);
}

size_t gt_codec_values(const gt_codec *codec) {
  return codec->values;
}

gt_vec gt_codec_shared(const gt_codec *codec) {
  return codec->state;
}

static bool last_step(const gt_codec *codec, size_t step) {
  return step + 1 == codec->ops->facts.steps;
}

/* Dense tensors are part of the last step. */
static size_t dense_bytes(const gt_codec *codec, const gt_codec_tensor *t, size_t step) {
  return last_step(codec, step) ? t->count * sizeof(float) : 0;
}

/* ---- parts ----------------------------------------------------------------------------------- */

size_t gt_codec_cut(const gt_codec *codec, size_t first, size_t most) {
  size_t i = 0;
  if (codec->values - first <= most) return codec->values;
  while (i + 1 < codec->ntensors && codec->tensors[i + 1].offset <= first + most) i++;
  const gt_codec_tensor *t = &codec->tensors[i];
  const size_t last = gt_codec_chunks(t->count) - 1,
               there = (first + most - t->offset) / GT_CODEC_CHUNK,
               chunk = there < last ? there : last, cut = t->offset + chunk * GT_CODEC_CHUNK;
  if (cut > first) return cut;
  if (chunk < last) return cut + GT_CODEC_CHUNK;
  return i + 1 < codec->ntensors ? t[1].offset : codec->values;
}

/* Writes the part of tensor i that is in the turn's part of the range.  False: there is none. */
static bool take_part(const gt_codec *codec, const gt_codec_turn *turn, size_t i,
                      gt_codec_tensor *t) {
  *t = codec->tensors[i];
  if (turn->count == 0) return true;
  const size_t begin = turn->first, end = begin + turn->count, to = t->offset + t->count;
  if (end <= t->offset || to <= begin) return false;
  t->skipped = begin > t->offset ? begin - t->offset : 0;
  t->offset += t->skipped;
  t->count = (end < to ? end : to) - t->offset;
  return true;
}

static size_t length_of(const gt_codec *codec, const gt_codec_turn *turn, bool expected) {
  const gt_codec_ops *ops = codec->ops;
  size_t bytes = 0;
  gt_codec_tensor t;
  for (size_t i = 0; i < codec->ntensors; i++) {
    if (!take_part(codec, turn, i, &t)) continue;
    bytes += t.dense                     ? dense_bytes(codec, &t, turn->step)
             : expected && ops->expected ? ops->expected(codec, &t, turn->round)
                                         : ops->bound(codec, &t, turn->step);
  }
  return bytes;
}

size_t gt_codec_bound(const gt_codec *codec, const gt_codec_turn *turn) {
  return length_of(codec, turn, false);
}

size_t gt_codec_expected(const gt_codec *codec, const gt_codec_turn *turn) {
  return length_of(codec, turn, true);
}

/* ---- payloads -------------------------------------------------------------------------------- */

/* a = decay r + x in r; returns the vector to encode. */
static const float *gather(const gt_codec *codec, const gt_codec_tensor *t, const float *x,
                           float *r, size_t step) {
  const float *own = x + t->offset;
  if (!r) return own;
  if (step > 0) return r + t->offset;
  if (codec->ops->gather && !t->dense) return codec->ops->gather(codec, t, own, r);
  codec->loops->gather(r + t->offset, codec->spec.decay, own, t->count);
  return r + t->offset;
}

/* r = a - decode(payload) */
static void settle(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                   const unsigned char *in, float *r) {
  if (!r || !last_step(codec, turn->step)) return;
  if (t->dense) {
    if (!codec->ops->gather) /* of dgc, r is the momentum, which a whole tensor keeps */
      memset(r + t->offset, 0, t->count * sizeof *r);
  } else if (codec->ops->settle)
    codec->ops->settle(codec, turn, t, in, r);
  else
    codec->ops->add(codec, turn, t, in, -1.0F, r + t->offset);
}

static bool accepts(const gt_codec *codec, const float *x, size_t n) {
  return codec->loops->largest(x, n) <= LARGEST_BITS;
}

bool gt_codec_accepts(const gt_codec *codec, const float *x) {
  return accepts(codec, x, codec->values);
}

size_t gt_codec_encode(gt_codec *codec, const gt_codec_turn *turn, const float *x, float *r,
                       unsigned char *payload) {
  const size_t n = turn->count ? turn->count : codec->values;
  unsigned char *at = payload;
  gt_codec_tensor t;
  if (turn->step == 0 && !accepts(codec, x + turn->first, n)) return 0;
  for (size_t i = 0; i < codec->ntensors; i++) {
    if (!take_part(codec, turn, i, &t)) continue;
    const float *a = gather(codec, &t, x, r, turn->step);
    size_t bytes = dense_bytes(codec, &t, turn->step);
    if (t.dense)
      memcpy(at, a, bytes);
    else
      bytes = codec->ops->encode(codec, turn, &t, a, at);
    settle(codec, turn, &t, at, r);
    at += bytes;
  }
  return (size_t)(at - payload);
}

static size_t check_tensor(const gt_codec *codec, const gt_codec_turn *turn,
                           const gt_codec_tensor *t, const unsigned char *in, size_t left) {
  if (!t->dense) return codec->ops->check(codec, turn, t, in, left);
  const size_t bytes = dense_bytes(codec, t, turn->step);
  return left >= bytes && gt_floats_valid(codec->loops, in, bytes / sizeof(float)) ? bytes : 0;
}

gt_status gt_codec_check(const gt_codec *codec, const gt_codec_turn *turn,
                         const unsigned char *payload, size_t bytes) {
  size_t at = 0;
  gt_codec_tensor t;
  for (size_t i = 0; i < codec->ntensors; i++) {
    if (!take_part(codec, turn, i, &t)) continue;
    if (t.dense && dense_bytes(codec, &t, turn->step) == 0) continue;
    const size_t length = check_tensor(codec, turn, &t, payload + at, bytes - at);
    if (length == 0)
      return GT_FAIL(GT_ERR_FAULT,
                     "a payload of %zu bytes encoded by %s is malformed in tensor %s (from byte "
                     "%zu); expected %s",
                     bytes, codec->name, t.name, at,
                     "ascending positions and finite values, to the end of the tensor");
    at += length;
  }
  if (at != bytes)
    return GT_FAIL(GT_ERR_FAULT, "a payload encoded by %s has %zu bytes; expected %zu", codec->name,
                   bytes, at);
  return GT_OK;
}

void gt_codec_add(const gt_codec *codec, const gt_codec_turn *turn, const unsigned char *payload,
                  float scale, float *y) {
  gt_codec_tensor t;
  for (size_t i = 0; i < codec->ntensors; i++) {
    if (!take_part(codec, turn, i, &t)) continue;
    float *own = y + t.offset;
    if (!t.dense) {
      payload += codec->ops->add(codec, turn, &t, payload, scale, own);
      continue;
    }
    for (size_t j = 0; j < t.count; j++, payload += sizeof(float))
      own[j] += scale * gt_get_float(payload);
  }
}

void gt_codec_agree(gt_codec *codec, const gt_codec_turn *turn, const unsigned char *sum,
                    float scale) {
  if (!codec->ops->agree) return;
  for (size_t i = 0; i < codec->ntensors; i++) {
    const gt_codec_tensor *t = &codec->tensors[i];
    if (t->dense) {
      sum += dense_bytes(codec, t, turn->step);
      continue;
    }
    codec->ops->agree(codec, turn, t, (const float *)(const void *)sum, scale);
    sum += codec->ops->bound(codec, t, turn->step);
  }
}
