/* What both plans of memory need to know of the operations: who reads whose output, what is written
   in place, and how large outputs and scratch are. */
#include "graph.h"

static void add_reader(gt_graph *graph, size_t of, size_t reader) {
  if (of == GT_SAMPLES) return;
  gt_op *op = &graph->ops[of];
  if (op->nreaders == 2) gt_bug("more than two operations read %s", op->name);
  op->readers[op->nreaders++] = reader;
}

void gt_graph_link(gt_graph *graph) {
  for (size_t i = 0; i < graph->nops; i++) graph->ops[i].nreaders = 0;
  for (size_t i = 0; i < graph->nops; i++) {
    add_reader(graph, graph->ops[i].input, i);
    add_reader(graph, graph->ops[i].second, i);
  }
  for (size_t i = 0; i < graph->nops; i++)
    if (graph->ops[i].nreaders == 2 && !graph->ops[i].kind->adds_gradients)
      gt_bug("two operations read %s, which adds no gradients", graph->ops[i].name);
}

bool gt_graph_in_place(const gt_graph *graph, size_t i, bool back) {
  const gt_op *op = &graph->ops[i];
  if (op->input == GT_SAMPLES || graph->ops[op->input].nreaders != 1 || op->in_type != op->type)
    return false;
  return op->kind->in_place || (back && op->kind->in_place_back);
}

size_t gt_graph_output_floats(const gt_graph *graph, const gt_op *op) {
  return (graph->batch_max * op->out * gt_precision_bytes(op->type) + sizeof(float) - 1) /
         sizeof(float);
}

size_t gt_graph_work_floats(const gt_graph *graph) {
  size_t work = 0;
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    const size_t needs =
        op->kind->work && gt_graph_runs(graph, op) ? op->kind->work(op, graph->batch_max) : 0;
    if (needs > work) work = needs;
  }
  return work;
}
