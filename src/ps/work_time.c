/* The time of work by the job: under the virtual clock, in a simulation, and in real time with
   compute.emulate. */
#include "geotrain/ps_work_time.h"

/* Steps differ by a random factor of mean 1.  Its key is the batch, so that it does not depend on
   the caller or the time. */
static double variation(const gt_job *job, size_t region, int64_t batch) {
  double deviation = job->compute_variation;
  if (deviation <= 0) return 1;
  gt_rng rng = gt_rng_make(job->seed, GT_RNG_COMPUTE, region, (uint64_t)batch);
  double factor = 1 + deviation * gt_rng_normal(&rng);
  return factor > 0.1 ? factor : 0.1;
}

gt_ns gt_cost_step(const gt_job *job, const gt_order *order, const gt_job_compute *c, size_t worker,
                   int64_t batch) {
  double samples = (double)gt_order_batch_size(order, batch);
  double seconds =
      c->step_s > 0 ? c->step_s * samples / (double)order->batch : samples / c->samples_per_s;
  return gt_from_seconds(seconds * variation(job, order->region, batch) /
                         gt_job_worker_speed(job, order->region, c, worker));
}

gt_ns gt_cost_eval(const gt_job *job, const gt_order *order, const gt_job_compute *c, size_t worker,
                   int64_t samples) {
  return gt_from_seconds((double)samples / c->eval_samples_per_s /
                         gt_job_worker_speed(job, order->region, c, worker));
}

double gt_cost_slowdown(const gt_job *job, size_t region, size_t worker) {
  gt_job_compute c = gt_job_compute_of(job, region);
  return 1 / gt_job_worker_wanted(job, region, &c, worker);
}

gt_status gt_cost_check(const gt_job *job, const char *why) {
  for (size_t r = 0; r < job->nregions; r++) {
    gt_job_compute c = gt_job_compute_of(job, r);
    if (c.step_s > 0 || c.samples_per_s > 0 || !gt_job_trains(job, r)) continue;
    return GT_FAIL(GT_ERR_JOB,
                   "compute.step is not given for region %s; expected it %s, as in --set "
                   "'compute.step=10 ms', or `profile: FILE` that `geotrain probe` writes, or "
                   "power of its devices",
                   job->regions[r].name, why);
  }
  return GT_OK;
}
