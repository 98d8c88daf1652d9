/* Checks of `sync`: topologies, losses, codecs and the options of strategies, with the keys that
   they depend on. */
#include <math.h>

#include "internal.h"

/* a message about an epoch has 3 numbers for each fragment, and 2 for each 64 regions */
#define FRAGMENTS_OF_MEMBERS 128

static gt_status check_hub(const gt_job *job, const char *source) {
  const char *hub = job->sync.hub;
  if (!hub) return GT_OK;
  if (!gt_topology_has(job->sync.topology, GT_ROOT_NAMED))
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.hub is \"%s\" and sync.topology %s; sync.hub requires topology hub",
                   source, hub, gt_topology_names[job->sync.topology]);
  return gt_job_check_region(job, source, "sync.hub", hub);
}

/* The run weighs regions that are not there by the samples that the job gives. */
static gt_status check_min_regions(const gt_job *job, const char *source) {
  const size_t least = (size_t)job->sync.min_regions;
  if (least > job->nregions)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.min_regions is %zu, and regions has %zu entries; expected "
                   "at most as many",
                   source, least, job->nregions);
  if (least > 0 && !gt_job_trains(job, 0))
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.min_regions is given, and region %s, the first, does not train; "
                   "expected one that trains, because no run begins without it",
                   source, job->regions[0].name);
  for (size_t r = 0; least > 0 && r < job->nregions; r++)
    if (gt_job_trains(job, r) && job->regions[r].samples == 0)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: sync.min_regions is given, and regions.%zu.samples is not; expected the "
                     "number of training samples of every region that trains",
                     source, r);
  return GT_OK;
}

static gt_status check_on_loss(const gt_job *job, const char *source) {
  const char *with = gt_job_bound(job);
  if (job->sync.on_loss != GT_ON_LOSS_CONTINUE) return GT_OK;
  if (with)
    return GT_FAIL(GT_ERR_JOB, "%s: sync.on_loss is continue with %s; expected stop", source, with);
  if (job->sync.fragments > FRAGMENTS_OF_MEMBERS)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.fragments is %d with sync.on_loss continue; expected at most %d",
                   source, job->sync.fragments, FRAGMENTS_OF_MEMBERS);
  GT_TRY(check_min_regions(job, source));
  return job->sync.tie ? gt_job_check_region(job, source, "sync.tie", job->sync.tie) : GT_OK;
}

/* Checks the numbers of workers, whose ranks are 16-bit numbers on the wire. */
static gt_status check_ranks(const gt_job *job, const char *source) {
  for (size_t r = 0; r < job->nregions; r++)
    if (job->regions[r].ranks - 1 > UINT16_MAX)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: sync.central is \"%s\" and regions.%zu.ranks %d; with sync.central, "
                     "ranks must be at most %d",
                     source, job->sync.central, r, job->regions[r].ranks, UINT16_MAX + 1);
  return GT_OK;
}

/* sync.central excludes the keys of a topology. */
static gt_status check_central(const gt_job *job, const char *source) {
  const char *central = job->sync.central;
  if (!central) return GT_OK;
  if (!gt_topology_has(job->sync.topology, GT_ALL_WITH_ALL))
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.central is \"%s\" and sync.topology %s; expected one of the two",
                   source, central, gt_topology_names[job->sync.topology]);
  if (job->sync.hub)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.central is \"%s\" and sync.hub \"%s\"; expected one of the two",
                   source, central, job->sync.hub);
  if (job->sync.local != GT_LOCAL_SYNC)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: sync.central is \"%s\" and sync.local %s; sync.central requires sync.local sync",
        source, central, gt_local_names[job->sync.local]);
  GT_TRY(check_ranks(job, source));
  return gt_job_check_region(job, source, "sync.central", central);
}

const char *gt_job_unsound_codec(const gt_job *job, gt_strategy strategy, gt_codec_kind codec,
                                 gt_topology topology) {
  const bool models = gt_strategy_has(strategy, GT_HAS_MERGE);
  /* a mesh is always a candidate, and suits every codec */
  const bool mesh =
      gt_topology_has(topology, GT_ALL_WITH_ALL) || gt_topology_has(topology, GT_CHOSEN);
  if (!gt_strategy_has(strategy, GT_SENDS) || codec == GT_CODEC_NONE) return NULL;
  if (job->sync.central) return "sync.central takes float32";
  if (job->pipeline.nstages > 0 || job->pipeline.search) return "a pipeline exchanges float32";
  if (gt_codec_has(codec, GT_MOMENTUM) && !gt_strategy_has(strategy, GT_GRADIENTS))
    return "the codec encodes gradients, which only ssgd sends";
  if (gt_codec_has(codec, GT_MOMENTUM) &&
      (job->train.optimizer.name != GT_OPTIMIZER_SGD || job->train.optimizer.momentum > 0))
    return "the codec has momentum of its own; it requires optimizer sgd with momentum 0";
  if (gt_codec_has(codec, GT_MOMENTUM) && !mesh)
    return "the codec would apply its momentum to sums, too; it requires topology mesh";
  if (gt_codec_has(codec, GT_DEPENDENT) && gt_strategy_has(strategy, GT_HAS_UPDATES | GT_HAS_MERGE))
    return "the codec adds up twice before it decodes; it requires ssgd or sma";
  if (gt_strategy_has(strategy, GT_HAS_OUTER) && job->sync.quorum < 1 &&
      gt_codec_has(codec, GT_RESUMS))
    return "the codec's payloads add up within one round; it requires sync.quorum 1";
  if (models && gt_codec_has(codec, GT_ADDITIVE))
    return "the strategy sends models, and the codec encodes updates only";
  if (models && !mesh) return "the strategy sends models; encoded ones require topology mesh";
  if (!mesh && !gt_topology_has(topology, GT_ROOTED) && !gt_codec_has(codec, GT_RESUMS))
    return "over a ring only codecs whose payloads add up can be used: mask, powersgd";
  return NULL;
}

static gt_status check_fragments(const gt_job *job, const char *source) {
  const long long period = (long long)job->sync.period, delay = (long long)job->sync.delay;
  const bool apart = job->sync.fragments > 1 || delay > 0;
  if (!gt_strategy_has(job->sync.strategy, GT_HAS_OUTER) || !apart) return GT_OK;
  if (job->sync.central || job->pipeline.nstages > 0 || job->pipeline.search)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.fragments is %d and sync.delay %lld with %s; expected 1 and 0", source,
                   job->sync.fragments, delay, job->sync.central ? "sync.central" : "a pipeline");
  if (period % job->sync.fragments != 0)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: sync.fragments is %d and sync.period %lld; the period must be a multiple of "
        "the fragments",
        source, job->sync.fragments, period);
  if (delay >= period)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.delay is %lld and sync.period %lld; the delay must be less", source,
                   delay, period);
  return GT_OK;
}

static gt_status check_outer(const gt_job *job, const char *source) {
  const double lr_min = job->sync.outer.lr_min;
  if (job->sync.outer.name == GT_OUTER_NESTEROV && job->sync.outer.momentum <= 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.outer.name is nesterov and sync.outer.momentum 0; expected a momentum "
                   "above 0, or sync.outer.name sgd",
                   source);
  if (job->sync.outer.name == GT_OUTER_NONE || lr_min == 0) return GT_OK;
  if (job->pipeline.nstages > 0 || job->pipeline.search)
    return GT_FAIL(GT_ERR_JOB, "%s: sync.outer.lr_min is %g with a pipeline; expected 0", source,
                   lr_min);
  if (lr_min > job->sync.outer.lr)
    return GT_FAIL(GT_ERR_JOB, "%s: sync.outer.lr_min is %g; expected at most sync.outer.lr, %g",
                   source, lr_min, job->sync.outer.lr);
  return GT_OK;
}

/* Only regions that hold the last common model and send one part each can judge it. */
static gt_status check_guard(const gt_job *job, const char *source) {
  const bool guarded = job->sync.guard.clip > 0 || job->sync.guard.outlier > 0,
             pipeline = job->pipeline.nstages > 0 || job->pipeline.search;
  if (!gt_strategy_has(job->sync.strategy, GT_HAS_OUTER) || !guarded) return GT_OK;
  if (!job->sync.central && !pipeline) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: sync.guard is given with %s; expected %s", source,
                 pipeline ? "a pipeline" : "sync.central",
                 pipeline ? "regions that hold a whole model" : "one message of each region");
}

static gt_status check_codec_of(const gt_job *job, const char *source, const char *key,
                                gt_strategy strategy, gt_codec_kind codec) {
  const char *why = gt_job_unsound_codec(job, strategy, codec, job->sync.topology);
  if (!why) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: %s is %s with strategy %s and topology %s: %s", source, key,
                 gt_codec_names[codec], gt_strategy_names[strategy],
                 job->sync.central ? "central" : gt_topology_names[job->sync.topology], why);
}

/* The limits of a payload: one value of each chunk of 4,096; no more bytes than float32.  mask
   sends one of k values. */
static gt_status check_density(const gt_job *job, const char *source, gt_codec_kind codec) {
  const double density = job->sync.codec.density, least = 1.0 / 4096,
               most = gt_codec_has(codec, GT_MOMENTUM) ? 0.5 : 1;
  const long of = lround(1 / fmax(density, least));
  if (!gt_codec_has(codec, GT_DENSITY)) return GT_OK;
  if (!(density >= least && density <= most))
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: sync.codec.density is %g; with sync.codec.name %s it must be from 1/4096 to %g",
        source, density, gt_codec_names[codec], most);
  if (codec != GT_CODEC_MASK || fabs(density * (double)of - 1) <= 0.01) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: sync.codec.density is %g; with sync.codec.name mask it must be 1/k for a "
                 "whole number k, such as %.5g",
                 source, density, 1 / (double)of);
}

/* Checks the strategies and codecs that a plan compares.  It skips unsound pairs of two lists; then
   one of them must be sound. */
static gt_status check_plan_codecs(const gt_job *job, const char *source) {
  const size_t strategies = job->plan.nstrategies, codecs = job->plan.ncodecs;
  gt_status status = GT_OK;
  for (size_t i = 0; i < codecs; i++) GT_TRY(check_density(job, source, job->plan.codecs[i]));
  for (size_t i = 0; i < codecs && strategies == 0; i++)
    GT_TRY(check_codec_of(job, source, "plan.codecs", job->sync.strategy, job->plan.codecs[i]));
  for (size_t i = 0; i < strategies && codecs == 0; i++)
    GT_TRY(check_codec_of(job, source, "sync.codec.name", job->plan.strategies[i],
                          job->sync.codec.name));
  for (size_t i = 0; i < strategies * codecs; i++) {
    status = check_codec_of(job, source, "plan.codecs", job->plan.strategies[i / codecs],
                            job->plan.codecs[i % codecs]);
    if (status == GT_OK) break;
  }
  return status;
}

static gt_status check_codec(const gt_job *job, const char *source) {
  GT_TRY(check_plan_codecs(job, source));
  if (job->sync.codec.name == GT_CODEC_NONE) return GT_OK;
  GT_TRY(check_codec_of(job, source, "sync.codec.name", job->sync.strategy, job->sync.codec.name));
  GT_TRY(check_density(job, source, job->sync.codec.name));
  if (gt_strategy_has(job->sync.strategy, GT_HAS_MERGE) && job->sync.codec.decay < 1)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.codec.decay is %g with strategy %s, whose models have no error "
                   "feedback; expected 1",
                   source, job->sync.codec.decay, gt_strategy_names[job->sync.strategy]);
  if (job->sync.codec.bits != 2 && job->sync.codec.bits != 8)
    return GT_FAIL(GT_ERR_JOB, "%s: sync.codec.bits is %d; it must be 2 or 8", source,
                   job->sync.codec.bits);
  return GT_OK;
}

/* A sender that takes back a part of its own update cannot do so in the gradient that it sends. */
static gt_status check_scale(const gt_job *job, const char *source) {
  if (job->sync.scale != GT_SCALE_AVERAGE || job->sync.exchange != GT_EXCHANGED_GRADIENT)
    return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: sync.scale is average and sync.exchange gradient; with gradient, sync.scale "
                 "must be sum or mean",
                 source);
}

/* A round without a majority could be followed by one of the other regions alone. */
static gt_status check_quorum(const gt_job *job, const char *source) {
  const double quorum = job->sync.quorum;
  const bool pipeline = job->pipeline.nstages > 0 || job->pipeline.search;
  if (!gt_strategy_has(job->sync.strategy, GT_HAS_OUTER) || quorum >= 1) return GT_OK;
  if (pipeline || job->sync.central || !gt_topology_has(job->sync.topology, GT_HAS_QUORUM))
    return GT_FAIL(GT_ERR_JOB, "%s: sync.quorum is %g with %s%s; expected sync.topology hub",
                   source, quorum, pipeline || job->sync.central ? "" : "sync.topology ",
                   pipeline            ? "a pipeline"
                   : job->sync.central ? "sync.central"
                                       : gt_topology_names[job->sync.topology]);
  if (job->nregions > GT_QUORUM_REGIONS)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.quorum is %g with %zu regions; it must be 1 with more "
                   "than %d",
                   source, quorum, job->nregions, GT_QUORUM_REGIONS);
  return GT_OK;
}

gt_status gt_job_check_sync(const gt_job *job, const char *source) {
  GT_TRY(check_central(job, source));
  GT_TRY(check_hub(job, source));
  GT_TRY(check_on_loss(job, source));
  GT_TRY(check_codec(job, source));
  GT_TRY(check_fragments(job, source));
  GT_TRY(check_outer(job, source));
  GT_TRY(check_guard(job, source));
  GT_TRY(check_quorum(job, source));
  return check_scale(job, source);
}
