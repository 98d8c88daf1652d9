/* tokens: vocabularies of byte pairs, for the other files of this part.  Local. */
#ifndef GEOTRAIN_DATA_TOKENS_H
#define GEOTRAIN_DATA_TOKENS_H

#include "geotrain/data_text.h"

/* Bytes are tokens 0 to GT_TOKEN_BYTES - 1. */
enum { GT_TOKEN_BYTES = 256 };

/* A vocabulary of the n merges (n,2), copied: merge k joins two tokens below GT_TOKEN_BYTES + k to
   one of at most GT_PIECE_MAX bytes.  GT_ERR_DATA, which begins with `path`, if one does not. */
gt_status gt_tokens_create(gt_tokens **out, const char *path, const int32_t *merges, size_t n);
/* The merges (gt_tokens_count - GT_TOKEN_BYTES, 2); owned by the vocabulary. */
const int32_t *gt_tokens_merges(const gt_tokens *tokens);

#endif
