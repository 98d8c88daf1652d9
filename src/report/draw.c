/* Draws a figure as SVG: lines with axes, or stacked bars.  Colours of Okabe and Ito (2008), which
   people with any colour vision can tell apart; lines also differ in their dashes. */
#include <math.h>
#include <string.h>

#include "internal.h"

#define WIDTH  680.0
#define LEFT   64.0
#define RIGHT  30.0
#define TOP    12.0
#define HEIGHT 250.0 /* of the plot of lines */
#define BAR    26.0
#define KEY    20.0 /* height of a row of the key */
#define HUES   8

#define POINTS_MAX ((size_t)600) /* drawn of a line */
#define KEY_COLUMN ((size_t)42)  /* characters of a name in one of two columns */
#define WIDE       ((size_t)90)  /* characters over the whole width */

const char gt_report_style[] =
    ":root{--ink:#1a1a1a;--paper:#fff;--soft:#d0d0d0;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;"
    "--c3:#a3507f;--c4:#7a6a00;--c5:#56b4e9;--c6:#e69f00;--c7:#555}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--paper:#16181b;--soft:#454a50;"
    "--c0:#56b4e9;--c1:#ff8c42;--c2:#2fd0a0;--c3:#e39ac4;--c4:#f0e442;--c5:#8ecdf5;--c6:#e69f00;"
    "--c7:#aaa}}\n"
    "@media print{:root{--ink:#000;--paper:#fff;--soft:#ccc;--c0:#0072b2;--c1:#d55e00;"
    "--c2:#009e73;--c3:#a3507f;--c4:#7a6a00;--c5:#56b4e9;--c6:#e69f00;--c7:#555}}\n"
    "svg{background:var(--paper);font:12px sans-serif;max-width:100%;height:auto}\n"
    "svg text{fill:var(--ink)}svg .grid{stroke:var(--soft);stroke-width:1;fill:none}\n"
    "svg .line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
    "svg .limit{stroke-width:1;stroke-dasharray:2 3}\n";

static const char *const dashes[] = {"", "6 3", "2 2", "8 3 2 3"};

void gt_report_escape(FILE *to, const char *text) {
  for (; *text; text++) switch (*text) {
    case '&':
      fputs("&amp;", to);
      break;
    case '<':
      fputs("&lt;", to);
      break;
    case '>':
      fputs("&gt;", to);
      break;
    case '"':
      fputs("&quot;", to);
      break;
    default:
      fputc((unsigned char)*text < ' ' && *text != '\n' ? ' ' : *text, to);
    }
}

const char *gt_report_short(char buf[32], double value) {
  const double size = fabs(value);
  if (!isfinite(value))
    snprintf(buf, 32, "-");
  else if (size >= 1e12 || (size > 0 && size < 1e-3))
    snprintf(buf, 32, "%.3g", value);
  else if (size >= 1000)
    snprintf(buf, 32, "%.0f", value);
  else
    snprintf(buf, 32, "%.4g", value);
  return buf;
}

/* ---- scales ---------------------------------------------------------------------------------- */

typedef struct {
  double low, high, step; /* in units of the labels */
} scale;

/* Returns a scale from and to multiples of its step, with 4 to 8 steps. */
static scale scale_of(double low, double high) {
  if (!(high > low)) high = low + (low != 0 ? fabs(low) : 1);
  const double rough = (high - low) / 5, power = pow(10, floor(log10(rough))), m = rough / power;
  const double step = power * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
  return (scale){floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step, step};
}

static double place(const scale *s, double value, double from, double to) {
  return from + (value - s->low) / (s->high - s->low) * (to - from);
}

/* Finds the scales of lines.  x, and y of rates, begin at 0. */
static void find_scales(const report_figure *f, scale *x, scale *y) {
  double low = INFINITY, high = -INFINITY, last = 0;
  for (size_t i = 0; i < f->n; i++) {
    const report_series *s = &f->series[i];
    if (isfinite(s->limit)) high = fmax(high, s->limit);
    for (size_t k = 0; k < s->n; k++) {
      low = fmin(low, s->points[k].y);
      high = fmax(high, s->points[k].y);
      last = fmax(last, s->points[k].x);
    }
  }
  if (f->steps) low = 0;
  *x = scale_of(0, last * f->x_scale);
  *y = scale_of(low * f->y_scale, high * f->y_scale);
}

/* ---- parts of a figure ----------------------------------------------------------------------- */

static void draw_text(FILE *to, double x, double y, const char *anchor, const char *text) {
  fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
  gt_report_escape(to, text);
  fputs("</text>\n", to);
}

static size_t characters(const char *text) {
  size_t n = 0;
  for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
  return n;
}

/* As draw_text, from x on; of a text of more than `most` characters, the end. */
static void draw_end(FILE *to, double x, double y, const char *text, size_t most) {
  size_t left_out = characters(text) > most ? characters(text) - most : 0;
  fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"start\">%s", x, y,
          left_out ? "\xe2\x80\xa6" : "");
  for (; left_out > 0; left_out--)
    while (((unsigned char)*++text & 0xc0) == 0x80) continue;
  gt_report_escape(to, text);
  fputs("</text>\n", to);
}

static void grid_x(FILE *to, const scale *x, double bottom) {
  char number[32];
  for (int i = 0; x->low + i * x->step <= x->high + x->step / 2; i++) {
    const double value = x->low + i * x->step, at = place(x, value, LEFT, WIDTH - RIGHT);
    fprintf(to, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", at, TOP, bottom);
    draw_text(to, at, bottom + 16, "middle", gt_report_short(number, value));
  }
}

static void grid_y(FILE *to, const scale *y, double bottom) {
  char number[32];
  for (int i = 0; y->low + i * y->step <= y->high + y->step / 2; i++) {
    const double value = y->low + i * y->step, at = place(y, value, bottom, TOP);
    fprintf(to, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", LEFT, at, WIDTH - RIGHT);
    draw_text(to, LEFT - 6, at + 4, "end", gt_report_short(number, value));
  }
}

static void stroke(FILE *to, size_t i) {
  fprintf(to, " style=\"stroke:var(--c%zu)\" stroke-dasharray=\"%s\"", i % HUES,
          dashes[(i + i / HUES) % (sizeof dashes / sizeof *dashes)]);
}

/* Returns the mean of a line of steps from point a to point b, over x. */
static double mean_of(const report_series *s, size_t a, size_t b) {
  const report_point *p = s->points;
  double sum = 0;
  for (size_t k = a; k < b; k++) sum += p[k].y * (p[k + 1].x - p[k].x);
  return p[b].x > p[a].x ? sum / (p[b].x - p[a].x) : p[a].y;
}

/* Returns every k-th point and the last one, at most POINTS_MAX + 1; steps become means, so that
   their sum over x is that of all points.  The caller frees them. */
static report_point *thinned(const report_figure *f, const report_series *s, size_t *n) {
  const size_t each = (s->n + POINTS_MAX - 1) / POINTS_MAX;
  report_point *points = GT_NEW_ARRAY(report_point, s->n / each + 2);
  *n = 0;
  for (size_t k = 0; k < s->n; k += each) {
    points[*n] = s->points[k];
    if (f->steps && each > 1) points[*n].y = mean_of(s, k, k + each < s->n ? k + each : s->n - 1);
    ++*n;
  }
  if ((s->n - 1) % each != 0) points[(*n)++] = s->points[s->n - 1];
  return points;
}

static void draw_line(FILE *to, const report_figure *f, size_t i, const scale *x, const scale *y) {
  const report_series *s = &f->series[i];
  const double bottom = TOP + HEIGHT;
  size_t n;
  report_point *points = thinned(f, s, &n);
  fputs("<path class=\"line\"", to);
  stroke(to, i);
  fputs(" d=\"", to);
  for (size_t k = 0; k < n; k++) {
    const double at = place(x, points[k].x * f->x_scale, LEFT, WIDTH - RIGHT);
    const double height = place(y, points[k].y * f->y_scale, bottom, TOP);
    if (k == 0)
      fprintf(to, "M%.1f %.1f", at, height);
    else if (f->steps)
      fprintf(to, "H%.1fV%.1f", at, height);
    else
      fprintf(to, "L%.1f %.1f", at, height);
  }
  gt_free(points);
  fputs("\"/>\n", to);
  if (!isfinite(s->limit)) return;
  const double height = place(y, s->limit * f->y_scale, bottom, TOP);
  fprintf(to, "<path class=\"limit\" style=\"stroke:var(--c%zu)\" d=\"M%.1f %.1fH%.1f\"/>\n",
          i % HUES, LEFT, height, WIDTH - RIGHT);
}

/* The key has an entry per line, or per part of a bar. */
static size_t key_entries(const report_figure *f) {
  return f->parts > 0 ? f->parts : f->n;
}

static size_t key_columns(const report_figure *f) {
  for (size_t i = 0; i < key_entries(f); i++)
    if (characters(f->series[i].name) > KEY_COLUMN) return 1;
  return 2;
}

static double key_height(const report_figure *f) {
  const size_t columns = key_columns(f), rows = (key_entries(f) + columns - 1) / columns;
  return KEY * (double)rows;
}

static void draw_key(FILE *to, const report_figure *f, double top) {
  const size_t columns = key_columns(f);
  for (size_t i = 0; i < key_entries(f); i++) {
    const double x = LEFT + (i % columns ? (WIDTH - LEFT) / 2 : 0);
    const size_t row = i / columns;
    const double y = top + KEY * (double)row + KEY / 2;
    if (f->parts > 0)
      fprintf(
          to,
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"10\" style=\"fill:var(--c%zu)\"/>\n",
          x, y - 5, i % HUES);
    else {
      fputs("<path class=\"line\"", to);
      stroke(to, i);
      fprintf(to, " d=\"M%.1f %.1fh24\"/>\n", x, y);
    }
    draw_end(to, x + (f->parts > 0 ? 20 : 30), y + 4, f->series[i].name, WIDE);
  }
}

/* ---- lines and bars -------------------------------------------------------------------------- */

static double draw_lines(FILE *to, const report_figure *f) {
  const double bottom = TOP + HEIGHT;
  scale x, y;
  find_scales(f, &x, &y);
  grid_x(to, &x, bottom);
  grid_y(to, &y, bottom);
  for (size_t i = 0; i < f->n; i++) draw_line(to, f, i, &x, &y);
  return bottom;
}

static double bar_end(const report_figure *f, size_t bar) {
  double sum = 0;
  for (size_t i = 0; i < f->n; i++)
    for (size_t k = 0; k < f->series[i].n; k++)
      if (f->series[i].points[k].x == (double)bar) sum += f->series[i].points[k].y;
  return sum;
}

static void draw_bar(FILE *to, const report_figure *f, size_t bar, const scale *x, double top) {
  double from = 0;
  draw_end(to, LEFT, top + 12, f->bars[bar].name, WIDE);
  for (size_t i = 0; i < f->n; i++)
    for (size_t k = 0; k < f->series[i].n; k++) {
      const report_point *p = &f->series[i].points[k];
      if (p->x != (double)bar || p->y <= 0) continue;
      const double a = place(x, from * f->y_scale, LEFT, WIDTH - RIGHT);
      from += p->y;
      const double b = place(x, from * f->y_scale, LEFT, WIDTH - RIGHT);
      fprintf(to,
              "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
              "style=\"fill:var(--c%zu)\"><title>",
              a, top + 16, b - a, BAR - 8, i % f->parts % HUES);
      gt_report_escape(to, f->series[i].name);
      fputs("</title></rect>\n", to);
    }
}

static double draw_bars(FILE *to, const report_figure *f) {
  const double bottom = TOP + (BAR + 14) * (double)f->nbars;
  double most = 0;
  for (size_t b = 0; b < f->nbars; b++) most = fmax(most, bar_end(f, b));
  const scale x = scale_of(0, most * f->y_scale);
  grid_x(to, &x, bottom);
  for (size_t b = 0; b < f->nbars; b++) draw_bar(to, f, b, &x, TOP + (BAR + 14) * (double)b);
  return bottom;
}

/* The alternative text: the length of each bar, the mean of each line of steps, or the last value
   of each other line. */
static void describe(FILE *to, const report_figure *f) {
  char number[32];
  fputs("<desc>", to);
  for (size_t i = 0; i < (f->parts > 0 ? f->nbars : f->n); i++) {
    const report_series *s = &f->series[f->parts > 0 ? 0 : i];
    const double value = f->parts > 0 ? bar_end(f, i)
                         : f->steps   ? mean_of(s, 0, s->n - 1)
                                      : s->points[s->n - 1].y;
    gt_report_escape(to, f->parts > 0 ? f->bars[i].name : s->name);
    fprintf(to, ": %s%s; ",
            f->parts > 0 ? ""
            : f->steps   ? "mean "
                         : "at the end ",
            gt_report_short(number, value * f->y_scale));
  }
  fputs("horizontal axis: ", to);
  gt_report_escape(to, f->parts > 0 ? f->y_label : f->x_label);
  if (f->parts == 0) {
    fputs("; vertical axis: ", to);
    gt_report_escape(to, f->y_label);
  }
  fputs("</desc>\n", to);
}

void gt_report_draw(FILE *to, const report_figure *f, bool alone) {
  const double plot = f->parts > 0 ? (BAR + 14) * (double)f->nbars : HEIGHT;
  const double height = TOP + plot + 44 + key_height(f);
  fprintf(to,
          "<svg%s viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\">\n<title>",
          alone ? " xmlns=\"http://www.w3.org/2000/svg\"" : "", WIDTH, height, WIDTH, height);
  gt_report_escape(to, f->title);
  fputs("</title>\n", to);
  describe(to, f);
  if (alone) fprintf(to, "<style>%s</style>\n", gt_report_style);
  const double bottom = f->parts > 0 ? draw_bars(to, f) : draw_lines(to, f);
  draw_text(to, (LEFT + WIDTH - RIGHT) / 2, bottom + 34, "middle",
            f->parts > 0 ? f->y_label : f->x_label);
  if (f->parts == 0) {
    fprintf(to, "<text transform=\"translate(14 %.1f) rotate(-90)\" text-anchor=\"middle\">",
            TOP + HEIGHT / 2);
    gt_report_escape(to, f->y_label);
    fputs("</text>\n", to);
  }
  draw_key(to, f, bottom + 42);
  fputs("</svg>\n", to);
}
