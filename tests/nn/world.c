/* Refusals, hashes, names and shapes of tensors, gradients against finite differences. */
#include "world.h"

const char *const w_tables[4] = {"ref", "blas", "auto", "dnn"};

size_t w_ntables(void) {
  return gt_kernels_find("dnn") ? 4 : 3;
}

const gt_optim_spec w_adam = {.kind = GT_OPTIMIZER_ADAM,
                              .schedule = {.kind = GT_LR_CONSTANT, .lr = 0.01},
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .epsilon = 1e-8};

gt_graph *w_graph(const gt_graph_spec *spec) {
  gt_graph *graph = NULL;
  must(gt_graph_create(&graph, spec));
  return graph;
}

size_t w_operation(const gt_graph *graph, const char *name) {
  for (size_t i = 0; i < gt_graph_operations(graph); i++)
    if (strcmp(gt_graph_operation(graph, i).name, name) == 0) return i;
  fail_msg("no operation %s", name);
  return 0;
}

float *w_floats(gt_rng *rng, size_t n, double scale) {
  float *x = GT_NEW_ARRAY(float, n);
  for (size_t i = 0; i < n; i++) x[i] = (float)(scale * gt_rng_normal(rng));
  return x;
}

double *w_doubles(const float *x, size_t n) {
  double *y = GT_NEW_ARRAY(double, n);
  for (size_t i = 0; i < n; i++) y[i] = (double)x[i];
  return y;
}

void w_check_tensor(const gt_graph *graph, size_t i, w_tensor right) {
  gt_view view;
  gt_graph_tensor(graph, i, &view, NULL);
  assert_string_equal(view.name, right.name);
  assert_int_equal(view.ndims, right.columns ? 2 : 1);
  assert_int_equal(view.shape[0], right.rows);
  if (right.columns) assert_int_equal(view.shape[1], right.columns);
}

void w_check_tensors(const gt_graph *graph, const w_tensor *right, size_t n) {
  assert_int_equal(gt_graph_tensors(graph), n);
  for (size_t i = 0; i < n; i++) w_check_tensor(graph, i, right[i]);
}

void w_check_hashes(gt_graph *const *graphs, size_t n) {
  char hex[16][GT_SHA256_HEX];
  assert_true(n <= 16);
  for (size_t i = 0; i < n; i++) {
    gt_graph_hash(graphs[i], hex[i]);
    for (size_t j = 0; j < i; j++) assert_string_not_equal(hex[i], hex[j]);
  }
  for (size_t i = 0; i < n; i++) gt_graph_close(graphs[i]);
}

void w_refused(const char *model, gt_sample_shape shape, gt_model_options options, gt_status status,
               const char *text) {
  gt_graph *graph = NULL;
  const gt_graph_spec spec = {.model = model,
                              .options = options,
                              .shape = shape,
                              .batch_max = 2,
                              .kernels = gt_kernels_find("ref")};
  must_say(gt_graph_create(&graph, &spec), status, text);
  assert_null(graph);
}

double w_difference(const float *a, const float *b, size_t n) {
  double apart = 0.0, size = 0.0;
  for (size_t i = 0; i < n; i++) {
    apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    size += (double)b[i] * (double)b[i];
  }
  return size > 0.0 ? sqrt(apart / size) : sqrt(apart);
}

void w_check_uniform(const gt_graph *graph, size_t i, double bound) {
  const gt_arrays *arrays = gt_graph_arrays(graph);
  const gt_view *view = &arrays->views[i];
  double most = 0.0;
  for (size_t k = 0; k < view->count; k++)
    most = fmax(most, fabs((double)arrays->params.data[view->offset + k]));
  assert_true(most <= 1.000001 * bound && (view->count < 100 || most > 0.8 * bound));
}

gt_metrics w_learn(gt_graph *graph, const w_course *c, int32_t *labels, float *scores) {
  const gt_arrays *arrays = gt_graph_arrays(graph);
  int32_t *ids = GT_NEW_ARRAY(int32_t, (c->test > c->batch ? c->test : c->batch) * c->ids);
  gt_optim *optim;
  gt_metrics metrics;
  must(gt_optim_create(&optim, c->optim, arrays->params.n, true));
  gt_graph_prepare(graph, c->batch);
  gt_graph_prepare(graph, c->test);
  const int64_t total = gt_alloc_total();
  for (int step = 0; step < c->steps; step++) {
    c->fill(ids, labels, c->batch);
    gt_graph_step(graph, ids, labels, c->batch, true, &metrics);
    gt_optim_step(optim, arrays->params, arrays->grads, gt_vec_of(NULL, arrays->params.n));
  }
  c->fill(ids, labels, c->test);
  gt_graph_step(graph, ids, labels, c->test, false, &metrics);
  if (scores) gt_graph_auc_scores(graph, c->test, scores);
  assert_int_equal(gt_alloc_total(), total);
  gt_optim_close(optim);
  gt_free(ids);
  return metrics;
}

/* ---- gradients ------------------------------------------------------------------------------- */

void w_near(double found, double right, double tolerance, const char *what, size_t i) {
  if (!(fabs(found - right) <= tolerance * (1.0 + fabs(right))))
    fail_msg("%s[%zu] is %.9g; %.9g is right", what, i, found, right);
}

double w_slope(double (*loss)(const void *ctx), const void *ctx, double *at, double h) {
  const double was = *at;
  *at = was + h;
  const double up = loss(ctx);
  *at = was - h;
  const double down = loss(ctx);
  *at = was;
  return (up - down) / (2.0 * h);
}

typedef struct {
  const w_judge *judge;
  double *params;
} judged;

static double loss_of(const void *ctx) {
  const judged *j = ctx;
  return j->judge->loss(j->params, &j->judge->batch);
}

/* Returns how many gradients of the tensor are wrong. */
static size_t check_view(const judged *j, const float *found, const gt_view *view, gt_rng *rng) {
  const w_judge *judge = j->judge;
  const size_t apart = judge->count ? 1 + view->count / judge->count : judge->stride;
  double largest = 0.0;
  size_t bad = 0;
  for (size_t i = 0; i < view->count; i++) largest = fmax(largest, fabs((double)found[i]));
  assert_true(largest > judge->least);
  for (size_t i = gt_rng_below(rng, apart < view->count ? apart : view->count); i < view->count;
       i += apart) {
    const bool padding = view->offset + i < judge->padding;
    const double right =
                     padding ? 0.0 : w_slope(loss_of, j, &j->params[view->offset + i], judge->h),
                 tolerance = padding ? 0.0 : judge->near * (largest + 1e-4);
    if (fabs((double)found[i] - right) <= tolerance) continue;
    print_error("%s[%zu] is %.9g; finite differences say %.9g\n", view->name, i, (double)found[i],
                right);
    bad++;
  }
  return bad;
}

void w_check_gradients(const gt_graph *graph, const w_judge *judge, const gt_metrics *metrics,
                       gt_rng *rng) {
  const gt_arrays *arrays = gt_graph_arrays(graph);
  const judged j = {judge, w_doubles(arrays->params.data, arrays->params.n)};
  const double right = loss_of(&j), found = metrics->loss_sum / (double)judge->batch.n;
  size_t bad = 0;
  if (!(fabs(found - right) <= judge->near_loss * right))
    fail_msg("the loss is %.9g; %.9g is right", found, right);
  for (size_t v = 0; v < arrays->nviews; v++)
    bad += check_view(&j, arrays->grads.data + arrays->views[v].offset, &arrays->views[v], rng);
  assert_int_equal(bad, 0);
  gt_free(j.params);
}

static void announce(void *context, size_t first) {
  w_announced *a = context;
  assert_true(first < a->from);
  memcpy(a->kept + first, a->arrays->grads.data + first, (a->from - first) * sizeof *a->kept);
  a->from = first;
  a->calls++;
}

void w_listen(w_announced *a, gt_graph *graph) {
  const gt_arrays *arrays = gt_graph_arrays(graph);
  *a = (w_announced){arrays, GT_NEW_ARRAY(float, arrays->grads.n), arrays->grads.n, 0};
  gt_graph_on_gradients(graph, announce, a);
}

void w_check_announced(w_announced *a) {
  assert_int_equal(a->from, 0);
  assert_memory_equal(a->kept, a->arrays->grads.data, a->arrays->grads.n * sizeof *a->kept);
  a->from = a->arrays->grads.n;
  a->calls = 0;
}
