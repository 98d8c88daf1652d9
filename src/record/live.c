/* Progress output: one redrawn line on a terminal, a line at intervals in a log. */
#include "internal.h"

#include <math.h>
#include <string.h>

struct gt_live {
  FILE *to;
  gt_live_mode mode;
  gt_ns every, due;
  bool started, on_line, pending;
  gt_progress first, last;
};

char *gt_format_count(char *buf, size_t size, double value) {
  static const char *const units[] = {"", " k", " M", " G"};
  size_t unit = 0;
  if (!isfinite(value)) return snprintf(buf, size, "-"), buf;
  while (fabs(value) >= 1000 && unit < 3) {
    value /= 1000;
    unit++;
  }
  int digits = fabs(value) < 10 ? 2 : fabs(value) < 100 ? 1 : 0;
  snprintf(buf, size, "%.*f%s", digits, value, units[unit]);
  return buf;
}

char *gt_format_left(char *buf, size_t size, double s) {
  if (!isfinite(s) || s < 0 || s > 1e8) return snprintf(buf, size, "-:--"), buf;
  long long whole = (long long)(s + 0.5);
  if (whole < 3600)
    snprintf(buf, size, "%lld:%02lld", whole / 60, whole % 60);
  else
    snprintf(buf, size, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  return buf;
}

char *gt_format_ago(char *buf, size_t size, double s) {
  if (s < 120)
    snprintf(buf, size, "%.0f s", s);
  else if (s < 7200)
    snprintf(buf, size, "%.0f min", s / 60);
  else
    snprintf(buf, size, "%.1f h", s / 3600);
  return buf;
}

/* A number with 3 decimals, or '-'. */
static char *format_number(char *buf, size_t size, double value) {
  if (isfinite(value))
    snprintf(buf, size, fabs(value) < 1000 ? "%.3f" : "%.3g", value);
  else
    snprintf(buf, size, "-");
  return buf;
}

/* The parts of the line, from left to right; on a narrow terminal those with the highest `rank` are
   dropped first. */
enum { EPOCH, LOSS, ACCURACY, AUC, RECALL, SPEED, WAN, WAITING, LEFT, PARTS };
static const int rank[PARTS] = {[EPOCH] = 0,  [LEFT] = 1,     [LOSS] = 2,  [WAITING] = 3, [AUC] = 4,
                                [RECALL] = 4, [ACCURACY] = 5, [SPEED] = 6, [WAN] = 7};

static void join_parts(char *text, size_t room, char parts[PARTS][64]) {
  size_t used = 0, lengths[PARTS], total = 0;
  for (int i = 0; i < PARTS; i++) total += lengths[i] = strlen(parts[i]);
  for (int worst = PARTS - 1; worst > 0 && total + 1 > room; worst--)
    for (int i = 0; i < PARTS; i++)
      if (rank[i] == worst) {
        total -= lengths[i];
        lengths[i] = 0;
      }
  for (int i = 0; i < PARTS; i++) {
    size_t n = lengths[i] < room - 1 - used ? lengths[i] : room - 1 - used;
    memcpy(text + used, parts[i], n);
    used += n;
  }
  text[used] = '\0';
}

static void format_wan(char *text, size_t size, const gt_progress *p) {
  char out[32], in[32];
  gt_format_rate(out, sizeof out, isfinite(p->wan_bps) ? p->wan_bps : 0);
  if (isfinite(p->wan_in_bps))
    snprintf(text, size, "  WAN %s out, %s in, %lld in flight", out,
             gt_format_rate(in, sizeof in, p->wan_in_bps), (long long)p->in_flight);
  else
    snprintf(text, size, "  WAN %s", out);
}

void gt_live_format(char *text, size_t size, const gt_progress *p, double left_s, size_t width) {
  char parts[PARTS][64] = {{0}}, number[32];
  size_t room = width < size ? width : size, part = sizeof parts[0];
  if (room == 0) return;
  if (isfinite(p->epochs))
    snprintf(parts[EPOCH], part, "epoch %.2f/%g", p->epoch, p->epochs);
  else
    snprintf(parts[EPOCH], part, "step %lld  epoch %.2f  done %.0f%%", (long long)p->step, p->epoch,
             100 * p->done);
  snprintf(parts[LOSS], part, "  loss %s", format_number(number, sizeof number, p->loss));
  snprintf(parts[ACCURACY], part, "  acc %s", format_number(number, sizeof number, p->accuracy));
  if (isfinite(p->auc))
    snprintf(parts[AUC], part, "  auc %s", format_number(number, sizeof number, p->auc));
  if (isfinite(p->recall20))
    snprintf(parts[RECALL], part, "  recall@20 %.3f  mrr@20 %.3f", p->recall20, p->mrr20);
  snprintf(parts[SPEED], part, "  %s samples/s",
           gt_format_count(number, sizeof number, p->samples_per_s));
  format_wan(parts[WAN], part, p);
  snprintf(parts[WAITING], part, "  waiting %.0f%%", isfinite(p->waiting) ? 100 * p->waiting : 0);
  snprintf(parts[LEFT], part, "  left %s", gt_format_left(number, sizeof number, left_s));
  join_parts(text, room, parts);
}

gt_live *gt_live_create(FILE *to, gt_live_mode mode, double every_s) {
  gt_live *live = GT_NEW(gt_live);
  if (mode == GT_LIVE_AUTO) mode = gt_terminal_reaches(to) ? GT_LIVE_LINE : GT_LIVE_LOG;
  live->to = to;
  live->mode = mode;
  live->every = mode == GT_LIVE_LINE ? GT_SECOND / 5 : gt_from_seconds(every_s);
  live->due = mode == GT_LIVE_LINE ? 0 : gt_now() + live->every;
  return live;
}

double gt_live_left(const gt_progress *first, const gt_progress *last) {
  double gained = last->done - first->done, took = last->elapsed_s - first->elapsed_s;
  if (last->done >= 1) return 0;
  return gained > 0 && took > 0 ? took / gained * (1 - last->done) : NAN;
}

/* One fwrite per line, so that the output of several ranks does not mix. */
static void draw(gt_live *live) {
  char text[512], line[sizeof text + 16];
  size_t width = live->mode == GT_LIVE_LINE ? gt_terminal_width(live->to) : sizeof text;
  gt_live_format(text, sizeof text, &live->last, gt_live_left(&live->first, &live->last), width);
  int n = snprintf(line, sizeof line, live->mode == GT_LIVE_LINE ? "\r%s\033[K" : "%s\n", text);
  fwrite(line, 1, (size_t)n, live->to);
  fflush(live->to);
  live->on_line = live->mode == GT_LIVE_LINE;
  live->pending = false;
}

void gt_live_update(gt_live *live, const gt_progress *progress) {
  if (!live || live->mode == GT_LIVE_NONE) return;
  if (!live->started) live->first = *progress;
  live->started = live->pending = true;
  live->last = *progress;
  gt_ns now = gt_now();
  if (now < live->due) return;
  live->due = now + live->every;
  draw(live);
}

void gt_live_end(gt_live *live) {
  if (!live) return;
  if (live->on_line) {
    if (live->pending) draw(live);
    fputc('\n', live->to);
    fflush(live->to);
  }
  live->on_line = false;
  live->mode = GT_LIVE_NONE; /* the table follows */
}

void gt_live_close(gt_live *live) {
  gt_live_end(live);
  gt_free(live);
}
