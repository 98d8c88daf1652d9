/* The table a person reads at the end of a run: regions, links, totals, in 100 columns. */
#include "rooms.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAX_COLUMNS 10
#define LINE_WIDTH  100
#define NAME_WIDTH  11

typedef struct {
  char text[40];
} cell;

/* rows x columns of cells; the first row is the heading.  The first column stands left, the others right. */
typedef struct {
  cell *cells;
  size_t rows, columns;
} table;

static table table_create(size_t rows, size_t columns, const char *const *heading) {
  table t = {GT_NEW_ARRAY(cell, (rows + 1) * columns), rows + 1, columns};
  for (size_t c = 0; c < columns; c++) snprintf(t.cells[c].text, sizeof t.cells[c].text, "%s", heading[c]);
  return t;
}

static char *cell_at(table *t, size_t row, size_t column) {
  return t->cells[(row + 1) * t->columns + column].text;
}

/* Two spaces between columns where they fit, else one. */
static void table_print(FILE *to, const table *t) {
  size_t widths[MAX_COLUMNS] = {0}, total = 0;
  for (size_t c = 0; c < t->columns; c++) {
    for (size_t r = 0; r < t->rows; r++) {
      size_t w = strlen(t->cells[r * t->columns + c].text);
      if (w > widths[c]) widths[c] = w;
    }
    total += widths[c];
  }
  int gap = total + 2 * (t->columns - 1) <= LINE_WIDTH ? 2 : 1;
  for (size_t r = 0; r < t->rows; r++) {
    fprintf(to, "%-*s", (int)widths[0], t->cells[r * t->columns].text);
    for (size_t c = 1; c < t->columns; c++) fprintf(to, "%*s%*s", gap, "", (int)widths[c], t->cells[r * t->columns + c].text);
    fputc('\n', to);
  }
}

/* ---- cells ---- */

#define CELL sizeof(((cell *)0)->text)

/* A name in at most `width` characters; ".." stands for what is left out. */
static void put_name(char *out, const char *name, int width) {
  if (strlen(name) <= (size_t)width)
    snprintf(out, CELL, "%s", name);
  else
    snprintf(out, CELL, "%.*s..", width - 2, name);
}

static void put_count(char *out, int64_t n) {
  if (n < 10000000)
    snprintf(out, CELL, "%" PRId64, n);
  else
    gt_format_count(out, CELL, (double)n);
}

static void put_number(char *out, double value, int digits) {
  if (isfinite(value))
    snprintf(out, CELL, "%.*f", digits, value);
  else
    snprintf(out, CELL, "-");
}

/* Seconds and their share of the region's wall time: "12.3 s 87%"; hours where seconds would be long. */
static void put_share(char *out, double seconds, double wall) {
  char share[16] = "";
  if (wall > 0 && isfinite(seconds)) snprintf(share, sizeof share, " %.0f%%", 100 * seconds / wall);
  if (!isfinite(seconds))
    snprintf(out, CELL, "-");
  else if (seconds < 99.95)
    snprintf(out, CELL, "%.1f s%s", seconds, share);
  else if (seconds < 9999.5)
    snprintf(out, CELL, "%.0f s%s", seconds, share);
  else
    snprintf(out, CELL, "%.1f h%s", seconds / 3600, share);
}

/* ---- the three parts ---- */

static void print_regions(FILE *to, const gt_summary *s) {
  static const char *const heading[] = {"region", "workers", "steps", "samples", "compute", "wan wait", "local wait", "idle", "accuracy", "loss"};
  table t = table_create(s->nregions, 10, heading);
  for (size_t i = 0; i < s->nregions; i++) {
    const gt_region_result *r = &s->regions[i];
    put_name(cell_at(&t, i, 0), r->name, NAME_WIDTH);
    put_count(cell_at(&t, i, 1), r->workers);
    put_count(cell_at(&t, i, 2), r->steps);
    put_count(cell_at(&t, i, 3), r->samples);
    put_share(cell_at(&t, i, 4), r->compute_s, r->wall_s);
    put_share(cell_at(&t, i, 5), r->wan_wait_s, r->wall_s);
    put_share(cell_at(&t, i, 6), r->local_wait_s, r->wall_s);
    put_share(cell_at(&t, i, 7), r->idle_s, r->wall_s);
    put_number(cell_at(&t, i, 8), r->test_accuracy, 4);
    put_number(cell_at(&t, i, 9), r->test_loss, 3);
  }
  table_print(to, &t);
  gt_free(t.cells);
}

static void print_links(FILE *to, const gt_summary *s) {
  static const char *const heading[] = {"link", "MB sent", "messages", "other bytes", "measured Mbit/s", "latency ms"};
  table t = table_create(s->nlinks, 6, heading);
  for (size_t i = 0; i < s->nlinks; i++) {
    const gt_link_result *l = &s->links[i];
    char from[CELL], end[CELL];
    put_name(from, l->from, 16);
    put_name(end, l->to, 16);
    snprintf(cell_at(&t, i, 0), CELL, "%.16s -> %.16s", from, end);
    put_number(cell_at(&t, i, 1), (double)l->bytes_sent * 1e-6, 2);
    put_count(cell_at(&t, i, 2), l->messages);
    put_count(cell_at(&t, i, 3), l->bytes_other);
    put_number(cell_at(&t, i, 4), l->bandwidth_bps_measured > 0 ? l->bandwidth_bps_measured * 1e-6 : NAN, 1);
    put_number(cell_at(&t, i, 5), l->latency_s_measured > 0 ? l->latency_s_measured * 1e3 : NAN, 1);
  }
  table_print(to, &t);
  gt_free(t.cells);
}

static void print_totals(FILE *to, const gt_summary *s) {
  char rate[32], samples[CELL];
  int64_t sent = 0, messages = 0, other = 0;
  for (size_t i = 0; i < s->nlinks; i++) {
    sent += s->links[i].bytes_sent;
    messages += s->links[i].messages;
    other += s->links[i].bytes_other;
  }
  put_count(samples, s->samples);
  fprintf(to, "wall time      %.1f s", s->wall_s);
  if (isfinite(s->virtual_s)) fprintf(to, "  (virtual %.1f s)", s->virtual_s);
  fprintf(to, "\nsamples/s      %s  (%s samples)\n", gt_format_count(rate, sizeof rate, s->samples_per_s), samples);
  if (isfinite(s->test_accuracy))
    fprintf(to, "test accuracy  %.4f  loss %.3f  (mean model)\n", s->test_accuracy, s->test_loss);
  else
    fprintf(to, "test accuracy  -  (see the regions)\n");
  fprintf(to, "WAN traffic    %.2f MB in %" PRId64 " messages, %.3f MB beside them\n", (double)sent * 1e-6, messages, (double)other * 1e-6);
}

void gt_summary_print(FILE *to, const gt_summary *s) {
  fprintf(to, "\n%s: %s, %" PRId64 " parameters, %s, %s clock\n\n", s->job, s->model, s->parameters, s->strategy, s->clock);
  print_regions(to, s);
  if (s->nlinks > 0) fputc('\n', to);
  if (s->nlinks > 0) print_links(to, s);
  fputc('\n', to);
  print_totals(to, s);
  fflush(to);
}
