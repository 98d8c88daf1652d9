/* The sum of the outputs of two operations, in float32. */
#include <string.h>

#include "graph.h"

static void copy(float *to, const float *from, size_t n) {
  if (to && to != from) memcpy(to, from, n * sizeof *to);
}

/* y and x can be the same array. */
static void forward(const gt_op *op, const gt_pass *p) {
  const size_t n = p->n * op->out;
  copy(p->a->y, p->x, n);
  gt_vec_axpy(gt_vec_of(p->a->y, n), 1, gt_vec_of((float *)p->second, n));
}

/* dx and dy can be the same array. */
static void backward_input(const gt_op *op, const gt_pass *p) {
  const size_t n = p->n * op->out;
  copy(p->dx, p->a->dy, n);
  if (p->a->dy2) gt_vec_axpy(gt_vec_of(p->dx, n), 1, gt_vec_of(p->a->dy2, n));
  copy(p->dsecond, p->dx, n);
}

const gt_op_kind gt_op_add = {.name = "add",
                              .in_place = true,
                              .adds_gradients = true,
                              .sums_gradients = true,
                              .forward = forward,
                              .backward_input = backward_input};

void gt_graph_add_sum(gt_graph *graph, const char *name, size_t other) {
  gt_op *op = gt_graph_append(graph, &gt_op_add, name);
  if (graph->ops[other].out != op->out || op->type != GT_F32 || graph->ops[other].type != GT_F32)
    gt_bug("%s adds outputs of different sizes or types", name);
  op->second = other;
}
