/* Sets up a rank from its options: role, data and model.  All ranks agree on the result of each
   step before the next begins. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "geotrain/pipe_job.h"
#include "geotrain/ps_of_job.h"
#include "geotrain/ps_work_time.h"
#include "internal.h"

/* ---- job ------------------------------------------------------------------------------------- */

static char *job_path(char *buf, size_t size, const char *run_dir) {
  snprintf(buf, size, "%s/job.yaml", run_dir);
  return buf;
}

static char *job_of_first(const gt_run *run, gt_peers *world, const char *own) {
  return gt_peers_share_text(world, own, "the job of rank 0", run->start_limit_s);
}

/* Compares this rank's job, as text, with rank 0's; the error names the first difference. */
static gt_status compare_jobs(gt_run *run, gt_peers *world, const char *mine) {
  if (!mine) gt_bug("the job was agreed on but not resolved");
  char *theirs = job_of_first(run, world, mine);
  gt_status status = GT_OK;
  if (strcmp(theirs, mine) != 0) {
    char text[512];
    gt_job_difference(mine, theirs, false, text, sizeof text);
    status = GT_FAIL(GT_ERR_JOB,
                     "rank %zu was started with another job (%s) than rank 0: %s; all ranks need "
                     "the same job and --set options",
                     world->rank, run->options->job_path, text);
  }
  gt_free(theirs);
  return gt_agree(world, status, run->start_limit_s);
}

/* Checks the job and derives everything that depends on it alone. */
static gt_status settle(gt_run *run) {
  const double local_s = run->job->limits.local_s, wan_s = run->job->limits.wan_patience_s;
  GT_TRY(gt_job_check_run(run->job));
  gt_free(run->resolved);
  run->resolved = gt_job_resolved(run->job);
  run->start_limit_s = local_s > wan_s ? local_s : wan_s;
  run->end_limit_s = 2 * local_s + wan_s;
  return GT_OK;
}

/* Returns the contents of a run directory's job.yaml; the caller frees them. */
static char *write_text(const gt_run *run) {
  const size_t size = sizeof GT_JOB_BEGAN + GT_SHA256_HEX + strlen(run->resolved) + 1;
  char *text = GT_NEW_ARRAY(char, size);
  snprintf(text, size, GT_JOB_BEGAN "%s\n%s", run->job->began_sha256, run->resolved);
  return text;
}

/* Rank 0 replaces the named job by that of the run directory, if it has one. */
static gt_status take_job(gt_run *run) {
  const gt_setup_options *o = run->options;
  char path[1200];
  gt_job *job;
  if (access(job_path(path, sizeof path, o->run_dir), F_OK) != 0) return GT_OK;
  GT_TRY(gt_job_load_run(&job, run->job, o->job_path, path, o->sets, o->nsets));
  /* Run directories of earlier versions do not record the file of the run's start. */
  if (!gt_job_began(job, run->job) && !job->began_sha256[0])
    memcpy(job->began_sha256, run->job->sha256, GT_SHA256_HEX);
  gt_job_close(run->job);
  run->job = job;
  return settle(run);
}

/* Rank 0 reads the run directory, which other hosts might not share, and sends its job to all. */
static gt_status open_resumed(gt_run *run, gt_peers *world) {
  const bool first = world->rank == 0;
  GT_TRY(gt_agree(world, first ? take_job(run) : GT_OK, run->start_limit_s));
  char *mine = first ? write_text(run) : NULL, *text = job_of_first(run, world, mine);
  gt_status status = GT_OK;
  gt_job *job;
  if (!first) status = gt_job_parse(&job, "the job of rank 0", text);
  if (!first && status == GT_OK) {
    gt_job_close(run->job);
    run->job = job;
    status = settle(run);
  }
  gt_free(mine);
  gt_free(text);
  return gt_agree(world, status, run->start_limit_s);
}

static gt_status open_job(gt_run *run, gt_peers *world) {
  const gt_setup_options *o = run->options;
  gt_status status = gt_job_load(&run->job, o->job_path, o->sets, o->nsets);
  run->start_limit_s = run->end_limit_s = 120;
  if (status == GT_OK) status = settle(run);
  GT_TRY(gt_agree(world, status, run->start_limit_s));
  GT_TRY(compare_jobs(run, world, run->resolved));
  memcpy(run->job->began_sha256, run->job->sha256, GT_SHA256_HEX);
  return o->resume == GT_RESUME_NO || !o->run_dir ? GT_OK : open_resumed(run, world);
}

gt_status gt_setup_write_job(const gt_run *run) {
  char path[1200], *text = write_text(run);
  const bool ok = gt_file_replace(job_path(path, sizeof path, run->run_dir), text, strlen(text));
  gt_free(text);
  return ok ? GT_OK : GT_FAIL(GT_ERR_CKPT, "%s cannot be written: %s", path, strerror(errno));
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Checks that the ranks of a host, and those of a control group, fit into its memory, before they
   allocate the model. */

typedef struct {
  gt_memory_pool pools[2];
  double need; /* bytes */
} rank_memory;

static double need_of_stage(const gt_run *run) {
  const size_t region = run->roles.region_id;
  const gt_part_ranges *params = &run->pipe->parts[region].params;
  double floats = 0;
  if (!run->roles.is_ps) {
    const size_t worker = (size_t)run->roles.region_rank - 1;
    return (double)gt_pipe_job_memory(run->pipe->job,
                                      gt_pipe_stage_at(run->pipe->layout, region, worker));
  }
  for (size_t i = 0; i < params->n; i++) floats += 2.0 * (double)params->ranges[i].count;
  return sizeof(float) * floats;
}

/* Finds a lower bound: a PS also has momenta and buffers of its exchange.  With validation it has a
   copy of the model to evaluate, with train.keep best also the best one, read at the end. */
static gt_status find_need(const gt_run *run, const gt_graph_spec *spec, size_t *parameters,
                           double *need) {
  size_t bytes;
  if (run->pipe) {
    *parameters = gt_graph_arrays(run->model)->params.n;
    *need = need_of_stage(run);
    return GT_OK;
  }
  GT_TRY(gt_graph_size(spec, parameters, &bytes));
  const int copies = run->job->data.validation > 0 ? 1 + (run->job->train.keep == GT_KEEP_BEST) : 0;
  *need = (double)bytes + run->roles.is_ps * copies * (double)(*parameters * sizeof(float));
  return GT_OK;
}

static gt_status check_pool(const rank_memory *own, const rank_memory *all, size_t n, int pool,
                            const char *model, size_t parameters) {
  double need = 0, free_bytes = INFINITY;
  size_t ranks = 0;
  char what[256];
  for (size_t i = 0; i < n; i++) {
    if (all[i].pools[pool].id != own->pools[pool].id) continue;
    ranks++;
    need += all[i].need;
    free_bytes = fmin(free_bytes, all[i].pools[pool].free_bytes);
  }
  snprintf(what, sizeof what, "model %s has %zu parameters, and training it with %zu ranks here",
           model, parameters, ranks);
  return gt_memory_check(GT_ERR_JOB, what, need, free_bytes);
}

/* The memory of other regions that join later is not known. */
static void leave_out_late(const gt_run *run, rank_memory *all) {
  for (size_t r = 0, rank = 0; r < run->job->nregions; r++)
    for (int i = 0; i < run->job->regions[r].ranks; i++, rank++)
      if (gt_setup_is_late(run, r) && r != run->roles.region_id)
        all[rank] = (rank_memory){.pools = {{.free_bytes = INFINITY}, {.free_bytes = INFINITY}}};
}

static gt_status check_memory(const gt_run *run, const gt_graph_spec *spec) {
  const gt_roles *roles = &run->roles;
  const size_t n = (size_t)roles->world_size;
  rank_memory own = {0}, *all = GT_NEW_ARRAY(rank_memory, n);
  size_t parameters = 0;
  gt_memory_pools(own.pools);
  gt_status status = find_need(run, spec, &parameters, &own.need);
  gt_peers_gather(roles->world, &own, sizeof own, all, "the memory of all ranks",
                  run->start_limit_s);
  leave_out_late(run, all);
  for (int pool = 0; pool < 2 && status == GT_OK; pool++)
    status = check_pool(&own, all, n, pool, spec->model, parameters);
  gt_free(all);
  return gt_agree(roles->world, status, run->start_limit_s);
}

static gt_status agree(gt_run *run, gt_status local) {
  return gt_agree(run->roles.world, local, run->start_limit_s);
}

/* ---- roles ----------------------------------------------------------------------------------- */

gt_region_plan *gt_setup_regions(const gt_job *job) {
  gt_region_plan *plan = GT_NEW_ARRAY(gt_region_plan, job->nregions);
  for (size_t i = 0; i < job->nregions; i++) {
    const gt_job_region *r = &job->regions[i];
    plan[i] = (gt_region_plan){r->name, r->ranks, (const char *const *)r->hosts, r->nhosts};
  }
  return plan;
}

static void identify(gt_run *run) {
  char who[160];
  run->region = run->job->regions[run->roles.region_id].name;
  if (run->roles.is_ps)
    snprintf(who, sizeof who, "rank %d (PS of region %s)", run->roles.world_rank, run->region);
  else
    snprintf(who, sizeof who, "rank %d (worker %d of region %s)", run->roles.world_rank,
             run->roles.region_rank - 1, run->region);
  gt_log_identity(who, run->roles.reports);
}

/* The other regions can wait in the queue of their cluster for days. */
#define JOIN_LIMIT_S (30 * 86400.0)

typedef struct {
  bool is_ps;
  gt_ns stopped; /* 0: no signal has come */
} joining;

/* A signal often reaches all ranks, and mpirun returns 1 if several of them end the job at once:
   workers leave it to the PS, unless the signal has reached only them. */
static void end_if_stopped(void *context) {
  joining *j = context;
  if (!gt_stop_requested()) return;
  if (j->stopped == 0) j->stopped = gt_now();
  if (j->is_ps || gt_now() - j->stopped > GT_SECOND)
    gt_panic(GT_STOPPED, "stopped by a signal before the other regions had started");
}

/* Connects a region that is an MPI job of its own with the others, when they start. */
static gt_status join(gt_run *run, const gt_region_plan *plan) {
  if (run->job->wan.transport == GT_WAN_MPI || run->job->nregions < 2) return gt_setup_not_apart();
  if (run->options->virtual_clock)
    return GT_FAIL(GT_ERR_JOB, "--region is given under --clock virtual; expected all regions in "
                               "one MPI job");
  GT_TRY(gt_agree(run->roles.region, gt_setup_open_endpoint(run), run->start_limit_s));
  if (run->endpoint) gt_setup_let_begin(run);
  gt_roles_join(&run->roles, run->endpoint ? gt_endpoint_peers(run->endpoint) : NULL, plan);
  joining j = {.is_ps = run->roles.is_ps};
  gt_peers_meet(run->roles.world, &(gt_peers_wait){.what = "the other regions to start",
                                                   .limit_s = JOIN_LIMIT_S,
                                                   .progress = end_if_stopped,
                                                   .context = &j});
  char *common = gt_job_common(run->job);
  const gt_status status = compare_jobs(run, run->roles.world, common);
  gt_free(common);
  if (status == GT_OK) gt_setup_settle_late(run);
  return status;
}

static gt_status open_roles(gt_run *run, gt_peers *world) {
  const char *own = run->options->region;
  const size_t n = run->job->nregions;
  gt_region_plan *plan = gt_setup_regions(run->job);
  gt_status status =
      own ? gt_roles_create_alone(&run->roles, world, plan, n, own, run->start_limit_s)
          : gt_roles_create(&run->roles, world, plan, n, run->start_limit_s);
  if (status == GT_OK) identify(run);
  if (status == GT_OK && own) status = join(run, plan);
  if (status == GT_OK) {
    char *map = gt_roles_map(&run->roles, plan, run->late);
    if (map) fputs(map, stderr);
    if (run->roles.reports) gt_job_warn(run->job, gt_log_warning);
    if (run->roles.reports && run->options->virtual_clock && run->job->sync.min_regions > 0)
      gt_log_warning("sync.min_regions does nothing under --clock virtual: all regions begin");
    gt_free(map);
  }
  gt_free(plan);
  return status;
}

/* ---- run directory --------------------------------------------------------------------------- */

/* Returns the error for errno.  Names the host, because on other hosts the directory can be
   writable. */
static gt_status cannot(const char *path, const char *part, const char *what) {
  const int reason = errno;
  char host[256] = "this host";
  if (gethostname(host, sizeof host) == 0) host[sizeof host - 1] = 0;
  return GT_FAIL(GT_ERR_CKPT, "run directory %s: %s cannot be %s on %s: %s", path, part, what, host,
                 strerror(reason));
}

bool gt_setup_make_folders(const char *path, char *part, size_t size) {
  snprintf(part, size, "%s", path);
  for (char *c = part + 1;; c++) {
    if (*c != '/' && *c != 0) continue;
    char end = *c;
    *c = 0;
    if (mkdir(part, 0777) != 0 && errno != EEXIST) return false;
    *c = end;
    if (!end) return true;
  }
}

static gt_status make_run_dir(const char *path) {
  char part[1024];
  if (!gt_setup_make_folders(path, part, sizeof part)) return cannot(path, part, "made");
  /* created by another host */
  return access(path, W_OK | X_OK) == 0 ? GT_OK : cannot(path, path, "written");
}

gt_status gt_setup_check_folder(const gt_run *run) {
  char path[1200];
  snprintf(path, sizeof path, "%s/job.yaml", run->run_dir);
  int64_t round;
  bool there = access(path, F_OK) == 0 || gt_ckpt_rounds(run->run_dir, run->region, &round, 1) > 0;
  if (run->options->resume == GT_RESUME_NO && there)
    return GT_FAIL(
        GT_ERR_JOB,
        "run directory %s already holds a run; use --resume to continue it, or another --run-dir",
        run->run_dir);
  if (run->options->resume == GT_RESUME_YES && !there)
    return GT_FAIL(GT_ERR_CKPT, "run directory %s holds no run to resume; --resume=auto begins one",
                   run->run_dir);
  return GT_OK;
}

/* Names the folder runs/NAME-TIME, with a number appended if another run of this second has that
   name.  If it cannot be created, make_run_dir reports why. */
static void name_folder(gt_run *run) {
  char stamp[32], part[sizeof run->run_dir];
  const time_t now = time(NULL);
  strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime(&now));
  gt_setup_make_folders("runs", part, sizeof part);
  const int length =
      snprintf(run->run_dir, sizeof run->run_dir, "runs/%s-%s", run->job->name, stamp);
  for (int i = 2; mkdir(run->run_dir, 0777) != 0 && errno == EEXIST && i < 1000; i++)
    snprintf(run->run_dir + length, sizeof run->run_dir - (size_t)length, "-%d", i);
}

static gt_status open_folder(gt_run *run) {
  gt_status status = GT_OK;
  if (run->options->run_dir && strlen(run->options->run_dir) >= sizeof run->run_dir)
    status = GT_FAIL(GT_ERR_JOB, "--run-dir has %zu characters; expected at most %zu",
                     strlen(run->options->run_dir), sizeof run->run_dir - 1);
  GT_TRY(agree(run, status));
  /* of regions that are MPI jobs of their own each has its own folder */
  gt_peers *sharers = run->options->region ? run->roles.region : run->roles.world;
  if (run->options->run_dir)
    snprintf(run->run_dir, sizeof run->run_dir, "%s", run->options->run_dir);
  else if (sharers->rank == 0)
    name_folder(run);
  gt_peers_share(sharers, 0, run->run_dir, sizeof run->run_dir,
                 "the run directory's name from rank 0", run->start_limit_s);
  status = run->roles.is_ps ? gt_setup_check_folder(run) : GT_OK;
  GT_TRY(agree(run, status));
  if (run->roles.is_ps) status = make_run_dir(run->run_dir);
  return agree(run, status);
}

/* ---- model ----------------------------------------------------------------------------------- */

/* The batches of a pipeline are all full. */
static gt_status check_micro_batches(const gt_run *run) {
  const size_t least = gt_graph_least(run->model), n = run->pipe->layout->micro_samples;
  if (n >= least) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "train.batch is %d and pipeline.micro_batches %d, so a micro-batch has %zu; model "
                 "%s normalises channels of a single value a sample, so expected %zu or more",
                 run->job->train.batch, run->job->pipeline.micro_batches, n,
                 gt_model_names[run->job->model.name], least);
}

static gt_status check_batches(const gt_run *run) {
  if (run->pipe) return check_micro_batches(run);
  return gt_ps_check_batches(run->job, run->roles.region_id, run->order.n, &run->data,
                             gt_graph_least(run->graph));
}

gt_graph_spec gt_setup_graph_spec(const gt_run *run) {
  gt_graph_spec spec = gt_graph_spec_of(run->job);
  spec.shape = (gt_sample_shape){run->data.h, run->data.w, run->data.c, run->data.classes,
                                 run->data.features};
  spec.text = run->data.text;
  spec.labelled = !run->data.text;
  spec.batch_max = run->roles.is_ps ? 0 : run->batch_max;
  spec.kernels = gt_kernels_find(gt_kernels_names[run->job->train.kernels]);
  spec.precision = run->precision;
  spec.batch = run->batch;
  if (run->choices.n > 0) spec.choices = &run->choices;
  return spec;
}

static gt_status open_model(gt_run *run) {
  const gt_kernels *kernels = gt_kernels_find(gt_kernels_names[run->job->train.kernels]);
  if (run->roles.is_ps)
    gt_job_warn_region(run->job, (size_t)run->roles.region_id, (int64_t)run->order.n,
                       gt_log_warning);
  run->batch = run->order.n < run->order.batch ? run->order.n : run->order.batch;
  run->batch_max = gt_ps_batch_max(run->job);
  gt_setup_open_precision(run, kernels);
  gt_status status =
      kernels ? GT_OK
              : GT_FAIL(GT_ERR_JOB, "train.kernels is \"%s\", which this build does not have",
                        gt_kernels_names[run->job->train.kernels]);
  gt_graph_spec spec = gt_setup_graph_spec(run);
  if (status == GT_OK) status = gt_setup_open_pipeline(run, &spec);
  GT_TRY(agree(run, status));
  GT_TRY(check_memory(run, &spec));
  GT_TRY(gt_setup_open_choices(run, &spec));
  spec = gt_setup_graph_spec(run);
  if (run->roles.is_ps) run->all_choices = gt_setup_gather_choices(run);
  status = run->pipe ? gt_setup_open_part(run, spec) : gt_graph_create(&run->graph, &spec);
  if (!run->pipe) run->model = run->graph;
  if (status == GT_OK) status = check_batches(run);
  if (status == GT_OK)
    status = gt_ps_check_fragments(run->job, gt_graph_arrays(run->graph)->nviews);
  if (status == GT_OK && run->roles.is_ps) {
    gt_graph_init(run->graph, run->job->seed);
    if (run->job->train.init) status = gt_setup_init_params(run);
  }
  GT_TRY(agree(run, status));
  gt_setup_gather_builds(run);
  return GT_OK;
}

/* ---- links and costs ------------------------------------------------------------------------- */

/* Checks that the job has all values that the clock in use needs. */
static gt_status check_clock(const gt_run *run) {
  const gt_job *job = run->job;
  if (job->compute_emulate) GT_TRY(gt_cost_check(job, "for compute.emulate"));
  if (!run->options->virtual_clock && job->wan.transport == GT_WAN_STORE &&
      job->wan.store.trigger == GT_TRIGGER_EVENT)
    return GT_FAIL(GT_ERR_JOB,
                   "wan.store.trigger is event, which is a model only; expected poll, or --clock "
                   "virtual");
  if (!run->options->virtual_clock) return GT_OK;
  if (job->wan.transport == GT_WAN_TCP)
    return GT_FAIL(
        GT_ERR_JOB,
        "wan.transport is tcp under --clock virtual; expected mpi or the model of a store, "
        "because the regions agree on virtual time in one MPI world");
  GT_TRY(gt_cost_check(job, "under --clock virtual"));
  return gt_links_timed(run->links, job, "under --clock virtual");
}

static gt_status open_links(gt_run *run) {
  gt_status status = gt_links_create(&run->links, run->job);
  if (status == GT_OK) status = gt_ps_check_routes(run->job);
  if (status == GT_OK) status = check_clock(run);
  GT_TRY(agree(run, status));
  if (!run->options->region) GT_TRY(agree(run, gt_setup_open_endpoint(run)));
  gt_setup_draw_run(run);
  return GT_OK;
}

/* The state that members have in common: the model, the model of the last round, and two moments of
   an optimizer; and the heads of its items. */
#define GROUP_PARTS 4
#define GROUP_HEADS ((size_t)64 << 10)

gt_gateway *gt_setup_gateway(const gt_run *run, size_t payload_max,
                             const gt_gateway_events *events) {
  const gt_job *job = run->job;
  const bool continues = job->sync.on_loss == GT_ON_LOSS_CONTINUE;
  size_t self = run->roles.region_id;
  double *streams = GT_NEW_ARRAY(double, job->nregions);
  const char **names = GT_NEW_ARRAY(const char *, job->nregions);
  for (size_t p = 0; p < job->nregions; p++) {
    names[p] = job->regions[p].name;
    streams[p] = gt_link_stream_bps(&gt_links_from(run->links, p)[self],
                                    gt_links_access(run->links, p).up_bps);
  }
  gt_gateway_spec spec = {.nregions = job->nregions,
                          .names = names,
                          .self = self,
                          .links = gt_links_from(run->links, self),
                          .access = gt_links_access(run->links, self),
                          .function = gt_links_function(run->links, self),
                          .stream_bps = streams,
                          .emulate = job->wan.emulate,
                          .virtual_clock = run->options->virtual_clock,
                          .seed = job->seed,
                          .payload_max = payload_max,
                          .group_max = continues ? GROUP_PARTS * payload_max + GROUP_HEADS : 0,
                          .endpoint = run->endpoint};
  gt_gateway *gateway = gt_gateway_create(run->roles.ps, &spec, events);
  gt_free(names);
  gt_free(streams);
  return gateway;
}

/* The run's cost is computed at its end; a catalogue without the data for it is refused here. */
static gt_status open_prices(gt_run *run) {
  return agree(run, run->roles.is_lead ? gt_job_prices_of(&run->prices, run->job) : GT_OK);
}

gt_status gt_setup_open(gt_run *run, gt_peers *world, const gt_setup_options *options) {
  *run = (gt_run){.options = options};
  GT_TRY(open_job(run, world));
  if (options->trains) GT_TRY(gt_setup_may_train(run));
  GT_TRY(open_roles(run, world));
  GT_TRY(gt_setup_open_machine(run));
  GT_TRY(open_links(run));
  GT_TRY(open_prices(run));
  GT_TRY(gt_setup_fetch_data(run));
  GT_TRY(gt_setup_open_data(run));
  run->resident_start = gt_resident_now();
  GT_TRY(open_model(run));
  return open_folder(run);
}

void gt_setup_close(gt_run *run) {
  gt_graph_close(run->graph);
  gt_setup_close_pipeline(run->pipe);
  gt_dataset_close(run->dataset);
  gt_free(run->part);
  gt_free(run->held.samples);
  gt_free(run->merges);
  gt_free(run->class_names);
  gt_free(run->columns);
  gt_free(run->tests);
  gt_free(run->isas);
  gt_free(run->late);
  gt_free(run->builds);
  for (size_t r = 0; run->all_choices && r < run->job->nregions; r++) gt_free(run->all_choices[r]);
  gt_free(run->all_choices);
  gt_free(run->choices_text);
  gt_setup_close_kept(&run->kept);
  gt_choices_close(&run->choices);
  gt_free(run->resolved);
  gt_links_close(run->links);
  gt_job_prices_close(&run->prices);
  gt_job_close(run->job);
  gt_roles_close(&run->roles, run->end_limit_s);
  gt_endpoint_close(run->endpoint);
}
