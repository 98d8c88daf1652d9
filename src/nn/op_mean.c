/* The mean over an image, channel by channel ("global average pooling": Lin et al. 2014), in
   float32. */
#include "graph.h"

static void forward(const gt_op *op, const gt_pass *p) {
  p->kernels->mean_forward(p->a->y, p->x, op->in_type, p->n, op->shape.H * op->shape.W,
                           op->shape.C);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  p->kernels->mean_backward(p->dx, p->a->dy, op->in_type, p->n, op->shape.H * op->shape.W,
                            op->shape.C);
}

const gt_op_kind gt_op_mean = {
    .name = "mean", .kernel = "mean", .forward = forward, .backward_input = backward_input};

void gt_graph_add_mean(gt_graph *graph, const char *name) {
  const gt_extent e = gt_graph_extent(graph);
  gt_op *op = gt_graph_append(graph, &gt_op_mean, name);
  op->shape = (gt_conv_shape){
      .H = e.h, .W = e.w, .C = e.c, .K = e.c, .R = e.h, .S = e.w, .P = 1, .Q = 1, .stride = 1};
  op->type = GT_F32;
  gt_graph_set_extent(graph, (gt_extent){1, 1, e.c});
}
