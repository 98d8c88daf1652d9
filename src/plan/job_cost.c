/* The cost of a run of a job, planned or measured: from the job's prices to the result that is
   shown. */
#include "geotrain/plan_job.h"

#include <stdio.h>

#include "geotrain/plan.h"

/* The tiers of the job's tariffs in the form for gt_plan_egress, one after another; the caller
   frees both arrays. */
typedef struct {
  gt_plan_tier *tiers;
  gt_plan_tariff *tariffs;
  double *pool_gb;
} tariff_set;

static tariff_set tariffs_of(const gt_job_prices *p) {
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
      .ps_price = price_of(own->ps, assumed),
      .seconds = seconds,
      .billing = {job->plan.billing_s, own->min_s}};
}

/* Adds up the traffic from each region to all regions at one site as a single link to the last of
   these, as they have the same tariff.  Returns the number of links. */
static size_t links_of(gt_plan_cost_link *links, const gt_job_prices *p, const double *bytes,
                       tariff_set *set) {
  size_t n = 0;
  size_t *last = GT_NEW_ARRAY(size_t, p->nsites + 1);
  double *moved = GT_NEW_ARRAY(double, p->nsites + 1);
  for (size_t a = 0; a < p->nregions; a++) {
    if (!p->regions[a].has_place) continue;
    for (size_t s = 0; s < p->nsites; s++) moved[s] = 0;
    for (size_t b = 0; b < p->nregions; b++) {
      if (a == b || !p->regions[b].has_place) continue;
      moved[p->regions[b].site] += bytes[a * p->nregions + b];
      last[p->regions[b].site] = b;
    }
    for (size_t s = 0; s < p->nsites; s++) {
      const gt_plan_tariff *t = &set->tariffs[p->regions[a].site * p->nsites + s];
      if (t->ntiers == 0 || !(moved[s] > 0)) continue;
      links[n++] = (gt_plan_cost_link){.from = a, .to = last[s], .bytes = moved[s], .tariff = *t};
      set->pool_gb[t->pool] += moved[s] / 1e9;
    }
  }
  gt_free(moved);
  gt_free(last);
  return n;
}

/* Whether a tier that applied is assumed: a tier applies if the pool's volume reaches it. */
static bool tiers_assumed(const gt_job_prices *p, const gt_plan_cost_link *links, size_t n,
                          const tariff_set *set) {
  for (size_t i = 0; i < n; i++) {
    const gt_job_tariff *t = gt_job_tariff_between(p, links[i].from, links[i].to);
    for (size_t k = 0; k < t->n; k++)
      if (t->rates[k].assumed && set->pool_gb[t->pool] > t->rates[k].from_gb) return true;
  }
  return false;
}

static void copy_missing(gt_cost_result *out, const gt_job_prices *p) {
  out->missing = GT_NEW_ARRAY(char *, p->nmissing + 1);
  for (size_t i = 0; i < p->nmissing; i++) out->missing[out->nmissing++] = gt_strdup(p->missing[i]);
}

void gt_plan_job_cost(gt_cost_result *out, const gt_job *job, const gt_job_prices *p, double wall_s,
                      const double *bytes) {
  size_t n = job->nregions;
  tariff_set set = tariffs_of(p);
  gt_plan_cost_region *regions = GT_NEW_ARRAY(gt_plan_cost_region, n);
  gt_plan_cost_link *links = GT_NEW_ARRAY(gt_plan_cost_link, n * p->nsites + 1);
  *out = (gt_cost_result){.regions = GT_NEW_ARRAY(gt_cost_region, n), .nregions = n};
  for (size_t r = 0; r < n; r++)
    regions[r] = region_of(job, p, r, job->plan.start_s + wall_s, &out->assumed);
  size_t nlinks = bytes ? links_of(links, p, bytes, &set) : 0;
  gt_plan_cost_sum sum = gt_plan_topology_cost(regions, n, links, nlinks, NULL, p->npools);
  out->usd = sum.usd;
  out->worker_usd = sum.worker_usd;
  out->ps_usd = sum.ps_usd;
  out->egress_usd = sum.egress_usd;
  out->machine_hours = sum.machine_hours;
  out->assumed |= tiers_assumed(p, links, nlinks, &set);
  for (size_t r = 0; r < n; r++) {
    out->regions[r] = (gt_cost_region){.worker_usd = regions[r].worker_usd,
                                       .ps_usd = regions[r].ps_usd,
                                       .egress_usd = regions[r].egress_usd};
    snprintf(out->regions[r].name, sizeof out->regions[r].name, "%s", job->regions[r].name);
  }
  copy_missing(out, p);
  gt_free(links);
  gt_free(regions);
  gt_free(set.pool_gb);
  gt_free(set.tariffs);
  gt_free(set.tiers);
}

void gt_plan_job_cost_close(gt_cost_result *cost) {
  for (size_t i = 0; i < cost->nmissing; i++) gt_free(cost->missing[i]);
  gt_free(cost->missing);
  gt_free(cost->regions);
  *cost = (gt_cost_result){0};
}
