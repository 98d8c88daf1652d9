/* data_text: the tokens of texts.  Layer 3.  Everything is local. */
#pragma once

#include "geotrain/base.h"

/* A vocabulary: ids 0 to 255 are the bytes; id 256 + k is the concatenation of the two tokens of
   merge k (byte pair encoding: Sennrich, Haddow and Birch 2016, over bytes as in GPT-2).  Any bytes
   can be encoded, and decoding restores them. */
typedef struct gt_tokens gt_tokens;

/* Creates a vocabulary of the n merges (n,2), copied: merge k joins two tokens below 256 + k into
   one of at most 64 bytes.  GT_ERR_DATA for an invalid merge; the error text begins with `path`. */
gt_status gt_tokens_create(gt_tokens **out, const char *path, const int64_t *merges, size_t n);
/* Reads the vocabulary of a data set of text.  GT_ERR_DATA names the file: it cannot be read, holds
   no text, or has invalid merges. */
gt_status gt_tokens_open(gt_tokens **out, const char *path);
void gt_tokens_close(gt_tokens *tokens);
/* Returns the number of ids. */
size_t gt_tokens_count(const gt_tokens *tokens);
/* Returns the *n merges (n,2); owned by the vocabulary. */
const int64_t *gt_tokens_merges(const gt_tokens *tokens, size_t *n);
/* Returns its SHA-256 in hex digits, as gt_dataset_info.vocabulary_sha256; owned by the
   vocabulary. */
const char *gt_tokens_hash(const gt_tokens *tokens);
/* Writes the ids of a text of n bytes; ids has room for n.  Returns their number. */
size_t gt_tokens_encode(const gt_tokens *tokens, const char *text, size_t n, int32_t *ids);
/* Returns the *n bytes of an id below gt_tokens_count, without a final NUL; owned by the
   vocabulary. */
const char *gt_tokens_bytes(const gt_tokens *tokens, int32_t id, size_t *n);
