/* What work costs: all workers compute at once, driven through the local plane as in training; then the PS's own work, alone. */
#include <string.h>

#include "probe.h"

#define WARM_UP      3
#define STEPS        10
#define SPAN_S       1.0
#define SLOW_S       30.0 /* a model this slow is judged by fewer steps */
#define SLOW_STEPS   2
#define EVAL_S       0.5
#define EVAL_BATCHES 3
#define TURNS        512 /* turn-arounds kept */
#define WORK_S       0.3
#define WORK_MIN     5
#define WORK_MAX     200

/* ---- worker ---- */

typedef struct {
  gt_probe_state *p;
  gt_plane_worker *plane;
  gt_loader *loader;
  gt_order order;
  float *x;
  int32_t *y;
  double compute_s, samples, turns[TURNS];
  size_t nturns;
} worker;

static void train_batch(worker *w, const gt_order_msg *order) {
  gt_ns from = gt_now();
  gt_metrics m;
  gt_graph *graph = w->p->run.graph;
  size_t n = gt_loader_batch(w->loader, &w->order, order->batch % gt_order_batches_per_epoch(&w->order), w->x, w->y);
  gt_graph_step(graph, w->x, w->y, n, true, &m);
  bool finite = gt_vec_finite(gt_graph_arrays(graph)->grads);
  gt_push_msg push = {.kind = GT_PUSH_GRADIENT, .batch = order->batch, .samples = (int64_t)n, .nonfinite = !finite};
  push.compute_ns = gt_now() - from;
  if (order->batch >= WARM_UP) {
    w->compute_s += gt_seconds(push.compute_ns);
    w->samples += (double)n;
    w->p->own.steps++;
  }
  gt_plane_worker_push(w->plane, &push);
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
  for (int64_t trained = 0;;) {
    gt_ns from = gt_now();
    gt_plane_worker_wait(w->plane, &order, w->p->run.job->limits.local_s);
    if (order.kind == GT_ORDER_END) return;
    if (order.kind == GT_ORDER_EVAL)
      evaluate(w);
    else {
      if (trained++ > WARM_UP && w->nturns < TURNS) w->turns[w->nturns++] = gt_seconds(gt_now() - from);
      train_batch(w, &order);
    }
  }
}

/* Loads a few batches of the region's own samples. */
static gt_status open_worker(worker *w) {
  gt_run *run = &w->p->run;
  w->order = run->order;
  size_t few = 8 * run->order.batch > 2 * run->batch_max ? 8 * run->order.batch : 2 * run->batch_max;
  if (w->order.n > few) w->order.n = few;
  w->x = GT_NEW_ARRAY(float, run->batch_max * run->data.h * run->data.w * run->data.c);
  w->y = GT_NEW_ARRAY(int32_t, run->batch_max);
  return gt_train_loader(run, w->order.n, &w->loader);
}

static void run_worker(worker *w) {
  gt_run *run = &w->p->run;
  const gt_arrays *a = gt_graph_arrays(run->graph);
  w->plane = gt_plane_worker_create(run->roles.region, a->params.n, a->buffers.n);
  gt_graph_adopt(run->graph, gt_plane_worker_params(w->plane), gt_plane_worker_grads(w->plane), gt_plane_worker_buffers(w->plane));
  gt_graph_on_progress(run->graph, gt_plane_worker_progress, w->plane);
  work(w);
  if (w->compute_s > 0) w->p->own.samples_per_s = w->samples / w->compute_s;
  w->p->own.local_s = w->nturns > 0 ? gt_probe_median(w->turns, w->nturns) : 0;
  gt_plane_worker_close(w->plane);
}

/* ---- PS ---- */

typedef struct {
  gt_run *run;
  gt_plane_ps *plane;
  int64_t *steps; /* of each worker */
  gt_ns since;
  size_t ended;
} server;

static bool enough(const server *s) {
  double passed_s = gt_seconds(gt_now() - s->since);
  int64_t least = passed_s > SLOW_S ? WARM_UP + SLOW_STEPS : WARM_UP + STEPS;
  if (passed_s < SPAN_S) return false;
  for (size_t w = 0; w < gt_plane_ps_workers(s->plane); w++)
    if (s->steps[w] < least) return false;
  return true;
}

static void on_push(void *ctx, size_t w, const gt_push_msg *push, float *grads, const float *buffers) {
  server *s = ctx;
  const gt_arrays *a = gt_graph_arrays(s->run->graph);
  gt_order_msg order = {.kind = GT_ORDER_END};
  (void)grads;
  (void)buffers;
  if (push->kind == GT_PUSH_SIGNAL) return;
  if (push->kind == GT_PUSH_GRADIENT) {
    s->steps[w]++;
    gt_plane_ps_taken(s->plane, w);
  }
  if (push->kind == GT_PUSH_EVAL)
    s->ended++;
  else if (push->kind == GT_PUSH_GRADIENT && enough(s))
    order.kind = GT_ORDER_EVAL;
  else
    order = (gt_order_msg){.kind = GT_ORDER_TRAIN, .with_params = 1, .batch = s->steps[w]};
  gt_plane_ps_order(s->plane, w, &order, a->params.data, a->buffers.data);
}

static void run_server(gt_run *run) {
  const gt_arrays *a = gt_graph_arrays(run->graph);
  server s = {.run = run, .plane = gt_plane_ps_create(run->roles.region, a->params.n, a->buffers.n)};
  gt_backoff backoff = {0};
  s.steps = GT_NEW_ARRAY(int64_t, gt_plane_ps_workers(s.plane));
  s.since = gt_now();
  while (s.ended < gt_plane_ps_workers(s.plane)) {
    if (gt_plane_ps_poll(s.plane, on_push, &s))
      gt_backoff_reset(&backoff);
    else
      gt_plane_ps_sleep(s.plane, gt_backoff_next(&backoff, GT_BACKOFF_BUSY, GT_NEVER)); /* as a run does */
  }
  gt_plane_ps_close(s.plane);
  gt_free(s.steps);
}

/* ---- the PS's own work ---- */

typedef struct {
  gt_optim *optim;
  gt_vec params, grads, message;
} material;

static void do_update(material *m) {
  gt_optim_step(m->optim, m->params, m->grads, m->message);
}
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

static gt_status time_ps(gt_probe_state *p) {
  const gt_job *job = p->run.job;
  const gt_arrays *a = gt_graph_arrays(p->run.graph);
  gt_optim_spec spec = {.name = job->train.optimizer.name,
                        .schedule = {.kind = GT_LR_CONSTANT, .lr = job->train.optimizer.lr},
                        .momentum = job->train.optimizer.momentum,
                        .weight_decay = job->train.optimizer.weight_decay,
                        .beta1 = job->train.optimizer.beta1,
                        .beta2 = job->train.optimizer.beta2,
                        .epsilon = job->train.optimizer.epsilon,
                        .nesterov = job->train.optimizer.nesterov};
  material m = {.params = a->params, .grads = a->grads, .message = gt_vec_of(GT_NEW_ARRAY(float, a->params.n), a->params.n)};
  gt_status status = gt_optim_create(&m.optim, &spec, a->params.n, true);
  for (size_t i = 0; i < a->grads.n; i++) m.grads.data[i] = 1e-4F;
  if (status == GT_OK) {
    p->own.update_s = time_work(&m, do_update);
    p->own.apply_s = time_work(&m, do_apply);
    p->own.encode_s = time_work(&m, do_encode);
  }
  gt_optim_close(m.optim);
  gt_free(m.message.data);
  return status;
}

/* ---- both ---- */

void gt_probe_compute(gt_probe_state *p) {
  gt_run *run = &p->run;
  worker *w = GT_NEW(worker);
  w->p = p;
  gt_status status = run->roles.is_ps ? GT_OK : open_worker(w);
  status = gt_agree(run->roles.world, status, p->limit_s);
  if (status == GT_OK) {
    if (run->roles.is_ps)
      run_server(run);
    else
      run_worker(w);
    gt_probe_meet(p, "the other workers' speed");
    /* Regions may share a machine: one PS after the other. */
    for (size_t r = 0; r < run->job->nregions && status == GT_OK; r++) {
      status = run->roles.is_ps && r == run->roles.region_id ? time_ps(p) : GT_OK;
      status = gt_agree(run->roles.world, status, p->limit_s);
    }
  }
  if (status != GT_OK) snprintf(p->data_error, sizeof p->data_error, "%s", gt_error_text());
  gt_loader_close(w->loader);
  gt_free(w->x);
  gt_free(w->y);
  gt_free(w);
}
