/* From a job file to a job: read, override, check, add defaults, convert row by row of the table,
   check across keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ---- regions from a CSV file ----------------------------------------------------------------- */

/* Regions from a CSV file instead of those in the job file, for large numbers of regions. */

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
} region_name;

typedef struct {
  job_csv csv;
  size_t column[COLUMNS], n; /* kind of each of the file's n columns */
  job_key rows[COLUMNS];     /* of the file's columns */
  job_node *regions;
  region_name *names;
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
  t->names[n] = (region_name){name, t->csv.line};
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
  const region_name *x = a, *y = b;
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

/* Replaces the regions in the tree by the rows of a CSV file.  Removes keys that refer to the old
   regions: links, matrix, outages, shares. */
static gt_status take_regions(job_node *root, const char *path) {
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

/* ---- the job, row by row of the table -------------------------------------------------------- */

static void write_int(const job_key *row, void *at, const char *text) {
  (void)row;
  int value = (int)strtol(text, NULL, 10);
  memcpy(at, &value, sizeof value);
}

static void write_i64(const job_key *row, void *at, const char *text) {
  (void)row;
  int64_t value = strtoll(text, NULL, 10);
  memcpy(at, &value, sizeof value);
}

static void write_u64(const job_key *row, void *at, const char *text) {
  (void)row;
  uint64_t value = strtoull(text, NULL, 10);
  memcpy(at, &value, sizeof value);
}

static void write_real(const job_key *row, void *at, const char *text) {
  (void)row;
  double value = strtod(text, NULL);
  memcpy(at, &value, sizeof value);
}

static void write_bool(const job_key *row, void *at, const char *text) {
  (void)row;
  bool value = strcmp(text, "true") == 0;
  memcpy(at, &value, sizeof value);
}

static void write_text(const job_key *row, void *at, const char *text) {
  (void)row;
  char *copy = gt_strdup(text);
  memcpy(at, &copy, sizeof copy);
}

static void write_choice(const job_key *row, void *at, const char *text) {
  int value = (int)row->min;
  while (strcmp(row->values[value], text) != 0) value++;
  memcpy(at, &value, sizeof value);
}

static void free_text(void *at) {
  gt_free(gt_job_pointer_at(at));
}

_Static_assert(sizeof(gt_strategy) == sizeof(int), "an enum is written as an int");

/* Storage in memory of a value, or of an entry of its list.  The input is canonical text. */
static const struct {
  size_t size;
  void (*write)(const job_key *row, void *at, const char *text);
  void (*free)(void *at); /* NULL: nothing to free */
} kinds[] = {
    [KEY_STRING] = {sizeof(char *), write_text, free_text},
    [KEY_CHOICE] = {sizeof(int), write_choice, NULL},
    [KEY_INT] = {sizeof(int), write_int, NULL},
    [KEY_I64] = {sizeof(int64_t), write_i64, NULL},
    [KEY_U64] = {sizeof(uint64_t), write_u64, NULL},
    [KEY_REAL] = {sizeof(double), write_real, NULL},
    [KEY_BOOL] = {sizeof(bool), write_bool, NULL},
    [KEY_TIME] = {sizeof(double), write_real, NULL},
    [KEY_RATE] = {sizeof(double), write_real, NULL},
    [KEY_SIZE] = {sizeof(double), write_real, NULL},
    [KEY_SPEED] = {sizeof(double), write_real, NULL},
    [KEY_INTS] = {sizeof(int64_t), write_i64, NULL},
    [KEY_REALS] = {sizeof(double), write_real, NULL},
    [KEY_STRINGS] = {sizeof(char *), write_text, free_text},
    [KEY_CHOICES] = {sizeof(int), write_choice, NULL},
    [KEY_PAIR] = {sizeof(char *), write_text, free_text},
};

static void write_rows(void *base, job_node *map, const char *prefix);
static void free_rows(void *base, const char *prefix);

/* True for rows of one struct: below `prefix`, without a list in between. */
static bool is_of(const job_key *row, const char *prefix) {
  size_t skip = strlen(prefix);
  return strncmp(row->path, prefix, skip) == 0 && !strchr(row->path + skip, '[');
}

static size_t item_size(const job_key *row) {
  return row->type == KEY_MAPS ? row->item_size : kinds[row->type].size;
}

static void write_entries(const job_key *row, char *items, const job_node *list) {
  char prefix[JOB_PATH_MAX];
  snprintf(prefix, sizeof prefix, "%s[].", row->path);
  for (size_t i = 0; i < list->n; i++) {
    char *at = items + i * item_size(row);
    if (row->type == KEY_MAPS)
      write_rows(at, list->items[i], prefix);
    else
      kinds[row->type].write(row, at, list->items[i]->text);
  }
}

static void write_list(const job_key *row, char *base, const job_node *list) {
  if (list->n == 0) return;
  void *items = gt_alloc(list->n, item_size(row));
  memcpy(base + row->offset, &items, sizeof items);
  memcpy(base + row->count_offset, &list->n, sizeof list->n);
  write_entries(row, items, list);
}

static void write_rows(void *base, job_node *map, const char *prefix) {
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    job_node *node =
        is_of(row, prefix) ? gt_job_node_at(map, row->path + strlen(prefix), NULL) : NULL;
    if (!node) continue;
    if (node->kind == NODE_SCALAR && row->type == KEY_MAPS)
      ((char *)base)[row->auto_offset] = true;
    else if (node->kind == NODE_SCALAR)
      kinds[row->type].write(row, (char *)base + row->offset, node->text);
    else if (row->type == KEY_PAIR)
      write_entries(row, (char *)base + row->offset, node);
    else
      write_list(row, base, node);
  }
}

static void free_entries(const job_key *row, char *items, size_t n) {
  char prefix[JOB_PATH_MAX];
  snprintf(prefix, sizeof prefix, "%s[].", row->path);
  for (size_t i = 0; i < n; i++) {
    char *at = items + i * item_size(row);
    if (row->type == KEY_MAPS)
      free_rows(at, prefix);
    else if (kinds[row->type].free)
      kinds[row->type].free(at);
  }
}

static void free_list(const job_key *row, const char *base) {
  size_t n;
  memcpy(&n, base + row->count_offset, sizeof n);
  char *items = gt_job_pointer_at(base + row->offset);
  free_entries(row, items, n);
  gt_free(items);
}

static void free_rows(void *base, const char *prefix) {
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    if (!is_of(row, prefix)) continue;
    if (row->type == KEY_PAIR || !gt_job_key_list(row))
      free_entries(row, (char *)base + row->offset, row->type == KEY_PAIR ? 2 : 1);
    else
      free_list(row, base);
  }
}

/* Converts a checked tree with defaults to a job, which the caller owns. */
static gt_job *typed(job_node *root) {
  gt_job *job = GT_NEW(gt_job);
  write_rows(job, root, "");
  return job;
}

void gt_job_close(gt_job *job) {
  if (!job) return;
  free_rows(job, "");
  gt_free(job->fleet);
  gt_free(job->source);
  gt_free(job);
}

/* ---- all steps ------------------------------------------------------------------------------- */

/* Adds defaults, converts and checks across keys; on success replaces *job. */
static gt_status make_job(gt_job **job, job_node *root, const char *path) {
  GT_TRY(gt_job_defaults(root, path));
  gt_job *made = typed(root);
  gt_status status = gt_job_check(made, root, path);
  gt_job_close(status == GT_OK ? *job : made);
  if (status == GT_OK) *job = made;
  return status;
}

static gt_status merge_profile(gt_job **job, job_node *root, const char *path) {
  char *fleet = NULL;
  GT_TRY(gt_job_profile(root, *job, path, &fleet));
  const gt_status status = make_job(job, root, path);
  if (status == GT_OK)
    (*job)->fleet = fleet;
  else
    gt_free(fleet);
  return status;
}

/* Merges the files of a job into its tree.  The job must be valid without them. */
static gt_status merge_files(gt_job **job, job_node *root, const char *path) {
  if ((*job)->wan.matrix) {
    GT_TRY(gt_job_matrix(root, *job, path));
    GT_TRY(make_job(job, root, path));
  }
  return (*job)->profile ? merge_profile(job, root, path) : GT_OK;
}

/* Input in addition to the job file. */
typedef struct {
  const char *const *sets;
  size_t nsets;
  const char *regions; /* CSV file, or NULL */
} extras;

static gt_status load_tree(gt_job **out, job_node *root, const char *path, const extras *more) {
  gt_job *job = NULL;
  GT_TRY(gt_job_prune(root, path, true));
  bool empty = gt_job_node_null(root);
  if (more->regions && root->kind == NODE_MAP) GT_TRY(take_regions(root, more->regions));
  for (size_t i = 0; i < more->nsets && !empty; i++) {
    GT_TRY(gt_job_set(root, more->sets[i]));
    GT_TRY(gt_job_prune(
        root, path,
        true)); /* "sync=null" removes the whole map; a later --set may set a key in it */
  }
  GT_TRY(gt_job_values(root, path));
  GT_TRY(gt_job_check_owners(root, path));
  GT_TRY(make_job(&job, root, path));
  gt_status status = merge_files(&job, root, path);
  if (status == GT_OK)
    *out = job;
  else
    gt_job_close(job);
  return status;
}

static gt_status load_text(gt_job **out, const char *source, const char *text, size_t size,
                           const extras *more) {
  job_node *root = NULL;
  gt_status status = gt_job_yaml_parse(&root, source, text, size);
  if (status == GT_OK) status = load_tree(out, root, source, more);
  gt_job_node_close(root);
  if (status != GT_OK) return status;
  (*out)->source = gt_strdup(source);
  gt_sha256_hex(text, size, (*out)->sha256);
  if (sscanf(text, GT_JOB_BEGAN "%64[0-9a-f]", (*out)->began_sha256) != 1)
    (*out)->began_sha256[0] = '\0';
  return GT_OK;
}

gt_status gt_job_load_regions(gt_job **out, const char *path, const char *const *sets, size_t nsets,
                              const char *regions_csv) {
  char *text = NULL;
  size_t size = 0;
  const extras more = {sets, nsets, regions_csv};
  GT_TRY(gt_job_read_file(path, "a job file", &text, &size));
  gt_status status = load_text(out, path, text, size, &more);
  gt_free(text);
  return status;
}

gt_status gt_job_load(gt_job **out, const char *path, const char *const *sets, size_t nsets) {
  return gt_job_load_regions(out, path, sets, nsets, NULL);
}

gt_status gt_job_parse(gt_job **out, const char *source, const char *text) {
  const extras none = {0};
  return load_text(out, source, text, strlen(text), &none);
}

int gt_job_ranks(const gt_job *job) {
  int ranks = 0;
  for (size_t i = 0; i < job->nregions; i++) ranks += job->regions[i].ranks;
  return ranks;
}

static gt_status check_ranks(const gt_job *job) {
  for (size_t i = 0; i < job->nregions; i++)
    if (job->regions[i].ranks == 0)
      return GT_FAIL(GT_ERR_JOB,
                     "regions.%zu.ranks is auto; `geotrain plan JOB --write OUT.yaml` resolves it",
                     i);
  if (job->pipeline.search)
    return GT_FAIL(GT_ERR_JOB, "pipeline.stages is auto; `geotrain plan JOB --write OUT.yaml` "
                               "finds the stages");
  return GT_OK;
}

static gt_status check_run(const gt_job *job) {
  GT_TRY(check_ranks(job));
  if (job->nregions > GT_MAX_REGIONS)
    return GT_FAIL(GT_ERR_JOB,
                   "regions has %zu entries; expected at most %d to train (`geotrain simulate` and "
                   "`plan` take more)",
                   job->nregions, GT_MAX_REGIONS);
  for (size_t i = 0; i < job->nregions; i++) {
    const gt_job_region *r = &job->regions[i];
    if (gt_job_reads(job, i) && !r->data_path &&
        (!job->data.path || job->data.partition.by == GT_PART_FILE))
      return GT_FAIL(GT_ERR_JOB,
                     "data.path: region %s has no data set, only regions.%zu.samples; expected %s",
                     r->name, i, job->data.path ? "its own data.path" : "data.path");
  }
  return GT_OK;
}

gt_status gt_job_check_ranks(const gt_job *job) {
  return gt_job_blame(job, check_ranks(job));
}

gt_status gt_job_check_run(const gt_job *job) {
  return gt_job_blame(job, check_run(job));
}

bool gt_job_in_parts(const char *yaml) {
  gt_job *job = NULL;
  const gt_status status = gt_job_parse(&job, "job.yaml", yaml);
  const bool parts =
      status == GT_OK && job->pipeline.nstages > 0 && job->nregions > gt_job_replicas(job);
  gt_job_close(job);
  return parts;
}

/* ---- errors about a loaded job: the name of its file first ----------------------------------- */

/* True if the sentence begins with a key of the table, where regions.2.ranks and shares[2] are
   regions[].ranks and shares.  A word without dots must stand alone: "plan: ..." is about a
   command. */
static bool begins_with_key(const char *text) {
  char pattern[JOB_PATH_MAX];
  const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_.[]");
  size_t n = 0;
  if (length == 0 || length >= sizeof pattern / 3) return false;
  for (size_t i = 0; i < length; i++) {
    const size_t digits = strspn(text + i, "0123456789");
    if (digits > 0 && i > 0 && (text[i - 1] == '.' || text[i - 1] == '[')) {
      if (text[i - 1] == '.') pattern[n - 1] = '[', pattern[n++] = ']';
      i += digits - 1;
    } else
      pattern[n++] = text[i];
  }
  if (n > 2 && pattern[n - 1] == ']') n -= 2;
  pattern[n] = '\0';
  if (!strchr(pattern, '.') && text[length] != ' ') return false;
  return gt_job_key_find(pattern) || gt_job_key_prefix(pattern);
}

gt_status gt_job_blame(const gt_job *job, gt_status status) {
  if (status != GT_ERR_JOB || !job || !job->source) return status;
  const char *text = gt_error_text();
  const size_t name = strlen(job->name);
  const bool named = strncmp(text, job->name, name) == 0 && strncmp(text + name, ": ", 2) == 0;
  if (!named && !begins_with_key(text)) return status;
  return GT_FAIL(status, "%s: %s", job->source, named ? text + name + 2 : text);
}
