/* libfm_text: reader of libFM's text format (Rendle, Factorization Machines with libFM, 2012),
   restricted to features that are ids: lines `label id:1 id:1 ...`.  Local. */
#ifndef GEOTRAIN_DATA_IMPORT_LIBFM_TEXT_H
#define GEOTRAIN_DATA_IMPORT_LIBFM_TEXT_H

#include "bytes.h"

#define GT_LIBFM_MAX_FIELDS 65536

typedef struct gt_libfm gt_libfm;

/* Opens a file, gzip or plain.  GT_ERR_DATA as for gt_bytes_open. */
gt_status gt_libfm_open(gt_libfm **out, const char *path);
const char *gt_libfm_path(const gt_libfm *libfm);
/* Reads the label of the next line, 0 or 1, and its *fields ids into `ids`, which has room for
   GT_LIBFM_MAX_FIELDS.  At the end of the file *more is false and nothing else is written.  Spaces
   and carriage returns at the end of a line, and empty lines at the end of the file, are ignored.
   GT_ERR_DATA names the file, the line, what was found and what is needed. */
gt_status gt_libfm_next(gt_libfm *libfm, bool *more, int32_t *label, int32_t *ids, size_t *fields);
/* The number of the last line read, from 1. */
size_t gt_libfm_line(const gt_libfm *libfm);
/* Goes back to the first line. */
gt_status gt_libfm_rewind(gt_libfm *libfm);
void gt_libfm_close(gt_libfm *libfm);

#endif
