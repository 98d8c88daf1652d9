/* Shared by the tests of models: refusals, hashes, names and shapes of tensors, tables of
   kernels. */
#pragma once

#include "tests.h"
#include "graph.h"

/* Tables of kernels to compare; without oneDNN the last one is omitted. */
extern const char *const w_tables[4];
size_t w_ntables(void);

/* Adam with a rate of 0.01 and its default parameters. */
extern const gt_optim_spec w_adam;

typedef struct {
  const char *name;
  size_t rows, columns; /* 0: one dimension */
} w_tensor;
/* Checks that the graph has exactly these tensors, in this order. */
void w_check_tensors(const gt_graph *graph, const w_tensor *right, size_t n);

/* Checks that any two hashes differ.  Closes the graphs. */
void w_check_hashes(gt_graph *const *graphs, size_t n);

/* Checks that the model is refused with this sentence. */
void w_refused(const char *model, gt_sample_shape shape, gt_model_options options, gt_status status,
               const char *text);
