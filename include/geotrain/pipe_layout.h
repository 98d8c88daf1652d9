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
  size_t nregions, stages, chunks, micro_batches, micro_samples;
  gt_pipe_place *places; /* of each stage */
  /* stages x chunks: bytes per sample of each span's output, and of its gradient */
  size_t *output_bytes;
  /* Bytes of a sample's labels, which go with every output to the last span, each behind the output
     of its sample; 0: they stay where the data are. */
  size_t label_bytes;
  /* of each stage: micro-batches of a worker that may be in flight, over its chunks */
  size_t *slots;
  gt_pipe_schedule *schedule;
  bool adapts; /* in a run, any schedule of its shape that fits into the slots may replace it */
} gt_pipe_layout;

/* Frees its arrays and the schedule.  NULL is allowed; so is a second call. */
void gt_pipe_layout_close(gt_pipe_layout *layout);

/* Checks that it can be run: a sound schedule of its shape, a place for every stage that no other
   stage has, samples that can be split, slots enough?  GT_ERR_JOB: one sentence says what is wrong
   first. */
gt_status gt_pipe_layout_check(const gt_pipe_layout *layout);

/* Returns the bytes per sample of what a span sends ahead, or of what comes back for it. */
size_t gt_pipe_sample_bytes(const gt_pipe_layout *layout, size_t span, bool gradient);
/* Returns the stage that a worker of a region has; a worker without one is a bug of the caller. */
size_t gt_pipe_stage_at(const gt_pipe_layout *layout, size_t region, size_t worker);

/* ---- what a worker holds --------------------------------------------------------------------- */

/* Returns the most micro-batches that a worker of a stage has in flight, from the begin of F to the
   end of W (or BW), over its chunks: gt_pipe_peak where activation and weight_share are 1. */
size_t gt_pipe_slots(const gt_pipe_schedule *schedule, size_t stage);
/* Returns the most micro-batches of one span that a worker has between the begin of F and the end
   of B. This many buffers are enough for outputs of the span and for gradients that come back, at
   both ends (docs/pipeline-region.md says why). */
size_t gt_pipe_outstanding(const gt_pipe_schedule *schedule, size_t span);
/* Returns the same of every schedule that the layout may have: buffers that are made. */
size_t gt_pipe_outstanding_most(const gt_pipe_layout *layout, size_t span);

/* Buffers of a worker: [first, first + count) of those of its kind, each for the worker's share of
   one micro-batch, `bytes` large. */
typedef struct {
  size_t first, count, bytes;
} gt_pipe_buffers;

/* Returns what a worker sends: outputs of the chunk's span, or gradients to the span before it.
   count 0: there is nothing to send. */
gt_pipe_buffers gt_pipe_out_buffers(const gt_pipe_layout *layout, size_t stage, size_t chunk,
                                    bool gradient);
/* Returns where the input of the chunk's span lands (of F, or the gradient that B needs), if it
   comes from another region.  count 0: it does not. */
gt_pipe_buffers gt_pipe_landing_buffers(const gt_pipe_layout *layout, size_t stage, size_t chunk,
                                        bool gradient);
/* Returns all of a worker's; first is 0, bytes are those of all buffers together. */
gt_pipe_buffers gt_pipe_out_all(const gt_pipe_layout *layout, size_t stage);
gt_pipe_buffers gt_pipe_landing_all(const gt_pipe_layout *layout, size_t stage);

#endif
