/* Checks that involve several keys: counts, names, pairs, and keys that depend on each other. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ---- wan.transport --------------------------------------------------------------------------- */

/* The transport between regions: addresses, and TLS unless they are loopback addresses. */

/* True for 127.x, localhost and [::1], with a port. */
static bool is_loopback(const char *address) {
  return !address || strncmp(address, "127.", 4) == 0 || strncmp(address, "localhost:", 10) == 0 ||
         strncmp(address, "[::1]:", 6) == 0;
}

static bool has_port(const char *address) {
  const char *colon = strrchr(address, ':');
  return colon && colon != address && colon[1] != '\0' &&
         colon[1 + strspn(colon + 1, "0123456789")] == '\0';
}

static gt_status check_address(const char *address, const char *source, size_t region,
                               const char *key) {
  if (!address || has_port(address)) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: regions.%zu.%s is \"%.80s\"; expected host:port", source, region,
                 key, address);
}

static gt_status check_region(const gt_job *job, const char *source, size_t region) {
  const gt_job_region *r = &job->regions[region];
  GT_TRY(check_address(r->address, source, region, "address"));
  GT_TRY(check_address(r->listen, source, region, "listen"));
  if (r->listen && !r->address)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: regions.%zu.listen is given without regions.%zu.address; expected the "
                   "address at which the others reach the region",
                   source, region, region);
  if (!job->wan.tls.ca && (!is_loopback(r->address) || !is_loopback(r->listen)))
    return GT_FAIL(GT_ERR_JOB,
                   "%s: wan.tls is missing, and region %s has an address other than loopback; "
                   "expected wan.tls.ca, wan.tls.cert and wan.tls.key",
                   source, r->name);
  return GT_OK;
}

/* Returns what a function lacks; NULL: nothing.  It adds up the data of whole rounds, so all
   regions take part in every round, from the first to the last. */
static const char *lacks(const gt_job *job) {
  size_t r = 0;
  while (r < job->nregions && !gt_job_is_function(job, r)) r++;
  if (r == job->nregions)
    return "a region that adds up: sync.central, or sync.hub with sync.topology hub";
  if (gt_job_trains(job, r)) return "that region without workers: regions[].ranks 1";
  if (!gt_strategy_has(job->sync.strategy, GT_GRADIENTS | GT_HAS_OUTER) || job->sync.quorum < 1)
    return "a strategy in which every region waits for all others: ssgd, or sma with sync.quorum 1";
  if (job->train.until.steps == 0) return "train.until.steps, so that all regions end together";
  if (job->sync.on_loss == GT_ON_LOSS_CONTINUE || job->nfaults > 0)
    return "sync.on_loss stop, and no faults";
  return NULL;
}

static gt_status check_function(const gt_job *job, const char *source) {
  const char *needed = job->wan.store.trigger == GT_TRIGGER_EVENT ? lacks(job) : NULL;
  if (!needed) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: wan.store.trigger is event; expected %s", source, needed);
}

static gt_status check_store(const gt_job *job, const char *source) {
  const char *url = job->wan.store.url;
  if (job->wan.store.poll_s > job->limits.wan_patience_s / 3)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: wan.store.poll is %g s and limits.wan_patience %g s; expected a patience of three "
        "polls or more, so that no region counts as lost between two looks",
        source, job->wan.store.poll_s, job->limits.wan_patience_s);
  if (url && (strncmp(url, "file:///", 8) == 0 || strncmp(url, "s3://", 5) == 0))
    return check_function(job, source);
  return GT_FAIL(GT_ERR_JOB,
                 "%s: wan.store.url is %s%.80s%s; with wan.transport store, expected "
                 "file:///FOLDER or s3://BUCKET/PREFIX",
                 source, url ? "\"" : "", url ? url : "missing", url ? "\"" : "");
}

/* Checks wan.transport: the store, or addresses and certificates of the regions. */
static gt_status check_transport(const gt_job *job, const char *source) {
  const int files =
      (job->wan.tls.ca != NULL) + (job->wan.tls.cert != NULL) + (job->wan.tls.key != NULL);
  bool reached = false;
  if (job->wan.transport == GT_WAN_STORE) return check_store(job, source);
  if (job->wan.transport == GT_WAN_MPI) return GT_OK;
  if (files != 0 && files != 3)
    return GT_FAIL(GT_ERR_JOB, "%s: wan.tls has %d of ca, cert and key; expected all or none",
                   source, files);
  const char *proxy = job->wan.proxy;
  if (proxy && (strncmp(proxy, GT_WAN_PROXY, strlen(GT_WAN_PROXY)) != 0 ||
                !has_port(proxy + strlen(GT_WAN_PROXY))))
    return GT_FAIL(GT_ERR_JOB, "%s: wan.proxy is \"%.80s\"; expected http://host:port", source,
                   proxy);
  for (size_t r = 0; r < job->nregions; r++) {
    GT_TRY(check_region(job, source, r));
    reached |= job->regions[r].address != NULL;
  }
  if (!reached && job->nregions > 1)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: no region has an address; with wan.transport tcp, expected "
                   "regions[].address of at least one",
                   source);
  return GT_OK;
}

#define NAME_MAX_LETTERS ((size_t)63)

static gt_status check_interval(const gt_job_interval *every, const char *source, const char *key,
                                const char *keys, bool needed) {
  int given =
      (every->epochs > 0) + (every->steps > 0) + (every->samples > 0) + (every->minutes > 0);
  if (given > 1)
    return GT_FAIL(GT_ERR_JOB, "%s: %s has %d of %s; expected exactly one", source, key, given,
                   keys);
  if (given == 0 && needed)
    return GT_FAIL(GT_ERR_JOB, "%s: %s has none of %s above 0; expected exactly one", source, key,
                   keys);
  return GT_OK;
}

static gt_status check_train(const gt_job *job, const char *source) {
  GT_TRY(check_interval(&job->train.until, source, "train.until", "epochs, steps, samples", true));
  GT_TRY(
      check_interval(&job->train.eval_every, source, "train.eval_every", "epochs, steps", false));
  GT_TRY(check_interval(&job->checkpoint.every, source, "checkpoint.every",
                        "epochs, steps, minutes", false));
  if (job->train.schedule.name == GT_LR_STEP && job->train.schedule.step_every < 1)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: train.schedule.step_every is 0; with train.schedule.name step, it must be at least 1",
        source);
  if (job->train.schedule.lr_min > job->train.optimizer.lr)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: train.schedule.lr_min is %g; expected at most train.optimizer.lr, %g",
                   source, job->train.schedule.lr_min, job->train.optimizer.lr);
  if (job->train.optimizer.nesterov && job->train.optimizer.momentum <= 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: train.optimizer.nesterov is true and train.optimizer.momentum 0; expected "
                   "a momentum above 0",
                   source);
  return GT_OK;
}

/* Validation needs checkpoints that all regions take, of whole models. */
static gt_status check_validation(const gt_job *job, const char *source) {
  const gt_job_interval *every = &job->checkpoint.every;
  if (job->train.patience > 0 && job->train.keep == GT_KEEP_LAST)
    return GT_FAIL(GT_ERR_JOB, "%s: train.patience is %d with train.keep last; expected best",
                   source, job->train.patience);
  if (job->train.keep == GT_KEEP_BEST && job->data.validation <= 0)
    return GT_FAIL(GT_ERR_JOB, "%s: data.validation is missing; train.keep best needs it", source);
  if (job->data.validation <= 0) return GT_OK;
  if (job->pipeline.nstages > 0 || job->pipeline.search)
    return GT_FAIL(GT_ERR_JOB, "%s: data.validation is given with pipeline.stages; expected none",
                   source);
  if (job->sync.on_loss == GT_ON_LOSS_CONTINUE)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: data.validation is given with sync.on_loss continue; expected stop",
                   source);
  if (every->epochs <= 0 && every->steps == 0 && every->minutes <= 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: data.validation is given and checkpoint.every is 0: there are no "
                   "checkpoints to judge; expected more than 0",
                   source);
  return GT_OK;
}

gt_status gt_job_check_name(const char *name, const char *source, const char *where) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  size_t length = strlen(name);
  if (length > NAME_MAX_LETTERS)
    return GT_FAIL(GT_ERR_JOB, "%s: %s has %zu letters; expected at most %zu", source, where,
                   length, NAME_MAX_LETTERS);
  if (name[strspn(name, letters)] || name[0] == '.' || name[0] == '-')
    return GT_FAIL(GT_ERR_JOB,
                   "%s: %s is \"%s\"; expected a name for files: letters, digits, dot, dash and "
                   "underscore, a letter or digit first",
                   source, where, name);
  return GT_OK;
}

/* A name in the job: of a region or of a host. */
typedef struct {
  const char *name;
  size_t region;
} name_of;

static int by_region(const name_of *x, const name_of *y) {
  return (x->region > y->region) - (x->region < y->region);
}

static int by_letters(const void *a, const void *b) {
  int order = strcasecmp(((const name_of *)a)->name, ((const name_of *)b)->name);
  return order ? order : by_region(a, b);
}

static int by_host(const void *a, const void *b) {
  int order = strcmp(((const name_of *)a)->name, ((const name_of *)b)->name);
  return order ? order : by_region(a, b);
}

static gt_status check_names(const gt_job *job, const char *source) {
  gt_status status = GT_OK;
  name_of *names = GT_NEW_ARRAY(name_of, job->nregions);
  for (size_t i = 0; i < job->nregions; i++) names[i] = (name_of){job->regions[i].name, i};
  qsort(names, job->nregions, sizeof *names, by_letters);
  for (size_t i = 1; i < job->nregions && status == GT_OK; i++)
    if (strcasecmp(names[i - 1].name, names[i].name) == 0)
      status = GT_FAIL(
          GT_ERR_JOB, "%s: regions.%zu and regions.%zu are both named %s; expected different names",
          source, names[i - 1].region, names[i].region, names[i].name);
  gt_free(names);
  return status;
}

static gt_status check_hosts(const gt_job *job, const char *source) {
  size_t n = 0;
  gt_status status = GT_OK;
  for (size_t i = 0; i < job->nregions; n += job->regions[i++].nhosts)
    if ((job->regions[i].nhosts > 0) != (job->regions[0].nhosts > 0))
      return GT_FAIL(GT_ERR_JOB,
                     "%s: regions.%zu.hosts and regions.0.hosts are given in one region only; "
                     "expected hosts of all regions or of none",
                     source, i);
  name_of *hosts = GT_NEW_ARRAY(name_of, n + 1);
  n = 0;
  for (size_t i = 0; i < job->nregions; i++)
    for (size_t h = 0; h < job->regions[i].nhosts; h++)
      hosts[n++] = (name_of){job->regions[i].hosts[h], i};
  qsort(hosts, n, sizeof *hosts, by_host);
  for (size_t i = 1; i < n && status == GT_OK; i++)
    if (strcmp(hosts[i - 1].name, hosts[i].name) == 0)
      status = GT_FAIL(GT_ERR_JOB,
                       "%s: host \"%s\" is named in regions.%zu.hosts and again in "
                       "regions.%zu.hosts; expected once",
                       source, hosts[i].name, hosts[i - 1].region, hosts[i].region);
  gt_free(hosts);
  return status;
}

/* Checks devices (one per worker) and limits for the workers that a plan chooses. */
static gt_status check_devices(const gt_job_region *r, size_t region, const char *source) {
  int64_t devices = 0;
  for (size_t d = 0; d < r->ndevices; d++) devices += r->devices[d].count;
  if (r->ranks == 0 && r->ndevices == 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: regions.%zu.ranks is auto, without devices to choose from; expected "
                   "regions.%zu.devices, or a number of ranks",
                   source, region, region);
  if (r->ranks > 0 && r->ndevices > 0 && r->ranks - 1 > devices)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: regions.%zu.ranks is %d, of which %d are workers, and its devices are %" PRId64
        "; expected a device for each",
        source, region, r->ranks, r->ranks - 1, devices);
  if (r->ranks_max > 0 && r->ranks_min > r->ranks_max)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: regions.%zu.ranks_min is %d and ranks_max %d; ranks_min must be at most ranks_max",
        source, region, r->ranks_min, r->ranks_max);
  return GT_OK;
}

static gt_status check_regions(const gt_job *job, const char *source) {
  int64_t ranks = 0;
  for (size_t i = 0; i < job->nregions; i++) {
    char where[48];
    snprintf(where, sizeof where, "regions.%zu.name", i);
    GT_TRY(gt_job_check_name(job->regions[i].name, source, where));
    GT_TRY(check_devices(&job->regions[i], i, source));
    ranks += job->regions[i].ranks;
  }
  if (ranks > INT_MAX)
    return GT_FAIL(GT_ERR_JOB, "%s: regions have %lld ranks in all; expected at most %d", source,
                   (long long)ranks, INT_MAX);
  GT_TRY(check_names(job, source));
  return check_hosts(job, source);
}

static gt_status check_shares(const gt_job *job, const job_node *root, const char *source) {
  const job_node *data = gt_job_node_child(root, "data"),
                 *partition = data ? gt_job_node_child(data, "partition") : NULL;
  if (!partition || !gt_job_node_child(partition, "shares")) return GT_OK;
  if (job->data.partition.nshares != job->nregions)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: data.partition.shares has %zu numbers; expected %zu, one per region",
                   source, job->data.partition.nshares, job->nregions);
  for (size_t i = 0; i < job->nregions; i++)
    if (gt_job_reads(job, i) && job->data.partition.shares[i] <= 0)
      return GT_FAIL(
          GT_ERR_JOB,
          "%s: data.partition.shares.%zu is 0, and region %s trains; expected a number above 0",
          source, i, job->regions[i].name);
  return GT_OK;
}

static gt_status check_data(const gt_job *job, const job_node *root, const char *source) {
  bool by_file = job->data.partition.by == GT_PART_FILE;
  for (size_t i = 0; i < job->nregions; i++) {
    if (job->regions[i].data_path || job->regions[i].samples > 0 || !gt_job_reads(job, i)) continue;
    if (by_file)
      return GT_FAIL(GT_ERR_JOB,
                     "%s: regions.%zu.data.path is missing; data.partition.by is file, so every "
                     "region needs its own data set",
                     source, i);
    if (!job->data.path)
      return GT_FAIL(
          GT_ERR_JOB,
          "%s: data.path is missing; expected an HDF5 data set (region %s has none of its own)",
          source, job->regions[i].name);
  }
  if (job->data.nmean != job->data.nstd)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: data.mean has %zu numbers and data.std %zu; expected one per channel in "
                   "both, or neither",
                   source, job->data.nmean, job->data.nstd);
  return check_shares(job, root, source);
}

/* Checks the compute values of one level, which give the step time in one way only. */
static gt_status check_figures(const gt_job_compute *c, const char *source, const char *key) {
  if (c->samples_per_s <= 0 || c->step_s <= 0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: %s has samples_per_s and step; expected one of them", source,
                 key);
}

/* Checks that the list has one number per worker. */
static gt_status check_workers(const job_node *compute, const gt_job_region *r, const char *list,
                               size_t n, const char *source, const char *key) {
  if (!gt_job_node_child(compute, list) || n + 1 == (size_t)r->ranks) return GT_OK;
  if (r->ranks == 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: %s.%s is given and ranks is auto; expected a number of ranks with it",
                   source, key, list);
  return GT_FAIL(GT_ERR_JOB,
                 "%s: %s.%s has %zu numbers; ranks is %d, so expected %d, one per worker", source,
                 key, list, n, r->ranks, r->ranks - 1);
}

static gt_status check_compute(const gt_job *job, const job_node *root, const char *source) {
  GT_TRY(check_figures(&job->compute, source, "compute"));
  const job_node *regions = gt_job_node_child(root, "regions");
  for (size_t i = 0; i < job->nregions; i++) {
    const gt_job_region *r = &job->regions[i];
    char key[48];
    snprintf(key, sizeof key, "regions.%zu.compute", i);
    GT_TRY(check_figures(&r->compute, source, key));
    const job_node *compute = gt_job_node_child(regions->items[i], "compute");
    if (!compute) continue;
    GT_TRY(check_workers(compute, r, "speeds", r->nspeeds, source, key));
    GT_TRY(check_workers(compute, r, "measured", r->nmeasured, source, key));
  }
  return GT_OK;
}

static gt_status check_layers(const gt_job *job, const job_node *root, const char *source) {
  const job_node *model = gt_job_node_child(root, "model");
  if (gt_job_node_child(model, "mlp") && job->model.nmlp == 0)
    return GT_FAIL(GT_ERR_JOB, "%s: model.mlp is empty; expected the width of 1 layer or more",
                   source);
  return GT_OK;
}

static gt_status check_model(const gt_job *job, const job_node *root, const char *source) {
  if (job->model.parameters > 0 && job->model.name != GT_MODEL_DUMMY)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: model.parameters is %" PRId64
                   " and model.name %s; a number of parameters is for model.name dummy only",
                   source, job->model.parameters, gt_model_names[job->model.name]);
  return check_layers(job, root, source);
}

static gt_status check_slurm(const gt_job *job, const char *source) {
  if (job->slurm.time_s <= 0 || job->slurm.signal_before_s < job->slurm.time_s) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: slurm.signal_before is %g s and slurm.time %g s; slurm.signal_before must be "
                 "less than slurm.time",
                 source, job->slurm.signal_before_s, job->slurm.time_s);
}

static int by_candidate(const void *a, const void *b) {
  const gt_job_factor *x = a, *y = b;
  int order = (x->strategy > y->strategy) - (x->strategy < y->strategy);
  if (order == 0) order = (x->codec > y->codec) - (x->codec < y->codec);
  return order ? order : (x->period > y->period) - (x->period < y->period);
}

/* Checks for a second factor of the same candidate. */
static gt_status check_plan(const gt_job *job, const char *source) {
  size_t n = job->plan.nfactors;
  if (n == 0) return GT_OK;
  gt_status status = GT_OK;
  gt_job_factor *sorted = GT_NEW_ARRAY(gt_job_factor, n);
  memcpy(sorted, job->plan.factors, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, by_candidate);
  for (size_t i = 1; i < n && status == GT_OK; i++)
    if (by_candidate(&sorted[i - 1], &sorted[i]) == 0)
      status = GT_FAIL(
          GT_ERR_JOB,
          "%s: plan.samples_factor has two entries for strategy %s and %s period; expected one",
          source, gt_strategy_names[sorted[i].strategy], sorted[i].period > 0 ? "the same" : "any");
  gt_free(sorted);
  return status;
}

/* Checks the name of the job, which is also a folder under runs/. */
static gt_status check_job_name(const char *name, const char *source) {
  if (strlen(name) > NAME_MAX_LETTERS)
    return GT_FAIL(GT_ERR_JOB, "%s: name has %zu letters; expected at most %zu", source,
                   strlen(name), NAME_MAX_LETTERS);
  if (name[0] != '.' && !strchr(name, '/')) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: name is \"%s\"; expected a name for a folder, without slash and not "
                 "beginning with a dot",
                 source, name);
}

gt_status gt_job_check(gt_job *job, const job_node *root, const char *source) {
  GT_TRY(check_job_name(job->name, source));
  GT_TRY(check_model(job, root, source));
  GT_TRY(check_train(job, source));
  GT_TRY(check_regions(job, source));
  GT_TRY(gt_job_check_pipeline(job, source));
  GT_TRY(gt_job_check_aggregating(job, source));
  GT_TRY(gt_job_check_sync(job, source));
  GT_TRY(check_validation(job, source));
  GT_TRY(gt_job_check_faults(job, source));
  GT_TRY(check_data(job, root, source));
  GT_TRY(check_compute(job, root, source));
  GT_TRY(check_plan(job, source));
  GT_TRY(check_slurm(job, source));
  GT_TRY(check_transport(job, source));
  return gt_job_check_links(job, source);
}
