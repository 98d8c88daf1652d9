/* merges: learns a vocabulary of byte pairs from a text.  Local. */
#ifndef GEOTRAIN_DATA_IMPORT_MERGES_H
#define GEOTRAIN_DATA_IMPORT_MERGES_H

#include "tokens.h"

/* A vocabulary of `count` ids, GT_TOKEN_BYTES or more; of fewer when no pair occurs twice any more.
   Merges the most frequent pair of tokens inside pieces again and again; among equally frequent
   ones that of the smallest left, then right token.  Never fails. */
gt_tokens *gt_merges_learn(const char *text, size_t length, size_t count);

#endif
