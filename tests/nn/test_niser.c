/* NISER: gradients of the whole model against central finite differences of an independent forward
   in float64, over sessions of all lengths with repeated items; padding; the two backward passes of
   an operation alone; names, initial values, errors; and learning. */
#include "world.h"
#include "ref64.h"
#include "session_graph.h"

static gt_rng rng;
static bool positions; /* of the models below */

static gt_graph *niser(const char *table, size_t items, size_t T, size_t batch_max, int64_t H,
                       double scale) {
  const gt_graph_spec spec = {.model = "niser",
                              .options = {.hidden = H, .scale = scale, .positions = positions},
                              .shape = {1, 1, T, items, items + 1},
                              .batch_max = batch_max,
                              .kernels = gt_kernels_find(table)};
  return w_graph(&spec);
}

/* Makes sessions of all lengths from 0 to T, in no order, with frequent repetitions. */
static void fill_sessions(int32_t *ids, size_t n, size_t T, size_t items) {
  for (size_t i = 0; i < n; i++) {
    const size_t length = (i * 7 + 3) % (T + 1), some = items < 4 ? items : 2 + i % 3;
    const int32_t base = (int32_t)gt_rng_below(&rng, items - some + 1);
    for (size_t t = 0; t < T; t++)
      ids[i * T + t] = t < T - length ? GT_PADDING : 1 + base + (int32_t)gt_rng_below(&rng, some);
  }
}

/* ---- forward in float64 ---------------------------------------------------------------------- */

typedef struct {
  size_t V, T, H;
  double scale;
} shape64;

enum { MOST_T = 12, MOST_H = 40 };

static void unit64(double *y, const double *x, size_t n) {
  double squares = 0.0;
  for (size_t k = 0; k < n; k++) squares += x[k] * x[k];
  for (size_t k = 0; k < n; k++) y[k] = x[k] / sqrt(squares);
}

/* The matrix of connections of SR-GNN's definition: from[u][v] is 1 if v was clicked after u. */
typedef struct {
  size_t nodes, length, alias[MOST_T];
  int32_t items[MOST_T];
  double edge[MOST_T][MOST_T];
} graph64;

static void read64(graph64 *g, const int32_t *ids, size_t T) {
  memset(g, 0, sizeof *g);
  for (size_t t = 0; t < T; t++) {
    if (ids[t] == GT_PADDING) continue;
    size_t j = 0;
    while (j < g->nodes && g->items[j] != ids[t]) j++;
    if (j == g->nodes) g->items[g->nodes++] = ids[t];
    g->alias[g->length++] = j;
  }
  for (size_t t = 1; t < g->length; t++) g->edge[g->alias[t - 1]][g->alias[t]] = 1.0;
}

/* Computes the mean of the messages of v's neighbors, plus a bias; in: the predecessors. */
static void mean64(double *a, const graph64 *g, size_t v, double h[][MOST_H], const double *w,
                   const double *b, const double *bias, bool in, size_t H) {
  double degree = 0.0, sent[MOST_H];
  memcpy(a, bias, H * sizeof *a);
  for (size_t u = 0; u < g->nodes; u++) degree += in ? g->edge[u][v] : g->edge[v][u];
  for (size_t u = 0; u < g->nodes; u++) {
    if ((in ? g->edge[u][v] : g->edge[v][u]) == 0.0) continue;
    r64_linear(sent, h[u], w, b, 1, H, H);
    for (size_t k = 0; k < H; k++) a[k] += sent[k] / degree;
  }
}

/* w: the parameters of the step, in the order of their names. */
static void step64(double y[][MOST_H], const graph64 *g, double h[][MOST_H], const double *w,
                   size_t H) {
  const double *w_hh = w + 6 * H * H, *b_ih = w_hh + 3 * H * H, *b_hh = b_ih + 3 * H,
               *b_iah = b_hh + 3 * H, *b_oah = b_iah + H, *in = b_oah + H, *out = in + H * H + H;
  for (size_t v = 0; v < g->nodes; v++) {
    double a[2 * MOST_H], gi[3 * MOST_H], gh[3 * MOST_H];
    mean64(a, g, v, h, in, in + H * H, b_iah, true, H);
    mean64(a + H, g, v, h, out, out + H * H, b_oah, false, H);
    r64_linear(gi, a, w, b_ih, 1, 2 * H, 3 * H);
    r64_linear(gh, h[v], w_hh, b_hh, 1, H, 3 * H);
    for (size_t k = 0; k < H; k++) {
      const double r = r64_sigmoid(gi[k] + gh[k]), z = r64_sigmoid(gi[H + k] + gh[H + k]),
                   n = tanh(gi[2 * H + k] + r * gh[2 * H + k]);
      y[v][k] = (1.0 - z) * n + z * h[v][k];
    }
  }
}

/* y (2H): the attention over all clicks, and the last one; P: the vectors of positions, or NULL. */
static void readout64(double *y, const graph64 *g, double h[][MOST_H], const double *P,
                      const double *w, size_t H) {
  const double *two = w + H * H + H, *three = two + H * H + H;
  double q1[MOST_H], q2[MOST_H], clicks[MOST_T][MOST_H];
  memset(y, 0, 2 * H * sizeof *y);
  if (g->length == 0) return;
  for (size_t t = 0; t < g->length; t++)
    for (size_t k = 0; k < H; k++) clicks[t][k] = h[g->alias[t]][k] + (P ? P[t * H + k] : 0.0);
  const double *last = clicks[g->length - 1];
  memcpy(y + H, last, H * sizeof *y);
  r64_linear(q1, last, w, w + H * H, 1, H, H);
  for (size_t t = 0; t < g->length; t++) {
    const double *click = clicks[t];
    double alpha = 0.0;
    r64_linear(q2, click, two, two + H * H, 1, H, H);
    for (size_t k = 0; k < H; k++) alpha += three[k] * r64_sigmoid(q1[k] + q2[k]);
    for (size_t k = 0; k < H; k++) y[k] += alpha * click[k];
  }
}

/* The mean loss; params in the order of their names. */
static double niser64(const double *params, const w_batch *batch) {
  const shape64 *s = batch->shape;
  const size_t H = s->H, n = batch->n;
  const double *step = params + (s->V + 1) * H, *P = step + 9 * H * H + 8 * H + 2 * H * H + 2 * H,
               *readout = P + (positions ? s->T * H : 0), *transform = readout + 2 * H * H + 3 * H;
  double *scores = malloc(n * s->V * sizeof *scores);
  for (size_t i = 0; i < n; i++) {
    graph64 g;
    double h[MOST_T][MOST_H], y[MOST_T][MOST_H], both[2 * MOST_H], session[MOST_H], item[MOST_H];
    read64(&g, batch->ids + i * s->T, s->T);
    for (size_t v = 0; v < g.nodes; v++) unit64(h[v], params + (size_t)g.items[v] * H, H);
    step64(y, &g, h, step, H);
    readout64(both, &g, y, positions ? P : NULL, readout, H);
    r64_linear(session, both, transform, transform + 2 * H * H, 1, 2 * H, H);
    unit64(session, session, H);
    for (size_t v = 0; v < s->V; v++) {
      double cosine = 0.0;
      unit64(item, params + (v + 1) * H, H);
      for (size_t k = 0; k < H; k++) cosine += item[k] * session[k];
      scores[i * s->V + v] = s->scale * cosine;
    }
  }
  const double loss = r64_loss(scores, batch->labels, n, s->V);
  free(scores);
  return loss;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static void check_model(const char *table, const shape64 *s, size_t n, size_t stride) {
  gt_graph *graph = niser(table, s->V, s->T, n + 2, (int64_t)s->H, s->scale);
  const gt_vec grads = gt_graph_arrays(graph)->grads;
  int32_t ids[256], labels[32];
  gt_metrics metrics;
  gt_graph_init(graph, 5);
  fill_sessions(ids, n, s->T, s->V);
  for (size_t i = 0; i < n; i++) labels[i] = (int32_t)gt_rng_below(&rng, s->V);
  for (size_t i = 0; i < grads.n; i++) grads.data[i] = 5; /* overwritten */
  gt_graph_step(graph, ids, labels, n, true, &metrics);
  const w_judge judge = {.loss = niser64,
                         .batch = {.shape = s, .ids = ids, .labels = labels, .n = n},
                         .h = 1e-6,
                         .near_loss = 4e-6,
                         .near = 2e-4,
                         .least = s->T == 1 ? -1 : 1e-5, /* one item: no messages */
                         .stride = stride,
                         .padding = s->H};
  w_check_gradients(graph, &judge, &metrics, &rng);
  gt_graph_close(graph);
}

static void every_gradient(void) {
  for (size_t i = 0; i < 2 * w_ntables(); i++) {
    const size_t t = i / 2;
    positions = i % 2;
    check_model(w_tables[t], &(shape64){9, 5, 4, 16.0}, 7, 1);
    check_model(w_tables[t], &(shape64){4, 8, 5, 3.0}, 20, 1); /* every item occurs many times */
    check_model(w_tables[t], &(shape64){7, 1, 3, 16.0}, 4, 1); /* no edges */
    check_model(w_tables[t], &(shape64){300, 9, 37, 16.0}, 9, 397);
  }
  positions = false;
}

/* Either pass of an operation gives the same results alone, and in any order. */
static void passes_are_apart(void) {
  enum { N = 6, T = 5, V = 8, H = 7 };
  int32_t ids[N * T], labels[N] = {0, 1, 2, 3, 4, 5};
  fill_sessions(ids, N, T, V);
  for (size_t t = 0; t < w_ntables(); t++) {
    gt_graph *graph = niser(w_tables[t], V, T, N, H, 0);
    const gt_arrays *arrays = gt_graph_arrays(graph);
    gt_metrics metrics;
    gt_graph_init(graph, 7);
    gt_graph_step(graph, ids, labels, N, true, &metrics);
    for (size_t i = 1; i < 3; i++) { /* the gated step and the readout */
      const gt_op *op = &graph->ops[i];
      gt_activation *a = &graph->ops[i].slots[0];
      const size_t n = N * op->in,
                   count = arrays->params.n - graph->params.views[op->weight].offset,
                   owned = i == 1 ? 11 * H * H + 10 * H : 2 * H * H + 3 * H;
      float *dw = arrays->grads.data + graph->params.views[op->weight].offset, dx[N * T * H],
            was[11 * H * H + 10 * H];
      const gt_pass pass = {.kernels = graph->kernels,
                            .samples = ids,
                            .x = graph->ops[i - 1].slots[0].y,
                            .dx = a->dx,
                            .a = a,
                            .w = arrays->params.data + graph->params.views[op->weight].offset,
                            .dw = dw,
                            .work = graph->work,
                            .n = N,
                            .train = true};
      assert_true(owned <= count);
      for (size_t k = 0; k < N * op->out; k++) ((float *)a->dy)[k] = (float)gt_rng_normal(&rng);
      float *dy = GT_NEW_ARRAY(float, N * op->out);
      memcpy(dy, a->dy, N * op->out * sizeof *dy);
      op->kind->backward_weight(op, &pass);
      memcpy(was, dw, owned * sizeof *dw);
      memset(graph->work, 0x7f, op->kind->work(op, N) * sizeof(float));
      op->kind->backward_input(op, &pass);
      const size_t rows = gt_session_graph_at(a->state, N, T).M;
      memcpy(dx, a->dx, rows * H * sizeof *dx);
      memcpy(a->dy, dy, N * op->out * sizeof *dy);
      memset(dw, 0, owned * sizeof *dw);
      memset(graph->work, 0x7f, op->kind->work(op, N) * sizeof(float));
      op->kind->backward_input(op, &pass);
      memcpy(a->dy, dy, N * op->out * sizeof *dy);
      op->kind->backward_weight(op, &pass);
      assert_memory_equal(was, dw, owned * sizeof *dw);
      op->kind->backward_input(op, &pass);
      assert_memory_equal(dx, a->dx, rows * H * sizeof *dx);
      assert_true(n >= rows * H);
      gt_free(dy);
    }
    gt_graph_close(graph);
  }
}

/* ---- graphs of sessions ---------------------------------------------------------------------- */

static void session_graphs(void) {
  enum { N = 4, T = 6 };
  static const int32_t ids[N * T] = {0, 5, 7, 5, 7, 7, /* 5 -> 7, 7 -> 5, 7 -> 7 */
                                     0, 0, 0, 0, 0, 0, /* none */
                                     0, 0, 0, 0, 0, 3, /* one click */
                                     5, 3, 9, 3, 5, 3};
  float *memory = GT_NEW_ARRAY(float, gt_session_graph_floats(N, T));
  for (int again = 0; again < 2; again++) {
    const gt_session_graph g =
        again ? gt_session_graph_at(memory, N, T) : gt_session_graph_read(memory, ids, N, T);
    assert_true(g.N == N && g.M == 6 && g.E == 7);
    assert_memory_equal(g.first, ((uint32_t[]){0, 2, 2, 3, 6}), 5 * sizeof *g.first);
    assert_true(g.last[0] == 1 && g.last[2] == 2 && g.last[3] == 4);
    assert_memory_equal(g.items, ((int32_t[]){5, 7, 3, 5, 3, 9}), 6 * sizeof *g.items);
    assert_memory_equal(g.count, ((float[]){2, 3, 1, 2, 3, 1}), 6 * sizeof *g.count);
    assert_memory_equal(g.in, ((float[]){1, 0.5F, 0, 1, 0.5F, 1}), 6 * sizeof *g.in);
    assert_memory_equal(g.out, ((float[]){1, 0.5F, 0, 1, 0.5F, 1}), 6 * sizeof *g.out);
    assert_memory_equal(g.from, ((uint32_t[]){0, 1, 1, 3, 4, 5, 4}), 7 * sizeof *g.from);
    assert_memory_equal(g.to, ((uint32_t[]){1, 0, 1, 4, 5, 4, 3}), 7 * sizeof *g.to);
  }
  gt_free(memory);
}

/* Places the items of n sessions among more ids: after the padding, before it, or with padding at
   every second position. */
static void place(int32_t *to, size_t T, const int32_t *ids, size_t n, size_t from_T, int how) {
  memset(to, 0, n * T * sizeof *to);
  for (size_t i = 0; i < n; i++) {
    size_t items = 0, at = 0;
    for (size_t t = 0; t < from_T; t++) items += ids[i * from_T + t] != GT_PADDING;
    if (how == 0) at = T - items;
    for (size_t t = 0; t < from_T; t++) {
      if (ids[i * from_T + t] == GT_PADDING) continue;
      to[i * T + at] = ids[i * from_T + t];
      at += how == 2 ? 2 : 1;
    }
  }
}

static void padding_changes_nothing(void) {
  enum { N = 6, SHORT = 4, LONG = 9, V = 12 };
  for (size_t t = 0; t < w_ntables(); t++) {
    gt_graph *some = niser(w_tables[t], V, SHORT, N, 6, 0),
             *more = niser(w_tables[t], V, LONG, N, 6, 0);
    int32_t ids[N * SHORT], padded[N * LONG], labels[N] = {0, 1, 2, 0, 1, 2};
    gt_metrics a, b;
    gt_graph_init(some, 7);
    gt_graph_init(more, 7);
    fill_sessions(ids, N, SHORT, V);
    gt_graph_step(some, ids, labels, N, true, &a);
    for (int how = 0; how < 3; how++) {
      place(padded, LONG, ids, N, SHORT, how);
      gt_graph_step(more, padded, labels, N, true, &b);
      assert_true(a.loss_sum == b.loss_sum && a.correct == b.correct);
      assert_memory_equal(gt_graph_scores(some), gt_graph_scores(more), N * V * sizeof(float));
      const gt_vec g = gt_graph_arrays(some)->grads;
      assert_memory_equal(g.data, gt_graph_arrays(more)->grads.data, g.n * sizeof(float));
    }
    gt_graph_close(some);
    gt_graph_close(more);
  }
}

/* Sessions without items, and only these: the scores are the linear layer's bias. */
static void sessions_without_items(void) {
  enum { N = 3, T = 5, V = 6, H = 4 };
  const int32_t ids[N * T] = {0}, labels[N] = {1, 0, 1};
  for (size_t run = 0; run < 2 * w_ntables(); run++) {
    positions = run % 2;
    gt_graph *graph = niser(w_tables[run / 2], V, T, N, H, 0);
    const gt_arrays *arrays = gt_graph_arrays(graph);
    gt_metrics metrics;
    gt_graph_init(graph, 3);
    const float *bias = arrays->params.data + arrays->params.n - H, *items = arrays->params.data;
    for (size_t i = 0; i < arrays->grads.n; i++) arrays->grads.data[i] = 5;
    gt_graph_step(graph, ids, labels, N, true, &metrics);
    for (size_t v = 0; v < V; v++) {
      double product = 0.0, a = 0.0, b = 0.0;
      for (size_t k = 0; k < H; k++) {
        const double x = (double)items[(v + 1) * H + k], y = (double)bias[k];
        product += x * y, a += x * x, b += y * y;
      }
      const double right = 16.0 * product / sqrt(a * b);
      for (size_t i = 0; i < N; i++)
        assert_true(fabs((double)gt_graph_scores(graph)[i * V + v] - right) < 1e-4);
    }
    for (size_t i = arrays->views[1].offset; i < arrays->params.n - H; i++)
      assert_true(arrays->grads.data[i] == 0.0F);
    gt_graph_close(graph);
  }
  positions = false;
}

/* The vector of the padding stays 0, and no step allocates. */
static void nothing_is_allocated(void) {
  enum { N = 8, T = 6, V = 20, H = 7 };
  gt_optim_spec spec = w_adam;
  spec.weight_decay = 0.1;
  gt_graph *graph = niser("auto", V, T, N, H, 0);
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
    fill_sessions(ids, N, T, V);
    for (size_t i = 0; i < N; i++) labels[i] = (int32_t)gt_rng_below(&rng, V);
    gt_graph_step(graph, ids, labels, step == 3 ? N - 1 : N, true, &metrics);
    gt_optim_step(optim, arrays->params, arrays->grads, gt_vec_of(NULL, arrays->params.n));
  }
  assert_int_equal(gt_alloc_total(), total);
  for (size_t i = 0; i < H; i++) assert_true(arrays->params.data[i] == 0.0F);
  gt_optim_close(optim);
  gt_graph_close(graph);
}

/* ---- names, values and errors ---------------------------------------------------------------- */

static void names_and_values(void) {
  static const w_tensor right[] = {{"embedding.weight", 43098, 100},
                                   {"gnn.w_ih", 300, 200},
                                   {"gnn.w_hh", 300, 100},
                                   {"gnn.b_ih", 300, 0},
                                   {"gnn.b_hh", 300, 0},
                                   {"gnn.b_iah", 100, 0},
                                   {"gnn.b_oah", 100, 0},
                                   {"gnn.linear_edge_in.weight", 100, 100},
                                   {"gnn.linear_edge_in.bias", 100, 0},
                                   {"gnn.linear_edge_out.weight", 100, 100},
                                   {"gnn.linear_edge_out.bias", 100, 0},
                                   {"linear_one.weight", 100, 100},
                                   {"linear_one.bias", 100, 0},
                                   {"linear_two.weight", 100, 100},
                                   {"linear_two.bias", 100, 0},
                                   {"linear_three.weight", 1, 100},
                                   {"linear_transform.weight", 100, 200},
                                   {"linear_transform.bias", 100, 0}};
  enum { TENSORS = COUNT(right) };
  gt_graph *graph = niser("auto", 43097, 20, 0, 0, 0);
  const gt_arrays *arrays = gt_graph_arrays(graph);
  gt_graph_init(graph, 3);
  assert_int_equal(arrays->params.n, 4461200);
  w_check_tensors(graph, right, TENSORS);
  for (size_t i = 0; i < TENSORS; i++) w_check_uniform(graph, i, 0.1); /* 1 / sqrt(100) */
  for (size_t i = 0; i < 100; i++) assert_true(arrays->params.data[i] == 0.0F);
  assert_int_equal(gt_graph_outputs(graph), 43097);
  gt_graph_close(graph);
}

static void hashes(void) {
  gt_graph *graphs[] = {niser("ref", 20, 5, 0, 6, 0), niser("ref", 21, 5, 0, 6, 0),
                        niser("ref", 20, 6, 0, 6, 0), niser("ref", 20, 5, 0, 7, 0)};
  w_check_hashes(graphs, COUNT(graphs));
}

static void refusals(void) {
  const gt_sample_shape images = {28, 28, 1, 10, 0}, sessions = {1, 1, 20, 99, 100};
  w_refused(
      "niser", images, (gt_model_options){0}, GT_ERR_DATA,
      "samples are images of 28 x 28 x 1; model niser takes ids, so expected a data set of ids");
  w_refused("niser", (gt_sample_shape){1, 1, 20, 2, 100}, (gt_model_options){0}, GT_ERR_DATA,
            "samples are of 100 ids and 2 classes; model niser needs one id more than classes, as "
            "`geotrain data import sessions` writes them: padding and the items");
  w_refused(
      "niser", (gt_sample_shape){1, 1, 1025, 99, 100}, (gt_model_options){0}, GT_ERR_DATA,
      "samples are sessions of 1025 items; model niser takes at most 1024 (--length of `geotrain "
      "data import sessions`)");
  w_refused("niser", sessions, (gt_model_options){.hidden = 65537}, GT_ERR_JOB,
            "model.hidden is 65537; expected 1 to 65536");
  w_refused("niser", sessions, (gt_model_options){.scale = -1}, GT_ERR_JOB,
            "model.scale is -1; expected a number above 0");
  w_refused("niser", sessions, (gt_model_options){.embedding = 8}, GT_ERR_JOB,
            "model.embedding is given; model niser has no such key, so it must not be given");
  w_refused("lstm", sessions, (gt_model_options){.scale = 8}, GT_ERR_JOB,
            "model.scale is given; model lstm has no such key, so it must not be given");
}

/* ---- learning -------------------------------------------------------------------------------- */

enum { LEARNT_T = 3, LEARNT_V = 8 };

/* The next item is the one clicked before the last one: only edges and the last item determine
   it. */
static void draw(int32_t *ids, int32_t *labels, size_t n) {
  enum { T = LEARNT_T };
  for (size_t i = 0; i < n; i++) {
    const size_t length = 2 + gt_rng_below(&rng, T - 1);
    for (size_t t = 0; t < T; t++)
      ids[i * T + t] = t < T - length ? GT_PADDING : 1 + (int32_t)gt_rng_below(&rng, LEARNT_V);
    labels[i] = ids[i * T + T - 2] - 1;
  }
}

static void learns(void) {
  enum { TEST = 512 };
  const w_course course = {&w_adam, draw, 64, TEST, LEARNT_T, 600};
  int32_t labels[TEST];
  for (size_t t = 0; t < w_ntables(); t++) {
    gt_graph *graph = niser(w_tables[t], LEARNT_V, LEARNT_T, TEST, 16, 0);
    gt_graph_init(graph, 2);
    const size_t correct = w_learn(graph, &course, labels, NULL).correct;
    print_message("%s: %zu of %d\n", w_tables[t], correct, TEST);
    assert_true(correct > TEST * 85 / 100);
    gt_graph_close(graph);
  }
}

int main(void) {
  rng = gt_rng_make(23, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, session_graphs, every_gradient, passes_are_apart,
                   padding_changes_nothing, sessions_without_items, nothing_is_allocated,
                   names_and_values, hashes, refusals, learns);
}
