/* The cost of work, from the values of the job, its regions and their devices. */
#include <math.h>
#include <string.h>

#include "internal.h"

static double said(double own, double general) {
  return own > 0 ? own : general;
}

/* Returns the device of a worker, or NULL.  Workers take the devices in list order. */
static const gt_job_device *device_of(const gt_job_region *r, size_t worker) {
  int64_t before = 0;
  for (size_t d = 0; d < r->ndevices; d++) {
    before += r->devices[d].count;
    if ((int64_t)worker < before) return &r->devices[d];
  }
  return NULL;
}

/* Returns the greatest power of the devices that workers can use; 0 if one of these has no power
   given. */
static double fastest(const gt_job_region *r) {
  double most = 0;
  int64_t before = 0;
  for (size_t d = 0; d < r->ndevices && (r->ranks == 0 || before < r->ranks - 1);
       before += r->devices[d++].count) {
    if (r->devices[d].count == 0) continue;
    if (r->devices[d].power <= 0) return 0;
    if (r->devices[d].power > most) most = r->devices[d].power;
  }
  return most;
}

static bool compute_says(const gt_job *job, size_t region) {
  const gt_job_compute *own = &job->regions[region].compute, *all = &job->compute;
  return own->samples_per_s > 0 || own->step_s > 0 || all->samples_per_s > 0 || all->step_s > 0;
}

gt_job_compute gt_job_compute_of(const gt_job *job, size_t region) {
  const gt_job_compute *own = &job->regions[region].compute, *all = &job->compute;
  gt_job_compute c = {.speed = said(own->speed, said(all->speed, 1)),
                      .eval_samples_per_s = said(own->eval_samples_per_s, all->eval_samples_per_s),
                      .local_s = said(own->local_s, all->local_s),
                      .resume_s = said(own->resume_s, all->resume_s),
                      .pass_s = said(own->pass_s, all->pass_s),
                      .update_s = said(own->update_s, all->update_s),
                      .apply_s = said(own->apply_s, all->apply_s),
                      .encode_s = said(own->encode_s, all->encode_s),
                      .checkpoint_bps = said(own->checkpoint_bps, all->checkpoint_bps)};
  for (size_t k = 0; k < GT_CODEC_KINDS; k++)
    c.codecs[k] = (gt_job_codec_cost){
        .encode_bps = said(own->codecs[k].encode_bps, all->codecs[k].encode_bps),
        .decode_bps = said(own->codecs[k].decode_bps, all->codecs[k].decode_bps)};
  /* both values come from the same level */
  const gt_job_compute *speed = own->samples_per_s > 0 || own->step_s > 0 ? own : all;
  c.samples_per_s = speed->samples_per_s;
  c.step_s = speed->step_s;
  if (c.samples_per_s <= 0 && c.step_s <= 0) c.samples_per_s = fastest(&job->regions[region]);
  double rate = c.step_s > 0 ? (double)job->train.batch / c.step_s : c.samples_per_s;
  c.eval_samples_per_s = said(c.eval_samples_per_s, 3 * rate);
  return c;
}

/* Returns the region that adds up for all others; NULL: none, or not known. */
static const char *root_of(const gt_job *job) {
  return job->sync.central ? job->sync.central : job->sync.hub;
}

static bool is_named(const gt_job *job, size_t region, const char *name) {
  return strcmp(job->regions[region].name, name) == 0;
}

bool gt_job_is_function(const gt_job *job, size_t region) {
  const char *root = root_of(job);
  return job->wan.transport == GT_WAN_STORE && job->wan.store.trigger == GT_TRIGGER_EVENT && root &&
         is_named(job, region, root);
}

#define SELDOM         10  /* polls from one look to the next, */
#define SELDOM_PATIENT 6.0 /* but so many looks in the patience */

double gt_job_store_poll(const gt_job *job, size_t region, size_t peer) {
  const double poll_s = job->wan.store.poll_s;
  const char *root = root_of(job);
  /* after a loss another region can be the root */
  if (!root || job->sync.on_loss == GT_ON_LOSS_CONTINUE || job->pipeline.nstages > 0 ||
      is_named(job, region, root) || is_named(job, peer, root))
    return poll_s;
  return fmin(SELDOM * poll_s, fmax(poll_s, job->limits.wan_patience_s / SELDOM_PATIENT));
}

gt_job_store gt_job_store_of(const gt_job *job, size_t region) {
  const gt_job_store *own = &job->regions[region].store, *all = &job->wan.store.of;
  return (gt_job_store){.upload_bps = said(own->upload_bps, all->upload_bps),
                        .download_bps = said(own->download_bps, all->download_bps),
                        .latency_s = said(own->latency_s, all->latency_s),
                        .request_s = said(own->request_s, all->request_s)};
}

double gt_job_worker_share(const gt_job *job, size_t region, size_t worker) {
  const gt_job_region *r = &job->regions[region];
  const gt_job_device *device = device_of(r, worker);
  double most = fastest(r);
  return compute_says(job, region) || !device || most <= 0 ? 1 : device->power / most;
}

double gt_job_worker_wanted(const gt_job *job, size_t region, const gt_job_compute *c,
                            size_t worker) {
  const gt_job_region *r = &job->regions[region];
  return worker < r->nspeeds ? c->speed * r->speeds[worker] : c->speed;
}

double gt_job_worker_speed(const gt_job *job, size_t region, const gt_job_compute *c,
                           size_t worker) {
  const gt_job_region *r = &job->regions[region];
  return gt_job_worker_wanted(job, region, c, worker) *
         (worker < r->nmeasured ? r->measured[worker] : 1) *
         gt_job_worker_share(job, region, worker);
}

double gt_job_device_power(const gt_job *job, size_t region, size_t device) {
  gt_job_compute c = gt_job_compute_of(job, region);
  if (!compute_says(job, region)) return c.speed * job->regions[region].devices[device].power;
  return c.speed * (c.step_s > 0 ? (double)job->train.batch / c.step_s : c.samples_per_s);
}
