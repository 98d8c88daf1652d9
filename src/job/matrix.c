/* wan.matrix: a CSV file of links between many regions; a job uses the links between its own
   regions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* with more regions, wan.links could not hold all directions */
#define REGIONS_MAX ((size_t)1000)

enum { FROM, TO, MBIT_S, MS, JITTER_MS, LOSS, FIELDS };

static const job_column columns[FIELDS] = {{.name = "from"},      {.name = "to"},
                                           {.name = "mbit_s"},    {.name = "ms"},
                                           {.name = "jitter_ms"}, {.name = "loss"}};
static const job_table table = {columns, FIELDS, JITTER_MS, JITTER_MS,
                                "from,to,mbit_s,ms and, if need be, jitter_ms,loss"};
/* The unit of a field and its key below wan.links[]. */
static const struct {
  const char *unit, *key, *row;
} values[FIELDS] = {[MBIT_S] = {" Mbit/s", "bandwidth", "wan.links[].bandwidth"},
                    [MS] = {" ms", "latency", "wan.links[].latency"},
                    [JITTER_MS] = {" ms", "jitter", "wan.links[].jitter"},
                    [LOSS] = {"", "loss", "wan.links[].loss"}};

/* A line of the file.  Fields point into the file's text; missing fields are empty. */
typedef struct {
  const char *field[FIELDS];
  size_t line, ia, ib; /* ids; the job's number of regions if the job has no such region */
} row;

typedef struct {
  const char *file;
  job_csv csv;
  const gt_job *job;
  job_name *names;
  row *rows;
  size_t n, capacity;
} matrix;

/* ---- reading --------------------------------------------------------------------------------- */

/* Converts a field to a value of wan.links, in base units. */
static gt_status field_value(const matrix *m, const row *r, size_t f, char *buf, size_t size) {
  const job_csv at = {.path = m->file, .line = r->line};
  char text[96];
  snprintf(text, sizeof text, "%.80s%s", r->field[f], values[f].unit);
  return gt_job_csv_value(&at, gt_job_key_find(values[f].row), columns[f].name, text, buf, size);
}

static gt_status check_row(const matrix *m, const row *r) {
  char value[64];
  for (size_t f = FROM; f <= TO; f++)
    if (!*r->field[f])
      return GT_FAIL(GT_ERR_JOB, "%s:%zu: %s is empty; expected the name of a region", m->file,
                     r->line, columns[f].name);
  if (strcmp(r->field[FROM], r->field[TO]) == 0)
    return GT_FAIL(GT_ERR_JOB, "%s:%zu: from and to are both %.80s; expected two regions", m->file,
                   r->line, r->field[FROM]);
  const char *rate = r->field[MBIT_S];
  if (r->line == 1 && *rate && !strchr("0123456789.", *rate))
    return GT_FAIL(
        GT_ERR_JOB,
        "%s:1: mbit_s is \"%.80s\"; expected a number, or on line 1 also the names %s, in "
        "this order",
        m->file, rate, table.needed);
  for (size_t f = MBIT_S; f < FIELDS; f++)
    if (*r->field[f]) GT_TRY(field_value(m, r, f, value, sizeof value));
  return GT_OK;
}

static void keep_row(matrix *m, row *r) {
  GT_GROW(m->rows, m->n, m->capacity, 64);
  r->ia = gt_job_name_id(m->names, m->job->nregions, r->field[FROM]);
  r->ib = gt_job_name_id(m->names, m->job->nregions, r->field[TO]);
  m->rows[m->n++] = *r;
}

static gt_status on_row(void *ctx, const char *const *fields) {
  matrix *m = ctx;
  row r = {.line = m->csv.line};
  memcpy(r.field, fields, sizeof r.field);
  GT_TRY(check_row(m, &r));
  keep_row(m, &r);
  return GT_OK;
}

/* ---- rows by direction ----------------------------------------------------------------------- */

static int by_ids(const void *a, const void *b) {
  const row *x = a, *y = b;
  if (x->ia != y->ia) return x->ia < y->ia ? -1 : 1;
  return (x->ib > y->ib) - (x->ib < y->ib);
}

static int by_ids_and_line(const void *a, const void *b) {
  int order = by_ids(a, b);
  return order ? order
               : (((const row *)a)->line > ((const row *)b)->line) -
                     (((const row *)a)->line < ((const row *)b)->line);
}

static const row *find_row(const matrix *m, size_t from, size_t to) {
  row key = {.ia = from, .ib = to};
  return m->n == 0 ? NULL : bsearch(&key, m->rows, m->n, sizeof *m->rows, by_ids);
}

static gt_status sort_rows(matrix *m) {
  size_t n = m->job->nregions;
  if (m->n) qsort(m->rows, m->n, sizeof *m->rows, by_ids_and_line);
  for (size_t i = 1; i < m->n; i++) {
    const row *r = &m->rows[i];
    if (r->ia < n && r->ib < n && by_ids(r - 1, r) == 0)
      return GT_FAIL(GT_ERR_JOB,
                     "%s:%zu: line %zu gives the direction from %s to %s already; expected one",
                     m->file, r->line, r[-1].line, r->field[FROM], r->field[TO]);
  }
  return GT_OK;
}

/* ---- into the job ---------------------------------------------------------------------------- */

/* Returns the name in the file nearest to a region that the file omits, or NULL. */
static const char *near_name(const matrix *m, size_t region) {
  const char **words = GT_NEW_ARRAY(const char *, 2 * m->n + 1), *near = NULL;
  bool named = false;
  for (size_t i = 0; i < m->n; i++) {
    named = named || m->rows[i].ia == region || m->rows[i].ib == region;
    words[2 * i] = m->rows[i].field[FROM];
    words[2 * i + 1] = m->rows[i].field[TO];
  }
  if (!named) near = gt_nearest(m->job->regions[region].name, words, 2 * m->n);
  gt_free(words);
  return near;
}

static gt_status lacking(const matrix *m, size_t a, size_t b) {
  const char *na = m->job->regions[a].name, *nb = m->job->regions[b].name, *near = near_name(m, a),
             *meant = na;
  if (!near) near = near_name(m, b), meant = nb;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: has no line for %s and %s; expected one for every pair of the job's regions "
                 "that wan.links leaves out%s%s%s%s%s",
                 m->file, na, nb, near ? "; did you mean " : "", near ? near : "",
                 near ? " by " : "", near ? meant : "", near ? "?" : "");
}

static gt_status add_link(const matrix *m, job_node *links, const row *r, size_t from, size_t to) {
  char value[64];
  job_node *link = gt_job_node_new(NODE_MAP, NULL, NULL);
  gt_job_node_add(links, link);
  gt_job_node_add(link, gt_job_node_new(NODE_SCALAR, "from", m->job->regions[from].name));
  gt_job_node_add(link, gt_job_node_new(NODE_SCALAR, "to", m->job->regions[to].name));
  for (size_t f = MBIT_S; f < FIELDS; f++) {
    if (!*r->field[f]) continue;
    GT_TRY(field_value(m, r, f, value, sizeof value));
    gt_job_node_add(link, gt_job_node_new(NODE_SCALAR, values[f].key, value));
  }
  return GT_OK;
}

static gt_status add_links(const matrix *m, job_node *links) {
  size_t n = m->job->nregions, ngiven = 0;
  job_direction *given = gt_job_directions(m->job, &ngiven);
  gt_status status = GT_OK;
  for (size_t i = 0; i < n * n && status == GT_OK; i++) {
    size_t from = i / n, to = i % n;
    if (from == to || gt_job_direction_find(given, ngiven, from, to)) continue;
    const row *r = find_row(m, from, to);
    if (!r) r = find_row(m, to, from);
    if (r)
      status = add_link(m, links, r, from, to);
    else if (!gt_job_link_default(m->job))
      status = lacking(m, from, to);
  }
  gt_free(given);
  return status;
}

gt_status gt_job_matrix(job_node *root, const gt_job *job, const char *source) {
  char path[4096 + JOB_PATH_MAX];
  if (job->nregions > REGIONS_MAX)
    return GT_FAIL(GT_ERR_JOB, "%s: wan.matrix is given with %zu regions; expected at most %zu",
                   source, job->nregions, REGIONS_MAX);
  GT_TRY(gt_job_find_file(path, sizeof path, source, "wan.matrix", job->wan.matrix));
  matrix m = {.file = path, .job = job};
  GT_TRY(gt_job_csv_open(&m.csv, path, "a CSV file of links"));
  m.names = gt_job_names(job);
  gt_status status = gt_job_csv_rows(&m.csv, &table, on_row, &m);
  if (status == GT_OK) status = sort_rows(&m);
  if (status == GT_OK) status = add_links(&m, gt_job_node_list(root, "wan.links"));
  gt_job_node_drop(gt_job_node_child(root, "wan"), "matrix");
  gt_free(m.rows);
  gt_free(m.names);
  gt_job_csv_close(&m.csv);
  return status;
}
