/* What the tests of models share: refusals, hashes, names and shapes of tensors, tables of kernels. */
#ifndef GEOTRAIN_TESTS_NN_WORLD_H
#define GEOTRAIN_TESTS_NN_WORLD_H

#include "tests.h"
#include "graph.h"

/* Tables of kernels to compare; without oneDNN the last one is left out. */
extern const char *const w_tables[4];
size_t w_ntables(void);

/* Adam with a rate of 0.01 and its usual figures. */
extern const gt_optim_spec w_adam;

typedef struct {
  const char *name;
  size_t rows, columns; /* 0: one dimension */
} w_tensor;
/* The graph has these tensors, in this order, and nothing else. */
void w_check_tensors(const gt_graph *graph, const w_tensor *right, size_t n);

/* The hashes of any two differ.  Closes the graphs. */
void w_check_hashes(gt_graph *const *graphs, size_t n);

/* The model is refused with this sentence. */
void w_refused(const char *model, gt_sample_shape shape, gt_model_options options, gt_status status,
               const char *text);

#endif
