/* The scores of all items (Gupta et al. 2019, eq. 6): sigma times the cosine of a session, which
   has length 1, and the vector of each item.  The table belongs to another operation; its backward
   pass runs later, and adds to the gradient that this one writes.  Row 0, the padding, has no
   score. */
#include <string.h>

#include "graph.h"

/* units (V,K): the items' vectors with length 1, norms (V) their lengths; x (n,K): the sessions,
   times sigma. */
typedef struct {
  float *units, *norms, *x;
} memory;

static memory memory_of(const gt_op *op, const gt_pass *p) {
  const size_t V = op->out, K = op->in;
  return (memory){.units = p->a->state, .norms = p->a->state + V * K, .x = p->a->state + V * K + V};
}

static size_t state(const gt_op *op, size_t n) {
  return op->out * op->in + op->out + n * op->in;
}

static void forward(const gt_op *op, const gt_pass *p) {
  const memory m = memory_of(op, p);
  const gt_vec x = gt_vec_of(m.x, p->n * op->in);
  p->kernels->unit_forward(m.units, m.norms, p->w + op->in, op->out, op->in);
  memcpy(m.x, p->x, x.n * sizeof *m.x);
  gt_vec_scale(x, op->scale);
  gt_layer_forward(op->layer, p->a->y, m.x, m.units, NULL, p->n, p->work);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  gt_layer_backward_input(op->layer, p->dx, p->a->dy, memory_of(op, p).units, p->n, p->work);
  gt_vec_scale(gt_vec_of(p->dx, p->n * op->in), op->scale);
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  const memory m = memory_of(op, p);
  float *dw = p->dw + op->in;
  memset(p->dw, 0, op->in * sizeof *p->dw);
  gt_layer_backward_weight(op->layer, dw, NULL, p->a->dy, m.x, p->n, p->work);
  p->kernels->unit_backward(dw, dw, m.units, m.norms, op->out, op->in);
}

static size_t macs(const gt_op *op) {
  return op->in * op->out;
}

const gt_op_kind gt_op_cosine = {.name = "cosine",
                                 .kernel = "linear",
                                 .forward = forward,
                                 .backward_input = backward_input,
                                 .backward_weight = backward_weight,
                                 .state = state,
                                 .macs = macs};

void gt_graph_add_cosine(gt_graph *graph, const char *name, size_t table, float sigma) {
  const gt_op owner = graph->ops[table];
  gt_op *op = gt_graph_append(graph, &gt_op_cosine, name);
  op->weight = owner.weight;
  op->borrows = table;
  graph->ops[table].lends = true;
  op->scale = sigma;
  gt_graph_set_extent(graph, (gt_extent){1, 1, owner.table.ids - 1});
  gt_graph_open_layer(graph, op, true);
}
