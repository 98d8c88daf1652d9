/* lines: reads a text line by line, gzip or plain.  Local. */
#pragma once

#include "bytes.h"

#define GT_LINE_MAX ((size_t)1 << 20) /* bytes */

typedef struct gt_lines gt_lines;

/* Opens a file.  GT_ERR_DATA as for gt_bytes_open. */
gt_status gt_lines_open(gt_lines **out, const char *path);
const char *gt_lines_path(const gt_lines *lines);
/* Reads the next line without its end (LF or CR LF), the first without a byte order mark; NULL
   after the last; valid until the next call.  GT_ERR_DATA names the file and the line: it cannot be
   read, is longer than GT_LINE_MAX, or has a NUL byte. */
gt_status gt_lines_next(gt_lines *lines, const char **text);
/* Returns the number of the last line read, from 1. */
size_t gt_lines_number(const gt_lines *lines);
/* Goes back to the first line. */
gt_status gt_lines_rewind(gt_lines *lines);
void gt_lines_close(gt_lines *lines);
