/* One line per run: on a terminal redrawn in place, in a log printed on changes. */
#include "internal.h"

#include <string.h>

#define LOG_WIDTH ((size_t)400)

struct gt_board {
  FILE *to;
  bool in_place;
  size_t rows; /* drawn rows, with the cursor at the end of the last; 0: cursor on a new line */
  size_t n;    /* number of lines when they were drawn */
};

bool gt_board_in_place(FILE *to, gt_live_mode mode) {
  return mode == GT_LIVE_LINE || (mode == GT_LIVE_AUTO && gt_terminal_reaches(to));
}

gt_board *gt_board_create(FILE *to, gt_live_mode mode) {
  gt_board *b = GT_NEW(gt_board);
  b->to = to;
  b->in_place = gt_board_in_place(to, mode);
  return b;
}

void gt_board_close(gt_board *b) {
  if (!b) return;
  gt_board_end(b);
  gt_free(b);
}

size_t gt_board_width(const gt_board *b) {
  return b->in_place ? gt_terminal_width(b->to) : LOG_WIDTH;
}

size_t gt_board_rows(const gt_board *b) {
  const size_t rows = gt_terminal_rows(b->to);
  return !b->in_place ? SIZE_MAX : rows > 1 ? rows - 1 : 1;
}

static void remember(gt_board_line *line) {
  memcpy(line->shown.text, line->text, sizeof line->text);
  line->shown.phase = line->phase;
  line->shown.any = true;
  line->shown.at = gt_now();
}

/* ---- in a log ---- */

static void log_line(gt_board *b, gt_board_line *line) {
  bool news = !line->shown.any || line->shown.phase != line->phase,
       due = gt_now() - line->shown.at >= gt_from_seconds(line->every_s);
  if (!line->text[0] || strcmp(line->shown.text, line->text) == 0 || (!news && !due)) return;
  fprintf(b->to, "%s\n", line->text);
  remember(line);
}

/* ---- in place ---- */

/* Returns the bytes of the text that fit.  A multi-byte character counts as one column and is not
   split; a color, ESC [ ... m, takes none. */
static size_t fitting(const char *text, size_t columns) {
  size_t used = 0, at = 0;
  for (; text[at]; at++) {
    if (text[at] == '\033') {
      at += strcspn(text + at, "m");
      if (!text[at]) break;
      continue;
    }
    bool begins = ((unsigned char)text[at] & 0xc0) != 0x80;
    if (begins && ++used >= columns) break;
  }
  return at;
}

static void draw_row(gt_board *b, size_t row, const char *text, size_t width) {
  fprintf(b->to, "%s\r%.*s%s\033[K", row > 0 ? "\n" : "", (int)fitting(text, width), text,
          strchr(text, '\033') ? "\033[0m" : "");
}

/* Draws the lines.  If they do not fit, draws those of runs that have not ended; the last row
   counts the rest. */
static size_t draw_rows(gt_board *b, gt_board_line *const *lines, size_t n, size_t room,
                        size_t width) {
  char rest[96];
  size_t drawn = 0, over = 0, shown = 0;
  for (size_t i = 0; i < n; i++) {
    shown += lines[i]->text[0] != '\0';
    over += lines[i]->text[0] && lines[i]->over;
  }
  bool fits = shown <= room;
  for (size_t i = 0; i < n; i++)
    if (lines[i]->text[0] && (fits || (!lines[i]->over && drawn + 1 < room)))
      draw_row(b, drawn++, lines[i]->text, width);
  if (fits) return drawn;
  snprintf(rest, sizeof rest, "and %zu more runs; %zu of %zu have ended", shown - drawn, over,
           shown);
  draw_row(b, drawn++, rest, width);
  return drawn;
}

static bool has_changed(const gt_board *b, gt_board_line *const *lines, size_t n) {
  if (b->rows == 0 || n != b->n) return true;
  for (size_t i = 0; i < n; i++)
    if (strcmp(lines[i]->shown.text, lines[i]->text) != 0) return true;
  return false;
}

static void draw(gt_board *b, gt_board_line *const *lines, size_t n) {
  if (!has_changed(b, lines, n)) return;
  if (b->rows > 1) fprintf(b->to, "\033[%zuA", b->rows - 1);
  b->rows = draw_rows(b, lines, n, gt_board_rows(b), gt_terminal_width(b->to));
  b->n = n;
  fputs("\033[J", b->to); /* clears rows that are no longer drawn */
  for (size_t i = 0; i < n; i++) remember(lines[i]);
}

void gt_board_show(gt_board *b, gt_board_line *const *lines, size_t n) {
  if (b->in_place)
    draw(b, lines, n);
  else
    for (size_t i = 0; i < n; i++) log_line(b, lines[i]);
  fflush(b->to);
}

void gt_board_end(gt_board *b) {
  if (b->rows == 0) return;
  fputc('\n', b->to);
  fflush(b->to);
  b->rows = 0;
}
