/* Log: whole lines on stderr, by rank or once per job. */
#include "geotrain/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* By default the process prints the lines of gt_log_job; commands of one process never call
   gt_log_identity. */
static struct {
  char who[64];
  bool speaks_for_job;
  gt_log_level threshold;
} identity = {.speaks_for_job = true, .threshold = GT_LOG_INFO};

void gt_log_identity(const char *who, bool speaks_for_job) {
  snprintf(identity.who, sizeof identity.who, "%s", who ? who : "");
  identity.speaks_for_job = speaks_for_job;
}

void gt_log_threshold(gt_log_level level) {
  identity.threshold = level;
}

static bool drawn; /* a line that has no end */

void gt_log_draw(const char *text) {
  if (*text || drawn) fprintf(stderr, "\r%s\033[K", text);
  drawn = *text != '\0';
}

/* One fwrite per line, so that lines of different ranks and threads do not mix. */
static void print_line(const char *who, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
static void print_line(const char *who, const char *format, va_list args) {
  char line[2 * GT_ERROR_TEXT_MAX];
  gt_log_draw("");
  int head = snprintf(line, sizeof line, "geotrain: %s%s", who, who[0] ? ": " : "");
  size_t used = (size_t)head;
  int body = vsnprintf(line + used, sizeof line - used, format, args);
  used += body > 0 ? strlen(line + used) : 0;
  line[used++] = '\n'; /* replaces the NUL */
  fwrite(line, 1, used, stderr);
}

void gt_log(gt_log_level level, const char *format, ...) {
  if (level > identity.threshold) return;
  va_list args;
  va_start(args, format);
  print_line(identity.who, format, args);
  va_end(args);
}

void gt_log_job(gt_log_level level, const char *format, ...) {
  if (level > identity.threshold || !identity.speaks_for_job) return;
  va_list args;
  va_start(args, format);
  print_line("", format, args);
  va_end(args);
}

void gt_log_warning(const char *text) {
  gt_log(GT_LOG_WARN, "%s", text);
}
