/* The sum of the outputs of two operations, in float32. */
#include <string.h>

#include "graph.h"

/* y may be x. */
static void forward(const gt_op *op, const gt_pass *p) {
  const float *x = p->x, *second = p->second;
  float *y = p->a->y;
  for (size_t i = 0; i < p->n * op->out; i++) y[i] = x[i] + second[i];
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  const size_t bytes = p->n * op->out * sizeof(float);
  if (p->dsecond) memcpy(p->dsecond, p->a->dy, bytes);
  if (p->dx != p->a->dy) memcpy(p->dx, p->a->dy, bytes);
}

const gt_op_kind gt_op_add = {
    .name = "add", .in_place = true, .forward = forward, .backward_input = backward_input};

void gt_graph_add_sum(gt_graph *graph, const char *name, size_t other) {
  gt_op *op = gt_graph_append(graph, &gt_op_add, name);
  if (graph->ops[other].out != op->out || op->type != GT_F32 || graph->ops[other].type != GT_F32)
    gt_bug("%s adds what does not match", name);
  op->second = other;
}
