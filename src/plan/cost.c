/* Costs: the model of the multi-cloud study (Phalak et al., ICPE 2024 Companion), equations (1) to
   (9), with tiers of egress; machine hours and traffic of geotrain's own topology; the cost of a
   job, planned or measured. */
#include <math.h>
#include <stdio.h>

#include "geotrain/plan.h"
#include "geotrain/plan_job.h"
#include "internal.h"

#define BYTES_A_GB 1e9

/* ---- egress ---------------------------------------------------------------------------------- */

/* Returns the cost in USD of the first `gb` of a month. */
static double cost_until(const gt_plan_tariff *tariff, double gb) {
  double usd = 0;
  for (size_t i = 0; i < tariff->ntiers && tariff->tiers[i].from_gb < gb; i++) {
    double until = i + 1 < tariff->ntiers ? fmin(gb, tariff->tiers[i + 1].from_gb) : gb;
    usd += (until - tariff->tiers[i].from_gb) * tariff->tiers[i].usd_per_gb;
  }
  return usd;
}

/* Returns the mean price of a GB while the pool's volume grows from `before` to `after`. */
static double mean_price(const gt_plan_tariff *tariff, double before, double after) {
  size_t first = 0, last = 0;
  if (tariff->ntiers == 0) return 0;
  while (first + 1 < tariff->ntiers && tariff->tiers[first + 1].from_gb <= before) first++;
  while (last + 1 < tariff->ntiers && tariff->tiers[last + 1].from_gb < after) last++;
  /* avoids the difference of large numbers */
  if (first >= last) return tariff->tiers[first].usd_per_gb;
  return (cost_until(tariff, after) - cost_until(tariff, before)) / (after - before);
}

void gt_plan_egress(gt_plan_flow *flows, size_t nflows, const double *used_gb, size_t npools) {
  size_t n = npools;
  for (size_t i = 0; i < nflows; i++)
    if (flows[i].tariff->pool >= n) n = flows[i].tariff->pool + 1;
  double *moved = GT_NEW_ARRAY(double, n + 1);
  for (size_t i = 0; i < nflows; i++) moved[flows[i].tariff->pool] += flows[i].gb;
  for (size_t i = 0; i < nflows; i++) {
    size_t pool = flows[i].tariff->pool;
    double before = used_gb && pool < npools ? used_gb[pool] : 0;
    flows[i].usd = flows[i].gb > 0
                       ? flows[i].gb * mean_price(flows[i].tariff, before, before + moved[pool])
                       : 0;
  }
  gt_free(moved);
}

/* ---- transfer: (6) to (9) -------------------------------------------------------------------- */

typedef enum { FROM_WORKER, FROM_FUNCTION, TO_FUNCTION, TO_WORKER } flow_kind;

/* Flows of all batches; kind[i] is the term of flow i. */
typedef struct {
  gt_plan_flow *flows;
  flow_kind *kind;
  size_t n;
  const gt_plan_placement *p;
} flow_list;

/* objects: per batch, each of the model's size. */
static void add_flow(flow_list *list, flow_kind kind, size_t from, size_t to, double objects) {
  const gt_plan_sites *sites = list->p->sites;
  double gb = objects * (double)list->p->batches * list->p->model_bytes / BYTES_A_GB;
  list->flows[list->n] = (gt_plan_flow){.tariff = &sites->tariffs[from * sites->n + to], .gb = gb};
  list->kind[list->n++] = kind;
}

static size_t members(const gt_plan_placement *p, size_t point) {
  size_t n = 0;
  for (size_t i = 0; i < p->nworkers; i++) n += p->workers[i].point == point;
  return n;
}

static void list_flows(flow_list *list) {
  const gt_plan_placement *p = list->p;
  const gt_plan_point *global = &p->global;
  for (size_t i = 0; i < p->nworkers; i++) {
    size_t storage = p->nregional ? p->regional[p->workers[i].point].storage : global->storage;
    add_flow(list, FROM_WORKER, p->workers[i].site, storage, 1);
    add_flow(list, TO_WORKER, storage, p->workers[i].site, 1);
  }
  for (size_t r = 0; r < p->nregional; r++) {
    const gt_plan_point *point = &p->regional[r];
    add_flow(list, TO_FUNCTION, point->storage, point->function, (double)members(p, r));
    add_flow(list, FROM_FUNCTION, point->function, global->storage, 1);
    add_flow(list, FROM_FUNCTION, global->function, point->storage, 1);
  }
  add_flow(list, TO_FUNCTION, global->storage, global->function,
           (double)(p->nregional ? p->nregional : p->nworkers));
  if (!p->nregional) add_flow(list, FROM_FUNCTION, global->function, global->storage, 1);
}

static void add_transfer(gt_plan_terms *t, const gt_plan_placement *p, const double *used_gb,
                         size_t npools) {
  size_t n = 2 * p->nworkers + 3 * p->nregional + 2;
  flow_list list = {
      .flows = GT_NEW_ARRAY(gt_plan_flow, n), .kind = GT_NEW_ARRAY(flow_kind, n), .p = p};
  list_flows(&list);
  gt_plan_egress(list.flows, list.n, used_gb, npools);
  for (size_t i = 0; i < list.n; i++) {
    double usd = list.flows[i].usd / (double)p->batches;
    if (list.kind[i] == FROM_WORKER) t->dt_iaas += usd;
    if (list.kind[i] == FROM_FUNCTION) t->dt_faas += usd;
    if (list.kind[i] == TO_FUNCTION) t->dt_to_function += usd;
    if (list.kind[i] == TO_WORKER) t->dt_to_workers += usd;
  }
  t->dt_storage = t->dt_to_function + t->dt_to_workers;
  t->transfer = t->dt_iaas + t->dt_faas + t->dt_storage;
  gt_free(list.flows);
  gt_free(list.kind);
}

/* ---- compute and storage: (2) to (5) --------------------------------------------------------- */

/* Requests at one aggregator per batch: each invocation lists, the last one reads every object.
   gets: the workers' reads. */
typedef struct {
  size_t invocations, writes, gets;
} requests;

static void add_point(gt_plan_terms *t, const gt_plan_placement *p, const gt_plan_point *point,
                      const gt_plan_use *use, requests n) {
  const gt_plan_rates *function = &p->sites->rates[point->function],
                      *storage = &p->sites->rates[point->storage];
  double reads = (double)(n.invocations + n.gets) + use->failed_reads,
         gb_months =
             p->objects_by_month ? p->model_bytes / BYTES_A_GB : use->stored_gb_s / GT_PLAN_MONTH_S;
  t->faas += use->function_s * function->memory_gb * function->function_gb_s;
  t->stored += gb_months * storage->storage_gb_month;
  t->reads += reads * storage->read;
  t->writes += (double)n.writes * storage->write;
  t->lists += (double)n.invocations * storage->list;
  t->n_reads += reads;
  t->n_writes += (double)n.writes;
  t->n_lists += (double)n.invocations;
}

gt_plan_terms gt_plan_cost(const gt_plan_placement *p, const double *vm_s, const gt_plan_use *use,
                           const double *used_gb, size_t npools) {
  gt_plan_terms t = {0};
  for (size_t i = 0; i < p->nworkers; i++)
    t.iaas += vm_s[i] / 3600 * p->sites->rates[p->workers[i].site].vm_hour;
  for (size_t r = 0; r < p->nregional; r++) {
    size_t n = members(p, r);
    /* the model is also written here */
    add_point(&t, p, &p->regional[r], &use[r], (requests){n, n + 1, n});
  }
  if (p->nregional)
    add_point(&t, p, &p->global, &use[p->nregional], (requests){p->nregional, p->nregional, 0});
  else
    add_point(&t, p, &p->global, &use[0], (requests){p->nworkers, p->nworkers + 1, p->nworkers});
  t.compute = t.iaas + t.faas;
  t.storage = t.stored + t.reads + t.writes + t.lists;
  add_transfer(&t, p, used_gb, npools);
  t.total = t.compute + t.storage + t.transfer;
  return t;
}

/* ---- geotrain's own topology ------------------------------------------------------------------
   */

double gt_plan_billed(double seconds, const gt_plan_billing *billing) {
  double s = seconds > 0 ? fmax(seconds, billing->min_s) : 0;
  /* 60.00000001 s count as one minute */
  if (billing->step_s > 0) s = ceil(s / billing->step_s - 1e-9) * billing->step_s;
  return s;
}

static void add_machines(gt_plan_cost_sum *sum, gt_plan_cost_region *r) {
  double hours = gt_plan_billed(r->seconds, &r->billing) / 3600;
  r->worker_usd = (double)r->workers * hours * r->worker_price;
  r->ps_usd = hours * r->ps_price;
  r->egress_usd = 0;
  sum->worker_usd += r->worker_usd;
  sum->ps_usd += r->ps_usd;
  sum->machine_hours += ((double)r->workers + 1) * hours;
}

gt_plan_cost_sum gt_plan_topology_cost(gt_plan_cost_region *regions, size_t nregions,
                                       gt_plan_cost_link *links, size_t nlinks,
                                       const double *used_gb, size_t npools) {
  gt_plan_cost_sum sum = {0};
  gt_plan_flow *flows = GT_NEW_ARRAY(gt_plan_flow, nlinks + 1);
  for (size_t i = 0; i < nregions; i++) add_machines(&sum, &regions[i]);
  for (size_t i = 0; i < nlinks; i++)
    flows[i] = (gt_plan_flow){.tariff = &links[i].tariff, .gb = links[i].bytes / 1e9};
  gt_plan_egress(flows, nlinks, used_gb, npools);
  for (size_t i = 0; i < nlinks; i++) {
    links[i].usd = flows[i].usd;
    regions[links[i].from].egress_usd += flows[i].usd;
    sum.egress_usd += flows[i].usd;
  }
  for (size_t i = 0; i < nregions; i++)
    regions[i].usd = regions[i].worker_usd + regions[i].ps_usd + regions[i].egress_usd;
  sum.machine_usd = sum.worker_usd + sum.ps_usd;
  sum.usd = sum.machine_usd + sum.egress_usd;
  gt_free(flows);
  return sum;
}

/* ---- a job ------------------------------------------------------------------------------------
   */

tariff_set gt_plan_tariffs_of(const gt_job_prices *p) {
  size_t n = p->nsites * p->nsites, ntiers = 0, at = 0;
  for (size_t i = 0; i < n; i++) ntiers += p->tariffs[i].n;
  tariff_set set = {GT_NEW_ARRAY(gt_plan_tier, ntiers + 1), GT_NEW_ARRAY(gt_plan_tariff, n + 1),
                    GT_NEW_ARRAY(double, p->npools + 1)};
  for (size_t i = 0; i < n; i++) {
    const gt_job_tariff *t = &p->tariffs[i];
    set.tariffs[i] = (gt_plan_tariff){&set.tiers[at], t->n, t->pool};
    for (size_t k = 0; k < t->n; k++)
      set.tiers[at++] = (gt_plan_tier){t->rates[k].from_gb, t->rates[k].value};
  }
  return set;
}

void gt_plan_tariffs_close(tariff_set *set) {
  gt_free(set->pool_gb);
  gt_free(set->tariffs);
  gt_free(set->tiers);
}

static double price_of(gt_job_price price, bool *assumed) {
  if (price.usd > 0) *assumed |= price.assumed;
  return price.usd > 0 ? price.usd : 0;
}

static gt_plan_cost_region region_of(const gt_job *job, const gt_job_prices *p, size_t r,
                                     double seconds, bool *assumed) {
  const gt_job_region_prices *own = &p->regions[r];
  const int64_t workers = (int64_t)gt_job_workers(job, r);
  if (seconds < own->min_s) *assumed |= own->assumed;
  return (gt_plan_cost_region){
      .workers = workers,
      .worker_price = workers > 0 ? price_of(gt_job_worker_price(job, p, r, workers), assumed) : 0,
      .ps_price = gt_job_is_function(job, r) ? 0 : price_of(own->ps, assumed),
      .seconds = seconds,
      .billing = {job->plan.billing_s, own->min_s}};
}

/* Traffic between sites, a link for each region and direction. */
typedef struct {
  gt_plan_cost_link *links; /* from: the region whose egress it is */
  const gt_job_tariff **tariffs;
  size_t n;
} traffic;

static void add_link(traffic *t, const gt_job_prices *p, tariff_set *set, size_t region,
                     size_t from, size_t to, double bytes) {
  const size_t pair = from * p->nsites + to;
  const gt_plan_tariff *tariff = &set->tariffs[pair];
  if (tariff->ntiers == 0 || !(bytes > 0)) return;
  t->tariffs[t->n] = &p->tariffs[pair];
  t->links[t->n++] =
      (gt_plan_cost_link){.from = region, .to = region, .bytes = bytes, .tariff = *tariff};
  set->pool_gb[tariff->pool] += bytes / 1e9;
}

/* Adds up the traffic from each region to all regions at one site, which have the same tariff. */
static void add_direct(traffic *t, const gt_job_prices *p, const double *bytes, tariff_set *set) {
  double *moved = GT_NEW_ARRAY(double, p->nsites + 1);
  for (size_t a = 0; a < p->nregions; a++) {
    if (!p->regions[a].has_place) continue;
    for (size_t s = 0; s < p->nsites; s++) moved[s] = 0;
    for (size_t b = 0; b < p->nregions; b++)
      if (a != b && p->regions[b].has_place)
        moved[p->regions[b].site] += bytes[a * p->nregions + b];
    for (size_t s = 0; s < p->nsites; s++) add_link(t, p, set, a, p->regions[a].site, s, moved[s]);
  }
  gt_free(moved);
}

/* Each message is written to the store and read from there. */
static void add_stored(traffic *t, const gt_job_prices *p, const double *bytes,
                       const gt_region_result *all, tariff_set *set) {
  for (size_t a = 0; a < p->nregions; a++) {
    double out = all ? -(double)all[a].store.bytes_shared : 0, in = 0;
    if (!p->regions[a].has_place) continue;
    for (size_t b = 0; b < p->nregions; b++) {
      if (a == b) continue;
      out += bytes[a * p->nregions + b];
      in += bytes[b * p->nregions + a];
    }
    add_link(t, p, set, a, p->regions[a].site, p->store.site, out);
    add_link(t, p, set, a, p->store.site, p->regions[a].site, in);
  }
}

gt_store_result gt_plan_store_use(const gt_links *links, size_t region,
                                  const gt_link_objects *written, const gt_link_objects *read,
                                  const gt_link_function *function, double seconds) {
  const int64_t all = read->data + read->control,
                references = function->lists > 0 ? 0 : function->shared;
  gt_store_result r = {.writes = written->data - function->shared,
                       .reads = read->data,
                       .lists = function->lists,
                       .deletes = all, /* also of those that others read: by their writer */
                       .bytes_in = read->data_bytes,
                       .bytes_out = written->data_bytes - function->shared_bytes,
                       .bytes_shared = function->shared_bytes,
                       .control_writes = written->control + references,
                       .control_reads = read->control + references,
                       .function_s = function->seconds,
                       .gb_s = function->byte_s * 1e-9};
  if (r.lists == 0) r.failed_reads = gt_links_vain_looks(links, region, seconds, all);
  return r;
}

/* True if a tier that applies is assumed.  A tier applies if the pool's volume reaches it. */
static bool tiers_assumed(const traffic *all, const tariff_set *set) {
  for (size_t i = 0; i < all->n; i++) {
    const gt_job_tariff *t = all->tariffs[i];
    for (size_t k = 0; k < t->n; k++)
      if (t->rates[k].assumed && set->pool_gb[t->pool] > t->rates[k].from_gb) return true;
  }
  return false;
}

/* Adds the cost of requests to the store, and of the time for which objects are there. */
static void add_requests(gt_cost_result *out, const gt_job_prices *p, const gt_region_result *all) {
  double reads = 0, writes = 0, lists = 0, gb_months = 0;
  for (size_t r = 0; r < p->nregions && all && p->store.known; r++) {
    const gt_store_result *of = &all[r].store;
    reads += (double)(of->reads + of->failed_reads + of->control_reads);
    writes += (double)(of->writes + of->control_writes);
    lists += (double)of->lists;
    gb_months += of->gb_s / GT_PLAN_MONTH_S;
  }
  out->store_usd = reads * p->store.read.usd + writes * p->store.write.usd +
                   lists * p->store.list.usd + gb_months * p->store.gb_month;
  out->usd += out->store_usd;
  out->assumed |= (reads > 0 && p->store.read.assumed) || (writes > 0 && p->store.write.assumed) ||
                  (lists > 0 && p->store.list.assumed);
}

gt_plan_price gt_plan_function_price(const gt_job_prices *prices, size_t region,
                                     double object_bytes) {
  const gt_job_region_prices *own = &prices->regions[region];
  gt_plan_price price = {2 * object_bytes / BYTES_A_GB, 0, false};
  size_t i = 0;
  if (own->nfunction == 0) return price;
  while (i + 1 < own->nfunction && own->function[i].from_gb < price.gb) i++;
  if (own->function[i].from_gb > 0) price.gb = own->function[i].from_gb;
  price.usd = own->function[i].value;
  price.assumed = own->function[i].assumed;
  return price;
}

/* Adds the time of functions. */
static void add_functions(gt_cost_result *out, const gt_job_prices *p,
                          const gt_region_result *all) {
  for (size_t r = 0; r < p->nregions && all; r++) {
    const gt_store_result *of = &all[r].store;
    if (p->regions[r].nfunction == 0 || of->reads == 0) continue;
    const gt_plan_price price =
        gt_plan_function_price(p, r, (double)of->bytes_in / (double)of->reads);
    const double usd = of->function_s * price.gb * price.usd;
    out->regions[r].ps_usd += usd;
    out->ps_usd += usd;
    out->usd += usd;
    out->assumed |= price.assumed;
  }
}

static void copy_missing(gt_cost_result *out, const gt_job_prices *p) {
  out->missing = GT_NEW_ARRAY(char *, p->nmissing + 1);
  for (size_t i = 0; i < p->nmissing; i++) out->missing[out->nmissing++] = gt_strdup(p->missing[i]);
}

void gt_plan_job_cost(gt_cost_result *out, const gt_job *job, const gt_job_prices *p, double wall_s,
                      const double *bytes, const gt_region_result *results) {
  const size_t n = job->nregions, most = n * p->nsites + 2 * n;
  tariff_set set = gt_plan_tariffs_of(p);
  gt_plan_cost_region *regions = GT_NEW_ARRAY(gt_plan_cost_region, n);
  traffic all = {GT_NEW_ARRAY(gt_plan_cost_link, most), GT_NEW_ARRAY(const gt_job_tariff *, most),
                 0};
  *out = (gt_cost_result){.regions = GT_NEW_ARRAY(gt_cost_region, n), .nregions = n};
  for (size_t r = 0; r < n; r++)
    regions[r] = region_of(job, p, r, job->plan.start_s + wall_s, &out->assumed);
  if (bytes && p->store.known)
    add_stored(&all, p, bytes, results, &set);
  else if (bytes && job->wan.transport != GT_WAN_STORE)
    add_direct(&all, p, bytes, &set);
  gt_plan_cost_sum sum = gt_plan_topology_cost(regions, n, all.links, all.n, NULL, p->npools);
  out->usd = sum.usd;
  out->worker_usd = sum.worker_usd;
  out->ps_usd = sum.ps_usd;
  out->egress_usd = sum.egress_usd;
  out->machine_hours = sum.machine_hours;
  out->assumed |= tiers_assumed(&all, &set);
  add_requests(out, p, results);
  for (size_t r = 0; r < n; r++) {
    out->regions[r] = (gt_cost_region){.worker_usd = regions[r].worker_usd,
                                       .ps_usd = regions[r].ps_usd,
                                       .egress_usd = regions[r].egress_usd};
    snprintf(out->regions[r].name, sizeof out->regions[r].name, "%s", job->regions[r].name);
  }
  add_functions(out, p, results);
  copy_missing(out, p);
  gt_free(all.links);
  gt_free(all.tariffs);
  gt_free(regions);
  gt_plan_tariffs_close(&set);
}

void gt_plan_job_cost_close(gt_cost_result *cost) {
  for (size_t i = 0; i < cost->nmissing; i++) gt_free(cost->missing[i]);
  gt_free(cost->missing);
  gt_free(cost->regions);
  *cost = (gt_cost_result){0};
}
