/* LSTM: gradients of the whole model against central finite differences of an independent forward
   in float64, with samples of all lengths; padding; names, initial values, errors; and learning of
   a pattern that only the order of the words determines. */
#include "world.h"
#include "ref64.h"

static gt_rng rng;

static gt_graph *lstm(const char *table, size_t features, size_t T, size_t classes,
                      size_t batch_max, int64_t E, int64_t H) {
  const gt_graph_spec spec = {.model = "lstm",
                              .options = {.embedding = E, .hidden = H},
                              .shape = {1, 1, T, classes, features},
                              .batch_max = batch_max,
                              .kernels = gt_kernels_find(table)};
  return w_graph(&spec);
}

/* Makes texts of all lengths from 0 to T, in no order, of ids from 1 on; a padding id inside the
   first one with two words. */
static void fill_texts(int32_t *ids, size_t n, size_t T, size_t features) {
  for (size_t i = 0; i < n; i++) {
    const size_t length = (i * 7 + 3) % (T + 1);
    for (size_t t = 0; t < T; t++)
      ids[i * T + t] = t < T - length ? GT_PADDING : 1 + (int32_t)gt_rng_below(&rng, features - 1);
  }
  for (size_t i = 0; i < n && T > 2; i++)
    if (ids[i * T] != GT_PADDING) ids[i * T + 1] = GT_PADDING;
}

/* ---- gradients ------------------------------------------------------------------------------- */

typedef struct {
  size_t V, T, E, H, classes;
} shape64;

/* The mean loss; params in the order embedding, the four of the LSTM, weight and bias of the linear
   layer. */
static double lstm64(const double *params, const w_batch *batch) {
  const shape64 *s = batch->shape;
  double x[512], h[128], scratch[6 * 128], scores[64];
  const double *w = params + s->V * s->E, *fc = w + 4 * s->H * (s->E + s->H) + 8 * s->H;
  for (size_t i = 0; i < batch->n; i++) {
    const int32_t *text = batch->ids + i * s->T;
    size_t start = 0;
    while (start < s->T && text[start] == GT_PADDING) start++;
    for (size_t t = 0; t < s->T; t++)
      memcpy(x + t * s->E, params + (size_t)text[t] * s->E, s->E * sizeof *x);
    r64_lstm(h, x, w, start, s->T, s->E, s->H, scratch);
    r64_linear(scores + i * s->classes, h, fc, fc + s->classes * s->H, 1, s->H, s->classes);
  }
  return r64_loss(scores, batch->labels, batch->n, s->classes);
}

static void check_model(const char *table, const shape64 *s, size_t n, size_t stride) {
  gt_graph *graph = lstm(table, s->V, s->T, s->classes, n + 2, (int64_t)s->E, (int64_t)s->H);
  int32_t ids[256], labels[32];
  gt_metrics metrics;
  gt_graph_init(graph, 5);
  fill_texts(ids, n, s->T, s->V);
  for (size_t i = 0; i < n; i++) labels[i] = (int32_t)gt_rng_below(&rng, s->classes);
  gt_graph_step(graph, ids, labels, n, true, &metrics);
  const w_judge judge = {.loss = lstm64,
                         .batch = {.shape = s, .ids = ids, .labels = labels, .n = n},
                         .h = 1e-6,
                         .near_loss = 2e-6,
                         .near = 1e-4,
                         .least = s->T == 1 ? -1 : 1e-4, /* in one step nothing recurs */
                         .stride = stride,
                         .padding = s->E};
  w_check_gradients(graph, &judge, &metrics, &rng);
  gt_graph_close(graph);
}

static void every_gradient(void) {
  for (size_t t = 0; t < w_ntables(); t++) {
    check_model(w_tables[t], &(shape64){9, 5, 3, 4, 2}, 7, 1);
    check_model(w_tables[t], &(shape64){4, 6, 8, 5, 3}, 20, 1); /* every id occurs many times */
    check_model(w_tables[t], &(shape64){7, 1, 4, 3, 2}, 4, 1);  /* one step: nothing recurs */
    check_model(w_tables[t], &(shape64){30, 9, 20, 37, 2}, 9, 53);
  }
}

/* ---- padding --------------------------------------------------------------------------------- */

static void padding_in_front_changes_nothing(void) {
  enum { N = 6, SHORT = 4, LONG = 9, V = 12 };
  for (size_t t = 0; t < w_ntables(); t++) {
    gt_graph *some = lstm(w_tables[t], V, SHORT, 3, N, 5, 6),
             *more = lstm(w_tables[t], V, LONG, 3, N, 5, 6);
    int32_t ids[N * SHORT], padded[N * LONG] = {0}, labels[N] = {0, 1, 2, 0, 1, 2};
    gt_metrics a, b;
    gt_graph_init(some, 7);
    gt_graph_init(more, 7);
    fill_texts(ids, N, SHORT, V);
    for (size_t i = 0; i < N; i++)
      memcpy(padded + i * LONG + (LONG - SHORT), ids + i * SHORT, SHORT * sizeof *ids);
    gt_graph_step(some, ids, labels, N, true, &a);
    gt_graph_step(more, padded, labels, N, true, &b);
    assert_true(a.loss_sum == b.loss_sum && a.correct == b.correct);
    assert_memory_equal(gt_graph_scores(some), gt_graph_scores(more), N * 3 * sizeof(float));
    const gt_vec g = gt_graph_arrays(some)->grads;
    assert_memory_equal(g.data, gt_graph_arrays(more)->grads.data, g.n * sizeof(float));
    gt_graph_close(some);
    gt_graph_close(more);
  }
}

/* Samples of padding only have the state 0: the scores are the bias, and only it has a gradient. */
static void padding_alone(void) {
  enum { N = 3, T = 5 };
  const int32_t ids[N * T] = {0}, labels[N] = {1, 0, 1};
  for (size_t t = 0; t < w_ntables(); t++) {
    gt_graph *graph = lstm(w_tables[t], 12, T, 2, N, 4, 6);
    const gt_arrays *arrays = gt_graph_arrays(graph);
    const size_t bias = arrays->params.n - 2;
    gt_metrics metrics;
    gt_graph_init(graph, 3);
    for (size_t i = arrays->views[1].offset; i < arrays->grads.n; i++)
      arrays->grads.data[i] = 5; /* overwritten, except the rows of ids */
    gt_graph_step(graph, ids, labels, N, true, &metrics);
    for (size_t i = 0; i < N; i++)
      assert_memory_equal(gt_graph_scores(graph) + 2 * i, arrays->params.data + bias,
                          2 * sizeof(float));
    for (size_t i = 0; i < bias; i++) assert_true(arrays->grads.data[i] == 0.0F);
    assert_true(arrays->grads.data[bias] != 0.0F);
    gt_graph_close(graph);
  }
}

/* The vector of the padding stays 0 with any optimizer, and no step allocates. */
static void its_vector_stays_zero(void) {
  enum { N = 8, T = 6, V = 20, E = 5 };
  static const gt_optimizer kinds[] = {GT_OPTIMIZER_SGD, GT_OPTIMIZER_ADAM, GT_OPTIMIZER_ADAMW};
  for (size_t k = 0; k < COUNT(kinds); k++) {
    gt_optim_spec spec = w_adam;
    spec.kind = kinds[k];
    spec.momentum = 0.9;
    spec.weight_decay = 0.1;
    gt_graph *graph = lstm("auto", V, T, 2, N, E, 7);
    const gt_arrays *arrays = gt_graph_arrays(graph);
    gt_optim *optim;
    int32_t ids[N * T], labels[N];
    gt_metrics metrics;
    must(gt_optim_create(&optim, &spec, arrays->params.n, true));
    gt_graph_init(graph, 3);
    gt_graph_prepare(graph, N);
    gt_graph_prepare(graph, N - 1);
    const int64_t total = gt_alloc_total();
    for (size_t step = 0; step < 5; step++) {
      fill_texts(ids, N, T, V);
      for (size_t i = 0; i < N; i++) labels[i] = (int32_t)gt_rng_below(&rng, 2);
      gt_graph_step(graph, ids, labels, step == 3 ? N - 1 : N, true, &metrics);
      gt_optim_step(optim, arrays->params, arrays->grads, gt_vec_of(NULL, arrays->params.n));
    }
    assert_int_equal(gt_alloc_total(), total);
    for (size_t i = 0; i < E; i++) assert_true(arrays->params.data[i] == 0.0F);
    for (size_t i = E; i < (size_t)V * E; i++) assert_true(arrays->params.data[i] != 0.0F);
    gt_optim_close(optim);
    gt_graph_close(graph);
  }
}

/* ---- names, values and errors ---------------------------------------------------------------- */

static void names_and_values(void) {
  static const w_tensor right[] = {{"embedding.weight", 20002, 128},
                                   {"lstm.weight_ih_l0", 512, 128},
                                   {"lstm.weight_hh_l0", 512, 128},
                                   {"lstm.bias_ih_l0", 512, 0},
                                   {"lstm.bias_hh_l0", 512, 0},
                                   {"fc.weight", 2, 128},
                                   {"fc.bias", 2, 0}};
  enum { TENSORS = COUNT(right) };
  gt_graph *graph = lstm("auto", 20002, 200, 2, 0, 0, 0);
  const gt_arrays *arrays = gt_graph_arrays(graph);
  gt_graph_init(graph, 3);
  assert_int_equal(arrays->params.n, 2692610);
  w_check_tensors(graph, right, TENSORS);
  for (size_t i = 1; i < TENSORS; i++) w_check_uniform(graph, i, 1 / sqrt(128));
  double squares = 0.0;
  for (size_t i = 0; i < 128; i++) assert_true(arrays->params.data[i] == 0.0F);
  for (size_t i = 128; i < 20002 * 128; i++)
    squares += (double)arrays->params.data[i] * (double)arrays->params.data[i];
  assert_true(fabs(squares / (20001 * 128) - 1.0) < 0.01);
  assert_int_equal(gt_graph_outputs(graph), 2);
  assert_int_equal(gt_graph_flops(graph), 6 * (200 * 512 * 256 + 256));
  must_contain(gt_graph_kernels(graph), "lstm=blas");
  gt_graph_close(graph);
}

static void hashes(void) {
  gt_graph *graphs[] = {lstm("ref", 20, 5, 2, 0, 6, 7), lstm("ref", 21, 5, 2, 0, 6, 7),
                        lstm("ref", 20, 6, 2, 0, 6, 7), lstm("ref", 20, 5, 3, 0, 6, 7),
                        lstm("ref", 20, 5, 2, 0, 5, 7), lstm("ref", 20, 5, 2, 0, 6, 8)};
  w_check_hashes(graphs, COUNT(graphs));
}

static void refusals(void) {
  const gt_sample_shape images = {28, 28, 1, 10, 0}, texts = {1, 1, 20, 2, 100};
  const int64_t mlp[] = {8};
  w_refused(
      "lstm", images, (gt_model_options){0}, GT_ERR_DATA,
      "samples are images of 28 x 28 x 1; model lstm takes ids, so expected a data set of ids");
  w_refused("lstm", texts, (gt_model_options){.hidden = -1}, GT_ERR_JOB,
            "model.hidden is -1; expected 1 to 65536");
  w_refused("lstm", texts, (gt_model_options){.hidden = 65537}, GT_ERR_JOB,
            "model.hidden is 65537; expected 1 to 65536");
  w_refused("lstm", texts, (gt_model_options){.embedding = 65537}, GT_ERR_JOB,
            "model.embedding is 65537; expected 1 to 65536");
  w_refused("lstm", texts, (gt_model_options){.mlp = mlp, .nmlp = 1}, GT_ERR_JOB,
            "model.mlp is given; model lstm has no such key, so it must not be given");
  w_refused("deepfm", texts, (gt_model_options){.hidden = 8}, GT_ERR_JOB,
            "model.hidden is given; model deepfm has no such key, so it must not be given");
}

/* ---- learning -------------------------------------------------------------------------------- */

enum { TEST_T = 8 };

/* Makes texts of arbitrary words with two special ones; the label is the order of these two. */
static void order(int32_t *ids, int32_t *labels, size_t n) {
  enum { T = TEST_T };
  for (size_t i = 0; i < n; i++) {
    const size_t length = 2 + gt_rng_below(&rng, T - 1), start = T - length;
    for (size_t t = 0; t < T; t++)
      ids[i * T + t] = t < start ? GT_PADDING : 3 + (int32_t)gt_rng_below(&rng, 7);
    const size_t a = start + gt_rng_below(&rng, length - 1),
                 b = a + 1 + gt_rng_below(&rng, T - 1 - a);
    labels[i] = (int32_t)gt_rng_below(&rng, 2);
    ids[i * T + a] = labels[i] ? 1 : 2;
    ids[i * T + b] = labels[i] ? 2 : 1;
  }
}

static void learns_the_order(void) {
  enum { TEST = 512 };
  const w_course course = {&w_adam, order, 64, TEST, TEST_T, 400};
  static int32_t labels[TEST];
  static float scores[TEST];
  static uint32_t scratch[TEST];
  for (size_t t = 0; t < w_ntables(); t++) {
    gt_graph *graph = lstm(w_tables[t], 10, TEST_T, 2, TEST, 8, 16);
    gt_graph_init(graph, 2);
    assert_true(w_learn(graph, &course, labels, scores).correct > TEST * 95 / 100);
    assert_true(gt_auc(scores, labels, TEST, scratch) > 0.98);
    gt_graph_close(graph);
  }
}

int main(void) {
  rng = gt_rng_make(23, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, every_gradient, padding_in_front_changes_nothing, padding_alone,
                   its_vector_stays_zero, names_and_values, hashes, refusals, learns_the_order);
}
