/* Gradients of every operation and of the whole of LeNet-5 against central finite differences of an
   independent forward in float64. */
#include "world.h"
#include "cases.h"
#include "ref64.h"

static gt_rng rng;

/* ---- operations ------------------------------------------------------------------------------ */

/* One operation, alone in a graph or the last one: its data in float32 and float64. */
typedef struct {
  gt_graph *graph;
  const gt_op *op;
  size_t n, nx, ny;
  float *x, *y, *dx, *dy, *grads, *work;
  uint32_t *index;
  double *x64, *w64, *y64;
} bench;

/* The output of the operation in float64. */
static void forward64(const bench *b, double *y) {
  const gt_op *op = b->op;
  const gt_conv_shape *s = &op->shape;
  const r64_extent e = {s->H, s->W, s->C};
  const double *bias =
      b->w64 + (op->bias == GT_NO_VIEW ? 0 : b->graph->params.views[op->bias].offset);
  if (op->kind == &gt_op_conv2d)
    r64_conv(y, b->x64, b->w64, bias, b->n, e, s->K, s->R, s->stride, s->pad);
  else if (op->kind == &gt_op_linear)
    r64_linear(y, b->x64, b->w64, bias, b->n, op->in, op->out);
  else if (op->kind == &gt_op_inert)
    memcpy(y, b->x64, b->nx * sizeof *y);
  else if (op->kind == &gt_op_relu)
    memcpy(y, b->x64, b->nx * sizeof *y), r64_relu(y, b->nx);
  else
    r64_pool(y, b->x64, b->n, e, s->R, s->stride);
}

/* The loss is the sum of dy times y: its gradient with respect to y is dy. */
static double loss64(const void *ctx) {
  const bench *b = ctx;
  forward64(b, b->y64);
  double sum = 0.0;
  for (size_t i = 0; i < b->ny; i++) sum += (double)b->dy[i] * b->y64[i];
  return sum;
}

static void check_op(bench *b, size_t n, gt_extent input) {
  const gt_kernels *kernels = b->graph->kernels;
  const size_t thin = cases(1, 3); /* one of so many gradients is checked */
  b->op = &b->graph->ops[1];
  b->n = n;
  b->nx = n * input.h * input.w * input.c;
  b->ny = n * b->op->out;
  const size_t np = b->graph->params.floats;
  b->x = w_floats(&rng, b->nx, 1);
  /* Away from the kink of the ReLU, and all different for the maximum. */
  for (size_t i = 0; i < b->nx; i++)
    b->x[i] = ((i % 2) ? 1.0f : -1.0f) * (0.25f + (float)((i * 7919) % b->nx) / (float)b->nx);
  float *params = w_floats(&rng, np, 1);
  b->y = GT_NEW_ARRAY(float, b->ny);
  b->dx = GT_NEW_ARRAY(float, b->nx);
  b->dy = w_floats(&rng, b->ny, 1);
  b->grads = w_floats(&rng, np, 1); /* overwritten, not accumulated */
  b->index = GT_NEW_ARRAY(uint32_t, b->ny);
  b->work = GT_NEW_ARRAY(float, b->op->kind->work ? b->op->kind->work(b->op, n) : 0);
  b->x64 = w_doubles(b->x, b->nx), b->w64 = w_doubles(params, np);
  b->y64 = GT_NEW_ARRAY(double, b->ny);
  gt_activation a = {.y = b->y, .dy = b->dy, .index = b->index};
  gt_pass pass = {.kernels = kernels,
                  .samples = b->x,
                  .x = b->x,
                  .dx = b->dx,
                  .a = &a,
                  .work = b->work,
                  .n = n,
                  .train = true};
  if (b->op->weight != GT_NO_VIEW) {
    const size_t wo = b->graph->params.views[b->op->weight].offset;
    pass.w = params + wo, pass.dw = b->grads + wo;
  }
  if (b->op->bias != GT_NO_VIEW) {
    const size_t bo = b->graph->params.views[b->op->bias].offset;
    pass.b = params + bo, pass.db = b->grads + bo;
  }
  b->op->kind->forward(b->op, &pass);
  forward64(b, b->y64);
  for (size_t i = 0; i < b->ny; i++) w_near((double)b->y[i], b->y64[i], 1e-5, "y", i);
  b->op->kind->backward_input(b->op, &pass);
  for (size_t i = 0; i < b->nx; i += thin)
    w_near((double)b->dx[i], w_slope(loss64, b, &b->x64[i], 1e-5), 2e-5, "dx", i);
  if (b->op->kind->backward_weight) {
    b->op->kind->backward_weight(b->op, &pass);
    for (size_t i = 0; i < np; i += thin)
      w_near((double)b->grads[i], w_slope(loss64, b, &b->w64[i], 1e-5), 2e-5, "dw", i);
  } else {
    assert_int_equal(np, 0);
  }
  void *all[] = {b->x,     params,  b->y,   b->dx,  b->dy, b->grads,
                 b->index, b->work, b->x64, b->w64, b->y64};
  for (size_t i = 0; i < COUNT(all); i++) gt_free(all[i]);
  gt_graph_close(b->graph);
}

/* Makes a graph whose first operation copies the samples, so that the second has to compute the
   gradient of its input. */
static bench of(const char *table, gt_extent input) {
  gt_graph *graph = GT_NEW(gt_graph);
  snprintf(graph->model, sizeof graph->model, "test");
  graph->input = input;
  graph->from = GT_SAMPLES;
  graph->kernels = gt_kernels_find(table);
  graph->prepared = graph->kernels->prepared ? graph->kernels->prepared() : NULL;
  gt_graph_add_inert(graph, "from", 0);
  return (bench){.graph = graph};
}

static void conv2d(void) {
  for (size_t t = 0; t < w_ntables(); t++)
    for (size_t c = 0; c < 4; c++) {
      const gt_extent input = {6 + c, 7, 1 + 2 * c};
      const size_t K[4] = {6, 16, 9, 17}, window[4] = {5, 3, 2, 3}, stride[4] = {1, 1, 2, 2},
                   pad[4] = {2, 0, 1, 1};
      bench b = of(w_tables[t], input);
      must(gt_graph_add_conv2d(b.graph, "conv", K[c], window[c], stride[c], pad[c]));
      check_op(&b, 2, input);
    }
}

static void pooling(void) {
  for (size_t t = 0; t < w_ntables(); t++)
    for (size_t c = 0; c < 4; c++) {
      const gt_extent input = {6 + c, 7, c == 3 ? 16 : 3 + c};
      const size_t window = c == 1 ? 3 : 2, stride = c == 2 ? 1 : 2;
      bench b = of(w_tables[t], input);
      must(gt_graph_add_maxpool(b.graph, "pool", window, stride, 0));
      check_op(&b, 2, input);
    }
}

static void inert(void) {
  const gt_extent input = {2, 3, 5};
  bench b = of("ref", input);
  gt_graph_add_inert(b.graph, "inert", 37);
  check_op(&b, 7, input);
}

static void linear_and_relu(void) {
  for (size_t t = 0; t < w_ntables(); t++) {
    const gt_extent input = {2, 3, 5};
    bench linear = of(w_tables[t], input), relu = of(w_tables[t], input);
    gt_graph_add_linear(linear.graph, "fc", 13);
    check_op(&linear, 7, input);
    gt_graph_add_relu(relu.graph, "relu");
    check_op(&relu, 7, input);
  }
}

/* ---- LeNet-5 --------------------------------------------------------------------------------- */

static double lenet64(const double *params, const w_batch *batch) {
  const gt_sample_shape *s = batch->shape;
  return r64_lenet(params, batch->x, batch->labels, batch->n, (r64_extent){s->h, s->w, s->c},
                   s->classes);
}

static void check_lenet(const char *table, const gt_sample_shape *shape, size_t n, size_t stride) {
  gt_graph *graph = w_graph(&(gt_graph_spec){
      .model = "lenet5", .shape = *shape, .batch_max = n + 1, .kernels = gt_kernels_find(table)});
  gt_graph_init(graph, 5);
  const gt_arrays *arrays = gt_graph_arrays(graph);
  const size_t nx = n * shape->h * shape->w * shape->c;
  float *x = w_floats(&rng, nx, 1);
  double *x64 = w_doubles(x, nx);
  int32_t labels[4];
  for (size_t i = 0; i < n; i++) labels[i] = (int32_t)gt_rng_below(&rng, shape->classes);
  gt_metrics metrics;
  gt_graph_step(graph, x, labels, n, true, &metrics);
  assert_int_equal(metrics.samples, n);
  for (size_t v = 0, at = 0; v < arrays->nviews; at += arrays->views[v++].count)
    assert_int_equal(arrays->views[v].offset, at);
  const w_judge judge = {.loss = lenet64,
                         .batch = {.shape = shape, .labels = labels, .x = x64, .n = n},
                         .h = 1e-6,
                         .near_loss = 2e-6,
                         .near = 1e-4,
                         .least = 1e-6,
                         .stride = stride};
  w_check_gradients(graph, &judge, &metrics, &rng);
  gt_free(x);
  gt_free(x64);
  gt_graph_close(graph);
}

static void lenet_small_every_gradient(void) {
  check_lenet("auto", &(gt_sample_shape){12, 12, 2, 3, 0}, 1, cases(1, 14));
}

static void lenet_other_kernels(void) {
  check_lenet("ref", &(gt_sample_shape){13, 16, 1, 4, 0}, 2, cases(41, 83));
  check_lenet("blas", &(gt_sample_shape){16, 13, 3, 4, 0}, 2, cases(41, 83));
}

static void lenet_28x28(void) {
  check_lenet("auto", &(gt_sample_shape){28, 28, 1, 10, 0}, 2, cases(307, 997));
}

int main(void) {
  rng = gt_rng_make(11, GT_RNG_TEST, 0, 0);
  return RUN_TESTS(NULL, NULL, conv2d, pooling, linear_and_relu, inert, lenet_small_every_gradient,
                   lenet_other_kernels, lenet_28x28);
}
