/* Tables with columns: comma-separated lines without quotes (blanks around a field are ignored, `#`
   begins a comment), and the values of their fields. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static char *trim(char *text) {
  while (isspace((unsigned char)*text)) text++;
  for (size_t n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--) text[n - 1] = '\0';
  return text;
}

/* Splits a line at its commas into fields[0 .. returned - 1]; returns max + 1 if it has more. */
static size_t cut(char *line, const char **fields, size_t max) {
  size_t n = 0;
  for (char *comma; line; line = comma ? comma + 1 : NULL) {
    comma = strchr(line, ',');
    if (comma) *comma = '\0';
    if (n == max) return max + 1;
    fields[n++] = trim(line);
  }
  return n;
}

job_csv gt_job_csv_of(const char *path, char *text) {
  /* skips a byte order mark, which spreadsheets write */
  return (job_csv){path, text, strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text, 0};
}

gt_status gt_job_csv_open(job_csv *csv, const char *path, const char *needed) {
  char *text = NULL;
  size_t size = 0;
  GT_TRY(gt_job_read_file(path, needed, &text, &size));
  *csv = gt_job_csv_of(path, text);
  size_t at = 0, line = 1;
  while ((at += gt_control_find(csv->text + at, size - at)) < size &&
         memchr("\t\r\n", csv->text[at], 3))
    line += csv->text[at++] == '\n';
  if (at == size) return GT_OK;
  gt_job_csv_close(csv);
  return GT_FAIL(GT_ERR_JOB, "%s:%zu: has a control character in it; expected %s", path, line,
                 needed);
}

bool gt_job_csv_line(job_csv *csv, const char **fields, size_t max, size_t *n) {
  for (size_t i = 0; i < max; i++) fields[i] = "";
  while (csv->next) {
    char *line = csv->next, *end = strchr(line, '\n');
    csv->next = end ? end + 1 : NULL;
    csv->line++;
    if (end) *end = '\0';
    line[strcspn(line, "#")] = '\0';
    if (*trim(line) == '\0') continue;
    *n = cut(line, fields, max);
    return true;
  }
  return false;
}

const char *gt_job_csv_place(const job_csv *csv, const char *field, char buf[512]) {
  snprintf(buf, 512, "%.400s:%zu%s%s", csv->path, csv->line, *field ? ": " : "", field);
  return buf;
}

/* Reads the next line of a table, skipping the line of names.  *more: false at the end. */
static gt_status next_row(job_csv *csv, const job_table *table, const char **fields, bool *more) {
  size_t n = 0, same = 0;
  char at[512];
  const bool first = csv->line == 0;
  *more = gt_job_csv_line(csv, fields, table->n, &n);
  if (!*more) return GT_OK;
  while (same < n && same < table->n && strcmp(fields[same], table->columns[same].name) == 0)
    same++;
  if (first && same == n && n >= table->least_header) return next_row(csv, table, fields, more);
  if (n >= table->least && n <= table->n) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: has %s%zu fields; expected %s", gt_job_csv_place(csv, "", at),
                 n > table->n ? "more than " : "", n > table->n ? table->n : n, table->needed);
}

gt_status gt_job_csv_rows(job_csv *csv, const job_table *table,
                          gt_status (*on_row)(void *ctx, const char *const *fields), void *ctx) {
  const char *fields[JOB_COLUMNS_MAX];
  for (bool more = false;;) {
    GT_TRY(next_row(csv, table, fields, &more));
    if (!more) return GT_OK;
    GT_TRY(on_row(ctx, fields));
  }
}

gt_status gt_job_csv_fill(const job_csv *csv, const job_table *table, const char *const *fields,
                          void *to) {
  char at[512];
  for (size_t f = 0; f < table->n; f++)
    GT_TRY(gt_job_column_read(&table->columns[f], gt_job_csv_place(csv, table->columns[f].name, at),
                              fields[f], to));
  return GT_OK;
}

gt_status gt_job_csv_value(const job_csv *csv, const job_key *row, const char *where,
                           const char *text, char *buf, size_t size) {
  char at[512];
  const gt_status status = gt_job_value_read(row, where, text, buf, size);
  if (status == GT_OK) return GT_OK;
  return GT_FAIL(status, "%s: %s", gt_job_csv_place(csv, "", at), gt_error_text());
}

void gt_job_csv_close(job_csv *csv) {
  gt_free(csv->text);
  csv->text = csv->next = NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

#define NAME_MAX ((size_t)256)

static bool is_name(const char *text) {
  bool good = *text != '\0' && strlen(text) <= NAME_MAX;
  for (const char *letter = text; *letter; letter++)
    good = good && *letter >= ' ' && *letter <= '~';
  return good;
}

/* True if the whole text is a number. */
static bool is_number(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  return end != text && *end == '\0';
}

bool gt_job_column_accepts(column_type type, const char *text, double *out) {
  switch (type) {
  case COLUMN_OTHER:
    return true;
  case COLUMN_NAME:
  case COLUMN_LABEL:
    return (type == COLUMN_LABEL && !*text) || is_name(text);
  case COLUMN_AMOUNT:
    return is_number(text, out) && *out > 0 && isfinite(*out);
  case COLUMN_SIZE:
    return gt_parse_size_bytes(text, out) == GT_OK && *out > 0;
  case COLUMN_TIME:
    return is_number(text, out) && *out >= 0;
  case COLUMN_PASS:
    return is_number(text, out) && *out >= 0 && !isinf(*out);
  }
  return false;
}

gt_status gt_job_column_no(column_type type, const char *place, const char *text) {
  static const char *const needed[] = {
      [COLUMN_NAME] = "a name of 1 to 256 ASCII characters",
      [COLUMN_LABEL] = "a name of 1 to 256 ASCII characters",
      [COLUMN_AMOUNT] = "a number above 0",
      [COLUMN_SIZE] = "a size above 0, as in 4 GiB",
      [COLUMN_TIME] = "a time as a number without unit, or inf without a connection",
      [COLUMN_PASS] = "a number, 0 or more"};
  return GT_FAIL(GT_ERR_JOB, "%s is \"%.80s\"; expected %s", place, text, needed[type]);
}

gt_status gt_job_column_read(const job_column *column, const char *place, const char *text,
                             void *to) {
  char *at = (char *)to + column->offset;
  double value = 0;
  if (!gt_job_column_accepts(column->type, text, &value))
    return gt_job_column_no(column->type, place, text);
  if (column->type == COLUMN_NAME || column->type == COLUMN_LABEL)
    *(char **)(void *)at = gt_strdup(text);
  else if (column->type == COLUMN_PASS)
    *(double *)(void *)at = 1e-6 * value;
  else if (column->type != COLUMN_OTHER)
    *(double *)(void *)at = value;
  return GT_OK;
}
