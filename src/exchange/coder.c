/* Encodes and decodes bodies.  A codec encodes the parameters in a body; the buffers after them are
   sent as float32.  A region keeps the residual of its own numbers and, in a hub or tree, a second
   residual of the sums that it computes. */
#include "coder.h"

#include <math.h>
#include <string.h>

struct gt_coder {
  gt_codec *codec;
  gt_codec_kind kind;
  size_t values, plain; /* floats of a body: encoded, and sent as float32 */
  bool with_memory;
  gt_exchange_events events;
  /* Residuals of this region's numbers, and of sums that it computes; NULL: no error feedback. */
  float *own, *sums;
  size_t residual; /* floats of each residual */
  int64_t left;    /* 1: `own` can be non-zero */
  bool refused;    /* the codec does not accept the body whose parts are being encoded */
  gt_coder_use use;
  gt_vec sent;     /* filled by the caller; then as the receivers decode it */
  gt_vec received; /* the last decoded body */
};

size_t gt_exchange_codec_bytes(const gt_exchange_codec *codec) {
  gt_codec *of;
  gt_codec_spec spec = codec->spec;
  spec.shapes_only = true;
  if (gt_codec_open(&of, codec->kind, &spec, codec->tensors, codec->ntensors) != GT_OK)
    gt_bug("codec: %s", gt_error_text());
  const size_t bytes = gt_codec_bound(of, &(gt_codec_turn){0});
  gt_codec_close(of);
  return bytes;
}

static float *residual_of(const gt_coder *coder, bool feedback) {
  return feedback && coder->with_memory ? GT_NEW_ARRAY(float, coder->residual) : NULL;
}

gt_coder *gt_coder_open(const gt_exchange_spec *spec, size_t n, gt_coder_use use) {
  const gt_exchange_codec *with = spec->codec;
  if (!with || with->kind == GT_CODEC_NONE || spec->nregions == 1) return NULL;
  gt_coder *coder = GT_NEW(gt_coder);
  gt_codec_spec of = with->spec;
  of.shapes_only = !spec->with_memory;
  if (gt_codec_open(&coder->codec, with->kind, &of, use.tensors ? use.tensors : with->tensors,
                    use.tensors ? use.ntensors : with->ntensors) != GT_OK)
    gt_bug("codec: %s", gt_error_text());
  coder->kind = with->kind;
  coder->with_memory = spec->with_memory;
  coder->events = spec->events;
  coder->values = gt_codec_values(coder->codec);
  coder->plain = n - coder->values;
  coder->residual = gt_codec_facts_of(with->kind).residuals * coder->values;
  coder->use = use;
  coder->own = residual_of(coder, use.feedback);
  coder->sums = residual_of(coder, use.feedback && use.sums);
  coder->sent = gt_vec_of(spec->with_memory ? GT_NEW_ARRAY(float, n) : NULL, n);
  coder->received = gt_vec_of(spec->with_memory ? GT_NEW_ARRAY(float, n) : NULL, n);
  return coder;
}

void gt_coder_close(gt_coder *coder) {
  if (!coder) return;
  gt_codec_close(coder->codec);
  gt_free(coder->own);
  gt_free(coder->sums);
  gt_free(coder->sent.data);
  gt_free(coder->received.data);
  gt_free(coder);
}

gt_vec gt_coder_sent(const gt_coder *coder) {
  return coder->sent;
}

uint8_t gt_coder_kind(const gt_coder *coder) {
  return (uint8_t)coder->kind;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* A part of a body: encoded values, then floats that are sent as they are. */
typedef struct {
  gt_codec_turn turn;    /* of the values */
  size_t first, n;       /* in the body */
  size_t values, plains; /* n = values + plains */
} part;

static part part_of(const gt_coder *coder, const gt_codec_turn *turn) {
  part p = {.turn = *turn, .first = turn->first, .n = turn->count};
  if (p.n == 0) p.n = coder->sent.n;
  const size_t left = p.first < coder->values ? coder->values - p.first : 0;
  p.values = p.n < left ? p.n : left;
  p.plains = p.n - p.values;
  p.turn.count = p.values;
  return p;
}

/* Returns the plain floats of the part in a vector of a body. */
static float *plains_of(const part *p, gt_vec body) {
  return body.data + p->first + p->values;
}

static size_t bound_of(const gt_coder *coder, const part *p) {
  return (p->values ? gt_codec_bound(coder->codec, &p->turn) : 0) + p->plains * sizeof(float);
}

size_t gt_coder_bound(const gt_coder *coder, const gt_codec_turn *turn) {
  const part p = part_of(coder, turn);
  return bound_of(coder, &p);
}

size_t gt_coder_cut(const gt_coder *coder, size_t n, size_t first, size_t most) {
  if (coder && first < coder->values && coder->values - first > most)
    return gt_codec_cut(coder->codec, first, most);
  return n - first < most ? n : first + most;
}

static void add_piece(gt_exchange_pieces *p, size_t bytes) {
  if (p->pieces == 1 || (p->pieces > 1 && p->last < p->least)) p->least = p->last;
  p->last = bytes;
  p->bytes += bytes;
  p->pieces++;
}

gt_exchange_pieces gt_exchange_pieces_of(const gt_exchange_codec *codec, size_t floats,
                                         size_t most) {
  const gt_exchange_spec spec = {.nregions = 2, .codec = codec};
  gt_coder *coder = gt_coder_open(&spec, floats, (gt_coder_use){0});
  gt_exchange_pieces p = {0};
  size_t end = 0;
  if (coder && gt_codec_has(codec->kind, GT_RESUMS)) { /* its payloads are bodies of float32 */
    const gt_codec_turn last = {.step = gt_codec_facts_of(codec->kind).steps - 1};
    floats = gt_coder_bound(coder, &last) / sizeof(float);
    gt_coder_close(coder);
    coder = NULL;
  }
  do {
    gt_codec_turn turn = {.first = end};
    end = gt_coder_cut(coder, floats, turn.first, most);
    turn.count = end - turn.first;
    add_piece(&p, coder ? gt_coder_bound(coder, &turn) : turn.count * sizeof(float));
  } while (end < floats);
  if (p.pieces == 1) p.least = p.last;
  gt_coder_close(coder);
  return p;
}

static void coding(const gt_coder *coder) {
  if (coder->events.coding) coder->events.coding(coder->events.ctx);
}

static void coded(const gt_coder *coder, gt_coding direction, size_t raw, size_t wire) {
  if (coder->events.coded) coder->events.coded(coder->events.ctx, direction, raw, wire);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Replaces the values of the part by what the receivers decode. */
static void decode_own(gt_coder *coder, const part *p, const void *payload) {
  memset(coder->sent.data + p->first, 0, p->values * sizeof(float));
  gt_codec_add(coder->codec, &p->turn, payload, 1.0F, coder->sent.data);
}

/* True if the codec does not accept the body of this part.  A whole body is checked when it is
   encoded. */
static bool refuses(gt_coder *coder, const part *p) {
  if (p->n == coder->sent.n) return false;
  if (p->first == 0) coder->refused = !gt_codec_accepts(coder->codec, coder->sent.data);
  return coder->refused;
}

static size_t encode(gt_coder *coder, bool sum, const part *p, void *payload) {
  unsigned char *out = payload;
  float *x = coder->sent.data;
  size_t bytes = 0;
  if (!sum) coder->left = coder->use.feedback;
  if (!payload)
    return (p->values ? gt_codec_expected(coder->codec, &p->turn) : 0) + p->plains * sizeof *x;
  if (!sum && refuses(coder, p)) return 0;
  if (p->values) {
    bytes = gt_codec_encode(coder->codec, &p->turn, x, sum ? coder->sums : coder->own, out);
    if (bytes == 0) return 0;
    if (coder->use.decodes) decode_own(coder, p, payload);
  }
  if (p->plains) memcpy(out + bytes, plains_of(p, coder->sent), p->plains * sizeof *x);
  return bytes + p->plains * sizeof *x;
}

size_t gt_coder_encode(gt_coder *coder, bool sum, const gt_codec_turn *turn, void *payload) {
  const part p = part_of(coder, turn);
  coding(coder);
  const size_t bytes = encode(coder, sum, &p, payload);
  coded(coder, GT_ENCODED, p.n * sizeof(float) / gt_codec_facts_of(coder->kind).steps, bytes);
  return bytes;
}

bool gt_coder_accepts(const gt_coder *coder) {
  return gt_codec_accepts(coder->codec, coder->sent.data);
}

/* ---- receiving ------------------------------------------------------------------------------- */

gt_status gt_coder_check(const gt_coder *coder, const gt_codec_turn *turn, const void *body,
                         size_t bytes) {
  const part p = part_of(coder, turn);
  const size_t plain = p.plains * sizeof(float);
  if (bytes == 0) return GT_OK;
  if (bytes < plain || (p.values == 0 && bytes > plain))
    return GT_FAIL(GT_ERR_FAULT, "an encoded message has %zu bytes; expected %s%zu", bytes,
                   p.values ? "at least " : "", plain);
  return p.values ? gt_codec_check(coder->codec, &p.turn, body, bytes - plain) : GT_OK;
}

/* Copies the plain floats at the end of the body to `received`. */
static void take_plains(const gt_coder *coder, const part *p, const void *body, size_t bytes) {
  const size_t plain = p->plains * sizeof(float);
  if (plain)
    memcpy(plains_of(p, coder->received), (const unsigned char *)body + bytes - plain, plain);
}

bool gt_coder_finite(const gt_coder *coder, const gt_codec_turn *turn, const void *body,
                     size_t bytes) {
  const part p = part_of(coder, turn);
  if (!body) return true;
  if (bytes == 0) return false;
  take_plains(coder, &p, body, bytes);
  return gt_vec_finite(gt_vec_of(plains_of(&p, coder->received), p.plains));
}

static gt_vec decode(gt_coder *coder, const part *p, const void *body, size_t bytes) {
  const gt_vec out = gt_vec_range(coder->received, p->first, p->n);
  if (!out.data) return out;
  for (size_t i = 0; i < out.n && bytes == 0; i++) out.data[i] = NAN;
  if (bytes == 0) return out;
  if (p->values) {
    memset(out.data, 0, p->values * sizeof(float));
    gt_codec_add(coder->codec, &p->turn, body, 1.0F, coder->received.data);
  }
  take_plains(coder, p, body, bytes);
  return out;
}

gt_vec gt_coder_decode(gt_coder *coder, const gt_codec_turn *turn, const void *body, size_t bytes) {
  const part p = part_of(coder, turn);
  coding(coder);
  const gt_vec out = decode(coder, &p, body, bytes);
  coded(coder, GT_DECODED, out.n * sizeof(float), bytes);
  return out;
}

void gt_coder_agree(gt_coder *coder, const gt_codec_turn *turn, const void *sum) {
  coding(coder);
  if (sum) gt_codec_agree(coder->codec, turn, sum, 1.0F);
  coded(coder, GT_ENCODED, 0, 0);
}

/* ---- residuals ------------------------------------------------------------------------------- */

bool gt_coder_has_rest(const gt_coder *coder) {
  return coder->left != 0;
}

gt_vec gt_coder_residual(const gt_coder *coder) {
  return gt_vec_of(coder->own, coder->own ? coder->residual : 0);
}

void gt_coder_rest(gt_coder *coder, gt_vec rest) {
  coder->left = 0;
  if (!coder->own) return;
  memcpy(rest.data, coder->own, coder->values * sizeof(float));
  memset(coder->own, 0, coder->residual * sizeof(float));
}

/* Of several vectors the last one is left out; those before it are its momentum. */
static double squares_of(const gt_coder *coder, const float *residual) {
  double sum = 0;
  for (size_t i = coder->residual - coder->values; residual && i < coder->residual; i++)
    sum += (double)residual[i] * (double)residual[i];
  return sum;
}

double gt_coder_squares(const gt_coder *coder) {
  return squares_of(coder, coder->own) + squares_of(coder, coder->sums);
}

gt_status gt_coder_state(gt_coder *coder, const char *prefix, bool sent,
                         gt_state_direction direction) {
  const gt_state_field own = {"residual", GT_TYPE_F32, coder->own, coder->residual},
                       sums = {"sums_residual", GT_TYPE_F32, coder->sums, coder->residual},
                       shared = {"codec", GT_TYPE_F32, gt_codec_shared(coder->codec).data,
                                 gt_codec_shared(coder->codec).n},
                       last = {"sent", GT_TYPE_F32, coder->sent.data, coder->sent.n};
  const gt_state_field left = {"left", GT_TYPE_I64, &coder->left, 1};
  GT_TRY(gt_state_fields(direction, prefix, &left, 1));
  if (coder->own) GT_TRY(gt_state_fields(direction, prefix, &own, 1));
  if (shared.data) GT_TRY(gt_state_fields(direction, prefix, &shared, 1));
  if (coder->sums) GT_TRY(gt_state_fields(direction, prefix, &sums, 1));
  return sent ? gt_state_fields(direction, prefix, &last, 1) : GT_OK;
}
