/* Embedding: a vector for each id of a sample.  Only rows of ids in the batch have a gradient.  The
   rows of the previous step are zeroed again, so the cost of a step depends on the batch size and
   not on the table size. */
#include <string.h>

#include "graph.h"

size_t gt_graph_sample_ids(const gt_op *op, size_t n) {
  return n * op->table.fields;
}

void gt_graph_rows_renew(const gt_op *op, const gt_pass *p, const int32_t *ids, size_t n,
                         size_t width) {
  gt_rows *rows = p->rows;
  if (p->first) {
    if (rows->n == GT_ROWS_ANY)
      memset(p->dw, 0, op->table.ids * width * sizeof *p->dw);
    else
      p->kernels->embedding_clear(p->dw, rows->ids, rows->n, width);
    rows->n = 0;
  }
  if (rows->n == GT_ROWS_ANY || n > rows->capacity - rows->n) {
    rows->n = GT_ROWS_ANY;
    return;
  }
  memcpy(rows->ids + rows->n, ids, n * sizeof *ids);
  rows->n += n;
}

static void forward(const gt_op *op, const gt_pass *p) {
  p->kernels->embedding_forward(p->a->y, p->w, p->samples, p->n * op->table.fields,
                                op->table.width);
}

static void backward_weight(const gt_op *op, const gt_pass *p) {
  gt_graph_rows_renew(op, p, p->samples, gt_graph_sample_ids(op, p->n), op->table.width);
  p->kernels->embedding_backward(p->dw, p->a->dy, p->a->dy2, p->samples, p->n * op->table.fields,
                                 op->table.width);
  if (op->padded) memset(p->dw + GT_PADDING * op->table.width, 0, op->table.width * sizeof *p->dw);
}

const gt_op_kind gt_op_embedding = {.name = "embedding",
                                    .kernel = "embedding",
                                    .adds_gradients = true,
                                    .sums_gradients = true,
                                    .reads_samples = true,
                                    .forward = forward,
                                    .backward_weight = backward_weight,
                                    .ids = gt_graph_sample_ids};

void gt_graph_add_embedding(gt_graph *graph, const char *name, size_t K, double deviation) {
  const size_t fields = graph->input.h * graph->input.w * graph->input.c;
  const size_t weight =
      gt_graph_add_param(graph, name, "weight", (gt_init){GT_INIT_NORMAL, deviation},
                         GT_LAYOUT_SAME, 2, (size_t[]){graph->features, K});
  gt_op *op = gt_graph_append(graph, &gt_op_embedding, name);
  op->weight = weight;
  op->table = (gt_table){.ids = graph->features, .fields = fields, .width = K};
  gt_graph_set_extent(graph, (gt_extent){1, 1, fields * K});
}

void gt_graph_add_embedding_padded(gt_graph *graph, const char *name, size_t K, double deviation) {
  gt_graph_add_embedding(graph, name, K, deviation);
  graph->ops[gt_graph_last(graph)].padded = true;
}
