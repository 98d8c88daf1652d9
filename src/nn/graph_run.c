/* One pass through the graph: forward in order, loss, backward in reverse. */

#include "graph.h"

gt_pass gt_graph_pass(gt_graph *graph, size_t i, size_t slot, const void *samples, size_t n,
                      bool train) {
  gt_op *op = &graph->ops[i];
  gt_activation *a = &op->slots[slot];
  gt_pass pass = {.kernels = graph->kernels,
                  .samples = samples,
                  .x = op->input == GT_SAMPLES ? samples : a->x,
                  .second = a->second,
                  .dx = a->dx,
                  .dsecond = a->dsecond,
                  .a = a,
                  /* In a fused step, the borrower of a lent table writes all of its gradient. */
                  .rows = graph->slots == 0 && op->lends ? NULL : &op->nonzero,
                  .first = true,
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

void gt_graph_progress(const gt_graph *graph) {
  if (graph->progress) graph->progress(graph->progress_context);
}

/* Tensors are stored in the order of the operations: from the first tensor of this operation on,
   all gradients are final.  An operation with borrowed weights comes long before that. */
static void tell_gradients(const gt_graph *graph, const gt_op *op) {
  if (graph->gradients && op->weight != GT_NO_VIEW && op->borrows == GT_NO_VIEW)
    graph->gradients(graph->gradients_context, graph->params.views[op->weight].offset);
}

static void backward(gt_graph *graph, const void *samples, size_t n) {
  for (size_t i = graph->nops; i-- > 0;) {
    const gt_op *op = &graph->ops[i];
    const gt_pass pass = gt_graph_pass(graph, i, 0, samples, n, true);
    if (op->kind->backward_weight) {
      op->kind->backward_weight(op, &pass);
      gt_graph_progress(graph);
    }
    if (pass.dx) {
      op->kind->backward_input(op, &pass);
      gt_graph_progress(graph);
    }
    tell_gradients(graph, op);
  }
}

static void forward(gt_graph *graph, const void *samples, size_t n, bool train) {
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_pass pass = gt_graph_pass(graph, i, 0, samples, n, train);
    graph->ops[i].kind->forward(&graph->ops[i], &pass);
    gt_graph_progress(graph);
  }
}

void gt_graph_check_size(const gt_graph *graph, size_t n, bool train) {
  if (n > graph->batch_max)
    gt_bug("a graph built for %zu samples was given %zu", graph->batch_max, n);
  if (train && n < gt_graph_least(graph))
    gt_bug("model %s was given %zu samples to train on; it needs %zu", graph->model, n,
           gt_graph_least(graph));
}

/* A pass of the whole model without spans. */
static void check_whole(const gt_graph *graph, size_t n, bool train) {
  if (graph->slots) gt_bug("a graph with slots has passes of spans only");
  gt_graph_check_size(graph, n, train);
}

void gt_graph_step(gt_graph *graph, const void *x, const int32_t *labels, size_t n, bool train,
                   gt_metrics *metrics) {
  check_whole(graph, n, train && n > 0);
  *metrics = (gt_metrics){.samples = n};
  if (n == 0) {
    if (train) gt_vec_zero(graph->arrays.grads);
    return;
  }
  forward(graph, x, n, train);
  gt_activation *last = &graph->ops[graph->nops - 1].slots[0];
  graph->loss->run(graph, train ? last->dy : NULL, last->y, x, labels, n, metrics);
  if (train) backward(graph, x, n);
}

const float *gt_graph_scores(const gt_graph *graph) {
  return graph->slots ? graph->scores : graph->ops[graph->nops - 1].slots[0].y;
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
  check_whole(graph, n, false);
  forward(graph, ids, n, false);
  return gt_graph_scores(graph);
}
