/* pipe_layout: a pipeline as it is run: where its stages are, and what their workers hold.  Layer
   5.  Numbers only.  Everything is local; the same input gives the same output. */
#ifndef GEOTRAIN_PIPE_LAYOUT_H
#define GEOTRAIN_PIPE_LAYOUT_H

#include "geotrain/pipe.h"

/* Where a stage runs: workers [first_worker, first_worker + workers) of a region, counted from 0
   within it. */
typedef struct {
  size_t region, first_worker, workers;
} gt_pipe_place;

/* A pipeline as it is run.  A micro-batch of micro_samples samples is split evenly over the workers
   (replicas) of a stage: worker r of d has samples [r n/d, (r+1) n/d). */
typedef struct {
  size_t nregions, stages, chunks, micros, micro_samples;
  gt_pipe_place *places; /* of each stage */
  /* stages x chunks: bytes per sample of each span's output, and of its gradient */
  size_t *output_bytes;
  /* of each stage: micro-batches of a worker that may be in flight, over its chunks */
  size_t *slots;
  gt_pipe_schedule *schedule;
} gt_pipe_layout;

/* Frees its arrays and the schedule.  NULL is allowed; so is a second call. */
void gt_pipe_layout_close(gt_pipe_layout *layout);

#endif
