/* GPT: gradients of the whole model against central finite differences of an independent forward in
   float64, head tied and not; causality; bf16; names, initial values, errors; and learning of a
   pattern that only the context determines. */
#include "world.h"
#include "cases.h"
#include "ref64.h"

static gt_rng rng;

typedef struct {
  size_t V, T, D, layers, heads, context;
  bool untied;
} sizes;

static gt_graph *gpt(const char *table, const sizes *s, size_t batch_max, gt_precision precision) {
  const gt_graph_spec spec = {.model = "gpt",
                              .options = {.layers = (int64_t)s->layers,
                                          .width = (int64_t)s->D,
                                          .heads = (int64_t)s->heads,
                                          .context = (int64_t)s->context,
                                          .untied = s->untied},
                              .shape = {1, 1, s->T + 1, s->V, s->V},
                              .batch_max = batch_max,
                              .kernels = gt_kernels_find(table),
                              .precision = precision};
  return w_graph(&spec);
}

static void fill_ids(int32_t *ids, size_t n, size_t V) {
  for (size_t i = 0; i < n; i++) ids[i] = (int32_t)gt_rng_below(&rng, V);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* Computes one sequence's outputs (T,D) from the embeddings to the last normalisation; params in
   the order of the names in names_and_values.  Returns the address after these parameters. */
static const double *decoder64(double *out, const double *params, const int32_t *ids,
                               const sizes *s) {
  const size_t T = s->T, D = s->D;
  const double *wpe = params + s->V * D, *w = wpe + s->context * D;
  double *x = malloc(T * D * sizeof *x), *a = malloc(T * D * sizeof *a),
         *b = malloc(T * 4 * D * sizeof *b), *p = malloc(T * sizeof *p);
  for (size_t t = 0; t < T; t++)
    for (size_t d = 0; d < D; d++) x[t * D + d] = params[(size_t)ids[t] * D + d] + wpe[t * D + d];
  for (size_t l = 0; l < s->layers; l++) {
    r64_layernorm(a, x, w, w + D, T, D), w += 2 * D;
    r64_linear(b, a, w, w + 3 * D * D, T, D, 3 * D), w += 3 * D * D + 3 * D;
    r64_attention(a, b, T, D, s->heads, p);
    r64_linear(b, a, w, w + D * D, T, D, D), w += D * D + D;
    for (size_t i = 0; i < T * D; i++) x[i] += b[i];
    r64_layernorm(a, x, w, w + D, T, D), w += 2 * D;
    r64_linear(b, a, w, w + 4 * D * D, T, D, 4 * D), w += 4 * D * D + 4 * D;
    r64_gelu(b, T * 4 * D);
    r64_linear(a, b, w, w + 4 * D * D, T, 4 * D, D), w += 4 * D * D + D;
    for (size_t i = 0; i < T * D; i++) x[i] += a[i];
  }
  r64_layernorm(out, x, w, w + D, T, D);
  free(x), free(a), free(b), free(p);
  return w + 2 * D;
}

/* The mean loss of n sequences. */
static double gpt64(const double *params, const w_batch *batch) {
  const sizes *s = batch->shape;
  const int32_t *ids = batch->ids;
  double *x = malloc(s->T * s->D * sizeof *x), *scores = malloc(s->T * s->V * sizeof *scores),
         *none = calloc(s->V, sizeof *none), total = 0.0;
  for (size_t i = 0; i < batch->n; i++, ids += s->T + 1) {
    const double *behind = decoder64(x, params, ids, s);
    r64_linear(scores, x, s->untied ? behind : params, none, s->T, s->D, s->V);
    total += r64_loss(scores, ids + 1, s->T, s->V) / (double)batch->n;
  }
  free(x), free(scores), free(none);
  return total;
}

/* Enlarges the values, so that attention is not nearly uniform and every path matters. */
static void scatter(const gt_arrays *arrays) {
  for (size_t i = 0; i < arrays->params.n; i++)
    arrays->params.data[i] += (float)(0.15 * gt_rng_normal(&rng));
}

static void check_model(const char *table, const sizes *s, size_t n, size_t count) {
  gt_graph *graph = gpt(table, s, n + 1, GT_F32);
  int32_t ids[1024];
  gt_metrics metrics;
  gt_graph_init(graph, 5);
  scatter(gt_graph_arrays(graph));
  for (size_t step = 0; step < 2; step++) { /* the second finds the gradients of the first */
    fill_ids(ids, n * (s->T + 1), s->V);
    gt_graph_step(graph, ids, NULL, n, true, &metrics);
  }
  const w_judge judge = {.loss = gpt64,
                         .batch = {.shape = s, .ids = ids, .n = n},
                         .h = 1e-5,
                         .near_loss = 3e-6,
                         .near = 2e-4,
                         .least = s->T == 1 ? -1 : 1e-6,
                         .count = count};
  w_check_gradients(graph, &judge, &metrics, &rng);
  gt_graph_close(graph);
}

static void every_gradient(void) {
  for (size_t t = 0; t < w_ntables(); t++) {
    check_model(w_tables[t], &(sizes){11, 6, 8, 2, 2, 9, false}, 3, cases(200, 60));
    check_model(w_tables[t], &(sizes){11, 6, 8, 2, 2, 6, true}, 3, cases(200, 60));
    check_model(w_tables[t], &(sizes){5, 1, 6, 1, 3, 1, false}, 2, cases(1000, 300));
    check_model(w_tables[t], &(sizes){40, 9, 33, 1, 1, 12, true}, 2, cases(24, 8)); /* odd sizes */
    check_model(w_tables[t], &(sizes){37, 130, 24, 1, 2, 140, false}, 2,
                cases(6, 2)); /* blocks of 64 */
  }
}

/* With a tied head, the first tensor's gradient is complete only at the end of the pass. */
static void told_gradients_are_final(void) {
  for (int untied = 0; untied < 2; untied++) {
    const sizes s = {30, 12, 16, 2, 2, 12, untied != 0};
    gt_graph *graph = gpt("auto", &s, 2, GT_F32);
    w_announced announced;
    int32_t ids[2 * 13];
    gt_metrics metrics;
    gt_graph_init(graph, 4);
    fill_ids(ids, 2 * 13, s.V);
    w_listen(&announced, graph);
    gt_graph_step(graph, ids, NULL, 2, true, &metrics);
    w_check_announced(&announced);
    gt_free(announced.kept);
    gt_graph_close(graph);
  }
}

/* ---- results --------------------------------------------------------------------------------- */

/* The logits of a position depend on no later id; infer gives those of an evaluation. */
static void only_the_past_counts(void) {
  const sizes s = {50, 90, 24, 2, 3, 100, false};
  enum { N = 2, T = 90, V = 50, CUT = 70 };
  static int32_t ids[N * (T + 1)], other[N * (T + 1)];
  static float before[N * T * V];
  for (size_t t = 0; t < w_ntables(); t++) {
    gt_graph *graph = gpt(w_tables[t], &s, N, GT_F32);
    gt_metrics metrics;
    gt_graph_init(graph, 7);
    scatter(gt_graph_arrays(graph));
    assert_int_equal(gt_graph_predictions(graph), T);
    assert_int_equal(gt_graph_outputs(graph), V);
    fill_ids(ids, N * (T + 1), V);
    memcpy(other, ids, sizeof ids);
    for (size_t i = 0; i < N; i++) fill_ids(other + i * (T + 1) + CUT, T + 1 - CUT, V);
    gt_graph_step(graph, ids, NULL, N, false, &metrics);
    memcpy(before, gt_graph_scores(graph), sizeof before);
    assert_memory_equal(before, gt_graph_infer(graph, ids, N), sizeof before);
    const float *now = gt_graph_infer(graph, other, N);
    for (size_t i = 0; i < N; i++) {
      assert_memory_equal(now + i * T * V, before + i * T * V, CUT * V * sizeof *now);
      assert_memory_not_equal(now + (i * T + CUT) * V, before + (i * T + CUT) * V, V);
    }
    gt_graph_close(graph);
  }
}

/* A shorter sample has the logits of the beginning of a longer one. */
static void lengths_within_the_context(void) {
  const sizes longer = {20, 80, 16, 1, 2, 80, false}, shorter = {20, 66, 16, 1, 2, 80, false};
  gt_graph *a = gpt("auto", &longer, 1, GT_F32), *b = gpt("auto", &shorter, 1, GT_F32);
  int32_t ids[81];
  gt_graph_init(a, 3);
  gt_graph_init(b, 3);
  fill_ids(ids, 81, 20);
  const float *x = gt_graph_infer(a, ids, 1), *y = gt_graph_infer(b, ids, 1);
  for (size_t i = 0; i < 66 * 20; i++) assert_true(fabsf(x[i] - y[i]) < 1e-5F);
  gt_graph_close(a);
  gt_graph_close(b);
}

/* Products in bf16 have 8 significant bits. */
static void bf16_is_near(void) {
  const char *why;
  const sizes s = {64, 70, 64, 2, 2, 70, false};
  enum { N = 3, T = 70, V = 64 };
  if (!gt_kernels_bf16(&why)) skip();
  gt_graph *a = gpt("auto", &s, N, GT_F32), *b = gpt("auto", &s, N, GT_BF16);
  int32_t ids[N * (T + 1)];
  gt_metrics exact, near;
  gt_graph_init(a, 9);
  gt_graph_init(b, 9);
  fill_ids(ids, N * (T + 1), V);
  gt_graph_step(a, ids, NULL, N, true, &exact);
  gt_graph_step(b, ids, NULL, N, true, &near);
  const gt_vec g = gt_graph_arrays(a)->grads, h = gt_graph_arrays(b)->grads;
  const double difference = w_difference(h.data, g.data, g.n);
  assert_true(fabs(exact.loss_sum - near.loss_sum) < 0.002 * exact.loss_sum);
  assert_true(difference > 0.0 && difference < 0.02);
  must_contain(gt_graph_kernels(b), "linear=dnn");
  gt_graph_close(a);
  gt_graph_close(b);
}

/* ---- names, values and errors ---------------------------------------------------------------- */

static double deviation(const gt_graph *graph, size_t i) {
  const gt_view *view = &gt_graph_arrays(graph)->views[i];
  const float *x = gt_graph_arrays(graph)->params.data + view->offset;
  double squares = 0.0;
  for (size_t k = 0; k < view->count; k++) squares += (double)x[k] * (double)x[k];
  return sqrt(squares / (double)view->count);
}

static void names_and_values(void) {
  static const struct {
    const char *name;
    size_t rows, columns; /* in units of the width; columns 0: one dimension */
    double deviation;     /* 1: all 1 */
  } block[] = {{"ln_1.weight", 1, 0, 1},        {"ln_1.bias", 1, 0, 0},
               {"attn.c_attn.weight", 3, 1, 2}, {"attn.c_attn.bias", 3, 0, 0},
               {"attn.c_proj.weight", 1, 1, 3}, {"attn.c_proj.bias", 1, 0, 0},
               {"ln_2.weight", 1, 0, 1},        {"ln_2.bias", 1, 0, 0},
               {"mlp.c_fc.weight", 4, 1, 2},    {"mlp.c_fc.bias", 4, 0, 0},
               {"mlp.c_proj.weight", 1, 4, 3},  {"mlp.c_proj.bias", 1, 0, 0}};
  enum { D = 64, V = 100, C = 30, LAYERS = 3, EACH = COUNT(block) };
  for (int untied = 0; untied < 2; untied++) {
    const sizes s = {V, 20, D, LAYERS, 4, C, untied != 0};
    gt_graph *graph = gpt("auto", &s, 0, GT_F32);
    gt_graph_init(graph, 3);
    assert_int_equal(gt_graph_tensors(graph), 2 + LAYERS * EACH + 3);
    w_check_tensor(graph, 0, (w_tensor){"transformer.wte.weight", V, D});
    w_check_tensor(graph, 1, (w_tensor){"transformer.wpe.weight", C, D});
    assert_true(fabs(deviation(graph, 0) - 0.02) < 0.001);
    assert_true(fabs(deviation(graph, 1) - 0.02) < 0.002);
    for (size_t i = 0; i < (size_t)LAYERS * EACH; i++) {
      char name[64];
      snprintf(name, sizeof name, "transformer.h.%zu.%s", i / EACH, block[i % EACH].name);
      w_check_tensor(graph, 2 + i,
                     (w_tensor){name, D * block[i % EACH].rows, D * block[i % EACH].columns});
      const double known[] = {0.0, 1.0, 0.02, 0.02 / sqrt(6.0)};
      const double right = known[(int)block[i % EACH].deviation];
      assert_true(fabs(deviation(graph, 2 + i) - right) < 0.05 * right + 1e-9);
    }
    const size_t end = 2 + LAYERS * EACH;
    w_check_tensor(graph, end, (w_tensor){"transformer.ln_f.weight", D, 0});
    w_check_tensor(graph, end + 2, (w_tensor){"lm_head.weight", V, D});
    float first[V * D], last[V * D];
    gt_view view;
    gt_graph_tensor(graph, 0, &view, first);
    gt_graph_tensor(graph, end + 2, &view, last);
    size_t equal = 0;
    for (size_t i = 0; i < (size_t)V * D; i++) equal += first[i] == last[i];
    assert_true(untied ? equal < 10 : equal == (size_t)V * D);
    gt_graph_close(graph);
  }
}

static void presets(void) {
  static const struct {
    const char *name;
    gt_sample_shape shape;
    size_t parameters; /* as in the original codes, for GPT-2 124,439,808 */
  } right[] = {{"gpt-tiny", {1, 1, 129, 256, 256}, 858880},
               {"gpt-small", {1, 1, 129, 65, 65}, 10770816},
               {"gpt-124m", {1, 1, 1025, 50257, 50257}, 124439808}};
  for (size_t i = 0; i < COUNT(right); i++) {
    const gt_graph_spec spec = {.model = right[i].name,
                                .shape = right[i].shape,
                                .sizes_only = true,
                                .kernels = gt_kernels_find("auto")};
    gt_graph *graph = w_graph(&spec);
    assert_int_equal(gt_graph_arrays(graph)->params.n, right[i].parameters);
    assert_null(gt_graph_arrays(graph)->params.data);
    gt_graph_close(graph);
  }
}

static void operations_are_counted(void) {
  const sizes s = {50, 20, 24, 2, 3, 100, false};
  gt_graph *graph = gpt("auto", &s, 0, GT_F32);
  assert_int_equal(gt_graph_flops(graph),
                   6 * (20 * (2 * 12 * 24 * 24 + 50 * 24) + 2 * 20 * 21 * 24));
  must_contain(gt_graph_kernels(graph), "layernorm=fused gelu=fused attention=blocks");
  gt_graph_close(graph);
}

static void hashes(void) {
  static const sizes all[] = {{20, 5, 12, 2, 2, 8, false}, {21, 5, 12, 2, 2, 8, false},
                              {20, 6, 12, 2, 2, 8, false}, {20, 5, 14, 2, 2, 8, false},
                              {20, 5, 12, 3, 2, 8, false}, {20, 5, 12, 2, 3, 8, false},
                              {20, 5, 12, 2, 2, 9, false}, {20, 5, 12, 2, 2, 8, true}};
  enum { GRAPHS = COUNT(all) };
  gt_graph *graphs[GRAPHS];
  for (size_t i = 0; i < GRAPHS; i++) graphs[i] = gpt("ref", &all[i], 0, GT_F32);
  w_check_hashes(graphs, GRAPHS);
}

/* Samples with labels are refused; a text is accepted. */
static void labels_are_refused(void) {
  gt_graph *graph = NULL;
  gt_graph_spec spec = {.model = "gpt",
                        .shape = {1, 1, 21, 100, 100},
                        .labelled = true,
                        .batch_max = 2,
                        .kernels = gt_kernels_find("ref")};
  must_say(gt_graph_create(&graph, &spec), GT_ERR_DATA,
           "samples are 21 ids with a label of 100 classes; model gpt predicts the next "
           "id of a text and learns no labels, so expected a data set of a text, as "
           "`geotrain data import text` writes it");
  spec.labelled = false;
  spec.text = true;
  must(gt_graph_create(&graph, &spec));
  gt_graph_close(graph);
}

static void refusals(void) {
  const gt_sample_shape images = {28, 28, 1, 10, 0}, texts = {1, 1, 21, 100, 100},
                        single = {1, 1, 1, 100, 100}, longer = {1, 1, 300, 100, 100};
  w_refused(
      "gpt", images, (gt_model_options){0}, GT_ERR_DATA,
      "samples are images of 28 x 28 x 1; model gpt takes ids, so expected a data set of ids");
  w_refused("gpt", texts, (gt_model_options){.layers = -1}, GT_ERR_JOB,
            "model.layers is -1; expected 1 to 1024");
  w_refused("gpt-small", texts, (gt_model_options){.width = 65537}, GT_ERR_JOB,
            "model.width is 65537; expected 1 to 65536");
  w_refused(
      "gpt-small", texts, (gt_model_options){.heads = 5}, GT_ERR_JOB,
      "model.width is 384 and model.heads 5; expected a width that is a multiple of the heads");
  w_refused(
      "gpt", single, (gt_model_options){0}, GT_ERR_DATA,
      "samples are 1 ids each, so 0 positions; with model.context 256, expected 2 to 257 ids");
  w_refused(
      "gpt", longer, (gt_model_options){0}, GT_ERR_DATA,
      "samples are 300 ids each, so 299 positions; with model.context 256, expected 2 to 257 ids");
  w_refused("gpt", texts, (gt_model_options){.hidden = 8}, GT_ERR_JOB,
            "model.hidden is given; model gpt has no such key, so it must not be given");
  w_refused("lstm", texts, (gt_model_options){.heads = 8}, GT_ERR_JOB,
            "model.heads is given; model lstm has no such key, so it must not be given");
  w_refused("lstm", texts, (gt_model_options){.untied = true}, GT_ERR_JOB,
            "model.untied is given; model lstm has no such key, so it must not be given");
}

/* ---- learning -------------------------------------------------------------------------------- */

enum { LEARNT_T = 15, LEARNT_V = 8 };

/* Makes random ids, then the same ids once more: the first half determines the second. */
static void repeat(int32_t *ids, int32_t *labels, size_t n) {
  const size_t half = (LEARNT_T + 1) / 2;
  (void)labels;
  for (size_t i = 0; i < n; i++, ids += 2 * half) {
    fill_ids(ids, half, LEARNT_V);
    memcpy(ids + half, ids, half * sizeof *ids);
  }
}

/* Of the T predictions, (T - 1) / 2 are random and the others determined: log(V) for the former,
   near 0 for the latter. */
static void learns_to_repeat(void) {
  enum { B = 32, T = LEARNT_T, V = LEARNT_V };
  const sizes s = {V, T, 32, 2, 4, T, false};
  const gt_optim_spec spec = {.kind = GT_OPTIMIZER_ADAMW,
                              .schedule = {.kind = GT_LR_CONSTANT, .lr = 0.003},
                              .beta1 = 0.9,
                              .beta2 = 0.99,
                              .epsilon = 1e-8,
                              .weight_decay = 0.01};
  const w_course course = {&spec, repeat, B, B, T + 1, 500};
  int32_t ids[B * (T + 1)];
  const char *const learners[] = {"auto", "blas"}; /* ref takes too long */
  for (size_t t = 0; t < cases(2, 1); t++) {
    gt_graph *graph = gpt(learners[t], &s, B, GT_F32);
    gt_metrics metrics;
    gt_graph_init(graph, 2);
    repeat(ids, NULL, B);
    gt_graph_step(graph, ids, NULL, B, false, &metrics);
    assert_true(fabs(metrics.loss_sum / B - log(V)) < 0.1);
    metrics = w_learn(graph, &course, NULL, NULL);
    const double loss = metrics.loss_sum / B;
    print_message("%s: loss %.3f, %zu of %d\n", learners[t], loss, metrics.correct, B * T);
    assert_true(loss < (7 * log(V) + 8 * 0.1) / 15);
    assert_true(metrics.correct > (size_t)B * 8 * 95 / 100);
    gt_graph_close(graph);
  }
}

int main(void) {
  rng = gt_rng_make(29, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, every_gradient, told_gradients_are_final, only_the_past_counts,
                   lengths_within_the_context, bf16_is_near, names_and_values, presets,
                   operations_are_counted, hashes, refusals, labels_are_refused, learns_to_repeat);
}
