/* Exports tensors in PyTorch's layouts.  Here convolutions are (R,S,C,K), and rows of linear layers
   behind images are in (H,W,C) order; in PyTorch they are (K,C,R,S) and (C,H,W). */
#include <stdio.h>
#include <string.h>

#include "graph.h"

/* (R,S,C,K) to (K,C,R,S). */
static void from_conv(float *out, const float *in, const size_t shape[4]) {
  const size_t R = shape[0], S = shape[1], C = shape[2], K = shape[3];
  for (size_t k = 0; k < K; k++)
    for (size_t c = 0; c < C; c++)
      for (size_t rs = 0; rs < R * S; rs++)
        out[(k * C + c) * R * S + rs] = in[(rs * C + c) * K + k];
}

/* Columns (H,W,C) to (C,H,W). */
static void from_image_rows(float *out, const float *in, size_t rows, gt_extent e) {
  const size_t pixels = e.h * e.w;
  for (size_t row = 0; row < rows; row++, in += pixels * e.c, out += pixels * e.c)
    for (size_t c = 0; c < e.c; c++)
      for (size_t p = 0; p < pixels; p++) out[c * pixels + p] = in[p * e.c + c];
}

void gt_graph_alias(gt_graph *graph, const char *name, size_t param) {
  graph->alias = graph->params.views[param];
  graph->alias_of = param;
  snprintf(graph->alias.name, sizeof graph->alias.name, "%s", name);
}

size_t gt_graph_tensors(const gt_graph *graph) {
  return graph->params.n + graph->buffers.n + (graph->alias.name[0] ? 1 : 0);
}

void gt_graph_tensor(const gt_graph *graph, size_t i, gt_view *as, float *out) {
  if (i == graph->params.n + graph->buffers.n) {
    gt_graph_tensor(graph, graph->alias_of, as, out);
    memcpy(as->name, graph->alias.name, sizeof as->name);
    return;
  }
  const bool buffer = i >= graph->params.n;
  const gt_tensors *t = buffer ? &graph->buffers : &graph->params;
  const float *data = buffer ? graph->arrays.buffers.data : graph->arrays.params.data;
  if (buffer) i -= graph->params.n;
  const gt_view *view = &t->views[i];
  *as = *view;
  as->offset = 0;
  if (t->layouts[i] == GT_LAYOUT_CONV) {
    const size_t shape[4] = {view->shape[3], view->shape[2], view->shape[0], view->shape[1]};
    memcpy(as->shape, shape, sizeof shape);
  }
  if (!out) return;
  data += view->offset;
  if (t->layouts[i] == GT_LAYOUT_CONV)
    from_conv(out, data, view->shape);
  else if (t->layouts[i] == GT_LAYOUT_IMAGE_ROWS)
    from_image_rows(out, data, view->shape[0], t->images[i]);
  else
    memcpy(out, data, view->count * sizeof *out);
}
