/* Derives a region's PS from the job; the same for runs and simulations. */
#include <math.h>
#include <string.h>

#include "geotrain/ps_of_job.h"
#include "geotrain/ps_state.h"

#define PERIOD_MAX ((int64_t)1e15) /* as of sync.period */
#define HEARTBEATS 6.0             /* over a store: in the patience */

#define EVAL_BATCH ((size_t)32) /* samples at a time in an evaluation, unless training uses more */

/* Texts need memory for the logits of every position. */
size_t gt_ps_batch_max(const gt_job *job) {
  const size_t batch = (size_t)job->train.batch,
               least = gt_model_find(gt_model_names[job->model.name])->decodes ? 1 : EVAL_BATCH;
  return batch > least ? batch : least;
}

uint64_t gt_ps_dropout_key(const gt_job *job, size_t region, int64_t batch) {
  gt_rng keys = gt_rng_make(job->seed, GT_RNG_DROPOUT, region, (uint64_t)batch);
  return gt_rng_u64(&keys);
}

gt_status gt_ps_check_batches(const gt_job *job, size_t region, size_t samples,
                              const gt_dataset_info *data, size_t least) {
  const size_t batch = (size_t)job->train.batch, last = samples % batch ? samples % batch : batch;
  if (samples == 0 || last >= least) return GT_OK;
  return GT_FAIL(
      GT_ERR_JOB,
      "train.batch: region %s has %zu samples in batches of %zu, the last of an epoch has %zu; of "
      "images of %zu x %zu, model %s normalises channels of a single value a sample, so expected "
      "%zu or more in every batch: choose another train.batch, or other samples",
      job->regions[region].name, samples, batch, last, data->h, data->w,
      gt_model_names[job->model.name], least);
}

/* Returns the first region with the same test set. */
static size_t first_with(const gt_dataset_info *infos, size_t region) {
  size_t r = 0;
  while (strcmp(infos[r].tests_sha256, infos[region].tests_sha256) != 0) r++;
  return r;
}

void gt_ps_tests_of(const gt_job *job, const gt_dataset_info *infos, gt_ps_tests *tests) {
  const bool one = gt_sync_of(job->sync.strategy)->sends == 0;
  bool more = job->pipeline.nstages == 0;
  for (size_t r = 0; r < job->nregions; r++) {
    tests[r].samples = infos[r].ntest;
    tests[r].first = first_with(infos, r);
    tests[r].scores = more && infos[r].ntest > 0 && tests[r].first == r;
    if (tests[r].scores && one) more = false;
  }
}

/* Returns the steps that a region of `samples` samples will make; its learning-rate schedule ends
   with them. */
static double steps_of(const gt_job *job, size_t region, int64_t samples) {
  if (!gt_job_trains(job, region)) return 0;
  if (job->train.until.steps > 0) return (double)job->train.until.steps;
  double batches = job->train.until.epochs > 0
                       ? job->train.until.epochs * ceil((double)samples / (double)job->train.batch)
                       : (double)job->train.until.samples / (double)job->train.batch;
  return job->sync.local == GT_LOCAL_SYNC ? ceil(batches / (double)gt_job_workers(job, region))
                                          : batches;
}

/* If every region applies every step, all follow the longest schedule; otherwise their learning
   rates, and so their models, would differ. */
static int64_t schedule_steps(const gt_job *job, size_t region, const int64_t *samples) {
  double steps = steps_of(job, region, samples[region]);
  if (gt_sync_of(job->sync.strategy)->lockstep)
    for (size_t p = 0; p < job->nregions; p++) steps = fmax(steps, steps_of(job, p, samples[p]));
  return (int64_t)(steps + 0.5);
}

static gt_optim_spec optim_of(const gt_job *job, int64_t total_steps) {
  return (gt_optim_spec){.kind = job->train.optimizer.name,
                         .schedule = {.kind = job->train.schedule.name,
                                      .lr = job->train.optimizer.lr,
                                      .gamma = job->train.schedule.gamma,
                                      .lr_min = job->train.schedule.lr_min,
                                      .warmup_steps = job->train.schedule.warmup_steps,
                                      .step_every = job->train.schedule.step_every,
                                      .total_steps = total_steps},
                         .momentum = job->train.optimizer.momentum,
                         .weight_decay = job->train.optimizer.weight_decay,
                         .beta1 = job->train.optimizer.beta1,
                         .beta2 = job->train.optimizer.beta2,
                         .epsilon = job->train.optimizer.epsilon,
                         .nesterov = job->train.optimizer.nesterov,
                         .clip = job->train.clip};
}

gt_optim_spec gt_ps_optim_of(const gt_job *job, size_t region, const int64_t *samples) {
  return optim_of(job, schedule_steps(job, region, samples));
}

size_t gt_ps_optim_floats(const gt_job *job, size_t region, size_t parameters) {
  const bool here = !job->sync.central || strcmp(job->regions[region].name, job->sync.central) == 0;
  return here || !gt_sync_of(job->sync.strategy)->lockstep ? parameters : 0;
}

double *gt_ps_weights_of(const gt_job *job, const int64_t *samples) {
  size_t n = job->nregions;
  bool by_samples = job->sync.weights == GT_WEIGHTS_SAMPLES;
  double sum = 0, *weights = GT_NEW_ARRAY(double, n);
  for (size_t p = 0; p < n; p++) {
    if (gt_job_trains(job, p)) weights[p] = by_samples ? (double)samples[p] : 1;
    sum += weights[p];
  }
  for (size_t p = 0; p < n; p++) weights[p] /= sum;
  return weights;
}

/* Returns the most messages in flight: the larger of four frames and twice bandwidth times round
   trip, at most 64. */
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

size_t *gt_ps_workers_of(const gt_job *job) {
  if (!job->sync.central) return NULL;
  size_t *workers = GT_NEW_ARRAY(size_t, job->nregions);
  for (size_t r = 0; r < job->nregions; r++) workers[r] = gt_job_workers(job, r);
  return workers;
}

/* Returns the steps of the region for each unit of the period.  With local async a step is one
   worker's batch, so a pass of all workers has one step per worker. */
static int64_t unit_of(const gt_job *job, size_t region) {
  const int64_t workers = (int64_t)gt_job_workers(job, region);
  const bool passes = job->sync.period_unit == GT_PERIOD_PASS &&
                      gt_job_key_used("sync.period_unit", gt_strategy_names[job->sync.strategy]);
  return passes && job->sync.local == GT_LOCAL_ASYNC && workers > 1 ? workers : 1;
}

static int64_t period_of(const gt_job *job, size_t region) {
  const int64_t period = job->sync.period, unit = unit_of(job, region);
  return period < PERIOD_MAX / unit ? period * unit : PERIOD_MAX;
}

/* Returns the rounds of a whole run in the region with the most. */
static int64_t rounds_of(const gt_job *job, const int64_t *samples) {
  double rounds = 0;
  for (size_t r = 0; r < job->nregions; r++)
    rounds = fmax(rounds, ceil(steps_of(job, r, samples[r]) / (double)period_of(job, r)));
  return (int64_t)fmin(rounds, (double)PERIOD_MAX);
}

/* senders: the regions whose updates a region adds, including itself. */
static gt_sync_options options_of(const gt_job *job, size_t region, size_t senders) {
  return (gt_sync_options){.period = period_of(job, region),
                           .scale = job->sync.scale == GT_SCALE_MEAN ? 1.0 / (double)senders : 1.0,
                           .mean = job->sync.scale == GT_SCALE_MEAN,
                           .average = job->sync.scale == GT_SCALE_AVERAGE,
                           .gradients = job->sync.exchange == GT_EXCHANGED_GRADIENT,
                           .halves = job->sync.merge == GT_MERGE_HALF,
                           .outer = job->sync.outer.name,
                           .outer_lr = job->sync.outer.lr,
                           .outer_lr_min = job->sync.outer.lr_min,
                           .outer_momentum = job->sync.outer.momentum,
                           .guard = {.clip = job->sync.guard.clip,
                                     .outlier = job->sync.guard.outlier,
                                     .warmup = job->sync.guard.warmup},
                           .lossy = job->sync.codec.name != GT_CODEC_NONE,
                           .quorum = job->sync.quorum < 1 ? job->sync.quorum : 0,
                           .grace = gt_from_seconds(job->sync.grace_s),
                           .fragments = job->sync.fragments,
                           .delay = job->sync.delay,
                           .late = job->sync.late,
                           .local_weight = job->sync.local_weight};
}

gt_exchange_codec gt_ps_codec_of(const gt_job *job, const gt_view *tensors, size_t ntensors) {
  const bool momentum = gt_codec_has(job->sync.codec.name, GT_MOMENTUM);
  if (!tensors) return (gt_exchange_codec){0};
  return (gt_exchange_codec){
      .kind = job->sync.codec.name,
      .spec = {.density = job->sync.codec.density,
               .rank = (size_t)job->sync.codec.rank,
               .bits = job->sync.codec.bits,
               .stochastic = job->sync.codec.rounding == GT_ROUNDING_STOCHASTIC,
               .decay = (float)(momentum ? job->sync.codec.momentum : job->sync.codec.decay),
               .warmup = (uint64_t)job->sync.codec.warmup,
               .seed = job->seed},
      .tensors = tensors,
      .ntensors = ntensors};
}

/* Bytes of a message of the parameters. */
static size_t message_bytes(const gt_exchange_codec *codec, size_t parameters) {
  return codec->kind == GT_CODEC_NONE ? parameters * sizeof(float) : gt_exchange_codec_bytes(codec);
}

static gt_ps_interval interval(const gt_job_interval *i) {
  return (gt_ps_interval){i->epochs, i->steps, i->samples, i->minutes};
}

/* Returns the interval in batches of this order: the fewest that reach the epochs or samples. */
static gt_ps_interval in_batches(const gt_ps_interval *i, const gt_order *order) {
  const int64_t epoch = gt_order_batches_per_epoch(order), n = (int64_t)order->n,
                batch = (int64_t)order->batch;
  if (i->epochs > 0)
    return (gt_ps_interval){.steps = (int64_t)fmax(1, ceil(i->epochs * (double)epoch - 1e-9))};
  if (i->samples > 0)
    return (gt_ps_interval){.steps = i->samples / n * epoch + (i->samples % n + batch - 1) / batch};
  return *i;
}

gt_ps_stage gt_ps_stage_of(const gt_pipe_layout *l, size_t stage) {
  return (gt_ps_stage){.first_worker = l->places[stage].first_worker,
                       .workers = l->places[stage].workers,
                       .counts = stage == 0,
                       .judges = stage == gt_pipe_stage_of(l->stages, l->stages * l->chunks - 1)};
}

static void set_stages(gt_ps_spec *spec, const gt_ps_basis *of) {
  const gt_pipe_job *pipe = of->pipe;
  spec->stages = of->stages;
  spec->nstages = of->nstages;
  spec->groups = of->groups;
  spec->strategy = &gt_ps_lockstep;
  spec->options = (gt_sync_options){.period = 1, .scale = 1};
  spec->local_async = false;
  spec->until = in_batches(&spec->until, of->order);
  spec->eval_every = in_batches(&spec->eval_every, of->order);
  spec->checkpoint_every = in_batches(&spec->checkpoint_every, of->order);
  spec->micro_batches = pipe->layout.micro_batches;
  spec->owners = pipe->owners;
  spec->nowners = of->job->train.clip > 0 ? pipe->nowners : 0;
  spec->passes = pipe;
  spec->adapts = pipe->layout.adapts ? pipe : NULL;
}

gt_status gt_ps_check_fragments(const gt_job *job, size_t ntensors) {
  const bool has = gt_strategy_has(job->sync.strategy, GT_HAS_OUTER);
  if (!has || (size_t)job->sync.fragments <= ntensors) return GT_OK;
  return GT_FAIL(
      GT_ERR_JOB,
      "sync.fragments is %d and model %s has %zu tensors; it must be at most that number",
      job->sync.fragments, gt_model_names[job->model.name], ntensors);
}

gt_status gt_ps_check_stages(const gt_job *job, const int64_t *samples) {
  for (size_t r = 0; r < job->nregions; r++)
    if (gt_job_reads(job, r) && samples[r] < job->train.batch)
      return GT_FAIL(GT_ERR_JOB,
                     "train.batch: region %s has %lld samples, and a step of the pipeline takes "
                     "%d; expected as many samples or more",
                     job->regions[r].name, (long long)samples[r], job->train.batch);
  return GT_OK;
}

int64_t gt_ps_stages_steps(const gt_job *job, int64_t samples) {
  const gt_ps_interval until = interval(&job->train.until);
  const gt_order order = {.n = (size_t)samples, .batch = (size_t)job->train.batch, .whole = true};
  return in_batches(&until, &order).steps;
}

gt_optim_spec gt_ps_stages_optim_of(const gt_job *job, const gt_order *first,
                                    const int64_t *samples) {
  const gt_ps_interval until = interval(&job->train.until);
  int64_t steps = in_batches(&until, first).steps;
  for (size_t r = 0; r < job->nregions && gt_sync_of(job->sync.strategy)->lockstep; r++) {
    if (!gt_job_reads(job, r)) continue;
    const int64_t others = gt_ps_stages_steps(job, samples[r]);
    if (others > steps) steps = others;
  }
  return optim_of(job, steps);
}

/* ---- replicas of a pipeline ------------------------------------------------------------------ */

gt_ps_groups gt_ps_groups_of(const gt_job *job, size_t region, const int64_t *samples) {
  const size_t n = gt_job_replicas(job);
  if (n == 1) return (gt_ps_groups){0};
  const bool by_samples = job->sync.weights == GT_WEIGHTS_SAMPLES;
  size_t *stage_group = GT_NEW_ARRAY(size_t, job->nregions), *replicas = GT_NEW_ARRAY(size_t, n);
  double *weights = GT_NEW_ARRAY(double, n), sum = 0;
  gt_ps_groups groups = {.stage_group = stage_group,
                         .replicas = replicas,
                         .nreplicas = n,
                         .weights = weights,
                         .strategy = gt_sync_of(job->sync.strategy),
                         .options = options_of(job, region, n)};
  for (size_t r = 0; r < job->nregions; r++)
    if (gt_job_replica_of(job, r) == gt_job_replica_of(job, region))
      stage_group[groups.nstage_group++] = r;
  for (size_t c = 0; c < n; c++) {
    replicas[c] = gt_job_replica(job, region, c);
    weights[c] = by_samples ? (double)samples[gt_job_stage_region(job, c, 0)] : 1;
    sum += weights[c];
  }
  for (size_t c = 0; c < n; c++) weights[c] /= sum;
  return groups;
}

void gt_ps_groups_close(gt_ps_groups *groups) {
  gt_free((void *)(uintptr_t)groups->stage_group);
  gt_free((void *)(uintptr_t)groups->replicas);
  gt_free((void *)(uintptr_t)groups->weights);
  *groups = (gt_ps_groups){0};
}

/* Returns the region sync.tie; nregions: none. */
static size_t tie_of(const gt_job *job) {
  size_t tie = job->sync.tie ? 0 : job->nregions;
  while (tie < job->nregions && strcmp(job->regions[tie].name, job->sync.tie) != 0) tie++;
  return tie;
}

bool gt_ps_may_begin(const gt_job *job, const bool *there) {
  size_t n = 0;
  int64_t *samples = GT_NEW_ARRAY(int64_t, job->nregions);
  for (size_t r = 0; r < job->nregions; r++) {
    samples[r] = job->regions[r].samples;
    n += there[r];
  }
  double *weights = gt_ps_weights_of(job, samples);
  const bool most = gt_ps_majority(weights, job->nregions, tie_of(job), there);
  gt_free(weights);
  gt_free(samples);
  return most && there[0] && n >= (size_t)job->sync.min_regions;
}

static void set_members(gt_ps_spec *spec, const gt_ps_basis *of) {
  const gt_job *job = of->job;
  spec->members = *of->members;
  spec->members.tie = tie_of(job);
  spec->options.regroups = of->members->change;
}

/* Messages that are objects: few and whole. */
static void set_objects(gt_ps_spec *spec, const gt_ps_basis *of) {
  const gt_ns silent = gt_from_seconds(of->job->limits.wan_patience_s / HEARTBEATS);
  spec->piece = of->parameters;
  spec->objects = sizeof(float) * 2 * of->parameters < GT_OBJECT_MAX;
  if (silent > spec->heartbeat) spec->heartbeat = silent;
}

gt_ps_spec gt_ps_spec_of(const gt_ps_basis *of) {
  const gt_job *job = of->job;
  const size_t region = (size_t)of->order->region;
  const gt_link_spec *links = gt_links_from(of->links, region);
  const gt_exchange_codec codec = gt_ps_codec_of(job, of->tensors, of->ntensors);
  gt_ps_spec spec = {.nregions = job->nregions,
                     .self = region,
                     .nworkers = gt_job_workers(job, region),
                     .local_async = job->sync.local == GT_LOCAL_ASYNC,
                     .strategy = gt_sync_of(job->sync.strategy),
                     .topology = of->routes->topology,
                     .next = of->routes->next,
                     .workers = of->workers,
                     .weights = of->weights,
                     .options = options_of(job, region, gt_job_training(job)),
                     .outbox = (size_t)job->wan.outbox,
                     .window = window_of(job, region, links, message_bytes(&codec, of->parameters)),
                     .codec = codec,
                     .order = *of->order,
                     .until = interval(&job->train.until),
                     .eval_every = interval(&job->train.eval_every),
                     .checkpoint_every = interval(&job->checkpoint.every),
                     .test_samples = of->test_samples,
                     .validates = job->data.validation > 0,
                     .validation = of->validation,
                     .patience = job->train.patience,
                     .nonfinite_limit = job->limits.nonfinite,
                     .wan_bytes_limit = job->limits.wan_bytes,
                     .heartbeat = GT_SECOND};
  if (job->wan.transport == GT_WAN_STORE) set_objects(&spec, of);
  if (of->members) set_members(&spec, of);
  if (of->pipe)
    set_stages(&spec, of);
  else if (of->samples)
    spec.options.outer_rounds = rounds_of(job, of->samples);
  return spec;
}
