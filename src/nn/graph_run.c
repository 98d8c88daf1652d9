/* One pass through the graph: forward in order, loss, backward in reverse. */

#include "graph.h"

static gt_pass pass_of(gt_graph *graph, size_t i, const void *samples, size_t n, bool train) {
  gt_op *op = &graph->ops[i];
  gt_activation *a = &op->slots[0];
  gt_pass pass = {.kernels = graph->kernels,
                  .samples = samples,
                  .x = op->input == GT_SAMPLES ? samples : graph->ops[op->input].slots[0].y,
                  .second = op->second == GT_SAMPLES ? NULL : graph->ops[op->second].slots[0].y,
                  .dx = a->dx,
                  .dsecond = a->dsecond,
                  .a = a,
                  .work = graph->work,
                  .n = n,
                  .train = train};
  const size_t weight = op->weight != GT_NO_VIEW ? op->weight : op->tied;
  if (weight != GT_NO_VIEW) {
    pass.w = graph->arrays.params.data + graph->params.views[weight].offset;
    pass.dw = graph->arrays.grads.data + graph->params.views[weight].offset;
  }
  if (op->bias != GT_NO_VIEW) {
    pass.b = graph->arrays.params.data + graph->params.views[op->bias].offset;
    pass.db = graph->arrays.grads.data + graph->params.views[op->bias].offset;
  }
  if (op->buffer != GT_NO_VIEW)
    pass.running = graph->arrays.buffers.data + graph->buffers.views[op->buffer].offset;
  return pass;
}

static void progress(const gt_graph *graph) {
  if (graph->progress) graph->progress(graph->progress_context);
}

/* Tensors are stored in the order of the operations: from the first tensor of this operation on,
   all gradients are final. */
static void tell_gradients(const gt_graph *graph, const gt_op *op) {
  if (graph->gradients && op->weight != GT_NO_VIEW)
    graph->gradients(graph->gradients_context, graph->params.views[op->weight].offset);
}

static void backward(gt_graph *graph, const void *samples, size_t n) {
  for (size_t i = graph->nops; i-- > 0;) {
    const gt_op *op = &graph->ops[i];
    const gt_pass pass = pass_of(graph, i, samples, n, true);
    if (op->kind->backward_weight) {
      op->kind->backward_weight(op, &pass);
      progress(graph);
    }
    if (pass.dx) {
      op->kind->backward_input(op, &pass);
      progress(graph);
    }
    tell_gradients(graph, op);
  }
}

void gt_graph_step(gt_graph *graph, const void *x, const int32_t *labels, size_t n, bool train,
                   gt_metrics *metrics) {
  if (n > graph->batch_max) {
    gt_bug("a graph built for %zu samples was given %zu", graph->batch_max, n);
  }
  *metrics = (gt_metrics){.samples = n};
  if (n == 0) {
    if (train) gt_vec_zero(graph->arrays.grads);
    return;
  }
  if (train && n < gt_graph_least(graph))
    gt_bug("model %s was given %zu samples to train on; it needs %zu", graph->model, n,
           gt_graph_least(graph));
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_pass pass = pass_of(graph, i, x, n, train);
    graph->ops[i].kind->forward(&graph->ops[i], &pass);
    progress(graph);
  }
  gt_activation *last = &graph->ops[graph->nops - 1].slots[0];
  float *gradient = train ? last->dy : NULL;
  metrics->loss_sum =
      graph->logistic ? graph->kernels->logistic(gradient, last->y, labels, n, &metrics->correct)
                      : graph->kernels->softmax_xent(gradient, last->y, labels, n, graph->classes,
                                                     &metrics->correct);
  if (train) backward(graph, x, n);
}

const float *gt_graph_scores(const gt_graph *graph) {
  return graph->ops[graph->nops - 1].slots[0].y;
}

size_t gt_graph_outputs(const gt_graph *graph) {
  return graph->logistic ? 1 : graph->classes;
}
