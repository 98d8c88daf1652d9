/* The contract of a codec, and helpers that codecs share. */
#pragma once

#include <string.h>

#include "geotrain/codec.h"
#include "loops.h"

/* One tensor of the range. */
typedef struct {
  char name[64];
  size_t offset, count; /* in the range: of the tensor, or of the part of it to encode */
  size_t skipped;       /* values of the tensor before that part; whole chunks */
  /* as a matrix: product of all dimensions except the last; the last dimension */
  size_t rows, cols;
  size_t number; /* in the range */
  size_t shared; /* powersgd: offset in the codec's state */
  bool dense;    /* sent as float32 */
} gt_codec_tensor;

/* Functions of a codec that encodes each chunk of n values separately; chunked.c applies them to
   tensors. */
typedef struct {
  size_t (*bytes)(const gt_codec_spec *spec, size_t n);
  /* key: of random numbers */
  void (*encode)(const gt_codec *codec, uint32_t key, unsigned char *out, const float *a, size_t n);
  bool (*check)(const gt_codec *codec, const unsigned char *in, size_t n);
  void (*add)(const gt_codec *codec, uint32_t key, const unsigned char *in, float scale, float *y,
              size_t n);
  bool shared_key; /* true: all senders have the same random numbers */
} gt_codec_chunk_ops;

/* A codec.  All functions except `bound`, `encode`, `check` and `add` may be NULL.  They are called
   only for tensors that are not dense. */
typedef struct gt_codec_ops {
  gt_codec_facts facts;
  const gt_codec_chunk_ops *chunk; /* NULL: the codec does not encode by chunks */
  /* Checks the parameters, marks further tensors as dense, and allocates scratch. */
  gt_status (*open)(gt_codec *codec);
  size_t (*bound)(const gt_codec *codec, const gt_codec_tensor *t, size_t step);
  /* Returns the expected length in a round; NULL: `bound`. */
  size_t (*expected)(const gt_codec *codec, const gt_codec_tensor *t, uint64_t round);
  /* Encodes a (t->count) to out; returns the bytes. */
  size_t (*encode)(gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                   const float *a, unsigned char *out);
  /* Returns the length of the tensor at `in`, at most `left` bytes; 0: malformed. */
  size_t (*check)(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                  const unsigned char *in, size_t left);
  /* Adds scale times the tensor at `in` to y (t->count); returns the length of the tensor in
     bytes. */
  size_t (*add)(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                const unsigned char *in, float scale, float *y);
  /* Error feedback instead of codec.c's.  gather: adds x to the residuals and returns the vector to
     encode; settle: removes the content of the payload at `in` from the residuals. */
  const float *(*gather)(const gt_codec *codec, const gt_codec_tensor *t, const float *x, float *r);
  void (*settle)(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                 const unsigned char *in, float *r);
  /* See gt_codec_agree. */
  void (*agree)(gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                const float *sum, float scale);
} gt_codec_ops;

struct gt_codec {
  const gt_codec_ops *ops;
  const gt_codec_loops *loops;
  gt_codec_spec spec;
  const char *name;
  gt_codec_tensor *tensors;
  size_t ntensors, values, largest; /* values of the largest tensor */
  /* Scratch of codecs that select values, one chunk each; `picked` and `work`: see
     gt_positions_open and the codec. */
  uint16_t *index, *candidates;
  uint32_t *keys;
  float *picked, *work;
  uint32_t threshold; /* of the last selection; the next one begins its search there */
  gt_vec state;
};

/* Returns scratch of `count` floats, or NULL with spec.shapes_only. */
static inline float *gt_codec_scratch(const gt_codec *codec, size_t count) {
  return codec->spec.shapes_only ? NULL : GT_NEW_ARRAY(float, count);
}

#define GT_CODEC_DECLARE(constant, name, table, facts) extern const gt_codec_ops table;
GT_CODECS(GT_CODEC_DECLARE)
#undef GT_CODEC_DECLARE

/* Access to payloads, which are not aligned. */
static inline void gt_put_float(unsigned char *out, float value) {
  memcpy(out, &value, sizeof value);
}

static inline float gt_get_float(const unsigned char *in) {
  float value;
  memcpy(&value, in, sizeof value);
  return value;
}

static inline size_t gt_codec_chunks(size_t count) {
  return (count + GT_CODEC_CHUNK - 1) / GT_CODEC_CHUNK;
}

static inline size_t gt_codec_chunk_values(size_t count, size_t start) {
  return count - start < GT_CODEC_CHUNK ? count - start : GT_CODEC_CHUNK;
}

/* Returns the largest magnitude of a chunk, or 0 if its inverse would not be finite. */
static inline float gt_codec_scale(const gt_codec *codec, const float *a, size_t n) {
  const uint32_t bits = codec->loops->largest(a, n);
  float largest;
  memcpy(&largest, &bits, sizeof largest);
  return largest < 0x1p-100F ? 0.0F : largest;
}

/* True for a scale that a codec writes: not negative, and finite times any code, from -128. */
static inline bool gt_codec_is_scale(float scale) {
  return scale >= 0.0F && scale < 0x1p121F;
}

/* True if n float32 values are finite. */
static inline bool gt_floats_valid(const gt_codec_loops *loops, const unsigned char *in, size_t n) {
  float some[256];
  for (size_t start = 0; start < n; start += 256) {
    const size_t count = n - start < 256 ? n - start : 256;
    memcpy(some, in + start * sizeof(float), count * sizeof(float));
    if (loops->largest(some, count) >= 0x7f800000U) return false;
  }
  return true;
}

/* chunked.c: `bound`, `encode`, `check` and `add` of codecs that encode by chunks. */
size_t gt_chunked_bound(const gt_codec *codec, const gt_codec_tensor *t, size_t step);
size_t gt_chunked_encode(gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                         const float *a, unsigned char *out);
size_t gt_chunked_check(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                        const unsigned char *in, size_t left);
size_t gt_chunked_add(const gt_codec *codec, const gt_codec_turn *turn, const gt_codec_tensor *t,
                      const unsigned char *in, float scale, float *y);
#define GT_CHUNKED                                                                                 \
  .bound = gt_chunked_bound, .encode = gt_chunked_encode, .check = gt_chunked_check,               \
  .add = gt_chunked_add

/* positions.c: selected positions of a chunk, 12 bits each. */
size_t gt_positions_bytes(size_t count);
void gt_positions_pack(unsigned char *out, const uint16_t *index, size_t count);
void gt_positions_unpack(uint16_t *index, const unsigned char *in, size_t count);
/* True if the positions ascend and are below n. */
bool gt_positions_valid(const unsigned char *in, size_t count, size_t n);
/* Writes the positions of the k values of x (n, at most GT_CODEC_CHUNK) with the largest magnitudes
   to codec->index, ascending; among equal magnitudes, the first ones. *threshold: bits of a guess
   of the k-th magnitude; receives the next guess. */
void gt_positions_select(gt_codec *codec, const float *x, size_t n, size_t k, uint32_t *threshold);
/* Allocates the scratch of the selection, with `count` values in codec->picked. */
void gt_positions_open(gt_codec *codec, size_t count);
