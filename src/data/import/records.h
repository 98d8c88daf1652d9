/* records: reads comma-separated values (RFC 4180), gzip or plain, row by row.  Local. */
#ifndef GEOTRAIN_DATA_IMPORT_RECORDS_H
#define GEOTRAIN_DATA_IMPORT_RECORDS_H

#include "geotrain/data.h"

#define GT_RECORD_FIELDS ((size_t)4096) /* fields of a row, at most */

typedef struct gt_records gt_records;

/* Opens a file.  GT_ERR_DATA as for gt_bytes_open. */
gt_status gt_records_open(gt_records **out, const char *path);
/* Reads the next row that is not empty into its *n fields, without their quotes; valid until the
   next call; 0 fields: there is none.  Line ends and tabs in fields become blanks, and a
   field of blanks only is empty.  A byte order mark at the start of the file is skipped.
   GT_ERR_DATA names the file and the line, also if the row is not UTF-8; with fields, the next row
   can be read. */
gt_status gt_records_next(gt_records *records, char ***fields, size_t *n);
/* Returns the line at which the last row begins, from 1. */
size_t gt_records_line(const gt_records *records);
/* True if a field is a decimal number that float32 can hold; *out is its value. */
bool gt_records_number(const char *text, double *out);
void gt_records_close(gt_records *records);

#endif
