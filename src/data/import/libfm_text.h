/* libfm_text: reader of libFM's text (Rendle, Factorization Machines with libFM, 2012) where every feature is an id: lines `label id:1 id:1 ...`.  Local. */
#ifndef GEOTRAIN_DATA_IMPORT_LIBFM_TEXT_H
#define GEOTRAIN_DATA_IMPORT_LIBFM_TEXT_H

#include "bytes.h"

#define GT_LIBFM_MAX_FIELDS 65536

typedef struct gt_libfm gt_libfm;

/* Opens a file, gzip or plain.  GT_ERR_DATA as gt_bytes_open. */
gt_status gt_libfm_open(gt_libfm **out, const char *path);
const char *gt_libfm_path(const gt_libfm *libfm);
/* The next line's label, 0 or 1, and its ids, *fields of them, into `ids`, which has room for GT_LIBFM_MAX_FIELDS; *more is false, and nothing else is written, at
   the end of the file.  Spaces and carriage returns at the end of a line, and empty lines at the end of the file, are passed over.
   GT_ERR_DATA names the file, the line, what was found and what is needed. */
gt_status gt_libfm_next(gt_libfm *libfm, bool *more, int32_t *label, int32_t *ids, size_t *fields);
/* The number of the line that was read last, from 1. */
size_t gt_libfm_line(const gt_libfm *libfm);
/* Goes back to the first line. */
gt_status gt_libfm_rewind(gt_libfm *libfm);
void gt_libfm_close(gt_libfm *libfm);

#endif
