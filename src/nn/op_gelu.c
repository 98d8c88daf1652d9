/* GELU (Hendrycks and Gimpel 2016) in its tanh form. */
#include "graph.h"

static void forward(const gt_op *op, const gt_pass *p) {
  p->kernels->gelu_forward(p->a->y, p->x, p->n * op->out);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  p->kernels->gelu_backward(p->dx, p->a->dy, p->x, p->n * op->out);
}

const gt_op_kind gt_op_gelu = {.name = "gelu",
                               .kernel = "gelu",
                               .in_place_back = true,
                               .input_reads = GT_READS_INPUT,
                               .forward = forward,
                               .backward_input = backward_input};

void gt_graph_add_gelu(gt_graph *graph, const char *name) {
  gt_graph_append(graph, &gt_op_gelu, name);
}
