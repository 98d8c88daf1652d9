/* Max pooling, in the type of its input. */
#include "graph.h"

static void forward(const gt_op *op, const gt_pass *p) {
  p->kernels->maxpool_forward(p->a->y, p->a->index, p->x, op->in_type, &op->shape, p->n);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  const size_t n = p->n * op->out;
  if (p->a->dy2) gt_vec_axpy(gt_vec_of(p->a->dy, n), 1, gt_vec_of(p->a->dy2, n));
  p->kernels->maxpool_backward(p->dx, p->a->dy, p->a->index, op->in_type, &op->shape, p->n);
}

const gt_op_kind gt_op_maxpool = {.name = "maxpool",
                                  .kernel = "maxpool",
                                  .has_index = true,
                                  .adds_gradients = true,
                                  .sums_gradients = true,
                                  .forward = forward,
                                  .backward_input = backward_input};

gt_status gt_graph_add_maxpool(gt_graph *graph, const char *name, size_t window, size_t stride,
                               size_t pad) {
  gt_conv_shape s;
  GT_TRY(gt_graph_window(graph, name, window, stride, pad, &s));
  gt_graph_append(graph, &gt_op_maxpool, name)->shape = s;
  gt_graph_set_extent(graph, (gt_extent){s.P, s.Q, s.C});
  return GT_OK;
}
