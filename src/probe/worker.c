/* A worker in a probe: the steps of training on a few of its own samples, and their times. */
#include "compute.h"

#define SLOW_S       30.0 /* time limit for the evaluation */
#define EVAL_S       0.5
#define EVAL_BATCHES 3

struct gt_probe_steps {
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
};

static void load(gt_probe_steps *w, int64_t batch) {
  gt_ns from = gt_now();
  w->n = gt_loader_batch(w->loader, &w->order, batch % gt_order_batches_per_epoch(&w->order), w->x,
                         w->y);
  w->loaded = gt_now() - from;
}

static void on_gradients(void *context, size_t first) {
  gt_probe_steps *w = context;
  gt_vec grads = gt_graph_arrays(w->p->run.graph)->grads;
  w->finite = w->finite && gt_vec_finite(gt_vec_range(grads, first, w->final - first));
  w->final = first;
}

/* As in src/train/worker.c: the time of a step is from its order to its push, plus that of its
   batch, which was made while the worker waited for the order.  Returns the time of the push.
   waited: without a pause. */
static gt_ns train_batch(gt_probe_steps *w, const gt_order_msg *order, gt_ns waited) {
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

static void evaluate(gt_probe_steps *w) {
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

static void work(gt_probe_steps *w) {
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

gt_status gt_probe_steps_open(gt_probe_steps **out, gt_probe_state *p) {
  const gt_run *run = &p->run;
  gt_probe_steps *w = *out = GT_NEW(gt_probe_steps);
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

void gt_probe_steps_run(gt_probe_steps *w) {
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

void gt_probe_steps_close(gt_probe_steps *w) {
  if (!w) return;
  gt_loader_close(w->loader);
  gt_free(w->x);
  gt_free(w->y);
  gt_free(w);
}
