/* Status: the text of the calling thread's last error. */
#include "geotrain/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void (*bug_handler)(const char *text);
static _Thread_local char last_error[GT_ERROR_TEXT_MAX];

/* An error is kept on one line: texts from libraries may contain line breaks, and errors go into
   logs and records. */
static void flatten(char *text) {
  for (char *c = text; *c; c++) {
    if (*c == '\n' || *c == '\r' || *c == '\t') *c = ' ';
  }
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

gt_status gt_fail(gt_status code, const char *file, int line, const char *format, ...) {
  char text[GT_ERROR_TEXT_MAX]; /* not last_error itself: the arguments may point to it */
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (length < 0) snprintf(text, sizeof text, "an error whose text could not be formatted");
  /* Only internal faults name a source line; in other errors it is of no use to users. */
  if (code == GT_ERR_FAULT && length >= 0 && (size_t)length < sizeof text) {
    snprintf(text + length, sizeof text - (size_t)length, " (%s:%d)", base_name(file), line);
  }
  flatten(text);
  memcpy(last_error, text, sizeof text);
  return code;
}

const char *gt_error_text(void) {
  return last_error;
}

void gt_on_bug(void (*handler)(const char *text)) {
  bug_handler = handler;
}

void gt_bug(const char *format, ...) {
  char text[GT_ERROR_TEXT_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (bug_handler) bug_handler(text);
  gt_log(GT_LOG_ERROR, "broken invariant: %s", text);
  _exit(GT_ERR_FAULT);
}
