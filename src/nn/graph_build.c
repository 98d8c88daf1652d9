/* How models grow a graph: operations at the end, parameters in the order in which they are named, extents followed. */
#include <stdio.h>
#include <string.h>

#include "graph.h"

/* A copy of `old` with room for `capacity` items. */
static void *grow(void *old, size_t n, size_t capacity, size_t size) {
  void *items = gt_alloc(capacity, size);
  if (n) memcpy(items, old, n * size);
  gt_free(old);
  return items;
}

gt_op *gt_graph_append(gt_graph *graph, const gt_op_kind *kind, const char *name) {
  if (graph->nops == graph->ops_capacity) {
    graph->ops_capacity = graph->ops_capacity ? 2 * graph->ops_capacity : 16;
    graph->ops = grow(graph->ops, graph->nops, graph->ops_capacity, sizeof *graph->ops);
  }
  gt_op *op = &graph->ops[graph->nops++];
  op->kind = kind;
  snprintf(op->name, sizeof op->name, "%s", name);
  op->in = op->out = graph->extent.h * graph->extent.w * graph->extent.c;
  op->weight = op->bias = GT_NO_VIEW;
  return op;
}

size_t gt_graph_add_param(gt_graph *graph, const char *op, const char *what, double bound, int ndims, const size_t *shape) {
  if (graph->nviews == graph->views_capacity) {
    graph->views_capacity = graph->views_capacity ? 2 * graph->views_capacity : 16;
    graph->views = grow(graph->views, graph->nviews, graph->views_capacity, sizeof *graph->views);
    graph->bounds = grow(graph->bounds, graph->nviews, graph->views_capacity, sizeof *graph->bounds);
  }
  gt_view *view = &graph->views[graph->nviews];
  snprintf(view->name, sizeof view->name, "%.47s.%.15s", op, what);
  view->offset = graph->nparams;
  view->count = 1;
  view->ndims = ndims;
  for (int d = 0; d < ndims; d++) {
    view->shape[d] = shape[d];
    view->count *= shape[d];
  }
  graph->nparams += view->count;
  graph->bounds[graph->nviews] = bound;
  return graph->nviews++;
}

gt_extent gt_graph_extent(const gt_graph *graph) {
  return graph->extent;
}

void gt_graph_set_extent(gt_graph *graph, gt_extent extent) {
  graph->extent = extent;
  graph->ops[graph->nops - 1].out = extent.h * extent.w * extent.c;
}

gt_status gt_graph_window(const gt_graph *graph, const char *name, size_t window, size_t stride, size_t pad, gt_conv_shape *shape) {
  const gt_extent e = graph->extent;
  if (e.h + 2 * pad < window || e.w + 2 * pad < window)
    return GT_FAIL(GT_ERR_DATA, "images of %zu x %zu are too small for model %s: at %s %zu x %zu is left; %zu x %zu or more is needed",
                   graph->input.h, graph->input.w, graph->model, name, e.h, e.w, window - 2 * pad, window - 2 * pad);
  *shape = (gt_conv_shape){.H = e.h, .W = e.w, .C = e.c, .K = e.c, .R = window, .S = window, .stride = stride, .pad = pad};
  shape->P = (e.h + 2 * pad - window) / stride + 1;
  shape->Q = (e.w + 2 * pad - window) / stride + 1;
  return GT_OK;
}
