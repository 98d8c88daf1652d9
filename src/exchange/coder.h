/* coder: encodes and decodes the bodies of a collective's messages.  Private to exchange. */
#pragma once

#include "geotrain/exchange.h"

typedef struct gt_coder gt_coder;

typedef struct {
  bool feedback;          /* error feedback for this region's numbers */
  bool sums;              /* error feedback also for sums that this region computes */
  bool decodes;           /* gt_coder_encode replaces gt_coder_sent by the decoded floats */
  const gt_view *tensors; /* tensors of a body; NULL: those of the exchange */
  size_t ntensors;
} gt_coder_use;

/* Opens a coder for bodies of n floats; NULL if the exchange has no codec. */
gt_coder *gt_coder_open(const gt_exchange_spec *spec, size_t n, gt_coder_use use);
void gt_coder_close(gt_coder *coder);

/* Returns the value of gt_frame_header.codec. */
uint8_t gt_coder_kind(const gt_coder *coder);
/* Below, first and count of a turn are in floats of a body; count 0: the whole body. */

/* Returns the maximum length of an encoded body or part of one, in bytes. */
size_t gt_coder_bound(const gt_coder *coder, const gt_codec_turn *turn);
/* Returns the end of a part of a body of n floats, as gt_codec_cut; among floats that are not
   encoded, all of them if coder is NULL, parts can end anywhere. */
size_t gt_coder_cut(const gt_coder *coder, size_t n, size_t first, size_t most);

/* Returns the vector of the next body to send; the caller fills it. */
gt_vec gt_coder_sent(const gt_coder *coder);
/* Encodes the turn's part of gt_coder_sent; returns the bytes written to payload, at most
   gt_coder_bound.  Returns 0 if the part is non-finite.  sum: the floats are a sum that this region
   computed.  Otherwise the whole body must be filled before its first part is encoded, and all
   parts return 0 if any of them is non-finite.  payload NULL (simulation): only returns the
   expected bytes. */
size_t gt_coder_encode(gt_coder *coder, bool sum, const gt_codec_turn *turn, void *payload);

/* True if the codec accepts gt_coder_sent. */
bool gt_coder_accepts(const gt_coder *coder);

/* Checks a received body; call it before any other use.  GT_ERR_FAULT: the codec does not write
   such a body. */
gt_status gt_coder_check(const gt_coder *coder, const gt_codec_turn *turn, const void *body,
                         size_t bytes);
/* True if the sender's floats were finite.  Always true in a simulation. */
bool gt_coder_finite(const gt_coder *coder, const gt_codec_turn *turn, const void *body,
                     size_t bytes);
/* Returns the decoded floats of the turn's part, valid until the next call; NaN for a body of 0
   bytes. */
gt_vec gt_coder_decode(gt_coder *coder, const gt_codec_turn *turn, const void *body, size_t bytes);

/* Takes the sum over all regions' payloads of a step, as gt_codec_agree.  sum: NULL in a
   simulation. */
void gt_coder_agree(gt_coder *coder, const gt_codec_turn *turn, const void *sum);

/* True if the residual of this region's numbers can be non-zero. */
bool gt_coder_has_rest(const gt_coder *coder);
/* Returns this residual, borrowed; 0 floats if there is none. */
gt_vec gt_coder_residual(const gt_coder *coder);
/* Moves this residual to `rest`, which has the encoded floats of a body, and sets it to 0. */
void gt_coder_rest(gt_coder *coder, gt_vec rest);
/* Returns the sum of squares of all that is left out here. */
double gt_coder_squares(const gt_coder *coder);
/* Saves or loads the residuals and, with `sent`, the floats of gt_coder_sent. */
gt_status gt_coder_state(gt_coder *coder, const char *prefix, bool sent,
                         gt_state_direction direction);
