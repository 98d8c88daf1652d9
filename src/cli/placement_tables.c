/* The tables of a placement sweep, also as CSV. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "placement.h"

#define THOUSAND 1000 /* number of mini-batches that costs in the tables refer to */

/* ---- one table per cloud --------------------------------------------------------------------- */

static void print_row(FILE *to, const placement_result *r) {
  const gt_plan_split *s = &r->split;
  const gt_plan_terms *t = &r->terms;
  fprintf(to, "%-9s %-8s %-10s %-8s %8.2f %7.2f %7.2f %7.2f %9.2f  %8.3f %9.3f %9.4f %8.4f %8.3f\n",
          r->function, r->storage, r->place, r->regional ? "regional" : "central", s->batch_s,
          s->train_s, s->upload_s, s->wait_s, s->download_s, THOUSAND * t->total,
          THOUSAND * t->iaas, THOUSAND * t->faas, THOUSAND * t->storage, THOUSAND * t->transfer);
}

static void print_cloud(FILE *to, const char *cloud, const placement_result *results, size_t n) {
  fprintf(to,
          "\nworkers on %s%*s seconds of a mini-batch (mean over workers)        USD of 1,000 "
          "mini-batches\n",
          cloud, 32 - (int)strlen(cloud), "");
  fprintf(to, "function  storage  place      aggr.       batch   train  upload    wait  download   "
              "  total  machines  function  storage transfer\n");
  for (size_t i = 0; i < n; i++)
    if (strcmp(results[i].cloud, cloud) == 0) print_row(to, &results[i]);
}

/* ---- central against regional ---------------------------------------------------------------- */

/* Returns by how many percent a is greater than b; 0 if both are 0. */
static double more(double a, double b) {
  return a == b ? 0 : 100 * (a / b - 1);
}

/* Only where workers, function and storage belong to one cloud; the regional result follows the
   central one. */
static void print_hierarchy(FILE *to, const placement_result *results, size_t n) {
  fprintf(to, "\none cloud for all       central              regional               central over "
              "regional\n");
  fprintf(to, "cloud    place           batch  USD of 1,000    batch  USD of 1,000    time    cost "
              " transfer\n");
  for (size_t i = 0; i + 1 < n; i++) {
    const placement_result *c = &results[i], *r = &results[i + 1];
    if (c->regional || !r->regional || strcmp(c->cloud, c->function) != 0 ||
        strcmp(c->cloud, c->storage) != 0)
      continue;
    fprintf(to, "%-8s %-12s %8.2f  %12.3f %8.2f  %12.3f  %+5.0f%%  %+5.1f%%    %+5.1f%%\n",
            c->cloud, c->place, c->split.batch_s, THOUSAND * c->terms.total, r->split.batch_s,
            THOUSAND * r->terms.total, more(c->split.batch_s, r->split.batch_s),
            more(c->terms.total, r->terms.total), more(c->terms.transfer, r->terms.transfer));
  }
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
  fprintf(to, "%-10s workers %s, function %s, storage %s, %s: %.3f USD of 1,000, %.2f s", title,
          best->cloud, best->function, best->storage, best->place, THOUSAND * best->terms.total,
          best->split.batch_s);
  if (next)
    fprintf(to, "; next %+.1f%%: workers %s, function %s, storage %s, %s",
            more(value(next), value(best)), next->cloud, next->function, next->storage,
            next->place);
  fprintf(to, "\n");
}

/* Prints how batch time, cost and phases vary with the place alone, if one cloud is used for
   everything. */
static void print_moves(FILE *to, const char *cloud, const placement_result *results, size_t n) {
  double low[4] = {INFINITY, INFINITY, INFINITY, INFINITY}, high[4] = {0}, sum = 0, batch = 0;
  for (size_t i = 0; i < n; i++) {
    const placement_result *r = &results[i];
    if (r->regional || strcmp(r->cloud, cloud) != 0 || strcmp(r->function, cloud) != 0 ||
        strcmp(r->storage, cloud) != 0)
      continue;
    const double x[4] = {r->split.batch_s, r->split.upload_s + r->split.download_s, r->split.wait_s,
                         r->terms.total};
    for (size_t k = 0; k < 4; k++) low[k] = fmin(low[k], x[k]), high[k] = fmax(high[k], x[k]);
    sum += r->split.wait_s;
    batch += r->split.train_s + r->split.upload_s + r->split.wait_s + r->split.download_s;
  }
  if (batch > 0)
    fprintf(to,
            "all on %-5s over places: batch %.2f to %.2f s (%+.0f%%), upload and download %.2f to "
            "%.2f s (%+.0f%%), wait %.2f to %.2f s, %.0f%% of "
            "the time; cost %+.0f%%\n",
            cloud, low[0], high[0], more(high[0], low[0]), low[1], high[1], more(high[1], low[1]),
            low[2], high[2], 100 * sum / batch, more(high[3], low[3]));
}

static void print_assumed(FILE *to, const placement_sites *sites) {
  bool first = true;
  for (size_t k = 0; k < GT_RATES; k++) {
    const rate_count *c = &sites->count[k];
    if (c->assumed == 0) continue;
    fprintf(to, "%s %s %zu of %zu", first ? "assumed (marked so in the catalogue):" : ",",
            gt_rate_name((gt_rate_kind)k), c->assumed, c->used);
    first = false;
  }
  if (!first) fprintf(to, "\n");
}

void gt_placement_print(FILE *to, const placement_options *o, const placement_sites *sites,
                        const placement_result *results, size_t n) {
  char size[32];
  fprintf(to,
          "gradients of %s, %" PRId64 " worker%s at each of %zu places, %" PRId64
          " mini-batches, training %.3g s, functions of %g GB, polls every %.3g s\n",
          gt_format_size(size, sizeof size, o->model_bytes), o->each, o->each > 1 ? "s" : "",
          o->workers_at.n, o->batches, o->train_s, o->memory_gb, o->pace.poll_s);
  for (size_t c = 0; c < o->clouds.n; c++) print_cloud(to, o->clouds.names[c], results, n);
  if (o->hierarchy) print_hierarchy(to, results, n);
  fprintf(to, "\n");
  print_least(to, "cheapest:", results, n, cost);
  print_least(to, "fastest:", results, n, batch_time);
  for (size_t c = 0; c < o->clouds.n; c++) print_moves(to, o->clouds.names[c], results, n);
  print_assumed(to, sites);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void write_row(FILE *file, const placement_result *r) {
  const gt_plan_split *s = &r->split;
  const gt_plan_terms *t = &r->terms;
  const double x[] = {s->batch_s,        s->train_s,     s->upload_s,       s->wait_s,
                      s->download_s,     s->aggregate_s, s->request_s,      s->upload_max_s,
                      s->download_max_s, t->total,       t->compute,        t->iaas,
                      t->faas,           t->storage,     t->stored,         t->reads,
                      t->writes,         t->lists,       t->transfer,       t->dt_iaas,
                      t->dt_faas,        t->dt_storage,  t->dt_to_function, t->dt_to_workers,
                      t->n_reads,        t->n_writes,    t->n_lists};
  fprintf(file, "%s,%s,%s,%s,%s", r->cloud, r->function, r->storage, r->place,
          r->regional ? "regional" : "central");
  for (size_t i = 0; i < sizeof x / sizeof *x; i++) fprintf(file, ",%.9g", x[i]);
  fprintf(file, "\n");
}

gt_status gt_placement_csv(const char *path, const placement_result *results, size_t n) {
  FILE *file = fopen(path, "w");
  if (!file)
    return GT_FAIL(GT_ERR_JOB, "placement: --csv %s cannot be written: %s", path, strerror(errno));
  fprintf(file, "workers,function,storage,place,aggregators,batch_s,train_s,upload_s,wait_s,"
                "download_s,aggregate_s,request_s,upload_max_s,download_max_s,"
                "total_usd,"
                "compute_usd,iaas_usd,faas_usd,storage_usd,stored_usd,reads_usd,writes_usd,lists_"
                "usd,transfer_usd,dt_iaas_usd,dt_faas_usd,dt_storage_usd,"
                "dt_to_function_usd,dt_to_workers_usd,reads,writes,lists\n");
  for (size_t i = 0; i < n; i++) write_row(file, &results[i]);
  bool failed = ferror(file) != 0;
  if (fclose(file) != 0 || failed)
    return GT_FAIL(GT_ERR_JOB, "placement: --csv %s cannot be written: %s", path, strerror(errno));
  return GT_OK;
}
