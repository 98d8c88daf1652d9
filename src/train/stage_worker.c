/* The loop of a worker with a stage of a pipeline: each order is one pass; the last order of a step
   asks for its gradient, that of an evaluation for its result. */
#include <string.h>

#include "geotrain/ps_work_time.h"
#include "stages.h"

typedef struct {
  gt_run *run;
  const gt_clock_ops *clock;
  gt_plane_worker *plane;
  size_t number, stage, replica; /* this worker's index in the region, its stage, and its index in
                                    the stage */
  /* For the current shape of micro-batches: the shape, its graph, this worker's samples of each. */
  const gt_pipe_job *shape;
  const gt_pipe_layout *layout;
  gt_graph *graph;
  size_t share;
  bool judges;             /* it has the loss */
  gt_loader *train, *test; /* NULL: the stage reads no samples */
  /* The samples of a step, or of one micro-batch of an evaluation. */
  char *x;
  int32_t *y;
  size_t sample_bytes;
  /* Labels that are sent with activations: of the micro-batch in each slot; NULL: they are not
     sent. */
  char *labels;
  size_t label_bytes; /* of a sample */
  gt_metrics sum;     /* of the step, or of the evaluation */
  gt_ns idle_since;
  double slowdown;
} stage_worker;

/* ---- samples --------------------------------------------------------------------------------- */

/* Loads the samples of the whole step; those of a micro-batch are contiguous. */
static void load_step(const stage_worker *w, int64_t number) {
  if (w->train) gt_loader_batch(w->train, &w->run->order, number, w->x, w->y);
}

/* Returns this worker's samples of a micro-batch of a step. */
static gt_micro_batch of_step(const stage_worker *w, uint32_t micro) {
  const size_t first = micro * w->layout->micro_samples + w->replica * w->share;
  if (!w->train) return (gt_micro_batch){.n = w->share};
  return (gt_micro_batch){w->x + first * w->sample_bytes, w->y + first, w->share};
}

/* Returns this worker's samples of a micro-batch of the test set.  If the last one is not full, it
   is padded with other samples, but only samples of the test set are judged. */
static gt_micro_batch of_test(const stage_worker *w, uint32_t micro, size_t count, bool judged) {
  const size_t first = micro * w->layout->micro_samples + w->replica * w->share,
               left = first < count ? count - first : 0, n = left < w->share ? left : w->share;
  if (w->test && n > 0) gt_loader_range(w->test, first, n, w->x, w->y);
  return (gt_micro_batch){w->x, w->y, judged ? n : w->share};
}

/* ---- labels sent with activations ------------------------------------------------------------ */

static char *labels_of(const stage_worker *w, const gt_pass_msg *p) {
  return w->labels + p->slot * w->share * w->label_bytes;
}

/* Stores the labels of a micro-batch; those of a text are its ids. */
static void take_labels(const stage_worker *w, const gt_pass_msg *p, const gt_micro_batch *batch) {
  const void *from = w->run->data.text ? batch->samples : (const void *)batch->labels;
  if (w->labels && w->train) memcpy(labels_of(w, p), from, w->share * w->label_bytes);
}

/* Returns the micro-batch for the loss when its labels have been sent here. */
static gt_micro_batch with_labels(const stage_worker *w, const gt_pass_msg *p, size_t n) {
  const void *labels = labels_of(w, p);
  return (gt_micro_batch){labels, labels, n};
}

/* Splits a piece of the input: the label of each sample follows it. */
static void part_labels(const stage_worker *w, const gt_pass_msg *p, size_t i, char *to) {
  const size_t bytes = w->layout->output_bytes[p->span - 1], each = bytes + w->label_bytes,
               first = p->pieces[i].to / each, n = p->pieces[i].bytes / each;
  const char *from = gt_plane_worker_piece(w->plane, i);
  char *labels = labels_of(w, p);
  for (size_t s = 0; s < n; s++, from += each) {
    memcpy(to + (first + s) * bytes, from, bytes);
    memcpy(labels + (first + s) * w->label_bytes, from + bytes, w->label_bytes);
  }
}

static void join_labels(const stage_worker *w, const gt_pass_msg *p, const char *from, char *to) {
  const size_t bytes = w->layout->output_bytes[p->span];
  const char *labels = labels_of(w, p);
  for (size_t s = 0; s < w->share; s++) {
    memcpy(to, from + s * bytes, bytes);
    memcpy(to + bytes, labels + s * w->label_bytes, w->label_bytes);
    to += bytes + w->label_bytes;
  }
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Adopts the order's parameters, whose address can differ between orders. */
static void adopt(const stage_worker *w) {
  gt_graph_adopt(w->graph, gt_plane_worker_params(w->plane), gt_plane_worker_grads(w->plane),
                 gt_plane_worker_buffers(w->plane));
}

static void take_shape(stage_worker *w, size_t number) {
  w->shape = gt_pipe_job_shape(w->run->pipe->job, number);
  w->layout = &w->shape->layout;
  w->graph = w->run->pipe->graphs[number];
  w->share = w->layout->micro_samples / w->layout->places[w->stage].workers;
}

/* Changes the shape of micro-batches from this step on. */
static void change_shape(stage_worker *w, size_t number) {
  if (w->graph == w->run->pipe->graphs[number]) return;
  take_shape(w, number);
  gt_graph_return(w->graph);
  adopt(w);
}

static void take_input(const stage_worker *w, const gt_pass_msg *p, size_t span) {
  gt_graph *graph = w->graph;
  char *to = p->kind == GT_PASS_F ? gt_graph_span_input(graph, span, p->slot)
                                  : gt_graph_span_output_gradient(graph, span, p->slot);
  for (size_t i = 0; i < p->npieces; i++)
    if (w->labels && p->kind == GT_PASS_F)
      part_labels(w, p, i, to);
    else
      memcpy(to + p->pieces[i].to, gt_plane_worker_piece(w->plane, i), p->pieces[i].bytes);
}

static void give_output(const stage_worker *w, const gt_pass_msg *p, size_t span) {
  const gt_graph *graph = w->graph;
  char *to = (char *)gt_plane_worker_area(w->plane) + p->out;
  if (p->out_bytes == 0) return;
  if (p->kind != GT_PASS_F)
    memcpy(to, gt_graph_span_input_gradient(graph, span, p->slot), p->out_bytes);
  else if (w->labels)
    join_labels(w, p, gt_graph_span_output(graph, span, p->slot), to);
  else
    memcpy(to, gt_graph_span_output(graph, span, p->slot), p->out_bytes);
}

static void add(gt_metrics *sum, const gt_metrics *m) {
  sum->loss_sum += m->loss_sum;
  sum->correct += m->correct;
  sum->samples += m->samples;
}

static void forward(stage_worker *w, const gt_pass_msg *p, size_t span, const gt_micro_batch *batch,
                    bool train) {
  gt_metrics m = {0};
  take_labels(w, p, batch);
  if (batch->n > 0) gt_graph_forward(w->graph, span, p->slot, batch, train, &m);
  if (gt_setup_span_judges(w->run->pipe, p->span)) add(&w->sum, &m);
}

static void compute(stage_worker *w, const gt_order_msg *order) {
  const gt_pass_msg *p = &order->pass;
  gt_graph *graph = w->graph;
  const size_t span = gt_setup_own_span(w->run, p->span);
  const bool judges = gt_setup_span_judges(w->run->pipe, p->span);
  if (p->flags & GT_STAGE_SCORE) {
    gt_micro_batch batch = of_test(w, p->micro, (size_t)order->count, judges);
    if (judges && w->labels) batch = with_labels(w, p, batch.n);
    forward(w, p, span, &batch, false);
    return;
  }
  gt_micro_batch batch = of_step(w, p->micro);
  if (judges && w->labels) batch = with_labels(w, p, batch.n);
  const bool first = p->flags & GT_STAGE_WEIGHT;
  switch ((gt_pass_kind)p->kind) {
  case GT_PASS_F:
    forward(w, p, span, &batch, true);
    break;
  case GT_PASS_B:
    gt_graph_backward_input(graph, span, p->slot, &batch);
    break;
  case GT_PASS_W:
    gt_graph_backward_weight(graph, span, p->slot, &batch, first);
    break;
  case GT_PASS_BW:
    gt_graph_backward(graph, span, p->slot, &batch, first);
    break;
  }
}

static gt_ns cost_of(const stage_worker *w, const gt_pass_msg *p) {
  return w->run->job->compute_emulate
             ? gt_ps_pass_time(w->shape, w->number, p->span, (gt_pass_kind)p->kind)
             : 0;
}

static void pass(stage_worker *w, const gt_order_msg *order) {
  const gt_pass_msg *p = &order->pass;
  const gt_ns from = gt_now();
  change_shape(w, p->shape);
  if (order->with_params) adopt(w);
  if (p->flags & GT_STAGE_BEGIN) {
    w->sum = (gt_metrics){0};
    if (!(p->flags & GT_STAGE_SCORE)) load_step(w, order->batch);
  }
  take_input(w, p, gt_setup_own_span(w->run, p->span));
  compute(w, order);
  give_output(w, p, gt_setup_own_span(w->run, p->span));
  w->clock->computed(from, cost_of(w, p), w->slowdown, gt_plane_worker_progress, w->plane);
  gt_push_msg push = {.kind = GT_PUSH_PASS,
                      .signal = (uint32_t)gt_stop_requested(),
                      .batch = order->batch,
                      .wait_ns = from - w->idle_since,
                      .out = p->out,
                      .out_bytes = p->out_bytes};
  w->idle_since = gt_now();
  push.compute_ns = w->idle_since - from;
  gt_plane_worker_push(w->plane, &push);
}

/* ---- the end of a step ----------------------------------------------------------------------- */

/* Returns this worker's stage among the region's. */
static const gt_ps_stage *own_stage(const stage_worker *w) {
  const gt_ps_stage *s = w->run->pipe->stages;
  while (w->number < s->first_worker || w->number >= s->first_worker + s->workers) s++;
  return s;
}

/* Completes the gradient, a sum over the micro-batches of which the PS makes a mean.  True if it is
   finite. */
static bool finish_gradient(const stage_worker *w) {
  const gt_vec grads = gt_graph_arrays(w->graph)->grads;
  const gt_ps_stage *own = own_stage(w);
  bool finite = true;
  gt_graph_gradients_end(w->graph);
  for (size_t i = 0; i < own->nparams; i++) {
    const gt_vec part = gt_vec_range(grads, own->params[i].offset, own->params[i].count);
    finite = finite && gt_vec_finite(part);
  }
  return finite && gt_vec_finite(gt_graph_arrays(w->graph)->buffers);
}

static void push_gradient(stage_worker *w, const gt_order_msg *order) {
  const gt_ns from = gt_now();
  const bool finite = finish_gradient(w) && w->sum.loss_sum - w->sum.loss_sum == 0;
  gt_push_msg push = {.kind = GT_PUSH_GRADIENT,
                      .signal = (uint32_t)gt_stop_requested(),
                      .batch = order->batch,
                      .samples = (int64_t)(w->share * w->layout->micro_batches),
                      .correct = (int64_t)w->sum.correct,
                      .loss_sum = w->sum.loss_sum,
                      .resident_peak = gt_resident_peak(),
                      .resident_start = w->run->resident_start,
                      .wait_ns = from - w->idle_since,
                      .nonfinite = !finite};
  w->idle_since = gt_now();
  push.compute_ns = w->idle_since - from;
  gt_plane_worker_push(w->plane, &push);
}

static void push_scores(stage_worker *w, const gt_order_msg *order) {
  const gt_push_msg push = {.kind = GT_PUSH_EVAL,
                            .signal = (uint32_t)gt_stop_requested(),
                            .batch = order->batch,
                            .samples = (int64_t)w->sum.samples,
                            .resident_peak = gt_resident_peak(),
                            .resident_start = w->run->resident_start,
                            .correct = (int64_t)w->sum.correct,
                            .loss_sum = w->sum.loss_sum};
  w->idle_since = gt_now();
  gt_plane_worker_push(w->plane, &push);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static gt_status loop(stage_worker *w) {
  const gt_push_msg ready = {.kind = GT_PUSH_READY};
  gt_order_msg order;
  w->idle_since = gt_now();
  gt_plane_worker_push(w->plane, &ready);
  for (;;) {
    gt_plane_worker_wait(w->plane, &order, w->run->job->limits.local_s);
    switch (order.kind) {
    case GT_ORDER_PASS:
      pass(w, &order);
      break;
    case GT_ORDER_TRAIN:
      push_gradient(w, &order);
      break;
    case GT_ORDER_EVAL:
      push_scores(w, &order);
      break;
    default:
      return (gt_status)order.status;
    }
  }
}

/* True if a span of the stage reads samples, or judges them. */
static bool reads(const stage_worker *w) {
  for (size_t chunk = 0; chunk < w->layout->chunks; chunk++)
    if (gt_setup_span_reads(w->run, gt_pipe_span_of(w->layout->stages, chunk, w->stage)))
      return true;
  return false;
}

/* Collective over the world. */
static gt_status open_samples(stage_worker *w) {
  gt_run *run = w->run;
  const size_t each = run->data.h * run->data.w * run->data.c, n = (size_t)run->job->train.batch;
  gt_status status = GT_OK;
  if (reads(w)) {
    status = gt_setup_loader(run, run->npart, &w->train);
    if (status == GT_OK && run->data.ntest > 0)
      status = gt_loader_create(&w->test, run->dataset, GT_SPLIT_TEST, NULL, 0);
    w->sample_bytes = each * sizeof(float);
    w->x = gt_alloc(n, w->sample_bytes);
    w->y = GT_NEW_ARRAY(int32_t, n);
  }
  return gt_agree(run->roles.world, status, run->start_limit_s);
}

/* Returns the largest number of samples whose labels are here at a time. */
static size_t most_labels(const stage_worker *w) {
  const gt_pipe_job *pipe = w->run->pipe->job;
  size_t most = 0;
  for (size_t i = 0; i < gt_pipe_job_shapes(pipe); i++) {
    const gt_pipe_layout *l = &gt_pipe_job_shape(pipe, i)->layout;
    const size_t n = l->slots[w->stage] * l->micro_samples / l->places[w->stage].workers;
    if (n > most) most = n;
  }
  return most;
}

/* Prepares the graphs of all shapes, so that no step allocates; the job's shape comes first. */
static void prepare(stage_worker *w) {
  for (size_t i = gt_pipe_job_shapes(w->run->pipe->job); i-- > 0;) {
    take_shape(w, i);
    adopt(w);
    gt_graph_on_progress(w->graph, gt_plane_worker_progress, w->plane);
    gt_graph_prepare(w->graph, w->share);
  }
}

gt_status gt_stage_worker_run(gt_run *run, const gt_clock_ops *clock) {
  const gt_pipe_layout *layout = run->pipe->layout;
  stage_worker w = {.run = run, .clock = clock, .number = (size_t)run->roles.region_rank - 1};
  w.stage = gt_pipe_stage_at(layout, run->roles.region_id, w.number);
  w.replica = w.number - layout->places[w.stage].first_worker;
  w.label_bytes = layout->label_bytes;
  if (w.label_bytes > 0) w.labels = gt_alloc(most_labels(&w), w.label_bytes);
  take_shape(&w, 0);
  w.slowdown = gt_cost_slowdown(run->job, run->roles.region_id, w.number);
  const gt_plane_size size = gt_train_plane_size(run);
  w.plane = gt_plane_worker_create(run->roles.region, &size);
  gt_status status = open_samples(&w);
  if (status == GT_OK) {
    prepare(&w);
    status = loop(&w);
  }
  gt_plane_worker_close(w.plane, run->end_limit_s);
  gt_loader_close(w.train);
  gt_loader_close(w.test);
  gt_free(w.x);
  gt_free(w.y);
  gt_free(w.labels);
  return status;
}
