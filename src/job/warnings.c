/* Warnings about valid settings that are probably not intended. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

typedef void say(const char *text);

/* Returns the value of a key, of the first region that has one, and writes its path; NULL: none. */
static const job_node *find_value(job_node *root, const job_key *row, char path[JOB_PATH_MAX]) {
  static const char of_region[] = "regions[].";
  const size_t skip = sizeof of_region - 1;
  const job_node *node = NULL, *regions = gt_job_node_child(root, "regions");
  snprintf(path, JOB_PATH_MAX, "%s", row->path);
  if (strncmp(path, of_region, skip) != 0) return gt_job_node_at(root, path, NULL);
  for (size_t r = 0; r < regions->n && !node; r++) {
    snprintf(path, JOB_PATH_MAX, "regions.%zu.%s", r, row->path + skip);
    node = gt_job_node_at(regions->items[r], row->path + skip, NULL);
  }
  return node;
}

/* Warns about keys with a value other than the default that the chosen value ignores. */
static void warn_idle(const gt_job *job, say *tell) {
  char text[512], owners[128], path[JOB_PATH_MAX];
  job_node *root = gt_job_tree(job, false);
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    const char *chosen = gt_job_key_idle(root, row);
    const job_node *node = chosen ? find_value(root, row, path) : NULL;
    if (!node || (row->fallback && strcmp(node->text, row->fallback) == 0)) continue;
    snprintf(text, sizeof text, "%s is %.80s and does nothing: %s is %s; it is for %s only", path,
             node->text, row->choice, chosen, gt_job_key_owners(owners, sizeof owners, row));
    tell(text);
  }
  gt_job_node_close(root);
}

static void warn_gradient(const gt_job *job, say *tell) {
  char text[256];
  if (job->sync.exchange != GT_EXCHANGED_GRADIENT || job->train.optimizer.name == GT_OPTIMIZER_SGD)
    return;
  snprintf(text, sizeof text,
           "sync.exchange is gradient and train.optimizer.name %s: other regions subtract the "
           "gradient times train.optimizer.lr, a rate that fits sgd",
           gt_optimizer_names[job->train.optimizer.name]);
  tell(text);
}

static void warn_emulation(const gt_job *job, say *tell) {
  if (!job->wan.emulate || job->wan.nlinks > 0 || job->nregions < 2 || gt_job_link_default(job) ||
      job->wan.transport == GT_WAN_STORE)
    return;
  tell("wan.emulate is true and no link is given, so that no message is delayed; set wan.links, "
       "wan.matrix or wan.default");
}

static void warn_stored(const gt_job *job, say *tell) {
  if (job->wan.transport != GT_WAN_STORE ||
      (job->wan.nlinks == 0 && job->wan.noutages == 0 && !gt_job_link_default(job)))
    return;
  tell("wan.transport is store, and wan.links, wan.matrix, wan.default and wan.outages do nothing: "
       "the model of the store is in wan.store and regions[].store");
}

static void warn_tls(const gt_job *job, say *tell) {
  const bool given = job->wan.tls.ca || job->wan.tls.cert || job->wan.tls.key;
  if (!given || job->wan.transport == GT_WAN_TCP) return;
  tell(job->wan.transport == GT_WAN_MPI
           ? "wan.tls is given and wan.transport is mpi, which does not encrypt the messages "
             "between regions; wan.tls is for tcp only"
           : "wan.tls is given and does nothing: wan.transport is store; wan.tls is for tcp only");
}

static void warn_warmup(const gt_job *job, const char *region, int64_t steps, say *tell) {
  char text[256];
  if (steps <= 0 || job->train.schedule.warmup_steps <= steps) return;
  snprintf(text, sizeof text,
           "train.schedule.warmup_steps is %" PRId64 " and %s%s ends after %" PRId64
           " steps: the rate never reaches train.optimizer.lr",
           job->train.schedule.warmup_steps, *region ? "region " : "the run", region, steps);
  tell(text);
}

static void warn_aggregating(const gt_job *job, say *tell) {
  char text[384];
  const gt_topology way = job->sync.topology;
  for (size_t r = 0; r < job->nregions; r++) {
    const char *name = job->regions[r].name;
    if (job->sync.central && strcmp(job->sync.central, name) == 0) continue;
    const bool elsewhere =
        gt_topology_has(way, GT_ROOT_NAMED) && job->sync.hub && strcmp(job->sync.hub, name) != 0;
    if (gt_job_trains(job, r) || (gt_topology_has(way, GT_ROOTED) && !elsewhere)) continue;
    snprintf(
        text, sizeof text,
        "region %s has no workers and only aggregates (ranks 1), and with sync.topology %s%s%s it "
        "adds traffic and saves none; sync.topology hub with sync.hub %s, or tree, uses it",
        name, gt_topology_names[way], elsewhere ? " and sync.hub " : "",
        elsewhere ? job->sync.hub : "", name);
    tell(text);
  }
}

/* Warns about mean and std in other units: images are divided by 255 before they apply. */
static void warn_units(const gt_job *job, say *tell) {
  char text[256];
  for (size_t i = 0; i < job->data.nmean; i++) {
    const double mean = job->data.mean[i], std = job->data.std[i];
    if (mean >= 0 && mean <= 1 && std <= 1) continue;
    snprintf(text, sizeof text,
             "data.mean has %g and data.std %g, where images are 0 to 1: both are in units of 255, "
             "as %.4g and %.4g",
             mean, std, mean / 255, std / 255);
    tell(text);
    return;
  }
}

void gt_job_warn(const gt_job *job, say *tell) {
  warn_idle(job, tell);
  warn_gradient(job, tell);
  warn_emulation(job, tell);
  warn_stored(job, tell);
  warn_tls(job, tell);
  warn_units(job, tell);
  warn_aggregating(job, tell);
  warn_warmup(job, "", job->train.until.steps, tell);
}

/* Returns the region's steps for this number of samples.  A step is one batch of every worker
   (sync), of one worker (async), or of the whole pipeline. */
static int64_t steps_of(const gt_job *job, size_t region, int64_t samples) {
  const bool together = job->sync.local == GT_LOCAL_SYNC && job->pipeline.nstages == 0 &&
                        gt_job_workers(job, region) > 0;
  const double step =
      (double)job->train.batch * (together ? (double)gt_job_workers(job, region) : 1);
  const double whole = job->train.until.samples > 0 ? (double)job->train.until.samples
                                                    : job->train.until.epochs * (double)samples;
  return (int64_t)ceil(whole / step);
}

void gt_job_warn_region(const gt_job *job, size_t region, int64_t samples, say *tell) {
  char text[256];
  const char *name = job->regions[region].name;
  if (!gt_job_reads(job, region)) return;
  if (job->train.until.steps == 0) warn_warmup(job, name, steps_of(job, region, samples), tell);
  if (job->train.batch <= samples) return;
  snprintf(text, sizeof text,
           "train.batch is %d and region %s holds %" PRId64 " samples: every batch has all of them",
           job->train.batch, name, samples);
  tell(text);
}
