/* pieces: cuts texts into pieces, across which no pair of tokens is merged.  Local; never fails. */
#ifndef GEOTRAIN_DATA_PIECES_H
#define GEOTRAIN_DATA_PIECES_H

#include "geotrain/base.h"

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
