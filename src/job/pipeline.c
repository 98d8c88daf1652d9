/* A job with a pipeline: its stages and regions, their replicas, its batch, keys of other parts
   that depend on it.  Regions that train and have data; limits of regions that only aggregate. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* ---- replicas: regions and their places ----------------------------------------------------- */

/* True if stage s is the first one of its region. */
static bool comes_first(const gt_job *job, size_t s) {
  for (size_t t = 0; t < s; t++)
    if (job->pipeline.stages[t].id == job->pipeline.stages[s].id) return false;
  return true;
}

/* Returns the number of regions of a replica. */
static size_t places(const gt_job *job) {
  size_t n = 0;
  for (size_t s = 0; s < job->pipeline.nstages; s++) n += comes_first(job, s);
  return n;
}

/* Returns the place of a region of the first replica, or places(job). */
static size_t place_of(const gt_job *job, size_t region) {
  size_t place = 0;
  for (size_t s = 0; s < job->pipeline.nstages; s++) {
    if (!comes_first(job, s)) continue;
    if (job->pipeline.stages[s].id == region) break;
    place++;
  }
  return place;
}

/* Returns the region of the first replica with this place. */
static size_t region_at(const gt_job *job, size_t place) {
  size_t s = 0;
  while (!comes_first(job, s) || place-- > 0) s++;
  return job->pipeline.stages[s].id;
}

static size_t find(const gt_job *job, const char *name) {
  size_t r = 0;
  while (r < job->nregions && strcmp(job->regions[r].name, name) != 0) r++;
  return r;
}

/* Returns the replica of a region, and its place; gt_job_replicas: none. */
static size_t look_up(const gt_job *job, size_t region, size_t *place) {
  *place = place_of(job, region);
  if (*place < places(job)) return 0;
  for (size_t c = 0; c < job->pipeline.ncopies; c++) {
    const gt_job_copy *replica = &job->pipeline.copies[c];
    for (*place = 0; *place < replica->nregions; ++*place)
      if (strcmp(replica->regions[*place], job->regions[region].name) == 0) return c + 1;
  }
  return gt_job_replicas(job);
}

size_t gt_job_replicas(const gt_job *job) {
  return 1 + job->pipeline.ncopies;
}

size_t gt_job_replica_of(const gt_job *job, size_t region) {
  size_t place;
  return look_up(job, region, &place);
}

size_t gt_job_replica(const gt_job *job, size_t region, size_t replica) {
  size_t place;
  look_up(job, region, &place);
  return replica == 0 ? region_at(job, place)
                      : find(job, job->pipeline.copies[replica - 1].regions[place]);
}

size_t gt_job_stage_region(const gt_job *job, size_t replica, size_t stage) {
  return gt_job_replica(job, job->pipeline.stages[stage].id, replica);
}

char *gt_job_replica_text(const gt_job *job, size_t replica, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "replica %zu (", replica + 1);
  for (size_t place = 0, n = places(job); place < n; place++) {
    const char *name = job->regions[gt_job_replica(job, region_at(job, place), replica)].name,
               *before = place == 0 ? "" : ", ";
    const bool fits = used + strlen(before) + strlen(name) + sizeof ", ...)" <= size;
    used += (size_t)snprintf(text + used, size - used, "%s%s", before, fits ? name : "...");
    if (!fits) break;
  }
  snprintf(text + used, size - used, ")");
  return text;
}

/* True if the region has the first stage of a replica. */
static bool has_first(const gt_job *job, size_t region) {
  size_t place;
  return look_up(job, region, &place) < gt_job_replicas(job) && place == 0;
}

static gt_status check_count(const gt_job *job, size_t c, const char *source) {
  const size_t have = job->pipeline.copies[c].nregions, n = places(job);
  if (have == n) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: pipeline.copies.%zu.regions has %zu name%s, and pipeline.stages has stages "
                 "in %zu region%s; expected the same number",
                 source, c, have, have == 1 ? "" : "s", n, n == 1 ? "" : "s");
}

static gt_status check_name(const gt_job *job, size_t c, size_t place, const char *source) {
  const char *name = job->pipeline.copies[c].regions[place];
  char key[80];
  size_t found;
  snprintf(key, sizeof key, "pipeline.copies.%zu.regions.%zu", c, place);
  GT_TRY(gt_job_check_region(job, source, key, name));
  const size_t region = find(job, name), replica = look_up(job, region, &found);
  if (replica == c + 1 && found == place) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: %s is %s, which has stages already (%s); expected a region that has none",
                 source, key, name, replica == 0 ? "pipeline.stages" : "pipeline.copies");
}

/* Checks the regions of further replicas. */
static gt_status check_copies(const gt_job *job, const char *source) {
  for (size_t c = 0; c < job->pipeline.ncopies; c++) {
    GT_TRY(check_count(job, c, source));
    for (size_t i = 0; i < job->pipeline.copies[c].nregions; i++)
      GT_TRY(check_name(job, c, i, source));
  }
  return GT_OK;
}

/* Checks the keys that keep replicas equal. */
static gt_status check_between(const gt_job *job, const char *source) {
  const gt_strategy strategy = job->sync.strategy;
  const bool several = job->pipeline.ncopies > 0, sends = gt_strategy_has(strategy, GT_SENDS);
  if (!several && sends)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.strategy is %s with a pipeline of one replica, which exchanges "
                   "nothing by a strategy; expected none, or pipeline.copies",
                   source, gt_strategy_names[strategy]);
  if (several && !sends)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.strategy is none with pipeline.copies, so that replicas would "
                   "diverge; expected another strategy",
                   source);
  if (several && gt_topology_has(job->sync.topology, GT_CHOSEN))
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.topology is auto with pipeline.copies, for which no topology is "
                   "chosen; expected mesh, hub, tree or ring",
                   source);
  return GT_OK;
}

/* ---- regions that train ---------------------------------------------------------------------- */

bool gt_job_trains(const gt_job *job, size_t region) {
  return job->regions[region].ranks != 1;
}

static bool has_own_data(const gt_job_region *r) {
  return r->data_path || r->samples > 0;
}

/* With stages: auto, true for the regions that have data given; for all if none has. */
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
  return job->pipeline.nstages == 0 || has_first(job, region);
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
                   "aggregates; expected no %s, or 2 ranks or more",
                   source, region, given, given);
  if (job->data.partition.nshares == job->nregions && job->data.partition.shares[region] != 0)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: data.partition.shares.%zu is %g, and region %s (ranks 1) only aggregates; expected 0",
        source, region, job->data.partition.shares[region], r->name);
  return GT_OK;
}

/* Checks sync keys against a region that only aggregates. */
static gt_status check_aggregating_sync(const gt_job *job, size_t region, const char *source) {
  const char *name = job->regions[region].name;
  const bool constant =
      job->train.schedule.name == GT_LR_CONSTANT && job->train.schedule.warmup_steps == 0;
  if (gt_job_training(job) == 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: regions[].ranks is 1 in every region, so that none trains; expected one "
                   "with 2 or more",
                   source);
  if (!gt_strategy_has(job->sync.strategy, GT_SENDS))
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.strategy is none, and region %s (ranks 1) only aggregates; expected a "
                   "strategy that exchanges something",
                   source, name);
  if (job->sync.central && strcmp(name, job->sync.central) != 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.central is \"%s\", and region %s (ranks 1) only aggregates; with "
                   "sync.central, every other region must have 2 ranks or more",
                   source, job->sync.central, name);
  if (job->sync.exchange == GT_EXCHANGED_GRADIENT && !constant)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.exchange is gradient, and region %s (ranks 1) only aggregates: it "
                   "makes no steps by which its learning rate changes; expected sync.exchange "
                   "update, or train.schedule constant without warm-up",
                   source, name);
  return GT_OK;
}

gt_status gt_job_check_aggregating(const gt_job *job, const char *source) {
  for (size_t r = 0; r < job->nregions; r++) {
    if (gt_job_trains(job, r)) continue;
    GT_TRY(check_aggregating_sync(job, r, source));
    GT_TRY(check_region(job, r, source));
  }
  return GT_OK;
}

static bool is_folded(const gt_job *job) {
  for (size_t s = 0; s < job->pipeline.nstages; s++)
    if (job->pipeline.stages[s].nlast > 1) return true;
  return false;
}

size_t gt_job_chunks(const gt_job *job) {
  const gt_pipe_kind kind = job->pipeline.schedule;
  return kind == GT_PIPE_ZB_V || (kind == GT_PIPE_AUTO && is_folded(job)) ? 2 : 1;
}

/* ---- stages and regions ---------------------------------------------------------------------- */

static gt_status find_region(gt_job *job, size_t s, const char *source) {
  gt_job_stage *stage = &job->pipeline.stages[s];
  char key[64];
  snprintf(key, sizeof key, "pipeline.stages.%zu.region", s);
  GT_TRY(gt_job_check_region(job, source, key, stage->region));
  while (strcmp(job->regions[stage->id].name, stage->region) != 0) stage->id++;
  if (gt_job_trains(job, stage->id)) return GT_OK;
  return GT_FAIL(
      GT_ERR_JOB,
      "%s: %s is %s, which has no workers (regions.%zu.ranks is 1); expected a region with workers",
      source, key, stage->region, stage->id);
}

/* Checks that the stages of a region have all its workers. */
static gt_status check_workers(const gt_job *job, size_t region, const char *source) {
  const gt_job_region *r = &job->regions[region];
  int64_t workers = 0;
  if (gt_job_replica_of(job, region) == gt_job_replicas(job))
    return GT_FAIL(GT_ERR_JOB,
                   "%s: pipeline.stages has no stage in region %s; expected one or more in every "
                   "region of the job",
                   source, r->name);
  for (size_t s = 0; s < job->pipeline.nstages; s++)
    if (job->pipeline.stages[s].id == gt_job_replica(job, region, 0))
      workers += job->pipeline.stages[s].workers;
  if (r->ranks == 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: regions.%zu.ranks is auto, and the stages of pipeline.stages in region %s "
                   "have %lld workers; expected %lld ranks, one for the parameter server",
                   source, region, r->name, (long long)workers, (long long)workers + 1);
  if (workers != r->ranks - 1)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: the stages of pipeline.stages in region %s have %lld workers, and "
                   "regions.%zu.ranks is %d, of which %d are workers; expected the same number",
                   source, r->name, (long long)workers, region, r->ranks, r->ranks - 1);
  return GT_OK;
}

static gt_status check_places(gt_job *job, const char *source) {
  for (size_t s = 0; s < job->pipeline.nstages; s++) GT_TRY(find_region(job, s, source));
  GT_TRY(check_copies(job, source));
  for (size_t r = 0; r < job->nregions; r++) GT_TRY(check_workers(job, r, source));
  return GT_OK;
}

/* Checks that labels are where the loss is: behind the last span, which is the first stage's in a
   folded pipeline. */
static gt_status check_labels(const gt_job *job, const char *source) {
  const gt_job_stage *first = &job->pipeline.stages[0],
                     *last = &job->pipeline.stages[job->pipeline.nstages - 1];
  if (job->pipeline.labels == GT_LABELS_SEND || gt_job_chunks(job) == 2 || first->id == last->id)
    return GT_OK;
  return GT_FAIL(
      GT_ERR_JOB,
      "%s: pipeline.labels is keep, the first stage is in region %s and the last one, which needs "
      "the labels, in region %s; expected both in one region, or labels: send",
      source, first->region, last->region);
}

/* ---- ends of stages -------------------------------------------------------------------------- */

/* Checks that a stage has as many names as spans.  The model's last span can omit its name. */
static gt_status check_names(const gt_job *job, size_t s, const char *source) {
  const size_t chunks = gt_job_chunks(job), n = job->pipeline.nstages,
               have = job->pipeline.stages[s].nlast;
  const bool ends = chunks == 2 ? s == 0 : s + 1 == n;
  if (have == chunks || (ends && have + 1 == chunks)) return GT_OK;
  if (have == 0)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: pipeline.stages.%zu.last is missing, and other stages have it; expected %s in "
        "every stage, or none in any",
        source, s, chunks == 2 ? "two names" : "one name");
  return GT_FAIL(GT_ERR_JOB,
                 "%s: pipeline.stages.%zu.last has %zu name%s, and the pipeline is %s; expected %s",
                 source, s, have, have == 1 ? "" : "s",
                 chunks == 2 ? "folded: a stage has two parts of the model" : "not folded",
                 chunks == 1 ? "one"
                 : ends      ? "one or two"
                             : "two");
}

static gt_status check_ends(const gt_job *job, const char *source) {
  bool given = false;
  for (size_t s = 0; s < job->pipeline.nstages; s++) given |= job->pipeline.stages[s].nlast > 0;
  for (size_t s = 0; given && s < job->pipeline.nstages; s++) GT_TRY(check_names(job, s, source));
  return GT_OK;
}

/* ---- the batch ------------------------------------------------------------------------------- */

static gt_status check_batch(const gt_job *job, const char *source) {
  const int micro_batches = job->pipeline.micro_batches;
  if (micro_batches == 0 && job->pipeline.search) return GT_OK;
  if (micro_batches == 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: pipeline.micro_batches is missing or auto, and pipeline.stages is a list; "
                   "expected a number, or stages: auto",
                   source);
  const int samples = job->train.batch / micro_batches;
  if (job->train.batch % micro_batches != 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: pipeline.micro_batches is %d and train.batch %d; expected a number that "
                   "divides the batch",
                   source, micro_batches, job->train.batch);
  for (size_t s = 0; s < job->pipeline.nstages; s++)
    if (samples % job->pipeline.stages[s].workers != 0)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: pipeline.stages.%zu.workers is %d and a micro-batch %d samples "
                     "(train.batch %d in %d); expected a number that divides them",
                     source, s, job->pipeline.stages[s].workers, samples, job->train.batch,
                     micro_batches);
  return GT_OK;
}

/* ---- keys of other parts --------------------------------------------------------------------- */

static gt_status check_sync(const gt_job *job, const char *source) {
  GT_TRY(check_between(job, source));
  if (job->sync.local != GT_LOCAL_SYNC)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: sync.local is %s with a pipeline, whose workers run in step; expected sync",
                   source, gt_local_names[job->sync.local]);
  const bool way =
      !gt_topology_has(job->sync.topology, GT_ALL_WITH_ALL) && job->pipeline.ncopies == 0;
  if (way || job->sync.central)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: %s is %s with a pipeline, which has its own topology; remove the key",
                   source, job->sync.central ? "sync.central" : "sync.topology",
                   job->sync.central ? job->sync.central : gt_topology_names[job->sync.topology]);
  if (job->plan.nstrategies > 0 || job->plan.nperiods > 0 || job->plan.ncodecs > 0)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: plan.%s is given with a pipeline, for which a plan compares nothing; remove the key",
        source,
        job->plan.nstrategies > 0 ? "strategies"
        : job->plan.nperiods > 0  ? "periods"
                                  : "codecs");
  return GT_OK;
}

static gt_status check_train(const gt_job *job, const char *source) {
  if (job->compute_variation > 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: compute.variation is %g with a pipeline, whose passes take the time that "
                   "compute gives; expected 0",
                   source, job->compute_variation);
  if (job->model.dropout > 0)
    return GT_FAIL(GT_ERR_JOB, "%s: model.dropout is %g with a pipeline; expected 0", source,
                   job->model.dropout);
  return GT_OK;
}

/* Checks that only the region of the first stage has data. */
static gt_status check_data(const gt_job *job, size_t region, const char *source) {
  const gt_job_region *r = &job->regions[region];
  const char *given = r->data_path ? "data.path" : r->samples > 0 ? "samples" : NULL;
  if (gt_job_reads(job, region)) return GT_OK;
  if (given)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: regions.%zu.%s is given, and region %s does not have the first stage of "
                   "the pipeline, which alone reads data; expected no %s",
                   source, region, given, r->name, given);
  if (job->data.partition.nshares == job->nregions && job->data.partition.shares[region] > 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: data.partition.shares.%zu is %g, and region %s does not have the first "
                   "stage of the pipeline, which alone reads data; expected 0",
                   source, region, job->data.partition.shares[region], r->name);
  return GT_OK;
}

/* Returns the data given for a region, in words. */
static const char *data_of(const gt_job *job, size_t region) {
  const gt_job_region *r = &job->regions[region];
  const bool shared =
      job->data.partition.nshares == job->nregions && job->data.partition.shares[region] > 0;
  return r->data_path     ? "data.path"
         : r->samples > 0 ? "samples"
         : shared         ? "a share of the data"
                          : NULL;
}

static gt_status check_one_reads(const gt_job *job, const char *source) {
  size_t first = job->nregions;
  for (size_t r = 0; r < job->nregions; r++) {
    if (!data_of(job, r)) continue;
    if (first == job->nregions)
      first = r;
    else
      return GT_FAIL(GT_ERR_JOB,
                     "%s: pipeline.stages is auto, region %s has %s and region %s has %s; a "
                     "pipeline reads the data of one region, so expected one of the two",
                     source, job->regions[first].name, data_of(job, first), job->regions[r].name,
                     data_of(job, r));
  }
  return GT_OK;
}

/* Checks a job with stages: auto; the search does the rest. */
static gt_status check_search(const gt_job *job, const char *source) {
  if (job->pipeline.ncopies > 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: pipeline.stages is auto with pipeline.copies, whose regions correspond to "
                   "those of stages; expected a list of stages, or no copies",
                   source);
  GT_TRY(check_one_reads(job, source));
  GT_TRY(check_batch(job, source));
  GT_TRY(check_sync(job, source));
  GT_TRY(check_train(job, source));
  for (size_t r = 0; r < job->nregions; r++)
    if (!gt_job_trains(job, r))
      return GT_FAIL(GT_ERR_JOB,
                     "%s: pipeline.stages is auto and region %s has no workers (regions.%zu.ranks "
                     "is 1); a pipeline has stages in every region",
                     source, job->regions[r].name, r);
  return GT_OK;
}

gt_status gt_job_check_pipeline(gt_job *job, const char *source) {
  if (job->pipeline.search) return check_search(job, source);
  if (job->pipeline.nstages == 0) return GT_OK;
  GT_TRY(check_places(job, source));
  GT_TRY(check_ends(job, source));
  GT_TRY(check_labels(job, source));
  GT_TRY(check_batch(job, source));
  GT_TRY(check_sync(job, source));
  GT_TRY(check_train(job, source));
  for (size_t r = 0; r < job->nregions; r++) GT_TRY(check_data(job, r, source));
  return GT_OK;
}
