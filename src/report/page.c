/* The page: what was run, its results, figures, decisions, and predicted and measured figures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char page_style[] =
    "body{margin:2rem auto;max-width:76rem;padding:0 1rem;font:15px/1.5 sans-serif;"
    "color:var(--ink);background:var(--paper)}\n"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid "
    "var(--soft)}\n"
    "h3{font-size:1rem;margin:1.2rem 0 .3rem}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;display:block;overflow-x:"
    "auto}\n"
    "th,td{padding:.2rem .7rem .2rem 0;text-align:right;vertical-align:top;white-space:nowrap}\n"
    "th{font-weight:600}td:first-child,th:first-child,.text td,.text th,.word{text-align:left}\n"
    ".text td:last-child{white-space:normal}\n"
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(28rem,100%),1fr));"
    "gap:0 1.5rem}\n"
    "figure{margin:1rem 0;break-inside:avoid}figcaption{font-size:.85rem}\n"
    "pre{overflow-x:auto;font-size:.8rem}\n";

/* ---- cells ----------------------------------------------------------------------------------- */

static void cell_of(FILE *to, const char *tag, const char *attributes, const char *text) {
  fprintf(to, "<%s%s>", tag, attributes);
  gt_report_escape(to, text);
  fprintf(to, "</%s>", tag);
}

static void cell(FILE *to, const char *tag, const char *text) {
  cell_of(to, tag, "", text);
}

/* Words stand on the left, numbers on the right. */
static void word_cell(FILE *to, const char *tag, const char *text) {
  cell_of(to, tag, " class=\"word\"", text);
}

/* unit: as of a report_column. */
static void number_cell(FILE *to, double value, const char *unit) {
  char text[48];
  if (!isfinite(value))
    snprintf(text, sizeof text, "-");
  else if (unit && strcmp(unit, "s") == 0)
    gt_format_time(text, sizeof text, value);
  else if (unit && strcmp(unit, "B") == 0)
    snprintf(text, sizeof text, value >= 2e9 ? "%.2f GB" : "%.3f MB",
             value / (value >= 2e9 ? 1e9 : 1e6));
  else if (unit && strcmp(unit, "bit/s") == 0)
    gt_format_rate(text, sizeof text, value);
  else {
    char number[32];
    const bool is_difference = unit && strcmp(unit, "+") == 0;
    const char *after = unit && !is_difference ? unit : "";
    snprintf(text, sizeof text, "%s%s%s%.24s", is_difference && value >= 0 ? "+" : "",
             gt_report_short(number, value), *after ? " " : "", after);
  }
  cell(to, "td", text);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Returns the first value of a column; NULL: it has none, and is left out. */
static const json_t *value_of(const report_table *t, const report_column *column) {
  for (size_t i = 0; *column->title && i < json_array_size(t->rows); i++) {
    const json_t *value = json_object_get(json_array_get(t->rows, i), column->key);
    if (value && !json_is_null(value)) return value;
  }
  return NULL;
}

/* The fields of an event. */
static void fields_cell(FILE *to, const json_t *fields) {
  json_t *object = (json_t *)(uintptr_t)fields;
  const char *comma = "";
  fputs("<td>", to);
  for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
    const json_t *value = json_object_iter_value(at);
    if (json_is_null(value)) continue;
    char *text =
        json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    fputs(comma, to);
    gt_report_escape(to, json_object_iter_key(at));
    fputc(' ', to);
    gt_report_escape(to, text ? text : json_is_string(value) ? json_string_value(value) : "");
    free(text);
    comma = ", ";
  }
  fputs("</td>", to);
}

static void value_cell(FILE *to, const report_column *column, const json_t *row) {
  const json_t *value = json_object_get(row, column->key);
  const char *unit = column->unit;
  if (unit && *unit == '@') unit = gt_report_text(row, unit + 1);
  if (json_is_string(value))
    word_cell(to, "td", *json_string_value(value) ? json_string_value(value) : "-");
  else if (json_is_object(value))
    fields_cell(to, value);
  else if (json_is_boolean(value))
    cell(to, "td", json_is_true(value) ? "yes" : "no");
  else
    number_cell(to, gt_report_number(row, column->key), unit);
}

static void write_table(FILE *to, const report_table *t) {
  const char *level = t->run == REPORT_ALL ? "h2" : "h3";
  if (json_array_size(t->rows) == 0) return;
  const json_t **first = GT_NEW_ARRAY(const json_t *, t->ncolumns);
  for (size_t c = 0; c < t->ncolumns; c++) first[c] = value_of(t, &t->columns[c]);
  if (t->folded) fprintf(to, "<details%s>", json_array_size(t->rows) <= 40 ? " open" : "");
  cell(to, t->folded ? "summary" : level, t->title);
  fprintf(to, "\n<table%s>\n<tr>", t->folded ? " class=\"text\"" : "");
  for (size_t c = 0; c < t->ncolumns; c++)
    if (first[c]) (json_is_string(first[c]) ? word_cell : cell)(to, "th", t->columns[c].title);
  fputs("</tr>\n", to);
  for (size_t i = 0; i < json_array_size(t->rows); i++) {
    fputs("<tr>", to);
    for (size_t c = 0; c < t->ncolumns; c++)
      if (first[c]) value_cell(to, &t->columns[c], json_array_get(t->rows, i));
    fputs("</tr>\n", to);
  }
  fprintf(to, "</table>%s\n", t->folded ? "</details>" : "");
  gt_free(first);
  if (!*t->note) return;
  cell(to, "p", t->note);
  fputc('\n', to);
}

static void tables_of(FILE *to, const gt_report *p, size_t run) {
  for (size_t i = 0; i < p->ntables; i++)
    if (p->tables[i].run == run) write_table(to, &p->tables[i]);
}

/* ---- the jobs -------------------------------------------------------------------------------- */

static char *flat_of(const gt_job *job) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (!to) return gt_strdup("");
  gt_job_flat(job, to);
  fclose(to);
  return text;
}

/* Returns the value of a key in the text of gt_job_flat, *n characters; NULL: not given. */
static const char *value_in(const char *flat, const char *key, size_t length, size_t *n) {
  for (const char *line = flat; *line;) {
    const size_t size = strcspn(line, "\n");
    if (size > length && strncmp(line, key, length) == 0 && line[length] == '=') {
      *n = size - length - 1;
      return line + length + 1;
    }
    line += size + (line[size] == '\n');
  }
  return NULL;
}

static bool is_equal(char *const *flats, size_t n, const char *key, size_t length) {
  size_t size = 0, other = 0;
  const char *first = value_in(flats[0], key, length, &size);
  for (size_t i = 1; i < n; i++) {
    const char *value = value_in(flats[i], key, length, &other);
    if (!first != !value || (first && (size != other || strncmp(first, value, size) != 0)))
      return false;
  }
  return true;
}

static void differing_head(FILE *to, const gt_report *p) {
  fputs("<table class=\"text\">\n<tr><th>key</th>", to);
  for (size_t i = 0; i < p->n; i++)
    if (p->runs[i].job) cell(to, "th", p->runs[i].label);
  fputs("</tr>\n", to);
}

static void differing_row(FILE *to, char *const *flats, size_t n, const char *key, size_t length) {
  fprintf(to, "<tr><td>%.*s</td>", (int)length, key);
  for (size_t i = 0; i < n; i++) {
    size_t size = 0;
    const char *value = value_in(flats[i], key, length, &size);
    char *copy = gt_alloc(size + 1, 1);
    if (value) memcpy(copy, value, size);
    cell(to, "td", value ? copy : "-");
    gt_free(copy);
  }
  fputs("</tr>\n", to);
}

/* A row per key whose values differ, for the runs with a job; keys in the order of the first run
   that has them. */
static void settings(FILE *to, const gt_report *p) {
  char *flats[GT_REPORT_RUNS];
  size_t n = 0;
  for (size_t i = 0; i < p->n; i++)
    if (p->runs[i].job) flats[n++] = flat_of(p->runs[i].job);
  if (n == 1) {
    fputs("<details><summary>The job, with defaults</summary>\n<pre>", to);
    gt_report_escape(to, flats[0]);
    fputs("</pre></details>\n", to);
  } else if (n > 1) {
    bool begun = false;
    fputs("<h2>Settings that differ</h2>\n", to);
    for (size_t i = 0; i < n; i++)
      for (const char *line = flats[i]; *line;) {
        const size_t size = strcspn(line, "\n"), length = strcspn(line, "=");
        size_t unused = 0;
        bool told = length >= size;
        for (size_t k = 0; k < i && !told; k++)
          told = value_in(flats[k], line, length, &unused) != NULL;
        if (!told && !is_equal(flats, n, line, length)) {
          if (!begun) differing_head(to, p);
          begun = true;
          differing_row(to, flats, n, line, length);
        }
        line += size + (line[size] == '\n');
      }
    fputs(begun ? "</table>\n" : "<p>The jobs are equal.</p>\n", to);
  }
  for (size_t i = 0; i < n; i++) free(flats[i]);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void figures(FILE *to, const gt_report *p) {
  fputs("<h2>Figures</h2>\n", to);
  if (p->n > 1)
    fputs("<p>A line is the first region of a run whose record has the values of the figure.</p>\n",
          to);
  fputs("<div class=\"figures\">\n", to);
  for (size_t i = 0; i < p->nfigures; i++) {
    const report_figure *f = &p->figures[i];
    fprintf(to, "<figure id=\"%s\">\n<h3>", f->id);
    gt_report_escape(to, f->title);
    fputs("</h3>\n", to);
    gt_report_draw(to, f, false);
    if (*f->note) {
      fputs("<figcaption>", to);
      gt_report_escape(to, f->note);
      fputs("</figcaption>\n", to);
    }
    fputs("</figure>\n", to);
  }
  fputs("</div>\n", to);
}

void gt_report_html(FILE *to, const void *report) {
  const gt_report *p = report;
  fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
        to);
  for (size_t i = 0; i < p->n; i++) {
    fputs(i ? ", " : "", to);
    gt_report_escape(to, p->runs[i].label);
  }
  fprintf(to, " - geotrain report</title>\n<style>\n%s%s</style>\n</head>\n<body>\n",
          gt_report_style, page_style);
  fprintf(to, "<h1>%s</h1>\n", p->n == 1 ? "Report of a run" : "Report of several runs");
  tables_of(to, p, REPORT_ALL);
  settings(to, p);
  figures(to, p);
  for (size_t i = 0; i < p->n; i++) {
    fputs("<h2>", to);
    gt_report_escape(to, p->runs[i].label);
    fputs("</h2>\n", to);
    tables_of(to, p, i);
  }
  fputs("</body>\n</html>\n", to);
}
