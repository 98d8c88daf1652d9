/* Convolution with bias.  Initial values as PyTorch's Conv2d: Kaiming uniform with a = sqrt(5), which is uniform in 1/sqrt(fan_in), bias alike. */
#include <math.h>

#include "graph.h"

static void forward(const gt_op *op, const gt_pass *p) {
  p->kernels->conv_forward(p->a->y, p->x, p->w, p->b, &op->shape, p->n, p->work);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  p->kernels->conv_backward_input(p->dx, p->a->dy, p->w, &op->shape, p->n, p->work);
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  p->kernels->conv_backward_weight(p->dw, p->db, p->a->dy, p->x, &op->shape, p->n, p->work);
}

static size_t work(const gt_op *op, const gt_kernels *kernels, size_t n) {
  return kernels->conv_work(&op->shape, n);
}

static size_t macs(const gt_op *op) {
  return op->out * op->shape.R * op->shape.S * op->shape.C;
}

const gt_op_kind gt_op_conv2d = {
    .name = "conv2d", .forward = forward, .backward_input = backward_input, .backward_weight = backward_weight, .work = work, .macs = macs};

gt_status gt_graph_add_conv2d(gt_graph *graph, const char *name, size_t K, size_t window, size_t stride, size_t pad) {
  gt_conv_shape s;
  GT_TRY(gt_graph_window(graph, name, window, stride, pad, &s));
  s.K = K;
  const double bound = 1.0 / sqrt((double)(s.R * s.S * s.C));
  const size_t weight = gt_graph_add_param(graph, name, "weight", bound, 4, (size_t[]){s.R, s.S, s.C, s.K});
  const size_t bias = gt_graph_add_param(graph, name, "bias", bound, 1, &s.K);
  gt_op *op = gt_graph_append(graph, &gt_op_conv2d, name);
  op->shape = s;
  op->weight = weight;
  op->bias = bias;
  gt_graph_set_extent(graph, (gt_extent){s.P, s.Q, s.K});
  return GT_OK;
}
