/* A simulation: handles the events of all regions in the order of time, until all have ended.
   Regions affect each other only by messages, which take time, so the order of events of different
   regions at the same time does not matter.  A region has its PS and the time of its workers, and
   its events in the same order as in a run under the virtual clock (src/train/clock_virtual.c). */
#include <math.h>
#include <string.h>

#include "geotrain/ps_of_job.h"
#include "geotrain/ps_passes.h"
#include "geotrain/ps_work_time.h"
#include "internal.h"

#define EXACT_REGIONS ((size_t)64)
#define FILLED_BPS    2000.0 /* heartbeats take about 1 kbit/s of a direction */
/* Virtual time; after this time with heartbeats only, the simulation is stuck. */
#define STUCK        (1000000 * GT_SECOND)
#define LOOKED_EVERY 65536 /* events */

static void must(gt_status status) {
  if (status != GT_OK) gt_bug("in a simulation: %s", gt_error_text());
}

/* ---- host of the PS -------------------------------------------------------------------------- */

static void host_send(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                      size_t bytes, uint64_t cookie) {
  gt_sim_send(ctx, peer, head, payload, bytes, cookie,
              gt_timeline_now(((sim_region *)ctx)->timeline));
}

static bool host_drop(void *ctx, size_t peer, uint64_t cookie) {
  return gt_sim_drop(ctx, peer, cookie);
}

static void host_order(void *ctx, size_t worker, const gt_ps_order *order) {
  sim_region *r = ctx;
  if (order->kind != GT_PS_KEEPALIVE) {
    r->orders[worker] = *order;
    if (r->sim->spec.arithmetic) gt_sim_compute(r->sim->spec.arithmetic, r->id, worker, order);
  }
  if (!r->pipe) gt_timeline_ordered(r->timeline, worker, order);
}

static void host_pass(void *ctx, size_t worker, const gt_ps_order *order, const gt_pipe_order *pass,
                      bool begins, gt_ns cost) {
  sim_region *r = ctx;
  (void)pass, (void)begins;
  r->passing[worker] = true;
  r->orders[worker] = *order;
  gt_timeline_passing(r->timeline, worker, cost);
}

static void host_end(void *ctx, size_t worker, const gt_ps_order *order) {
  sim_region *r = ctx;
  r->passing[worker] = false;
  r->orders[worker] = *order;
  gt_timeline_passing(r->timeline, worker, 0);
}

static void host_packet(void *ctx, size_t region, const gt_frame_header *head,
                        const gt_pipe_packet *packet, uint64_t cookie) {
  gt_sim_send(ctx, region, head, NULL, packet->bytes, cookie,
              gt_timeline_now(((sim_region *)ctx)->timeline));
}

static void host_land(void *ctx, size_t shape, const gt_pipe_packet *packet, const void *payload) {
  (void)ctx, (void)shape, (void)packet, (void)payload;
}

/* The others refuse a region that has returned. */
static void host_fault(void *ctx, gt_status status) {
  sim_region *r = ctx;
  if (status != GT_ERR_CKPT || !r->sim->faults) must(status);
  r->refused = true;
}

static void host_epoch(void *ctx, int64_t number, const bool *members) {
  sim_region *r = ctx;
  r->promised = number;
  if (members) r->sim->faults->found.epochs = number;
}

/* All members of an epoch have the same next hops. */
static void host_place(void *ctx, const size_t *regions, size_t n, size_t *next) {
  const sim_region *r = ctx;
  const gt_sim_spec *spec = &r->sim->spec;
  sim_faults *f = r->sim->faults;
  if (n != f->nplaced || memcmp(f->placed, regions, n * sizeof *regions) != 0) {
    f->nplaced = n;
    memcpy(f->placed, regions, n * sizeof *regions);
    gt_ps_place_members(spec->job, spec->links, r->sim->routes.topology, spec->parameters, regions,
                        n, f->placed + n);
  }
  memcpy(next, f->placed + n, n * sizeof *next);
}

static void host_taken(void *ctx, size_t worker) {
  (void)ctx, (void)worker;
}

/* Returns the size of a region's file as src/train/resume.c writes it, including the state of the
   gateway. */
static double checkpoint_bytes(sim_region *r) {
  const gt_sim *sim = r->sim;
  gt_state state = {0};
  double sum = (double)((r->parameters + r->buffers) * sizeof(float)) + 4 * sizeof(int64_t);
  gt_ps_save(r->ps, &state);
  for (size_t i = 0; i < state.n; i++)
    sum += (double)(state.items[i].count *
                    (state.items[i].type == GT_TYPE_F32 ? sizeof(float) : sizeof(int64_t)));
  gt_state_close(&state);
  return sum + 2 * sizeof(int64_t) +
         (double)(sim->n - 1) *
             (double)(sizeof(gt_link_state) + sizeof(int64_t) + (size_t)4 * 64 * sizeof(int64_t));
}

static void host_checkpoint(void *ctx, int64_t round) {
  sim_region *r = ctx;
  bool takes_time = gt_job_compute_of(r->sim->spec.job, r->id).checkpoint_bps > 0;
  gt_ps_view v;
  gt_ps_get_view(r->ps, gt_timeline_now(r->timeline), &v);
  r->round = round;
  if (r->sim->faults) gt_sim_copy_take(r, round, v.unfit);
  gt_timeline_writing(r->timeline, takes_time ? checkpoint_bytes(r) : 0);
}

static void host_whole(void *ctx, int64_t round) {
  (void)ctx, (void)round;
}

static void host_note(void *ctx, gt_ps_note note, double a, double b) {
  (void)ctx, (void)note, (void)a, (void)b;
}

static void host_decided(void *ctx, const char *what, const char *choice, const char *why) {
  const sim_region *r = ctx;
  gt_ps_view v;
  gt_ps_get_view(r->ps, gt_timeline_now(r->timeline), &v);
  r->sim->spec.decided(r->sim->spec.job, r->id, v.steps, what, choice, why);
}

static gt_ns host_clock(void *ctx) {
  return gt_timeline_now(((sim_region *)ctx)->timeline);
}

static void host_work(void *ctx, gt_ps_work work, double part) {
  gt_timeline_work(((sim_region *)ctx)->timeline, work, part);
}

/* ---- events of wires ------------------------------------------------------------------------- */

static void wire_message(sim_region *r, const gt_frame_header *head, const void *body) {
  if (head->kind != GT_MSG_PING && head->kind != GT_MSG_PONG)
    r->sim->moved = gt_timeline_at(r->timeline);
  if (head->kind == GT_MSG_REPORT || head->kind == GT_MSG_MODEL || head->kind == GT_MSG_BYE)
    gt_sim_end_message(r, head);
  else
    must(gt_ps_message(r->ps, head->from, head, body, gt_timeline_now(r->timeline)));
}

static void wire_departed(sim_region *r, size_t peer, uint64_t cookie) {
  if (cookie >= GT_ENDING_COOKIE)
    gt_ending_departed(&r->ending, cookie);
  else
    gt_ps_departed(r->ps, peer, cookie, gt_timeline_now(r->timeline));
}

static const sim_wire_hooks wire_hooks = {.message = wire_message, .departed = wire_departed};

/* ---- life of a region
   ------------------------------------------------------------------------------------ */

/* Returns the floats of the region's part of the model. */
static size_t floats_of(const gt_pipe_job *pipe, size_t region, bool buffers) {
  const gt_pipe_layout *l = &pipe->layout;
  size_t sum = 0;
  for (size_t k = 0; k < l->stages * l->chunks; k++)
    if (l->places[gt_pipe_stage_of(l->stages, k)].region == region)
      sum += gt_graph_span_floats(pipe->graph, pipe->spans[k], buffers);
  return sum;
}

/* Vectors have no data, so stages need no ranges of them. */
static size_t open_stages(sim_region *r) {
  const gt_pipe_layout *l = &r->pipe->layout;
  size_t n = 0;
  r->stages = GT_NEW_ARRAY(gt_ps_stage, l->stages);
  for (size_t s = 0; s < l->stages; s++)
    if (l->places[s].region == r->id) r->stages[n++] = gt_ps_stage_of(l, s);
  return n;
}

size_t gt_sim_held(const gt_sim *sim, size_t region) {
  const bool has = sim->spec.held && gt_job_trains(sim->spec.job, region);
  return has ? (size_t)sim->spec.held[region] : 0;
}

/* round: the newest one that the region knows of.  Losses are not known: no region gives up. */
static gt_ps *make_ps(sim_region *r, int64_t round, bool returns) {
  const gt_sim *sim = r->sim;
  const bool change = sim->faults && sim->faults->continues;
  const gt_ps_members members = {
      .change = change, .incarnation = r->starts + 1, .returns = returns, .promised = r->promised};
  const size_t nstages = r->pipe ? open_stages(r) : 0;
  gt_ps_spec spec = gt_ps_spec_of(&(gt_ps_basis){.job = sim->spec.job,
                                                 .order = &r->order,
                                                 .samples = sim->spec.samples,
                                                 .links = sim->spec.links,
                                                 .routes = &sim->routes,
                                                 .weights = sim->weights,
                                                 .workers = sim->workers,
                                                 .parameters = r->parameters,
                                                 .tensors = sim->spec.tensors,
                                                 .ntensors = sim->spec.ntensors,
                                                 .test_samples = gt_sim_tests(sim, r->id),
                                                 .validation = gt_sim_held(sim, r->id),
                                                 .members = change ? &members : NULL,
                                                 .pipe = r->pipe,
                                                 .stages = r->stages,
                                                 .nstages = nstages,
                                                 .groups = r->groups});
  spec.params = r->model;
  spec.grads = r->grads;
  spec.buffers = r->statistics;
  spec.optim = r->optim;
  spec.snapshot = r->snapshot;
  spec.snapshot_buffers = r->snapshot_statistics;
  if (sim->spec.arithmetic) gt_sim_judge(sim->spec.arithmetic, r->id, &spec);
  spec.keepalive = GT_NEVER / 2;
  spec.patience = 0;
  spec.round = round;
  spec.host = (gt_ps_host){.ctx = r,
                           .gateway = {r, host_send, host_drop},
                           .order = host_order,
                           .taken = host_taken,
                           .checkpoint = host_checkpoint,
                           .whole = host_whole,
                           .note = host_note,
                           .decided = sim->spec.decided ? host_decided : NULL,
                           .pass = host_pass,
                           .end = host_end,
                           .packet = host_packet,
                           .land = host_land,
                           .epoch = host_epoch,
                           .place = host_place,
                           .fault = host_fault,
                           .clock = host_clock,
                           .work = host_work};
  return gt_ps_create(&spec);
}

static gt_vec open_vector(const sim_region *r, size_t n) {
  return gt_vec_of(r->sim->spec.arithmetic && n > 0 ? GT_NEW_ARRAY(float, n) : NULL, n);
}

static void open_vectors(sim_region *r) {
  r->model = open_vector(r, r->parameters);
  r->grads = open_vector(r, r->parameters);
  r->snapshot = open_vector(r, r->parameters);
  r->statistics = open_vector(r, r->buffers);
  r->snapshot_statistics = open_vector(r, r->buffers);
}

static void close_vectors(sim_region *r) {
  gt_free(r->model.data);
  gt_free(r->grads.data);
  gt_free(r->snapshot.data);
  gt_free(r->statistics.data);
  gt_free(r->snapshot_statistics.data);
}

/* Opens the optimizer and the PS, with the initial model. */
static gt_status open_ps(sim_region *r, int64_t round, bool returns) {
  const gt_job *job = r->sim->spec.job;
  const int64_t *samples = r->sim->spec.samples;
  const gt_sim_arithmetic *arithmetic = r->sim->spec.arithmetic;
  gt_optim_spec optim = r->pipe ? gt_ps_stages_optim_of(job, &r->order, samples)
                                : gt_ps_optim_of(job, r->id, samples);
  if (arithmetic) {
    const gt_arrays *initial = gt_sim_initial(arithmetic);
    optim.tensors = initial->views;
    optim.ntensors = initial->nviews;
    gt_vec_copy(r->model, initial->params);
    gt_vec_copy(r->statistics, initial->buffers);
  }
  GT_TRY(gt_optim_create(&r->optim, &optim, gt_ps_optim_floats(job, r->id, r->parameters),
                         arithmetic != NULL));
  r->ps = make_ps(r, round, returns);
  gt_ending_open(&r->ending, &gt_sim_ending, r, r->ps, r->id == 0, r->sim->n - 1);
  return GT_OK;
}

static gt_status open_region(sim_region *r, gt_sim *sim, size_t id) {
  const gt_job *job = sim->spec.job;
  const size_t nworkers = gt_job_workers(job, id);
  r->sim = sim;
  r->id = id;
  const gt_pipe_job *pipe = sim->spec.pipe;
  if (sim->spec.pipes) pipe = sim->spec.pipes[gt_job_replica_of(job, id)];
  r->pipe = pipe;
  r->parameters = pipe ? floats_of(pipe, id, false) : sim->spec.parameters;
  r->buffers = pipe ? floats_of(pipe, id, true) : sim->spec.buffers;
  /* the batches of a pipeline are those of its region with the data */
  r->order = (gt_order){.seed = job->seed,
                        .region = id,
                        .n = (size_t)sim->spec.samples[pipe ? pipe->layout.places[0].region : id],
                        .batch = (size_t)job->train.batch,
                        .whole = pipe != NULL};
  r->own = r->score = gt_ps_no_score;
  open_vectors(r);
  r->orders = GT_NEW_ARRAY(gt_ps_order, nworkers);
  r->timeline =
      gt_timeline_create(job, &r->order, nworkers, pipe ? gt_pipe_job_update_share(pipe, id) : 1);
  gt_sim_wires_open(r, &wire_hooks);
  if (pipe) {
    r->passing = GT_NEW_ARRAY(bool, nworkers);
    r->groups = gt_ps_groups_of(job, id, sim->spec.samples);
  }
  return open_ps(r, 0, false);
}

static void close_region(sim_region *r) {
  gt_ps_close(r->ps);
  gt_optim_close(r->optim);
  gt_timeline_close(r->timeline);
  gt_ps_groups_close(&r->groups);
  gt_free(r->stages);
  gt_free(r->passing);
  gt_free(r->orders);
  gt_free(r->links);
  close_vectors(r);
  gt_sim_wires_close(r);
  gt_sim_copies_close(r);
}

/* ---- events of a region
   ---------------------------------------------------------------------------------- */

static void pushed(sim_region *r, size_t worker) {
  const gt_ps_order *order = &r->orders[worker];
  const gt_sim_arithmetic *arithmetic = r->sim->spec.arithmetic;
  gt_ps_push push = {.samples = order->count};
  gt_timeline_pushed(r->timeline, worker, &push.compute, &push.wait);
  float *grads = arithmetic ? gt_sim_computed(arithmetic, r->id, worker, &push) : NULL;
  gt_ns now = gt_timeline_now(r->timeline);
  r->sim->moved = gt_timeline_at(r->timeline);
  if (r->pipe && r->passing[worker]) {
    gt_ps_pass_done(r->ps, worker, push.compute, push.wait);
    return;
  }
  if (order->kind != GT_PS_TRAIN) {
    gt_ps_evaluated(r->ps, worker, &push, now);
    return;
  }
  push.samples = r->pipe ? (int64_t)gt_ps_passes_samples(gt_ps_passes_of(r->ps), worker)
                         : (int64_t)gt_order_batch_size(&r->order, order->first);
  gt_ps_gradient(r->ps, worker, &push, grads, now);
}

static void written(sim_region *r) {
  if (r->sim->faults) gt_sim_copy_written(r);
  gt_ps_written(r->ps, r->round, gt_timeline_now(r->timeline));
}

static void handle(sim_region *r, const gt_event *e) {
  gt_timeline_begin(r->timeline, e);
  switch (e->kind) {
  case GT_EVENT_FRAME:
    gt_sim_deliver(r);
    break;
  case GT_EVENT_LINK:
    gt_sim_poll(r, e->at);
    break;
  case GT_EVENT_PUSH:
    pushed(r, e->worker);
    break;
  case GT_EVENT_WRITTEN:
    written(r);
    break;
  case GT_EVENT_TICK:
    gt_ps_tick(r->ps, gt_timeline_now(r->timeline));
    break;
  }
}

static gt_event next_event(sim_region *r) {
  return gt_timeline_next(r->timeline, gt_sim_arrival_next(r), gt_sim_link_next(r),
                          gt_ps_next(r->ps));
}

/* Ends a region; its queued messages are still sent. */
static void leave(sim_region *r) {
  r->ended = true;
  r->sim->nended++;
  gt_ps_end(r->ps);
  for (gt_ns at; (at = gt_sim_link_next(r)) != GT_NEVER;) {
    gt_timeline_forward(r->timeline, at);
    gt_sim_poll(r, gt_timeline_at(r->timeline));
  }
  gt_sim_agenda_set(&r->sim->agenda, r->id, GT_NEVER);
}

void gt_sim_start(sim_region *r, gt_ns now) {
  const size_t nworkers = gt_job_workers(r->sim->spec.job, r->id);
  r->training = nworkers > 0;
  gt_ps_start(r->ps, now);
  for (size_t w = 0; w < nworkers; w++) gt_ps_ready(r->ps, w, now);
  gt_sim_agenda_set(&r->sim->agenda, r->id, next_event(r).at);
}

void gt_sim_reopen(sim_region *r, const sim_copy *copy, int64_t round, bool returns, gt_ns now) {
  gt_ps_close(r->ps);
  gt_optim_close(r->optim);
  gt_timeline_restart(r->timeline, now);
  r->split.since = now;
  r->split.held_by = GT_HELD_NOT;
  r->starts++;
  must(open_ps(r, round, returns));
  if (!copy) return;
  gt_sim_copy_model(r, (gt_state_direction){.from = &copy->state});
  must(gt_ps_load(r->ps, now, &copy->state));
}

static bool receiving(const void *ctx, size_t peer) {
  return ((const sim_region *)ctx)->wires[peer].receiving;
}

void gt_sim_settle(sim_region *r) {
  gt_sim *sim = r->sim;
  const gt_ns now = gt_timeline_now(r->timeline);
  gt_ps_view v;
  if (sim->exact) gt_time_split_account(&r->split, r->ps, receiving, r, now);
  gt_ps_get_view(r->ps, now, &v);
  r->steps = v.steps;
  r->training = v.phase == GT_PS_TRAINING;
  r->evaluating = v.evaluating && r->training;
  r->stopped = v.phase == GT_PS_STOPPED;
  r->entering = v.entering;
  r->outside = v.outside;
  r->minority = v.minority;
  r->out = v.out;
  const bool complete = v.phase == GT_PS_COMPLETE;
  if (complete && !r->complete && now > sim->complete) sim->complete = now;
  r->complete = complete;
  bool over = r->stopped && !sim->faults;
  if (over) {
    sim->code = v.stop_code;
    gt_sim_end_result(r);
  }
  if (complete && (sim->ending || !sim->faults)) over = gt_ending_step(&r->ending, now);
  if (over)
    leave(r);
  else
    gt_sim_agenda_set(&sim->agenda, r->id, next_event(r).at);
}

/* ---- the simulation -------------------------------------------------------------------------- */

static gt_status check_pipe(const gt_sim_spec *spec) {
  const gt_job *job = spec->job;
  if ((spec->pipe != NULL) != (job->pipeline.nstages > 0) ||
      (!spec->pipes && gt_job_replicas(job) > 1))
    gt_bug("a simulation of %zu stages %s them", job->pipeline.nstages,
           spec->pipe ? "was given" : "lacks");
  if (!spec->pipe) return GT_OK;
  return gt_ps_check_stages(job, spec->samples);
}

static gt_status check(const gt_sim_spec *spec) {
  const gt_job *job = spec->job;
  GT_TRY(gt_cost_check(job, "to simulate"));
  GT_TRY(gt_ps_check_routes(job));
  GT_TRY(check_pipe(spec));
  return gt_links_timed(spec->links, job, "to simulate it");
}

static sim_faults *open_faults(const gt_job *job) {
  if (job->nfaults == 0) return NULL;
  sim_faults *f = GT_NEW(sim_faults);
  f->next = gt_faults_open(job);
  f->continues = job->sync.on_loss == GT_ON_LOSS_CONTINUE;
  f->patience = gt_from_seconds(job->limits.wan_patience_s);
  f->resumes = GT_NEW_ARRAY(bool, job->nregions);
  f->placed = GT_NEW_ARRAY(size_t, 2 * job->nregions);
  return f;
}

static void close_faults(sim_faults *f) {
  if (!f) return;
  gt_faults_close(f->next);
  gt_heap_close(&f->due);
  gt_free(f->cuts);
  gt_free(f->resumes);
  gt_free(f->placed);
  gt_free(f);
}

static gt_status open_regions(gt_sim *sim) {
  for (size_t i = 0; i < sim->n; i++) GT_TRY(open_region(&sim->regions[i], sim, i));
  return GT_OK;
}

/* Returns the rate of the slowest link of the job.  Heartbeats have priority, and a link of about 1
   kbit/s carries nothing else. */
static double slowest_bps(const gt_job *job) {
  double least = job->wan.fallback.bandwidth_bps > 0 ? job->wan.fallback.bandwidth_bps : INFINITY;
  for (size_t i = 0; i < job->wan.nlinks; i++)
    if (job->wan.links[i].bandwidth_bps > 0) least = fmin(least, job->wan.links[i].bandwidth_bps);
  return least;
}

static gt_status stuck(const gt_sim *sim) {
  const double least = slowest_bps(sim->spec.job), at = gt_seconds(sim->moved);
  if (least < FILLED_BPS)
    return GT_FAIL(GT_ERR_LIMIT,
                   "at %.0f s of simulated time nothing moves any more: the slowest link has %g "
                   "bit/s, which signs of life alone fill; expected %g bit/s or more",
                   at, least, FILLED_BPS);
  return GT_FAIL(
      GT_ERR_LIMIT,
      "at %.0f s of simulated time nothing moves any more (for %.0f s); is there an outage "
      "without end, a link without bandwidth, or a step, message or outage that takes "
      "longer?",
      at, gt_seconds(STUCK));
}

static void tell_progress(const gt_sim *sim) {
  gt_progress_tell("%.3g s of the run, %.3g events", gt_seconds(sim->moved), (double)sim->events);
}

gt_status gt_sim_step(gt_sim *sim, size_t *region) {
  size_t first = gt_sim_agenda_first(&sim->agenda);
  if (sim->agenda.at[first] > sim->moved + STUCK) return stuck(sim);
  const gt_event e = next_event(&sim->regions[first]);
  handle(&sim->regions[first], &e);
  gt_sim_settle(&sim->regions[first]);
  if (++sim->events % LOOKED_EVERY == 0) tell_progress(sim);
  *region = first;
  return GT_OK;
}

gt_status gt_sim_open(gt_sim **out, const gt_sim_spec *spec) {
  GT_TRY(check(spec));
  gt_sim *sim = GT_NEW(gt_sim);
  sim->spec = *spec;
  sim->n = spec->job->nregions;
  sim->exact = sim->n <= EXACT_REGIONS;
  sim->spare = sim->spare_route = SIM_NONE;
  sim->code = GT_OK;
  sim->final = (gt_sim_model){.score = gt_ps_no_score, .bad = sim->n};
  sim->weights = gt_ps_weights_of(spec->job, spec->samples);
  sim->routes = gt_routes_copy(spec->routes, sim->n);
  sim->spec.routes = &sim->routes;
  sim->workers = gt_ps_workers_of(spec->job);
  sim->regions = GT_NEW_ARRAY(sim_region, sim->n);
  gt_sim_agenda_open(&sim->agenda, sim->n);
  sim->faults = open_faults(spec->job);
  gt_status status = open_regions(sim);
  if (status != GT_OK) {
    gt_sim_close(sim);
    return status;
  }
  for (size_t i = 0; i < sim->n; i++) gt_sim_start(&sim->regions[i], 0);
  *out = sim;
  return GT_OK;
}

void gt_sim_close(gt_sim *sim) {
  if (!sim) return;
  for (size_t i = 0; i < sim->nmessages; i++) gt_free(sim->messages[i].body);
  for (size_t i = 0; i < sim->n; i++) close_region(&sim->regions[i]);
  gt_sim_agenda_close(&sim->agenda);
  close_faults(sim->faults);
  gt_model_mean_close(&sim->mean);
  gt_free(sim->shares);
  gt_free(sim->regions);
  gt_free(sim->weights);
  gt_routes_close(&sim->routes);
  gt_free(sim->workers);
  gt_free(sim->messages);
  gt_free(sim->frame_routes);
  gt_free(sim);
}
