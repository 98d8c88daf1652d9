/* pipe_layout: a pipeline in a run: places of its stages, buffers of their workers.  Layer 5.
   Computes with numbers only.  All functions are local; the same input gives the same output. */
#pragma once

#include "geotrain/pipe.h"

/* The place of a stage: workers [first_worker, first_worker + workers) of a region, counted from 0
   within it. */
typedef struct {
  size_t region, first_worker, workers;
} gt_pipe_place;

/* A pipeline in a run.  A micro-batch of micro_samples samples is split evenly over the workers of
   a stage: worker r of d has samples [r n/d, (r+1) n/d). */
typedef struct {
  size_t nregions, stages, chunks, micro_batches, micro_samples;
  gt_pipe_place *places; /* of each stage */
  /* stages x chunks: bytes per sample of each span's output, and of its gradient */
  size_t *output_bytes;
  /* Bytes of a sample's labels, which follow each sample's output up to the last span; 0: labels
     stay with the data. */
  size_t label_bytes;
  /* of each stage: maximum number of micro-batches in flight of a worker, over its chunks */
  size_t *slots;
  gt_pipe_schedule *schedule;
  bool adapts; /* a run may use any schedule of its shape that fits into the slots */
} gt_pipe_layout;

/* Frees its arrays and the schedule; accepts NULL and repeated calls. */
void gt_pipe_layout_close(gt_pipe_layout *layout);

/* Checks that a layout can run: a sound schedule of its shape, places without overlap, samples that
   can be split, enough slots.  GT_ERR_JOB: one sentence describes the first fault. */
gt_status gt_pipe_layout_check(const gt_pipe_layout *layout);

/* Returns the bytes per sample of a span's output, or of the gradient that comes back for it. */
size_t gt_pipe_sample_bytes(const gt_pipe_layout *layout, size_t span, bool gradient);
/* Returns the stage of a worker in a region; the worker must have one. */
size_t gt_pipe_stage_at(const gt_pipe_layout *layout, size_t region, size_t worker);

/* ---- buffers of a worker --------------------------------------------------------------------- */

/* Returns the maximum number of micro-batches of a worker in flight, from the start of F to the end
   of W (or BW), over its chunks: gt_pipe_peak with activation and weight_share 1. */
size_t gt_pipe_slots(const gt_pipe_schedule *schedule, size_t stage);
/* Returns the maximum number of micro-batches of one span between the start of F and the end of B
   at a worker.  This number of buffers suffices for outputs of the span and for gradients that come
   back, at both ends (proof in docs/pipeline-region.md). */
size_t gt_pipe_outstanding(const gt_pipe_schedule *schedule, size_t span);
/* Returns the maximum of gt_pipe_outstanding over every schedule that the layout may get, for
   allocating buffers. */
size_t gt_pipe_outstanding_most(const gt_pipe_layout *layout, size_t span);

/* Buffers of a worker: [first, first + count) of their kind, each for the worker's share of one
   micro-batch, `bytes` large. */
typedef struct {
  size_t first, count, bytes;
} gt_pipe_buffers;

/* Returns the out buffers of a worker: for outputs of the chunk's span, or gradients to the span
   before it. count 0: nothing to send. */
gt_pipe_buffers gt_pipe_out_buffers(const gt_pipe_layout *layout, size_t stage, size_t chunk,
                                    bool gradient);
/* Returns the buffers in which input of the chunk's span from another region lands (for F, or the
   gradient for B). count 0: no input from another region. */
gt_pipe_buffers gt_pipe_landing_buffers(const gt_pipe_layout *layout, size_t stage, size_t chunk,
                                        bool gradient);
/* Returns all buffers of a worker; first is 0, bytes is their sum. */
gt_pipe_buffers gt_pipe_out_all(const gt_pipe_layout *layout, size_t stage);
gt_pipe_buffers gt_pipe_landing_all(const gt_pipe_layout *layout, size_t stage);
