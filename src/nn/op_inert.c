/* Parameters without effect: the input is copied, the gradient is zero.  They exist only to be
   communicated. */
#include <string.h>

#include "graph.h"

/* Small but not zero, so that weight decay and means of models change them. */
#define BOUND 0.01

/* In place, nothing is copied. */
static void pass_on(float *to, const float *from, size_t n) {
  if (to != from) memcpy(to, from, n * sizeof *to);
}

static void forward(const gt_op *op, const gt_pass *p) {
  pass_on(p->a->y, p->x, p->n * op->out);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  pass_on(p->dx, p->a->dy, p->n * op->out);
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  memset(p->dw, 0, op->inert * sizeof *p->dw);
}

const gt_op_kind gt_op_inert = {.name = "inert",
                                .in_place = true,
                                .keeps_signs = true,
                                .no_gradient = true,
                                .forward = forward,
                                .backward_input = backward_input,
                                .backward_weight = backward_weight};

void gt_graph_add_inert(gt_graph *graph, const char *name, size_t count) {
  const size_t weight = gt_graph_add_param(graph, name, "weight", (gt_init){GT_INIT_UNIFORM, BOUND},
                                           GT_LAYOUT_SAME, 1, &count);
  gt_op *op = gt_graph_append(graph, &gt_op_inert, name);
  op->inert = count;
  op->weight = weight;
}
