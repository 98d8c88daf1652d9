/* Dropout in every model that has it: its mask; gradients against finite differences of the loss
   with the same mask; nothing changes without training; and no step allocates. */
#include "world.h"

enum { N = 6, IDS = 7, VALUES = 12 };
static gt_rng rng;

/* A model with dropout and the shape of its samples. */
typedef struct {
  const char *model;
  gt_sample_shape shape;
  gt_model_options options;
  const char *drop; /* the name of an operation that drops */
} dropped;

static const int64_t widths[] = {30, 20};
static const dropped all[] = {
    {"mlp", {1, 1, VALUES, 4, 0}, {.mlp = widths, .nmlp = 2}, "mlp.dropout"},
    {"deepfm", {1, 1, IDS, 2, 40}, {.mlp = widths, .nmlp = 2, .embedding = 6}, "mlp.dropout"},
    {"lstm", {1, 1, IDS, 3, 40}, {.embedding = 8, .hidden = 10}, "dropout"},
    {"niser", {1, 1, IDS, 39, 40}, {.hidden = 12}, "embedding.dropout"},
    {"gpt",
     {1, 1, IDS, 40, 40},
     {.layers = 2, .width = 12, .heads = 2, .context = 8},
     "transformer.drop"}};

typedef struct {
  union {
    float numbers[N * VALUES];
    int32_t ids[N * IDS];
  } x;
  int32_t labels[N];
} samples;

static gt_graph *graph_of(const dropped *d, double p) {
  gt_graph_spec spec = {.model = d->model,
                        .options = d->options,
                        .shape = d->shape,
                        .batch_max = N,
                        .kernels = gt_kernels_find("auto")};
  spec.options.dropout = p;
  gt_graph *graph = w_graph(&spec);
  gt_graph_init(graph, 5);
  return graph;
}

static void fill(samples *s, const dropped *d) {
  for (size_t i = 0; i < N * VALUES; i++) s->x.numbers[i] = (float)gt_rng_normal(&rng);
  for (size_t i = 0; d->shape.features && i < N * IDS; i++)
    s->x.ids[i] = 1 + (int32_t)gt_rng_below(&rng, d->shape.features - 1);
  for (size_t i = 0; i < N; i++) s->labels[i] = (int32_t)gt_rng_below(&rng, d->shape.classes);
}

static double loss_of(gt_graph *graph, const samples *s, bool train) {
  gt_metrics metrics;
  gt_graph_step(graph, &s->x, s->labels, N, train, &metrics);
  return metrics.loss_sum / N;
}

/* Returns the share of zeros in the output of an operation, whose input has hardly any. */
static double zeros(const gt_graph *graph, const char *name) {
  const gt_op *op = &graph->ops[w_operation(graph, name)];
  const float *y = op->slots[0].y;
  size_t found = 0;
  for (size_t i = 0; i < N * op->out; i++) found += y[i] == 0.0F;
  return (double)found / (double)(N * op->out);
}

static void the_key_decides(void) {
  for (size_t m = 0; m < COUNT(all); m++) {
    samples s;
    fill(&s, &all[m]);
    gt_graph *without = graph_of(&all[m], 0), *graph = graph_of(&all[m], 0.3);
    char a[GT_SHA256_HEX], b[GT_SHA256_HEX];
    gt_graph_hash(without, a);
    gt_graph_hash(graph, b);
    if (strcmp(a, b) != 0) fail_msg("%s has hash %s, without dropout %s", all[m].model, b, a);
    assert_true(gt_graph_arrays(graph)->params.n == gt_graph_arrays(without)->params.n);
    gt_graph_set_key(graph, 1);
    const double one = loss_of(graph, &s, true);
    gt_graph_set_key(graph, 2);
    const double other = loss_of(graph, &s, true);
    gt_graph_set_key(graph, 1);
    assert_true(loss_of(graph, &s, true) == one);
    assert_true(other != one);
    assert_true(loss_of(graph, &s, false) == loss_of(without, &s, false));
    assert_true(loss_of(without, &s, true) != one);
    gt_graph_close(without);
    gt_graph_close(graph);
  }
}

/* Vectors of tokens: 504 values, so a standard deviation of 0.02. */
static void the_share_is_p(void) {
  samples s;
  const dropped *gpt = &all[COUNT(all) - 1];
  fill(&s, gpt);
  for (int p = 1; p < 10; p += 2) {
    gt_graph *graph = graph_of(gpt, 0.1 * p);
    (void)loss_of(graph, &s, true);
    assert_true(fabs(zeros(graph, gpt->drop) - 0.1 * p) < 0.1);
    (void)loss_of(graph, &s, false);
    assert_true(zeros(graph, gpt->drop) == 0);
    gt_graph_close(graph);
  }
}

/* Slopes along random directions, in the parameters of every operation. */
static void gradients(void) {
  for (size_t m = 0; m < COUNT(all); m++) {
    samples s;
    fill(&s, &all[m]);
    gt_graph *graph = graph_of(&all[m], 0.3);
    const gt_arrays *arrays = gt_graph_arrays(graph);
    float *was = GT_NEW_ARRAY(float, arrays->params.n),
          *along = GT_NEW_ARRAY(float, arrays->params.n),
          *grads = GT_NEW_ARRAY(float, arrays->params.n);
    gt_graph_set_key(graph, 7);
    (void)loss_of(graph, &s, true);
    memcpy(was, arrays->params.data, arrays->params.n * sizeof *was);
    memcpy(grads, arrays->grads.data, arrays->params.n * sizeof *grads);
    for (size_t v = 0; v < arrays->nviews; v++) {
      const gt_view *view = &arrays->views[v];
      double slope = 0, size = 0, at[2];
      for (size_t i = view->offset; i < view->offset + view->count; i++) {
        /* the padding of ids stays 0 */
        along[i] = was[i] == 0.0F && view->ndims == 2 ? 0.0F : (float)gt_rng_normal(&rng);
        slope += (double)grads[i] * (double)along[i];
        size += (double)grads[i] * (double)grads[i];
      }
      const double h = 2e-3 / sqrt((double)view->count / 10.0 + 1.0);
      for (int side = 0; side < 2; side++) {
        for (size_t i = view->offset; i < view->offset + view->count; i++)
          arrays->params.data[i] = was[i] + (float)(side ? -h : h) * along[i];
        at[side] = loss_of(graph, &s, true);
        memcpy(arrays->params.data, was, arrays->params.n * sizeof *was);
      }
      const double found = (at[0] - at[1]) / (2 * h);
      if (!(fabs(found - slope) <= 0.03 * sqrt(size) + 2e-3))
        fail_msg("%s, %s: the slope is %.6g; finite differences say %.6g", all[m].model, view->name,
                 slope, found);
    }
    gt_free(was), gt_free(along), gt_free(grads);
    gt_graph_close(graph);
  }
}

static void no_step_allocates(void) {
  for (size_t m = 0; m < COUNT(all); m++) {
    samples s;
    fill(&s, &all[m]);
    gt_graph *graph = graph_of(&all[m], 0.1);
    (void)loss_of(graph, &s, true);
    const int64_t before = gt_alloc_total();
    (void)loss_of(graph, &s, true);
    assert_true(gt_alloc_total() == before);
    gt_graph_close(graph);
  }
  w_refused("lenet5", (gt_sample_shape){28, 28, 1, 10, 0}, (gt_model_options){.dropout = 0.1},
            GT_ERR_JOB,
            "model.dropout is given; model lenet5 has no such key, so it must not be given");
}

static int set_up(void **state) {
  (void)state;
  rng = gt_rng_make(17, GT_RNG_TEST, 0, 0);
  return 0;
}

TESTS_BETWEEN(set_up, NULL, the_key_decides, the_share_is_p, gradients, no_step_allocates)
