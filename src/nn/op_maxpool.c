/* Max pooling without padding. */
#include "graph.h"

static void forward(const gt_op *op, const gt_pass *p) {
  p->kernels->maxpool_forward(p->a->y, p->a->index, p->x, &op->shape, p->n);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  p->kernels->maxpool_backward(p->dx, p->a->dy, p->a->index, &op->shape, p->n);
}

const gt_op_kind gt_op_maxpool = {.name = "maxpool",
                                  .kernel = "maxpool",
                                  .has_index = true,
                                  .forward = forward,
                                  .backward_input = backward_input};

gt_status gt_graph_add_maxpool(gt_graph *graph, const char *name, size_t window, size_t stride) {
  gt_conv_shape s;
  GT_TRY(gt_graph_window(graph, name, window, stride, 0, &s));
  gt_graph_append(graph, &gt_op_maxpool, name)->shape = s;
  gt_graph_set_extent(graph, (gt_extent){s.P, s.Q, s.C});
  return GT_OK;
}
