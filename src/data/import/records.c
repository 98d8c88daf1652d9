/* Reads rows of comma-separated values. */
#include "records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"
#include "schema.h"

struct gt_records {
  gt_lines *lines;
  char record[GT_LINE_MAX], *fields[GT_RECORD_FIELDS];
  size_t n, line; /* line: of the row's beginning */
};

gt_status gt_records_open(gt_records **out, const char *path) {
  gt_lines *lines;
  *out = NULL;
  GT_TRY(gt_lines_open(&lines, path));
  *out = GT_NEW(gt_records);
  (*out)->lines = lines;
  return GT_OK;
}

size_t gt_records_line(const gt_records *r) {
  return r->line;
}

void gt_records_close(gt_records *r) {
  if (!r) return;
  gt_lines_close(r->lines);
  gt_free(r);
}

static gt_status not_closed(const gt_records *r) {
  return GT_FAIL(GT_ERR_DATA, "%s: the quotes that line %zu opens are not closed",
                 gt_lines_path(r->lines), r->line);
}

/* Reads a record, which continues on the next line inside quotes; *more false: there is none. */
static gt_status read_record(gt_records *r, bool *more) {
  bool quoted = false;
  size_t n = 0;
  const char *line;
  do {
    GT_TRY(gt_lines_next(r->lines, &line));
    if (!line && quoted) return not_closed(r);
    *more = line != NULL;
    if (!line) return GT_OK;
    if (n == 0) r->line = gt_lines_number(r->lines);
    const size_t length = strlen(line);
    if (n + length + 2 > GT_LINE_MAX)
      return GT_FAIL(GT_ERR_DATA, "%s: the row at line %zu has more than %zu bytes, the maximum",
                     gt_lines_path(r->lines), r->line, GT_LINE_MAX);
    if (n > 0) r->record[n++] = ' '; /* for a line end in quotes */
    memcpy(r->record + n, line, length + 1);
    n += length;
    for (const char *c = line; *c; c++) quoted ^= *c == '"';
  } while (quoted);
  return GT_OK;
}

/* Ends the field at *at, removes its quotes, and moves *at behind it; *last: no comma follows.  A
   field of blanks becomes empty: strtod would read 0. */
static gt_status next_field(const gt_records *r, char **at, bool *last) {
  char *const field = *at, *from = field, *to = field;
  if (*from == '"') {
    for (from++; *from && !(from[0] == '"' && from[1] != '"'); from++) {
      from += from[0] == '"';
      *to++ = *from;
    }
    if (!*from) return not_closed(r);
    from++;
    if (*from && *from != ',')
      return GT_FAIL(GT_ERR_DATA, "%s: line %zu has text after the quotes of field %zu",
                     gt_lines_path(r->lines), r->line, r->n);
  } else {
    to = from += strcspn(from, ",");
  }
  *last = *from != ',';
  *to = '\0';
  if (!field[strspn(field, " ")]) *field = '\0';
  *at = from + 1;
  return GT_OK;
}

gt_status gt_records_next(gt_records *r, char ***fields, size_t *n) {
  char *at = r->record;
  bool last = false, more = true;
  *fields = r->fields;
  r->n = *n = 0;
  do GT_TRY(read_record(r, &more));
  while (more && !r->record[0]);
  if (!more) return GT_OK;
  const bool utf8 = gt_schema_is_utf8(r->record);
  gt_text_flatten(r->record);
  while (!last) {
    if (r->n == GT_RECORD_FIELDS)
      return GT_FAIL(GT_ERR_DATA, "%s: line %zu has more than %zu fields", gt_lines_path(r->lines),
                     r->line, GT_RECORD_FIELDS);
    r->fields[r->n++] = at;
    *n = r->n;
    GT_TRY(next_field(r, &at, &last));
  }
  if (utf8) return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "%s: the row at line %zu is not UTF-8; convert the file, as by `iconv -f "
                 "windows-1252 -t utf-8`",
                 gt_lines_path(r->lines), r->line);
}

bool gt_records_number(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  while (*end == ' ') end++;
  const bool hexadecimal = strchr(text, 'x') || strchr(text, 'X');
  return end != text && !*end && isfinite((float)*out) && !hexadecimal;
}
