/* tokens: vocabularies of byte pairs, for the other files of this part.  Local; pairs and pieces
   never fail. */
#ifndef GEOTRAIN_DATA_TOKENS_H
#define GEOTRAIN_DATA_TOKENS_H

#include "geotrain/data_text.h"
#include "h5.h"

/* Bytes are tokens 0 to GT_TOKEN_BYTES - 1. */
enum { GT_TOKEN_BYTES = 256 };

/* The vocabulary of an open file; *out is NULL if it has none.  GT_ERR_DATA as for
   gt_tokens_open. */
gt_status gt_tokens_read(gt_tokens **out, hid_t file, const char *path);

/* Open addressing; initialised to zero. */
typedef struct {
  uint64_t *keys; /* 0: empty; else a pair, plus 1 */
  uint32_t *values;
  size_t n, nslots; /* nslots: 0 or a power of two, more than twice n */
} gt_pairs;

/* A pair as one number: first that of smaller left tokens, then of smaller right ones. */
static inline uint64_t gt_pair_of(int32_t left, int32_t right) {
  return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* The value of a pair; NULL: it is not there. */
const uint32_t *gt_pairs_find(const gt_pairs *pairs, uint64_t pair);
/* Adds a pair that is not there. */
void gt_pairs_add(gt_pairs *pairs, uint64_t pair, uint32_t value);
void gt_pairs_close(gt_pairs *pairs);

/* Bytes of a piece; longer ones are cut. */
enum { GT_PIECE_MAX = 64 };

/* The length of the first piece of a text of n > 0 bytes.  docs/data-format.md says what a piece
   is. */
size_t gt_piece_next(const char *text, size_t n);

/* The different pieces of a text, in the order in which they first occur. */
typedef struct {
  const char *text; /* in the text that was counted */
  size_t length;
  uint64_t count;
} gt_piece;
/* An array of *n pieces, which the caller frees. */
gt_piece *gt_pieces_count(const char *text, size_t length, size_t *n);

#endif
