/* Reference tasks: the work of training, in sizes that fit any CPU's caches and take about a
   millisecond on one core.  Their times give the power of a device. */
#include <string.h>

#include "fleet.h"

#define BLOCKS  12   /* one core after the other */
#define TASK_S  0.05 /* of a block, for each task, on average */
#define REPEATS 3    /* of a block, at least */
#define TURNS   512  /* at most */

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

/* A convolution or product with all that it reads and writes. */
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
} bench;

/* ---- open and close -------------------------------------------------------------------------- */

/* Small numbers, so that no product overflows or becomes denormal. */
static float *numbers(size_t n, uint64_t key) {
  gt_rng rng = gt_rng_make(key, GT_RNG_SYNTH, n, 0);
  float *x = GT_NEW_ARRAY(float, n);
  for (size_t i = 0; i < n; i++) x[i] = (float)(0.1 * gt_rng_uniform(&rng) - 0.05);
  return x;
}

static void open_layer(bench *b, layer_task *t, bool linear, gt_precision precision, size_t n) {
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

static void open_attention(bench *b) {
  const gt_attention_shape *s = &attention_shape;
  const size_t n = SEQUENCES * s->T * s->D;
  b->qkv = numbers(3 * n, 7);
  b->dqkv = numbers(3 * n, 8);
  b->attended = numbers(n, 9);
  b->dattended = numbers(n, 10);
  b->lse = numbers(SEQUENCES * s->heads * s->T, 11);
  b->attention_work = GT_NEW_ARRAY(float, gt_attention_work(s));
}

static void open_cell(bench *b) {
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

static void open_bench(bench *b) {
  const char *why;
  *b = (bench){.kernels = gt_kernels_find("auto")};
  open_layer(b, &b->layers[GT_PROBE_PRODUCT], true, GT_F32, ROWS);
  open_layer(b, &b->layers[GT_PROBE_PRODUCT_BF16], true, gt_kernels_bf16(&why) ? GT_BF16 : GT_F32,
             ROWS);
  open_layer(b, &b->layers[GT_PROBE_CONVOLUTION], false, GT_F32, IMAGES);
  open_attention(b);
  open_cell(b);
}

static void close_bench(bench *b) {
  float *all[] = {b->qkv, b->dqkv, b->attended, b->dattended, b->lse,      b->attention_work,
                  b->h,   b->c,    b->gates,    b->x,         b->dx,       b->dy,
                  b->w,   b->dw,   b->b,        b->db,        b->cell_work};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) gt_free(all[i]);
  for (int t = 0; t <= GT_PROBE_CONVOLUTION; t++) close_layer(&b->layers[t]);
  if (b->context) b->kernels->prepared()->close(b->context);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* Forward and backward. */
static void run(const bench *b, int task) {
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

/* The tasks take turns, so that what disturbs one for a while disturbs all.  The first turn finds
   cold caches and does not count.  Medians, because workers of a host do not begin and end together,
   and the least times would be those of the last worker when the others are gone. */
static void run_block(const bench *b, gt_ns end, double times_s[GT_PROBE_TASKS]) {
  static double each[GT_PROBE_TASKS][TURNS];
  size_t n = 0;
  for (int task = 0; task < GT_PROBE_TASKS; task++) run(b, task);
  for (; n < REPEATS || (n < TURNS && gt_now() < end); n++)
    for (int task = 0; task < GT_PROBE_TASKS; task++) {
      const gt_ns from = gt_now();
      run(b, task);
      each[task][n] = gt_seconds(gt_now() - from);
    }
  for (int task = 0; task < GT_PROBE_TASKS; task++) times_s[task] = gt_probe_median(each[task], n);
}

void gt_probe_reference(double times_s[GT_PROBE_TASKS], size_t place) {
  bench b;
  gt_probe_cores cores;
  open_bench(&b);
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
  close_bench(&b);
}
