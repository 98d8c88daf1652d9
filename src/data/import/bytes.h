/* bytes: a file read front to back, gzip or plain, its failures said in one sentence.  Local. */
#ifndef GEOTRAIN_DATA_IMPORT_BYTES_H
#define GEOTRAIN_DATA_IMPORT_BYTES_H

#include "geotrain/data.h"

typedef struct gt_bytes gt_bytes;

/* FOLDER/NAME.gz or FOLDER/NAME, whichever is there, in that order: a path that the caller frees; NULL when neither is. */
char *gt_bytes_find(const char *folder, const char *name);
/* GT_ERR_DATA names the file and the system's reason. */
gt_status gt_bytes_open(gt_bytes **out, const char *path);
const char *gt_bytes_path(const gt_bytes *bytes);
/* Reads the next n bytes, or at the end of the file fewer; -1 with a sentence where it cannot be read. */
int64_t gt_bytes_read(gt_bytes *bytes, void *out, size_t n);
/* After a short read: was that the end of whole gzip data, check sum and all (plain files: always)? */
gt_status gt_bytes_whole(gt_bytes *bytes);
/* Goes back to the first byte. */
gt_status gt_bytes_rewind(gt_bytes *bytes);
void gt_bytes_close(gt_bytes *bytes);

#endif
