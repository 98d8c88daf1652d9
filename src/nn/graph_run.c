/* One pass through the graph: forward in order, loss, backward in reverse. */

#include "graph.h"

static gt_pass pass_of(gt_graph *graph, size_t i, const float *x, size_t n) {
  gt_op *op = &graph->ops[i];
  gt_activation *before = i ? &graph->ops[i - 1].slots[0] : NULL;
  gt_pass pass = {
      .kernels = graph->kernels, .x = before ? before->y : x, .dx = before ? before->dy : NULL, .a = &op->slots[0], .work = graph->work, .n = n};
  if (op->weight != GT_NO_VIEW) {
    pass.w = graph->arrays.params.data + graph->views[op->weight].offset;
    pass.dw = graph->arrays.grads.data + graph->views[op->weight].offset;
  }
  if (op->bias != GT_NO_VIEW) {
    pass.b = graph->arrays.params.data + graph->views[op->bias].offset;
    pass.db = graph->arrays.grads.data + graph->views[op->bias].offset;
  }
  return pass;
}

static void progress(const gt_graph *graph) {
  if (graph->progress) graph->progress(graph->progress_context);
}

static void backward(gt_graph *graph, const float *x, size_t n) {
  for (size_t i = graph->nops; i-- > 0;) {
    const gt_op *op = &graph->ops[i];
    const gt_pass pass = pass_of(graph, i, x, n);
    if (op->kind->backward_weight) {
      op->kind->backward_weight(op, &pass);
      progress(graph);
    }
    if (i == 0) break; /* nobody needs the gradient of the samples */
    op->kind->backward_input(op, &pass);
    progress(graph);
  }
}

void gt_graph_step(gt_graph *graph, const void *x, const int32_t *labels, size_t n, bool train, gt_metrics *metrics) {
  if (n > graph->batch_max) {
    gt_bug("a graph built for %zu samples was given %zu", graph->batch_max, n);
  }
  *metrics = (gt_metrics){.samples = n};
  if (n == 0) {
    if (train) gt_vec_zero(graph->arrays.grads);
    return;
  }
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_pass pass = pass_of(graph, i, x, n);
    graph->ops[i].kind->forward(&graph->ops[i], &pass);
    progress(graph);
  }
  gt_activation *last = &graph->ops[graph->nops - 1].slots[0];
  metrics->loss_sum = graph->kernels->softmax_xent(train ? last->dy : NULL, last->y, labels, n, graph->classes, &metrics->correct);
  if (train) backward(graph, x, n);
}
