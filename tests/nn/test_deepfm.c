/* DeepFM: gradients of its operations and of the whole model against central finite differences of
   an independent forward in float64; gradients of an embedding over several steps; names, initial
   values, errors; and learning of a pattern that only pairs of ids determine. */
#include "world.h"
#include "ref64.h"

static gt_rng rng;

static void fill_ids(int32_t *ids, size_t n, size_t below) {
  for (size_t i = 0; i < n; i++) ids[i] = (int32_t)gt_rng_below(&rng, below);
}

/* ---- float64 --------------------------------------------------------------------------------- */

/* Bias, weights, and every pair: Rendle 2010, eq. 1. */
static double fm64(const double *v, const double *w, double bias, const int32_t *ids, size_t F,
                   size_t K) {
  double sum = bias;
  for (size_t f = 0; f < F; f++) sum += w[ids[f]];
  for (size_t f = 0; f < F; f++)
    for (size_t g = 0; g < f; g++)
      for (size_t k = 0; k < K; k++) sum += v[f * K + k] * v[g * K + k];
  return sum;
}

typedef struct {
  size_t V, F, K, layers;
  const int64_t *mlp;
} shape64;

/* The mean log loss; params in the order embedding, linear, bias, then weight and bias of each
   layer. */
static double deepfm64(const double *params, const w_batch *batch) {
  const shape64 *s = batch->shape;
  const int32_t *ids = batch->ids;
  double a[1024], b[1024], v[256], total = 0.0;
  for (size_t i = 0; i < batch->n; i++) {
    const double *w = params + s->V * s->K;
    for (size_t f = 0; f < s->F; f++)
      for (size_t k = 0; k < s->K; k++)
        v[f * s->K + k] = params[(size_t)ids[i * s->F + f] * s->K + k];
    double logit = fm64(v, w, w[s->V], ids + i * s->F, s->F, s->K);
    size_t in = s->F * s->K;
    memcpy(a, v, in * sizeof *a);
    w += s->V + 1;
    for (size_t l = 0; l <= s->layers; l++) {
      const size_t out = l < s->layers ? (size_t)s->mlp[l] : 1;
      r64_linear(b, a, w, w + out * in, 1, in, out);
      if (l < s->layers) r64_relu(b, out);
      memcpy(a, b, out * sizeof *a);
      w += out * in + out;
      in = out;
    }
    logit += a[0];
    const double clicks = r64_sigmoid(logit);
    total -= log(batch->labels[i] ? clicks : 1.0 - clicks);
  }
  return total / (double)batch->n;
}

/* ---- operations ------------------------------------------------------------------------------ */

enum { V = 11, F = 4, N = 6 };

static gt_graph *bare(const char *table, size_t K) {
  gt_graph *graph = GT_NEW(gt_graph);
  snprintf(graph->model, sizeof graph->model, "test");
  graph->input = (gt_extent){1, 1, F};
  graph->features = V;
  graph->from = GT_SAMPLES;
  graph->kernels = gt_kernels_find(table);
  gt_graph_add_embedding(graph, "embedding", K, 0.01);
  return graph;
}

static void check_embedding(const char *table, size_t K, bool two_readers) {
  gt_graph *graph = bare(table, K);
  const gt_op *op = &graph->ops[0];
  const size_t ny = (size_t)N * F * K;
  assert_int_equal(op->out, F * K);
  int32_t ids[N * F];
  fill_ids(ids, N * F, V - 1); /* the last id does not occur */
  ids[1] = ids[0];             /* twice in a sample */
  float *w = w_floats(&rng, V * K, 1), *dw = w_floats(&rng, V * K, 1), *y = w_floats(&rng, ny, 1),
        *dy = w_floats(&rng, ny, 1), *dy2 = w_floats(&rng, ny, 1);
  int32_t kept[N * F];
  gt_rows rows = {.ids = kept, .n = GT_ROWS_ANY, .capacity = N * F};
  gt_activation a = {.y = y, .dy = dy, .dy2 = two_readers ? dy2 : NULL};
  const gt_pass pass = {.kernels = graph->kernels,
                        .samples = ids,
                        .x = ids,
                        .a = &a,
                        .rows = &rows,
                        .first = true,
                        .w = w,
                        .dw = dw,
                        .n = N,
                        .train = true};
  op->kind->forward(op, &pass);
  for (size_t i = 0; i < ny; i++) assert_true(y[i] == w[(size_t)ids[i / K] * K + i % K]);
  op->kind->backward_weight(op, &pass);
  /* y is linear in w: the slope is the sum of dy over the rows that read it. */
  for (size_t i = 0; i < V * K; i++) {
    double right = 0.0;
    for (size_t m = 0; m < N * F; m++)
      if ((size_t)ids[m] == i / K)
        right += (double)dy[m * K + i % K] + (two_readers ? (double)dy2[m * K + i % K] : 0.0);
    w_near((double)dw[i], right, 1e-6, "dw", i);
    if (i / K == V - 1) assert_true(dw[i] == 0.0F);
  }
  void *all[] = {w, dw, y, dy, dy2};
  for (size_t i = 0; i < COUNT(all); i++) gt_free(all[i]);
  gt_graph_close(graph);
}

static void embedding(void) {
  const size_t widths[] = {1, 3, 8, 10, 16, 21};
  for (size_t t = 0; t < w_ntables(); t++)
    for (size_t k = 0; k < COUNT(widths); k++) {
      check_embedding(w_tables[t], widths[k], false);
      check_embedding(w_tables[t], widths[k], true);
    }
}

typedef struct {
  double *v, *w, *b;
  const float *dy;
  const int32_t *ids;
  size_t K;
} fm_bench;

/* The sum of dy times y: its gradient with respect to y is dy. */
static double fm_loss(const void *ctx) {
  const fm_bench *m = ctx;
  double sum = 0.0;
  for (size_t n = 0; n < N; n++)
    sum += (double)m->dy[n] * fm64(m->v + n * F * m->K, m->w, m->b[0], m->ids + n * F, F, m->K);
  return sum;
}

static void check_slopes(const fm_bench *m, const float *found, double *at, size_t n,
                         const char *what) {
  for (size_t i = 0; i < n; i++)
    w_near((double)found[i], w_slope(fm_loss, m, &at[i], 1e-5), 1e-5, what, i);
}

static void check_fm(const char *table, size_t K) {
  gt_graph *graph = bare(table, K);
  gt_graph_add_fm(graph, "fm", "linear");
  const gt_op *op = &graph->ops[1];
  const size_t nv = (size_t)N * F * K;
  int32_t ids[N * F];
  fill_ids(ids, N * F, V);
  ids[3] = ids[2];
  float *v = w_floats(&rng, nv, 1), *dv = w_floats(&rng, nv, 1), w[V], dw[V], b[1] = {0.7F},
        db[1] = {5}, y[N], *dy = w_floats(&rng, N, 1);
  int32_t kept[N * F];
  gt_rows rows = {.ids = kept, .n = GT_ROWS_ANY, .capacity = N * F};
  for (size_t i = 0; i < V; i++) w[i] = (float)gt_rng_normal(&rng), dw[i] = 3;
  gt_activation a = {.y = y, .dy = dy};
  const gt_pass pass = {.kernels = graph->kernels,
                        .samples = ids,
                        .x = v,
                        .dx = dv,
                        .a = &a,
                        .rows = &rows,
                        .first = true,
                        .w = w,
                        .b = b,
                        .dw = dw,
                        .db = db,
                        .n = N,
                        .train = true};
  op->kind->forward(op, &pass);
  op->kind->backward_weight(op, &pass);
  op->kind->backward_input(op, &pass);
  const fm_bench m = {w_doubles(v, nv), w_doubles(w, V), w_doubles(b, 1), dy, ids, K};
  for (size_t n = 0; n < N; n++)
    w_near((double)y[n], fm64(m.v + n * F * K, m.w, m.b[0], ids + n * F, F, K), 1e-5, "y", n);
  check_slopes(&m, dv, m.v, nv, "dv");
  check_slopes(&m, dw, m.w, V, "dw");
  check_slopes(&m, db, m.b, 1, "db");
  void *all[] = {v, dv, dy, m.v, m.w, m.b};
  for (size_t i = 0; i < COUNT(all); i++) gt_free(all[i]);
  gt_graph_close(graph);
}

static void factorization_machine(void) {
  const size_t widths[] = {1, 3, 8, 10, 16, 21};
  for (size_t t = 0; t < w_ntables(); t++)
    for (size_t k = 0; k < COUNT(widths); k++) check_fm(w_tables[t], widths[k]);
}

static void sum_of_two(void) {
  gt_graph *graph = bare("ref", 3);
  gt_graph_add_linear(graph, "a", 2);
  const size_t other = gt_graph_last(graph);
  gt_graph_from(graph, 0);
  gt_graph_add_linear(graph, "b", 2);
  gt_graph_add_sum(graph, "sum", other);
  const gt_op *op = &graph->ops[gt_graph_last(graph)];
  float x[4] = {1, 2, 3, 4}, second[4] = {10, 20, 30, 40}, y[4], dy[4] = {5, 6, 7, 8}, dx[4] = {0},
        dsecond[4] = {0};
  gt_activation a = {.y = y, .dy = dy};
  gt_pass pass = {
      .x = x, .second = second, .dx = dx, .dsecond = dsecond, .a = &a, .n = 2, .train = true};
  op->kind->forward(op, &pass);
  op->kind->backward_input(op, &pass);
  assert_memory_equal(y, ((float[]){11, 22, 33, 44}), sizeof y);
  assert_memory_equal(dx, dy, sizeof dx);
  assert_memory_equal(dsecond, dy, sizeof dsecond);
  a.y = x, pass.dx = dy; /* in place */
  op->kind->forward(op, &pass);
  op->kind->backward_input(op, &pass);
  assert_memory_equal(x, y, sizeof y);
  gt_graph_close(graph);
}

/* ---- the whole model ------------------------------------------------------------------------- */

static gt_graph *deepfm(const char *table, size_t features, size_t fields, size_t batch_max,
                        int64_t K, const int64_t *mlp, size_t nmlp) {
  const gt_graph_spec spec = {.model = "deepfm",
                              .options = {.embedding = K, .mlp = mlp, .nmlp = nmlp},
                              .shape = {1, 1, fields, 2, features},
                              .batch_max = batch_max,
                              .kernels = gt_kernels_find(table)};
  return w_graph(&spec);
}

static void check_model(const char *table, const shape64 *s, size_t n, size_t stride) {
  gt_graph *graph = deepfm(table, s->V, s->F, n + 2, (int64_t)s->K, s->mlp, s->layers);
  gt_graph_init(graph, 5);
  /* larger than at the start */
  for (size_t i = 0; i < s->V * s->K + s->V + 1; i++)
    gt_graph_arrays(graph)->params.data[i] = (float)(0.3 * gt_rng_normal(&rng));
  int32_t *ids = GT_NEW_ARRAY(int32_t, n * s->F), *labels = GT_NEW_ARRAY(int32_t, n);
  fill_ids(ids, n * s->F, s->V);
  fill_ids(labels, n, 2);
  gt_metrics metrics;
  gt_graph_step(graph, ids, labels, n, true, &metrics);
  const w_judge judge = {.loss = deepfm64,
                         .batch = {.shape = s, .ids = ids, .labels = labels, .n = n},
                         .h = 1e-6,
                         .near_loss = 2e-6,
                         .near = 1e-4,
                         .least = 1e-4,
                         .stride = stride};
  w_check_gradients(graph, &judge, &metrics, &rng);
  gt_free(labels);
  gt_free(ids);
  gt_graph_close(graph);
}

static void every_gradient(void) {
  const int64_t two[] = {5, 6}, one[] = {7}, three[] = {40, 33, 36};
  for (size_t t = 0; t < w_ntables(); t++) {
    check_model(w_tables[t], &(shape64){13, 3, 4, 2, two}, 7, 1);
    check_model(w_tables[t], &(shape64){9, 5, 10, 1, one}, 20, 1); /* every id occurs many times */
    check_model(w_tables[t], &(shape64){30, 4, 10, 3, three}, 9, 7);
  }
}

static void size_of_the_paper(void) {
  const int64_t usual[] = {400, 400, 400};
  check_model("auto", &(shape64){50, 10, 10, 3, usual}, 3, 4001);
}

static void bf16(void) {
  const char *why;
  if (w_ntables() < 4 || !gt_kernels_bf16(&why)) skip();
  gt_graph *full = deepfm("auto", 30, 4, 9, 0, NULL, 0);
  const gt_graph_spec spec = {.model = "deepfm",
                              .shape = {1, 1, 4, 2, 30},
                              .batch_max = 9,
                              .kernels = gt_kernels_find("auto"),
                              .precision = GT_BF16};
  gt_graph *half = w_graph(&spec);
  int32_t ids[36], labels[9];
  fill_ids(ids, 36, 30);
  fill_ids(labels, 9, 2);
  gt_metrics a, b;
  gt_graph_init(full, 5);
  gt_graph_init(half, 5);
  gt_graph_step(full, ids, labels, 9, true, &a);
  gt_graph_step(half, ids, labels, 9, true, &b);
  w_near(b.loss_sum, a.loss_sum, 1e-3, "loss", 0);
  const gt_vec right = gt_graph_arrays(full)->grads, found = gt_graph_arrays(half)->grads;
  /* 3 %: seven consecutive products with eight significant bits, and units near zero that change
     sign. */
  const double apart = w_difference(found.data, right.data, right.n);
  assert_true(apart > 0.0 && apart < 0.03);
  gt_graph_close(full);
  gt_graph_close(half);
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum { ROWS_V = 40, ROWS_F = 3, ROWS_N = 6, ROWS_K = 10 };

/* Checks that a step of `graph` gives the same bits as the first step of another graph, and that
   only rows of ids in the batch are non-zero. */
static void check_step(gt_graph *graph, const char *table, size_t n, const char *what) {
  const int64_t mlp[] = {4};
  int32_t ids[ROWS_N * ROWS_F], labels[ROWS_N];
  gt_metrics metrics;
  const gt_arrays *arrays = gt_graph_arrays(graph);
  gt_graph *fresh = deepfm(table, ROWS_V, ROWS_F, ROWS_N, ROWS_K, mlp, 1);
  fill_ids(ids, n * ROWS_F, ROWS_V);
  fill_ids(labels, n, 2);
  gt_vec_copy(gt_graph_arrays(fresh)->params, arrays->params);
  gt_graph_step(fresh, ids, labels, n, true, &metrics);
  gt_graph_step(graph, ids, labels, n, true, &metrics);
  if (memcmp(gt_graph_arrays(fresh)->grads.data, arrays->grads.data,
             arrays->grads.n * sizeof(float)) != 0)
    fail_msg("%s, %s: other gradients", table, what);
  bool used[ROWS_V] = {false};
  for (size_t i = 0; i < n * ROWS_F; i++) used[ids[i]] = true;
  for (size_t id = 0; id < ROWS_V; id++)
    for (size_t k = 0; k <= ROWS_K; k++) {
      const float g = k < ROWS_K ? arrays->grads.data[id * ROWS_K + k]
                                 : arrays->grads.data[ROWS_V * ROWS_K + id];
      if ((g != 0.0F) != used[id])
        fail_msg("%s, %s: the gradient of id %zu is %g", table, what, id, (double)g);
    }
  gt_graph_close(fresh);
}

static void rows_of_a_batch_alone(void) {
  const int64_t mlp[] = {4};
  for (size_t t = 0; t < w_ntables(); t++) {
    gt_graph *graph = deepfm(w_tables[t], ROWS_V, ROWS_F, ROWS_N, ROWS_K, mlp, 1);
    const gt_arrays *arrays = gt_graph_arrays(graph);
    const size_t np = arrays->params.n;
    int32_t ids[ROWS_N * ROWS_F], labels[ROWS_N] = {0};
    gt_metrics metrics;
    gt_graph_init(graph, 1);
    for (size_t i = 0; i < np; i++) arrays->params.data[i] += 0.1F; /* no ReLU is dead */
    check_step(graph, w_tables[t], ROWS_N, "the first batch");
    check_step(graph, w_tables[t], ROWS_N, "another");
    check_step(graph, w_tables[t], 1, "a short one");
    check_step(graph, w_tables[t], ROWS_N, "after a short one");
    fill_ids(ids, ROWS_N * ROWS_F, ROWS_V);
    gt_graph_step(graph, ids, labels, ROWS_N, false, &metrics);
    check_step(graph, w_tables[t], 2, "after an evaluation");
    gt_graph_step(graph, ids, labels, 0, true, &metrics);
    for (size_t i = 0; i < np; i++) assert_true(arrays->grads.data[i] == 0.0F);
    check_step(graph, w_tables[t], 3, "after an empty batch");
    /* Lent arrays can hold any values. */
    float *lent = w_floats(&rng, 3 * np, 0.1), *other = w_floats(&rng, np, 0.1);
    for (size_t i = 0; i < np; i++) lent[np + i] = NAN;
    gt_graph_adopt(graph, lent, lent + np, lent + 2 * np);
    check_step(graph, w_tables[t], ROWS_N, "after an adoption");
    check_step(graph, w_tables[t], ROWS_N, "the second after an adoption");
    gt_graph_adopt(graph, lent + 2 * np, lent + np, lent + 2 * np);
    check_step(graph, w_tables[t], 2, "with other parameters");
    gt_graph_adopt(graph, lent, other, lent + 2 * np);
    check_step(graph, w_tables[t], 2, "with other gradients");
    gt_graph_close(graph);
    gt_free(other);
    gt_free(lent);
  }
}

static void gradients_in_order(void) {
  gt_graph *graph = deepfm("auto", ROWS_V, ROWS_F, ROWS_N, 0, NULL, 0);
  int32_t ids[ROWS_N * ROWS_F] = {0}, labels[ROWS_N] = {0};
  w_announced announced;
  gt_metrics metrics;
  w_listen(&announced, graph);
  gt_graph_step(graph, ids, labels, ROWS_N, true, &metrics);
  w_check_announced(&announced);
  gt_free(announced.kept);
  gt_graph_close(graph);
}

/* ---- names, values and errors ---------------------------------------------------------------- */

static void names_and_values(void) {
  static const w_tensor right[] = {
      {"embedding.weight", 5382, 10}, {"linear.weight", 5382, 1}, {"bias", 1, 0},
      {"mlp.0.weight", 400, 100},     {"mlp.0.bias", 400, 0},     {"mlp.2.weight", 400, 400},
      {"mlp.2.bias", 400, 0},         {"mlp.4.weight", 400, 400}, {"mlp.4.bias", 400, 0},
      {"mlp.6.weight", 1, 400},       {"mlp.6.bias", 1, 0}};
  enum { TENSORS = COUNT(right) };
  gt_graph *graph = deepfm("auto", 5382, 10, 0, 0, NULL, 0);
  const gt_arrays *arrays = gt_graph_arrays(graph);
  gt_graph_init(graph, 3);
  assert_int_equal(arrays->params.n, 420804);
  w_check_tensors(graph, right, TENSORS);
  float *out = GT_NEW_ARRAY(float, 420804);
  size_t at = 0;
  for (size_t i = 0; i < TENSORS; i++) {
    gt_view view;
    gt_graph_tensor(graph, i, &view, out);
    /* In the same layout. */
    assert_memory_equal(out, arrays->params.data + at, view.count * sizeof *out);
    at += view.count;
  }
  assert_int_equal(at, 420804);
  double squares = 0.0;
  for (size_t i = 0; i < 53820; i++)
    squares += (double)arrays->params.data[i] * (double)arrays->params.data[i];
  assert_true(fabs(sqrt(squares / 53820) / 0.01 - 1.0) < 0.02);
  for (size_t i = 53820; i < 53820 + 5383; i++) assert_true(arrays->params.data[i] == 0.0F);
  float most = 0.0F;
  for (size_t i = 59203; i < 59203 + 40000; i++) most = fmaxf(most, fabsf(arrays->params.data[i]));
  assert_true(most > 0.099F && most <= 0.1F); /* 1 / sqrt(100) */
  assert_int_equal(gt_graph_outputs(graph), 1);
  assert_int_equal(gt_graph_flops(graph), 6 * (100 + 100 * 400 + 2 * 400 * 400 + 400));
  must_contain(gt_graph_kernels(graph), "embedding=sparse fm=sparse");
  gt_free(out);
  gt_graph_close(graph);
}

static void hashes(void) {
  const int64_t a[] = {8, 4}, b[] = {8, 5};
  gt_graph *graphs[] = {deepfm("ref", 20, 3, 0, 6, a, 2), deepfm("ref", 20, 3, 0, 6, b, 2),
                        deepfm("ref", 20, 3, 0, 7, a, 2), deepfm("ref", 21, 3, 0, 6, a, 2),
                        deepfm("ref", 20, 4, 0, 6, a, 2), deepfm("ref", 20, 3, 0, 6, a, 1)};
  w_check_hashes(graphs, COUNT(graphs));
}

static void refusals(void) {
  const gt_sample_shape images = {28, 28, 1, 10, 0}, clicks = {1, 1, 10, 2, 5382},
                        three = {1, 1, 10, 3, 5382};
  const gt_model_options none = {0};
  const int64_t empty[] = {400, 0}, large[] = {65537};
  const char *const image_models[] = {"lenet5", "resnet18", "dummy"};
  w_refused(
      "deepfm", images, none, GT_ERR_DATA,
      "samples are images of 28 x 28 x 1; model deepfm takes ids, so expected a data set of ids");
  for (size_t i = 0; i < 3; i++) {
    char text[160];
    snprintf(text, sizeof text,
             "samples are 10 ids each, below 5382; model %s takes images, so expected a data set "
             "of images",
             image_models[i]);
    w_refused(image_models[i], clicks, none, GT_ERR_DATA, text);
    snprintf(text, sizeof text,
             "model.embedding is given; model %s has no such key, so it must not be given",
             image_models[i]);
    w_refused(image_models[i], images, (gt_model_options){.embedding = 8}, GT_ERR_JOB, text);
    snprintf(text, sizeof text,
             "model.mlp is given; model %s has no such key, so it must not be given",
             image_models[i]);
    w_refused(image_models[i], images, (gt_model_options){.mlp = large, .nmlp = 1}, GT_ERR_JOB,
              text);
  }
  w_refused("deepfm", three, none, GT_ERR_DATA,
            "samples are of 3 classes; model deepfm needs 2, because its one output is the "
            "probability of the second");
  w_refused("deepfm", clicks, (gt_model_options){.embedding = -1}, GT_ERR_JOB,
            "model.embedding is -1; expected 1 to 65536");
  w_refused("deepfm", clicks, (gt_model_options){.embedding = 65537}, GT_ERR_JOB,
            "model.embedding is 65537; expected 1 to 65536");
  w_refused("deepfm", clicks, (gt_model_options){.mlp = empty, .nmlp = 2}, GT_ERR_JOB,
            "model.mlp.1 is 0; expected 1 to 65536");
  w_refused("deepfm", clicks, (gt_model_options){.mlp = large, .nmlp = 1}, GT_ERR_JOB,
            "model.mlp.0 is 65537; expected 1 to 65536");
  w_refused("deepfm", clicks, (gt_model_options){.parameters = 9}, GT_ERR_JOB,
            "model.parameters is 9; model deepfm has a fixed number, so it must not be given");
}

/* ---- learning -------------------------------------------------------------------------------- */

/* Makes two kinds of users and of things: a click if the kinds agree, which neither id determines
   alone; a tenth of the labels is noise. */
static void clicks(int32_t *ids, int32_t *labels, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const int32_t user = (int32_t)gt_rng_below(&rng, 20), thing = (int32_t)gt_rng_below(&rng, 20);
    ids[3 * i] = user;
    ids[3 * i + 1] = 20 + thing;
    ids[3 * i + 2] = 40 + (int32_t)gt_rng_below(&rng, 10); /* carries no information */
    labels[i] =
        gt_rng_below(&rng, 10) == 0 ? (int32_t)gt_rng_below(&rng, 2) : (user + thing) % 2 == 0;
  }
}

static void learns_pairs(void) {
  enum { TEST = 512 };
  const w_course course = {&w_adam, clicks, 64, TEST, 3, 400};
  const int64_t mlp[] = {16, 8};
  static int32_t ids[TEST * 3], labels[TEST];
  static float scores[TEST];
  static uint32_t scratch[TEST];
  for (size_t t = 0; t < w_ntables(); t++) {
    gt_graph *graph = deepfm(w_tables[t], 50, 3, TEST, 4, mlp, 2);
    gt_metrics first;
    gt_graph_init(graph, 2);
    clicks(ids, labels, TEST);
    gt_graph_step(graph, ids, labels, TEST, false, &first);
    assert_true(fabs(first.loss_sum / TEST - log(2)) < 0.1);
    const gt_metrics metrics = w_learn(graph, &course, labels, scores);
    assert_true(metrics.loss_sum / TEST < 0.3); /* from the noise alone: 0.2 */
    assert_true(metrics.correct > TEST * 9 / 10);
    assert_true(gt_auc(scores, labels, TEST, scratch) > 0.93);
    gt_graph_close(graph);
  }
}

int main(void) {
  rng = gt_rng_make(21, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, embedding, factorization_machine, sum_of_two, every_gradient,
                   size_of_the_paper, bf16, rows_of_a_batch_alone, gradients_in_order,
                   names_and_values, hashes, refusals, learns_pairs);
}
