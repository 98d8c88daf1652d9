/* Scales every sample to length 1. */
#include "graph.h"

static size_t state(const gt_op *op, size_t n) {
  (void)op;
  return n;
}

static void forward(const gt_op *op, const gt_pass *p) {
  p->kernels->unit_forward(p->a->y, p->a->state, p->x, p->n, op->out);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  p->kernels->unit_backward(p->dx, p->a->dy, p->a->y, p->a->state, p->n, op->out);
}

const gt_op_kind gt_op_unit = {.name = "unit",
                               .kernel = "unit",
                               .input_reads = GT_READS_OUTPUT,
                               .forward = forward,
                               .backward_input = backward_input,
                               .state = state};

void gt_graph_add_unit(gt_graph *graph, const char *name) {
  gt_graph_append(graph, &gt_op_unit, name);
}
