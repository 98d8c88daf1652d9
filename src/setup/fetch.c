/* Fetches data sets that the job names by URL.  The ranks of a region wait for its copy together,
   in rounds, so that a download can take longer than the limit of a wait; then all ranks of the
   run. */
#include <string.h>

#include "geotrain/store.h"

#include "internal.h"

#define ROUND_S 2.0
#define ALL_S   86400.0 /* for regions that fetch their data */
#define SAY     (10 * GT_SECOND)

typedef enum { HAS, FETCHES, FAILED } fetch_state;

/* Returns the URL of the region's data; NULL: it has none, or a file. */
static const char *url_of(const gt_job *job, size_t region) {
  const char *path = gt_job_reads(job, region) ? gt_data_path(job, region) : NULL;
  return path && gt_store_is_url(path) ? path : NULL;
}

static bool any_url(const gt_job *job) {
  size_t r = 0;
  while (r < job->nregions && !url_of(job, r)) r++;
  return r < job->nregions;
}

static void say(const gt_run *run, const gt_fetch *fetch, gt_ns *said) {
  char have[32], of[40] = "";
  int64_t whole;
  const int64_t bytes = gt_fetch_bytes(fetch, &whole);
  if (!run->roles.is_ps || gt_now() - *said < SAY) return;
  *said = gt_now();
  gt_format_size(have, sizeof have, (double)bytes);
  if (whole > 0) memcpy(of, " of ", 5), gt_format_size(of + 4, sizeof of - 4, (double)whole);
  gt_log(GT_LOG_INFO, "%s: %s%s have arrived", url_of(run->job, run->roles.region_id), have, of);
}

/* Returns the state of the rank of the region that is behind the most, or of one that has
   failed. */
static fetch_state agree_on(const gt_run *run, fetch_state own) {
  gt_peers *region = run->roles.region;
  fetch_state *all = GT_NEW_ARRAY(fetch_state, region->size), worst = HAS;
  gt_peers_gather(region, &own, sizeof own, all, "the region's ranks to fetch its data",
                  run->start_limit_s);
  for (size_t i = 0; i < region->size; i++)
    if (all[i] > worst) worst = all[i];
  gt_free(all);
  return worst;
}

/* Returns true if a region fetches its data: sites may differ in their URLs. */
static bool any_fetches(const gt_run *run) {
  gt_peers *world = run->roles.world;
  const bool own = any_url(run->job);
  bool *all = GT_NEW_ARRAY(bool, world->size), any = own;
  gt_peers_gather(world, &own, sizeof own, all, "the other ranks to say whether they fetch data",
                  run->start_limit_s);
  for (size_t i = 0; i < world->size; i++) any |= all[i];
  gt_free(all);
  return any;
}

gt_status gt_setup_fetch_data(gt_run *run) {
  const char *url = url_of(run->job, run->roles.region_id);
  gt_fetch *fetch = NULL;
  gt_status status = GT_OK;
  gt_ns said = gt_now();
  fetch_state own = url ? FETCHES : HAS;
  const double limit_s = any_fetches(run) ? ALL_S : run->start_limit_s;
  bool waits = any_url(run->job);
  if (url) status = gt_fetch_open(&fetch, url, run->job->limits.wan_patience_s, false);
  while (waits) {
    bool done = false;
    if (own == FETCHES && status == GT_OK) status = gt_fetch_step(fetch, ROUND_S, &done);
    if (own == FETCHES && status == GT_OK) say(run, fetch, &said);
    own = status != GT_OK ? FAILED : done ? HAS : own;
    waits = agree_on(run, own) == FETCHES;
  }
  gt_fetch_close(fetch);
  /* one exchange of all regions, however long the copies took, and also where this site has only
     files: a region that starts again repeats it */
  return gt_agree(run->roles.world, status, limit_s);
}
