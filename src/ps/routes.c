/* The routes of a job: the topologies that a job can use, and the next hop of each region.  Of
   several replicas of a pipeline, the regions with the same stages have routes of their own. */
#include <string.h>

#include "geotrain/ps_of_job.h"

static gt_topology topology_of(const gt_job *job) {
  return job->sync.central ? GT_TOPOLOGY_CENTRAL : job->sync.topology;
}

gt_status gt_ps_check_routes(const gt_job *job) {
  const gt_sync_ops *strategy = gt_sync_of(job->sync.strategy);
  if (job->sync.central && !strategy->waits)
    return GT_FAIL(GT_ERR_JOB,
                   "sync.central is %s and sync.strategy %s, with which no region waits for "
                   "another; expected ssgd or sma",
                   job->sync.central, strategy->name);
  if (!strategy->sends || strategy->waits || gt_topology_has(job->sync.topology, GT_CHOSEN) ||
      gt_topology_broadcasts(job->sync.topology))
    return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "sync.strategy %s sends what no other region waits for, and sync.topology %s has "
                 "rounds only; expected mesh, hub or tree",
                 strategy->name, gt_topology_names[job->sync.topology]);
}

/* Returns the region that the job names as hub; nregions: none. */
static size_t hub_of(const gt_job *job) {
  const char *name = job->sync.central ? job->sync.central : job->sync.hub;
  size_t hub = 0;
  while (hub < job->nregions && !(name && strcmp(job->regions[hub].name, name) == 0)) hub++;
  return hub;
}

/* True if the region is in the pipeline's first replica. */
static bool is_first(const gt_job *job, size_t region) {
  return gt_job_replica_of(job, region) == 0;
}

/* Places the replicas of a region of the first pipeline.  The hub of all is in the pipeline of the
   job's hub. */
static void place_replicas(const gt_job *job, const gt_links *links, size_t bytes, size_t region,
                           size_t *next) {
  const size_t n = gt_job_replicas(job), hub = hub_of(job);
  size_t *replicas = GT_NEW_ARRAY(size_t, n), *among = GT_NEW_ARRAY(size_t, n);
  for (size_t c = 0; c < n; c++) replicas[c] = gt_job_replica(job, region, c);
  gt_topology_place_among(topology_of(job), links, replicas, n, bytes,
                          hub < job->nregions ? gt_job_replica_of(job, hub) : n, among);
  for (size_t c = 0; c < n; c++) next[replicas[c]] = replicas[among[c]];
  gt_free(replicas);
  gt_free(among);
}

gt_routes gt_ps_routes_of(const gt_job *job, const gt_links *links, size_t parameters) {
  const size_t bytes = parameters * sizeof(float);
  gt_routes routes = {.topology = topology_of(job)};
  if (gt_topology_has(routes.topology, GT_ALL_WITH_ALL)) return routes;
  routes.next = GT_NEW_ARRAY(size_t, job->nregions);
  if (gt_job_replicas(job) == 1)
    gt_topology_place(routes.topology, links, job->nregions, bytes, hub_of(job), routes.next);
  else
    for (size_t r = 0; r < job->nregions; r++)
      if (is_first(job, r)) place_replicas(job, links, bytes, r, routes.next);
  return routes;
}

void gt_ps_place_members(const gt_job *job, const gt_links *links, gt_topology topology,
                         size_t parameters, const size_t *members, size_t n, size_t *next) {
  const size_t named = hub_of(job);
  size_t hub = 0;
  while (hub < n && members[hub] != named) hub++;
  gt_topology_place_among(topology, links, members, n, parameters * sizeof(float), hub, next);
}

/* True if the routes between the replicas of this region are sound. */
static bool replicas_sound(const gt_job *job, const gt_routes *routes, size_t region) {
  const size_t n = gt_job_replicas(job);
  gt_routes among = {.topology = routes->topology, .next = GT_NEW_ARRAY(size_t, n)};
  for (size_t c = 0; c < n; c++) {
    const size_t next = routes->next[gt_job_replica(job, region, c)];
    size_t d = 0;
    while (d < n && gt_job_replica(job, region, d) != next) d++;
    among.next[c] = d;
  }
  const bool sound = gt_routes_sound(&among, n);
  gt_routes_close(&among);
  return sound;
}

bool gt_ps_routes_sound(const gt_job *job, const gt_routes *routes) {
  if (gt_job_replicas(job) == 1 || !routes->next) return gt_routes_sound(routes, job->nregions);
  for (size_t r = 0; r < job->nregions; r++)
    if (is_first(job, r) && !replicas_sound(job, routes, r)) return false;
  return !gt_topology_has(routes->topology, GT_ALL_WITH_ALL);
}
