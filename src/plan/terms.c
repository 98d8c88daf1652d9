/* The terms of the multi-cloud study (Phalak et al., equations 1 to 9) for a run with a function:
   by the equations, for the same machines, links and rates; and from the requests, bytes and
   seconds that the run has counted. */
#include <math.h>

#include "geotrain/plan.h"
#include "geotrain/plan_job.h"
#include "internal.h"

/* A site for each region, and one for the storage. */
typedef struct {
  const gt_job *job;
  const gt_links *links;
  const gt_job_prices *prices;
  const gt_region_result *results;
  double wall_s, batches;
  size_t n, function; /* sites; the last one is the storage */
  double object_bytes;
  tariff_set set;
  gt_plan_tariff *tariffs; /* n x n */
  gt_plan_rates *rates;    /* n */
  gt_link_spec *up, *down; /* n x n */
  gt_plan_worker *workers;
  size_t nworkers;
} terms_course;

static size_t storage_of(const terms_course *c) {
  return c->n - 1;
}

/* Returns the workers of a region in the equations: one for the sum of all, unless they send one by
   one. */
static size_t senders(const terms_course *c, size_t region) {
  return c->job->sync.central ? gt_job_workers(c->job, region) : 1;
}

static void fill_links(terms_course *c) {
  const size_t s = storage_of(c);
  for (size_t r = 0; r < s; r++) {
    const gt_job_store at = gt_job_store_of(c->job, r);
    const double each = r == c->function ? 1 : (double)senders(c, r);
    const double there_s = at.latency_s + at.request_s;
    c->up[r * c->n + s] = (gt_link_spec){
        .bandwidth_bps = at.upload_bps / each, .latency_s = there_s, .back_s = at.latency_s};
    c->down[s * c->n + r] = (gt_link_spec){
        .bandwidth_bps = at.download_bps / each, .latency_s = at.latency_s, .back_s = there_s};
  }
}

static void fill_rates(terms_course *c) {
  const gt_job_prices *p = c->prices;
  const size_t s = storage_of(c);
  const gt_plan_price function = gt_plan_function_price(p, c->function, c->object_bytes);
  double objects = 0;
  for (size_t r = 0; r < s; r++) {
    const int64_t workers = (int64_t)gt_job_workers(c->job, r);
    if (r == c->function || workers == 0) continue;
    const gt_job_price price = gt_job_worker_price(c->job, p, r, workers);
    c->rates[r].vm_hour = fmax(0, price.usd) * (double)workers / (double)senders(c, r);
    objects += (double)senders(c, r);
  }
  c->rates[c->function].function_gb_s = function.usd;
  c->rates[c->function].memory_gb = function.gb;
  c->rates[c->function].add_s_per_gb =
      gt_job_compute_of(c->job, c->function).encode_s / (objects * c->object_bytes / 1e9);
  c->rates[s] = (gt_plan_rates){.storage_gb_month = p->store.gb_month,
                                .read = p->store.read.usd,
                                .write = p->store.write.usd,
                                .list = p->store.list.usd};
  for (size_t r = 0; r < s; r++) {
    const size_t from = p->regions[r].site, to = p->store.site;
    c->tariffs[r * c->n + s] = c->set.tariffs[from * p->nsites + to];
    c->tariffs[s * c->n + r] = c->set.tariffs[to * p->nsites + from];
  }
}

static void fill_workers(terms_course *c) {
  size_t n = 0;
  for (size_t r = 0; r < storage_of(c); r++) n += senders(c, r);
  c->workers = GT_NEW_ARRAY(gt_plan_worker, n + 1);
  for (size_t r = 0; r < storage_of(c); r++) {
    const gt_region_result *of = &c->results[r];
    if (r == c->function || of->steps == 0) continue;
    for (size_t i = 0; i < senders(c, r); i++)
      c->workers[c->nworkers++] = (gt_plan_worker){r, 0, of->compute_s / (double)of->steps};
  }
}

static void set_term(gt_cost_result *cost, size_t i, const char *name, double equations,
                     double counted) {
  cost->terms[i] = (gt_cost_term){name, equations, counted};
}

/* Returns the cost of what a region has written to the storage, and read from it. */
static void egress_of(const terms_course *c, gt_plan_flow *flows) {
  const size_t s = storage_of(c);
  for (size_t r = 0; r < s; r++) {
    const gt_store_result *of = &c->results[r].store;
    flows[2 * r] =
        (gt_plan_flow){.tariff = &c->tariffs[r * c->n + s], .gb = (double)of->bytes_out / 1e9};
    flows[2 * r + 1] =
        (gt_plan_flow){.tariff = &c->tariffs[s * c->n + r], .gb = (double)of->bytes_in / 1e9};
  }
  gt_plan_egress(flows, 2 * s, NULL, c->prices->npools);
}

static void count(const terms_course *c, gt_cost_result *cost, const gt_plan_terms *by) {
  const gt_plan_rates *rate = c->rates, *storage = &c->rates[storage_of(c)];
  gt_plan_flow *flows = GT_NEW_ARRAY(gt_plan_flow, 2 * c->n);
  double iaas = 0, stored = 0, reads = 0, writes = 0, lists = 0, out = 0, in = 0;
  egress_of(c, flows);
  for (size_t r = 0; r < storage_of(c); r++) {
    const gt_store_result *of = &c->results[r].store;
    iaas += rate[r].vm_hour * (double)senders(c, r) * c->wall_s / 3600;
    reads += (double)(of->reads + of->failed_reads);
    writes += (double)of->writes;
    lists += (double)of->lists;
    stored += of->gb_s / GT_PLAN_MONTH_S * storage->storage_gb_month;
    if (r != c->function) out += flows[2 * r].usd;
    in += flows[2 * r + 1].usd;
  }
  const double faas = c->results[c->function].store.function_s * rate[c->function].memory_gb *
                      rate[c->function].function_gb_s,
               from_function = flows[2 * c->function].usd, n = c->batches;
  const double counted = iaas + faas + stored + reads * storage->read + writes * storage->write +
                         lists * storage->list + out + from_function + in;
  set_term(cost, 0, "(1) all", n * by->total, counted);
  set_term(cost, 1, "(3) machines", n * by->iaas, iaas);
  set_term(cost, 2, "(4) functions", n * by->faas, faas);
  set_term(cost, 3, "(5) storage", n * by->stored, stored);
  set_term(cost, 4, "(5) reads", n * by->reads, reads * storage->read);
  set_term(cost, 5, "(5) writes", n * by->writes, writes * storage->write);
  set_term(cost, 6, "(5) lists", n * by->lists, lists * storage->list);
  set_term(cost, 7, "(7) out of machines", n * by->dt_iaas, out);
  set_term(cost, 8, "(8) out of functions", n * by->dt_faas, from_function);
  set_term(cost, 9, "(9) out of the storage", n * by->dt_storage, in);
  cost->has_terms = true;
  gt_free(flows);
}

/* Returns the looks in vain of a mini-batch.  A worker of the equations looks only once its upload
   has ended; a region looks all the time, and for messages of each other region. */
static double looks_in_vain(const terms_course *c, double batch_s) {
  int64_t looks = 0;
  for (size_t r = 0; r < storage_of(c); r++)
    if (r != c->function)
      looks += gt_links_vain_looks(c->links, r, batch_s * c->batches,
                                   (int64_t)(c->batches * (double)senders(c, r)));
  return (double)looks / c->batches;
}

static void compare(terms_course *c, gt_cost_result *cost) {
  const gt_plan_sites sites = {c->n, c->rates, c->tariffs, c->up, c->down};
  const gt_plan_placement placement = {.sites = &sites,
                                       .workers = c->workers,
                                       .nworkers = c->nworkers,
                                       .global = {c->function, storage_of(c)},
                                       .model_bytes = c->object_bytes,
                                       .batches = (int64_t)c->batches};
  const gt_plan_pace pace = {c->job->wan.store.poll_s, c->job->wan.store.start_s};
  double *vm_s = GT_NEW_ARRAY(double, c->nworkers);
  gt_plan_use use;
  const gt_plan_split split = gt_plan_place(&placement, &pace, vm_s, &use);
  use.failed_reads = looks_in_vain(c, split.batch_s);
  const gt_plan_terms by = gt_plan_cost(&placement, vm_s, &use, NULL, c->prices->npools);
  count(c, cost, &by);
  gt_free(vm_s);
}

void gt_plan_job_terms(gt_cost_result *cost, const gt_job *job, const gt_links *links,
                       const gt_job_prices *prices, double wall_s,
                       const gt_region_result *regions) {
  const size_t n = job->nregions + 1;
  size_t function = 0;
  while (function + 1 < n && !gt_job_is_function(job, function)) function++;
  if (function + 1 == n || !prices->store.known || prices->nmissing > 0) return;
  terms_course c = {.job = job,
                    .links = links,
                    .prices = prices,
                    .results = regions,
                    .wall_s = wall_s,
                    .n = n,
                    .function = function,
                    .set = gt_plan_tariffs_of(prices),
                    .tariffs = GT_NEW_ARRAY(gt_plan_tariff, n * n),
                    .rates = GT_NEW_ARRAY(gt_plan_rates, n),
                    .up = GT_NEW_ARRAY(gt_link_spec, n * n),
                    .down = GT_NEW_ARRAY(gt_link_spec, n * n)};
  for (size_t r = 0; r + 1 < n; r++) c.batches = fmax(c.batches, (double)regions[r].steps);
  const gt_store_result *read = &regions[function].store;
  if (read->reads > 0 && c.batches > 0) {
    c.object_bytes = (double)read->bytes_in / (double)read->reads;
    fill_links(&c);
    fill_rates(&c);
    fill_workers(&c);
    compare(&c, cost);
  }
  gt_plan_tariffs_close(&c.set);
  gt_free(c.workers);
  gt_free(c.down);
  gt_free(c.up);
  gt_free(c.rates);
  gt_free(c.tariffs);
}
