/* The operations of a model as numbers, and where it can be cut. */
#include "geotrain/nn_span.h"
#include "graph.h"

size_t gt_graph_operations(const gt_graph *graph) {
  return graph->nops;
}

/* An operation behind c needs the output of one before it. */
static bool crosses(const gt_graph *graph, size_t c) {
  for (size_t i = c + 1; i < graph->nops; i++) {
    const size_t inputs[2] = {graph->ops[i].input, graph->ops[i].second};
    for (size_t k = 0; k < 2; k++)
      if (inputs[k] != GT_SAMPLES && inputs[k] < c) return true;
  }
  return false;
}

static size_t floats_of(const gt_tensors *tensors, size_t view) {
  size_t n = 1;
  if (view == GT_NO_VIEW) return 0;
  for (int d = 0; d < tensors->views[view].ndims; d++) n *= tensors->views[view].shape[d];
  return n;
}

static size_t lender(const gt_graph *graph) {
  size_t i = 0;
  while (!graph->ops[i].lends) i++;
  return i;
}

gt_operation gt_graph_operation(const gt_graph *graph, size_t i) {
  const gt_op *op = &graph->ops[i];
  const double macs = op->kind->macs ? (double)op->kind->macs(op) : 0.0;
  const bool apart = op->kind->backward_weight && (op->weight != GT_NO_VIEW || op->borrows);
  return (gt_operation){
      .name = op->name,
      .params = (op->borrows ? 0 : floats_of(&graph->params, op->weight)) +
                floats_of(&graph->params, op->bias) + op->inert,
      .buffers = op->buffer == GT_NO_VIEW ? 0 : 2 * floats_of(&graph->buffers, op->buffer),
      .output_bytes = op->out * (op->type == GT_BF16 ? 2 : 4),
      .forward = macs,
      .backward_input = op->input == GT_SAMPLES ? 0.0
                        : apart                 ? macs
                                                : 2.0 * macs,
      .backward_weight = apart ? macs : 0.0,
      .ends = i + 1 == graph->nops || !crosses(graph, i),
      .samples = op->input == GT_SAMPLES,
      .borrows = op->borrows ? lender(graph) : SIZE_MAX};
}
