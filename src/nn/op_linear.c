/* Linear layer, on a sample or on each of its rows.  Initial values as in PyTorch's Linear: uniform
   within 1/sqrt(inputs), the same for the bias; or as given to the builder. */
#include <math.h>
#include <stdio.h>

#include "graph.h"

static void forward(const gt_op *op, const gt_pass *p) {
  gt_layer_forward(op->layer, p->a->y, p->x, p->w, p->b, p->n * op->rows, p->work);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  gt_layer_backward_input(op->layer, p->dx, p->a->dy, p->w, p->n * op->rows, p->work);
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  gt_layer_backward_weight(op->layer, p->dw, p->db, p->a->dy, p->x, p->n * op->rows, p->work);
}

static size_t macs(const gt_op *op) {
  return op->in * (op->out / op->rows);
}

const gt_op_kind gt_op_linear = {.name = "linear",
                                 .kernel = "linear",
                                 .weight_reads = GT_READS_INPUT,
                                 .forward = forward,
                                 .backward_input = backward_input,
                                 .backward_weight = backward_weight,
                                 .macs = macs};

void gt_graph_add_linear(gt_graph *graph, const char *name, size_t O) {
  const gt_extent e = gt_graph_extent(graph);
  gt_graph_add_linear_within(graph, name, O, e.h * e.w * e.c);
}

void gt_graph_add_linear_within(gt_graph *graph, const char *name, size_t O, size_t fan) {
  const gt_extent e = gt_graph_extent(graph);
  const size_t I = e.h * e.w * e.c;
  const gt_init uniform = {GT_INIT_UNIFORM, 1.0 / sqrt((double)fan)};
  const size_t weight = gt_graph_add_param(graph, name, "weight", uniform,
                                           e.h * e.w > 1 ? GT_LAYOUT_IMAGE_ROWS : GT_LAYOUT_SAME, 2,
                                           (size_t[]){O, I});
  const size_t bias = gt_graph_add_param(graph, name, "bias", uniform, GT_LAYOUT_SAME, 1, &O);
  gt_op *op = gt_graph_append(graph, &gt_op_linear, name);
  op->weight = weight;
  op->bias = bias;
  gt_graph_set_extent(graph, (gt_extent){1, 1, O});
  gt_graph_open_layer(graph, op, true);
}

/* Appends a layer of O outputs on each row of the input. */
static gt_op *append_rows(gt_graph *graph, const char *name, size_t O) {
  gt_extent e = gt_graph_extent(graph);
  gt_op *op = gt_graph_append(graph, &gt_op_linear, name);
  op->rows = e.h;
  e.c = O;
  gt_graph_set_extent(graph, e);
  return op;
}

void gt_graph_add_rows_linear(gt_graph *graph, const char *name, size_t O, double deviation) {
  const size_t weight =
      gt_graph_add_param(graph, name, "weight", (gt_init){GT_INIT_NORMAL, deviation},
                         GT_LAYOUT_SAME, 2, (size_t[]){O, gt_graph_extent(graph).c});
  const size_t bias = gt_graph_add_param(graph, name, "bias", (gt_init){GT_INIT_CONSTANT, 0},
                                         GT_LAYOUT_SAME, 1, &O);
  gt_op *op = append_rows(graph, name, O);
  op->weight = weight;
  op->bias = bias;
  gt_graph_open_layer(graph, op, true);
}

void gt_graph_add_next(gt_graph *graph, const char *name, size_t tied, double deviation) {
  const size_t V = graph->features, D = gt_graph_extent(graph).c;
  char full[64];
  snprintf(full, sizeof full, "%.47s.weight", name);
  graph->loss = &gt_loss_next;
  graph->outputs = V;
  graph->predictions = gt_graph_extent(graph).h;
  const size_t weight =
      tied == GT_SAMPLES
          ? gt_graph_add_param(graph, name, "weight", (gt_init){GT_INIT_NORMAL, deviation},
                               GT_LAYOUT_SAME, 2, (size_t[]){V, D})
          : graph->ops[tied].weight;
  gt_op *op = append_rows(graph, name, V);
  op->weight = weight;
  if (tied != GT_SAMPLES) {
    op->borrows = tied;
    graph->ops[tied].lends = true;
    gt_graph_alias(graph, full, weight);
  }
  gt_graph_open_layer(graph, op, true);
}
