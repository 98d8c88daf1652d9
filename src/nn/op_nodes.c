/* The nodes of session graphs: the vectors of a session's distinct items, scaled to length 1 (Gupta
   et al. 2019, eq. 5), packed.  The table has another reader (op_cosine.c).  In a fused step its
   backward pass runs first and writes the whole gradient of the table; this one adds to it. */
#include <math.h>

#include "session_graph.h"

static size_t graph_floats(const gt_op *op, size_t n) {
  return gt_session_graph_floats(n, op->table.fields);
}

static size_t vectors(const gt_op *op, size_t n) {
  return n * op->table.fields * op->table.width;
}

static size_t state(const gt_op *op, size_t n) {
  return graph_floats(op, n) + n * op->table.fields;
}

static float *norms_of(const gt_op *op, const gt_pass *p) {
  return p->a->state + graph_floats(op, p->n);
}

static void forward(const gt_op *op, const gt_pass *p) {
  const size_t K = op->table.width;
  const gt_session_graph g = gt_session_graph_read(p->a->state, p->samples, p->n, op->table.fields);
  p->kernels->embedding_forward(p->work, p->w, g.items, g.M, K);
  p->kernels->unit_forward(p->a->y, norms_of(op, p), p->work, g.M, K);
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  const size_t K = op->table.width;
  const gt_session_graph g = gt_session_graph_at(p->a->state, p->n, op->table.fields);
  if (p->rows) gt_graph_rows_renew(op, p, g.items, g.M, K);
  p->kernels->unit_backward(p->work, p->a->dy, p->a->y, norms_of(op, p), g.M, K);
  p->kernels->embedding_backward(p->dw, p->work, NULL, g.items, g.M, K);
}

const gt_op_kind gt_op_nodes = {.name = "nodes",
                                .kernel = "unit",
                                .reads_samples = true,
                                .packs = true,
                                .weight_reads = GT_READS_OUTPUT,
                                .forward = forward,
                                .backward_weight = backward_weight,
                                .state = state,
                                .ids = gt_graph_sample_ids,
                                .work = vectors};

void gt_graph_add_nodes(gt_graph *graph, const char *name, size_t K) {
  const size_t fields = graph->input.h * graph->input.w * graph->input.c;
  const gt_init uniform = {GT_INIT_UNIFORM, 1.0 / sqrt((double)K)};
  const size_t weight = gt_graph_add_param(graph, name, "weight", uniform, GT_LAYOUT_SAME, 2,
                                           (size_t[]){graph->features, K});
  gt_op *op = gt_graph_append(graph, &gt_op_nodes, name);
  op->weight = weight;
  op->table = (gt_table){.ids = graph->features, .fields = fields, .width = K};
  op->padded = true;
  gt_graph_set_extent(graph, (gt_extent){1, 1, fields * K});
}
