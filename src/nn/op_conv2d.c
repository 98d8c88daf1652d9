/* Convolution.  With bias: initial values as in PyTorch's Conv2d (Kaiming uniform with a = sqrt(5),
   that is, uniform within 1/sqrt(fan_in); the same for the bias).  Plain, before a normalisation:
   initial values of He et al. 2015, normal with standard deviation sqrt(2 / fan_out), as in
   torchvision's ResNet. */
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

static size_t work(const gt_op *op, size_t n) {
  return gt_layer_work(op->layer, n);
}

static size_t macs(const gt_op *op) {
  return op->out * op->shape.R * op->shape.S * op->shape.C;
}

const gt_op_kind gt_op_conv2d = {.name = "conv2d",
                                 .kernel = "conv",
                                 .weight_reads = GT_READS_INPUT,
                                 .forward = forward,
                                 .backward_input = backward_input,
                                 .backward_weight = backward_weight,
                                 .work = work,
                                 .macs = macs};

static gt_status add(gt_graph *graph, const char *name, size_t K, gt_conv_shape *s, bool plain) {
  s->K = K;
  const double fan_in = (double)(s->R * s->S * s->C), fan_out = (double)(s->R * s->S * s->K);
  const gt_init uniform = {GT_INIT_UNIFORM, 1.0 / sqrt(fan_in)},
                normal = {GT_INIT_NORMAL, sqrt(2.0 / fan_out)};
  const size_t weight = gt_graph_add_param(graph, name, "weight", plain ? normal : uniform,
                                           GT_LAYOUT_CONV, 4, (size_t[]){s->R, s->S, s->C, s->K});
  const size_t bias =
      plain ? GT_NO_VIEW
            : gt_graph_add_param(graph, name, "bias", uniform, GT_LAYOUT_SAME, 1, &s->K);
  gt_op *op = gt_graph_append(graph, &gt_op_conv2d, name);
  op->shape = *s;
  op->weight = weight;
  op->bias = bias;
  gt_graph_set_extent(graph, (gt_extent){s->P, s->Q, s->K});
  gt_graph_open_layer(graph, op, false);
  return GT_OK;
}

gt_status gt_graph_add_conv2d(gt_graph *graph, const char *name, size_t K, size_t window,
                              size_t stride, size_t pad) {
  gt_conv_shape s;
  GT_TRY(gt_graph_window(graph, name, window, stride, pad, &s));
  return add(graph, name, K, &s, false);
}

gt_status gt_graph_add_conv2d_plain(gt_graph *graph, const char *name, size_t K, size_t window,
                                    size_t stride, size_t pad) {
  gt_conv_shape s;
  GT_TRY(gt_graph_window(graph, name, window, stride, pad, &s));
  return add(graph, name, K, &s, true);
}
