/* The cost of work: all workers compute at once, driven through the local plane as in training, and
   each PS applies their gradients; then the PS's other work, alone. */
#include <math.h>

#include "geotrain/ps_of_job.h"
#include "geotrain/ps_timeline.h"
#include "geotrain/sync.h"
#include "internal.h"

/* ---- the kinds of steps ---------------------------------------------------------------------- */

/* Steps of a worker alternate between two kinds: first steps in direct succession while messages
   cross the WAN, as with asgd-ga; then steps without messages and with a pause before every
   GT_RESUME_STEPS of them, as with a strategy that waits for its exchange. */

#define WARM_UP    3
#define STEPS      10
#define SPAN_S     8.0
#define SLOW_S     30.0 /* after this time fewer steps are enough */
#define SLOW_STEPS 2
#define STEADY     ((int64_t)64)
#define TURN       (STEADY + 4 * GT_RESUME_STEPS)

gt_probe_phase gt_probe_phase_of(int64_t step) {
  int64_t at = step % TURN;
  if (at >= STEADY) return GT_PROBE_PAUSED;
  return at < (step < TURN ? WARM_UP : GT_RESUME_STEPS) ? GT_PROBE_COLD : GT_PROBE_WARM;
}

bool gt_probe_pause_before(int64_t step) {
  return gt_probe_phase_of(step) == GT_PROBE_PAUSED && step % GT_RESUME_STEPS == 0;
}

bool gt_probe_enough(int64_t steps, double passed_s) {
  int64_t least = passed_s > SLOW_S ? WARM_UP + SLOW_STEPS : WARM_UP + STEPS;
  return passed_s >= SPAN_S && steps >= least && (steps < STEADY || steps >= TURN);
}

/* ---- traffic --------------------------------------------------------------------------------- */

/* Messages between the regions while work is measured: servers that send and receive take time,
   cores and caches from workers on the same machine. */

#define LARGEST ((size_t)4 << 20) /* bytes: a larger model would occupy slow links for long */

typedef struct {
  gt_gateway *gateway;
  size_t n, self;
  size_t in_flight; /* messages that have not been sent */
  gt_vec params, payload;
  uint64_t sequence;
} traffic;

static void on_message(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                       gt_ns now) {
  traffic *t = ctx;
  (void)peer, (void)now;
  size_t n = (size_t)head->message_bytes / sizeof(float);
  gt_vec_axpy(gt_vec_range(t->params, 0, n), 1e-6F, gt_vec_of((float *)(uintptr_t)payload, n));
}

static void on_departed(void *ctx, size_t peer, uint64_t cookie, gt_ns now) {
  (void)peer, (void)cookie, (void)now;
  ((traffic *)ctx)->in_flight--;
}

static traffic *traffic_open(const gt_run *run, gt_vec params) {
  traffic *t = GT_NEW(traffic);
  size_t floats = params.n * sizeof(float) < LARGEST ? params.n : LARGEST / sizeof(float);
  *t = (traffic){.n = run->job->nregions, .self = run->roles.region_id, .params = params};
  t->payload = gt_vec_of(GT_NEW_ARRAY(float, floats), floats);
  t->gateway = gt_setup_gateway(
      run, floats * sizeof(float),
      &(gt_gateway_events){.ctx = t, .on_message = on_message, .on_departed = on_departed});
  gt_gateway_begin(t->gateway, gt_now());
  return t;
}

static void traffic_send(traffic *t, gt_vec grads) {
  if (t->in_flight > 0) return;
  gt_frame_header head = {.kind = GT_MSG_UPDATE, .sequence = ++t->sequence};
  gt_vec_copy(t->payload, gt_vec_range(grads, 0, t->payload.n));
  for (size_t peer = 0; peer < t->n; peer++) {
    if (peer == t->self) continue;
    t->in_flight++;
    gt_gateway_send(t->gateway, peer, &head, t->payload.data, t->payload.n * sizeof(float),
                    t->sequence, gt_now());
  }
}

static void progress(void *ctx) {
  gt_gateway_poll(((traffic *)ctx)->gateway, gt_now());
}

static void traffic_close(traffic *t, const gt_run *run, double limit_s) {
  gt_ns until = gt_now() + gt_from_seconds(limit_s);
  gt_backoff backoff;
  bool large = false;
  gt_backoff_reset(&backoff);
  for (gt_ns next;
       ((next = gt_gateway_next(t->gateway, &large)) != GT_NEVER || large) && gt_now() < until;) {
    if (gt_gateway_poll(t->gateway, gt_now()))
      gt_backoff_reset(&backoff);
    else
      gt_backoff_sleep(&backoff, GT_BACKOFF_IDLE, next);
  }
  gt_peers_meet(run->roles.ps,
                &(gt_peers_wait){.what = "the other regions' servers to have measured",
                                 .limit_s = GT_PROBE_MEET_S,
                                 .progress = progress,
                                 .context = t});
  gt_gateway_close(t->gateway, run->end_limit_s);
  gt_free(t->payload.data);
  gt_free(t);
}

/* ---- worker ---------------------------------------------------------------------------------- */

/* The steps of training on a few of the worker's own samples, and their times. */

#define EVAL_LIMIT_S 30.0 /* time limit for the evaluation */
#define EVAL_S       0.5
#define EVAL_BATCHES 3

typedef struct {
  gt_probe_state *p;
  gt_plane_worker *plane;
  gt_loader *loader;
  gt_order order;
  float *x;
  int32_t *y;
  size_t n, final; /* samples in x and y; gradients from `final` on are final */
  gt_ns loaded;    /* time to make the batch */
  bool finite;
  gt_probe_tally of[GT_PROBE_PHASES];
} worker;

/* resume_s may be negative: clipping at 0 before averaging would turn noise around 0 into a
   positive mean. */
void gt_probe_tell(gt_probe_rank *own, const gt_probe_tally *warm, const gt_probe_tally *paused) {
  if (warm->steps == 0) return;
  double n = (double)warm->steps, mean = warm->compute_s / n;
  double each = mean + warm->wait_s / n;
  own->steps = warm->steps;
  own->samples_per_s = warm->samples / warm->compute_s;
  own->rate_error = n > 1 ? sqrt(fmax(warm->compute_s2 / n - mean * mean, 0) / (n - 1)) / mean : 0;
  own->local_s = warm->wait_s / n;
  own->paused = paused->steps;
  if (paused->steps > 0)
    own->resume_s = (paused->compute_s + paused->wait_s) / (double)paused->steps - each;
}

static void load(worker *w, int64_t batch) {
  gt_ns from = gt_now();
  w->n = gt_loader_batch(w->loader, &w->order, batch % gt_order_batches_per_epoch(&w->order), w->x,
                         w->y);
  w->loaded = gt_now() - from;
}

static void on_gradients(void *context, size_t first) {
  worker *w = context;
  gt_vec grads = gt_graph_arrays(w->p->run.graph)->grads;
  w->finite = w->finite && gt_vec_finite(gt_vec_range(grads, first, w->final - first));
  w->final = first;
}

/* Makes a step as src/train/worker.c does: its time is from its order to its push, plus that of its
   batch, which was made while the worker waited for the order.  Returns the time of the push.
   waited: without a pause. */
static gt_ns train_batch(worker *w, const gt_order_msg *order, gt_ns waited) {
  gt_ns from = gt_now();
  gt_metrics m;
  gt_graph *graph = w->p->run.graph;
  if (order->batch == 0) load(w, 0);
  w->final = gt_graph_arrays(graph)->grads.n;
  w->finite = true;
  gt_graph_step(graph, w->x, w->y, w->n, true, &m);
  on_gradients(w, 0);
  gt_push_msg push = {.kind = GT_PUSH_GRADIENT,
                      .batch = order->batch,
                      .samples = (int64_t)w->n,
                      .nonfinite = !w->finite};
  gt_ns pushed = gt_now();
  push.compute_ns = pushed - from + (order->batch > 0 ? w->loaded : 0);
  gt_probe_tally *t = &w->of[gt_probe_phase_of(order->batch)];
  double took_s = gt_seconds(push.compute_ns);
  t->compute_s += took_s;
  t->compute_s2 += took_s * took_s;
  t->wait_s += gt_seconds(waited - w->loaded);
  t->samples += (double)w->n;
  t->steps++;
  gt_plane_worker_push(w->plane, &push);
  load(w, order->batch + 1);
  return pushed;
}

static void evaluate(worker *w) {
  gt_ns from = gt_now();
  double samples = 0;
  for (int i = 0; i < EVAL_BATCHES || gt_seconds(gt_now() - from) < EVAL_S; i++) {
    gt_metrics m;
    size_t n = w->order.n < w->p->run.batch_max ? w->order.n : w->p->run.batch_max;
    gt_loader_range(w->loader, 0, n, w->x, w->y);
    gt_graph_step(w->p->run.graph, w->x, w->y, n, false, &m);
    samples += (double)n;
    if (gt_seconds(gt_now() - from) > EVAL_LIMIT_S) break;
  }
  w->p->own.eval_samples_per_s = samples / gt_seconds(gt_now() - from);
  gt_push_msg push = {.kind = GT_PUSH_EVAL, .samples = (int64_t)samples};
  gt_plane_worker_push(w->plane, &push);
}

static void work(worker *w) {
  gt_push_msg ready = {.kind = GT_PUSH_READY};
  gt_order_msg order = {0};
  gt_plane_worker_push(w->plane, &ready);
  for (gt_ns pushed = gt_now();;) {
    gt_plane_worker_wait(w->plane, &order, w->p->run.job->limits.local_s);
    if (order.kind == GT_ORDER_END) return;
    if (order.kind == GT_ORDER_EVAL)
      evaluate(w);
    else
      pushed = train_batch(w, &order, gt_now() - pushed - order.wan_wait_ns);
  }
}

static gt_status steps_open(worker **out, gt_probe_state *p) {
  const gt_run *run = &p->run;
  worker *w = *out = GT_NEW(worker);
  w->p = p;
  w->order = run->order;
  /* full batches only */
  const size_t batches = 2 * run->batch_max / run->order.batch + 1,
               few = (batches > 8 ? batches : 8) * run->order.batch;
  if (w->order.n > few) w->order.n = few;
  w->x = GT_NEW_ARRAY(float, run->batch_max * run->data.h * run->data.w * run->data.c);
  w->y = GT_NEW_ARRAY(int32_t, run->batch_max);
  return gt_setup_loader(run, w->order.n, &w->loader);
}

static void steps_run(worker *w) {
  gt_run *run = &w->p->run;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  w->plane = gt_plane_worker_create(
      run->roles.region, &(gt_plane_size){.nparams = a->params.n, .nbuffers = a->buffers.n});
  gt_graph_adopt(run->graph, gt_plane_worker_params(w->plane), gt_plane_worker_grads(w->plane),
                 gt_plane_worker_buffers(w->plane));
  gt_graph_on_progress(run->graph, gt_plane_worker_progress, w->plane);
  gt_graph_on_gradients(run->graph, on_gradients, w);
  work(w);
  gt_probe_tell(&w->p->own, &w->of[GT_PROBE_WARM], &w->of[GT_PROBE_PAUSED]);
  gt_plane_worker_close(w->plane, w->p->run.end_limit_s);
}

static void steps_close(worker *w) {
  if (!w) return;
  gt_loader_close(w->loader);
  gt_free(w->x);
  gt_free(w->y);
  gt_free(w);
}

/* ---- server: orders, and updates of the parameters ------------------------------------------- */

typedef struct {
  gt_optim *optim;
  gt_vec params, grads, message; /* message: a sum of updates in the strategies' format */
} material;

#define TRAFFIC 8 /* steps of the region per message */
#define PAUSE   ((gt_ns)50000000)

typedef struct {
  int64_t steps;
  bool done;
  gt_ns heard, pushed, due; /* due: time of a delayed order; 0: none is delayed */
} served;

typedef struct {
  gt_run *run;
  material *material;
  double update_s;
  int64_t updates;
  gt_plane_ps *plane;
  traffic *traffic; /* NULL: the job sends no messages */
  int64_t pushes;
  served *workers;
  gt_ns since;
  size_t ended;
} server;

static bool enough(const server *s) {
  double passed_s = gt_seconds(gt_now() - s->since);
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++)
    if (!gt_probe_enough(s->workers[w].steps, passed_s)) return false;
  return true;
}

static void update(server *s, const float *grads, const float *buffers, bool counts) {
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  gt_ns from = gt_now();
  gt_vec_copy(a->buffers, gt_vec_of((float *)(uintptr_t)buffers, a->buffers.n));
  gt_optim_step(s->material->optim, a->params, gt_vec_of((float *)(uintptr_t)grads, a->grads.n),
                s->material->message);
  if (!counts) return;
  s->update_s += gt_seconds(gt_now() - from);
  s->updates++;
}

static void give(const server *s, size_t w, gt_order_kind kind) {
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  served *of = &s->workers[w];
  gt_order_msg order = {.kind = kind,
                        .with_params = kind == GT_ORDER_TRAIN || kind == GT_ORDER_EVAL,
                        .batch = of->steps};
  if (of->due) order.wan_wait_ns = gt_now() - of->pushed;
  of->due = 0;
  gt_plane_ps_order(s->plane, w, &order, a->params.data, a->buffers.data);
}

static void exchange(server *s, gt_probe_phase at) {
  const gt_job *job = s->run->job;
  int64_t each =
      job->sync.local == GT_LOCAL_SYNC ? TRAFFIC * (int64_t)gt_plane_ps_workers(s->plane) : TRAFFIC;
  if (++s->pushes % each == 0 && at != GT_PROBE_PAUSED && s->traffic)
    traffic_send(s->traffic, gt_graph_arrays(s->run->graph)->grads);
}

static void on_push(void *ctx, size_t w, const gt_push_msg *push, float *grads,
                    const float *buffers) {
  server *s = ctx;
  served *of = &s->workers[w];
  if (push->kind == GT_PUSH_SIGNAL) return;
  of->heard = gt_now();
  if (push->kind == GT_PUSH_GRADIENT) {
    of->pushed = gt_now();
    if (!push->nonfinite) update(s, grads, buffers, gt_probe_phase_of(of->steps) == GT_PROBE_WARM);
    exchange(s, gt_probe_phase_of(of->steps++));
    gt_plane_ps_taken(s->plane, w);
  }
  if (push->kind == GT_PUSH_EVAL) {
    s->ended++;
    of->done = true;
    give(s, w, GT_ORDER_END);
  } else if (push->kind == GT_PUSH_GRADIENT && enough(s))
    give(s, w, GT_ORDER_EVAL);
  else if (gt_probe_pause_before(of->steps))
    of->due = of->pushed + PAUSE;
  else
    give(s, w, GT_ORDER_TRAIN);
}

/* Sends the orders that are due.  Returns when the next is due; GT_NEVER: none is delayed. */
static gt_ns end_pauses(const server *s) {
  gt_ns next = GT_NEVER, now = gt_now();
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++) {
    gt_ns due = s->workers[w].due;
    if (due && due <= now)
      give(s, w, GT_ORDER_TRAIN);
    else if (due && due < next)
      next = due;
  }
  return next;
}

static void watch(const server *s) {
  double limit = s->run->job->limits.local_s;
  gt_ns now = gt_now();
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++)
    if (!s->workers[w].done && gt_seconds(now - s->workers[w].heard) >= limit)
      gt_panic(GT_ERR_LOST, "waited %.0f s (limits.local) for a step of worker %zu of region %s",
               limit, w, s->run->region);
}

/* Sleeps as the loop of a run does. */
static void rest(const server *s, gt_backoff *backoff, gt_ns until) {
  const gt_ns next = s->traffic ? gt_gateway_next(s->traffic->gateway, NULL) : GT_NEVER;
  const bool urgent = s->traffic && gt_gateway_urgent(s->traffic->gateway),
             idle = !urgent && gt_plane_ps_wakes(s->plane);
  gt_plane_ps_sleep(s->plane, gt_backoff_next(backoff, idle ? GT_BACKOFF_IDLE : GT_BACKOFF_BUSY,
                                              next < until ? next : until));
}

static void serve(gt_probe_state *p, material *m) {
  gt_run *run = &p->run;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  server s = {
      .run = run,
      .material = m,
      .plane = gt_plane_ps_create(
          run->roles.region, &(gt_plane_size){.nparams = a->params.n, .nbuffers = a->buffers.n})};
  gt_backoff backoff = {0};
  s.workers = GT_NEW_ARRAY(served, gt_plane_ps_workers(s.plane));
  if (run->job->nregions > 1 && gt_sync_of(run->job->sync.strategy)->sends)
    s.traffic = traffic_open(run, a->params);
  s.since = gt_now();
  for (size_t w = 0; w < gt_plane_ps_workers(s.plane); w++) s.workers[w].heard = s.since;
  while (s.ended < gt_plane_ps_workers(s.plane)) {
    bool moved = gt_plane_ps_poll(s.plane, on_push, &s);
    if (s.traffic) moved |= gt_gateway_poll(s.traffic->gateway, gt_now());
    gt_ns next = end_pauses(&s);
    if (moved)
      gt_backoff_reset(&backoff);
    else {
      watch(&s);
      rest(&s, &backoff, next);
    }
  }
  if (s.traffic) traffic_close(s.traffic, run, p->limit_s);
  if (s.updates > 0) p->own.update_s = s.update_s / (double)s.updates;
  gt_plane_ps_close(s.plane, run->end_limit_s);
  gt_free(s.workers);
}

/* ---- the PS's other work --------------------------------------------------------------------- */

#define WORK_S   0.3
#define WORK_MIN 5
#define WORK_MAX 200

/* Returns the run's optimizer with a constant rate, because the probe makes an unknown number of
   steps.  The length of a run's schedule depends on every region's samples; the region's own
   samples are used here. */
static gt_optim_spec optimizer_of(const gt_run *run) {
  int64_t *samples = GT_NEW_ARRAY(int64_t, run->job->nregions);
  for (size_t r = 0; r < run->job->nregions; r++) samples[r] = (int64_t)run->npart;
  gt_optim_spec spec = gt_ps_optim_of(run->job, run->roles.region_id, samples);
  spec.schedule = (gt_lr_schedule){.kind = GT_LR_CONSTANT, .lr = spec.schedule.lr};
  gt_free(samples);
  return spec;
}

static gt_status open_material(const gt_run *run, material *m) {
  const gt_arrays *a = gt_graph_arrays(run->graph);
  gt_optim_spec spec = optimizer_of(run);
  spec.tensors = a->views;
  spec.ntensors = a->nviews;
  m->params = a->params, m->grads = a->grads;
  m->message = gt_vec_of(GT_NEW_ARRAY(float, a->params.n), a->params.n);
  return gt_optim_create(&m->optim, &spec, a->params.n, true);
}

static void close_material(material *m) {
  gt_optim_close(m->optim);
  gt_free(m->message.data);
}

static void do_apply(material *m) {
  gt_vec_axpy(m->params, 1e-6F, m->message);
}
static void do_encode(material *m) {
  gt_vec_copy(m->message, m->grads);
}

static void do_update(material *m) {
  gt_optim_step(m->optim, m->params, m->grads, gt_vec_of(NULL, m->params.n));
}

static double time_work(material *m, void (*what)(material *)) {
  double times[WORK_MAX];
  size_t n = 0;
  gt_ns end = gt_now() + gt_from_seconds(WORK_S);
  what(m);
  while (n < WORK_MIN || (n < WORK_MAX && gt_now() < end)) {
    gt_ns from = gt_now();
    what(m);
    times[n++] = gt_seconds(gt_now() - from);
  }
  return gt_probe_median(times, n);
}

static void time_ps(gt_probe_state *p, material *m) {
  p->own.apply_s = time_work(m, do_apply);
  p->own.encode_s = time_work(m, do_encode);
  /* with workers, measured while they computed */
  if (p->run.roles.region_size == 1) p->own.update_s = time_work(m, do_update);
  if (gt_probe_codecs(p) != GT_OK) gt_panic(GT_ERR_JOB, "%s", gt_error_text());
}

/* ---- all ranks ------------------------------------------------------------------------------- */

void gt_probe_compute(gt_probe_state *p) {
  gt_run *run = &p->run;
  worker *steps = NULL;
  material m = {0};
  gt_status status = run->roles.is_ps ? open_material(run, &m) : steps_open(&steps, p);
  status = gt_agree(run->roles.world, status, p->limit_s);
  if (status == GT_OK) {
    if (run->roles.is_ps)
      serve(p, &m);
    else
      steps_run(steps);
    gt_probe_meet(p, "the other workers' speed");
    /* Regions may share a machine: the PS ranks work one after another. */
    for (size_t r = 0; r < run->job->nregions; r++) {
      if (run->roles.is_ps && r == run->roles.region_id) time_ps(p, &m);
      gt_probe_meet(p, "the work of another region's PS");
    }
  }
  if (status != GT_OK) snprintf(p->data_error, sizeof p->data_error, "%s", gt_error_text());
  close_material(&m);
  steps_close(steps);
}
