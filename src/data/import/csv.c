/* Imports tables (CSV, RFC 4180, with a header).  As ids, one per column: numbers are cut into bins
   with equally many training rows, other columns list their values.  As numbers: a column of
   numbers stays one, and a column of values becomes one for each value, with 0 and 1.  Reads the
   files three times: for the kinds of columns and the labels, for bins and values, and to write. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import.h"
#include "records.h"
#include "words.h"

#define BINS       ((size_t)64)
#define KEPT       ((size_t)1 << 20) /* numbers of a column from which bins are made, at most */
#define KEPT_ALL   ((size_t)1 << 25) /* of all columns: 256 MiB */
#define VALUES     ((size_t)1 << 24) /* different values of a column */
#define TEXT_MAX   96                /* bytes of an id's text */
#define LABELS_MAX 1000
#define WIDTH_MAX  1000 /* columns as numbers */

enum { MISSING_REFUSE, MISSING_DROP, MISSING_MEAN };

typedef struct {
  char *name;
  bool used, numbers;
  size_t kinds[2];       /* values that are no numbers, and numbers */
  char *odd;             /* the line and text of the first value that is no number */
  const char *odd_path;  /* its file */
  gt_vocabulary *values; /* of a column without numbers */
  double *kept;          /* nkept numbers, of all `seen` ones */
  size_t nkept, room;
  uint64_t seen;
  double sum;
  double edges[BINS];   /* nedges, ascending: the upper ends of all bins but the last */
  size_t nedges, first; /* first: the column's first id, or column of numbers */
} column;

typedef struct {
  const char *const *paths; /* of training, and of tests if there are two */
  size_t npaths;
  const gt_import_options *options;
  int missing; /* MISSING_REFUSE, ... */
  bool ids;    /* as ids; else as numbers */
  column *columns;
  size_t ncolumns, nused, label; /* label: its column */
  size_t *order;                 /* nused columns, in the order of the samples */
  size_t most;                   /* numbers that a column keeps */
  char **labels;                 /* nlabels, ascending */
  size_t nlabels, labels_room;
  size_t n[2], nids; /* nids: ids of all columns, or columns of numbers */
  /* the row being read */
  gt_records *records;
  const char *path;
  char **fields;
  size_t nfields;
  gt_split split;
  /* rows to be written, of `width` values each */
  gt_data_store *store;
  union {
    int32_t *ids;
    float *numbers;
  } rows[2];
  int32_t *classes[2];
  size_t width;
  size_t held[2], written[2];
} table;

/* ---- rows ------------------------------------------------------------------------------------ */

static gt_status check_width(const table *t) {
  if (t->nfields == t->ncolumns) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: line %zu has %zu fields; expected %zu, as in the header",
                 t->path, gt_records_line(t->records), t->nfields, t->ncolumns);
}

static gt_status check_header(const table *t) {
  for (size_t i = 0; i < t->ncolumns; i++)
    if (strcmp(t->columns[i].name, t->fields[i]) != 0)
      return GT_FAIL(GT_ERR_DATA, "%s: column %zu is `%.64s`; expected `%.64s`, as in %s", t->path,
                     i + 1, t->fields[i], t->columns[i].name, t->paths[0]);
  return GT_OK;
}

static gt_status take_header(table *t) {
  GT_TRY(gt_records_next(t->records, &t->fields, &t->nfields));
  if (t->nfields == 0)
    return GT_FAIL(GT_ERR_DATA, "%s: is empty; expected a line with the names of the columns",
                   t->path);
  if (t->ncolumns > 0 && t->nfields == t->ncolumns) return check_header(t);
  if (t->ncolumns > 0) return check_width(t);
  t->ncolumns = t->nfields;
  t->columns = GT_NEW_ARRAY(column, t->ncolumns);
  for (size_t i = 0; i < t->ncolumns; i++)
    t->columns[i] = (column){.name = gt_strdup(t->fields[i]), .numbers = true};
  return GT_OK;
}

static bool is_dropped(const table *t) {
  if (t->missing != MISSING_DROP) return false;
  for (size_t i = 0; i < t->ncolumns; i++)
    if ((t->columns[i].used || i == t->label) && !t->fields[i][0]) return true;
  return false;
}

/* With one file, a row is held back for tests by the seed and its number. */
static gt_split split_of(const table *t, size_t path, uint64_t row) {
  if (t->npaths > 1) return path == 0 ? GT_SPLIT_TRAIN : GT_SPLIT_TEST;
  return gt_import_split_of(t->options, row);
}

/* Calls `take` for every row that is not dropped; NULL: reads the headers only. */
static gt_status each_row(table *t, const char *doing, gt_status (*take)(table *t)) {
  const size_t known = t->n[0] + t->n[1];
  size_t done = 0;
  for (size_t p = 0; p < t->npaths; p++) {
    gt_records_close(t->records);
    t->records = NULL;
    t->path = t->paths[p];
    GT_TRY(gt_records_open(&t->records, t->path));
    GT_TRY(take_header(t));
    for (uint64_t row = 0; take; row++) {
      GT_TRY(gt_records_next(t->records, &t->fields, &t->nfields));
      if (t->nfields == 0) break;
      GT_TRY(check_width(t));
      if (is_dropped(t)) continue;
      t->split = split_of(t, p, row);
      if (doing) gt_progress_of(++done, known, doing);
      GT_TRY(take(t));
    }
  }
  return GT_OK;
}

/* ---- options --------------------------------------------------------------------------------- */

static gt_status find_column(const table *t, const char *name, size_t length, size_t *out) {
  for (*out = 0; *out < t->ncolumns; ++*out)
    if (strlen(t->columns[*out].name) == length &&
        strncmp(t->columns[*out].name, name, length) == 0)
      return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: has no column `%.*s`; expected a name of its first line",
                 t->paths[0], (int)length, name);
}

/* Takes the columns of a schema, with their bins and values, in its order. */
static gt_status take_schema(table *t, const gt_schema *schema) {
  size_t i;
  if (t->options->columns || schema->ncolumns == 0)
    return GT_FAIL(t->options->columns ? GT_ERR_JOB : GT_ERR_DATA,
                   "data import --schema %s has %zu columns; expected one of tables, without "
                   "--columns",
                   t->options->schema, schema->ncolumns);
  for (size_t k = 0; k < schema->ncolumns; k++) {
    const gt_schema_column *from = &schema->columns[k];
    GT_TRY(find_column(t, from->name, strlen(from->name), &i));
    column *c = &t->columns[i];
    if (i == t->label || (t->ids && from->numbers && !from->binned))
      return GT_FAIL(GT_ERR_DATA, "%s: column %.64s of the schema %s", t->paths[0], from->name,
                     i == t->label ? "is the label" : "has no edges; it is for --as numbers");
    c->used = true;
    c->numbers = from->numbers;
    c->nedges = t->ids ? from->nedges : 0;
    if (c->nedges > 0) memcpy(c->edges, from->edges, c->nedges * sizeof *c->edges);
    const char *value = from->values.text;
    if (!c->numbers) c->values = gt_vocabulary_create();
    for (size_t v = 0; v < from->values.n; v++, value += strlen(value) + 1)
      gt_vocabulary_count(c->values, value, strlen(value));
    t->order[t->nused++] = i;
  }
  return GT_OK;
}

/* Refuses two columns of one name if it is that of the label or of a column that is used. */
static gt_status check_names(const table *t) {
  for (size_t i = 1; i < t->ncolumns; i++)
    for (size_t k = 0; k < i; k++) {
      const bool used = t->columns[i].used || t->columns[k].used || i == t->label || k == t->label;
      if (used && strcmp(t->columns[i].name, t->columns[k].name) == 0)
        return GT_FAIL(GT_ERR_DATA,
                       "%s: columns %zu and %zu have the name `%.64s`; expected different names",
                       t->paths[0], k + 1, i + 1, t->columns[i].name);
    }
  return GT_OK;
}

static gt_status choose_columns(table *t) {
  const char *list = t->options->columns;
  size_t i;
  t->order = GT_NEW_ARRAY(size_t, t->ncolumns);
  GT_TRY(find_column(t, t->options->label, strlen(t->options->label), &t->label));
  if (t->options->names) return take_schema(t, t->options->names);
  for (i = 0; !list && i < t->ncolumns; i++) t->columns[i].used = i != t->label;
  while (list && *list) {
    const size_t length = strcspn(list, ",");
    GT_TRY(find_column(t, list, length, &i));
    if (i == t->label)
      return GT_FAIL(GT_ERR_JOB, "data import --columns has `%s`, which is the label",
                     t->columns[i].name);
    t->columns[i].used = true;
    list += length + (list[length] == ',');
  }
  for (i = 0; i < t->ncolumns; i++)
    if (t->columns[i].used) t->order[t->nused++] = i;
  if (t->nused > 0) return GT_OK;
  return GT_FAIL(GT_ERR_DATA, "%s: has no column but the label", t->paths[0]);
}

/* ---- first reading: kinds and labels --------------------------------------------------------- */

static gt_status take_label(table *t) {
  const char *text = t->fields[t->label];
  if (!*text)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: line %zu has no label (column %s); --missing drop leaves such rows out",
                   t->path, gt_records_line(t->records), t->columns[t->label].name);
  for (size_t i = 0; i < t->nlabels; i++)
    if (strcmp(t->labels[i], text) == 0) return GT_OK;
  if (t->nlabels == LABELS_MAX)
    return GT_FAIL(GT_ERR_DATA, "%s: column %s has more than %d values; expected the labels",
                   t->path, t->columns[t->label].name, LABELS_MAX);
  GT_GROW(t->labels, t->nlabels, t->labels_room, 16);
  t->labels[t->nlabels++] = gt_strdup(text);
  return GT_OK;
}

static gt_status missing(const table *t, size_t i) {
  return GT_FAIL(GT_ERR_DATA,
                 "%s: line %zu has no value in column %s; --missing drop leaves such rows out, and "
                 "--missing mean takes the mean of a column of numbers",
                 t->path, gt_records_line(t->records), t->columns[i].name);
}

static gt_status look(table *t) {
  double number;
  GT_TRY(take_label(t));
  t->n[t->split]++;
  for (size_t i = 0; i < t->ncolumns; i++) {
    column *c = &t->columns[i];
    if (!c->used) continue;
    if (!t->fields[i][0] && t->missing == MISSING_REFUSE) return missing(t, i);
    if (!t->fields[i][0] || (t->options->names && !c->numbers)) continue;
    const bool is_number = gt_records_number(t->fields[i], &number);
    c->kinds[is_number]++;
    if (is_number || !c->numbers) continue;
    if (t->options->names)
      return GT_FAIL(GT_ERR_DATA,
                     "%s: line %zu has `%.64s` in column %s; expected a number, as the "
                     "schema says",
                     t->path, gt_records_line(t->records), t->fields[i], c->name);
    c->numbers = false;
    c->odd = gt_alloc(TEXT_MAX, 1);
    snprintf(c->odd, TEXT_MAX, "line %zu has `%.48s`", gt_records_line(t->records), t->fields[i]);
    c->odd_path = t->path;
  }
  return GT_OK;
}

/* Warns of columns that a few texts make one of categories. */
static void doubt_columns(const table *t) {
  for (size_t i = 0; i < t->ncolumns; i++) {
    const column *c = &t->columns[i];
    if (!c->odd || c->kinds[1] <= c->kinds[0]) continue;
    gt_log(GT_LOG_WARN,
           "%s: %s in column %.64s, where %zu of %zu values are numbers, so its values are "
           "categories; for a column of numbers leave missing values empty",
           c->odd_path, c->odd, c->name, c->kinds[1], c->kinds[0] + c->kinds[1]);
  }
}

/* Numbers come first, else the order is not transitive: 6 < 10 < "10+" < 6. */
static int by_label(const void *a, const void *b) {
  const char *x = *(char *const *)a, *y = *(char *const *)b;
  double m, n;
  const bool is_x = gt_records_number(x, &m), is_y = gt_records_number(y, &n);
  if (is_x != is_y) return is_x ? -1 : 1;
  if (is_x && m != n) return m < n ? -1 : 1;
  return strcmp(x, y);
}

/* ---- second reading: bins and values --------------------------------------------------------- */

/* Keeps a number; of more than t->most numbers a random choice, each with the same probability
   (Vitter 1985, algorithm R). */
static void keep(table *t, column *c, double number) {
  gt_rng rng = gt_rng_make(t->options->seed, GT_RNG_HELD_BACK, 2, c->seen);
  size_t at = c->nkept;
  c->sum += number;
  c->seen++;
  if (!t->ids || t->options->names) return;
  if (at == t->most) {
    at = (size_t)gt_rng_below(&rng, c->seen);
    if (at < t->most) c->kept[at] = number;
    return;
  }
  GT_GROW(c->kept, c->nkept, c->room, 1024);
  c->kept[c->nkept++] = number;
}

static gt_status changed(const table *t) {
  return GT_FAIL(GT_ERR_DATA, "%s: has changed while it was read", t->path);
}

static gt_status gather(table *t) {
  double number;
  if (t->split != GT_SPLIT_TRAIN) return GT_OK;
  for (size_t i = 0; i < t->ncolumns; i++) {
    column *c = &t->columns[i];
    const char *text = t->fields[i];
    const size_t length = strlen(text);
    if (!c->used) continue;
    if (c->numbers && length == 0) continue;
    if (c->numbers && gt_records_number(text, &number)) {
      keep(t, c, number);
      continue;
    }
    if (c->numbers) return changed(t);
    if (length == 0) return missing(t, i);
    if (t->options->names) continue;
    if (length > GT_WORD_MAX)
      return GT_FAIL(GT_ERR_DATA, "%s: line %zu has %zu bytes in column %s; expected at most %zu",
                     t->path, gt_records_line(t->records), length, c->name, GT_WORD_MAX);
    if (!c->values) c->values = gt_vocabulary_create();
    if (gt_vocabulary_count(c->values, text, length) > VALUES)
      return GT_FAIL(GT_ERR_DATA, "%s: column %s has more than %zu values", t->paths[0], c->name,
                     VALUES);
  }
  return GT_OK;
}

/* Returns the first value's id in the vocabulary of a column; as numbers, unknown values have
   none. */
static size_t first_value(const table *t) {
  return t->ids ? GT_ID_UNKNOWN : GT_ID_WORDS;
}

static int by_number(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Few different numbers: a bin each; else bins with equally many rows. */
static void cut(column *c) {
  size_t different = 0;
  if (c->nkept > 0) qsort(c->kept, c->nkept, sizeof *c->kept, by_number);
  for (size_t i = 0; i < c->nkept; i++) different += i == 0 || c->kept[i] != c->kept[i - 1];
  for (size_t i = 1; i < (different <= BINS ? c->nkept : BINS); i++) {
    const double edge = c->kept[different <= BINS ? i - 1 : i * c->nkept / BINS];
    if (c->nedges > 0 && edge <= c->edges[c->nedges - 1]) continue;
    if (edge < c->kept[c->nkept - 1]) c->edges[c->nedges++] = edge;
  }
  gt_free(c->kept);
  c->kept = NULL;
}

/* Numbers the ids: each column has one for every bin, or one for values that training does not
   have, then its values.  As numbers: a column, or one for each value. */
static gt_status number_ids(table *t) {
  const char *widest = NULL;
  size_t most = 0;
  for (size_t k = 0; k < t->nused; k++) {
    column *c = &t->columns[t->order[k]];
    c->first = t->nids;
    if (c->numbers && t->ids && !t->options->names)
      cut(c);
    else if (c->values && !t->options->names)
      gt_vocabulary_choose(c->values, VALUES);
    const size_t n = c->numbers ? c->nedges + 1 : gt_vocabulary_ids(c->values) - first_value(t);
    t->nids += n;
    if (n > most) most = n, widest = c->name;
  }
  t->width = t->ids ? t->nused : t->nids;
  if (t->width == 0)
    return GT_FAIL(GT_ERR_DATA, "%s: the schema has no values of its columns; expected one or more",
                   t->paths[0]);
  if (t->width <= WIDTH_MAX || t->ids) return GT_OK;
  return GT_FAIL(
      GT_ERR_DATA,
      "%s: has %zu columns, one for each value of a category, %zu of them of column %.64s; "
      "expected at most %d: leave some out with --columns, or import --as ids",
      t->paths[0], t->width, most, widest, WIDTH_MAX);
}

/* ---- third reading: rows --------------------------------------------------------------------- */

enum { BLOCK_ROWS = 4096 };

static gt_status write_rows(table *t, gt_split s) {
  GT_TRY(gt_data_store_samples(t->store, s, t->written[s], t->held[s], t->rows[s].ids));
  GT_TRY(gt_data_store_labels(t->store, s, t->written[s], t->held[s], t->classes[s]));
  t->written[s] += t->held[s];
  t->held[s] = 0;
  return GT_OK;
}

static size_t bin_of(const column *c, double number) {
  size_t low = 0, high = c->nedges;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (c->edges[middle] < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Finds the value of a column of numbers: the mean where the row has none; false: the file has
   changed. */
static bool number_in(const table *t, size_t i, double *number) {
  const column *c = &t->columns[i];
  *number = c->seen > 0 ? c->sum / (double)c->seen : 0;
  return !*t->fields[i] || gt_records_number(t->fields[i], number);
}

/* Returns the id of a value in its column, from 0. */
static int32_t value_in(const table *t, size_t i) {
  const char *text = t->fields[i];
  return gt_vocabulary_id(t->columns[i].values, text, strlen(text)) - (int32_t)first_value(t);
}

static gt_status write_row(table *t) {
  const gt_split s = t->split;
  int32_t *ids = t->rows[s].ids + t->held[s] * t->width;
  float *numbers = t->rows[s].numbers + t->held[s] * t->width;
  if (!t->ids) memset(numbers, 0, t->width * sizeof *numbers);
  for (size_t k = 0; k < t->nused; k++) {
    const size_t i = t->order[k];
    const column *c = &t->columns[i];
    double number = 0;
    if (!c->numbers && !t->fields[i][0]) return missing(t, i);
    if (c->numbers && !number_in(t, i, &number)) return changed(t);
    if (t->ids)
      *ids++ = (int32_t)c->first + (c->numbers ? (int32_t)bin_of(c, number) : value_in(t, i));
    else if (c->numbers)
      numbers[c->first] = (float)number;
    else if (value_in(t, i) >= 0)
      numbers[c->first + (size_t)value_in(t, i)] = 1;
  }
  const char *const *label =
      bsearch(&t->fields[t->label], t->labels, t->nlabels, sizeof *t->labels, by_label);
  if (!label) return changed(t);
  t->classes[s][t->held[s]++] = (int32_t)(label - (const char *const *)t->labels);
  return t->held[s] == BLOCK_ROWS ? write_rows(t, s) : GT_OK;
}

/* Returns the bytes of a name, at most `most`, without a part of a character at their end. */
static int bytes_of(const char *name, size_t most) {
  size_t n = strnlen(name, most);
  while (n > 0 && ((unsigned char)name[n] & 0xC0) == 0x80) n--;
  return (int)n;
}

/* Returns the texts of the ids, "age <= 31.5", "color = red", or of the columns of numbers. */
static char *texts_of(const table *t) {
  char *texts = gt_alloc(t->nids, TEXT_MAX);
  for (size_t i = 0; i < t->nused; i++) {
    const column *c = &t->columns[t->order[i]];
    char *at = texts + c->first * TEXT_MAX;
    const int bytes = bytes_of(c->name, 48), few = bytes_of(c->name, 24);
    for (size_t k = 0; c->numbers && k <= c->nedges; k++, at += TEXT_MAX) {
      const char *sign = k < c->nedges ? "<=" : k > 0 ? ">" : "any";
      if (c->nedges > 0)
        snprintf(at, TEXT_MAX, "%.*s %s %.9g", bytes, c->name, sign,
                 c->edges[k < c->nedges ? k : k - 1]);
      else
        snprintf(at, TEXT_MAX, "%.*s", bytes, c->name);
    }
    for (size_t k = first_value(t); c->values && k < gt_vocabulary_ids(c->values);
         k++, at += TEXT_MAX)
      snprintf(at, TEXT_MAX, "%.*s = %.63s", few, c->name, gt_vocabulary_text(c->values, k));
  }
  return texts;
}

/* Writes the columns as a schema, from which other regions import, and the texts of the ids. */
static gt_status write_columns(table *t) {
  gt_schema *schema = GT_NEW(gt_schema);
  for (size_t i = 0; i < t->nused; i++) {
    const column *c = &t->columns[t->order[i]];
    gt_schema_column *to = gt_schema_add(schema, c->name);
    to->numbers = c->numbers;
    to->binned = t->ids && c->numbers;
    to->nedges = c->nedges;
    to->edges = GT_NEW_ARRAY(double, c->nedges);
    if (c->nedges > 0) memcpy(to->edges, c->edges, c->nedges * sizeof *c->edges);
    for (size_t k = GT_ID_WORDS; c->values && k < gt_vocabulary_ids(c->values); k++)
      gt_class_names_add(&to->values, gt_vocabulary_text(c->values, k));
  }
  char *texts = texts_of(t);
  const gt_status status = gt_data_store_columns(t->store, schema, texts, t->nids, TEXT_MAX);
  gt_free(texts);
  gt_schema_close(schema);
  return status;
}

static gt_status write_all(table *t, const char *out) {
  char name[64];
  gt_class_names names = {0};
  const gt_data_shape shape = {.n = {t->n[0], t->n[1]},
                               .h = 1,
                               .w = 1,
                               .c = t->width,
                               .features = t->ids ? t->nids : 0,
                               .floats = !t->ids,
                               .schema = t->options->names};
  GT_TRY(gt_data_store_create(&t->store, out, &shape));
  GT_TRY(write_columns(t));
  for (int s = 0; s < 2; s++) {
    t->rows[s].ids = GT_NEW_ARRAY(int32_t, BLOCK_ROWS * t->width);
    t->classes[s] = GT_NEW_ARRAY(int32_t, BLOCK_ROWS);
  }
  GT_TRY(each_row(t, NULL, write_row));
  for (int s = 0; s < 2; s++)
    if (t->held[s] > 0) GT_TRY(write_rows(t, (gt_split)s));
  if (t->written[0] != t->n[0] || t->written[1] != t->n[1]) return changed(t);
  for (size_t i = 0; i < t->nlabels; i++) gt_class_names_add(&names, t->labels[i]);
  gt_status status = gt_class_names_check(&names, t->paths[0]);
  if (status == GT_OK) status = gt_data_store_class_names(t->store, &names);
  gt_free(names.text);
  GT_TRY(status);
  gt_import_name(t->paths[0], "table", name);
  return gt_data_store_finish(t->store, name, t->nlabels);
}

/* ---- import ---------------------------------------------------------------------------------- */

static gt_status convert(table *t, const char *out) {
  GT_TRY(each_row(t, NULL, NULL));
  GT_TRY(choose_columns(t));
  GT_TRY(check_names(t));
  GT_TRY(each_row(t, "rows read", look));
  doubt_columns(t);
  if (t->nlabels < 2 && !t->options->names)
    return GT_FAIL(GT_ERR_DATA, "%s: column %s has %zu values; expected two or more labels",
                   t->paths[0], t->options->label, t->nlabels);
  for (int s = 0; s < 2; s++)
    if (t->n[s] == 0 && (s == GT_SPLIT_TRAIN || *t->options->test_share > 0))
      return GT_FAIL(GT_ERR_DATA,
                     "%s: has no row for the %s split; expected more rows, or another --seed",
                     t->paths[s == GT_SPLIT_TRAIN ? 0 : t->npaths - 1], gt_data_split_names[s]);
  qsort(t->labels, t->nlabels, sizeof *t->labels, by_label);
  for (t->most = KEPT; t->most * t->nused > KEPT_ALL;) t->most /= 2;
  GT_TRY(each_row(t, "rows gathered", gather));
  GT_TRY(number_ids(t));
  return write_all(t, out);
}

/* Finds a word among `n` ones, the first of which is the default. */
static gt_status word_of(const char *option, const char *text, const char *const *words, int n,
                         int *out) {
  for (*out = 0; *out < n && text && strcmp(text, words[*out]) != 0;) ++*out;
  if (*out < n) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "data import --%s is `%s`; expected %s%s%s or %s", option, text,
                 words[0], n > 2 ? ", " : "", n > 2 ? words[1] : "", words[n - 1]);
}

static gt_status read_options(table *t) {
  static const char *const missing_words[] = {"refuse", "drop", "mean"}, *const as[] = {"ids",
                                                                                        "numbers"};
  int numbers;
  if (!t->options->label)
    return GT_FAIL(GT_ERR_JOB, "data import csv needs --label COLUMN: the column of the labels");
  if (t->options->columns && !*t->options->columns)
    return GT_FAIL(GT_ERR_JOB, "data import --columns is empty; expected names of columns");
  GT_TRY(word_of("as", t->options->as, as, 2, &numbers));
  t->ids = !numbers;
  return word_of("missing", t->options->missing, missing_words, 3, &t->missing);
}

gt_status gt_import_csv(const char *const *sources, size_t n, const char *out,
                        const gt_import_options *options) {
  table t = {.paths = sources, .npaths = n, .options = options};
  gt_status status = n > 2 ? GT_FAIL(GT_ERR_JOB,
                                     "data import csv has %zu files; expected one, or "
                                     "one for training and one for tests",
                                     n)
                           : read_options(&t);
  if (status == GT_OK) status = convert(&t, out);
  gt_data_store_close(t.store);
  gt_records_close(t.records);
  for (size_t i = 0; i < t.ncolumns; i++) {
    gt_vocabulary_close(t.columns[i].values);
    gt_free(t.columns[i].kept);
    gt_free(t.columns[i].odd);
    gt_free(t.columns[i].name);
  }
  for (size_t i = 0; i < t.nlabels; i++) gt_free(t.labels[i]);
  for (int s = 0; s < 2; s++) {
    gt_free(t.rows[s].ids);
    gt_free(t.classes[s]);
  }
  gt_free(t.labels);
  gt_free(t.columns);
  gt_free(t.order);
  return status;
}
