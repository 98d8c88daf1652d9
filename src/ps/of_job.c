/* A region's PS as the job describes it; the same for runs and simulations. */
#include <math.h>
#include <string.h>

#include "geotrain/ps_of_job.h"

#define PERIOD_MAX ((int64_t)1e15) /* as of sync.period */

/* Steps that a region of `samples` samples will make; its learning-rate schedule ends with them. */
static double steps_of(const gt_job *job, size_t region, int64_t samples) {
  if (job->train.until.steps > 0) return (double)job->train.until.steps;
  double batches = job->train.until.epochs > 0
                       ? job->train.until.epochs * ceil((double)samples / (double)job->train.batch)
                       : (double)job->train.until.samples / (double)job->train.batch;
  return job->sync.local == GT_LOCAL_SYNC ? ceil(batches / (double)(job->regions[region].ranks - 1))
                                          : batches;
}

/* If every region applies every step, all follow the schedule of the longest; otherwise their
   learning rates, and so their models, would differ. */
static int64_t schedule_steps(const gt_job *job, size_t region, const int64_t *samples) {
  double steps = steps_of(job, region, samples[region]);
  if (gt_sync_of(job->sync.strategy)->lockstep)
    for (size_t p = 0; p < job->nregions; p++) steps = fmax(steps, steps_of(job, p, samples[p]));
  return (int64_t)(steps + 0.5);
}

gt_optim_spec gt_ps_optim_of(const gt_job *job, size_t region, const int64_t *samples) {
  return (gt_optim_spec){.kind = job->train.optimizer.name,
                         .schedule = {.kind = job->train.schedule.name,
                                      .lr = job->train.optimizer.lr,
                                      .gamma = job->train.schedule.gamma,
                                      .lr_min = job->train.schedule.lr_min,
                                      .warmup_steps = job->train.schedule.warmup_steps,
                                      .step_every = job->train.schedule.step_every,
                                      .total_steps = schedule_steps(job, region, samples)},
                         .momentum = job->train.optimizer.momentum,
                         .weight_decay = job->train.optimizer.weight_decay,
                         .beta1 = job->train.optimizer.beta1,
                         .beta2 = job->train.optimizer.beta2,
                         .epsilon = job->train.optimizer.epsilon,
                         .nesterov = job->train.optimizer.nesterov,
                         .clip = job->train.clip};
}

size_t gt_ps_optim_floats(const gt_job *job, size_t region, size_t parameters) {
  const bool here = !job->sync.central || strcmp(job->regions[region].name, job->sync.central) == 0;
  return here || !gt_sync_of(job->sync.strategy)->lockstep ? parameters : 0;
}

double *gt_ps_weights_of(const gt_job *job, const int64_t *samples) {
  size_t n = job->nregions;
  bool by_samples = job->sync.weights == GT_WEIGHTS_SAMPLES;
  double sum = 0, *weights = GT_NEW_ARRAY(double, n);
  for (size_t p = 0; p < n; p++) sum += weights[p] = by_samples ? (double)samples[p] : 1;
  for (size_t p = 0; p < n; p++) weights[p] /= sum;
  return weights;
}

/* Messages that may have left and not be acknowledged: the larger of four frames and twice
   bandwidth times round trip, at most 64. */
static size_t window_of(const gt_job *job, size_t region, const gt_link_spec *links, size_t bytes) {
  double most = 4.0 * (double)GT_FRAME_PAYLOAD_MAX;
  for (size_t p = 0; p < job->nregions; p++) {
    if (p == region) continue;
    double in_flight = 2 * gt_link_goodput(&links[p]) / 8 * (links[p].latency_s + links[p].back_s);
    if (in_flight > most) most = in_flight;
  }
  double messages = most / (double)bytes;
  return messages < 1 ? 1 : messages > 64 ? 64 : (size_t)messages;
}

static gt_topology topology_of(const gt_job *job) {
  return job->sync.central ? GT_TOPOLOGY_CENTRAL : job->sync.topology;
}

gt_status gt_ps_check_way(const gt_job *job) {
  const gt_sync_ops *strategy = gt_sync_of(job->sync.strategy);
  if (job->sync.central && !strategy->waits)
    return GT_FAIL(GT_ERR_JOB,
                   "sync.central is %s and sync.strategy %s, with which no region waits for "
                   "another; ssgd or sma is needed",
                   job->sync.central, strategy->name);
  if (!strategy->sends || strategy->waits || gt_topology_broadcasts(job->sync.topology))
    return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "sync.strategy %s sends what no other region waits for, and sync.topology %s has "
                 "rounds only; mesh, hub or tree is needed",
                 strategy->name, gt_topology_names[job->sync.topology]);
}

size_t *gt_ps_next_of(const gt_job *job, const gt_links *links, size_t parameters) {
  const char *name = job->sync.central ? job->sync.central : job->sync.hub;
  if (topology_of(job) == GT_TOPOLOGY_MESH) return NULL;
  size_t hub = 0, *next = GT_NEW_ARRAY(size_t, job->nregions);
  while (hub < job->nregions && !(name && strcmp(job->regions[hub].name, name) == 0)) hub++;
  gt_topology_place(topology_of(job), links, job->nregions, parameters * sizeof(float), hub, next);
  return next;
}

size_t *gt_ps_workers_of(const gt_job *job) {
  if (!job->sync.central) return NULL;
  size_t *workers = GT_NEW_ARRAY(size_t, job->nregions);
  for (size_t r = 0; r < job->nregions; r++) workers[r] = (size_t)job->regions[r].ranks - 1;
  return workers;
}

/* Steps of the region for each unit of the period.  With local async a step is one worker's batch,
   so that a pass of all workers is as many steps. */
static int64_t unit_of(const gt_job *job, size_t region) {
  const int64_t workers = job->regions[region].ranks - 1;
  const bool passes = job->sync.period_unit == GT_PERIOD_PASS &&
                      gt_job_key_used("sync.period_unit", gt_strategy_names[job->sync.strategy]);
  return passes && job->sync.local == GT_LOCAL_ASYNC && workers > 1 ? workers : 1;
}

static int64_t period_of(const gt_job *job, size_t region) {
  const int64_t period = job->sync.period, unit = unit_of(job, region);
  return period < PERIOD_MAX / unit ? period * unit : PERIOD_MAX;
}

static gt_sync_options options_of(const gt_job *job, size_t region) {
  return (gt_sync_options){.period = period_of(job, region),
                           .scale =
                               job->sync.scale == GT_SCALE_MEAN ? 1.0 / (double)job->nregions : 1.0,
                           .average = job->sync.scale == GT_SCALE_AVERAGE,
                           .gradients = job->sync.exchange == GT_EXCHANGED_GRADIENT,
                           .halves = job->sync.merge == GT_MERGE_HALF};
}

static gt_ps_interval interval(const gt_job_interval *i) {
  return (gt_ps_interval){i->epochs, i->steps, i->samples, i->minutes};
}

gt_ps_spec gt_ps_spec_of(const gt_job *job, const gt_order *order, const gt_link_spec *links,
                         size_t parameters) {
  size_t region = (size_t)order->region;
  return (gt_ps_spec){.nregions = job->nregions,
                      .self = region,
                      .nworkers = (size_t)job->regions[region].ranks - 1,
                      .local_async = job->sync.local == GT_LOCAL_ASYNC,
                      .strategy = gt_sync_of(job->sync.strategy),
                      .topology = topology_of(job),
                      .options = options_of(job, region),
                      .outbox = (size_t)job->wan.outbox,
                      .window = window_of(job, region, links, parameters * sizeof(float)),
                      .order = *order,
                      .until = interval(&job->train.until),
                      .eval_every = interval(&job->train.eval_every),
                      .checkpoint_every = interval(&job->checkpoint.every),
                      .nonfinite_limit = job->limits.nonfinite,
                      .wan_bytes_limit = job->limits.wan_bytes,
                      .heartbeat = GT_SECOND};
}
