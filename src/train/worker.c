/* The worker's loop: receives orders with parameters, computes gradients or evaluates, pushes. */

#include "geotrain/ps_of_job.h"
#include "geotrain/ps_work_time.h"
#include "stages.h"

/* A batch computed in advance, while the worker waited for its next order.  Its expected number is
   that of the last batch plus the number of workers. */
typedef struct {
  float *x;
  int32_t *y;
  int64_t number; /* -1: none */
  size_t n;
  gt_ns took;
} ahead;

typedef struct {
  gt_run *run;
  const gt_clock_ops *clock;
  gt_plane_worker *plane;
  gt_loader *train, *test, *held;
  float *x;
  int32_t *y;
  ahead next;
  struct {
    size_t samples, first; /* its samples; gradients from `first` on are final */
    bool finite;           /* all final gradients are finite */
  } batch;                 /* being computed */
  gt_ns idle_since;
  gt_job_compute cost;
  double slowdown;
} worker;

/* Records that the worker has finished some work; cost: its time from compute.emulate, or 0. */
static void computed(const worker *w, gt_ns from, gt_ns cost) {
  w->clock->computed(from, cost, w->slowdown, gt_plane_worker_progress, w->plane);
}

static size_t number_of(const worker *w) {
  return (size_t)w->run->roles.region_rank - 1;
}

/* Checks gradients while they are in the cache, then reports them at once. */
static void on_gradients(void *context, size_t first) {
  worker *w = context;
  gt_vec grads = gt_graph_arrays(w->run->graph)->grads;
  w->batch.finite =
      w->batch.finite && gt_vec_finite(gt_vec_range(grads, first, w->batch.first - first));
  w->batch.first = first;
  gt_plane_worker_gradients(w->plane, first, (int64_t)w->batch.samples);
}

/* Fills x and y with the batch; *took: the part of the time that was spent before the order. */
static size_t load_batch(worker *w, int64_t number, gt_ns *took) {
  *took = 0;
  if (w->next.number != number)
    return gt_loader_batch(w->train, &w->run->order, number, w->x, w->y);
  float *x = w->x;
  int32_t *y = w->y;
  w->x = w->next.x, w->next.x = x;
  w->y = w->next.y, w->next.y = y;
  w->next.number = -1;
  *took = w->next.took;
  return w->next.n;
}

static void load_ahead(worker *w, int64_t number) {
  gt_ns from = gt_now();
  w->next.n = gt_loader_batch(w->train, &w->run->order, number, w->next.x, w->next.y);
  w->next.number = number;
  w->next.took = gt_now() - from;
}

static void train_batch(worker *w, const gt_order_msg *order) {
  gt_ns from = gt_now(), before;
  gt_metrics m;
  const gt_arrays *arrays = gt_graph_arrays(w->run->graph);
  size_t n = load_batch(w, order->batch, &before);
  w->batch.samples = n;
  w->batch.first = arrays->grads.n;
  w->batch.finite = true;
  gt_graph_set_key(w->run->graph,
                   gt_ps_dropout_key(w->run->job, w->run->roles.region_id, order->batch));
  gt_graph_step(w->run->graph, w->x, w->y, n, true, &m);
  on_gradients(w, 0);
  computed(w, from,
           w->run->job->compute_emulate
               ? gt_cost_step(w->run->job, &w->run->order, &w->cost, number_of(w), order->batch)
               : 0);
  bool finite = m.loss_sum - m.loss_sum == 0 && w->batch.finite && gt_vec_finite(arrays->buffers);
  gt_push_msg push = {.kind = GT_PUSH_GRADIENT,
                      .signal = (uint32_t)gt_stop_requested(),
                      .batch = order->batch,
                      .samples = (int64_t)m.samples,
                      .correct = (int64_t)m.correct,
                      .loss_sum = m.loss_sum,
                      .wait_ns = from - w->idle_since - before,
                      .nonfinite = !finite};
  w->idle_since = gt_now();
  push.compute_ns = w->idle_since - from + before;
  gt_plane_worker_push(w->plane, &push);
  load_ahead(w, order->batch +
                    (order->workers > 0 ? (int64_t)order->workers : w->run->roles.region_size - 1));
}

/* Evaluates a chunk of the test set or of the samples held back.  The batches are the same for any
   worker, so that the figures are equal too. */
static void evaluate(worker *w, const gt_order_msg *order) {
  gt_ns from = gt_now();
  const bool tests = order->kind == GT_ORDER_EVAL;
  const gt_ranking *ranking = tests ? gt_train_ranking(w->run) : NULL;
  float *scores = ranking ? gt_plane_worker_scores(w->plane) : NULL;
  gt_push_msg push = {
      .kind = GT_PUSH_EVAL, .batch = order->batch, .signal = (uint32_t)gt_stop_requested()};
  for (int64_t done = 0; done < order->count;) {
    size_t left = (size_t)(order->count - done),
           n = left < w->run->batch_max ? left : w->run->batch_max;
    gt_metrics m;
    gt_loader_range(tests ? w->test : w->held, (size_t)(order->batch + done), n, w->x, w->y);
    gt_graph_step(w->run->graph, w->x, w->y, n, false, &m);
    if (scores) ranking->take(w->run->graph, w->y, n, scores + done);
    push.samples += (int64_t)m.samples;
    push.correct += (int64_t)m.correct;
    push.loss_sum += m.loss_sum;
    done += (int64_t)n;
  }
  push.scores = scores ? push.samples : 0;
  computed(w, from,
           w->run->job->compute_emulate
               ? gt_cost_eval(w->run->job, &w->run->order, &w->cost, number_of(w), order->count)
               : 0);
  w->idle_since = gt_now();
  gt_plane_worker_push(w->plane, &push);
}

/* Adopts the order's parameters, whose address can differ between orders. */
static void adopt(const worker *w) {
  const gt_arrays *arrays = gt_graph_arrays(w->run->graph);
  float *params = gt_plane_worker_params(w->plane), *buffers = gt_plane_worker_buffers(w->plane);
  if (arrays->params.data != params || arrays->buffers.data != buffers)
    gt_graph_adopt(w->run->graph, params, gt_plane_worker_grads(w->plane), buffers);
}

static gt_status loop(worker *w) {
  gt_push_msg ready = {.kind = GT_PUSH_READY};
  gt_order_msg order;
  w->idle_since = gt_now();
  gt_plane_worker_push(w->plane, &ready);
  for (;;) {
    gt_plane_worker_wait(w->plane, &order, w->run->job->limits.local_s);
    adopt(w);
    if (order.kind == GT_ORDER_END) return (gt_status)order.status;
    if (order.kind == GT_ORDER_TRAIN)
      train_batch(w, &order);
    else
      evaluate(w, &order);
  }
}

const gt_ranking *gt_train_ranking(const gt_run *run) {
  return run->pipe ? NULL : gt_ranking_of(gt_model_names[run->job->model.name], run->data.classes);
}

size_t gt_train_tests(const gt_run *run) {
  return run->pipe ? run->pipe->ntest : run->data.ntest;
}

gt_plane_size gt_train_plane_size(const gt_run *run) {
  const gt_arrays *a = gt_graph_arrays(run->graph);
  const bool scored = gt_train_ranking(run) && run->data.ntest > 0;
  return (gt_plane_size){
      .nparams = a->params.n,
      .nbuffers = a->buffers.n,
      .nscores = scored ? gt_ps_eval_chunk(run->data.ntest) : 0,
      .nactivations = run->pipe ? gt_stage_area_max(run->pipe->job, run->roles.region_id) : 0,
      .parts = run->pipe ? run->pipe->workers : NULL};
}

/* Loads the region's part of the data, and the test set; collective over the world. */
static gt_status open_worker(worker *w) {
  gt_run *run = w->run;
  gt_status status = gt_setup_loader(run, run->npart, &w->train);
  if (status == GT_OK && run->data.ntest > 0)
    status = gt_loader_create(&w->test, run->dataset, GT_SPLIT_TEST, NULL, 0);
  if (status == GT_OK && run->held.n > 0) status = gt_setup_loader_held(run, &w->held);
  w->x = GT_NEW_ARRAY(float, run->batch_max * run->data.h * run->data.w * run->data.c);
  w->y = GT_NEW_ARRAY(int32_t, run->batch_max);
  w->next =
      (ahead){.x = GT_NEW_ARRAY(float, run->batch_max * run->data.h * run->data.w * run->data.c),
              .y = GT_NEW_ARRAY(int32_t, run->batch_max),
              .number = -1};
  return gt_agree(run->roles.world, status, run->start_limit_s);
}

/* Prepares kernels for the evaluation of n samples. */
static void prepare_evaluation(const gt_run *run, size_t n) {
  const size_t most = run->batch_max, chunk = gt_ps_eval_chunk(n), rest = n % chunk;
  if (n >= chunk) gt_graph_prepare(run->graph, chunk < most ? chunk : most);
  if (n >= chunk) gt_graph_prepare(run->graph, chunk % most);
  gt_graph_prepare(run->graph, rest < most ? rest : most);
  gt_graph_prepare(run->graph, rest % most);
}

/* Prepares kernels for every batch size that will occur: full batches, the last of an epoch, and
   those of evaluations. */
static void prepare(const worker *w) {
  const gt_run *run = w->run;
  gt_graph_prepare(run->graph, run->order.n < run->order.batch ? run->order.n : run->order.batch);
  gt_graph_prepare(run->graph, run->order.n % run->order.batch);
  if (w->test) prepare_evaluation(run, run->data.ntest);
  if (w->held) prepare_evaluation(run, run->held.n);
}

gt_status gt_worker_run(gt_run *run, const gt_clock_ops *clock) {
  worker w = {
      .run = run, .clock = clock, .cost = gt_job_compute_of(run->job, run->roles.region_id)};
  w.slowdown = gt_cost_slowdown(run->job, run->roles.region_id, number_of(&w));
  const gt_plane_size size = gt_train_plane_size(run);
  w.plane = gt_plane_worker_create(run->roles.region, &size);
  gt_status status = open_worker(&w);
  if (status == GT_OK) {
    adopt(&w);
    gt_graph_on_progress(run->graph, gt_plane_worker_progress, w.plane);
    gt_graph_on_gradients(run->graph, on_gradients, &w);
    prepare(&w);
    status = loop(&w);
  }
  gt_plane_worker_close(w.plane, run->end_limit_s);
  gt_loader_close(w.train);
  gt_loader_close(w.test);
  gt_loader_close(w.held);
  gt_free(w.next.x);
  gt_free(w.next.y);
  gt_free(w.x);
  gt_free(w.y);
  return status;
}
