/* A run from MPI_Init to MPI_Finalize: assembles the parts of a PS rank: gateway, local plane, PS,
   optimizer, checkpoint writer, record. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ending.h"
#include "geotrain/ps_ending.h"
#include "geotrain/ps_memory.h"
#include "geotrain/ps_of_job.h"
#include "stages.h"

/* ---- callbacks of the PS --------------------------------------------------------------------- */

static void host_send(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                      size_t bytes, uint64_t cookie) {
  gt_gateway_send(((gt_server *)ctx)->gateway, peer, head, payload, bytes, cookie,
                  gt_server_now(ctx));
}

static bool host_drop(void *ctx, size_t peer, uint64_t cookie) {
  return gt_gateway_drop(((gt_server *)ctx)->gateway, peer, cookie);
}

static double host_left(void *ctx) {
  gt_server *s = ctx;
  double sum = 0;
  for (size_t p = 0; p < s->run->job->nregions; p++) {
    if (p == s->run->roles.region_id) continue;
    const gt_ledger_row *ledger = gt_gateway_ledger(s->gateway, p);
    for (uint32_t k = 0; k < GT_LEDGER_KINDS; k++)
      if (gt_msg_is_traffic(k)) sum += (double)ledger[k].wire_bytes;
  }
  return sum;
}

static void host_order(void *ctx, size_t worker, const gt_ps_order *o) {
  gt_server *s = ctx;
  static const uint32_t kinds[] = {[GT_PS_TRAIN] = GT_ORDER_TRAIN,
                                   [GT_PS_EVAL] = GT_ORDER_EVAL,
                                   [GT_PS_KEEPALIVE] = GT_ORDER_KEEPALIVE,
                                   [GT_PS_VALIDATE] = GT_ORDER_VALIDATE};
  gt_order_msg order = {.kind = kinds[o->kind],
                        .with_params = o->params.data != NULL,
                        .batch = o->first,
                        .count = o->count,
                        .wan_wait_ns = o->wan_wait,
                        .step = o->step,
                        .workers = (uint32_t)o->workers,
                        .common = o->common};
  gt_plane_ps_order(s->plane, worker, &order, o->params.data, o->buffers.data);
  s->clock->ordered(s, worker, o);
}

static void host_taken(void *ctx, size_t worker) {
  gt_plane_ps_taken(((gt_server *)ctx)->plane, worker);
}

static const float *host_reduced(void *ctx) {
  return gt_plane_ps_reduced(((gt_server *)ctx)->plane);
}

static gt_ns host_clock(void *ctx) {
  return gt_server_now(ctx);
}

static void host_work(void *ctx, gt_ps_work work, double part) {
  gt_server *s = ctx;
  s->clock->worked(s, work, part);
}

/* ---- gateway --------------------------------------------------------------------------------- */

/* The reason why a message of this kind cannot come from a peer now; NULL: it can, subject to the
   checks of the PS or of the end of the run. */
static const char *untimely(const gt_server *s, unsigned kind) {
  if (kind == GT_MSG_HELLO) return s->ps ? "comes after the greetings" : NULL;
  if (!s->ending) return "comes before training has begun";
  if (gt_msg_is_activation(kind)) return s->stages ? NULL : "comes, and there is no pipeline";
  return NULL;
}

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                       gt_ns now) {
  gt_server *s = ctx;
  const char *why = untimely(s, head->kind);
  if (why) gt_gateway_refuse(s->gateway, peer, "a message of kind %u %s", head->kind, why);
  if (gt_msg_is_traffic(head->kind)) {
    s->data_received += (double)gt_message_wire_bytes(head, (size_t)head->message_bytes);
  }
  if (head->kind == GT_MSG_HELLO)
    gt_server_hello_message(s, peer, head, payload);
  else if (head->kind == GT_MSG_REPORT || head->kind == GT_MSG_MODEL || head->kind == GT_MSG_BYE)
    gt_server_ending_message(s->ending, peer, head, payload);
  else if (gt_ps_message(s->ps, peer, head, payload, now) != GT_OK)
    gt_gateway_refuse(s->gateway, peer, "%s", gt_error_text());
}

static void on_departed(void *ctx, size_t peer, uint64_t cookie, gt_ns now) {
  gt_server *s = ctx;
  if (cookie >= GT_ENDING_COOKIE)
    gt_server_ending_departed(s->ending, cookie);
  else
    gt_ps_departed(s->ps, peer, cookie, s->clock->attended(s, now));
}

static void on_lost(void *ctx, size_t peer, gt_ns now) {
  gt_server *s = ctx;
  s->gone[peer] = true;
  if (s->ps) gt_ps_lost(s->ps, peer, s->clock->attended(s, now));
}

/* Bytes of the largest message between regions, the same in all: a gateway makes room for frames of
   this size. */
static size_t message_max(const gt_run *run) {
  const gt_arrays *a = gt_graph_arrays(run->graph);
  return run->pipe ? gt_ps_stages_message_max(run->pipe->job)
                   : (a->params.n + a->buffers.n) * sizeof(float);
}

static void open_gateway(gt_server *s) {
  gt_run *run = s->run;
  size_t n = run->job->nregions, self = run->roles.region_id, bytes = message_max(run);
  for (size_t p = 0; p < n; p++)
    if (p != self)
      s->patience_s[p] =
          gt_links_patience(run->links, p, self, bytes, run->job->limits.wan_patience_s);
  s->gateway = gt_setup_gateway(
      run, bytes,
      &(gt_gateway_events){
          .ctx = s, .on_message = on_message, .on_departed = on_departed, .on_lost = on_lost});
}

/* ---- the PS ---------------------------------------------------------------------------------- */

static gt_status open_optimizer(gt_server *s, const int64_t *samples) {
  const gt_run *run = s->run;
  const size_t region = run->roles.region_id;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  gt_optim_spec spec = run->pipe ? gt_ps_stages_optim_of(run->job, &run->order, samples)
                                 : gt_ps_optim_of(run->job, region, samples);
  spec.tensors = a->views;
  spec.ntensors = a->nviews;
  s->planned = spec.schedule.total_steps;
  return gt_optim_create(&s->optim, &spec, gt_ps_optim_floats(run->job, region, a->params.n), true);
}

static void open_ps(gt_server *s, const int64_t *samples, int64_t newest_round,
                    const gt_ps_members *members) {
  gt_run *run = s->run;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  s->workers = gt_ps_workers_of(run->job);
  gt_ps_basis basis = {.job = run->job,
                       .order = &run->order,
                       .samples = samples,
                       .links = run->links,
                       .routes = &s->routes,
                       .weights = s->weights,
                       .workers = s->workers,
                       .parameters = a->params.n,
                       .tensors = a->views,
                       .ntensors = a->nviews,
                       .test_samples = gt_train_tests(run),
                       .validation = run->held.n,
                       .members = members};
  if (run->pipe) {
    basis.pipe = run->pipe->job;
    basis.stages = run->pipe->stages;
    basis.nstages = run->pipe->nstages;
    basis.groups = s->groups;
  }
  gt_ps_spec spec = gt_ps_spec_of(&basis);
  spec.nworkers = (size_t)run->roles.region_size - 1;
  spec.params = a->params;
  spec.grads = a->grads;
  spec.buffers = a->buffers;
  spec.optim = s->optim;
  spec.ranking = gt_train_ranking(run);
  spec.test_labels = spec.ranking ? gt_dataset_labels(run->dataset, GT_SPLIT_TEST) : NULL;
  if (gt_graph_of_text(run->graph)) spec.predictions = gt_graph_predictions(run->graph);
  const gt_plane_snapshot snapshot = gt_plane_ps_snapshot(s->plane);
  spec.snapshot = gt_vec_of(snapshot.params, a->params.n);
  spec.snapshot_buffers = gt_vec_of(snapshot.buffers, a->buffers.n);
  spec.keepalive = s->clock->keepalive(s);
  spec.round = newest_round;
  spec.host = (gt_ps_host){.ctx = s,
                           .gateway = {s, host_send, host_drop},
                           .left = host_left,
                           .advance = gt_server_advance,
                           .order = host_order,
                           .taken = host_taken,
                           .reduced = host_reduced,
                           .checkpoint = gt_server_checkpoint,
                           .whole = gt_server_whole,
                           .note = gt_server_note,
                           .decided = gt_server_decided,
                           .clock = host_clock,
                           .work = host_work};
  if (run->pipe) gt_server_stages_host(&spec.host);
  if (members->change) gt_server_members_host(&spec.host);
  s->ps = gt_ps_create(&spec);
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Finds the run of this region's files by the newest one that is not damaged.  Files of earlier
   versions have no id: then, and under the virtual clock, which repeats to the bit, it follows from
   the job. */
static void name_run(gt_server *s, gt_hello *own) {
  const bool lead = s->run->roles.is_lead, exact = s->run->options->virtual_clock;
  int64_t i = own->nrounds - 1;
  own->fresh = s->run->options->resume == GT_RESUME_NO;
  while (i >= 0 && gt_setup_read_round(s->run, own->rounds[i]) == GT_ROUND_DAMAGED) i--;
  if (i >= 0) memcpy(own->run_id, s->run->kept.info.run_id, sizeof own->run_id);
  if (own->run_id[0]) return;
  if (i >= 0 || (lead && own->nrounds == 0 && exact))
    snprintf(own->run_id, sizeof own->run_id, "%.*s", GT_RUN_ID - 1, own->job);
  else if (lead && own->nrounds == 0)
    gt_random_id(own->run_id);
}

static void greet(gt_server *s, gt_hello *own, gt_status status) {
  const gt_run *run = s->run;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  own->protocol = GT_PROTOCOL_VERSION;
  own->status = (uint32_t)status;
  if (status != GT_OK) snprintf(own->error, sizeof own->error, "%s", gt_error_text());
  snprintf(own->region, sizeof own->region, "%s", run->region);
  char *common = gt_job_common(run->job);
  gt_sha256_hex(common, strlen(common), own->job);
  gt_free(common);
  gt_graph_hash(run->model, own->model);
  /* each region of a pipeline has another part of them */
  if (!run->pipe) gt_sha256_hex(a->params.data, a->params.n * sizeof(float), own->weights);
  memcpy(own->data, run->data.schema_sha256, sizeof own->data);
  gt_links_hash(run->links, own->traces);
  own->samples = (int64_t)run->npart;
  name_run(s, own);
}

/* What a resume found, for users of --resume=auto, who did not ask for the state of the run. */
static void say_resumed(const gt_server *s, int64_t round) {
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  const bool trains = gt_job_trains(s->run->job, s->run->roles.region_id);
  if (!trains)
    gt_log_job(GT_LOG_INFO, "the run continues from round %lld", (long long)round);
  else if (v.phase == GT_PS_FOLLOWING || v.phase == GT_PS_COMPLETE)
    gt_log_job(GT_LOG_INFO,
               "this region's training is complete already (round %lld): nothing is trained here, "
               "the summary is made again",
               (long long)round);
  else
    gt_log_job(GT_LOG_INFO, "training continues from round %lld", (long long)round);
}

/* Reads what earlier starts used beyond the checkpoint, and the course of the loss up to it. */
static void look_back(gt_server *s) {
  const gt_run *run = s->run;
  gt_ps_view v;
  gt_ps_get_view(s->ps, gt_server_now(s), &v);
  gt_past_read(&s->past, run->run_dir, run->region, run->job->nregions, &s->trend, v.samples,
               gt_ps_share_done(s->ps));
  s->lost_s = fmax(0, s->past.used_s - s->elapsed_s);
  for (size_t p = 0; p < s->past.n; p++)
    s->past.bytes[p] =
        p == run->roles.region_id ? 0 : fmax(0, s->past.bytes[p] - gt_server_wire_bytes(s, p));
}

static gt_status open_rest(gt_server *s, int64_t round, int64_t newest) {
  int64_t *samples = GT_NEW_ARRAY(int64_t, s->run->job->nregions);
  for (size_t p = 0; p < s->run->job->nregions; p++) samples[p] = s->hellos[p].samples;
  s->weights = gt_ps_weights_of(s->run->job, samples);
  s->groups = gt_ps_groups_of(s->run->job, s->run->roles.region_id, samples);
  for (size_t r = 0; s->groups.nreplicas && r < s->run->job->nregions; r++)
    s->weights[r] = s->groups.weights[gt_job_replica_of(s->run->job, r)];
  gt_ps_members members = {0};
  gt_status status = open_optimizer(s, samples);
  if (status == GT_OK && gt_server_members_change(s)) status = gt_server_members(s, &members);
  if (status == GT_OK) open_ps(s, samples, newest, &members);
  gt_free(samples);
  GT_TRY(status);
  if (s->run->pipe) s->stages = gt_server_stages_open(s);
  if (round > 0) {
    GT_TRY(gt_server_resume(s, round));
    say_resumed(s, round);
  } else if (s->run->options->resume != GT_RESUME_NO) {
    gt_log_job(GT_LOG_INFO, "there is no checkpoint yet: training starts from the beginning");
  }
  if (s->run->options->resume != GT_RESUME_NO) look_back(s);
  return gt_record_open(&s->record, s->run->run_dir, s->run->region,
                        s->run->options->resume != GT_RESUME_NO);
}

/* With strategies that change parameters between steps, the parameters live in the plane, where
   workers read them. */
static void open_plane(gt_server *s) {
  gt_run *run = s->run;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  const gt_sync_ops *strategy = gt_sync_of(run->job->sync.strategy);
  const gt_plane_size size = gt_train_plane_size(run);
  s->plane = gt_plane_ps_create(run->roles.region, &size);
  float *home = gt_plane_ps_home(s->plane);
  if (!home || !strategy->between_steps) return;
  memcpy(home, a->params.data, a->params.n * sizeof *home);
  gt_graph_adopt(run->graph, home, NULL, NULL);
}

/* server.c */
static gt_status open_server(gt_server *s, gt_run *run, const gt_clock_ops *clock,
                             gt_live_mode live) {
  *s = (gt_server){.run = run,
                   .clock = clock,
                   .begun_wall = gt_now(),
                   .rate_samples = NAN,
                   .rate_bps = NAN,
                   .rate_in_bps = NAN};
  int64_t round = 0, newest = 0;
  gt_hello own = {0};
  open_plane(s);
  s->clock_state = clock->open(s);
  s->started = gt_server_now(s);
  s->hellos = GT_NEW_ARRAY(gt_hello, run->job->nregions);
  s->relayed_before = GT_NEW_ARRAY(int64_t, run->job->nregions);
  s->relayed = GT_NEW_ARRAY(int64_t, run->job->nregions);
  open_gateway(s);
  gt_status status = gt_ckpt_lock_take(&s->lock, run->run_dir, run->region);
  if (status == GT_OK) status = gt_setup_check_folder(run); /* again, under the lock */
  if (status == GT_OK) status = gt_ckpt_writer_create(&s->writer, run->run_dir, run->region);
  if (status == GT_OK && run->options->resume != GT_RESUME_NO) gt_server_rounds(s, &own);
  greet(s, &own, status);
  status = gt_server_hello(s, &own, &round, &newest);
  status = gt_server_settle_routes(s, status, round);
  if (status == GT_OK) status = open_rest(s, round, newest);
  if (status == GT_OK && run->roles.reports)
    s->live = gt_live_create(stdout, live, run->job->log.every_s);
  if (status == GT_OK) s->ending = gt_server_ending_open(s, NULL);
  status = gt_agree(run->roles.world, status, run->start_limit_s);
  /* Files are removed or written only from here on: a run that was refused has removed nothing and
     left nothing that blocks the next one. */
  if (status == GT_OK && run->options->resume != GT_RESUME_NO) gt_server_remove_newer(s, round);
  if (status == GT_OK) gt_server_remove_final_model(s, round);
  if (status == GT_OK && gt_setup_write_job(run) != GT_OK)
    gt_panic(GT_ERR_CKPT, "%s", gt_error_text());
  if (status == GT_OK) gt_server_started(s, round);
  if (status == GT_OK) gt_server_stages_say_memory(s);
  if (status == GT_OK) gt_server_tell_routes(s);
  if (status == GT_OK && round > 0 && !s->partial) gt_server_spread(s);
  if (status == GT_OK && gt_server_members_change(s) && !s->returns)
    gt_endpoint_begun(run->roles.ps);
  return status;
}

static void close_server(gt_server *s) {
  gt_ckpt_writer_close(s->writer);
  gt_ckpt_lock_release(s->lock);
  gt_record_close(s->record);
  gt_live_close(s->live);
  gt_server_ending_close(s->ending);
  gt_server_stages_close(s->stages);
  gt_gateway_close(s->gateway, s->run->end_limit_s);
  gt_ps_close(s->ps);
  gt_plane_ps_close(s->plane, s->run->end_limit_s);
  gt_optim_close(s->optim);
  s->clock->close(s->clock_state);
  gt_past_close(&s->past);
  gt_free(s->weights);
  gt_ps_groups_close(&s->groups);
  gt_routes_close(&s->routes);
  gt_topology_choice_close(&s->choice);
  gt_free(s->saved_routes);
  gt_free(s->workers);
  gt_free(s->hellos);
  gt_free(s->relayed_before);
  gt_free(s->relayed);
}

/* ---- the run of a rank ----------------------------------------------------------------------- */

/* alone: the run has ended without the other regions. */
static gt_status serve(gt_run *run, const gt_clock_ops *clock, gt_live_mode live, bool *alone) {
  gt_server s;
  gt_status status = open_server(&s, run, clock, live);
  bool opened = status == GT_OK;
  if (opened) status = clock->loop(&s);
  if (opened && (status == GT_STOPPED || status == GT_ERR_LIMIT)) gt_server_stopped(&s, status);
  *alone = s.alone_stopped;
  if (run->endpoint) gt_endpoint_leave(run->endpoint, status);
  close_server(&s);
  return status;
}

/* Open MPI's mpirun returns 1 if it got the signal itself, whatever its ranks return. */
#define LAUNCHERS_CODE " (exit code 75; mpirun returns 1 if the signal was sent to mpirun)"

/* Prints the one error message of a run that could not start or did not end with 0. */
static void say(const gt_run *run, const gt_peers *world, gt_status status, bool alone) {
  /* if each rank is a world of its own, only one prints */
  if (status == GT_OK || world->rank != 0 || !gt_launch_first()) return;
  if (status == GT_STOPPED)
    fprintf(stderr,
            "geotrain: stopped %s; a checkpoint was written; continue with --run-dir %s "
            "--resume%s\n",
            alone ? "without the other regions" : "by a signal", run->run_dir,
            gt_server_is_launchers(gt_stop_requested()) ? LAUNCHERS_CODE : "");
  else
    fprintf(stderr, "geotrain: %s\n", gt_error_text());
}

gt_status gt_train(const gt_train_options *options) {
  const gt_clock_ops *clock = options->setup.virtual_clock ? &gt_clock_virtual : &gt_clock_real;
  gt_run run;
  bool alone = false;
  gt_stop_install();
  gt_peers *world = gt_net_start(120);
  gt_status status = gt_setup_open(&run, world, &options->setup);
  if (status == GT_OK && !options->setup.run_dir)
    gt_log_job(GT_LOG_INFO, "the run directory is %s (--run-dir names another)", run.run_dir);
  if (status == GT_OK)
    status = run.roles.is_ps ? serve(&run, clock, options->live, &alone)
             : run.pipe      ? gt_stage_worker_run(&run, clock)
                             : gt_worker_run(&run, clock);
  status = gt_job_blame(run.job, status);
  say(&run, world, status, alone);
  gt_setup_close(&run);
  gt_net_finalize(world, run.end_limit_s);
  return status;
}
