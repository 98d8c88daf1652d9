/* Progress of a long command: a bar on a terminal, else a line on stderr every 10 s. */
#include "geotrain/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define EVERY      ((gt_ns)10000000000)
#define DRAW_EVERY ((gt_ns)200000000)

static struct {
  char what[96], part[160]; /* the command, and its position */
  gt_ns began, said;
  const char *unit; /* of the bar, which was begun and drawn at these times */
  gt_ns unit_began, drawn;
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

static void draw(size_t done, size_t all, const char *unit) {
  static const char full[] = "##############################";
  const int width = (int)sizeof full - 1, filled = all > 0 ? (int)(done * (size_t)width / all) : 0;
  const double spent = gt_seconds(gt_now() - progress.unit_began);
  char text[160];
  if (all > 0)
    snprintf(text, sizeof text, "%s: [%.*s%*s] %zu of %zu %s, %.0f s left", progress.what, filled,
             full, width - filled, "", done, all, unit,
             done > 0 ? spent * (double)(all - done) / (double)done : 0.0);
  else
    snprintf(text, sizeof text, "%s: %zu %s", progress.what, done, unit);
  gt_log_draw(text);
}

void gt_progress_of(size_t done, size_t all, const char *unit) {
  const gt_ns now = gt_now();
  if (progress.unit != unit) progress.unit = unit, progress.unit_began = now;
  if (!progress.what[0] || now - progress.drawn < DRAW_EVERY) return;
  progress.drawn = now;
  if (isatty(STDERR_FILENO))
    draw(done < all || all == 0 ? done : all, all, unit);
  else if (all > 0)
    gt_progress_tell("%zu of %zu %s", done, all, unit);
  else
    gt_progress_tell("%zu %s", done, unit);
}

void gt_progress_end(void) {
  gt_log_draw("");
}
