/* Progress of a long command: a line on stderr every 10 s. */
#include "geotrain/base.h"

#include <stdarg.h>
#include <stdio.h>

#define EVERY ((gt_ns)10000000000)

static struct {
  char what[96], part[160]; /* the command, and its position */
  gt_ns began, said;
} progress;

void gt_progress_begin(const char *what) {
  snprintf(progress.what, sizeof progress.what, "%s", what);
  progress.began = progress.said = gt_now();
}

void gt_progress_part(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(progress.part, sizeof progress.part, format, args);
  va_end(args);
}

void gt_progress_tell(const char *format, ...) {
  char text[160];
  va_list args;
  if (!progress.what[0] || gt_now() - progress.said < EVERY) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  progress.said = gt_now();
  gt_log(GT_LOG_INFO, "%s: %.0f s so far; %s%s", progress.what,
         gt_seconds(progress.said - progress.began), progress.part, text);
}
