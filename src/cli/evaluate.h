/* Evaluates a model on a test set with several threads. */
#pragma once

#include "geotrain/data.h"
#include "geotrain/nn.h"

/* samples per batch, and texts, which need more memory for activations per thread */
#define GT_CLI_EVAL_BATCH   ((size_t)64)
#define GT_CLI_EVAL_TEXTS   ((size_t)4)
#define GT_CLI_THREADS_MOST 1024

typedef struct {
  /* Creates a graph for batches of `batch` samples for one thread.  Called by one thread at a time,
     the one that will use the graph. */
  gt_status (*make)(void *ctx, gt_graph **out);
  void *ctx;
  gt_loader *test;
  const gt_ranking *ranking; /* NULL: none, and labels are not needed */
  const int32_t *labels;
  gt_sample_shape shape;
  size_t batch, threads; /* 1 or more */
} gt_cli_evaluation;

typedef struct {
  gt_metrics sum;
  gt_ranks ranks;
} gt_cli_score;

/* Scores all samples of the loader.  The figures are bitwise equal for any number of threads.
   Returns an error of `make`. */
gt_status gt_cli_evaluate(gt_cli_score *out, const gt_cli_evaluation *e);

/* Returns the number of threads for `samples` samples: `asked` if it is above 0; otherwise one per
   core available to this process, at most OMP_NUM_THREADS and at most the number of batches. *why:
   the reason as text. */
size_t gt_cli_threads(size_t asked, size_t samples, const char **why);
