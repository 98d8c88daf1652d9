/* Which regions train and have data, and what a region that only aggregates may not have. */
#include "internal.h"

bool gt_job_trains(const gt_job *job, size_t region) {
  return job->regions[region].ranks != 1;
}

static bool has_own_data(const gt_job_region *r) {
  return r->data_path || r->samples > 0;
}

/* Where stages are to be found: the regions that are said to have data, or all. */
static bool may_read(const gt_job *job, size_t region) {
  bool said = has_own_data(&job->regions[region]);
  if (job->data.partition.nshares == job->nregions) return job->data.partition.shares[region] > 0;
  for (size_t r = 0; r < job->nregions && !said; r++)
    if (has_own_data(&job->regions[r])) return false;
  return true;
}

bool gt_job_reads(const gt_job *job, size_t region) {
  if (!gt_job_trains(job, region)) return false;
  if (job->pipeline.search) return may_read(job, region);
  return job->pipeline.nstages == 0 || gt_job_has_first(job, region);
}

size_t gt_job_training(const gt_job *job) {
  size_t n = 0;
  for (size_t r = 0; r < job->nregions; r++) n += gt_job_trains(job, r);
  return n;
}

size_t gt_job_workers(const gt_job *job, size_t region) {
  const int ranks = job->regions[region].ranks;
  return ranks > 1 ? (size_t)ranks - 1 : 0;
}

/* ---- what does not fit ----------------------------------------------------------------------- */

static const char *given_of(const gt_job_region *r) {
  return r->data_path       ? "data.path"
         : r->samples > 0   ? "samples"
         : r->ndevices > 0  ? "devices"
         : r->ranks_min > 0 ? "ranks_min"
         : r->ranks_max > 0 ? "ranks_max"
         : r->nspeeds > 0   ? "compute.speeds"
         : r->nmeasured > 0 ? "compute.measured"
                            : NULL;
}

static gt_status check_region(const gt_job *job, size_t region, const char *source) {
  const gt_job_region *r = &job->regions[region];
  const char *given = given_of(r);
  if (given)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: regions.%zu.%s is given and ranks is 1: without workers the region only "
                   "aggregates; no %s, or 2 ranks or more, are needed",
                   source, region, given, given);
  if (job->data.partition.nshares == job->nregions && job->data.partition.shares[region] != 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: data.partition.shares.%zu is %g, and region %s (ranks 1) only aggregates; "
                   "0 is needed",
                   source, region, job->data.partition.shares[region], r->name);
  return GT_OK;
}

/* What the whole job has.  region: one that only aggregates. */
static gt_status check_sync(const gt_job *job, size_t region, const char *source) {
  const char *name = job->regions[region].name;
  const bool constant =
      job->train.schedule.name == GT_LR_CONSTANT && job->train.schedule.warmup_steps == 0;
  if (gt_job_training(job) == 0)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: regions[].ranks is 1 in every region, so that none trains; one with 2 or more is "
        "needed",
        source);
  if (job->sync.strategy == GT_STRATEGY_NONE)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.strategy is none, and region %s (ranks 1) only aggregates; a strategy "
                   "that exchanges something is needed",
                   source, name);
  if (job->sync.central)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.central is \"%s\", and region %s (ranks 1) only aggregates; with "
                   "sync.central, 2 ranks or more in every region are needed",
                   source, job->sync.central, name);
  if (job->sync.exchange == GT_EXCHANGED_GRADIENT && !constant)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.exchange is gradient, and region %s (ranks 1) only aggregates: it "
                   "makes no steps by which its learning rate changes; sync.exchange update, or "
                   "train.schedule constant without warm-up, is needed",
                   source, name);
  return GT_OK;
}

gt_status gt_job_check_aggregating(const gt_job *job, const char *source) {
  for (size_t r = 0; r < job->nregions; r++) {
    if (gt_job_trains(job, r)) continue;
    GT_TRY(check_sync(job, r, source));
    GT_TRY(check_region(job, r, source));
  }
  return GT_OK;
}
