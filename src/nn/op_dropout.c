/* Dropout (Srivastava et al. 2014), in training only; the backward pass draws the mask again. */
#include <string.h>

#include "graph.h"

static void forward(const gt_op *op, const gt_pass *p) {
  const size_t n = p->n * op->out;
  if (p->train)
    gt_vec_drop(gt_vec_of(p->a->y, n), gt_vec_of((float *)(uintptr_t)p->x, n), op->dropped, p->key);
  else
    memcpy(p->a->y, p->x, n * sizeof(float));
}

/* dx and dy can be the same array. */
static void backward_input(const gt_op *op, const gt_pass *p) {
  const size_t n = p->n * op->out;
  const gt_vec dy = gt_vec_of(p->a->dy, n);
  if (p->a->dy2) gt_vec_axpy(dy, 1, gt_vec_of(p->a->dy2, n));
  gt_vec_drop(gt_vec_of(p->dx, n), dy, op->dropped, p->key);
}

const gt_op_kind gt_op_dropout = {.name = "dropout",
                                  .in_place_back = true,
                                  .adds_gradients = true,
                                  .sums_gradients = true,
                                  .without_effect = true,
                                  .forward = forward,
                                  .backward_input = backward_input};

void gt_graph_add_dropout(gt_graph *graph, const char *name, double p) {
  if (p <= 0) return;
  gt_op *op = gt_graph_append(graph, &gt_op_dropout, name);
  if (op->type != GT_F32) gt_bug("dropout %s would be of bf16", name);
  op->table = graph->ops[op->input].table; /* for operations on vectors of ids */
  op->dropped = p;
}
