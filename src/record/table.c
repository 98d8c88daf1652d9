/* Tables of results as text, CSV and JSON. */
#include "geotrain/record_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "internal.h"

#define FIRST      8                 /* initial room, in rows */
#define TEXT_LEAST ((size_t)20)      /* columns for a text that is broken into lines */
#define MANY       INT64_C(10000000) /* larger counts are printed with "M" */

typedef struct {
  gt_cell *cells;
  char *note; /* NULL: none */
} row;

struct gt_table {
  const gt_column *columns;
  size_t ncolumns;
  row *rows;
  size_t nrows, room;
};

gt_table *gt_table_create(const gt_column *columns, size_t ncolumns) {
  gt_table *t = GT_NEW(gt_table);
  *t = (gt_table){.columns = columns, .ncolumns = ncolumns};
  return t;
}

void gt_table_close(gt_table *table) {
  if (!table) return;
  for (size_t r = 0; r < table->nrows; r++) {
    for (size_t c = 0; c < table->ncolumns; c++)
      gt_free((void *)(uintptr_t)table->rows[r].cells[c].text);
    gt_free(table->rows[r].cells);
    gt_free(table->rows[r].note);
  }
  gt_free(table->rows);
  gt_free(table);
}

void gt_table_add(gt_table *table, const gt_cell *cells, size_t n) {
  if (n > table->ncolumns) gt_bug("a row of %zu cells in %zu columns", n, table->ncolumns);
  GT_GROW(table->rows, table->nrows, table->room, FIRST);
  row *to = &table->rows[table->nrows++];
  *to = (row){.cells = GT_NEW_ARRAY(gt_cell, table->ncolumns)};
  for (size_t c = 0; c < n; c++) {
    to->cells[c] = cells[c];
    to->cells[c].text = gt_strdup(cells[c].text);
  }
}

void gt_table_note(gt_table *table, const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  row *last = &table->rows[table->nrows - 1];
  gt_free(last->note);
  last->note = gt_strdup(text);
}

/* ---- text: cells ----------------------------------------------------------------------------- */

#define CELL ((size_t)32)

/* Returns the value of 1 in this unit. */
static double scale_of(const char *unit) {
  static const struct {
    const char *unit;
    double scale;
  } known[] = {{"us", 1e6},  {"ms", 1e3},      {"kB", 1e-3}, {"MB", 1e-6},
               {"GB", 1e-9}, {"Mbit/s", 1e-6}, {"%", 100},   {"USD/1k", 1000}};
  for (size_t i = 0; unit && i < sizeof known / sizeof *known; i++)
    if (strcmp(unit, known[i].unit) == 0) return known[i].scale;
  return 1;
}

/* Returns the decimals of a value with this number of significant digits. */
static int decimals(double value, int digits) {
  if (value == 0) return 0;
  const int before = 1 + (int)floor(log10(fabs(value)) + 1e-9);
  return before >= digits ? 0 : digits - before;
}

static bool is_shown(const gt_cell *cell) {
  return (cell->kind == GT_CELL_NUMBER && isfinite(cell->number)) ||
         (cell->kind == GT_CELL_TEXT && cell->text) || cell->kind == GT_CELL_WHOLE ||
         (cell->kind == GT_CELL_FLAG && cell->whole);
}

/* Returns the text, borrowed from the cell or in buf. */
static const char *shown(char buf[CELL], const gt_column *column, const gt_cell *cell) {
  const double number = cell->kind == GT_CELL_WHOLE ? (double)cell->whole : cell->number;
  const double value = number * scale_of(column->unit);
  const bool whole = cell->kind == GT_CELL_WHOLE && column->format == GT_COLUMN_WHOLE;
  if (cell->kind == GT_CELL_FLAG) return cell->whole ? "yes" : "";
  if (!is_shown(cell)) return "-";
  if (cell->kind == GT_CELL_TEXT) return cell->text;
  if (whole && cell->whole < MANY)
    snprintf(buf, CELL, "%" PRId64, cell->whole);
  else if (whole)
    gt_format_count(buf, CELL, (double)cell->whole);
  else if (fabs(value) >= 1e12)
    snprintf(buf, CELL, "%.*e", 3, value);
  else
    snprintf(buf, CELL, "%.*f",
             column->format == GT_COLUMN_DIGITS ? decimals(value, column->digits) : column->digits,
             value);
  return buf;
}

char *gt_short_name(char buf[GT_SHORT_NAME], const char *name) {
  const size_t most = GT_SHORT_NAME - 1;
  if (strlen(name) <= most)
    snprintf(buf, GT_SHORT_NAME, "%s", name);
  else
    snprintf(buf, GT_SHORT_NAME, "%.*s..", (int)most - 2, name);
  return buf;
}

char *gt_link_name(char buf[GT_LINK_NAME], const char *from, const char *to) {
  char a[GT_SHORT_NAME], b[GT_SHORT_NAME];
  snprintf(buf, GT_LINK_NAME, "%s -> %s", gt_short_name(a, from), gt_short_name(b, to));
  return buf;
}

/* ---- text: columns --------------------------------------------------------------------------- */

/* Returns the width of each column; 0: it is not printed. */
static size_t *widths_of(const gt_table *t) {
  size_t *widths = GT_NEW_ARRAY(size_t, t->ncolumns);
  char buf[CELL];
  for (size_t c = 0; c < t->ncolumns; c++) {
    bool any = c == 0;
    size_t width = 0;
    if (!t->columns[c].title) continue;
    for (size_t r = 0; r < t->nrows; r++) {
      const size_t w = strlen(shown(buf, &t->columns[c], &t->rows[r].cells[c]));
      if (w > width) width = w;
      any |= is_shown(&t->rows[r].cells[c]);
    }
    if (!any) continue;
    if (strlen(t->columns[c].title) > width) width = strlen(t->columns[c].title);
    if (t->columns[c].unit && strlen(t->columns[c].unit) > width)
      width = strlen(t->columns[c].unit);
    widths[c] = width;
  }
  return widths;
}

static bool is_long(const gt_table *t, const size_t *widths, size_t column) {
  return column > 0 && t->columns[column].format == GT_COLUMN_TEXT && widths[column] > TEXT_LEAST;
}

/* Returns the end of the columns from `first` on that fit next to column 0, at least one.  A long
   text, which can be broken into lines, is the last one. */
static size_t end_of_block(const gt_table *t, const size_t *widths, size_t first, size_t gap) {
  size_t total = widths[0], end = first;
  for (; end < t->ncolumns; end++) {
    const size_t width = is_long(t, widths, end) ? TEXT_LEAST : widths[end];
    if (width == 0) continue;
    const bool full = total + gap + width > GT_LINE_WIDTH || t->columns[end].breaks;
    if (full && end > first) break;
    total += gap + width;
    if (is_long(t, widths, end)) return end + 1;
  }
  return end;
}

typedef struct {
  FILE *to;
  const gt_table *table;
  const size_t *widths;
  size_t first, end, gap;
  bool again; /* the first column was printed in an earlier block */
} block;

/* Prints the texts of the first column and of those of the block. */
static void print_line(const block *b, const char *const *texts) {
  size_t at = 0, from = 0; /* columns printed so far; start of the column */
  for (size_t c = 0; c < b->end; c = c == 0 ? b->first : c + 1) {
    const size_t length = strlen(texts[c]), width = b->widths[c];
    const bool left = b->table->columns[c].format == GT_COLUMN_TEXT || length > width;
    const size_t start = left ? from : from + width - length;
    if (width == 0) continue;
    from += width + b->gap;
    if (length == 0) continue;
    fprintf(b->to, "%*s", (int)(start - at), "");
    if (is_long(b->table, b->widths, c)) {
      gt_wrap(b->to, start, start, texts[c]);
      return;
    }
    fputs(texts[c], b->to);
    at = start + length;
  }
  fputc('\n', b->to);
}

static void print_heading(const block *b) {
  const gt_table *t = b->table;
  const char **titles = GT_NEW_ARRAY(const char *, t->ncolumns);
  const char **units = GT_NEW_ARRAY(const char *, t->ncolumns);
  bool any = false;
  for (size_t c = 0; c < t->ncolumns; c++) {
    titles[c] = t->columns[c].title ? t->columns[c].title : "";
    units[c] = t->columns[c].unit && b->widths[c] > 0 ? t->columns[c].unit : "";
    any |= *units[c] && (c == 0 || (c >= b->first && c < b->end));
  }
  print_line(b, titles);
  if (any) print_line(b, units);
  gt_free(titles);
  gt_free(units);
}

static void print_rows(const block *b) {
  const gt_table *t = b->table;
  const char **texts = GT_NEW_ARRAY(const char *, t->ncolumns);
  char(*bufs)[CELL] = gt_alloc(t->ncolumns, sizeof *bufs);
  for (size_t r = 0; r < t->nrows; r++) {
    for (size_t c = 0; c < t->ncolumns; c++)
      texts[c] = shown(bufs[c], &t->columns[c], &t->rows[r].cells[c]);
    print_line(b, texts);
    if (t->rows[r].note && !b->again) gt_print_wrapped(b->to, 2, "  %s", t->rows[r].note);
  }
  gt_free(texts);
  gt_free(bufs);
}

void gt_table_print(FILE *to, const gt_table *table) {
  if (table->nrows == 0) return;
  size_t *widths = widths_of(table);
  bool again = false;
  for (size_t first = 1, end; first < table->ncolumns; first = end) {
    end = first + 1;
    if (widths[first] == 0) continue;
    const size_t near = end_of_block(table, widths, first, 1);
    const bool whole = near == table->ncolumns || table->columns[near].breaks;
    const size_t gap = whole && end_of_block(table, widths, first, 2) < near ? 1 : 2;
    end = end_of_block(table, widths, first, gap);
    const block b = {to, table, widths, first, end, gap, again};
    if (again) fputc('\n', to);
    print_heading(&b);
    print_rows(&b);
    again = true;
  }
  gt_free(widths);
}

void gt_table_finish(FILE *to, gt_table *table) {
  gt_table_print(to, table);
  gt_table_close(table);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void write_field(FILE *to, const gt_cell *cell) {
  if (cell->kind == GT_CELL_WHOLE)
    fprintf(to, "%" PRId64, cell->whole);
  else if (cell->kind == GT_CELL_FLAG)
    fputs(cell->whole ? "true" : "false", to);
  else if (cell->kind == GT_CELL_NUMBER && isfinite(cell->number))
    fprintf(to, "%.9g", cell->number);
  else if (cell->kind == GT_CELL_TEXT && cell->text && strpbrk(cell->text, ",\"\n")) {
    fputc('"', to);
    for (const char *at = cell->text; *at; at++) fprintf(to, *at == '"' ? "\"%c" : "%c", *at);
    fputc('"', to);
  } else if (cell->kind == GT_CELL_TEXT && cell->text)
    fputs(cell->text, to);
}

void gt_table_csv(FILE *to, const gt_table *table) {
  const char *comma = "";
  for (size_t c = 0; c < table->ncolumns; c++) {
    if (!table->columns[c].key) continue;
    fprintf(to, "%s%s", comma, table->columns[c].key);
    comma = ",";
  }
  for (size_t r = 0; r < table->nrows; r++) {
    comma = "\n";
    for (size_t c = 0; c < table->ncolumns; c++) {
      if (!table->columns[c].key) continue;
      fputs(comma, to);
      write_field(to, &table->rows[r].cells[c]);
      comma = ",";
    }
  }
  fputc('\n', to);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *value_of(const gt_cell *cell) {
  if (cell->kind == GT_CELL_NUMBER) return gt_json_number(cell->number);
  if (cell->kind == GT_CELL_WHOLE) return json_integer(cell->whole);
  if (cell->kind == GT_CELL_FLAG) return json_boolean(cell->whole);
  return gt_json_text(cell->text);
}

json_t *gt_table_json(const gt_table *table) {
  json_t *list = json_array();
  for (size_t r = 0; r < table->nrows; r++) {
    json_t *object = json_object();
    for (size_t c = 0; c < table->ncolumns; c++) {
      const gt_cell *cell = &table->rows[r].cells[c];
      if (table->columns[c].key && cell->kind != GT_CELL_NONE)
        json_object_set_new(object, table->columns[c].key, value_of(cell));
    }
    json_array_append_new(list, object);
  }
  return list;
}
