/* nn_span: the operations of a model.  Layer 3.  Everything is local. */
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
  bool ends;      /* a span can end behind it */
  bool samples;   /* it reads the samples themselves, so needs the data of the micro-batch */
  size_t borrows; /* the operation whose weights it uses (tied head), or SIZE_MAX */
} gt_operation;

size_t gt_graph_operations(const gt_graph *graph);
gt_operation gt_graph_operation(const gt_graph *graph, size_t i);

#endif
