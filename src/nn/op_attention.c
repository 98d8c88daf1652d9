/* Causal attention with several heads (Vaswani et al. 2017).  A row of the input holds a query, a
   key and a value, each as wide as a row of the output. */
#include "graph.h"

static gt_attention_shape shape_of(const gt_op *op) {
  return (gt_attention_shape){.T = op->extent.h, .D = op->extent.c, .heads = op->heads};
}

static void forward(const gt_op *op, const gt_pass *p) {
  const gt_attention_shape s = shape_of(op);
  p->kernels->attention_forward(p->a->y, p->a->state, p->x, &s, p->n, p->work);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  const gt_attention_shape s = shape_of(op);
  p->kernels->attention_backward(p->dx, p->a->dy, p->a->y, p->a->state, p->x, &s, p->n, p->work);
}

static size_t state(const gt_op *op, size_t n) {
  return n * op->heads * op->extent.h;
}

static size_t work(const gt_op *op, size_t n) {
  const gt_attention_shape s = shape_of(op);
  (void)n;
  return gt_attention_work(&s);
}

/* Position t has t + 1 scores and as many weights. */
static size_t macs(const gt_op *op) {
  return op->extent.h * (op->extent.h + 1) * op->extent.c;
}

const gt_op_kind gt_op_attention = {.name = "attention",
                                    .kernel = "attention",
                                    .input_reads = GT_READS_INPUT | GT_READS_OUTPUT,
                                    .forward = forward,
                                    .backward_input = backward_input,
                                    .state = state,
                                    .work = work,
                                    .macs = macs};

void gt_graph_add_attention(gt_graph *graph, const char *name, size_t heads) {
  gt_extent e = gt_graph_extent(graph);
  gt_op *op = gt_graph_append(graph, &gt_op_attention, name);
  op->heads = heads;
  e.c /= 3;
  gt_graph_set_extent(graph, e);
}
