/* Catalogues: CSV files of cloud prices and links by place; their names, and the most specific line
   for a rate. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "internal.h"

enum { RATE, CLOUD, PLACE, TO_CLOUD, TO_PLACE, FROM_GB, VALUE, ASSUMED, FIELDS };

static const job_column columns[FIELDS] = {
    {.name = "rate"},     {.name = "cloud"},   {.name = "place"}, {.name = "to_cloud"},
    {.name = "to_place"}, {.name = "from_gb"}, {.name = "value"}, {.name = "assumed"}};
static const job_table table = {columns, FIELDS, ASSUMED, FIELDS,
                                "rate,cloud,place,to_cloud,to_place,from_gb,value,assumed"};
static const char *const rate_names[GT_RATES] = {"vm_hour",
                                                 "vm_step_s",
                                                 "vm_min_s",
                                                 "function_gb_s",
                                                 "function_add_s_per_gb",
                                                 "storage_gb_month",
                                                 "read_request",
                                                 "write_request",
                                                 "list_request",
                                                 "egress_gb",
                                                 "link_mbit_s",
                                                 "link_rtt_ms",
                                                 "storage_up_mbit_s",
                                                 "storage_down_mbit_s"};

/* A line.  Texts point into the text of its file; "*": any; "" if the rate does not use the
   field. */
typedef struct {
  gt_rate_kind kind;
  const char *cloud, *place, *to_cloud, *to_place;
  size_t layer; /* files read later override earlier ones */
  gt_rate rate;
} catalogue_row;

typedef struct {
  const char **names; /* NULL after the last */
  size_t n, capacity;
} name_list;

struct gt_catalogue {
  char *path;          /* as first given */
  catalogue_row *rows; /* by key, then later layers first, then by tier */
  gt_rate *rates;      /* copies from the rows, which make tiers contiguous */
  size_t n, capacity, layers;
  name_list clouds, places, texts, files; /* owns texts and files */
};

const char *gt_rate_name(gt_rate_kind kind) {
  return rate_names[kind];
}

/* True if a rate goes from one site to another. */
static bool has_to(gt_rate_kind kind) {
  return kind >= GT_RATE_EGRESS_GB;
}

static bool has_tiers(gt_rate_kind kind) {
  return kind == GT_RATE_EGRESS_GB || kind == GT_RATE_FUNCTION_GB_S;
}

static bool is_speed(gt_rate_kind kind) {
  return kind == GT_RATE_LINK_MBIT_S || kind >= GT_RATE_STORAGE_UP;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void add_name(name_list *list, const char *name) {
  GT_GROW(list->names, list->n + 1, list->capacity, 16);
  list->names[list->n++] = name;
  list->names[list->n] = NULL;
}

static bool has_name(const name_list *list, const char *name) {
  for (size_t i = 0; i < list->n; i++)
    if (strcmp(list->names[i], name) == 0) return true;
  return false;
}

static void know(name_list *list, const char *name) {
  if (strcmp(name, "*") != 0 && !has_name(list, name)) add_name(list, name);
}

/* Writes "a, b, c", as many as fit. */
static void list_names(char *text, size_t size, const char *const *names, size_t n) {
  *text = '\0';
  for (size_t i = 0, at = 0; i < n && at + 70 < size; i++) {
    snprintf(text + at, size - at, "%s%.64s", i ? ", " : "", names[i]);
    at += strlen(text + at);
  }
}

/* ---- one line -------------------------------------------------------------------------------- */

typedef struct {
  const char *file;
  size_t line;
  const char *const *field;
} csv_line;

static gt_status read_kind(const csv_line *line, gt_rate_kind *kind) {
  for (size_t i = 0; i < GT_RATES; i++)
    if (strcmp(line->field[RATE], rate_names[i]) == 0) {
      *kind = (gt_rate_kind)i;
      return GT_OK;
    }
  char known[GT_ERROR_TEXT_MAX / 2];
  const char *near = gt_nearest(line->field[RATE], rate_names, GT_RATES);
  list_names(known, sizeof known, rate_names, GT_RATES);
  return GT_FAIL(GT_ERR_JOB, "%s:%zu: rate is \"%.80s\"; expected one of %s%s%s%s", line->file,
                 line->line, line->field[RATE], known, near ? "; did you mean " : "",
                 near ? near : "", near ? "?" : "");
}

static gt_status read_number(const csv_line *line, size_t f, bool above_0, double *out) {
  const char *text = line->field[f];
  char *end = NULL;
  double x = strtod(text, &end);
  bool number = end != text && !*end && isfinite(x) && !strpbrk(text, "xX");
  if (!number || x < 0 || (above_0 && x == 0))
    return GT_FAIL(GT_ERR_JOB, "%s:%zu: %s of %s is \"%.80s\"; expected a number, %s", line->file,
                   line->line, columns[f].name, line->field[RATE], text,
                   above_0 ? "more than 0" : "0 or more");
  *out = x;
  return GT_OK;
}

/* Checks the name fields: required if the rate uses them, otherwise empty. */
static gt_status check_names(const csv_line *line, gt_rate_kind kind) {
  for (size_t f = CLOUD; f <= TO_PLACE; f++) {
    bool needed = f <= PLACE || has_to(kind), given = *line->field[f] != '\0';
    if (needed && !given)
      return GT_FAIL(GT_ERR_JOB, "%s:%zu: %s of %s is empty; expected a name%s", line->file,
                     line->line, columns[f].name, line->field[RATE],
                     f == CLOUD ? "" : ", or * for any,");
    if (given && !needed)
      return GT_FAIL(GT_ERR_JOB,
                     "%s:%zu: %s of %s is \"%.80s\"; expected nothing, because only egress_gb, "
                     "links and the speeds of storage have it",
                     line->file, line->line, columns[f].name, line->field[RATE], line->field[f]);
  }
  if (strcmp(line->field[CLOUD], "*") == 0)
    return GT_FAIL(GT_ERR_JOB, "%s:%zu: cloud is *; expected the name of one", line->file,
                   line->line);
  return GT_OK;
}

static gt_status read_line(const csv_line *line, catalogue_row *row) {
  GT_TRY(read_kind(line, &row->kind));
  GT_TRY(check_names(line, row->kind));
  GT_TRY(read_number(line, VALUE, is_speed(row->kind), &row->rate.value));
  if (*line->field[FROM_GB]) {
    if (!has_tiers(row->kind))
      return GT_FAIL(GT_ERR_JOB,
                     "%s:%zu: from_gb of %s is \"%.80s\"; expected nothing, because only egress_gb "
                     "and function_gb_s have tiers",
                     line->file, line->line, line->field[RATE], line->field[FROM_GB]);
    GT_TRY(read_number(line, FROM_GB, false, &row->rate.from_gb));
  }
  if (*line->field[ASSUMED] && strcmp(line->field[ASSUMED], "assumed") != 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s:%zu: assumed is \"%.80s\"; expected the word assumed, or nothing",
                   line->file, line->line, line->field[ASSUMED]);
  row->cloud = line->field[CLOUD];
  row->place = line->field[PLACE];
  row->to_cloud = line->field[TO_CLOUD];
  row->to_place = line->field[TO_PLACE];
  row->rate.assumed = *line->field[ASSUMED] != '\0';
  row->rate.file = line->file;
  row->rate.line = line->line;
  return GT_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void keep_row(gt_catalogue *c, const catalogue_row *row) {
  GT_GROW(c->rows, c->n, c->capacity, 256);
  c->rows[c->n++] = *row;
  know(&c->clouds, row->cloud);
  know(&c->places, row->place);
}

typedef struct {
  gt_catalogue *catalogue;
  job_csv csv;
} reader;

static gt_status on_row(void *ctx, const char *const *fields) {
  reader *r = ctx;
  const csv_line line = {r->csv.path, r->csv.line, fields};
  catalogue_row row = {.layer = r->catalogue->layers};
  GT_TRY(read_line(&line, &row));
  keep_row(r->catalogue, &row);
  return GT_OK;
}

static gt_status read_file(gt_catalogue *c, const char *path) {
  char *text = NULL, *name = gt_strdup(path);
  size_t size = 0;
  add_name(&c->files, name);
  GT_TRY(gt_job_read_file(path, "a CSV file of rates", &text, &size));
  add_name(&c->texts, text);
  if (strlen(text) != size)
    return GT_FAIL(GT_ERR_JOB, "%s: has a zero byte in it; expected a CSV file of rates", path);
  reader r = {c, gt_job_csv_of(name, text)};
  return gt_job_csv_rows(&r.csv, &table, on_row, &r);
}

static int is_csv(const struct dirent *entry) {
  size_t n = strlen(entry->d_name);
  return n > 4 && strcmp(entry->d_name + n - 4, ".csv") == 0 && entry->d_name[0] != '.';
}

static gt_status read_folder(gt_catalogue *c, const char *folder) {
  struct dirent **entries = NULL;
  gt_status status = GT_OK;
  int n = scandir(folder, &entries, is_csv, alphasort);
  if (n < 0) return GT_FAIL(GT_ERR_JOB, "%s: cannot be read: %s", folder, strerror(errno));
  if (n == 0)
    status = GT_FAIL(GT_ERR_JOB,
                     "%s: has no file that ends in .csv; expected a folder with CSV files of rates",
                     folder);
  for (int i = 0; i < n; i++) {
    char path[4096 + 256];
    snprintf(path, sizeof path, "%.4000s/%s", folder, entries[i]->d_name);
    if (status == GT_OK) status = read_file(c, path);
    free(entries[i]);
  }
  free(entries);
  return status;
}

/* ---- order, and checks over several lines ---------------------------------------------------- */

/* Orders by rate, cloud, place, to_cloud and to_place. */
static int compare(const catalogue_row *a, const catalogue_row *b) {
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  int order = strcmp(a->cloud, b->cloud);
  if (!order) order = strcmp(a->place, b->place);
  if (!order) order = strcmp(a->to_cloud, b->to_cloud);
  return order ? order : strcmp(a->to_place, b->to_place);
}

static int by_key_layer_tier(const void *a, const void *b) {
  const catalogue_row *x = a, *y = b;
  int order = compare(x, y);
  if (order) return order;
  if (x->layer != y->layer) return x->layer > y->layer ? -1 : 1;
  if (x->rate.from_gb != y->rate.from_gb) return x->rate.from_gb < y->rate.from_gb ? -1 : 1;
  return (x->rate.line > y->rate.line) - (x->rate.line < y->rate.line);
}

static gt_status check_tiers(const gt_catalogue *c) {
  for (size_t i = 0; i < c->n; i++) {
    const catalogue_row *r = &c->rows[i];
    bool first = i == 0 || compare(r - 1, r) != 0 || r[-1].layer != r->layer;
    if (first && r->rate.from_gb > 0 && r->kind == GT_RATE_EGRESS_GB)
      return GT_FAIL(GT_ERR_JOB,
                     "%s:%zu: the first tier of this rate begins at %g GB; expected one from 0",
                     r->rate.file, r->rate.line, r->rate.from_gb);
    if (!first && r[-1].rate.from_gb == r->rate.from_gb)
      return GT_FAIL(GT_ERR_JOB, "%s:%zu: %s:%zu gives this rate already; expected one line",
                     r->rate.file, r->rate.line, r[-1].rate.file, r[-1].rate.line);
    if (!first && r->kind == GT_RATE_FUNCTION_GB_S && r[-1].rate.from_gb == 0)
      return GT_FAIL(
          GT_ERR_JOB,
          "%s:%zu: from_gb is %g, but %s:%zu has none, for any size; expected from_gb in "
          "all lines of this rate, or one line without it",
          r->rate.file, r->rate.line, r->rate.from_gb, r[-1].rate.file, r[-1].rate.line);
  }
  return GT_OK;
}

static gt_status check_receivers(const gt_catalogue *c) {
  for (size_t i = 0; i < c->n; i++) {
    const catalogue_row *r = &c->rows[i];
    bool place =
        *r->to_place && strcmp(r->to_place, "*") != 0 && !has_name(&c->places, r->to_place);
    bool cloud =
        *r->to_cloud && strcmp(r->to_cloud, "*") != 0 && !has_name(&c->clouds, r->to_cloud);
    if (!place && !cloud) continue;
    const name_list *known = place ? &c->places : &c->clouds;
    const char *found = place ? r->to_place : r->to_cloud,
               *near = gt_nearest(found, known->names, known->n);
    return GT_FAIL(GT_ERR_JOB,
                   "%s:%zu: %s is \"%.80s\", which has no rates in the catalogue; expected one "
                   "that has, or *%s%s%s",
                   r->rate.file, r->rate.line, place ? "to_place" : "to_cloud", found,
                   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
  }
  return GT_OK;
}

gt_status gt_catalogue_add(gt_catalogue *c, const char *path) {
  struct stat about;
  bool folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
  c->layers++;
  GT_TRY(folder ? read_folder(c, path) : read_file(c, path));
  if (c->n) qsort(c->rows, c->n, sizeof *c->rows, by_key_layer_tier);
  gt_free(c->rates);
  c->rates = GT_NEW_ARRAY(gt_rate, c->n + 1);
  for (size_t i = 0; i < c->n; i++) c->rates[i] = c->rows[i].rate;
  GT_TRY(check_tiers(c));
  return check_receivers(c);
}

gt_status gt_catalogue_read(gt_catalogue **out, const char *path) {
  gt_catalogue *c = GT_NEW(gt_catalogue);
  c->path = gt_strdup(path);
  gt_status status = gt_catalogue_add(c, path);
  if (status == GT_OK)
    *out = c;
  else
    gt_catalogue_close(c);
  return status;
}

void gt_catalogue_close(gt_catalogue *c) {
  if (!c) return;
  for (size_t i = 0; i < c->texts.n; i++) gt_free((void *)(uintptr_t)c->texts.names[i]);
  for (size_t i = 0; i < c->files.n; i++) gt_free((void *)(uintptr_t)c->files.names[i]);
  gt_free(c->texts.names);
  gt_free(c->files.names);
  gt_free(c->clouds.names);
  gt_free(c->places.names);
  gt_free(c->rates);
  gt_free(c->rows);
  gt_free(c->path);
  gt_free(c);
}

/* ---- queries --------------------------------------------------------------------------------- */

static const char *find_name(const name_list *list, const char *name) {
  for (size_t i = 0; i < list->n; i++)
    if (strcmp(list->names[i], name) == 0) return list->names[i];
  return NULL;
}

static gt_status has(const gt_catalogue *c, const name_list *list, const char *what,
                     const char *where, const char *name) {
  if (find_name(list, name)) return GT_OK;
  const char *near = gt_nearest(name, list->names, list->n);
  char known[GT_ERROR_TEXT_MAX / 2];
  list_names(known, sizeof known, list->names, list->n);
  return GT_FAIL(
      GT_ERR_JOB,
      "%s names the %s \"%.80s\", of which %s has no rates; expected one that it has: %s%s%s%s",
      where, what, name, c->path, known, near ? "; did you mean " : "", near ? near : "",
      near ? "?" : "");
}

gt_status gt_catalogue_has_cloud(const gt_catalogue *c, const char *where, const char *cloud) {
  return has(c, &c->clouds, "cloud", where, cloud);
}

gt_status gt_catalogue_has_place(const gt_catalogue *c, const char *where, const char *place) {
  return has(c, &c->places, "place", where, place);
}

gt_status gt_catalogue_site(const gt_catalogue *c, const char *where, const char *text,
                            gt_rate_site *out) {
  const char *colon = strchr(text, ':');
  if (!colon)
    return GT_FAIL(GT_ERR_JOB, "%s is \"%.80s\"; expected CLOUD:PLACE, as in aws:london", where,
                   text);
  char *cloud = gt_strdup(text);
  cloud[colon - text] = '\0';
  gt_status status = gt_catalogue_has_cloud(c, where, cloud);
  if (status == GT_OK) status = gt_catalogue_has_place(c, where, colon + 1);
  if (status == GT_OK)
    *out = (gt_rate_site){find_name(&c->clouds, cloud), find_name(&c->places, colon + 1)};
  gt_free(cloud);
  return status;
}

/* Returns 1 for the same name, 0 for any, -1 for another name. */
static int match(const char *pattern, const char *name) {
  if (strcmp(pattern, name) == 0) return 1;
  return strcmp(pattern, "*") == 0 ? 0 : -1;
}

/* Returns how specific the match of a row is; negative: no match. */
static int exactness(const catalogue_row *r, gt_rate_kind kind, gt_rate_site site,
                     const gt_rate_site *to) {
  if (r->kind != kind || strcmp(r->cloud, site.cloud) != 0) return -1;
  int place = match(r->place, site.place), to_place = to ? match(r->to_place, to->place) : 0,
      to_cloud = to ? match(r->to_cloud, to->cloud) : 0;
  if (place < 0 || to_place < 0 || to_cloud < 0) return -1;
  return 4 * to_place + 2 * to_cloud + place;
}

static gt_status missing(const gt_catalogue *c, gt_rate_kind kind, gt_rate_site site,
                         const gt_rate_site *to) {
  const char *tier = kind == GT_RATE_EGRESS_GB ? "0" : "";
  return GT_FAIL(GT_ERR_JOB,
                 "%s: has no %s of %s at %s%s%s%s%s; expected a line `%s,%s,%s,%s,%s,%s,VALUE,`, "
                 "there or in a file of your own",
                 c->path, gt_rate_name(kind), site.cloud, site.place, to ? " to " : "",
                 to ? to->cloud : "", to ? " at " : "", to ? to->place : "", gt_rate_name(kind),
                 site.cloud, site.place, to ? to->cloud : "", to ? to->place : "", tier);
}

const gt_rate *gt_catalogue_find(const gt_catalogue *c, gt_rate_kind kind, gt_rate_site site,
                                 const gt_rate_site *to, size_t *n) {
  size_t best = c->n;
  int exact = -1;
  for (size_t i = 0; i < c->n; i++) { /* later layers come first */
    int e = exactness(&c->rows[i], kind, site, to);
    if (e > exact) exact = e, best = i;
  }
  if (best == c->n) return NULL;
  size_t end = best + 1;
  while (end < c->n && compare(&c->rows[best], &c->rows[end]) == 0 &&
         c->rows[end].layer == c->rows[best].layer)
    end++;
  *n = end - best;
  return &c->rates[best];
}

gt_status gt_catalogue_rate(const gt_catalogue *c, gt_rate_kind kind, gt_rate_site site,
                            const gt_rate_site *to, const gt_rate **out, size_t *n) {
  *out = gt_catalogue_find(c, kind, site, to, n);
  return *out ? GT_OK : missing(c, kind, site, to);
}
