/* Shared by the tests of codecs: every kind with each of its settings, on tensors of a model. */
#pragma once

#include <math.h>
#include <string.h>

#include "geotrain/codec.h"

/* A matrix, a vector of three chunks, a bias (dense), a convolution. */
enum { TENSORS = 4, VALUES = 50 * 100 + 9001 + 700 + 3 * 3 * 16 * 32 };
static const gt_view tensors[TENSORS] = {
    {.name = "matrix", .offset = 10, .count = 5000, .shape = {50, 100}, .ndims = 2},
    {.name = "vector", .offset = 5010, .count = 9001, .shape = {9001}, .ndims = 1},
    {.name = "bias", .offset = 14011, .count = 700, .shape = {700}, .ndims = 1},
    {.name = "convolution", .offset = 14711, .count = 4608, .shape = {3, 3, 16, 32}, .ndims = 4}};

typedef struct {
  const char *name;
  gt_codec_kind kind;
  gt_codec_spec spec;
} codec_case;

static const codec_case cases[] = {
    {"bf16", GT_CODEC_BF16, {.decay = 1.0F}},
    {"fp16", GT_CODEC_FP16, {.decay = 1.0F}},
    {"int8", GT_CODEC_INT8, {.decay = 1.0F}},
    {"int8, stochastic", GT_CODEC_INT8, {.decay = 1.0F, .stochastic = true}},
    {"e3m0", GT_CODEC_E3M0, {.decay = 1.0F}},
    {"e3m0, stochastic", GT_CODEC_E3M0, {.decay = 1.0F, .stochastic = true}},
    {"topk, 2 bits", GT_CODEC_TOPK, {.decay = 0.95F, .density = 1.0 / 64, .bits = 2}},
    {"topk, 8 bits", GT_CODEC_TOPK, {.decay = 1.0F, .density = 0.013, .bits = 8}},
    {"topk, all", GT_CODEC_TOPK, {.decay = 1.0F, .density = 1.0, .bits = 2}},
    {"mask", GT_CODEC_MASK, {.decay = 1.0F, .density = 1.0 / 64}},
    {"mask, 1/50", GT_CODEC_MASK, {.decay = 0.5F, .density = 0.02}},
    {"powersgd", GT_CODEC_POWERSGD, {.decay = 1.0F, .rank = 2}},
    {"dgc", GT_CODEC_DGC, {.decay = 0.9F, .density = 0.01}},
    {"dgc, warm-up", GT_CODEC_DGC, {.decay = 0.9F, .density = 0.001, .warmup = 10}}};
enum { CASES = sizeof cases / sizeof *cases };

/* Scale of a decoded payload.  Of powersgd a product of finite factors can be infinite, as can any
   sum of float32 messages. */
static inline float decode_scale(gt_codec_kind kind) {
  return kind == GT_CODEC_POWERSGD ? 0x1p-20F : 1.0F;
}

static gt_rng rng;

static inline gt_codec *opened(const codec_case *c) {
  gt_codec *codec;
  gt_codec_spec spec = c->spec;
  spec.seed = 5;
  if (gt_codec_open(&codec, c->kind, &spec, tensors, TENSORS) != GT_OK)
    gt_bug("%s", gt_error_text());
  if (gt_codec_values(codec) != VALUES) gt_bug("%zu values", gt_codec_values(codec));
  return codec;
}

/* Numbers like those of gradients: tensors of different size, some values 0. */
static inline void fill(float *x) {
  for (size_t t = 0; t < TENSORS; t++)
    for (size_t i = 0; i < tensors[t].count; i++)
      x[tensors[t].offset - tensors[0].offset + i] =
          gt_rng_below(&rng, 20) ? (float)(ldexp(gt_rng_normal(&rng), -3 * (int)t)) : 0.0F;
}

static inline float *filled(void) {
  float *x = GT_NEW_ARRAY(float, VALUES);
  fill(x);
  return x;
}

/* Room for the payload of any step. */
static inline unsigned char *payload_of(const gt_codec *codec, gt_codec_kind kind) {
  size_t most = 0;
  for (size_t step = 0; step < gt_codec_facts_of(kind).steps; step++)
    if (gt_codec_bound(codec, &(gt_codec_turn){.step = step}) > most)
      most = gt_codec_bound(codec, &(gt_codec_turn){.step = step});
  return GT_NEW_ARRAY(unsigned char, most);
}

/* Encodes one region's message in all steps, as if it were alone.  Returns the bytes of the last
   payload; turn->step is the last one then. */
static inline size_t encode_alone(gt_codec *codec, gt_codec_kind kind, gt_codec_turn *turn,
                                  const float *x, float *r, unsigned char *payload) {
  const size_t steps = gt_codec_facts_of(kind).steps;
  size_t bytes = 0;
  for (turn->step = 0; turn->step < steps; turn->step++) {
    bytes = gt_codec_encode(codec, turn, x, r, payload);
    if (bytes == 0) return 0;
    if (bytes > gt_codec_bound(codec, turn)) gt_bug("%zu bytes exceed the bound", bytes);
    if (gt_codec_check(codec, turn, payload, bytes) != GT_OK) gt_bug("%s", gt_error_text());
    if (turn->step + 1 < steps) gt_codec_agree(codec, turn, payload, 1.0F);
  }
  turn->step = steps - 1;
  return bytes;
}
