/* Layer normalisation (Ba, Kiros and Hinton 2016) of each row.  Initially weight 1 and bias 0. */
#include "graph.h"

static void forward(const gt_op *op, const gt_pass *p) {
  p->kernels->layernorm_forward(p->a->y, p->a->state, p->x, p->w, p->b, p->n * op->rows,
                                op->extent.c);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  p->kernels->layernorm_backward_input(p->dx, p->a->dy, p->x, p->w, p->a->state, p->n * op->rows,
                                       op->extent.c);
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  p->kernels->layernorm_backward_weight(p->dw, p->db, p->a->dy, p->x, p->a->state, p->n * op->rows,
                                        op->extent.c);
}

static size_t state(const gt_op *op, size_t n) {
  return 2 * n * op->rows;
}

const gt_op_kind gt_op_layernorm = {.name = "layernorm",
                                    .kernel = "layernorm",
                                    .in_place_back = true,
                                    .input_reads = GT_READS_INPUT,
                                    .weight_reads = GT_READS_INPUT,
                                    .forward = forward,
                                    .backward_input = backward_input,
                                    .backward_weight = backward_weight,
                                    .state = state};

void gt_graph_add_layernorm(gt_graph *graph, const char *name) {
  const gt_extent e = gt_graph_extent(graph);
  const size_t weight = gt_graph_add_param(graph, name, "weight", (gt_init){GT_INIT_CONSTANT, 1},
                                           GT_LAYOUT_SAME, 1, &e.c);
  const size_t bias = gt_graph_add_param(graph, name, "bias", (gt_init){GT_INIT_CONSTANT, 0},
                                         GT_LAYOUT_SAME, 1, &e.c);
  gt_op *op = gt_graph_append(graph, &gt_op_layernorm, name);
  op->weight = weight;
  op->bias = bias;
  op->rows = e.h;
}
