/* Graphs of one model for micro-batches of different sizes that take turns, step by step, in one
   block of memory and one array of gradients: every step has the bits of graphs that share
   nothing. */
#include "world.h"

enum { BATCH = 8, SHAPES = 3, STEPS = 12 };

typedef struct {
  const char *model;
  gt_sample_shape shape;
  gt_model_options options;
} bench;

static const bench benches[] = {
    {"gpt", {1, 1, 8, 23, 23}, {.layers = 2, .width = 12, .heads = 2, .context = 9}},
    {"gpt",
     {1, 1, 8, 23, 23},
     {.layers = 1, .width = 12, .heads = 2, .context = 9, .untied = true}},
    {"lenet5", {12, 14, 1, 3, 0}, {0}},
    {"lstm", {1, 1, 6, 3, 19}, {.embedding = 5, .hidden = 7}},
    {"deepfm", {1, 1, 4, 2, 17}, {.embedding = 3, .mlp = (const int64_t[]){6, 5}, .nmlp = 2}},
    {"niser", {1, 1, 6, 14, 15}, {.hidden = 7}},
};

static const char *const tables[] = {"ref", "auto", "dnn"};

/* micro-batches of a step, and slots */
static const size_t shapes[SHAPES][2] = {{2, 2}, {8, 5}, {1, 1}};

/* The graphs of all shapes, and their common arrays. */
typedef struct {
  gt_graph *graphs[SHAPES];
  float *block, *grads[SHAPES];
} turns;

static gt_graph_spec spec_of(const bench *b, const char *table, size_t shape) {
  return (gt_graph_spec){.model = b->model,
                         .options = b->options,
                         .shape = b->shape,
                         .batch_max = BATCH / shapes[shape][0],
                         .kernels = gt_kernels_find(table),
                         .slots = shapes[shape][1],
                         .micro_batches = shapes[shape][0],
                         .lent = true};
}

/* Allocates a block for the largest, filled with arbitrary values. */
static float *new_block(const bench *b, const char *table) {
  size_t most = 0;
  for (size_t i = 0; i < SHAPES; i++) {
    gt_graph_spec spec = spec_of(b, table, i);
    spec.sizes_only = true;
    gt_graph *graph = w_graph(&spec);
    if (gt_graph_bytes(graph) > most) most = gt_graph_bytes(graph);
    gt_graph_close(graph);
  }
  float *block = gt_alloc(most, 1);
  memset(block, 0xff, most);
  return block;
}

static void open_turns(turns *t, const bench *b, const char *table, float *params, bool share) {
  *t = (turns){.block = share ? new_block(b, table) : NULL};
  for (size_t i = 0; i < SHAPES; i++) {
    gt_graph_spec spec = spec_of(b, table, i);
    spec.memory = t->block;
    t->graphs[i] = w_graph(&spec);
    const gt_arrays *a = gt_graph_arrays(t->graphs[i]);
    t->grads[i] = share && i > 0 ? t->grads[0] : GT_NEW_ARRAY(float, a->params.n);
    gt_graph_adopt(t->graphs[i], params, t->grads[i], NULL);
    gt_graph_prepare(t->graphs[i], spec.batch_max);
  }
}

static void close_turns(turns *t) {
  for (size_t i = 0; i < SHAPES; i++) {
    gt_graph_close(t->graphs[i]);
    if (i == 0 || !t->block) gt_free(t->grads[i]);
  }
  gt_free(t->block);
}

/* Runs a step: as many micro-batches forward as there are slots, then back, and so on. */
static double make_step(gt_graph *graph, size_t shape, const bench *b, const char *samples,
                        const int32_t *labels) {
  const size_t m = shapes[shape][0], slots = shapes[shape][1], n = BATCH / m,
               each = b->shape.h * b->shape.w * b->shape.c * sizeof(float);
  double loss = 0;
  for (size_t first = 0; first < m; first += slots)
    for (int back = 0; back < 2; back++)
      for (size_t i = first; i < m && i < first + slots; i++) {
        const gt_micro_batch batch = {samples + i * n * each, labels + i * n, n};
        gt_metrics metrics;
        if (back) {
          gt_graph_backward_input(graph, 0, i - first, &batch);
          gt_graph_backward_weight(graph, 0, i - first, &batch, i == 0);
        } else {
          gt_graph_forward(graph, 0, i - first, &batch, true, &metrics);
          loss += metrics.loss_sum;
        }
      }
  gt_graph_gradients_end(graph);
  return loss;
}

static void draw(const bench *b, gt_rng *rng, void *samples, int32_t *labels) {
  const size_t size = b->shape.h * b->shape.w * b->shape.c;
  for (size_t i = 0; i < BATCH; i++) labels[i] = (int32_t)gt_rng_below(rng, b->shape.classes);
  for (size_t k = 0; k < BATCH * size; k++)
    if (b->shape.features == 0)
      ((float *)samples)[k] = (float)gt_rng_normal(rng);
    else
      ((int32_t *)samples)[k] = 1 + (int32_t)gt_rng_below(rng, b->shape.features - 1);
}

static void compare(const bench *b, const char *table) {
  gt_rng rng = gt_rng_make(7, GT_RNG_TEST, 0, 0);
  gt_graph_spec spec = spec_of(b, table, 0);
  spec.lent = false;
  gt_graph *first = w_graph(&spec);
  gt_graph_init(first, 3);
  const gt_vec params = gt_graph_arrays(first)->params;
  char *samples = gt_alloc(BATCH * b->shape.h * b->shape.w * b->shape.c, sizeof(float));
  int32_t labels[BATCH];
  turns own, shared;
  size_t last = SHAPES;
  open_turns(&own, b, table, params.data, false);
  open_turns(&shared, b, table, params.data, true);
  for (size_t k = 0; k < STEPS; k++) {
    const size_t shape = k < SHAPES ? k : gt_rng_below(&rng, SHAPES);
    draw(b, &rng, samples, labels);
    if (shape != last) gt_graph_return(shared.graphs[shape]);
    last = shape;
    const double one = make_step(own.graphs[shape], shape, b, samples, labels),
                 other = make_step(shared.graphs[shape], shape, b, samples, labels);
    if (one != other)
      fail_msg("%s, %s, step %zu: losses %g and %g", b->model, table, k, one, other);
    if (memcmp(own.grads[shape], shared.grads[0], params.n * sizeof(float)) != 0)
      fail_msg("%s, %s, step %zu, shape %zu: other gradients", b->model, table, k, shape);
  }
  close_turns(&own);
  close_turns(&shared);
  gt_free(samples);
  gt_graph_close(first);
}

static void same_bits_as_apart(void) {
  for (size_t t = 0; t < COUNT(tables); t++)
    for (size_t i = 0; i < COUNT(benches); i++)
      if (gt_kernels_find(tables[t])) compare(&benches[i], tables[t]);
}

TESTS(same_bits_as_apart)
