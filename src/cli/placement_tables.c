/* The tables of a placement sweep, also as CSV. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/record_table.h"
#include "placement.h"

#define THOUSAND     1000 /* number of mini-batches that costs in the text refer to */
#define LABEL        11   /* columns of the name of a highlight */
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- all placements: tables of times and costs, one per cloud, and CSV ----------------------- */

#define SECONDS(name, shown)                                                                       \
  { .key = name, .title = shown, .unit = "s", FIXED(2) }
#define USD(name, shown, places)                                                                   \
  { .key = name, .title = shown, .unit = "USD/1k", FIXED(places) }
#define FIXED(places) .format = GT_COLUMN_FIXED, .digits = places

static const gt_column columns[] = {
    {.title = "function, storage, place, aggregators"},
    {.key = "workers"},
    {.key = "function"},
    {.key = "storage"},
    {.key = "place"},
    {.key = "aggregators"},
    SECONDS("batch_s", "batch"),
    SECONDS("train_s", "train"),
    SECONDS("upload_s", "upload"),
    SECONDS("wait_s", "wait"),
    SECONDS("download_s", "download"),
    {.key = "aggregate_s"},
    {.key = "request_s"},
    {.key = "upload_max_s"},
    {.key = "download_max_s"},
    {.key = "total_usd", .title = "total", .unit = "USD/1k", FIXED(3), .breaks = true},
    {.key = "compute_usd"},
    USD("iaas_usd", "machines", 3),
    USD("faas_usd", "function", 4),
    USD("storage_usd", "storage", 4),
    {.key = "stored_usd"},
    {.key = "reads_usd"},
    {.key = "writes_usd"},
    {.key = "lists_usd"},
    USD("transfer_usd", "transfer", 3),
    {.key = "dt_iaas_usd"},
    {.key = "dt_faas_usd"},
    {.key = "dt_storage_usd"},
    {.key = "dt_to_function_usd"},
    {.key = "dt_to_workers_usd"},
    {.key = "reads"},
    {.key = "writes"},
    {.key = "lists"},
};

static void add_row(gt_table *table, const placement_result *r) {
  const gt_plan_split *s = &r->split;
  const gt_plan_terms *t = &r->terms;
  const char *sums = r->regional ? "regional" : "central";
  const double x[] = {s->batch_s,        s->train_s,     s->upload_s,       s->wait_s,
                      s->download_s,     s->aggregate_s, s->request_s,      s->upload_max_s,
                      s->download_max_s, t->total,       t->compute,        t->iaas,
                      t->faas,           t->storage,     t->stored,         t->reads,
                      t->writes,         t->lists,       t->transfer,       t->dt_iaas,
                      t->dt_faas,        t->dt_storage,  t->dt_to_function, t->dt_to_workers,
                      t->n_reads,        t->n_writes,    t->n_lists};
  char label[128];
  snprintf(label, sizeof label, "%s, %s, %s, %s", r->function, r->storage, r->place, sums);
  gt_cell row[COUNT(columns)] = {gt_cell_text(label),       gt_cell_text(r->cloud),
                                 gt_cell_text(r->function), gt_cell_text(r->storage),
                                 gt_cell_text(r->place),    gt_cell_text(sums)};
  for (size_t i = 0; i < COUNT(x); i++) row[COUNT(columns) - COUNT(x) + i] = gt_cell_number(x[i]);
  gt_table_add(table, GT_ARRAY(row));
}

static void print_cloud(FILE *to, const char *cloud, const placement_result *results, size_t n) {
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t i = 0; i < n; i++)
    if (strcmp(results[i].cloud, cloud) == 0) add_row(t, &results[i]);
  fprintf(to, "\nworkers on %s: a mini-batch (mean over workers), cost of 1,000 mini-batches\n",
          cloud);
  gt_table_finish(to, t);
}

gt_status gt_placement_csv(const char *path, const placement_result *results, size_t n) {
  FILE *file = fopen(path, "w");
  if (!file)
    return GT_FAIL(GT_ERR_JOB, "placement: --csv %s cannot be written: %s", path, strerror(errno));
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t i = 0; i < n; i++) add_row(t, &results[i]);
  gt_table_csv(file, t);
  gt_table_close(t);
  bool failed = ferror(file) != 0;
  if (fclose(file) != 0 || failed)
    return GT_FAIL(GT_ERR_JOB, "placement: --csv %s cannot be written: %s", path, strerror(errno));
  return GT_OK;
}

/* ---- central against regional ---------------------------------------------------------------- */

/* Returns by how many percent a is greater than b; 0 if both are 0. */
static double more(double a, double b) {
  return a == b ? 0 : 100 * (a / b - 1);
}

static gt_cell percent(char text[16], int digits, double value) {
  snprintf(text, 16, "%+.*f", digits, value);
  return gt_cell_text(text);
}

/* Only of one cloud; the regional result follows the central one. */
static void print_hierarchy(FILE *to, const placement_result *results, size_t n) {
  static const gt_column pairs[] = {{.title = "cloud, place"},
                                    {.title = "central", .unit = "s", FIXED(2)},
                                    {.title = "regional", .unit = "s", FIXED(2)},
                                    {.title = "time", .unit = "%", FIXED(0)},
                                    {.title = "central", .unit = "USD/1k", FIXED(3)},
                                    {.title = "regional", .unit = "USD/1k", FIXED(3)},
                                    {.title = "cost", .unit = "%", FIXED(0)},
                                    {.title = "transfer", .unit = "%", FIXED(0)}};
  char label[96], time[16], usd[16], transfer[16];
  gt_table *t = gt_table_create(GT_ARRAY(pairs));
  for (size_t i = 0; i + 1 < n; i++) {
    const placement_result *c = &results[i], *r = &results[i + 1];
    if (c->regional || !r->regional || !c->one_cloud) continue;
    snprintf(label, sizeof label, "%s, %s", c->function, c->place);
    gt_table_add(t, GT_ROW(gt_cell_text(label), gt_cell_number(c->split.batch_s),
                           gt_cell_number(r->split.batch_s),
                           percent(time, 0, more(c->split.batch_s, r->split.batch_s)),
                           gt_cell_number(c->terms.total), gt_cell_number(r->terms.total),
                           percent(usd, 1, more(c->terms.total, r->terms.total)),
                           percent(transfer, 1, more(c->terms.transfer, r->terms.transfer))));
  }
  fprintf(to, "\none cloud for all, a mini-batch with central and with regional aggregators;\n"
              "%%: central over regional\n");
  gt_table_finish(to, t);
}

/* ---- highlights ------------------------------------------------------------------------------ */

static double cost(const placement_result *r) {
  return r->terms.total;
}

static double batch_time(const placement_result *r) {
  return r->split.batch_s;
}

/* Returns the central result with the lowest `value`, except `but`; NULL: none. */
static const placement_result *least(const placement_result *results, size_t n,
                                     double (*value)(const placement_result *),
                                     const placement_result *but) {
  const placement_result *best = NULL;
  for (size_t i = 0; i < n; i++)
    if (&results[i] != but && !results[i].regional && (!best || value(&results[i]) < value(best)))
      best = &results[i];
  return best;
}

static void print_least(FILE *to, const char *title, const placement_result *results, size_t n,
                        double (*value)(const placement_result *)) {
  const placement_result *best = least(results, n, value, NULL),
                         *next = least(results, n, value, best);
  char other[256] = "";
  if (next)
    snprintf(other, sizeof other, "; next %+.1f%%: workers %s, function %s, storage %s, %s",
             more(value(next), value(best)), next->cloud, next->function, next->storage,
             next->place);
  gt_print_wrapped(to, LABEL,
                   "%-10s workers %s, function %s, storage %s, %s: %.3f USD of 1,000, %.2f s%s",
                   title, best->cloud, best->function, best->storage, best->place,
                   THOUSAND * best->terms.total, best->split.batch_s, other);
}

/* Prints how batch time, cost and phases vary with the place alone, if one cloud is used for
   everything. */
static void print_moves(FILE *to, const char *cloud, const placement_result *results, size_t n) {
  double low[4] = {INFINITY, INFINITY, INFINITY, INFINITY}, high[4] = {0}, sum = 0, batch = 0;
  for (size_t i = 0; i < n; i++) {
    const placement_result *r = &results[i];
    /* workers on several clouds: none */
    if (r->regional || !r->one_cloud || strcmp(r->cloud, cloud) != 0 ||
        strcmp(r->function, cloud) != 0)
      continue;
    const double x[4] = {r->split.batch_s, r->split.upload_s + r->split.download_s, r->split.wait_s,
                         r->terms.total};
    for (size_t k = 0; k < 4; k++) low[k] = fmin(low[k], x[k]), high[k] = fmax(high[k], x[k]);
    sum += r->split.wait_s;
    batch += r->split.train_s + r->split.upload_s + r->split.wait_s + r->split.download_s;
  }
  if (batch > 0)
    gt_print_wrapped(
        to, LABEL,
        "all on %-3s over places: batch %.2f to %.2f s (%+.0f%%), upload and download %.2f to "
        "%.2f s (%+.0f%%), wait %.2f to %.2f s, %.0f%% of the time; cost %+.0f%%",
        cloud, low[0], high[0], more(high[0], low[0]), low[1], high[1], more(high[1], low[1]),
        low[2], high[2], 100 * sum / batch, more(high[3], low[3]));
}

static void print_assumed(FILE *to, const placement_sites *sites) {
  char text[512] = "";
  size_t at = 0;
  for (size_t k = 0; k < GT_RATES; k++) {
    const rate_count *c = &sites->count[k];
    if (c->assumed > 0)
      at += (size_t)snprintf(text + at, sizeof text - at, "%s %s %zu of %zu", at ? "," : "",
                             gt_rate_name((gt_rate_kind)k), c->assumed, c->used);
  }
  if (at > 0) gt_print_wrapped(to, 2, "assumed (marked so in the catalogue):%s", text);
}

void gt_placement_print(FILE *to, const placement_options *o, const placement_sites *sites,
                        const placement_result *results, size_t n) {
  char size[32];
  gt_print_wrapped(to, 2,
                   "gradients of %s, %" PRId64 " worker%s at each of %zu places, %" PRId64
                   " mini-batches, training %.3g s, functions of %g GB, polls every %.3g s",
                   gt_format_size(size, sizeof size, o->model_bytes), o->each,
                   o->each > 1 ? "s" : "", o->workers_at.n, o->batches, o->train_s, o->memory_gb,
                   o->pace.poll_s);
  for (size_t c = 0; c < o->clouds.n; c++) print_cloud(to, o->clouds.names[c], results, n);
  if (o->hierarchy) print_hierarchy(to, results, n);
  fprintf(to, "\n");
  print_least(to, "cheapest:", results, n, cost);
  print_least(to, "fastest:", results, n, batch_time);
  for (size_t c = 0; c < o->clouds.n; c++) print_moves(to, o->clouds.names[c], results, n);
  print_assumed(to, sites);
}
