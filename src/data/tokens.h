/* tokens: the internal interface of byte-pair vocabularies.  Local; pairs and pieces never fail. */
#pragma once

#include "geotrain/data_text.h"
#include "h5.h"

/* Bytes are tokens 0 to GT_TOKEN_BYTES - 1. */
enum { GT_TOKEN_BYTES = 256 };

/* Reads the vocabulary of an open file; *out is NULL if it has none.  GT_ERR_DATA as for
   gt_tokens_open. */
gt_status gt_tokens_read(gt_tokens **out, hid_t file, const char *path);

/* Open addressing; initialised to zero. */
typedef struct {
  uint64_t *keys; /* 0: empty; else a pair plus 1 */
  uint32_t *values;
  size_t n, nslots; /* nslots: 0 or a power of two, more than twice n */
} gt_pairs;

/* Returns a pair as one number, ordered by left, then right token. */
static inline uint64_t gt_pair_of(int32_t left, int32_t right) {
  return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* Returns the value of a pair; NULL: not found. */
const uint32_t *gt_pairs_find(const gt_pairs *pairs, uint64_t pair);
/* Adds a pair that is not in the table. */
void gt_pairs_add(gt_pairs *pairs, uint64_t pair, uint32_t value);
void gt_pairs_close(gt_pairs *pairs);

/* Maximum bytes of a piece; longer ones are split. */
enum { GT_PIECE_MAX = 64 };

/* Returns the length of the first piece of a text of n > 0 bytes.  docs/data-format.md defines
   pieces. */
size_t gt_piece_next(const char *text, size_t n);

/* The distinct pieces of a text, in the order of their first occurrence. */
typedef struct {
  const char *text; /* in the counted text */
  size_t length;
  uint64_t count;
} gt_piece;
/* Returns an array of *n pieces, which the caller frees. */
gt_piece *gt_pieces_count(const char *text, size_t length, size_t *n);
