/* bytes: reads a file sequentially, gzip or plain, or a member of a zip archive; every failure
   gives a one-sentence error.  Local. */
#pragma once

#include "geotrain/data.h"

typedef struct gt_bytes gt_bytes;

/* Returns the path FOLDER/NAME.gz if it exists, else FOLDER/NAME; the caller frees it.  NULL if
   neither exists. */
char *gt_bytes_find(const char *folder, const char *name);
/* Opens a file.  GT_ERR_DATA names the file and the system's reason. */
gt_status gt_bytes_open(gt_bytes **out, const char *path);
/* Opens a member of a zip archive, for gt_bytes_read, _whole and _close; *out NULL: the archive
   does not have it.  Errors as gt_zip_open. */
gt_status gt_bytes_open_member(gt_bytes **out, const char *archive, const char *name);
const char *gt_bytes_path(const gt_bytes *bytes);
/* Reads the next n bytes, or fewer at the end of the file; -1 with an error text if it cannot be
   read. */
int64_t gt_bytes_read(gt_bytes *bytes, void *out, size_t n);
/* Returns the next byte; GT_BYTES_END at the end of the file; GT_BYTES_FAILED with an error text if
   it cannot be read or, at the end, is not complete. */
enum { GT_BYTES_END = -1, GT_BYTES_FAILED = -2 };
int gt_bytes_next(gt_bytes *bytes);
/* Puts back the byte that gt_bytes_next returned last; no effect if it was none. */
void gt_bytes_back(gt_bytes *bytes, int byte);
/* Checks, after the last byte, that gzip data or a member are complete, including the checksum.
   Plain files always pass. */
gt_status gt_bytes_whole(gt_bytes *bytes);
/* Goes back to the first byte. */
gt_status gt_bytes_rewind(gt_bytes *bytes);
void gt_bytes_close(gt_bytes *bytes);
