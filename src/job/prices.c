/* Prices of a job, per hour of a rank and per GB between regions: its own, else those of a
   catalogue by place. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define HERE    "jobs/prices"
#define SHARED  "share/geotrain/prices"
#define NOTHING ((gt_job_price){-1, false})

/* ---- the catalogue --------------------------------------------------------------------------- */

static bool is_there(const char *path) {
  struct stat about;
  return stat(path, &about) == 0;
}

/* In an installation bin/ and share/ have the same parent; in a build folder, share/ is next to the
   program. */
void gt_catalogue_default(char *path, size_t size) {
  char program[1024];
  snprintf(path, size, HERE);
  if (is_there(path)) return;
  ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
  program[n > 0 ? n : 0] = '\0';
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(program, '/');
    if (!slash) break;
    *slash = '\0';
    snprintf(path, size, "%s/" SHARED, program);
    if (is_there(path)) return;
  }
  snprintf(path, size, HERE);
}

static gt_status read_catalogue(gt_job_prices *p, const gt_job *job) {
  char path[1200];
  size_t placed = 0;
  while (placed < job->nregions && !job->regions[placed].place) placed++;
  if (placed == job->nregions && job->wan.store.place)
    return GT_FAIL(GT_ERR_JOB,
                   "wan.store.place is %s, but no region has a place; expected "
                   "regions[].place, too",
                   job->wan.store.place);
  if (placed == job->nregions && !job->plan.catalogue) return GT_OK;
  if (job->plan.catalogue) return gt_catalogue_read(&p->catalogue, job->plan.catalogue);
  gt_catalogue_default(path, sizeof path);
  if (is_there(path)) return gt_catalogue_read(&p->catalogue, path);
  return GT_FAIL(GT_ERR_JOB,
                 "regions.%zu.place is %s, and geotrain's own rates are neither in " HERE
                 " nor in " SHARED " beside the program; set plan.catalogue",
                 placed, job->regions[placed].place);
}

/* ---- sites and tariffs ----------------------------------------------------------------------- */

typedef struct {
  gt_rate_site site;
  size_t regions, cloud;
} site_entry;

/* Names are pointers into the catalogue: equal names are the same pointer. */
static size_t site_of(gt_job_prices *p, site_entry *sites, size_t *nclouds, gt_rate_site site) {
  size_t cloud = *nclouds;
  for (size_t i = 0; i < p->nsites; i++) {
    if (sites[i].site.cloud != site.cloud) continue;
    cloud = sites[i].cloud;
    if (sites[i].site.place == site.place) return i;
  }
  if (cloud == *nclouds) ++*nclouds;
  sites[p->nsites] = (site_entry){site, 0, cloud};
  return p->nsites++;
}

static gt_status find_sites(gt_job_prices *p, const gt_job *job, site_entry *sites,
                            size_t *nclouds) {
  for (size_t r = 0; r < job->nregions; r++) {
    char where[48];
    gt_rate_site site;
    if (!job->regions[r].place) continue;
    snprintf(where, sizeof where, "regions.%zu.place", r);
    GT_TRY(gt_catalogue_site(p->catalogue, where, job->regions[r].place, &site));
    p->regions[r].has_place = true;
    p->regions[r].site = site_of(p, sites, nclouds, site);
    sites[p->regions[r].site].regions++;
  }
  return GT_OK;
}

/* Finds the store's site and what requests cost there. */
static gt_status find_store(gt_job_prices *p, const gt_job *job, site_entry *sites,
                            size_t *nclouds) {
  gt_rate_site site;
  const gt_rate *read, *write, *list, *kept;
  size_t n;
  if (job->wan.transport != GT_WAN_STORE || !job->wan.store.place) return GT_OK;
  GT_TRY(gt_catalogue_site(p->catalogue, "wan.store.place", job->wan.store.place, &site));
  GT_TRY(gt_catalogue_rate(p->catalogue, GT_RATE_READ, site, NULL, &read, &n));
  GT_TRY(gt_catalogue_rate(p->catalogue, GT_RATE_WRITE, site, NULL, &write, &n));
  list = gt_catalogue_find(p->catalogue, GT_RATE_LIST, site, NULL, &n);
  kept = gt_catalogue_find(p->catalogue, GT_RATE_STORAGE_GB_MONTH, site, NULL, &n);
  p->store.gb_month = kept ? kept->value : 0;
  p->store.known = true;
  if (list) p->store.list = (gt_job_price){list->value, list->assumed};
  p->store.read = (gt_job_price){read->value, read->assumed};
  p->store.write = (gt_job_price){write->value, write->assumed};
  p->store.site = site_of(p, sites, nclouds, site);
  sites[p->store.site].regions++;
  return GT_OK;
}

/* Finds the tariffs.  Data that stays at a site counts in no tier. */
static gt_status find_tariffs(gt_job_prices *p, const site_entry *sites, size_t nclouds) {
  p->npools = 2 * nclouds + 1;
  p->tariffs = GT_NEW_ARRAY(gt_job_tariff, p->nsites * p->nsites + 1);
  for (size_t a = 0; a < p->nsites; a++)
    for (size_t b = 0; b < p->nsites; b++) {
      gt_job_tariff *t = &p->tariffs[a * p->nsites + b];
      t->pool = a == b ? 2 * nclouds : 2 * sites[a].cloud + (sites[a].cloud != sites[b].cloud);
      if (a == b && sites[a].regions < 2) continue;
      GT_TRY(gt_catalogue_rate(p->catalogue, GT_RATE_EGRESS_GB, sites[a].site, &sites[b].site,
                               &t->rates, &t->n));
    }
  return GT_OK;
}

/* ---- machines -------------------------------------------------------------------------------- */

/* Returns the given price, else the hourly price of a machine at the place. */
static gt_status find_price(const gt_job_prices *p, const site_entry *at, double said,
                            gt_job_price *out) {
  const gt_rate *rate;
  size_t n;
  *out = said >= 0 ? (gt_job_price){said, false} : NOTHING;
  if (said >= 0 || !at) return GT_OK;
  GT_TRY(gt_catalogue_rate(p->catalogue, GT_RATE_VM_HOUR, at->site, NULL, &rate, &n));
  *out = (gt_job_price){rate->value, rate->assumed};
  return GT_OK;
}

static gt_status find_machines(gt_job_prices *p, const gt_job_region *r, gt_job_region_prices *to,
                               const site_entry *sites) {
  const site_entry *at = to->has_place ? &sites[to->site] : NULL;
  const gt_rate *least;
  size_t n = r->ndevices ? r->ndevices : 1, tiers;
  to->devices = GT_NEW_ARRAY(gt_job_price, n);
  for (size_t d = 0; d < n; d++) {
    double said = r->ndevices && r->devices[d].price >= 0 ? r->devices[d].price : r->price;
    GT_TRY(find_price(p, at, said, &to->devices[d]));
  }
  GT_TRY(find_price(p, at, r->ps_price, &to->ps));
  /* the minimum billed time is optional in a catalogue */
  if (!at ||
      gt_catalogue_rate(p->catalogue, GT_RATE_VM_MIN_S, at->site, NULL, &least, &tiers) != GT_OK)
    return GT_OK;
  to->min_s = least->value;
  to->assumed = least->assumed;
  return GT_OK;
}

gt_job_price gt_job_worker_price(const gt_job *job, const gt_job_prices *p, size_t region,
                                 int64_t workers) {
  const gt_job_region *r = &job->regions[region];
  const gt_job_price *prices = p->regions[region].devices;
  gt_job_price mean = {0, false};
  int64_t left = workers;
  if (r->ndevices == 0) return prices[0];
  for (size_t d = 0; d < r->ndevices && left > 0; d++) {
    int64_t n = r->devices[d].count < left ? r->devices[d].count : left;
    if (n == 0) continue;
    if (prices[d].usd < 0) return NOTHING;
    mean.usd += (double)n * prices[d].usd;
    mean.assumed |= prices[d].assumed;
    left -= n;
  }
  if (left == workers) return NOTHING;
  mean.usd /= (double)(workers - left);
  return mean;
}

/* ---- all prices ------------------------------------------------------------------------------ */

static void miss(gt_job_prices *p, const char *what, const char *region) {
  size_t size = strlen(what) + strlen(region) + 5;
  p->missing[p->nmissing] = GT_NEW_ARRAY(char, size);
  snprintf(p->missing[p->nmissing++], size, "%s of %s", what, region);
}

static bool has_worker_prices(const gt_job_region *r, const gt_job_region_prices *to) {
  for (size_t d = 0; d < (r->ndevices ? r->ndevices : 1); d++)
    if (to->devices[d].usd < 0 && (r->ndevices == 0 || r->devices[d].count > 0)) return false;
  return true;
}

/* True if the region has a price, even if other devices have none. */
static bool any_price(const gt_job_region *r, const gt_job_region_prices *to) {
  for (size_t d = 0; d < (r->ndevices ? r->ndevices : 1); d++)
    if (to->devices[d].usd >= 0) return true;
  return to->ps.usd >= 0 || to->has_place;
}

static void find_missing(gt_job_prices *p, const gt_job *job) {
  for (size_t r = 0; r < job->nregions; r++)
    p->known |= any_price(&job->regions[r], &p->regions[r]);
  p->missing = GT_NEW_ARRAY(char *, 3 * job->nregions + 2);
  for (size_t r = 0; p->known && r < job->nregions; r++) {
    const gt_job_region_prices *to = &p->regions[r];
    if (gt_job_trains(job, r) && !has_worker_prices(&job->regions[r], to))
      miss(p, "workers", job->regions[r].name);
    if (to->ps.usd < 0) miss(p, "PS", job->regions[r].name);
    if (!to->has_place && job->nregions > 1) miss(p, "egress", job->regions[r].name);
  }
  if (p->known && job->wan.transport == GT_WAN_STORE && !p->store.known)
    miss(p, "requests and egress", "the store");
}

static gt_status find_all(gt_job_prices *p, const gt_job *job, site_entry *sites) {
  size_t nclouds = 0;
  GT_TRY(read_catalogue(p, job));
  GT_TRY(find_sites(p, job, sites, &nclouds));
  GT_TRY(find_store(p, job, sites, &nclouds));
  GT_TRY(find_tariffs(p, sites, nclouds));
  for (size_t r = 0; r < job->nregions; r++) {
    gt_job_region_prices *to = &p->regions[r];
    GT_TRY(find_machines(p, &job->regions[r], to, sites));
    if (to->has_place && gt_job_is_function(job, r))
      GT_TRY(gt_catalogue_rate(p->catalogue, GT_RATE_FUNCTION_GB_S, sites[to->site].site, NULL,
                               &to->function, &to->nfunction));
  }
  find_missing(p, job);
  return GT_OK;
}

gt_status gt_job_prices_of(gt_job_prices *out, const gt_job *job) {
  *out = (gt_job_prices){.regions = GT_NEW_ARRAY(gt_job_region_prices, job->nregions),
                         .nregions = job->nregions};
  site_entry *sites = GT_NEW_ARRAY(site_entry, job->nregions + 1);
  gt_status status = find_all(out, job, sites);
  gt_free(sites);
  if (status != GT_OK) gt_job_prices_close(out);
  return status;
}

void gt_job_prices_close(gt_job_prices *p) {
  for (size_t r = 0; r < p->nregions; r++) gt_free(p->regions[r].devices);
  for (size_t i = 0; i < p->nmissing; i++) gt_free(p->missing[i]);
  gt_free(p->missing);
  gt_free(p->regions);
  gt_free(p->tariffs);
  gt_catalogue_close(p->catalogue);
  *p = (gt_job_prices){0};
}
