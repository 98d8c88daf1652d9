/* Passes through the graph: a step (forward in order, loss, backward in reverse), and passes over a
   span of operations and a slot. */
#include <string.h>

#include "graph.h"

/* ---- a step ---------------------------------------------------------------------------------- */

static gt_pass pass_of(gt_graph *graph, size_t i, size_t slot, const void *samples, size_t n,
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
                  .train = train,
                  .key = graph->key + i * 0x9e3779b97f4a7c15};
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

/* Reports final gradients.  Tensors are stored in the order of the operations: from the first
   tensor of this operation on, all gradients are final.  An operation with borrowed weights has run
   long before. */
static void tell_gradients(const gt_graph *graph, const gt_op *op) {
  if (graph->gradients && op->weight != GT_NO_VIEW && op->borrows == GT_NO_VIEW)
    graph->gradients(graph->gradients_context, graph->params.views[op->weight].offset);
}

static void backward(gt_graph *graph, const void *samples, size_t n) {
  for (size_t i = graph->nops; i-- > 0;) {
    const gt_op *op = &graph->ops[i];
    const gt_pass pass = pass_of(graph, i, 0, samples, n, true);
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
    const gt_pass pass = pass_of(graph, i, 0, samples, n, train);
    graph->ops[i].kind->forward(&graph->ops[i], &pass);
    progress(graph);
  }
}

/* Ends the program if a pass over n samples is impossible. */
static void check_size(const gt_graph *graph, size_t n, bool train) {
  if (n > graph->batch_max)
    gt_bug("a graph built for %zu samples was given %zu", graph->batch_max, n);
  if (train && n < gt_graph_least(graph))
    gt_bug("model %s was given %zu samples to train on; expected at least %zu", graph->model, n,
           gt_graph_least(graph));
}

/* Checks a pass of the whole model without spans. */
static void check_whole(const gt_graph *graph, size_t n, bool train) {
  if (graph->slots) gt_bug("a graph with slots has passes of spans only");
  check_size(graph, n, train);
}

void gt_graph_set_key(gt_graph *graph, uint64_t key) {
  graph->key = key;
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

/* ---- a span and a slot ----------------------------------------------------------------------- */

/* Passes over a span of operations and a slot.  Gradients of micro-batches are accumulated: the
   first one of a step is written directly, the others to scratch memory and added.  Rows of ids,
   which the kernels accumulate themselves, are always added directly. */

static const gt_graph_span *span_of(const gt_graph *graph, size_t span, size_t slot) {
  if (graph->slots == 0) gt_bug("a graph without slots was asked for a span");
  if (span >= graph->nspans || !graph->spans[span].runs || slot >= graph->slots || !graph->work)
    gt_bug("span %zu, slot %zu do not run here (%zu spans, %zu slots)", span, slot, graph->nspans,
           graph->slots);
  return &graph->spans[span];
}

static bool has_loss(const gt_graph *graph, const gt_graph_span *span) {
  return span->ops.end == graph->nops;
}

static gt_activation *last_of(const gt_graph *graph, const gt_graph_span *span, size_t slot) {
  return &graph->ops[span->ops.end - 1].slots[slot];
}

void *gt_graph_span_input(const gt_graph *graph, size_t span, size_t slot) {
  return span_of(graph, span, slot)->slots[slot].input;
}

const void *gt_graph_span_input_gradient(const gt_graph *graph, size_t span, size_t slot) {
  return span_of(graph, span, slot)->slots[slot].dinput;
}

const void *gt_graph_span_output(const gt_graph *graph, size_t span, size_t slot) {
  return last_of(graph, span_of(graph, span, slot), slot)->y;
}

void *gt_graph_span_output_gradient(const gt_graph *graph, size_t span, size_t slot) {
  const gt_graph_span *found = span_of(graph, span, slot);
  return has_loss(graph, found) ? NULL : last_of(graph, found, slot)->dy;
}

static void run_loss(gt_graph *graph, gt_activation *last, const gt_micro_batch *batch, bool train,
                     gt_metrics *metrics) {
  metrics->samples = batch->n;
  graph->scores = last->y;
  if (batch->n > 0)
    graph->loss->run(graph, train ? last->dy : NULL, last->y, batch->samples, batch->labels,
                     batch->n, metrics);
}

void gt_graph_forward(gt_graph *graph, size_t span, size_t slot, const gt_micro_batch *batch,
                      bool train, gt_metrics *metrics) {
  const gt_graph_span *s = span_of(graph, span, slot);
  check_size(graph, batch->n, train && batch->n > 0);
  *metrics = (gt_metrics){0};
  for (size_t i = s->ops.first; batch->n > 0 && i < s->ops.end; i++) {
    const gt_pass pass = pass_of(graph, i, slot, batch->samples, batch->n, train);
    graph->ops[i].kind->forward(&graph->ops[i], &pass);
    progress(graph);
  }
  if (has_loss(graph, s)) run_loss(graph, last_of(graph, s, slot), batch, train, metrics);
}

/* y += x, n values of this type; bf16: rounded. */
static void add_values(void *y, const void *x, gt_precision type, size_t n) {
  enum { BLOCK = 512 };
  if (type == GT_F32) {
    gt_vec_axpy(gt_vec_of(y, n), 1, gt_vec_of((float *)x, n));
    return;
  }
  float sum[BLOCK], part[BLOCK];
  for (size_t done = 0; done < n; done += BLOCK) {
    const size_t count = n - done < BLOCK ? n - done : BLOCK;
    gt_from_bf16(sum, (gt_bf16 *)y + done, count);
    gt_from_bf16(part, (const gt_bf16 *)x + done, count);
    gt_vec_axpy(gt_vec_of(sum, count), 1, gt_vec_of(part, count));
    gt_to_bf16((gt_bf16 *)y + done, sum, count);
  }
}

/* Redirects the gradients that the operation overwrites to `to` instead of `written`, a part of the
   flat gradients. */
static void redirect(const gt_op *op, gt_pass *pass, gt_vec written, float *to) {
  if (!op->kind->ids && pass->dw) pass->dw = to + (pass->dw - written.data);
  if (pass->db) pass->db = to + (pass->db - written.data);
}

static void weight_gradient(gt_graph *graph, const gt_op *op, gt_pass pass) {
  const gt_vec written = gt_graph_written(graph, op);
  const bool add = !pass.first && written.n > 0;
  if (op->kind->no_gradient && !pass.first) return;
  if (op->apart) pass.dw = op->apart;
  if (add) redirect(op, &pass, written, graph->added);
  op->kind->backward_weight(op, &pass);
  if (add) gt_vec_axpy(written, 1, gt_vec_of(graph->added, written.n));
  progress(graph);
}

static void input_gradient(gt_graph *graph, const gt_op *op, gt_pass pass) {
  if (pass.a->kept) redirect(op, &pass, gt_graph_written(graph, op), pass.a->kept);
  op->kind->backward_input(op, &pass);
  progress(graph);
}

/* Takes the parameter gradient that backward_input has computed with the input gradient. */
static void kept_gradient(gt_graph *graph, const gt_op *op, const gt_pass *pass) {
  const gt_vec written = gt_graph_written(graph, op), kept = gt_vec_of(pass->a->kept, written.n);
  if (pass->first)
    gt_vec_copy(written, kept);
  else
    gt_vec_axpy(written, 1, kept);
}

/* No samples: sets the gradient to 0. */
static void no_gradient(gt_graph *graph, gt_op *op) {
  const gt_view *weight = &graph->params.views[op->weight];
  gt_vec_zero(gt_graph_written(graph, op));
  if (!op->kind->ids) return;
  if (op->apart)
    gt_vec_zero(gt_vec_of(op->apart, weight->count));
  else
    gt_vec_zero(gt_vec_range(graph->arrays.grads, weight->offset, weight->count));
  op->nonzero.n = 0;
}

typedef struct {
  bool input, weight, first;
} gradients;

static void backward_op(gt_graph *graph, gt_op *op, const gt_pass *pass, gradients wanted) {
  gt_activation *a = pass->a;
  if (wanted.input && a->beside) add_values(a->dy, a->beside, op->type, pass->n * op->out);
  if (wanted.weight && op->kind->backward_weight) weight_gradient(graph, op, *pass);
  if (wanted.input && a->dx) input_gradient(graph, op, *pass);
  if (wanted.weight && a->kept) kept_gradient(graph, op, pass);
}

static void backward_span(gt_graph *graph, size_t span, size_t slot, const gt_micro_batch *batch,
                          gradients wanted) {
  const gt_graph_span *s = span_of(graph, span, slot);
  check_size(graph, batch->n, batch->n > 0);
  for (size_t i = s->ops.end; i-- > s->ops.first;) {
    gt_op *op = &graph->ops[i];
    gt_pass pass = pass_of(graph, i, slot, batch->samples, batch->n, true);
    pass.first = wanted.first;
    if (batch->n > 0)
      backward_op(graph, op, &pass, wanted);
    else if (wanted.weight && wanted.first && op->weight != GT_NO_VIEW)
      no_gradient(graph, op);
  }
  const gt_span_ends *ends = &s->slots[slot];
  if (!wanted.input || !ends->dinput2) return;
  const gt_op *before = &graph->ops[s->ops.first - 1];
  add_values(ends->dinput, ends->dinput2, before->type, batch->n * before->out);
}

void gt_graph_backward_input(gt_graph *graph, size_t span, size_t slot,
                             const gt_micro_batch *batch) {
  if (graph->fused) gt_bug("backward passes are fused, so none can run in parts");
  backward_span(graph, span, slot, batch, (gradients){.input = true});
}

void gt_graph_backward_weight(gt_graph *graph, size_t span, size_t slot,
                              const gt_micro_batch *batch, bool first) {
  if (graph->fused) gt_bug("backward passes are fused, so none can run in parts");
  backward_span(graph, span, slot, batch, (gradients){.weight = true, .first = first});
}

void gt_graph_backward(gt_graph *graph, size_t span, size_t slot, const gt_micro_batch *batch,
                       bool first) {
  backward_span(graph, span, slot, batch,
                (gradients){.input = true, .weight = true, .first = first});
}

/* The flat gradients hold the borrower's part; a sum of two has the same bits in either order. */
void gt_graph_gradients_end(gt_graph *graph) {
  for (size_t i = 0; i < graph->nops; i++) {
    const gt_op *op = &graph->ops[i];
    if (!op->apart) continue;
    const gt_view *weight = &graph->params.views[op->weight];
    gt_vec_axpy(gt_vec_range(graph->arrays.grads, weight->offset, weight->count), 1,
                gt_vec_of(op->apart, weight->count));
  }
}
