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
  if (op->weight != GT_NO_VIEW) {
    pass.w = graph->arrays.params.data + graph->params.views[op->weight].offset;
    pass.dw = graph->arrays.grads.data + graph->params.views[op->weight].offset;
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
   all gradients are final.  An operation with borrowed weights comes long before that. */
static void tell_gradients(const gt_graph *graph, const gt_op *op) {
  if (graph->gradients && op->weight != GT_NO_VIEW && !op->borrows)
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

static void forward(gt_graph *graph, const void *samples, size_t n, bool train) {
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_pass pass = pass_of(graph, i, samples, n, train);
    graph->ops[i].kind->forward(&graph->ops[i], &pass);
    progress(graph);
  }
}

static void check_size(const gt_graph *graph, size_t n) {
  if (n > graph->batch_max)
    gt_bug("a graph built for %zu samples was given %zu", graph->batch_max, n);
}

void gt_graph_step(gt_graph *graph, const void *x, const int32_t *labels, size_t n, bool train,
                   gt_metrics *metrics) {
  check_size(graph, n);
  *metrics = (gt_metrics){.samples = n};
  if (n == 0) {
    if (train) gt_vec_zero(graph->arrays.grads);
    return;
  }
  if (train && n < gt_graph_least(graph))
    gt_bug("model %s was given %zu samples to train on; it needs %zu", graph->model, n,
           gt_graph_least(graph));
  forward(graph, x, n, train);
  gt_activation *last = &graph->ops[graph->nops - 1].slots[0];
  graph->loss->run(graph, train ? last->dy : NULL, last->y, x, labels, n, metrics);
  if (train) backward(graph, x, n);
}

const float *gt_graph_scores(const gt_graph *graph) {
  return graph->ops[graph->nops - 1].slots[0].y;
}

size_t gt_graph_outputs(const gt_graph *graph) {
  return graph->outputs;
}

size_t gt_graph_predictions(const gt_graph *graph) {
  return graph->predictions;
}

bool gt_graph_of_text(const gt_graph *graph) {
  return graph->loss == &gt_loss_next;
}

const float *gt_graph_infer(gt_graph *graph, const int32_t *ids, size_t n) {
  if (!gt_graph_of_text(graph)) gt_bug("model %s predicts no next id", graph->model);
  check_size(graph, n);
  forward(graph, ids, n, false);
  return gt_graph_scores(graph);
}
