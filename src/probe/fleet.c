/* The fleet of a job, its workers as devices of a pipeline: their power, and the times of the
   model's operations on them. */
#include <stdio.h>
#include <string.h>

#include "geotrain/ps_work_time.h"
#include "internal.h"

/* ---- cores ----------------------------------------------------------------------------------- */

/* A worker that is not bound to a core can run on several, and the cores of a machine differ: by
   other processes, in a virtual machine by its neighbors.  So the worker is measured on all of them
   in turn. */

/* Returns the number of the n-th allowed core. */
static size_t core_at(const gt_probe_cores *c, size_t n) {
  size_t core = 0;
  while (!CPU_ISSET(core, &c->allowed) || n-- > 0) core++;
  return core;
}

void gt_probe_cores_open(gt_probe_cores *cores, size_t place) {
  *cores = (gt_probe_cores){0};
  if (sched_getaffinity(0, sizeof cores->allowed, &cores->allowed) != 0) return;
  cores->n = (size_t)CPU_COUNT(&cores->allowed);
  cores->first = cores->n > 0 ? place % cores->n : 0;
}

void gt_probe_cores_take(const gt_probe_cores *cores, size_t turn) {
  cpu_set_t one;
  if (cores->n < 2) return;
  CPU_ZERO(&one);
  CPU_SET(core_at(cores, (cores->first + turn) % cores->n), &one);
  sched_setaffinity(0, sizeof one, &one); /* if that fails, it stays on its core */
}

void gt_probe_cores_close(const gt_probe_cores *cores) {
  if (cores->n > 1) sched_setaffinity(0, sizeof cores->allowed, &cores->allowed);
}

/* ---- reference tasks ------------------------------------------------------------------------- */

/* Reference tasks: the work of training, in sizes that fit any CPU's caches and take about a
   millisecond on one core.  Their times give the power of a device. */

#define BLOCKS    12   /* one core after another */
#define TASK_S    0.05 /* mean time of a block, for each task */
#define REPEATS   3    /* of a block, at least */
#define TURNS_MAX 512  /* at most */

const char *const gt_probe_tasks[GT_PROBE_TASKS] = {"product", "product, bf16", "convolution",
                                                    "attention", "LSTM cell"};

/* Square products of 256; 4 images of 16 x 16 x 32, 32 windows of 3 x 3; attention of 2 sequences
   of 128 positions, 4 heads of 32; an LSTM of 128 units for 4 steps of 32 sequences. */
static const gt_conv_shape product_shape = {.H = 1,
                                            .W = 1,
                                            .C = 256,
                                            .K = 256,
                                            .R = 1,
                                            .S = 1,
                                            .P = 1,
                                            .Q = 1,
                                            .stride = 1},
                           conv_shape = {.H = 16,
                                         .W = 16,
                                         .C = 32,
                                         .K = 32,
                                         .R = 3,
                                         .S = 3,
                                         .P = 16,
                                         .Q = 16,
                                         .stride = 1,
                                         .pad = 1};
static const gt_attention_shape attention_shape = {.T = 128, .D = 128, .heads = 4};
enum { ROWS = 256, IMAGES = 4, SEQUENCES = 2, STEPS = 4, CELLS = 32, UNITS = 128 };
static const uint32_t cell_rows[STEPS + 1] = {0, CELLS, 2 * CELLS, 3 * CELLS, 4 * CELLS};
static const gt_lstm_shape cell_shape = {.T = STEPS, .I = UNITS, .H = UNITS, .first = cell_rows};

/* A convolution or product with its inputs and outputs. */
typedef struct {
  gt_layer *layer;
  size_t n; /* images or rows */
  float *x, *y, *dx, *dy, *w, *dw, *work;
} layer_task;

typedef struct {
  const gt_kernels *kernels;
  gt_prepared_context *context;
  layer_task layers[GT_PROBE_CONVOLUTION + 1];
  float *qkv, *attended, *dqkv, *dattended, *lse, *attention_work;
  float *h, *c, *gates, *x, *dx, *dy, *w, *dw, *b, *db, *cell_work;
} tasks;

/* Returns small numbers, so that no product overflows or becomes denormal. */
static float *numbers(size_t n, uint64_t key) {
  gt_rng rng = gt_rng_make(key, GT_RNG_SYNTH, n, 0);
  float *x = GT_NEW_ARRAY(float, n);
  for (size_t i = 0; i < n; i++) x[i] = (float)(0.1 * gt_rng_uniform(&rng) - 0.05);
  return x;
}

static void open_layer(tasks *b, layer_task *t, bool linear, gt_precision precision, size_t n) {
  const gt_conv_shape *s = linear ? &product_shape : &conv_shape;
  const gt_layer_spec spec = {
      .linear = linear,
      .conv = {.shape = *s, .needs_input_gradient = true, .precision = precision}};
  const size_t in = n * s->H * s->W * s->C, out = n * s->P * s->Q * s->K,
               weights = s->R * s->S * s->C * s->K;
  *t = (layer_task){.layer = gt_layer_create(b->kernels, &b->context, &spec, NULL), .n = n};
  gt_layer_prepare(t->layer, n);
  t->x = numbers(in, 1);
  t->dx = numbers(in, 2);
  t->y = numbers(out, 3);
  t->dy = numbers(out, 4);
  t->w = numbers(weights, 5);
  t->dw = numbers(weights, 6);
  t->work = GT_NEW_ARRAY(float, gt_layer_work(t->layer, n) + 1);
}

static void close_layer(layer_task *t) {
  float *all[] = {t->x, t->y, t->dx, t->dy, t->w, t->dw, t->work};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) gt_free(all[i]);
  gt_layer_close(t->layer);
}

static void open_attention(tasks *b) {
  const gt_attention_shape *s = &attention_shape;
  const size_t n = SEQUENCES * s->T * s->D;
  b->qkv = numbers(3 * n, 7);
  b->dqkv = numbers(3 * n, 8);
  b->attended = numbers(n, 9);
  b->dattended = numbers(n, 10);
  b->lse = numbers(SEQUENCES * s->heads * s->T, 11);
  b->attention_work = GT_NEW_ARRAY(float, gt_attention_work(s));
}

static void open_cell(tasks *b) {
  const size_t rows = STEPS * CELLS;
  b->h = numbers((rows + CELLS) * UNITS, 12);
  b->c = numbers((rows + CELLS) * UNITS, 13);
  b->gates = numbers(rows * 4 * UNITS, 14);
  b->x = numbers(rows * UNITS, 15);
  b->dx = numbers(rows * UNITS, 16);
  b->dy = numbers(CELLS * UNITS, 17);
  b->w = numbers(8 * UNITS * UNITS, 18);
  b->dw = numbers(8 * UNITS * UNITS, 19);
  b->b = numbers(8 * UNITS, 20);
  b->db = numbers(8 * UNITS, 21);
  b->cell_work = GT_NEW_ARRAY(float, gt_lstm_work(CELLS, UNITS));
}

static void open_tasks(tasks *b) {
  const char *why;
  *b = (tasks){.kernels = gt_kernels_find("auto")};
  open_layer(b, &b->layers[GT_PROBE_PRODUCT], true, GT_F32, ROWS);
  open_layer(b, &b->layers[GT_PROBE_PRODUCT_BF16], true, gt_kernels_bf16(&why) ? GT_BF16 : GT_F32,
             ROWS);
  open_layer(b, &b->layers[GT_PROBE_CONVOLUTION], false, GT_F32, IMAGES);
  open_attention(b);
  open_cell(b);
}

static void close_tasks(tasks *b) {
  float *all[] = {b->qkv, b->dqkv, b->attended, b->dattended, b->lse,      b->attention_work,
                  b->h,   b->c,    b->gates,    b->x,         b->dx,       b->dy,
                  b->w,   b->dw,   b->b,        b->db,        b->cell_work};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) gt_free(all[i]);
  for (int t = 0; t <= GT_PROBE_CONVOLUTION; t++) close_layer(&b->layers[t]);
  if (b->context) b->kernels->prepared()->close(b->context);
}

/* Runs a task forward and backward. */
static void run(const tasks *b, int task) {
  const gt_kernels *k = b->kernels;
  if (task <= GT_PROBE_CONVOLUTION) {
    const layer_task *t = &b->layers[task];
    gt_layer_forward(t->layer, t->y, t->x, t->w, NULL, t->n, t->work);
    gt_layer_backward_input(t->layer, t->dx, t->dy, t->w, t->n, t->work);
    gt_layer_backward_weight(t->layer, t->dw, NULL, t->dy, t->x, t->n, t->work);
  } else if (task == GT_PROBE_ATTENTION) {
    k->attention_forward(b->attended, b->lse, b->qkv, &attention_shape, SEQUENCES,
                         b->attention_work);
    k->attention_backward(b->dqkv, b->dattended, b->attended, b->lse, b->qkv, &attention_shape,
                          SEQUENCES, b->attention_work);
  } else {
    k->lstm_forward(b->h, b->c, b->gates, b->x, b->w, b->b, &cell_shape, b->cell_work);
    k->lstm_backward(b->dx, b->dw, b->db, b->dy, b->gates, b->x, b->h, b->c, b->w, &cell_shape,
                     b->cell_work);
  }
}

/* The tasks take turns, so that a disturbance affects all of them.  The first turn finds cold
   caches and does not count.  The result is the median: workers of a host do not start and end
   together, so the least time would be that of the last worker, which computes alone. */
static void run_block(const tasks *b, gt_ns end, double times_s[GT_PROBE_TASKS]) {
  static double each[GT_PROBE_TASKS][TURNS_MAX];
  size_t n = 0;
  for (int task = 0; task < GT_PROBE_TASKS; task++) run(b, task);
  for (; n < REPEATS || (n < TURNS_MAX && gt_now() < end); n++)
    for (int task = 0; task < GT_PROBE_TASKS; task++) {
      const gt_ns from = gt_now();
      run(b, task);
      each[task][n] = gt_seconds(gt_now() - from);
    }
  for (int task = 0; task < GT_PROBE_TASKS; task++) times_s[task] = gt_probe_median(each[task], n);
}

void gt_probe_reference(double times_s[GT_PROBE_TASKS], size_t place) {
  tasks b;
  gt_probe_cores cores;
  open_tasks(&b);
  gt_probe_cores_open(&cores, place);
  memset(times_s, 0, GT_PROBE_TASKS * sizeof *times_s);
  const gt_ns from = gt_now();
  for (size_t block = 0; block < BLOCKS; block++) {
    double of[GT_PROBE_TASKS];
    gt_probe_cores_take(&cores, block);
    run_block(&b, from + gt_from_seconds((double)(block + 1) * TASK_S * GT_PROBE_TASKS), of);
    for (int task = 0; task < GT_PROBE_TASKS; task++) times_s[task] += of[task] / BLOCKS;
  }
  gt_probe_cores_close(&cores);
  close_tasks(&b);
}

/* ---- the passes of a model's operations ------------------------------------------------------ */

/* Times a sample in every operation of a model: forward, backward-input and backward-weight
   separately, as stages of a pipeline run them.  Operations between which a pipeline cannot be cut
   count as one. */

#define TURNS  3 /* at least */
#define SPAN_S 2.0

typedef struct {
  gt_graph *graph;
  const gt_span *spans;
  size_t n;
  const gt_micro_batch *batch;
  gt_probe_passes *passes; /* n */
} timing;

size_t gt_probe_spans(const gt_graph *graph, gt_span *spans) {
  size_t n = 0, first = 0;
  for (size_t i = 0; i < gt_graph_operations(graph); i++) {
    if (!gt_graph_operation(graph, i).ends) continue;
    if (spans) spans[n] = (gt_span){first, i + 1};
    first = i + 1;
    n++;
  }
  return n;
}

/* Returns the bytes of a span's output for the micro-batch; its gradient has as many. */
static size_t output_bytes(const timing *b, size_t span) {
  return b->batch->n * gt_graph_operation(b->graph, b->spans[span].end - 1).output_bytes;
}

static void keep(double *least_s, gt_ns from, size_t samples) {
  const double s = gt_seconds(gt_now() - from) / (double)samples;
  if (*least_s <= 0 || s < *least_s) *least_s = s;
}

static void forward(const timing *b, size_t span) {
  gt_metrics m;
  if (span > 0)
    memcpy(gt_graph_span_input(b->graph, span, 0), gt_graph_span_output(b->graph, span - 1, 0),
           output_bytes(b, span - 1));
  const gt_ns from = gt_now();
  gt_graph_forward(b->graph, span, 0, b->batch, true, &m);
  keep(&b->passes[span].forward_s, from, b->batch->n);
}

static void backward(const timing *b, size_t span) {
  if (span + 1 < b->n)
    memcpy(gt_graph_span_output_gradient(b->graph, span, 0),
           gt_graph_span_input_gradient(b->graph, span + 1, 0), output_bytes(b, span));
  gt_ns from = gt_now();
  gt_graph_backward_input(b->graph, span, 0, b->batch);
  keep(&b->passes[span].input_s, from, b->batch->n);
  from = gt_now();
  gt_graph_backward_weight(b->graph, span, 0, b->batch, true);
  keep(&b->passes[span].weight_s, from, b->batch->n);
}

/* The first turn finds cold caches. */
void gt_probe_passes_of(gt_graph *graph, const gt_span *spans, size_t n,
                        const gt_micro_batch *batch, gt_probe_passes *passes) {
  const timing b = {graph, spans, n, batch, passes};
  const gt_ns end = gt_now() + gt_from_seconds(SPAN_S);
  for (int turn = 0; turn <= TURNS || gt_now() < end; turn++) {
    if (turn <= 1) memset(passes, 0, n * sizeof *passes);
    for (size_t span = 0; span < n; span++) forward(&b, span);
    for (size_t span = n; span-- > 0;) backward(&b, span);
    gt_graph_gradients_end(graph);
  }
}

/* ---- the operations of the job's model on all workers at once -------------------------------- */

typedef struct {
  gt_probe_state *p;
  gt_graph *graph;
  gt_span *spans;
  size_t n; /* spans */
  gt_loader *loader;
  float *x;
  int32_t *y;
  gt_micro_batch batch;
} bench;

static gt_status load(bench *b) {
  const gt_run *run = &b->p->run;
  const size_t n = run->batch;
  b->x = GT_NEW_ARRAY(float, n * run->data.h * run->data.w * run->data.c);
  b->y = GT_NEW_ARRAY(int32_t, n);
  GT_TRY(gt_setup_loader(run, n, &b->loader));
  gt_loader_range(b->loader, 0, n, b->x, b->y);
  b->batch = (gt_micro_batch){b->x, b->y, n};
  return GT_OK;
}

static gt_status open_bench(bench *b, gt_probe_state *p) {
  const gt_run *run = &p->run;
  gt_graph_spec spec = gt_setup_graph_spec(run);
  *b = (bench){.p = p, .n = gt_probe_spans(run->graph, NULL)};
  b->spans = GT_NEW_ARRAY(gt_span, b->n);
  gt_probe_spans(run->graph, b->spans);
  if (run->roles.is_ps) return GT_OK;
  spec.batch_max = run->batch;
  spec.slots = 1;
  spec.spans = b->spans;
  spec.nspans = b->n;
  spec.micro_batches = 1;
  GT_TRY(gt_graph_create(&b->graph, &spec));
  gt_graph_init(b->graph, run->job->seed);
  gt_graph_prepare(b->graph, run->batch);
  return load(b);
}

static void close_bench(bench *b) {
  gt_graph_close(b->graph);
  gt_loader_close(b->loader);
  gt_free(b->spans);
  gt_free(b->x);
  gt_free(b->y);
}

static void gather(gt_probe_state *p) {
  const gt_roles *roles = &p->run.roles;
  p->all_passes = GT_NEW_ARRAY(gt_probe_passes, (size_t)roles->world_size * p->noperations);
  gt_peers_gather(roles->world, p->passes, p->noperations * sizeof *p->passes, p->all_passes,
                  "the operations' times of all workers", p->limit_s);
}

static void operations(gt_probe_state *p) {
  bench b;
  const gt_status status = gt_agree(p->run.roles.world, open_bench(&b, p), p->limit_s);
  if (status == GT_OK) {
    p->noperations = b.n;
    p->passes = GT_NEW_ARRAY(gt_probe_passes, b.n);
    gt_probe_meet(p, "the other ranks before the operations");
    if (!p->run.roles.is_ps) gt_probe_passes_of(b.graph, b.spans, b.n, &b.batch, p->passes);
    gt_probe_meet(p, "the operations of other workers");
    gather(p);
  } else {
    snprintf(p->operations_error, sizeof p->operations_error, "%s", gt_error_text());
  }
  close_bench(&b);
}

/* ---- all workers ----------------------------------------------------------------------------- */

/* A run slows its workers by compute.speed and speeds, so the power includes them. */
static double power_of(const gt_probe_state *p, const double *times_s) {
  static const double weights[GT_PROBE_TASKS] = {1, 1, 1, 1, 1};
  return gt_pipe_power(times_s, weights, GT_PROBE_TASKS) /
         gt_cost_slowdown(p->run.job, p->run.roles.region_id, (size_t)p->run.roles.region_rank - 1);
}

/* All workers compute at once, as in training. */
static void measure_devices(gt_probe_state *p) {
  gt_probe_meet(p, "the other ranks before the reference tasks");
  if (!p->run.roles.is_ps) {
    gt_probe_reference(p->own.task_s, (size_t)p->run.roles.world_rank);
    p->own.power = power_of(p, p->own.task_s);
  }
  p->own.memory_bytes = gt_memory_free("");
  gt_probe_meet(p, "the reference tasks");
}

static void gather_pairs(gt_probe_state *p) {
  const gt_roles *roles = &p->run.roles;
  const size_t n = (size_t)roles->world_size;
  p->all_pairs = GT_NEW_ARRAY(gt_pipe_link, n * n);
  gt_peers_gather(roles->world, p->pairs, n * sizeof *p->pairs, p->all_pairs,
                  "the links of all workers", p->limit_s);
}

void gt_probe_fleet(gt_probe_state *p) {
  measure_devices(p);
  if (p->run.graph) operations(p);
  gt_probe_pairs(p);
  gather_pairs(p);
}
