/* A model's score on a test set, by several threads. */
#ifndef GEOTRAIN_CLI_EVALUATE_H
#define GEOTRAIN_CLI_EVALUATE_H

#include "geotrain/data.h"
#include "geotrain/nn.h"

#define GT_CLI_EVAL_BATCH   ((size_t)64) /* samples at a time: activations of so many a thread */
#define GT_CLI_THREADS_MOST 1024

typedef struct {
  /* A graph for batches of GT_CLI_EVAL_BATCH that nobody else uses; called by one thread at a time, and from the thread that will use it. */
  gt_status (*make)(void *ctx, gt_graph **out);
  void *ctx;
  gt_loader *test;
  const int32_t *labels; /* where they are two: an AUC is wanted.  NULL: none is */
  gt_sample_shape shape;
  size_t threads; /* 1 or more */
} gt_cli_evaluation;

typedef struct {
  gt_metrics sum;
  double auc; /* NaN: none */
} gt_cli_score;

/* Scores all samples of the loader.  The figures are the same to the bit whatever the number of threads.  An error of `make` is returned. */
gt_status gt_cli_evaluate(gt_cli_score *out, const gt_cli_evaluation *e);

/* How many threads score `samples` samples: `asked`, where it is above 0; else one a core that this process may run on, OMP_NUM_THREADS at most, and no more than there
   are batches.  *why: in words. */
size_t gt_cli_threads(size_t asked, size_t samples, const char **why);

#endif
