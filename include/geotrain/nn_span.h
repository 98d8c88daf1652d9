/* nn_span: the operations of a model, and passes over a span of them for one micro-batch in a slot,
   as a pipeline runs them.  Layer 3.  Everything is local. */
#ifndef GEOTRAIN_NN_SPAN_H
#define GEOTRAIN_NN_SPAN_H

#include "geotrain/nn.h"

/* An operation of a model, for cutting it into spans; sizes are per sample.  Of an operation that
   computes both gradients at once, backward_input stands for both. */
typedef struct {
  const char *name;       /* "transformer.h.0.mlp.sum"; owned by the graph */
  size_t params, buffers; /* floats that it owns */
  size_t output_bytes;
  double forward, backward_input, backward_weight; /* multiply-adds; 0 where there is none */
  bool ends;                                       /* a span can end behind it */
  bool samples;   /* it reads the samples themselves, so needs the data of the micro-batch */
  size_t borrows; /* the operation whose weights it uses (tied head), or SIZE_MAX */
} gt_operation;

/* Returns the number of operations of the whole model, whatever the spans of the graph. */
size_t gt_graph_operations(const gt_graph *graph);
gt_operation gt_graph_operation(const gt_graph *graph, size_t i);
/* Returns the floats of the parameters, or else of the buffers, that these operations own. */
size_t gt_graph_span_floats(const gt_graph *graph, gt_span span, bool buffers);
/* Bytes as planned, also of a graph with sizes only. */
typedef struct {
  size_t slot;   /* of a slot: over all spans that run here, what lives from pass to pass */
  size_t shared; /* by all slots: what lives within a pass, scratch, ids of embeddings */
  size_t arrays; /* parameters, gradients, buffers */
} gt_memory_plan;
/* Returns the memory: gt_graph_bytes is slots x slot + shared, and what a library keeps.  Of a
   graph with slots. */
gt_memory_plan gt_graph_memory(const gt_graph *graph);
/* Returns the bytes of a slot of this span alone; 0: it does not run here. */
size_t gt_graph_span_bytes(const gt_graph *graph, size_t span);

/* Passes, of a graph with slots.  span: an index of gt_graph_spec.spans that runs here; slot: below
   gt_graph_spec.slots.  A slot of a span holds one micro-batch, from its input to its last pass:
   forward, then backward_input and backward_weight, or backward; nothing else than forward without
   `train`.  Passes of other slots and spans may lie between them.  The forward passes of a span run
   in the order of micro-batches, because they update running statistics, and so do those that add
   gradients, because sums depend on the order; backward_input may run in any order.  No pass
   allocates, once gt_graph_prepare has run for its number of samples. */

/* A micro-batch of n <= batch_max samples.  samples: for spans with operations that read them, and
   for the last span of a model that predicts the next id; labels: for the last span of another
   model.  Borrowed until the micro-batch's last pass. */
typedef struct {
  const void *samples;
  const int32_t *labels;
  size_t n;
} gt_micro_batch;

/* Returns where the caller puts the output of the operation before the span, n x output_bytes,
   before forward; NULL for the model's first operation. */
void *gt_graph_span_input(const gt_graph *graph, size_t span, size_t slot);
/* Returns the output of the span's last operation, after forward and until the backward pass
   begins; of the model's last one the scores, or after a forward pass with `train` possibly their
   gradient (gt_graph_scores). */
const void *gt_graph_span_output(const gt_graph *graph, size_t span, size_t slot);
/* Returns where the caller puts the gradient of the output, after forward and before the backward
   pass, which may overwrite it; NULL for the model's last operation, where the loss writes it. */
void *gt_graph_span_output_gradient(const gt_graph *graph, size_t span, size_t slot);
/* Returns the gradient of the input, after backward_input or backward and as long as the slot holds
   the micro-batch; NULL for the model's first operation. */
const void *gt_graph_span_input_gradient(const gt_graph *graph, size_t span, size_t slot);

/* Makes the forward pass; metrics is written by the span with the model's last operation, else
   zero. */
void gt_graph_forward(gt_graph *graph, size_t span, size_t slot, const gt_micro_batch *batch,
                      bool train, gt_metrics *metrics);
void gt_graph_backward_input(gt_graph *graph, size_t span, size_t slot,
                             const gt_micro_batch *batch);
/* Adds the gradients of the micro-batch's mean loss to arrays.grads; first: the span's first of the
   step, which replaces what is there.  In the order of micro-batches, after backward_input. */
void gt_graph_backward_weight(gt_graph *graph, size_t span, size_t slot,
                              const gt_micro_batch *batch, bool first);
/* Makes both as one pass, with the same bits. */
void gt_graph_backward(gt_graph *graph, size_t span, size_t slot, const gt_micro_batch *batch,
                       bool first);
/* Completes the gradients after the last pass of a step, in which every span that runs here has had
   one or more micro-batches: the two gradients of a weight that a later operation borrows, summed
   apart over the step, become one if both operations run here: grads = the owner's + the
   borrower's.  Where only one of them runs, grads holds its part, and the caller adds the two: the
   same bits. */
void gt_graph_gradients_end(gt_graph *graph);

#endif
