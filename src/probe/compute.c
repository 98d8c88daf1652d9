/* What work costs: all workers compute at once, driven through the local plane as in training, and each PS applies what they push; then the PS's other work, alone. */

#include "internal.h"

#define WARM_UP      3
#define STEPS        10
#define SPAN_S       8.0
#define SLOW_S       30.0 /* a model this slow is judged by fewer steps */
#define SLOW_STEPS   2
#define EVAL_S       0.5
#define EVAL_BATCHES 3
#define WORK_S       0.3
#define WORK_MIN     5
#define WORK_MAX     200

/* Steps come in turns: some one after the other while messages cross the WAN, as with asgd-ga; then some with a pause before each GT_RESUME_STEPS of them and without
   messages, as where a strategy waits for its exchange. */
#define TRAFFIC 8 /* steps of the region for each message */
#define STEADY  ((int64_t)64)
#define TURN    (STEADY + 4 * GT_RESUME_STEPS)
#define PAUSE   ((gt_ns)50000000)
typedef enum { COLD, WARM, PAUSED } phase;

static phase phase_of(int64_t step) {
  int64_t at = step % TURN;
  if (at >= STEADY) return PAUSED;
  return at < (step < TURN ? WARM_UP : GT_RESUME_STEPS) ? COLD : WARM;
}

/* ---- worker ---- */

typedef struct {
  gt_probe_state *p;
  gt_plane_worker *plane;
  gt_loader *loader;
  gt_order order;
  float *x;
  int32_t *y;
  size_t n, final; /* samples in x and y; gradients from there on are final */
  gt_ns loaded;    /* what making them took */
  bool finite;
  gt_probe_tally of[PAUSED + 1];
} worker;

static void load(worker *w, int64_t batch) {
  gt_ns from = gt_now();
  w->n = gt_loader_batch(w->loader, &w->order, batch % gt_order_batches_per_epoch(&w->order), w->x, w->y);
  w->loaded = gt_now() - from;
}

static void on_gradients(void *context, size_t first) {
  worker *w = context;
  gt_vec grads = gt_graph_arrays(w->p->run.graph)->grads;
  w->finite = w->finite && gt_vec_finite(gt_vec_range(grads, first, w->final - first));
  w->final = first;
}

/* As src/train/worker.c does it: a step's time is from its order to its push, and that of its batch, made while the order was awaited.  Returns when it was pushed.
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
  gt_push_msg push = {.kind = GT_PUSH_GRADIENT, .batch = order->batch, .samples = (int64_t)w->n, .nonfinite = !w->finite};
  gt_ns pushed = gt_now();
  push.compute_ns = pushed - from + (order->batch > 0 ? w->loaded : 0);
  gt_probe_tally *t = &w->of[phase_of(order->batch)];
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
    if (gt_seconds(gt_now() - from) > SLOW_S) break;
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

/* Loads a few batches of the region's own samples. */
static gt_status open_worker(worker *w) {
  gt_run *run = &w->p->run;
  w->order = run->order;
  const size_t batches = 2 * run->batch_max / run->order.batch + 1, few = (batches > 8 ? batches : 8) * run->order.batch; /* whole ones */
  if (w->order.n > few) w->order.n = few;
  w->x = GT_NEW_ARRAY(float, run->batch_max * run->data.h * run->data.w * run->data.c);
  w->y = GT_NEW_ARRAY(int32_t, run->batch_max);
  return gt_train_loader(run, w->order.n, &w->loader);
}

static void run_worker(worker *w) {
  gt_run *run = &w->p->run;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  w->plane = gt_plane_worker_create(run->roles.region, &(gt_plane_size){a->params.n, a->buffers.n, 0});
  gt_graph_adopt(run->graph, gt_plane_worker_params(w->plane), gt_plane_worker_grads(w->plane), gt_plane_worker_buffers(w->plane));
  gt_graph_on_progress(run->graph, gt_plane_worker_progress, w->plane);
  gt_graph_on_gradients(run->graph, on_gradients, w);
  work(w);
  gt_probe_tell(&w->p->own, &w->of[WARM], &w->of[PAUSED]);
  gt_plane_worker_close(w->plane, w->p->run.end_limit_s);
}

/* ---- PS ---- */

/* What a PS works on; message: a sum of updates, as strategies keep it. */
typedef struct {
  gt_optim *optim;
  gt_vec params, grads, message;
} material;

/* The run's, at a rate that stays: the probe's steps are as many as it takes.  How long a run's
   schedule is depends on every region's samples, so that own samples serve for all. */
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
  const gt_optim_spec spec = optimizer_of(run);
  m->params = a->params, m->grads = a->grads;
  m->message = gt_vec_of(GT_NEW_ARRAY(float, a->params.n), a->params.n);
  return gt_optim_create(&m->optim, &spec, a->params.n, true);
}

static void close_material(material *m) {
  gt_optim_close(m->optim);
  gt_free(m->message.data);
}

typedef struct {
  int64_t steps;
  bool done;
  gt_ns heard, pushed, due; /* due: of an order that pauses; 0: none does */
} served;

typedef struct {
  gt_run *run;
  material *material;
  double update_s;
  int64_t updates;
  gt_plane_ps *plane;
  gt_probe_traffic *traffic; /* NULL: the job sends nothing */
  int64_t pushes;
  served *workers;
  gt_ns since;
  size_t ended;
} server;

static bool enough(const server *s) {
  double passed_s = gt_seconds(gt_now() - s->since);
  int64_t least = passed_s > SLOW_S ? WARM_UP + SLOW_STEPS : WARM_UP + STEPS;
  if (passed_s < SPAN_S) return false;
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++)
    if (s->workers[w].steps < least || (s->workers[w].steps >= STEADY && s->workers[w].steps < TURN)) return false;
  return true;
}

static void update(server *s, const float *grads, const float *buffers, bool counts) {
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  gt_ns from = gt_now();
  gt_vec_copy(a->buffers, gt_vec_of((float *)(uintptr_t)buffers, a->buffers.n));
  gt_optim_step(s->material->optim, a->params, gt_vec_of((float *)(uintptr_t)grads, a->grads.n), s->material->message);
  if (!counts) return;
  s->update_s += gt_seconds(gt_now() - from);
  s->updates++;
}

static void give(const server *s, size_t w, gt_order_kind kind) {
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  served *of = &s->workers[w];
  gt_order_msg order = {.kind = kind, .with_params = kind == GT_ORDER_TRAIN || kind == GT_ORDER_EVAL, .batch = of->steps};
  if (of->due) order.wan_wait_ns = gt_now() - of->pushed;
  of->due = 0;
  gt_plane_ps_order(s->plane, w, &order, a->params.data, a->buffers.data);
}

static void exchange(server *s, phase at) {
  const gt_job *job = s->run->job;
  int64_t each = job->sync.local == GT_LOCAL_SYNC ? TRAFFIC * (int64_t)gt_plane_ps_workers(s->plane) : TRAFFIC;
  if (++s->pushes % each == 0 && at != PAUSED && s->traffic) gt_probe_traffic_send(s->traffic, gt_graph_arrays(s->run->graph)->grads);
}

static void on_push(void *ctx, size_t w, const gt_push_msg *push, float *grads, const float *buffers) {
  server *s = ctx;
  served *of = &s->workers[w];
  if (push->kind == GT_PUSH_SIGNAL) return;
  of->heard = gt_now();
  if (push->kind == GT_PUSH_GRADIENT) {
    of->pushed = gt_now();
    if (!push->nonfinite) update(s, grads, buffers, phase_of(of->steps) == WARM);
    exchange(s, phase_of(of->steps++));
    gt_plane_ps_taken(s->plane, w);
  }
  if (push->kind == GT_PUSH_EVAL) {
    s->ended++;
    of->done = true;
    give(s, w, GT_ORDER_END);
  } else if (push->kind == GT_PUSH_GRADIENT && enough(s))
    give(s, w, GT_ORDER_EVAL);
  else if (phase_of(of->steps) == PAUSED && of->steps % GT_RESUME_STEPS == 0)
    of->due = of->pushed + PAUSE;
  else
    give(s, w, GT_ORDER_TRAIN);
}

/* Orders that are due.  Returns when the next is; GT_NEVER: none waits. */
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
      gt_panic(GT_ERR_LOST, "waited %.0f s (limits.local) for a step of worker %zu of region %s", limit, w, s->run->region);
}

/* As a run does it. */
static void rest(const server *s, gt_backoff *backoff, gt_ns until) {
  bool large = false;
  gt_ns next = s->traffic ? gt_probe_traffic_next(s->traffic, &large) : GT_NEVER;
  bool idle = !large && gt_plane_ps_wakes(s->plane);
  gt_plane_ps_sleep(s->plane, gt_backoff_next(backoff, idle ? GT_BACKOFF_IDLE : GT_BACKOFF_BUSY, next < until ? next : until));
}

static void run_server(gt_probe_state *p, material *m) {
  gt_run *run = &p->run;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  server s = {.run = run, .material = m, .plane = gt_plane_ps_create(run->roles.region, &(gt_plane_size){a->params.n, a->buffers.n, 0})};
  gt_backoff backoff = {0};
  s.workers = GT_NEW_ARRAY(served, gt_plane_ps_workers(s.plane));
  if (run->job->nregions > 1 && gt_sync_of(run->job->sync.strategy)->sends) s.traffic = gt_probe_traffic_open(run, a->params);
  s.since = gt_now();
  for (size_t w = 0; w < gt_plane_ps_workers(s.plane); w++) s.workers[w].heard = s.since;
  while (s.ended < gt_plane_ps_workers(s.plane)) {
    bool moved = gt_plane_ps_poll(s.plane, on_push, &s);
    if (s.traffic) moved |= gt_probe_traffic_poll(s.traffic);
    gt_ns next = end_pauses(&s);
    if (moved)
      gt_backoff_reset(&backoff);
    else {
      watch(&s);
      rest(&s, &backoff, next);
    }
  }
  if (s.traffic) gt_probe_traffic_close(s.traffic, run, p->limit_s);
  if (s.updates > 0) p->own.update_s = s.update_s / (double)s.updates;
  gt_plane_ps_close(s.plane, run->end_limit_s);
  gt_free(s.workers);
}

/* ---- the PS's work on messages ---- */

static void do_apply(material *m) {
  gt_vec_axpy(m->params, 1e-6F, m->message);
}
static void do_encode(material *m) {
  gt_vec_copy(m->message, m->grads);
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
}

/* ---- both ---- */

void gt_probe_compute(gt_probe_state *p) {
  gt_run *run = &p->run;
  worker *w = GT_NEW(worker);
  w->p = p;
  material m = {0};
  gt_status status = run->roles.is_ps ? open_material(run, &m) : open_worker(w);
  status = gt_agree(run->roles.world, status, p->limit_s);
  if (status == GT_OK) {
    if (run->roles.is_ps)
      run_server(p, &m);
    else
      run_worker(w);
    gt_probe_meet(p, "the other workers' speed");
    /* Regions may share a machine: one PS after the other. */
    for (size_t r = 0; r < run->job->nregions; r++) {
      if (run->roles.is_ps && r == run->roles.region_id) time_ps(p, &m);
      gt_probe_meet(p, "the work of another region's PS");
    }
  }
  if (status != GT_OK) snprintf(p->data_error, sizeof p->data_error, "%s", gt_error_text());
  close_material(&m);
  gt_loader_close(w->loader);
  gt_free(w->x);
  gt_free(w->y);
  gt_free(w);
}
