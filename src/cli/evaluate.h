/* Computes batches of samples with several threads, and evaluates a model on a test set. */
#pragma once

#include "geotrain/data.h"
#include "geotrain/nn.h"

/* samples per batch, and texts, which need more memory for activations per thread */
#define GT_CLI_EVAL_BATCH   ((size_t)64)
#define GT_CLI_EVAL_TEXTS   ((size_t)4)
#define GT_CLI_THREADS_MOST 1024

typedef struct {
  /* Creates a graph for one thread.  Called by one thread at a time, the one that will use the
     graph. */
  gt_status (*make)(void *ctx, gt_graph **out);
  void *ctx;
  /* Computes batch `number`, with the thread's graph.  Threads take the batches in rising order. */
  void (*batch)(void *of, gt_graph *graph, size_t number);
  void *of;
  size_t n, threads; /* threads: 1 or more */
} gt_cli_batches;

/* Computes all batches.  Returns an error of `make`. */
gt_status gt_cli_compute(const gt_cli_batches *all);

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
  /* Receives the most probable class of every sample; NULL: not needed.  Not for texts. */
  int32_t *predicted;
} gt_cli_evaluation;

typedef struct {
  gt_metrics sum;
  gt_ranks ranks;
} gt_cli_score;

/* Scores all samples of the loader.  The figures are bitwise equal for any number of threads.
   Returns an error of `make`. */
gt_status gt_cli_evaluate(gt_cli_score *out, const gt_cli_evaluation *e);

/* Returns the number of threads: `asked` if it is above 0; otherwise one per core available to this
   process, at most OMP_NUM_THREADS and at most the number of batches.  *why: the reason as text. */
size_t gt_cli_threads(size_t asked, size_t batches, const char **why);
/* Does the same, logs the number, and keeps OpenBLAS and oneDNN from starting threads that would
   compete with them. */
size_t gt_cli_threads_choose(size_t asked, size_t batches);
/* Reads the number given to --threads.  GT_ERR_JOB: it is none, or out of range. */
gt_status gt_cli_threads_read(size_t *threads, const char *command, const char *text);
