/* codec: lossy encodings of updates, with error feedback.  Layer 2.  Everything is local and
   deterministic: equal arguments give equal bytes and bits with every instruction set, except
   powersgd, whose matrix products depend on it.

   A payload encodes one range: the tensors of a model or of a fragment, in order.  Each codec
   encodes a tensor on its own; tensors that it would not shrink are sent as float32. */
#ifndef GEOTRAIN_CODEC_H
#define GEOTRAIN_CODEC_H

#include "geotrain/base_families.h"
#include "geotrain/tensor.h"

/* Values per chunk: each chunk has its own scale or its own selected positions.  Chunks do not
   cross tensors. */
#define GT_CODEC_CHUNK 4096
/* Tensors with fewer values are sent as float32, unless the parameters say otherwise. */
#define GT_CODEC_DENSE 1024

/* Parameters of a codec (the job's sync.codec).  A codec ignores the parameters of others. */
typedef struct {
  double density;  /* topk, mask, dgc: fraction of values that are sent, in (0, 1] */
  size_t rank;     /* powersgd: at least 1 */
  int bits;        /* topk: per value, 2 or 8 */
  bool stochastic; /* int8, e3m0: round at random, without bias; otherwise to nearest */
  float decay;     /* factor of the residual before each message; dgc: momentum; in [0, 1] */
  uint64_t warmup; /* dgc: rounds until its density is reached, from 1/4 downward */
  uint64_t seed;   /* of the random numbers; equal in all regions */
  size_t dense;    /* tensors with fewer values are sent as float32; 0: GT_CODEC_DENSE */
  /* No scratch: only gt_codec_values and gt_codec_bound may be called (simulation). */
  bool shapes_only;
} gt_codec_spec;

/* Identifies a payload: both ends must use the same values. */
typedef struct {
  uint64_t round;  /* of the exchange */
  uint32_t sender; /* number of the region */
  size_t step;     /* of the codec's dependent sums: 0 to gt_codec_steps - 1 */
} gt_codec_turn;

typedef struct gt_codec gt_codec;

/* Properties of a kind of codec. */
typedef struct {
  size_t steps;     /* dependent sums per message */
  size_t residuals; /* vectors of feedback per sender, each as long as the range */
} gt_codec_facts;

/* Returns the properties of a kind of codec; gt_codec_has (base_families.h) has others. */
gt_codec_facts gt_codec_facts_of(gt_codec_kind kind);

/* Opens a codec for a range of `count` tensors; copies their names and shapes.  Tensors' offsets
   are relative to those of the first.  GT_ERR_JOB: a parameter is out of range. */
gt_status gt_codec_open(gt_codec **codec, gt_codec_kind kind, const gt_codec_spec *spec,
                        const gt_view *tensors, size_t count);
void gt_codec_close(gt_codec *codec);

/* Returns the number of values of the range. */
size_t gt_codec_values(const gt_codec *codec);
/* Returns the length of the longest payload of a step, in bytes. */
size_t gt_codec_bound(const gt_codec *codec, size_t step);

/* Returns the state that all regions have in common, for checkpoints (codecs with several steps);
   borrowed, and empty for others. */
gt_vec gt_codec_shared(const gt_codec *codec);

/* Encodes x (values) and returns the bytes written to payload.  With feedback, r (residuals x
   values) holds what earlier payloads left out: a = decay r + x is encoded, and r becomes a -
   decode(payload).  r NULL: encodes x alone (not dgc).  A message of several steps passes the same
   x and r to each; r changes in the first and the last.  Returns 0, and leaves r as it was, if x
   has a non-finite value or one above 2^120. */
size_t gt_codec_encode(gt_codec *codec, const gt_codec_turn *turn, const float *x, float *r,
                       unsigned char *payload);
/* Checks a payload before any other use.  GT_ERR_FAULT: its length, an index, or a value is not one
   that the codec writes. */
gt_status gt_codec_check(const gt_codec *codec, const gt_codec_turn *turn,
                         const unsigned char *payload, size_t bytes);
/* Adds scale times the decoded payload to y (values).  The payload has passed gt_codec_check and is
   one of the last step.  Never fails. */
void gt_codec_add(const gt_codec *codec, const gt_codec_turn *turn, const unsigned char *payload,
                  float scale, float *y);
/* Takes the sum over all regions' payloads of a step (codecs with `resums`), times `scale`, as the
   common state of later steps and messages.  Every region must pass the same bytes; sum is aligned
   to 4.  After the last step, payloads of this message can no longer be added. */
void gt_codec_agree(gt_codec *codec, const gt_codec_turn *turn, const unsigned char *sum,
                    float scale);

#endif
