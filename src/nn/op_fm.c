/* A factorization machine (Rendle 2010) over the vectors of an embedding: bias, a weight for each
   id, and the inner products of all pairs of a sample's vectors.  Bias and weights start at zero,
   as in libFM (Rendle 2012). */
#include "graph.h"

static void forward(const gt_op *op, const gt_pass *p) {
  p->kernels->fm_forward(p->a->y, p->x, p->w, p->b, p->samples, p->n, op->table.fields,
                         op->table.width);
}

static void backward_input(const gt_op *op, const gt_pass *p) {
  p->kernels->fm_backward_input(p->dx, p->a->dy, p->x, p->n, op->table.fields, op->table.width);
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  gt_graph_rows_renew(op, p, p->samples, gt_graph_sample_ids(op, p->n), 1);
  p->kernels->fm_backward_weight(p->dw, p->db, p->a->dy, p->samples, p->n, op->table.fields);
}

/* One square per number of the vectors. */
static size_t macs(const gt_op *op) {
  return op->in;
}

const gt_op_kind gt_op_fm = {.name = "fm",
                             .kernel = "fm",
                             .reads_samples = true,
                             .input_reads = GT_READS_INPUT,
                             .forward = forward,
                             .backward_input = backward_input,
                             .backward_weight = backward_weight,
                             .ids = gt_graph_sample_ids,
                             .macs = macs};

void gt_graph_add_fm(gt_graph *graph, const char *name, const char *weights) {
  const gt_table table = graph->ops[graph->from].table;
  const gt_init zero = {GT_INIT_CONSTANT, 0};
  const size_t weight = gt_graph_add_param(graph, weights, "weight", zero, GT_LAYOUT_SAME, 2,
                                           (size_t[]){table.ids, 1});
  const size_t bias = gt_graph_add_param(graph, "", "bias", zero, GT_LAYOUT_SAME, 1, (size_t[]){1});
  gt_op *op = gt_graph_append(graph, &gt_op_fm, name);
  op->weight = weight;
  op->bias = bias;
  op->table = table;
  gt_graph_set_extent(graph, (gt_extent){1, 1, 1});
}
