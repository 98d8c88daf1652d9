/* Regions from a CSV file instead of those in the job file, for large numbers of regions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define REGIONS_MAX ((size_t)65535)

enum { NAME, RANKS, SAMPLES, PLACE, STEP, SAMPLES_PER_S, SPEED, ACCESS, PRICE, PS_PRICE, COLUMNS };

static const char *const names[COLUMNS] = {"name",  "ranks",         "samples", "place",
                                           "step",  "samples_per_s", "speed",   "access",
                                           "price", "ps_price"};
/* The key below regions[] for each column. */
static const char *const keys[COLUMNS] = {
    "name",          "ranks",  "samples", "place",   "compute.step", "compute.samples_per_s",
    "compute.speed", "access", "price",   "ps_price"};

typedef struct {
  const char *name;
  size_t line;
} named;

typedef struct {
  job_csv csv;
  size_t column[COLUMNS], n; /* kind of each of the file's n columns */
  job_key rows[COLUMNS];     /* of the file's columns */
  job_node *regions;
  named *names;
  size_t capacity;
} table;

static const char *place_of(const table *t, char buf[512]) {
  return gt_job_csv_place(&t->csv, "", buf);
}

static char *list_names(char list[256]) {
  list[0] = '\0';
  for (size_t k = 0; k < COLUMNS; k++)
    snprintf(list + strlen(list), 256 - strlen(list), "%s%s", k ? ", " : "", names[k]);
  return list;
}

static gt_status read_column(table *t, size_t i, const char *word) {
  char at[512], list[256];
  size_t c = 0;
  while (c < COLUMNS && strcmp(names[c], word) != 0) c++;
  const char *near = c == COLUMNS ? gt_nearest(word, names, COLUMNS) : NULL;
  if (c == COLUMNS)
    return GT_FAIL(GT_ERR_JOB, "%s: column %zu is named \"%.60s\"; expected one of %s%s%s%s",
                   place_of(t, at), i + 1, word, list_names(list), near ? "; did you mean " : "",
                   near ? near : "", near ? "?" : "");
  for (size_t k = 0; k < i; k++)
    if (t->column[k] == c)
      return GT_FAIL(GT_ERR_JOB, "%s: columns %zu and %zu are both named %s; expected one",
                     place_of(t, at), k + 1, i + 1, word);
  char path[JOB_PATH_MAX];
  gt_job_path_join(path, sizeof path, "regions[]", keys[c]);
  t->column[i] = c;
  t->rows[i] = *gt_job_key_find(path);
  /* regions of a CSV file have no devices, so that a plan cannot choose ranks */
  t->rows[i].flags &= ~(unsigned)KEY_AUTO;
  return GT_OK;
}

static gt_status read_header(table *t) {
  const char *fields[COLUMNS];
  char at[512], list[256];
  bool has[COLUMNS] = {false};
  if (!gt_job_csv_line(&t->csv, fields, COLUMNS, &t->n))
    return GT_FAIL(GT_ERR_JOB,
                   "%s: is empty; expected a line that names columns and a line a region",
                   t->csv.path);
  if (t->n > COLUMNS)
    return GT_FAIL(GT_ERR_JOB, "%s: has more than %d columns; the known ones are %s",
                   place_of(t, at), COLUMNS, list_names(list));
  for (size_t i = 0; i < t->n; i++) {
    GT_TRY(read_column(t, i, fields[i]));
    has[t->column[i]] = true;
  }
  for (size_t c = NAME; c <= RANKS; c++)
    if (!has[c])
      return GT_FAIL(GT_ERR_JOB, "%s: no column is named %s; every region must have one",
                     place_of(t, at), names[c]);
  return GT_OK;
}

static gt_status read_field(table *t, job_node *region, size_t i, const char *text) {
  char at[512], where[64], value[4096];
  size_t c = t->column[i];
  if (!*text && c > RANKS) return GT_OK;
  snprintf(where, sizeof where, "%s (column %zu)", names[c], i + 1);
  GT_TRY(gt_job_csv_value(&t->csv, &t->rows[i], where, text, value, sizeof value));
  for (const char *letter = text; *letter; letter++)
    if (*letter < ' ' || *letter > '~')
      return GT_FAIL(GT_ERR_JOB, "%s: %s has a non-ASCII character; expected ASCII text",
                     place_of(t, at), where);
  if (c == NAME) GT_TRY(gt_job_check_name(text, place_of(t, at), where));
  gt_job_node_put(region, keys[c], gt_job_node_new(NODE_SCALAR, NULL, text));
  return GT_OK;
}

static void remember(table *t, const char *name) {
  size_t n = t->regions->n - 1;
  GT_GROW(t->names, n, t->capacity, 64);
  t->names[n] = (named){name, t->csv.line};
}

static gt_status read_region(table *t, const char *const *fields, size_t n) {
  char at[512];
  if (n != t->n)
    return GT_FAIL(GT_ERR_JOB, "%s: has %s%zu fields; expected %zu, as in the first line",
                   place_of(t, at), n > t->n ? "more than " : "", n > t->n ? t->n : n, t->n);
  if (t->regions->n == REGIONS_MAX)
    return GT_FAIL(GT_ERR_JOB, "%s: has more than %zu regions, the maximum", place_of(t, at),
                   REGIONS_MAX);
  job_node *region = gt_job_node_new(NODE_MAP, NULL, NULL);
  gt_job_node_add(t->regions, region);
  for (size_t i = 0; i < n; i++) {
    GT_TRY(read_field(t, region, i, fields[i]));
    if (t->column[i] == NAME) remember(t, fields[i]);
  }
  const job_node *compute = gt_job_node_child(region, "compute");
  if (compute && gt_job_node_child(compute, "step") && gt_job_node_child(compute, "samples_per_s"))
    return GT_FAIL(GT_ERR_JOB, "%s: has step and samples_per_s; expected one of them",
                   place_of(t, at));
  return GT_OK;
}

static int by_letters(const void *a, const void *b) {
  const named *x = a, *y = b;
  int order = strcasecmp(x->name, y->name);
  return order ? order : (x->line > y->line) - (x->line < y->line);
}

static gt_status check_names(table *t) {
  size_t n = t->regions->n;
  if (n == 0)
    return GT_FAIL(GT_ERR_JOB, "%s: has no region below its first line; expected 1 or more",
                   t->csv.path);
  qsort(t->names, n, sizeof *t->names, by_letters);
  for (size_t i = 1; i < n; i++)
    if (strcasecmp(t->names[i - 1].name, t->names[i].name) == 0)
      return GT_FAIL(GT_ERR_JOB, "%s:%zu: name is %s, as on line %zu; expected different names",
                     t->csv.path, t->names[i].line, t->names[i].name, t->names[i - 1].line);
  return GT_OK;
}

static gt_status read_table(table *t) {
  const char *fields[COLUMNS];
  size_t n = 0;
  GT_TRY(read_header(t));
  while (gt_job_csv_line(&t->csv, fields, t->n, &n)) GT_TRY(read_region(t, fields, n));
  return check_names(t);
}

static void drop_below(job_node *root, const char *map, const char *key) {
  job_node *node = gt_job_node_child(root, map);
  if (node && node->kind == NODE_MAP) gt_job_node_drop(node, key);
}

static void replace(job_node *root, job_node *regions) {
  job_node *data = gt_job_node_child(root, "data");
  gt_job_node_drop(root, "regions");
  gt_job_node_put(root, "regions", regions);
  drop_below(root, "wan", "links");
  drop_below(root, "wan", "matrix");
  drop_below(root, "wan", "outages");
  if (data && data->kind == NODE_MAP) drop_below(data, "partition", "shares");
}

gt_status gt_job_regions(job_node *root, const char *path) {
  table t = {.n = 0};
  GT_TRY(gt_job_csv_open(&t.csv, path, "a CSV file of regions"));
  t.regions = gt_job_node_new(NODE_LIST, NULL, NULL);
  gt_status status = read_table(&t);
  if (status == GT_OK)
    replace(root, t.regions);
  else
    gt_job_node_close(t.regions);
  gt_free(t.names);
  gt_job_csv_close(&t.csv);
  return status;
}
