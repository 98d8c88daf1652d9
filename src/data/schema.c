/* Schemas: JSON, the part of a data set that is one, and the union of several. */
#include "schema.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset.h"

#define VERSION     "geotrain_data_schema"
#define COLUMNS_MAX ((size_t)4096)
#define JSON_FLAGS  JSON_REJECT_DUPLICATES

void gt_schema_close(gt_schema *s) {
  if (!s) return;
  for (size_t i = 0; i < s->ncolumns; i++) {
    gt_free(s->columns[i].name);
    gt_free(s->columns[i].edges);
    gt_free(s->columns[i].values.text);
  }
  gt_free(s->columns);
  gt_free(s->classes.text);
  gt_free(s->words.text);
  gt_free(s);
}

gt_schema_column *gt_schema_add(gt_schema *s, const char *name) {
  GT_GROW(s->columns, s->ncolumns, s->columns_room, 16);
  s->columns[s->ncolumns] = (gt_schema_column){.name = gt_strdup(name)};
  return &s->columns[s->ncolumns++];
}

/* ---- from JSON ------------------------------------------------------------------------------- */

static gt_status wrong(const char *path, const char *where, const char *expected) {
  return GT_FAIL(GT_ERR_DATA, "%s: %s; expected %s", path, where, expected);
}

/* Reads a list of different texts of 1 to `most` bytes. */
static gt_status take_names(gt_class_names *names, const json_t *list, const char *path,
                            const char *where, size_t most) {
  char text[160];
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *name = json_string_value(json_array_get(list, i));
    if (!name || !*name || strlen(name) > most) {
      snprintf(text, sizeof text, "%s[%zu] is not a text of 1 to %zu bytes", where, i, most);
      return wrong(path, text, "the name of one");
    }
    gt_class_names_add(names, name);
  }
  const char *twice = gt_class_names_repeated(names);
  if (json_is_array(list) && !twice) return GT_OK;
  snprintf(text, sizeof text, "%s %s%.64s", where, twice ? "has twice " : "is no list",
           twice ? twice : "");
  return wrong(path, text, "a list of different texts");
}

static gt_status take_edges(gt_schema_column *c, const json_t *list, const char *path) {
  const size_t n = json_array_size(list);
  bool good = json_is_array(list) && n <= GT_COLUMN_EDGES;
  c->binned = true;
  c->edges = GT_NEW_ARRAY(double, good ? n : 0);
  for (size_t i = 0; i < n && good; i++) {
    const json_t *edge = json_array_get(list, i);
    c->edges[i] = json_number_value(edge);
    good =
        json_is_number(edge) && isfinite(c->edges[i]) && (i == 0 || c->edges[i] > c->edges[i - 1]);
    c->nedges = i + 1;
  }
  if (good) return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "%s: the edges of column %.64s are wrong; expected at most %d rising numbers",
                 path, c->name, GT_COLUMN_EDGES);
}

/* Reads {"name": ..., "values": [...]}, {"name": ..., "edges": [...]} or {"name": ...}. */
static gt_status take_column(gt_schema *s, json_t *from, const char *path) {
  const json_t *edges = json_object_get(from, "edges"), *values = json_object_get(from, "values");
  const char *name = json_string_value(json_object_get(from, "name"));
  const size_t known = 1 + (size_t)(edges != NULL) + (size_t)(values != NULL);
  if (!name || (edges && values) || json_object_size(from) != known)
    return wrong(path, "a column has no name, or other keys",
                 "name, and at most one of values and edges");
  gt_schema_column *c = gt_schema_add(s, name);
  gt_text_flatten(c->name);
  for (size_t i = 0; i + 1 < s->ncolumns; i++)
    if (strcmp(s->columns[i].name, c->name) == 0)
      return GT_FAIL(GT_ERR_DATA, "%s: two columns have the name `%.64s`; expected different names",
                     path, c->name);
  c->numbers = !values;
  if (edges) return take_edges(c, edges, path);
  return values ? take_names(&c->values, values, path, "values", GT_SCHEMA_WORD_MAX) : GT_OK;
}

static gt_status take_key(gt_schema *s, const char *key, json_t *value, const char *path) {
  char text[160];
  if (strcmp(key, "classes") == 0) {
    GT_TRY(take_names(&s->classes, value, path, key, GT_CLASS_NAME_MAX));
    return gt_class_names_check(&s->classes, path);
  }
  if (strcmp(key, "words") == 0) return take_names(&s->words, value, path, key, GT_SCHEMA_WORD_MAX);
  if (strcmp(key, "columns") == 0 && json_is_array(value) &&
      json_array_size(value) <= COLUMNS_MAX) {
    for (size_t i = 0; i < json_array_size(value); i++)
      GT_TRY(take_column(s, json_array_get(value, i), path));
    return GT_OK;
  }
  const json_int_t n = json_integer_value(value);
  if (strcmp(key, "ids") == 0 && n > 0 && n <= GT_DATA_MAX_FEATURES)
    return s->ids = (size_t)n, GT_OK;
  if (strcmp(key, VERSION) == 0) return GT_OK;
  snprintf(text, sizeof text, "the key `%.64s` is not known, or its value is wrong", key);
  return wrong(path, text, VERSION " 1, classes, words, columns and ids");
}

/* Takes a parsed file, and frees it; NULL: it has the error. */
static gt_status take_root(gt_schema *s, json_t *root, const json_error_t *error,
                           const char *path) {
  json_t *value;
  const char *key;
  gt_status status = GT_OK;
  if (!root)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: %s (line %d); expected a data set, or a schema as `geotrain data schema` "
                   "writes it",
                   path, error->text, error->line > 0 ? error->line : 1);
  if (json_integer_value(json_object_get(root, VERSION)) != 1)
    status = wrong(path, "has no " VERSION " 1", "a schema, as `geotrain data schema` writes it");
  json_object_foreach(root, key, value) {
    if (status == GT_OK) status = take_key(s, key, value, path);
  }
  json_decref(root);
  return status;
}

/* ---- from a data set ------------------------------------------------------------------------- */

/* Reads a scalar text of fixed length, or rows of such texts, one after the other. */
static gt_status read_texts(const gt_dataset *d, const char *name, char **text, size_t *n,
                            size_t *width) {
  hid_t set;
  *text = NULL;
  gt_status status = gt_data_h5_open_set(d->file, d->path, name, "of texts", &set);
  hid_t type = set >= 0 ? H5Dget_type(set) : -1, space = set >= 0 ? H5Dget_space(set) : -1;
  if (status == GT_OK) {
    *n = (size_t)H5Sget_simple_extent_npoints(space);
    *width = H5Tget_size(type);
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) > 0 ||
        *width > GT_SCHEMA_TEXT_MAX || *n > GT_SCHEMA_TEXT_MAX / *width)
      status = GT_FAIL(GT_ERR_DATA, "%s: /%s is not of texts of a fixed length, %zu bytes at most",
                       d->path, name, GT_SCHEMA_TEXT_MAX);
  }
  if (status == GT_OK) {
    *text = gt_alloc(*n, *width);
    if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, *text) < 0)
      status = GT_FAIL(GT_ERR_DATA, "%s: /%s cannot be read", d->path, name);
  }
  gt_data_h5_close(space);
  gt_data_h5_close(type);
  gt_data_h5_close(set);
  return status;
}

bool gt_schema_is_utf8(const char *text) {
  json_t *string = json_string(text);
  json_decref(string);
  return string != NULL;
}

/* Takes the words of the vocabulary, behind the ids for padding and unknown words; those that were
   cut inside a character are left out. */
static gt_status take_words(gt_schema *s, const gt_dataset *d) {
  enum { OTHERS = 2 };
  size_t n, width;
  char *rows;
  gt_status status = read_texts(d, GT_DATA_VOCABULARY, &rows, &n, &width);
  for (size_t i = OTHERS; status == GT_OK && i < n; i++) {
    char word[GT_SCHEMA_WORD_MAX + 1] = "";
    memcpy(word, rows + i * width, width < sizeof word ? width : sizeof word - 1);
    if (*word && gt_schema_is_utf8(word)) gt_class_names_add(&s->words, word);
  }
  gt_free(rows);
  return status;
}

gt_status gt_dataset_columns(const gt_dataset *d, char **text, size_t *bytes) {
  bool columns;
  size_t n, width;
  *text = NULL;
  *bytes = 0;
  GT_TRY(gt_data_h5_exists(d->file, d->path, GT_DATA_COLUMNS, &columns));
  if (!columns) return GT_OK;
  const gt_status status = read_texts(d, GT_DATA_COLUMNS, text, &n, &width);
  if (status == GT_OK) *bytes = strnlen(*text, n * width);
  return status;
}

void gt_data_save_ids(gt_state *state, bool text, const int64_t *merges, size_t n,
                      const char *columns, size_t bytes, const char *vocabulary_sha256) {
  if (text) gt_state_add(state, "data/", "merges", GT_TYPE_I64, (int64_t *)(uintptr_t)merges, n);
  if (columns)
    gt_state_add(state, "data/", "columns", GT_TYPE_U8, (char *)(uintptr_t)columns, bytes);
  else if (*vocabulary_sha256)
    gt_state_add(state, "data/", "vocabulary_sha256", GT_TYPE_U8,
                 (char *)(uintptr_t)vocabulary_sha256, strlen(vocabulary_sha256));
}

static gt_status take_text(gt_schema *s, const char *text, size_t size, const char *path) {
  json_error_t error;
  return take_root(s, json_loadb(text, size, JSON_FLAGS, &error), &error, path);
}

gt_status gt_schema_parse(gt_schema **out, const char *text, size_t size, const char *path) {
  *out = GT_NEW(gt_schema);
  return take_text(*out, text, size, path);
}

static gt_status take_dataset(gt_schema *s, gt_dataset *d) {
  const gt_dataset_info *info = &d->info;
  const char *name = d->class_names.text;
  bool columns, words;
  GT_TRY(gt_data_h5_exists(d->file, d->path, GT_DATA_COLUMNS, &columns));
  GT_TRY(gt_data_h5_exists(d->file, d->path, GT_DATA_VOCABULARY, &words));
  if (info->text)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: is a text, whose tokens other regions take by `geotrain data import text "
                   "--vocabulary-of`; expected a data set with classes",
                   d->path);
  for (size_t k = 0; k < d->class_names.n; k++, name += strlen(name) + 1)
    gt_class_names_add(&s->classes, name);
  if (columns) {
    char *text;
    size_t size;
    gt_status status = gt_dataset_columns(d, &text, &size);
    if (status == GT_OK) status = take_text(s, text, size, d->path);
    gt_free(text);
    return status;
  }
  if (words && info->input == GT_INPUT_IDS) return take_words(s, d);
  if (info->input == GT_INPUT_IDS) s->ids = info->features;
  if (s->ids > 0 || s->classes.n > 0) return GT_OK;
  return GT_FAIL(GT_ERR_DATA,
                 "%s: its classes have no names; give them with `geotrain data classes`, as in "
                 "`geotrain data classes %s named.h5 0=cat 1=dog`",
                 d->path, d->path);
}

static gt_status take_file(gt_schema *s, const char *path) {
  gt_dataset *dataset;
  json_error_t error;
  gt_data_h5_quiet();
  if (H5Fis_hdf5(path) <= 0)
    return take_root(s, json_load_file(path, JSON_FLAGS, &error), &error, path);
  GT_TRY(gt_dataset_open(&dataset, path));
  const gt_status status = take_dataset(s, dataset);
  gt_dataset_close(dataset);
  return status;
}

gt_status gt_schema_read(gt_schema **out, const char *path) {
  gt_schema *s = GT_NEW(gt_schema);
  const gt_status status = take_file(s, path);
  *out = status == GT_OK ? s : NULL;
  if (status != GT_OK) gt_schema_close(s);
  return status;
}

/* ---- to JSON --------------------------------------------------------------------------------- */

/* Adds a list of names under `key` if there are any; false: one is not UTF-8. */
static bool put_names(json_t *to, const char *key, const gt_class_names *names) {
  json_t *list = json_array();
  const char *name = names->text;
  bool good = true;
  for (size_t k = 0; k < names->n; k++, name += strlen(name) + 1)
    good = json_array_append_new(list, json_string(name)) == 0 && good;
  return json_object_set_new(to, key, list) == 0 && good;
}

static bool put_columns(json_t *to, const gt_schema *s) {
  json_t *list = json_array();
  bool good = true;
  for (size_t i = 0; i < s->ncolumns; i++) {
    const gt_schema_column *c = &s->columns[i];
    json_t *column = json_object(), *edges = json_array();
    good = json_object_set_new(column, "name", json_string(c->name)) == 0 && good;
    for (size_t k = 0; k < c->nedges; k++) json_array_append_new(edges, json_real(c->edges[k]));
    if (c->binned) json_object_set(column, "edges", edges);
    json_decref(edges);
    if (!c->numbers) good = put_names(column, "values", &c->values) && good;
    json_array_append_new(list, column);
  }
  return json_object_set_new(to, "columns", list) == 0 && good;
}

gt_status gt_schema_text(const gt_schema *s, const char *path, char **text) {
  json_t *root = json_pack("{s:i}", VERSION, 1);
  bool good = (s->classes.n == 0 || put_names(root, "classes", &s->classes)) &&
              (s->words.n == 0 || put_names(root, "words", &s->words)) &&
              (s->ncolumns == 0 || put_columns(root, s));
  if (s->ids > 0) json_object_set_new(root, "ids", json_integer((json_int_t)s->ids));
  char *dump = good ? json_dumps(root, JSON_INDENT(1)) : NULL;
  *text = gt_strdup(dump);
  free(dump);
  json_decref(root);
  if (*text) return GT_OK;
  return GT_FAIL(
      GT_ERR_DATA,
      "%s: the name of a class, a column or a value is not UTF-8; convert the source, as by "
      "`iconv -f latin1 -t utf-8`, and import it again",
      path);
}

/* ---- the union ------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, *y = b;
  return (x > *y) - (x < *y);
}

/* Merges the edges of bins.  Thinned only at the end: else the first files would keep the
   fewest. */
static void join_edges(gt_schema_column *to, const gt_schema_column *more) {
  const size_t n = to->nedges + more->nedges;
  double *all = GT_NEW_ARRAY(double, n);
  size_t kept = 0;
  if (to->nedges) memcpy(all, to->edges, to->nedges * sizeof *all);
  if (more->nedges) memcpy(all + to->nedges, more->edges, more->nedges * sizeof *all);
  if (n > 0) qsort(all, n, sizeof *all, by_size);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || all[i] != all[kept - 1]) all[kept++] = all[i];
  gt_free(to->edges);
  to->edges = all;
  to->nedges = kept;
}

/* Of more than GT_COLUMN_EDGES edges, keeps as many at equal distances in their order. */
static void thin_edges(gt_schema_column *c) {
  const size_t n = c->nedges;
  if (n <= GT_COLUMN_EDGES) return;
  c->nedges = GT_COLUMN_EDGES;
  for (size_t i = 0; i < c->nedges; i++)
    c->edges[i] = c->edges[(i + 1) * n / (GT_COLUMN_EDGES + 1)];
}

static gt_schema_column *find_column(const gt_schema *s, const char *name) {
  for (size_t i = 0; i < s->ncolumns; i++)
    if (strcmp(s->columns[i].name, name) == 0) return &s->columns[i];
  return NULL;
}

static gt_status join_columns(gt_schema *to, const gt_schema *more, const char *first,
                              const char *path) {
  if (to->ncolumns != more->ncolumns)
    return GT_FAIL(GT_ERR_DATA,
                   "%s has %zu columns and %s has %zu; expected the same columns: import them with "
                   "--columns",
                   first, to->ncolumns, path, more->ncolumns);
  for (size_t i = 0; i < more->ncolumns; i++) {
    const gt_schema_column *from = &more->columns[i];
    gt_schema_column *c = find_column(to, from->name);
    if (!c || c->numbers != from->numbers || c->binned != from->binned)
      return GT_FAIL(GT_ERR_DATA,
                     "column %.64s of %s is %s in %s; expected the same kind: import both with one "
                     "--as, or leave it out with --columns",
                     from->name, path,
                     !c            ? "missing"
                     : !c->numbers ? "one of values"
                     : c->binned   ? "one of numbers cut into bins"
                                   : "one of numbers",
                     first);
    gt_class_names_join(&c->values, &from->values);
    if (c->binned) join_edges(c, from);
  }
  return GT_OK;
}

static gt_status join(gt_schema *to, const gt_schema *more, const char *first, const char *path) {
  GT_TRY(join_columns(to, more, first, path));
  if ((to->words.n > 0) != (more->words.n > 0) || (to->ids > 0) != (more->ids > 0) ||
      (to->classes.n > 0) != (more->classes.n > 0))
    return GT_FAIL(GT_ERR_DATA,
                   "%s and %s are of different kinds: one has names of classes, words or ids that "
                   "the other one lacks",
                   first, path);
  gt_class_names_join(&to->classes, &more->classes);
  gt_class_names_join(&to->words, &more->words);
  if (more->ids > to->ids) to->ids = more->ids;
  return gt_class_names_check(&to->classes, path);
}

gt_status gt_data_schema(const char *const *paths, size_t n, char **text) {
  gt_schema *all = NULL;
  gt_status status = gt_schema_read(&all, paths[0]);
  for (size_t i = 1; i < n && status == GT_OK; i++) {
    gt_schema *more;
    status = gt_schema_read(&more, paths[i]);
    if (status == GT_OK) status = join(all, more, paths[0], paths[i]);
    gt_schema_close(more);
  }
  *text = NULL;
  for (size_t i = 0; all && i < all->ncolumns; i++) thin_edges(&all->columns[i]);
  if (status == GT_OK) status = gt_schema_text(all, paths[0], text);
  gt_schema_close(all);
  return status;
}
