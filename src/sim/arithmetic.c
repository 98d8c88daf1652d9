/* The arithmetic of a simulation that trains: the data sets of all regions and a model for each
   worker, in this process.  Workers compute in threads while the simulation continues.  Batches,
   random numbers and the order of sums are those of src/train/worker.c, so that the bits are
   too. */
#include <stdio.h>
#include <string.h>

#include "geotrain/sim_shape.h"
#include "internal.h"

/* A worker: its model, which is made and used by one thread, its last order, and what it pushes. */
typedef struct {
  gt_sim_arithmetic *of;
  size_t region, number; /* number: among the workers of all regions */
  gt_graph *graph;
  float *x;
  int32_t *y;
  float *scores; /* of an order to evaluate; NULL: no ranking */
  gt_ps_order order;
  gt_ps_push push;
  sim_task task;
  gt_status made;                /* of the graph */
  char error[GT_ERROR_TEXT_MAX]; /* likewise; error texts are per thread */
} computer;

typedef struct {
  gt_loader *train, *test;
  bool owns_test; /* no earlier region has the same file */
  gt_order order;
  computer *workers;
} learner;

struct gt_sim_arithmetic {
  const gt_job *job;
  sim_data data;
  gt_graph *model; /* the initial values */
  const gt_ranking *ranking;
  learner *regions;
  size_t most, sample; /* samples that are computed at a time; values of a sample */
  gt_graph_spec spec;  /* of the workers */
  sim_threads *threads;
};

/* ---- data ------------------------------------------------------------------------------------ */

/* Normalises with the sums over all training samples of all regions, added in region order. */
static gt_status normalise_by_sums(const sim_data *d, size_t first) {
  const size_t c = d->infos[first].c, n = GT_DATA_SUMS(c);
  double *own = GT_NEW_ARRAY(double, n), *sums = GT_NEW_ARRAY(double, n);
  float *norm = GT_NEW_ARRAY(float, 2 * c);
  gt_status status = GT_OK;
  for (size_t r = 0; r < d->job->nregions && status == GT_OK; r++) {
    if (!gt_job_reads(d->job, r)) continue;
    status = gt_dataset_sums(gt_sim_data_of(d, r), d->parts[r].samples, d->parts[r].n, own);
    for (size_t i = 0; i < n; i++) sums[i] += own[i];
  }
  gt_data_moments(d->infos[first].input, sums, c, norm, norm + c);
  for (size_t r = 0; r < d->job->nregions && status == GT_OK; r++)
    if (d->opened[r]) gt_dataset_normalise(d->opened[r], norm, norm + c);
  gt_free(norm);
  gt_free(sums);
  gt_free(own);
  return status;
}

static gt_status normalise(const sim_data *d) {
  const gt_job *job = d->job;
  const size_t first = gt_data_first(job);
  const gt_norm_source source = gt_data_norm_source(job, d->infos);
  const gt_dataset *of = d->opened[first];
  if (source == GT_NORM_SUMS) return normalise_by_sums(d, first);
  for (size_t r = 0; r < job->nregions; r++) {
    if (!d->opened[r]) continue;
    if (source == GT_NORM_JOB)
      GT_TRY(gt_data_normalise(d->opened[r], job, gt_data_path(job, r)));
    else if (source == GT_NORM_FIRST)
      gt_dataset_normalise(d->opened[r], gt_dataset_mean(of), gt_dataset_std(of));
  }
  return GT_OK;
}

static gt_status load(gt_sim_arithmetic *a, size_t region) {
  learner *r = &a->regions[region];
  gt_dataset *dataset = gt_sim_data_of(&a->data, region);
  const gt_data_samples *part = &a->data.parts[region];
  GT_TRY(gt_loader_create(&r->train, dataset, GT_SPLIT_TRAIN, part->samples, part->n));
  GT_TRY(gt_loader_augment(r->train, a->job->data.augment));
  r->order = (gt_order){
      .seed = a->job->seed, .region = region, .n = part->n, .batch = (size_t)a->job->train.batch};
  r->owns_test = a->data.opened[region] != NULL;
  if (!r->owns_test)
    r->test = a->regions[gt_data_namesake(a->job, region)].test;
  else if (a->data.infos[region].ntest > 0)
    GT_TRY(gt_loader_create(&r->test, dataset, GT_SPLIT_TEST, NULL, 0));
  return GT_OK;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void train(computer *w) {
  const gt_sim_arithmetic *a = w->of;
  const learner *r = &a->regions[w->region];
  const gt_arrays *arrays = gt_graph_arrays(w->graph);
  const int64_t batch = w->order.first;
  gt_metrics m;
  const size_t n = gt_loader_batch(r->train, &r->order, batch, w->x, w->y);
  gt_graph_set_key(w->graph, gt_ps_dropout_key(a->job, w->region, batch));
  gt_graph_step(w->graph, w->x, w->y, n, true, &m);
  const bool finite = m.loss_sum - m.loss_sum == 0 && gt_vec_finite(arrays->grads) &&
                      gt_vec_finite(arrays->buffers);
  w->push = (gt_ps_push){.samples = (int64_t)m.samples,
                         .correct = (int64_t)m.correct,
                         .loss_sum = m.loss_sum,
                         .buffers = arrays->buffers.n ? arrays->buffers.data : NULL,
                         .nonfinite = !finite};
}

static void evaluate(computer *w) {
  const gt_sim_arithmetic *a = w->of;
  w->push = (gt_ps_push){.scores = w->scores};
  for (int64_t done = 0; done < w->order.count;) {
    const size_t left = (size_t)(w->order.count - done), n = left < a->most ? left : a->most;
    gt_metrics m;
    gt_loader_range(a->regions[w->region].test, (size_t)(w->order.first + done), n, w->x, w->y);
    gt_graph_step(w->graph, w->x, w->y, n, false, &m);
    if (w->scores) a->ranking->take(w->graph, w->y, n, w->scores + done);
    w->push.samples += (int64_t)m.samples;
    w->push.correct += (int64_t)m.correct;
    w->push.loss_sum += m.loss_sum;
    done += (int64_t)n;
  }
}

static void compute(void *worker) {
  computer *w = worker;
  if (w->order.kind == GT_PS_TRAIN)
    train(w);
  else
    evaluate(w);
}

/* A region that was lost may have left an order behind. */
void gt_sim_compute(gt_sim_arithmetic *a, size_t region, size_t worker, const gt_ps_order *order) {
  computer *w = &a->regions[region].workers[worker];
  const gt_arrays *arrays = gt_graph_arrays(w->graph);
  gt_sim_task_wait(a->threads, &w->task);
  if (order->params.n > 0) gt_vec_copy(arrays->params, order->params);
  if (order->buffers.n > 0) gt_vec_copy(arrays->buffers, order->buffers);
  w->order = *order;
  gt_sim_task_begin(a->threads, w->number, &w->task);
}

float *gt_sim_computed(const gt_sim_arithmetic *a, size_t region, size_t worker, gt_ps_push *push) {
  const computer *w = &a->regions[region].workers[worker];
  const gt_ns compute_time = push->compute, wait = push->wait;
  gt_sim_task_wait(a->threads, &w->task);
  *push = w->push;
  push->compute = compute_time;
  push->wait = wait;
  return gt_graph_arrays(w->graph)->grads.data;
}

/* ---- models ---------------------------------------------------------------------------------- */

static gt_graph_spec spec_of(const gt_sim_arithmetic *a, const gt_sim_shape *shape) {
  gt_graph_spec spec = gt_sim_shape_spec(shape, a->job);
  const char *why;
  spec.labelled = !spec.text;
  spec.batch = (size_t)a->job->train.batch;
  spec.precision = gt_kernels_precision(spec.kernels, a->job->train.precision, &why);
  if (spec.precision != a->job->train.precision)
    gt_log(GT_LOG_WARN, "train.precision is bf16, and %s: computing in f32", why);
  return spec;
}

static void open_graph(void *worker) {
  computer *w = worker;
  gt_graph_spec spec = w->of->spec;
  const size_t n = w->of->regions[w->region].order.n;
  if (n < spec.batch) spec.batch = n;
  w->made = gt_graph_create(&w->graph, &spec);
  if (w->made != GT_OK) snprintf(w->error, sizeof w->error, "%s", gt_error_text());
}

static gt_status open_workers(gt_sim_arithmetic *a, size_t region, size_t *number) {
  learner *r = &a->regions[region];
  const size_t n = gt_job_workers(a->job, region), tests = a->data.infos[region].ntest;
  r->workers = GT_NEW_ARRAY(computer, n);
  for (computer *w = r->workers; w < r->workers + n; w++) {
    *w = (computer){.of = a,
                    .region = region,
                    .number = (*number)++,
                    .x = GT_NEW_ARRAY(float, a->most * a->sample),
                    .y = GT_NEW_ARRAY(int32_t, a->most),
                    .task = {.run = open_graph, .of = w}};
    if (a->ranking && tests > 0) w->scores = GT_NEW_ARRAY(float, gt_ps_eval_chunk(tests));
    gt_sim_task_begin(a->threads, w->number, &w->task);
    gt_sim_task_wait(a->threads, &w->task);
    if (w->made != GT_OK) return GT_FAIL(w->made, "%s", w->error);
    w->task.run = compute;
  }
  return GT_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static gt_status check(const gt_job *job, const gt_sim_shape *shape) {
  const char *with =
      job->pipeline.nstages > 0  ? "a pipeline"
      : job->data.validation > 0 ? "data.validation"
      : job->train.init          ? "train.init"
      : strcmp(job->train.choices, "rule") != 0 && strcmp(job->train.choices, "measure") != 0
          ? "a file in train.choices"
          : NULL;
  if (shape->assumed)
    return GT_FAIL(
        GT_ERR_JOB,
        "simulate --train: a data set of the job cannot be read here; expected the files "
        "of all regions (data.path, regions[].data.path)");
  if (!with) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "simulate --train: the job has %s; expected a job without it", with);
}

static gt_status open_regions(gt_sim_arithmetic *a) {
  size_t number = 0;
  for (size_t r = 0; r < a->job->nregions; r++) {
    if (!gt_job_reads(a->job, r)) continue;
    GT_TRY(load(a, r));
    GT_TRY(gt_ps_check_batches(a->job, r, a->data.parts[r].n, &a->data.infos[r],
                               gt_graph_least(a->model)));
    GT_TRY(open_workers(a, r, &number));
  }
  return GT_OK;
}

gt_status gt_sim_arithmetic_open(gt_sim_arithmetic **out, const gt_job *job,
                                 const gt_sim_shape *shape, size_t threads) {
  GT_TRY(check(job, shape));
  gt_sim_arithmetic *a = GT_NEW(gt_sim_arithmetic);
  a->job = job;
  a->regions = GT_NEW_ARRAY(learner, job->nregions);
  a->most = gt_ps_batch_max(job);
  a->sample = shape->sample.h * shape->sample.w * shape->sample.c;
  a->ranking = gt_ranking_of(gt_model_names[job->model.name], shape->sample.classes);
  a->threads = gt_sim_threads_open(threads > 1 ? threads : 0);
  a->spec = spec_of(a, shape);
  gt_status status = gt_sim_data_open(&a->data, job);
  if (status == GT_OK) status = normalise(&a->data);
  if (status == GT_OK) status = gt_graph_create(&a->model, &a->spec);
  a->spec.batch_max = a->most;
  if (status == GT_OK) status = open_regions(a);
  if (status == GT_OK)
    gt_graph_init(a->model, job->seed), *out = a;
  else
    gt_sim_arithmetic_close(a);
  return status;
}

static void close_worker(computer *w) {
  gt_graph_close(w->graph);
  gt_free(w->scores);
  gt_free(w->x);
  gt_free(w->y);
}

void gt_sim_arithmetic_close(gt_sim_arithmetic *a) {
  if (!a) return;
  gt_sim_threads_close(a->threads);
  for (size_t i = 0; i < a->job->nregions; i++) {
    learner *r = &a->regions[i];
    for (size_t w = 0; r->workers && w < gt_job_workers(a->job, i); w++)
      close_worker(&r->workers[w]);
    gt_free(r->workers);
    gt_loader_close(r->train);
    if (r->owns_test) gt_loader_close(r->test);
  }
  gt_graph_close(a->model);
  gt_sim_data_close(&a->data);
  gt_free(a->regions);
  gt_free(a);
}

const gt_arrays *gt_sim_initial(const gt_sim_arithmetic *a) {
  return gt_graph_arrays(a->model);
}

void gt_sim_judge(const gt_sim_arithmetic *a, size_t region, gt_ps_spec *spec) {
  const bool tests = a->data.infos[region].ntest > 0;
  spec->ranking = a->ranking;
  if (a->ranking && tests)
    spec->test_labels = gt_dataset_labels(gt_sim_data_of(&a->data, region), GT_SPLIT_TEST);
  if (gt_graph_of_text(a->model)) spec->predictions = gt_graph_predictions(a->model);
}
