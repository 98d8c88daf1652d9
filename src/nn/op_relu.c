/* ReLU, in place: its gradient needs only the output. */
#include "graph.h"

static void forward(const gt_op *op, const gt_pass *p) {
  p->kernels->relu_forward(p->a->y, p->x, p->n * op->out);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  p->kernels->relu_backward(p->dx, p->a->dy, p->a->y, p->n * op->out);
}

const gt_op_kind gt_op_relu = {.name = "relu",
                               .kernel = "relu",
                               .in_place = true,
                               .keeps_signs = true,
                               .input_reads = GT_READS_OUTPUT,
                               .forward = forward,
                               .backward_input = backward_input};

void gt_graph_add_relu(gt_graph *graph, const char *name) {
  gt_graph_append(graph, &gt_op_relu, name)->relu = true;
}
