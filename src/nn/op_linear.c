/* Linear layer with bias.  Initial values as PyTorch's Linear: uniform in 1/sqrt(inputs), bias alike. */
#include <math.h>

#include "graph.h"

static void forward(const gt_op *op, const gt_pass *p) {
  p->kernels->linear_forward(p->a->y, p->x, p->w, p->b, p->n, op->in, op->out);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  p->kernels->linear_backward_input(p->dx, p->a->dy, p->w, p->n, op->in, op->out);
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  p->kernels->linear_backward_weight(p->dw, p->db, p->a->dy, p->x, p->n, op->in, op->out);
}

static size_t macs(const gt_op *op) {
  return op->in * op->out;
}

const gt_op_kind gt_op_linear = {
    .name = "linear", .forward = forward, .backward_input = backward_input, .backward_weight = backward_weight, .macs = macs};

void gt_graph_add_linear(gt_graph *graph, const char *name, size_t O) {
  gt_op *op = gt_graph_append(graph, &gt_op_linear, name);
  const double bound = 1.0 / sqrt((double)op->in);
  op->weight = gt_graph_add_param(graph, name, "weight", bound, 2, (size_t[]){O, op->in});
  op->bias = gt_graph_add_param(graph, name, "bias", bound, 1, &O);
  gt_graph_set_extent(graph, (gt_extent){1, 1, O});
}
