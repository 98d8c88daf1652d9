/* tokens: vocabularies of byte pairs, for the other files of this part.  Local. */
#ifndef GEOTRAIN_DATA_TOKENS_H
#define GEOTRAIN_DATA_TOKENS_H

#include "geotrain/data_text.h"
#include "h5.h"

/* Bytes are tokens 0 to GT_TOKEN_BYTES - 1. */
enum { GT_TOKEN_BYTES = 256 };

/* The vocabulary of an open file; *out is NULL if it has none.  GT_ERR_DATA as for
   gt_tokens_open. */
gt_status gt_tokens_read(gt_tokens **out, hid_t file, const char *path);

#endif
