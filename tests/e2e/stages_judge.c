/* stages_judge JOB.yaml [[COPY/]STEP:MICROS...] [KEY=VALUE...]: trains the model of a job with a
   pipeline in this process and prints the SHA-256 of the parameters: what a run of the job must end
   with, whatever its schedule, regions and messages.  From step STEP on (from 1; ascending) steps
   of copy COPY (from 1; without it, of the first) have MICROS micro-batches; before that, as many
   as the job says.  It uses the model, the data and the optimizer, and nothing of pipelines,
   parameter servers and MPI.

   A stage of d workers is d copies of its part of the model.  Micro-batches go through all stages
   one after the other, forward and back; each copy has an equal run of their samples and adds up
   its gradients in their order.  At the end of the step the gradient of a stage is the mean over
   its copies, in their order; to that of a tensor that another stage borrows (a tied head) the
   other's is added, copy by copy before the mean if both stages have as many; the sum over
   micro-batches becomes their mean.  Then the step is made as without a pipeline.

   Of several copies of the pipeline (ssgd, sma; without running statistics) each has a model and
   samples of its own.  With ssgd all make the step with the weighted mean of their gradients, added
   in the order of the copies; with sma each makes its own, and every sync.period steps and at the
   end all models become their mean. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/data.h"
#include "geotrain/job.h"
#include "geotrain/nn_span.h"

enum { COPIES = 8, PIPELINES = 8 };

/* Of a stage. */
typedef struct {
  size_t copies;
  gt_graph *graphs[COPIES];
} stage;

/* Of a run of operations. */
typedef struct {
  size_t of; /* its stage */
  size_t output_bytes;
  char *output, *gradient; /* of the micro-batch: its output, and the gradient of that */
} part;

/* From step `from` on, counted from 0. */
typedef struct {
  int64_t from;
  size_t micro_batches, micro_samples;
  stage *stages;
  part *parts;
} shape;

typedef struct {
  gt_job *job;
  size_t copy, region; /* of the pipeline; region: that has its data */
  float share;         /* in means over copies */
  gt_dataset *dataset;
  gt_loader *loader;
  gt_order order;
  char *x;
  int32_t *y;
  size_t sample_bytes;
  shape *shapes;
  size_t nshapes;
  /* Of the step. */
  size_t micro_batches, micro_samples;
  gt_graph *whole; /* parameters, gradients and buffers of the whole model */
  gt_optim *optim;
  size_t nstages, nparts;
  stage *stages;
  part *parts;
  gt_span *spans; /* of each part */
} judge;

static void must(bool ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "stages_judge: %s: %s\n", what, gt_error_text());
  exit(1);
}

static void done(gt_status status) {
  must(status == GT_OK, "failed");
}

/* ---- the cut --------------------------------------------------------------------------------- */

static bool is_named(const char *operation, const char *name) {
  const size_t n = strlen(name);
  return strncmp(operation, name, n) == 0 && (operation[n] == '\0' || operation[n] == '.');
}

/* Returns the end of the last operation of this name. */
static size_t end_of(const judge *j, const char *name) {
  size_t end = gt_graph_operations(j->whole);
  while (end > 0 && !is_named(gt_graph_operation(j->whole, end - 1).name, name)) end--;
  must(end > 0, name);
  return end;
}

/* Opens the parts: stages go forward through the model, and with two names each back again. */
static void open_parts(judge *j) {
  const size_t n = j->nstages;
  j->parts = GT_NEW_ARRAY(part, j->nparts);
  for (size_t k = 0, first = 0; k < j->nparts; first = j->spans[k++].end) {
    const size_t of = k < n ? k : 2 * n - 1 - k;
    const gt_job_stage *s = &j->job->pipeline.stages[of];
    const bool last = k + 1 == j->nparts;
    must(last || k / n < s->nlast, "all stages but the last need names");
    j->spans[k] =
        (gt_span){first, last ? gt_graph_operations(j->whole) : end_of(j, s->last[k / n])};
    const size_t bytes = gt_graph_operation(j->whole, j->spans[k].end - 1).output_bytes;
    j->parts[k] = (part){.of = of,
                         .output_bytes = bytes,
                         .output = gt_alloc(j->micro_samples, bytes),
                         .gradient = gt_alloc(j->micro_samples, bytes)};
  }
}

static gt_graph_spec spec_of(const judge *j) {
  const gt_dataset_info *d = gt_dataset_describe(j->dataset);
  gt_graph_spec spec = gt_graph_spec_of(j->job);
  spec.shape = (gt_sample_shape){d->h, d->w, d->c, d->classes, d->features};
  spec.text = d->text;
  spec.labelled = !d->text;
  spec.kernels = gt_kernels_find(gt_kernels_names[j->job->train.kernels]);
  return spec;
}

/* Opens a stage; all replicas have the parameters of the whole model, and gradients of their
   own. */
static void open_stage(judge *j, size_t s) {
  bool *runs = GT_NEW_ARRAY(bool, j->nparts);
  gt_graph_spec spec = spec_of(j);
  stage *st = &j->stages[s];
  st->copies = (size_t)j->job->pipeline.stages[s].workers;
  must(st->copies <= COPIES, "too many workers");
  for (size_t k = 0; k < j->nparts; k++) runs[k] = j->parts[k].of == s;
  spec.spans = j->spans;
  spec.runs = runs;
  spec.nspans = j->nparts;
  spec.slots = 1;
  spec.micro_batches = j->micro_batches;
  spec.fused = true;
  spec.batch = spec.batch_max = j->micro_samples / st->copies;
  for (size_t i = 0; i < st->copies; i++) {
    const gt_arrays *a = gt_graph_arrays(j->whole);
    done(gt_graph_create(&st->graphs[i], &spec));
    gt_graph_adopt(st->graphs[i], a->params.data, NULL, a->buffers.data);
    gt_graph_prepare(st->graphs[i], spec.batch);
  }
  gt_free(runs);
}

/* ---- a step ---------------------------------------------------------------------------------- */

static gt_micro_batch samples_of(const judge *j, size_t micro, size_t copy, size_t share) {
  const size_t first = micro * j->micro_samples + copy * share;
  return (gt_micro_batch){j->x + first * j->sample_bytes, j->y + first, share};
}

static void forward(judge *j, size_t k, size_t micro) {
  const stage *s = &j->stages[j->parts[k].of];
  const size_t share = j->micro_samples / s->copies, out = share * j->parts[k].output_bytes;
  for (size_t i = 0; i < s->copies; i++) {
    const gt_micro_batch batch = samples_of(j, micro, i, share);
    gt_metrics metrics;
    if (k > 0) {
      const size_t in = share * j->parts[k - 1].output_bytes;
      memcpy(gt_graph_span_input(s->graphs[i], k, 0), j->parts[k - 1].output + i * in, in);
    }
    gt_graph_forward(s->graphs[i], k, 0, &batch, true, &metrics);
    memcpy(j->parts[k].output + i * out, gt_graph_span_output(s->graphs[i], k, 0), out);
  }
}

static void backward(judge *j, size_t k, size_t micro) {
  const stage *s = &j->stages[j->parts[k].of];
  const size_t share = j->micro_samples / s->copies, out = share * j->parts[k].output_bytes;
  for (size_t i = 0; i < s->copies; i++) {
    const gt_micro_batch batch = samples_of(j, micro, i, share);
    if (k + 1 < j->nparts)
      memcpy(gt_graph_span_output_gradient(s->graphs[i], k, 0), j->parts[k].gradient + i * out,
             out);
    gt_graph_backward(s->graphs[i], k, 0, &batch, micro == 0);
    if (k > 0) {
      const size_t in = share * j->parts[k - 1].output_bytes;
      memcpy(j->parts[k - 1].gradient + i * in, gt_graph_span_input_gradient(s->graphs[i], k, 0),
             in);
    }
  }
}

/* Sets y to the mean over the stage's replicas of gradients that begin at `offset`. */
static void mean_of(const judge *j, size_t s, size_t offset, gt_vec y) {
  const stage *st = &j->stages[s];
  const float *grads[COPIES];
  int64_t samples[COPIES];
  for (size_t i = 0; i < st->copies; i++) {
    grads[i] = gt_graph_arrays(st->graphs[i])->grads.data + offset;
    samples[i] = (int64_t)(j->micro_batches * j->micro_samples / st->copies);
  }
  if (st->copies == 1)
    memcpy(y.data, grads[0], y.n * sizeof(float));
  else
    gt_vec_mean(y, grads, samples, st->copies);
}

static size_t stage_of(const judge *j, size_t operation) {
  size_t k = 0;
  while (operation >= j->spans[k].end) k++;
  return j->parts[k].of;
}

static gt_vec grads_at(const stage *s, size_t copy, size_t offset, size_t n) {
  return gt_vec_range(gt_graph_arrays(s->graphs[copy])->grads, offset, n);
}

/* Adds the gradient of weights that stage s borrows from another: the owner's first tensor, which
   begins at `offset`. */
static void add_borrowed(const judge *j, size_t owner, size_t s, size_t offset) {
  const gt_arrays *a = gt_graph_arrays(j->whole);
  const size_t copies = j->stages[s].copies;
  size_t t = 0;
  while (a->views[t].offset != offset) t++;
  const gt_vec both = gt_vec_range(a->grads, offset, a->views[t].count);
  float *mean = GT_NEW_ARRAY(float, both.n);
  if (j->stages[owner].copies == copies) {
    /* in the borrower's gradients, all of which a step writes */
    for (size_t c = 0; c < copies; c++)
      gt_vec_axpy(grads_at(&j->stages[s], c, offset, both.n), 1,
                  grads_at(&j->stages[owner], c, offset, both.n));
    mean_of(j, s, offset, both);
  } else {
    mean_of(j, s, offset, gt_vec_of(mean, both.n));
    gt_vec_axpy(both, 1, gt_vec_of(mean, both.n));
  }
  gt_free(mean);
}

static void sum_up(const judge *j) {
  const gt_vec grads = gt_graph_arrays(j->whole)->grads;
  const size_t n = gt_graph_operations(j->whole);
  size_t *offsets = GT_NEW_ARRAY(size_t, n);
  for (size_t i = 0, offset = 0; i < n; offset += gt_graph_operation(j->whole, i++).params) {
    offsets[i] = offset;
    mean_of(j, stage_of(j, i), offset,
            gt_vec_range(grads, offset, gt_graph_operation(j->whole, i).params));
  }
  for (size_t i = 0; i < n; i++) {
    const size_t owner = gt_graph_operation(j->whole, i).borrows;
    if (owner < n && stage_of(j, owner) != stage_of(j, i))
      add_borrowed(j, stage_of(j, owner), stage_of(j, i), offsets[owner]);
  }
  gt_free(offsets);
  for (size_t i = 0; j->micro_batches > 1 && i < grads.n; i++)
    grads.data[i] *= 1.0F / (float)j->micro_batches;
}

/* Sets the shape of the following steps; each has gradients of its own. */
static void take_shape(judge *j, const shape *s) {
  j->micro_batches = s->micro_batches;
  j->micro_samples = s->micro_samples;
  j->stages = s->stages;
  j->parts = s->parts;
}

/* Computes the gradient of a step. */
static void compute(judge *j, int64_t number) {
  for (size_t i = 0; i < j->nshapes; i++)
    if (j->shapes[i].from == number) take_shape(j, &j->shapes[i]);
  gt_loader_batch(j->loader, &j->order, number, j->x, j->y);
  for (size_t micro = 0; micro < j->micro_batches; micro++) {
    for (size_t k = 0; k < j->nparts; k++) forward(j, k, micro);
    for (size_t k = j->nparts; k-- > 0;) backward(j, k, micro);
  }
  for (size_t s = 0; s < j->nstages; s++)
    for (size_t i = 0; i < j->stages[s].copies; i++) gt_graph_gradients_end(j->stages[s].graphs[i]);
  sum_up(j);
}

/* ---- copies ---------------------------------------------------------------------------------- */

static gt_vec params_of(const judge *j) {
  return gt_graph_arrays(j->whole)->params;
}

static gt_vec grads_of(const judge *j) {
  return gt_graph_arrays(j->whole)->grads;
}

/* Replaces all vectors by their mean. */
static void average(judge *copies, size_t n, gt_vec (*of)(const judge *j)) {
  const size_t floats = of(copies).n;
  float *sum = GT_NEW_ARRAY(float, floats);
  const gt_vec mean = gt_vec_of(sum, floats);
  gt_vec_set_scaled(mean, copies[0].share, of(copies));
  for (size_t c = 1; c < n; c++) gt_vec_axpy(mean, copies[c].share, of(&copies[c]));
  for (size_t c = 0; c < n; c++) gt_vec_copy(of(&copies[c]), mean);
  gt_free(sum);
}

static void step(const gt_job *job, judge *copies, size_t n, int64_t number) {
  const bool models = job->sync.strategy == GT_STRATEGY_SMA,
             last = number + 1 == job->train.until.steps;
  for (size_t c = 0; c < n; c++) compute(&copies[c], number);
  if (n > 1 && !models) average(copies, n, grads_of);
  for (size_t c = 0; c < n; c++)
    gt_optim_step(copies[c].optim, params_of(&copies[c]), grads_of(&copies[c]),
                  gt_vec_of(NULL, params_of(&copies[c]).n));
  if (n > 1 && models && (last || (number + 1) % job->sync.period == 0))
    average(copies, n, params_of);
}

/* ---- open and close -------------------------------------------------------------------------- */

static void open_samples(judge *j, const gt_dataset_info *infos) {
  const size_t batch = (size_t)j->job->train.batch;
  const gt_dataset_info *d = gt_dataset_describe(j->dataset);
  size_t *files = GT_NEW_ARRAY(size_t, j->job->nregions);
  gt_data_samples own, held;
  done(gt_data_files(j->job, infos, files));
  done(gt_data_part(j->job, files, j->region, gt_dataset_labels(j->dataset, GT_SPLIT_TRAIN),
                    d->ntrain, &own, &held));
  done(gt_loader_create(&j->loader, j->dataset, GT_SPLIT_TRAIN, own.samples, own.n));
  j->order = (gt_order){
      .seed = j->job->seed, .region = j->region, .n = own.n, .batch = batch, .whole = true};
  j->sample_bytes = d->h * d->w * d->c * sizeof(float);
  j->x = gt_alloc(batch, j->sample_bytes);
  j->y = GT_NEW_ARRAY(int32_t, batch);
  gt_free(files);
  gt_free(own.samples);
}

static void open_data(const gt_job *job, judge *copies, size_t n) {
  gt_dataset_info *infos = GT_NEW_ARRAY(gt_dataset_info, job->nregions);
  double samples = 0;
  for (size_t c = 0; c < n; c++) {
    done(gt_dataset_open(&copies[c].dataset, gt_data_path(job, copies[c].region)));
    infos[copies[c].region] = *gt_dataset_describe(copies[c].dataset);
  }
  for (size_t c = 0; c < n; c++) {
    open_samples(&copies[c], infos);
    samples += (double)copies[c].order.n;
  }
  for (size_t c = 0; c < n; c++) {
    const bool by_samples = job->sync.weights == GT_WEIGHTS_SAMPLES;
    const double share = by_samples ? (double)copies[c].order.n / samples : 1.0 / (double)n;
    copies[c].share = (float)share;
  }
  gt_free(infos);
}

/* Reads those of the first n words that are [COPY/]STEP:MICROS, for this copy. */
static void read_shapes(judge *j, char **words, size_t n) {
  j->shapes = GT_NEW_ARRAY(shape, 1 + n);
  j->nshapes = 1;
  for (size_t i = 0; i < n; i++) {
    const char *behind = strchr(words[i], '/');
    const size_t copy = behind ? strtoul(words[i], NULL, 10) : 1;
    long long from;
    size_t micro_batches;
    must(sscanf(behind ? behind + 1 : words[i], "%lld:%zu", &from, &micro_batches) == 2 && from > 0,
         words[i]);
    if (copy == j->copy + 1)
      j->shapes[j->nshapes++] = (shape){.from = from - 1, .micro_batches = micro_batches};
  }
}

static void open_optim(judge *j) {
  const gt_arrays *a = gt_graph_arrays(j->whole);
  const gt_job *job = j->job;
  const gt_optim_spec spec = {.kind = job->train.optimizer.name,
                              .nesterov = job->train.optimizer.nesterov,
                              .schedule = {.kind = job->train.schedule.name,
                                           .lr = job->train.optimizer.lr,
                                           .gamma = job->train.schedule.gamma,
                                           .lr_min = job->train.schedule.lr_min,
                                           .warmup_steps = job->train.schedule.warmup_steps,
                                           .step_every = job->train.schedule.step_every,
                                           .total_steps = job->train.until.steps},
                              .momentum = job->train.optimizer.momentum,
                              .weight_decay = job->train.optimizer.weight_decay,
                              .beta1 = job->train.optimizer.beta1,
                              .beta2 = job->train.optimizer.beta2,
                              .epsilon = job->train.optimizer.epsilon,
                              .clip = job->train.clip,
                              .tensors = a->views,
                              .ntensors = a->nviews};
  must(job->train.until.steps > 0, "train.until needs steps");
  done(gt_optim_create(&j->optim, &spec, a->params.n, true));
}

static void open_shape(judge *j, shape *of) {
  must((size_t)j->job->train.batch % of->micro_batches == 0,
       "the micro-batches do not divide the batch");
  of->micro_samples = (size_t)j->job->train.batch / of->micro_batches;
  take_shape(j, of);
  open_parts(j);
  j->stages = of->stages = GT_NEW_ARRAY(stage, j->nstages);
  of->parts = j->parts;
  for (size_t s = 0; s < j->nstages; s++) open_stage(j, s);
}

static void open_judge(judge *j) {
  const gt_graph_spec spec = spec_of(j);
  done(gt_graph_create(&j->whole, &spec));
  gt_graph_init(j->whole, j->job->seed);
  must(gt_job_replicas(j->job) == 1 || gt_graph_arrays(j->whole)->buffers.n == 0,
       "copies of a model with running statistics");
  j->nstages = j->job->pipeline.nstages;
  j->nparts = j->nstages * gt_job_chunks(j->job);
  j->spans = GT_NEW_ARRAY(gt_span, j->nparts);
  j->shapes[0].micro_batches = (size_t)j->job->pipeline.micro_batches;
  for (size_t i = 0; i < j->nshapes; i++) open_shape(j, &j->shapes[i]);
  open_optim(j);
}

static void close_shape(judge *j, shape *of) {
  take_shape(j, of);
  for (size_t s = 0; s < j->nstages; s++)
    for (size_t i = 0; i < j->stages[s].copies; i++) gt_graph_close(j->stages[s].graphs[i]);
  for (size_t k = 0; k < j->nparts; k++) {
    gt_free(j->parts[k].output);
    gt_free(j->parts[k].gradient);
  }
  gt_free(j->stages);
  gt_free(j->parts);
}

static void close_judge(judge *j) {
  for (size_t i = 0; i < j->nshapes; i++) close_shape(j, &j->shapes[i]);
  void *owned[] = {j->shapes, j->spans, j->x, j->y};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) gt_free(owned[i]);
  gt_optim_close(j->optim);
  gt_graph_close(j->whole);
  gt_loader_close(j->loader);
  gt_dataset_close(j->dataset);
}

/* words: those of the shapes, of all copies. */
static void train(gt_job *job, char **words, size_t nwords) {
  judge copies[PIPELINES] = {0};
  const size_t n = gt_job_replicas(job);
  char hex[GT_SHA256_HEX];
  must(n <= PIPELINES, "too many copies");
  must(n == 1 || job->sync.strategy == GT_STRATEGY_SSGD || job->sync.strategy == GT_STRATEGY_SMA,
       "copies that do not wait for each other");
  for (size_t c = 0; c < n; c++) {
    copies[c] = (judge){.job = job, .copy = c, .region = gt_job_stage_region(job, c, 0)};
    read_shapes(&copies[c], words, nwords);
  }
  open_data(job, copies, n);
  for (size_t c = 0; c < n; c++) open_judge(&copies[c]);
  for (int64_t i = 0; i < job->train.until.steps; i++) step(job, copies, n, i);
  const gt_vec params = params_of(copies);
  gt_sha256_hex(params.data, params.n * sizeof(float), hex);
  puts(hex);
  for (size_t c = 0; c < n; c++) close_judge(&copies[c]);
}

int main(int argc, char **argv) {
  gt_job *job;
  size_t words = 0;
  if (argc < 2) return 2;
  gt_isa_fit_blas(argv); /* as geotrain does */
  const size_t n = (size_t)argc - 2;
  while (words < n && !strchr(argv[2 + words], '=')) words++;
  done(gt_job_load(&job, argv[1], (const char *const *)argv + 2 + words, n - words));
  train(job, argv + 2, words);
  gt_job_close(job);
  return 0;
}
