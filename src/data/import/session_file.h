/* session_file: reads sessions, lists of the numbers of items, from a pickle or a text, gzip or
   plain.  Local. */
#ifndef GEOTRAIN_DATA_IMPORT_SESSION_FILE_H
#define GEOTRAIN_DATA_IMPORT_SESSION_FILE_H

#include "bytes.h"

#define GT_ITEMS_MAX 1000000 /* the highest number of an item; the lowest is 1 */

/* A session of n items.  paired: the last is the target that the file has for the others. */
typedef struct {
  const int32_t *items; /* NULL: there are no more sessions */
  size_t n;
  bool paired;
} gt_session;

typedef struct gt_session_file gt_session_file;

/* A file whose first byte begins a pickle of a list or tuple is a pickle: a list of sessions, or a
   pair of such a list and the list of their targets.  Others are texts: a session a line, numbers
   separated by blanks.  GT_ERR_DATA names the file and what is wrong. */
gt_status gt_session_file_open(gt_session_file **out, const char *path);
const char *gt_session_file_path(const gt_session_file *file);
/* The next session; valid until the next call.  Empty lines of a text are left out.  GT_ERR_DATA
   names the file and the place: what is no number of an item, or not of this form. */
gt_status gt_session_file_next(gt_session_file *file, gt_session *session);
/* Where the last session is, for messages: "line 3", or "session 3, at byte 20,". */
const char *gt_session_file_where(const gt_session_file *file);
/* Goes back to the first session. */
gt_status gt_session_file_rewind(gt_session_file *file);
void gt_session_file_close(gt_session_file *file);

#endif
