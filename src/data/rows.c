/* The rows of a table as samples of a model, by the columns of the data set that it was trained
   on. */
#include <string.h>

#include "records.h"
#include "schema.h"
#include "words.h"

typedef struct {
  size_t field;          /* of a row */
  size_t first;          /* its first id, or its first column of numbers */
  gt_vocabulary *values; /* of a column without numbers */
} place;

struct gt_rows {
  gt_schema *schema;
  place *places; /* of the schema's columns */
  gt_records *records;
  char *path;
  size_t nfields, width;
  bool ids;
};

/* Numbers the ids of the columns, or the columns of numbers, as an import does. */
static void number_columns(gt_rows *r) {
  const gt_schema *s = r->schema;
  size_t n = 0;
  r->places = GT_NEW_ARRAY(place, s->ncolumns);
  for (size_t i = 0; i < s->ncolumns; i++) {
    const gt_schema_column *c = &s->columns[i];
    const char *value = c->values.text;
    r->places[i].first = n;
    if (!c->numbers) r->places[i].values = gt_vocabulary_create();
    for (size_t v = 0; v < c->values.n; v++, value += strlen(value) + 1)
      gt_vocabulary_count(r->places[i].values, value, strlen(value));
    n += c->numbers ? c->nedges + 1 : c->values.n + r->ids;
  }
  r->width = r->ids ? s->ncolumns : n;
}

static gt_status find_fields(gt_rows *r, const char *columns_of) {
  char **fields;
  GT_TRY(gt_records_next(r->records, &fields, &r->nfields));
  for (size_t i = 0; i < r->schema->ncolumns; i++) {
    const char *name = r->schema->columns[i].name;
    size_t *at = &r->places[i].field;
    for (*at = 0; *at < r->nfields && strcmp(fields[*at], name) != 0;) ++*at;
    if (*at == r->nfields)
      return GT_FAIL(GT_ERR_DATA,
                     "%s: has no column `%.64s`; expected the columns of %s in its first line",
                     r->path, name, columns_of);
    for (size_t k = *at + 1; k < r->nfields; k++)
      if (strcmp(fields[k], name) == 0)
        return GT_FAIL(GT_ERR_DATA,
                       "%s: columns %zu and %zu have the name `%.64s`; expected different names",
                       r->path, *at + 1, k + 1, name);
  }
  return GT_OK;
}

gt_status gt_rows_open(gt_rows **out, const char *path, const char *columns, size_t size, bool ids,
                       const char *columns_of) {
  gt_rows *r = GT_NEW(gt_rows);
  *out = r;
  r->ids = ids;
  r->path = gt_strdup(path);
  GT_TRY(gt_schema_parse(&r->schema, columns, size, columns_of));
  number_columns(r);
  GT_TRY(gt_records_open(&r->records, path));
  return find_fields(r, columns_of);
}

void gt_rows_close(gt_rows *r) {
  if (!r) return;
  for (size_t i = 0; r->places && i < r->schema->ncolumns; i++)
    gt_vocabulary_close(r->places[i].values);
  gt_free(r->places);
  gt_schema_close(r->schema);
  gt_records_close(r->records);
  gt_free(r->path);
  gt_free(r);
}

size_t gt_rows_width(const gt_rows *r) {
  return r->width;
}

size_t gt_rows_line(const gt_rows *r) {
  return gt_records_line(r->records);
}

static size_t bin_of(const gt_schema_column *c, double number) {
  size_t bin = 0;
  while (bin < c->nedges && c->edges[bin] < number) bin++;
  return bin;
}

/* Writes one column of a sample. */
static gt_status take_field(const gt_rows *r, size_t i, const char *text, void *x) {
  const gt_schema_column *c = &r->schema->columns[i];
  const place *p = &r->places[i];
  double number = 0;
  if (!*text || (c->numbers && !gt_records_number(text, &number)))
    return GT_FAIL(GT_ERR_DATA, "%s: line %zu has %s%.64s%s in column %.64s; expected a %s",
                   r->path, gt_rows_line(r), *text ? "`" : "", *text ? text : "no value",
                   *text ? "`" : "", c->name, c->numbers ? "number" : "value");
  const int32_t value =
      c->numbers ? 0 : gt_vocabulary_id(p->values, text, strlen(text)) - (int32_t)GT_ID_WORDS;
  if (r->ids)
    ((int32_t *)x)[i] = (int32_t)p->first + (c->numbers ? (int32_t)bin_of(c, number) : value + 1);
  else if (c->numbers)
    ((float *)x)[p->first] = (float)number;
  else if (value >= 0)
    ((float *)x)[p->first + (size_t)value] = 1;
  return GT_OK;
}

gt_status gt_rows_next(gt_rows *r, void *x, bool *more) {
  char **fields;
  size_t n;
  const gt_status status = gt_records_next(r->records, &fields, &n);
  *more = n > 0;
  if (!*more) return status;
  memset(x, 0, r->width * sizeof(float));
  if (status != GT_OK) return status;
  if (n != r->nfields)
    return GT_FAIL(GT_ERR_DATA, "%s: line %zu has %zu fields; expected %zu, as in the header",
                   r->path, gt_rows_line(r), n, r->nfields);
  for (size_t i = 0; i < r->schema->ncolumns; i++)
    GT_TRY(take_field(r, i, fields[r->places[i].field], x));
  return GT_OK;
}
