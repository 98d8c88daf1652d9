/* coder: bodies of messages that a codec encodes.  Private to exchange. */
#ifndef GEOTRAIN_EXCHANGE_CODER_H
#define GEOTRAIN_EXCHANGE_CODER_H

#include "geotrain/exchange.h"

typedef struct gt_coder gt_coder;

typedef struct {
  bool feedback;          /* keeps what payloads leave out */
  bool sums;              /* also for sums that this region makes of others' contributions */
  bool decodes;           /* gt_coder_sent is decoded after gt_coder_encode */
  const gt_view *tensors; /* of a body; NULL: those of the exchange */
  size_t ntensors;
} gt_coder_use;

/* Opens a coder for bodies of n floats; NULL if the exchange has no codec. */
gt_coder *gt_coder_open(const gt_exchange_spec *spec, size_t n, gt_coder_use use);
void gt_coder_close(gt_coder *coder);

/* Returns the value of gt_frame_header.codec. */
uint8_t gt_coder_kind(const gt_coder *coder);
/* Returns the length of the longest body of a step, in bytes. */
size_t gt_coder_bound(const gt_coder *coder, size_t step);

/* Returns the floats of the next body to send, to fill. */
gt_vec gt_coder_sent(const gt_coder *coder);
/* Encodes the filled floats; returns the bytes written to payload, at most gt_coder_bound.  0: they
   are non-finite.  sum: they are a sum made here.  payload NULL (simulation): only returns the
   length. */
size_t gt_coder_encode(gt_coder *coder, bool sum, const gt_codec_turn *turn, void *payload);

/* Checks a body before any other use; GT_ERR_FAULT. */
gt_status gt_coder_check(const gt_coder *coder, const gt_codec_turn *turn, const void *body,
                         size_t bytes);
/* True if the sender's floats were finite; true in a simulation. */
bool gt_coder_finite(const gt_coder *coder, const void *body, size_t bytes);
/* Returns the decoded floats, valid until the next call; NaN for a body without bytes. */
gt_vec gt_coder_decode(gt_coder *coder, const gt_codec_turn *turn, const void *body, size_t bytes);

/* Takes the sum over all regions' payloads of a step; see gt_codec_agree.  NULL: a simulation. */
void gt_coder_agree(gt_coder *coder, const gt_codec_turn *turn, const void *sum);

/* True if this region's payloads have left something out. */
bool gt_coder_has_rest(const gt_coder *coder);
/* Moves that to `rest`, as long as a body without plain floats. */
void gt_coder_rest(gt_coder *coder, gt_vec rest);
/* Saves or loads the residuals, and with `sent` the floats of the last message. */
gt_status gt_coder_state(gt_coder *coder, const char *prefix, bool sent,
                         gt_state_direction direction);

#endif
