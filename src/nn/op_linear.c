/* Linear layer with bias.  Initial values as in PyTorch's Linear: uniform within 1/sqrt(inputs),
   the same for the bias. */
#include <math.h>

#include "graph.h"

static void forward(const gt_op *op, const gt_pass *p) {
  gt_layer_forward(op->layer, p->a->y, p->x, p->w, p->b, p->n, p->work);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  gt_layer_backward_input(op->layer, p->dx, p->a->dy, p->w, p->n, p->work);
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  gt_layer_backward_weight(op->layer, p->dw, p->db, p->a->dy, p->x, p->n, p->work);
}

static size_t macs(const gt_op *op) {
  return op->in * op->out;
}

const gt_op_kind gt_op_linear = {.name = "linear",
                                 .kernel = "linear",
                                 .forward = forward,
                                 .backward_input = backward_input,
                                 .backward_weight = backward_weight,
                                 .macs = macs};

void gt_graph_add_linear(gt_graph *graph, const char *name, size_t O) {
  const gt_extent e = gt_graph_extent(graph);
  gt_graph_add_linear_within(graph, name, O, e.h * e.w * e.c);
}

void gt_graph_add_linear_within(gt_graph *graph, const char *name, size_t O, size_t fan) {
  const gt_extent e = gt_graph_extent(graph);
  const size_t I = e.h * e.w * e.c;
  const gt_init uniform = {GT_INIT_UNIFORM, 1.0 / sqrt((double)fan)};
  const size_t weight = gt_graph_add_param(graph, name, "weight", uniform,
                                           e.h * e.w > 1 ? GT_LAYOUT_IMAGE_ROWS : GT_LAYOUT_SAME, 2,
                                           (size_t[]){O, I});
  const size_t bias = gt_graph_add_param(graph, name, "bias", uniform, GT_LAYOUT_SAME, 1, &O);
  gt_op *op = gt_graph_append(graph, &gt_op_linear, name);
  op->weight = weight;
  op->bias = bias;
  gt_graph_set_extent(graph, (gt_extent){1, 1, O});
  gt_graph_open_layer(graph, op, true);
}
