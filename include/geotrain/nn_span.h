/* nn_span: the operations of a model, and passes over a span of them for one micro-batch in a slot,
   for pipelines.  Layer 3.  Everything is local. */
#pragma once

#include "geotrain/nn.h"

/* An operation of a model, for dividing the model into spans; sizes are per sample.  For an
   operation that computes both gradients at once, backward_input counts both. */
typedef struct {
  const char *name;       /* "transformer.h.0.mlp.sum"; owned by the graph */
  size_t params, buffers; /* floats owned by the operation */
  size_t output_bytes;
  double forward, backward_input, backward_weight; /* multiply-adds; 0: no such pass */
  bool ends;                                       /* a span can end after it */
  bool samples;   /* it reads the samples, so the micro-batch must have data */
  size_t borrows; /* the operation whose weights it uses (tied head), or SIZE_MAX */
} gt_operation;

/* Returns the number of operations of the whole model, independent of the graph's spans. */
size_t gt_graph_operations(const gt_graph *graph);
gt_operation gt_graph_operation(const gt_graph *graph, size_t i);
/* Returns the number of floats in the parameters (or `buffers`) of these operations. */
size_t gt_graph_span_floats(const gt_graph *graph, gt_span span, bool buffers);
/* Planned bytes; also known for a graph with sizes only. */
typedef struct {
  size_t slot;   /* per slot, over all spans with passes here: memory kept between passes */
  size_t shared; /* for all slots together: memory used within a pass, scratch, ids of
                    embeddings */
  size_t arrays; /* parameters, gradients, buffers */
} gt_memory_plan;
/* Returns the memory of a graph with slots: gt_graph_bytes is slots x slot + shared + what a
   library keeps. */
gt_memory_plan gt_graph_memory(const gt_graph *graph);
/* Returns the bytes of a slot of this span alone; 0: the span has no passes here. */
size_t gt_graph_span_bytes(const gt_graph *graph, size_t span);

/* Passes of a graph with slots.  span: an index of gt_graph_spec.spans with passes here; slot:
   below gt_graph_spec.slots.  A slot of a span holds one micro-batch, from its input to its last
   pass: forward, then backward_input and backward_weight, or backward; without `train`, forward
   only.  Passes of other slots and spans can be interleaved.  The forward passes of a span run in
   the order of micro-batches, because they update running statistics; so do the passes that add
   gradients, because sums depend on the order.  backward_input can run in any order.  No pass
   allocates after gt_graph_prepare for its number of samples. */

/* A micro-batch of n <= batch_max samples.  samples: for spans with operations that read them, and
   for the last span of a model that predicts the next id; labels: for the last span of other
   models.  Borrowed until the micro-batch's last pass. */
typedef struct {
  const void *samples;
  const int32_t *labels;
  size_t n;
} gt_micro_batch;

/* Returns the address for the span's input, n x output_bytes of the previous operation; the caller
   fills it before forward.  NULL for the model's first operation. */
void *gt_graph_span_input(const gt_graph *graph, size_t span, size_t slot);
/* Returns the output of the span's last operation, valid after forward until the backward pass
   begins.  For the model's last operation: the scores, or after a forward pass with `train`
   possibly their gradient (gt_graph_scores). */
const void *gt_graph_span_output(const gt_graph *graph, size_t span, size_t slot);
/* Returns the address for the gradient of the output; the caller fills it after forward and before
   the backward pass, which can overwrite it.  NULL for the model's last operation, where the loss
   writes it. */
void *gt_graph_span_output_gradient(const gt_graph *graph, size_t span, size_t slot);
/* Returns the gradient of the input, valid after backward_input or backward for as long as the slot
   holds the micro-batch; NULL for the model's first operation. */
const void *gt_graph_span_input_gradient(const gt_graph *graph, size_t span, size_t slot);

/* Runs the forward pass.  The span with the model's last operation writes metrics; others set them
   to zero. */
void gt_graph_forward(gt_graph *graph, size_t span, size_t slot, const gt_micro_batch *batch,
                      bool train, gt_metrics *metrics);
void gt_graph_backward_input(gt_graph *graph, size_t span, size_t slot,
                             const gt_micro_batch *batch);
/* Adds the gradients of the micro-batch's mean loss to arrays.grads; first: the span's first call
   in the step, which overwrites them.  In the order of micro-batches, after backward_input. */
void gt_graph_backward_weight(gt_graph *graph, size_t span, size_t slot,
                              const gt_micro_batch *batch, bool first);
/* Runs backward_input and backward_weight as one pass, with the same bits. */
void gt_graph_backward(gt_graph *graph, size_t span, size_t slot, const gt_micro_batch *batch,
                       bool first);
/* Completes the gradients after the last pass of a step, in which every span with passes here has
   had at least one micro-batch.  A weight that a later operation borrows has two gradients, which
   were summed separately over the step.  If both operations run here: grads = the owner's + the
   borrower's.  If only one of them runs here, grads holds its share and the caller adds the other:
   the same bits. */
void gt_graph_gradients_end(gt_graph *graph);
