/* Token and position embedding: a sample is T + 1 ids; row t of the output is the vector of id t
   plus that of position t.  The last id is only a label.  As in op_embedding.c, the gradient of the
   ids' vectors changes only the rows of ids in the batch.  But in a fused step, if these vectors
   are also the weights of the head, the head's gradient of all rows is already there. */
#include <string.h>

#include "graph.h"

static size_t positions(const gt_op *op) {
  return op->table.fields - 1;
}

static gt_vec rows_of(float *data, const gt_op *op) {
  return gt_vec_of(data, op->out);
}

/* The positions' vectors follow those of the ids: they are the operation's bias. */
static void forward(const gt_op *op, const gt_pass *p) {
  const int32_t *ids = p->samples;
  float *y = p->a->y;
  for (size_t i = 0; i < p->n; i++, ids += op->table.fields, y += op->out) {
    p->kernels->embedding_forward(y, p->w, ids, positions(op), op->table.width);
    gt_vec_axpy(rows_of(y, op), 1, rows_of((float *)p->b, op));
  }
}

static void positions_backward(const gt_op *op, const gt_pass *p) {
  const gt_vec sum = rows_of(p->db, op);
  memset(p->db, 0, op->table.context * op->table.width * sizeof *p->db);
  for (size_t i = 0; i < p->n; i++) {
    gt_vec_axpy(sum, 1, rows_of((float *)p->a->dy + i * op->out, op));
    if (p->a->dy2) gt_vec_axpy(sum, 1, rows_of((float *)p->a->dy2 + i * op->out, op));
  }
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  const int32_t *ids = p->samples;
  const float *dy = p->a->dy, *dy2 = p->a->dy2;
  if (p->rows) gt_graph_rows_renew(op, p, ids, gt_graph_sample_ids(op, p->n), op->table.width);
  for (size_t i = 0; i < p->n; i++, ids += op->table.fields)
    p->kernels->embedding_backward(p->dw, dy + i * op->out, dy2 ? dy2 + i * op->out : NULL, ids,
                                   positions(op), op->table.width);
  positions_backward(op, p);
}

const gt_op_kind gt_op_tokens = {.name = "tokens",
                                 .kernel = "embedding",
                                 .adds_gradients = true,
                                 .reads_samples = true,
                                 .forward = forward,
                                 .backward_weight = backward_weight,
                                 .ids = gt_graph_sample_ids};

void gt_graph_add_tokens(gt_graph *graph, const char *ids, const char *places, size_t K,
                         size_t context, double deviation) {
  const size_t fields = graph->input.h * graph->input.w * graph->input.c;
  const gt_init normal = {GT_INIT_NORMAL, deviation};
  const size_t weight = gt_graph_add_param(graph, ids, "weight", normal, GT_LAYOUT_SAME, 2,
                                           (size_t[]){graph->features, K});
  const size_t bias = gt_graph_add_param(graph, places, "weight", normal, GT_LAYOUT_SAME, 2,
                                         (size_t[]){context, K});
  gt_op *op = gt_graph_append(graph, &gt_op_tokens, ids);
  op->weight = weight;
  op->bias = bias;
  op->table = (gt_table){graph->features, fields, K, context, false};
  gt_graph_set_extent(graph, (gt_extent){fields - 1, 1, K});
}
