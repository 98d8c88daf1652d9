/* Opens the endpoint of a region that is an MPI job of its own. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "geotrain/ckpt.h"
#include "geotrain/ps_of_job.h"
#include "geotrain/wan_cert.h"
#include "geotrain/wan_store.h"
#include "geotrain/wan_tcp.h"

#include "internal.h"

#define PLACE "<region>"

/* Returns the path with the region's name instead of each <region>; the caller frees it. */
static char *path_of(const char *path, const char *region) {
  if (!path) return NULL;
  char *out = gt_alloc(strlen(path) * (strlen(region) + 1) + 1, 1), *to = out;
  while (*path) {
    if (strncmp(path, PLACE, strlen(PLACE)) == 0) {
      to = stpcpy(to, region);
      path += strlen(PLACE);
    } else {
      *to++ = *path++;
    }
  }
  return out;
}

gt_status gt_setup_not_apart(void) {
  return GT_FAIL(GT_ERR_JOB, "--region is given; expected a job of two or more regions, with "
                             "wan.transport tcp or store");
}

/* In one MPI job the loss of a rank ends all ranks; faults are for simulations. */
gt_status gt_setup_may_train(const gt_run *run) {
  const gt_setup_options *o = run->options;
  const char *source = o->job_path ? o->job_path : "job.yaml";
  if (run->job->nfaults > 0)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: faults is given, and geotrain train does not cause faults; geotrain simulate "
        "--train trains with them; expected a job without them (--set faults=null)",
        source);
  if (run->job->sync.on_loss != GT_ON_LOSS_CONTINUE || o->region || o->virtual_clock) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: sync.on_loss is continue, and all regions are in one MPI job; start each "
                 "region as an MPI job of its own (--region, wan.transport tcp), or set stop",
                 source);
}

/* ---- a run that begins without some regions ---- */

static bool is_enough(const void *ctx, const bool *there) {
  return gt_ps_may_begin(((const gt_run *)ctx)->job, there);
}

void gt_setup_let_begin(gt_run *run) {
  const char *region = run->job->regions[run->roles.region_id].name, *dir = run->options->run_dir;
  int64_t round;
  if (!run->options->trains) return; /* a probe measures all regions */
  if (run->job->sync.min_regions == 0 || (dir && gt_ckpt_rounds(dir, region, &round, 1) > 0))
    return;
  gt_endpoint_begin_early(run->endpoint, is_enough, run);
}

void gt_setup_settle_late(gt_run *run) {
  const size_t n = run->job->nregions;
  if (run->job->sync.min_regions == 0) return;
  run->late = GT_NEW_ARRAY(bool, n);
  if (run->endpoint) memcpy(run->late, gt_endpoint_late(run->endpoint), n * sizeof *run->late);
  gt_peers_share(run->roles.world, 0, run->late, n * sizeof *run->late,
                 "the regions without which the run begins", run->start_limit_s);
}

size_t gt_setup_second(const gt_run *run) {
  size_t region = 1;
  while (region < run->job->nregions && gt_setup_is_late(run, region)) region++;
  return region < run->job->nregions ? region : 0;
}

void gt_setup_draw_run(const gt_run *run) {
  uint64_t id = 0;
  if (!run->endpoint) return;
  if (run->roles.is_lead && getrandom(&id, sizeof id, 0) != sizeof id)
    id = (uint64_t)gt_now() ^ (uint64_t)(uintptr_t)run;
  gt_peers *ps = run->roles.ps;
  gt_peers_share(ps, 0, &id, sizeof id, "the id of the run", run->start_limit_s);
  /* if the first region starts again meanwhile, it draws another one than some others have */
  uint64_t *ids = GT_NEW_ARRAY(uint64_t, ps->size);
  gt_peers_gather(ps, &id, sizeof id, ids, "the ids of the run", run->start_limit_s);
  gt_endpoint_set_run(run->endpoint, ids[gt_setup_second(run)]);
  gt_free(ids);
}

/* Writes wan.streams, the same in all regions. */
static gt_status count_streams(const gt_job *job, size_t *streams) {
  gt_links *links = NULL;
  *streams = (size_t)job->wan.streams;
  if (*streams > 0) return GT_OK;
  const gt_status status = gt_links_create(&links, job);
  if (status == GT_OK) *streams = gt_links_streams(links);
  gt_links_close(links);
  if (status == GT_OK)
    gt_log(GT_LOG_INFO, "wan.streams auto: %zu connections of two regions", *streams);
  return status;
}

/* below: added to the URL. */
static gt_status open_store(gt_endpoint **out, const gt_job *job, size_t region,
                            const char *below) {
  const char **names = GT_NEW_ARRAY(const char *, job->nregions);
  double *polls_s = GT_NEW_ARRAY(double, job->nregions);
  for (size_t r = 0; r < job->nregions; r++) {
    names[r] = job->regions[r].name;
    polls_s[r] = gt_job_store_poll(job, region, r);
  }
  char *place = path_of(job->wan.store.url, job->regions[region].name);
  const size_t size = strlen(place) + strlen(below) + 1;
  char *url = gt_alloc(size, 1);
  snprintf(url, size, "%s%s", place, below);
  const gt_store_spec spec = {.url = url,
                              .names = names,
                              .nregions = job->nregions,
                              .self = region,
                              .poll_s = job->wan.store.poll_s,
                              .polls_s = polls_s,
                              .patience_s = job->limits.wan_patience_s,
                              .restarts = job->sync.on_loss == GT_ON_LOSS_CONTINUE};
  const gt_status status = gt_store_join(out, &spec);
  gt_free(url);
  gt_free(place);
  gt_free(polls_s);
  gt_free(names);
  return status;
}

/* listens: at the region's port, too. */
static gt_status open_tcp(gt_endpoint **out, const gt_job *job, size_t region, bool listens) {
  const gt_job_region *own = &job->regions[region];
  size_t streams;
  GT_TRY(count_streams(job, &streams));
  gt_tcp_region *regions = GT_NEW_ARRAY(gt_tcp_region, job->nregions);
  for (size_t r = 0; r < job->nregions; r++)
    regions[r] = (gt_tcp_region){job->regions[r].name, job->regions[r].address};
  char *ca = path_of(job->wan.tls.ca, own->name), *cert = path_of(job->wan.tls.cert, own->name),
       *key = path_of(job->wan.tls.key, own->name);
  const gt_tcp_spec spec = {.regions = regions,
                            .nregions = job->nregions,
                            .self = region,
                            .listen = !listens      ? NULL
                                      : own->listen ? own->listen
                                                    : own->address,
                            .proxy = job->wan.proxy ? job->wan.proxy + strlen(GT_WAN_PROXY) : NULL,
                            .ca = ca,
                            .cert = cert,
                            .key = key,
                            .streams = streams,
                            .patience_s = job->limits.wan_patience_s,
                            .restarts = job->sync.on_loss == GT_ON_LOSS_CONTINUE};
  const gt_status status = gt_tcp_open(out, &spec);
  gt_free(ca);
  gt_free(cert);
  gt_free(key);
  gt_free(regions);
  return status;
}

/* Opens a region's side of the transport. */
static gt_status open_site(gt_endpoint **out, const gt_job *job, size_t region, bool listens,
                           const char *below) {
  return job->wan.transport == GT_WAN_STORE ? open_store(out, job, region, below)
                                            : open_tcp(out, job, region, listens);
}

gt_status gt_setup_open_endpoint(gt_run *run) {
  const gt_job *job = run->job;
  const bool modelled = job->wan.transport == GT_WAN_MPI || run->options->virtual_clock;
  if (modelled || !run->roles.is_ps || job->nregions < 2) return GT_OK;
  /* a probe must not take the place of a training */
  return open_site(&run->endpoint, job, run->roles.region_id, true,
                   run->options->trains ? "" : "/probe");
}

/* ---- without ranks --------------------------------------------------------------------------- */

gt_status gt_setup_certificate(const gt_job *job, size_t region, gt_setup_cert *out) {
  *out = (gt_setup_cert){.left_s = INFINITY};
  char *cert = path_of(job->wan.tls.cert, job->regions[region].name);
  gt_status status = GT_OK;
  if (cert) {
    snprintf(out->path, sizeof out->path, "%s", cert);
    status = gt_cert_until(cert, &out->left_s, out->until);
  }
  gt_free(cert);
  return status;
}

gt_status gt_setup_check_site(const gt_job *job, size_t region, gt_setup_cert *cert) {
  gt_endpoint *endpoint = NULL;
  if (job->wan.transport == GT_WAN_MPI || job->nregions < 2) return gt_setup_not_apart();
  GT_TRY(open_site(&endpoint, job, region, false, ""));
  gt_endpoint_close(endpoint);
  GT_TRY(gt_setup_certificate(job, region, cert));
  if (cert->left_s >= job->slurm.time_s) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: the certificate expires at %s, before the end of a job of %.0f s "
                 "(slurm.time); sign a new one: geotrain cert sign",
                 cert->path, cert->until, job->slurm.time_s);
}
