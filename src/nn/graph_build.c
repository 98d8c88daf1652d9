/* Builds a graph: appends operations, adds tensors in the order of their names, and tracks the
   shape. */
#include <stdio.h>

#include "graph.h"
#include "models.h"

gt_op *gt_graph_append(gt_graph *graph, const gt_op_kind *kind, const char *name) {
  const gt_extent extent = gt_graph_extent(graph);
  GT_GROW(graph->ops, graph->nops, graph->ops_capacity, 16);
  gt_op *op = &graph->ops[graph->nops];
  op->kind = kind;
  snprintf(op->name, sizeof op->name, "%s", name);
  op->input = graph->from;
  op->second = GT_SAMPLES;
  op->in_type = op->type = op->input == GT_SAMPLES ? GT_F32 : graph->ops[op->input].type;
  op->extent = extent;
  op->in = op->out = extent.h * extent.w * extent.c;
  op->rows = 1;
  op->weight = op->bias = op->buffer = op->borrows = GT_NO_VIEW;
  /* It owns the tensors added since the previous operation. */
  op->params_first = graph->nops ? op[-1].params_end : 0;
  op->buffers_first = graph->nops ? op[-1].buffers_end : 0;
  op->params_end = graph->params.n;
  op->buffers_end = graph->buffers.n;
  graph->from = graph->nops++;
  return op;
}

/* The arrays share one capacity, which GT_GROW updates with the last of them. */
static void *grown(void *array, size_t capacity, size_t size) {
  return gt_grown(array, &capacity, 16, size);
}

static void tensors_grow(gt_tensors *t) {
  if (t->n < t->capacity) return;
  t->views = grown(t->views, t->capacity, sizeof *t->views);
  t->inits = grown(t->inits, t->capacity, sizeof *t->inits);
  t->layouts = grown(t->layouts, t->capacity, sizeof *t->layouts);
  t->numbers = grown(t->numbers, t->capacity, sizeof *t->numbers);
  GT_GROW(t->images, t->n, t->capacity, 16);
}

static size_t add_tensor(gt_tensors *t, const char *op, const char *what, gt_init init, int ndims,
                         const size_t *shape) {
  tensors_grow(t);
  gt_view *view = &t->views[t->n];
  snprintf(view->name, sizeof view->name, "%.47s%s%.15s", op, *op ? "." : "", what);
  view->offset = t->floats;
  view->count = 1;
  view->ndims = ndims;
  for (int d = 0; d < ndims; d++) {
    view->shape[d] = shape[d];
    view->count *= shape[d];
  }
  t->floats += view->count;
  t->inits[t->n] = init;
  t->numbers[t->n] = t->n;
  return t->n++;
}

size_t gt_graph_add_param(gt_graph *graph, const char *op, const char *what, gt_init init,
                          gt_layout layout, int ndims, const size_t *shape) {
  const gt_extent extent = gt_graph_extent(graph);
  const size_t at = add_tensor(&graph->params, op, what, init, ndims, shape);
  graph->params.layouts[at] = layout;
  graph->params.images[at] = extent;
  return at;
}

size_t gt_graph_add_buffer(gt_graph *graph, const char *op, const char *what, double value,
                           size_t count) {
  return add_tensor(&graph->buffers, op, what, (gt_init){GT_INIT_CONSTANT, value}, 1, &count);
}

gt_extent gt_graph_extent(const gt_graph *graph) {
  return graph->from == GT_SAMPLES ? graph->input : graph->ops[graph->from].extent;
}

void gt_graph_set_extent(gt_graph *graph, gt_extent extent) {
  gt_op *op = &graph->ops[graph->nops - 1];
  op->extent = extent;
  op->out = extent.h * extent.w * extent.c;
}

size_t gt_graph_last(const gt_graph *graph) {
  return graph->nops - 1;
}

void gt_graph_from(gt_graph *graph, size_t op) {
  graph->from = op;
}

gt_status gt_graph_window(const gt_graph *graph, const char *name, size_t window, size_t stride,
                          size_t pad, gt_conv_shape *shape) {
  const gt_extent e = gt_graph_extent(graph);
  if (e.h + 2 * pad < window || e.w + 2 * pad < window)
    return GT_FAIL(GT_ERR_DATA,
                   "images of %zu x %zu are too small for model %s: at %s %zu x %zu is left; "
                   "expected %zu x %zu or more",
                   graph->input.h, graph->input.w, graph->model, name, e.h, e.w, window - 2 * pad,
                   window - 2 * pad);
  *shape = (gt_conv_shape){.H = e.h,
                           .W = e.w,
                           .C = e.c,
                           .K = e.c,
                           .R = window,
                           .S = window,
                           .stride = stride,
                           .pad = pad};
  shape->P = (e.h + 2 * pad - window) / stride + 1;
  shape->Q = (e.w + 2 * pad - window) / stride + 1;
  return GT_OK;
}

static gt_layer_spec layer_of(const gt_graph *graph, const gt_op *op, bool linear) {
  gt_layer_spec spec = {.linear = linear,
                        .conv = {.shape = op->shape,
                                 .bias = op->bias != GT_NO_VIEW,
                                 .needs_input_gradient = op->input != GT_SAMPLES,
                                 .in = op->in_type,
                                 .out = GT_F32,
                                 .precision = GT_F32}};
  if (linear) {
    spec.conv.shape = (gt_conv_shape){.H = 1,
                                      .W = 1,
                                      .C = op->in / op->rows,
                                      .K = op->out / op->rows,
                                      .R = 1,
                                      .S = 1,
                                      .P = 1,
                                      .Q = 1,
                                      .stride = 1};
    spec.conv.precision = graph->precision;
  } else if (!spec.conv.bias) {
    spec.conv.out = spec.conv.precision = graph->precision;
  }
  return spec;
}

void gt_graph_open_layer(gt_graph *graph, gt_op *op, bool linear) {
  if (!graph->kernels) return; /* arrays only */
  op->spec = layer_of(graph, op, linear);
  const gt_choice *choice =
      graph->choices ? gt_choices_find(graph->choices, &op->spec, graph->batch * op->rows) : NULL;
  op->layer = gt_layer_create(graph->kernels, &graph->context, &op->spec,
                              choice ? choice->algorithms : NULL);
  op->type = gt_layer_type(op->layer);
}

void gt_graph_layers(const gt_graph *graph, size_t batch, gt_choices *out) {
  for (size_t i = 0; i < graph->nops; i++)
    if (graph->ops[i].layer && gt_graph_runs(graph, &graph->ops[i]))
      gt_choices_add(out, &graph->ops[i].spec, batch * graph->ops[i].rows);
}

void gt_graph_alias(gt_graph *graph, const char *name, size_t param) {
  graph->alias = graph->params.views[param];
  graph->alias_of = param;
  snprintf(graph->alias.name, sizeof graph->alias.name, "%s", name);
}

/* Larger widths are typing errors.  Products of widths within the limit do not overflow. */
#define WIDTH_MAX 65536

gt_status gt_model_check_width(const char *option, int64_t width, int64_t least) {
  if (width >= least && width <= WIDTH_MAX) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "model.%s is %lld; expected 1 to %d", option, (long long)width,
                 WIDTH_MAX);
}
