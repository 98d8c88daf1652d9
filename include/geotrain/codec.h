/* codec: lossy encodings of updates, with error feedback.  Layer 2.  Local.  Deterministic: equal
   arguments give equal bytes with every instruction set, except for powersgd, whose matrix products
   depend on the instruction set.
   A payload encodes one range: the tensors of a model or of a fragment, in order.  Tensors are
   encoded separately; a tensor that the encoding would not shrink is sent as float32. */
#pragma once

#include "geotrain/base_families.h"
#include "geotrain/tensor.h"

/* Values per chunk.  Each chunk has its own scale or selected positions, and lies within one
   tensor. */
#define GT_CODEC_CHUNK 4096
/* Tensors with fewer values are sent as float32, unless the parameters say otherwise. */
#define GT_CODEC_DENSE 1024

/* Parameters of a codec (the job's sync.codec).  A codec ignores the parameters of others. */
typedef struct {
  double density;  /* topk, mask, dgc: fraction of values to send, in (0, 1] */
  size_t rank;     /* powersgd: at least 1 */
  int bits;        /* topk: per value, 2 or 8 */
  bool stochastic; /* int8, e3m0: round at random, without bias; otherwise to nearest */
  float decay;     /* factor of the residual before each message; dgc: momentum; in [0, 1] */
  uint64_t warmup; /* dgc: number of rounds in which the density falls from 1/4 to `density` */
  uint64_t seed;   /* of the random numbers; equal in all regions */
  size_t dense;    /* tensors with fewer values are sent as float32; 0: GT_CODEC_DENSE */
  /* True: allocates no scratch; only gt_codec_values, gt_codec_bound, gt_codec_expected and
     gt_codec_cut can be called (simulation). */
  bool shapes_only;
} gt_codec_spec;

/* Identity of a payload.  The sender and the receivers must use the same values. */
typedef struct {
  uint64_t round;  /* of the exchange */
  uint32_t sender; /* number of the region */
  size_t step;     /* index of the sum, 0 to gt_codec_facts.steps - 1 */
  /* The part of the range that the payload encodes: `count` values from `first` on; count 0: all.
     Both ends are as gt_codec_cut returns them.  Only for codecs of one step. */
  size_t first, count;
} gt_codec_turn;

typedef struct gt_codec gt_codec;

/* Properties of a kind of codec. */
typedef struct {
  size_t steps;     /* sums per message, each of which depends on the one before */
  size_t residuals; /* residuals per sender, each as long as the range */
} gt_codec_facts;

/* Returns the properties of a kind of codec; gt_codec_has (base_families.h) returns others. */
gt_codec_facts gt_codec_facts_of(gt_codec_kind kind);

/* Opens a codec for a range of `count` tensors; copies their names and shapes.  The range begins at
   the offset of the first tensor.  GT_ERR_JOB: a parameter is out of range. */
gt_status gt_codec_open(gt_codec **codec, gt_codec_kind kind, const gt_codec_spec *spec,
                        const gt_view *tensors, size_t count);
void gt_codec_close(gt_codec *codec);

/* Returns the number of values of the range. */
size_t gt_codec_values(const gt_codec *codec);
/* Returns the maximum length of a payload, in bytes.  Reads step, first and count of the turn. */
size_t gt_codec_bound(const gt_codec *codec, const gt_codec_turn *turn);
/* Returns the expected length of a payload, in bytes: the maximum, unless the length depends on the
   values or the round.  Reads round, first and count of the turn, and step. */
size_t gt_codec_expected(const gt_codec *codec, const gt_codec_turn *turn);
/* Returns the end of a part that begins at `first`, itself 0 or an end: the last start of a chunk,
   or the end of the range, at most `most` values later; if there is none, the next one. */
size_t gt_codec_cut(const gt_codec *codec, size_t first, size_t most);

/* Returns the state that is equal in all regions, for checkpoints; borrowed.  Empty for codecs of
   one step. */
gt_vec gt_codec_shared(const gt_codec *codec);

/* True if x (values) has no non-finite value and no magnitude above 2^120. */
bool gt_codec_accepts(const gt_codec *codec, const float *x);
/* Encodes x (values) and returns the bytes written to payload. r (residuals x values) is the
   residual of earlier payloads: encodes a = decay r + x, then sets r = a - decode(payload). r NULL:
   encodes x without error feedback (not dgc).  For a message of several steps, pass the same x and
   r to each step; r changes in the first and the last step.  Of x and r only the turn's part is
   read and written.  Returns 0 and leaves r unchanged unless that part passes gt_codec_accepts. */
size_t gt_codec_encode(gt_codec *codec, const gt_codec_turn *turn, const float *x, float *r,
                       unsigned char *payload);
/* Checks a payload; call it before any other use.  GT_ERR_FAULT: the codec does not write a payload
   with this length, index or value. */
gt_status gt_codec_check(const gt_codec *codec, const gt_codec_turn *turn,
                         const unsigned char *payload, size_t bytes);
/* Adds scale times the decoded payload to its part of y (values).  The payload must have passed
   gt_codec_check and belong to the last step.  Never fails. */
void gt_codec_add(const gt_codec *codec, const gt_codec_turn *turn, const unsigned char *payload,
                  float scale, float *y);
/* Sets the common state for later steps and messages to `scale` times the sum over all regions'
   payloads of a step.  Only for codecs with GT_RESUMS.  All regions must pass the same bytes; sum
   is aligned to 4.  Afterwards, if the step is the last one, gt_codec_add no longer accepts
   payloads of this message. */
void gt_codec_agree(gt_codec *codec, const gt_codec_turn *turn, const unsigned char *sum,
                    float scale);
