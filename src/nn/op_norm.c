/* Batch normalisation (Ioffe and Szegedy 2015), with the following sum of a residual block and ReLU
   (He et al. 2016) in the same pass over memory.  Initial values as in PyTorch's BatchNorm2d:
   weight 1, bias 0, running mean 0 and variance 1, momentum 0.1, epsilon 1e-5. */
#include "graph.h"

#define EPSILON  1e-5F
#define MOMENTUM 0.1F

static gt_norm_shape shape_of(const gt_op *op, size_t n) {
  return (gt_norm_shape){.M = n * op->extent.h * op->extent.w,
                         .C = op->extent.c,
                         .type = op->type,
                         .relu = op->relu,
                         .epsilon = EPSILON,
                         .momentum = MOMENTUM};
}

static void forward(const gt_op *op, const gt_pass *p) {
  const gt_norm_shape s = shape_of(op, p->n);
  float *mean = p->running, *var = p->running + s.C;
  if (p->train)
    p->kernels->norm_forward(p->a->y, p->x, p->second, p->w, p->b, mean, var, p->a->state, &s,
                             p->work);
  else
    p->kernels->norm_infer(p->a->y, p->x, p->second, p->w, p->b, mean, var, &s, p->work);
}

/* dx is dy if no other operation reads the input (in_place_back). */
static void backward_input(const gt_op *op, const gt_pass *p) {
  const gt_norm_shape s = shape_of(op, p->n);
  p->kernels->norm_backward(p->dx, p->dsecond, p->dw, p->db, p->a->dy, p->a->dy2, p->a->y, p->x,
                            p->w, p->b, p->a->state, &s, p->work);
}

static size_t state(const gt_op *op, size_t n) {
  (void)n;
  return 2 * op->extent.c;
}

static size_t work(const gt_op *op, size_t n) {
  (void)n;
  return gt_norm_work(op->extent.c);
}

const gt_op_kind gt_op_norm = {.name = "norm",
                               .kernel = "norm",
                               .in_place_back = true,
                               .adds_gradients = true,
                               .sums_gradients = true,
                               .input_reads = GT_READS_INPUT | GT_READS_OUTPUT,
                               .needs_spread = true,
                               .forward = forward,
                               .backward_input = backward_input,
                               .state = state,
                               .work = work};

void gt_graph_add_norm(gt_graph *graph, const char *name, size_t add, bool relu) {
  const size_t C = gt_graph_extent(graph).c;
  const size_t weight = gt_graph_add_param(graph, name, "weight", (gt_init){GT_INIT_CONSTANT, 1},
                                           GT_LAYOUT_SAME, 1, &C);
  const size_t bias = gt_graph_add_param(graph, name, "bias", (gt_init){GT_INIT_CONSTANT, 0},
                                         GT_LAYOUT_SAME, 1, &C);
  const size_t mean = gt_graph_add_buffer(graph, name, "running_mean", 0, C);
  gt_graph_add_buffer(graph, name, "running_var", 1, C);
  gt_op *op = gt_graph_append(graph, &gt_op_norm, name);
  if (add != GT_SAMPLES && graph->ops[add].type != op->type)
    gt_bug("%s adds values of two types", name);
  op->weight = weight;
  op->bias = bias;
  op->buffer = mean;
  op->second = add;
  op->relu = relu;
}
