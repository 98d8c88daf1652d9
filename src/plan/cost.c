/* The cost model of the multi-cloud study (Phalak et al., ICPE 2024 Companion), equations (1) to
   (9), with tiers of egress. */
#include "geotrain/plan.h"

#include <math.h>

#define BYTES_A_GB 1e9

/* ---- egress ---------------------------------------------------------------------------------- */

/* The cost in USD of the first `gb` of a month. */
static double cost_until(const gt_plan_tariff *tariff, double gb) {
  double usd = 0;
  for (size_t i = 0; i < tariff->ntiers && tariff->tiers[i].from_gb < gb; i++) {
    double until = i + 1 < tariff->ntiers ? fmin(gb, tariff->tiers[i + 1].from_gb) : gb;
    usd += (until - tariff->tiers[i].from_gb) * tariff->tiers[i].usd_per_gb;
  }
  return usd;
}

/* The mean price of a GB while the pool's volume grows from `before` to `after`. */
static double mean_price(const gt_plan_tariff *tariff, double before, double after) {
  size_t first = 0, last = 0;
  if (tariff->ntiers == 0) return 0;
  while (first + 1 < tariff->ntiers && tariff->tiers[first + 1].from_gb <= before) first++;
  while (last + 1 < tariff->ntiers && tariff->tiers[last + 1].from_gb < after) last++;
  /* one tier: avoids the difference of large numbers */
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

/* Flows of all batches; kind[i] is the term that flow i belongs to. */
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

/* Requests at one aggregator per batch.  Every invocation lists; the last one reads the object of
   each. gets: the workers' reads. */
typedef struct {
  size_t invocations, writes, gets;
} requests;

static void add_point(gt_plan_terms *t, const gt_plan_placement *p, const gt_plan_point *point,
                      const gt_plan_use *use, requests n) {
  const gt_plan_rates *function = &p->sites->rates[point->function],
                      *storage = &p->sites->rates[point->storage];
  double reads = (double)(n.invocations + n.gets) + use->failed_reads;
  t->faas += use->function_s * p->memory_gb * function->function_gb_s;
  t->stored += use->stored_gb_s / GT_PLAN_MONTH_S * storage->storage_gb_month;
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
