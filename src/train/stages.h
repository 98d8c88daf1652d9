/* Private to train: a run whose regions have the stages of one pipeline. */
#ifndef GEOTRAIN_TRAIN_STAGES_H
#define GEOTRAIN_TRAIN_STAGES_H

#include "geotrain/ps_passes.h"
#include "internal.h"

/* Flags of a gt_pass_msg. */
enum {
  GT_STAGE_BEGIN = 1,  /* the first pass of the worker's step */
  GT_STAGE_WEIGHT = 2, /* the first weight gradient of its span in the step */
  GT_STAGE_SCORE = 4   /* of an evaluation */
};

/* ---- what a stage's workers have (stages.c) -------------------------------------------------- */

/* Where the buffers of a stage's workers are in their activation areas: bytes from the begin. */
typedef struct {
  size_t *out, *landing; /* of each buffer */
  size_t bytes;          /* of all */
} gt_stage_area;

gt_stage_area gt_stage_area_of(const gt_pipe_layout *layout, size_t stage);
void gt_stage_area_close(gt_stage_area *area);
/* The largest of the areas of the region's workers. */
size_t gt_stage_area_max(const gt_pipe_layout *layout, size_t region);

/* Bytes of the largest message between regions: a region's part of the model, or what a stage sends
   of a micro-batch. */
size_t gt_stage_message_max(const gt_run_pipe *pipe, size_t nregions);

/* ---- on a PS (stage_server.c) ---------------------------------------------------------------- */

/* A gt_server_stages orders the passes of the region's workers, and moves activations between
   workers and gateway. */
gt_server_stages *gt_server_stages_open(gt_server *s);
/* Takes NULL. */
void gt_server_stages_close(gt_server_stages *g);
/* The PS orders a worker to make a step or to evaluate: its passes begin. */
void gt_server_stages_order(gt_server_stages *g, size_t worker, const gt_ps_order *order);
/* A worker has made its pass. */
void gt_server_stages_done(gt_server_stages *g, size_t worker, const gt_push_msg *push);
/* Adds the time of the step's passes to a push that ends a step. */
void gt_server_stages_timed(const gt_server_stages *g, size_t worker, gt_push_msg *push);
/* An activation or a gradient of one from another region; payload borrowed for the call. */
void gt_server_stages_message(gt_server_stages *g, const gt_frame_header *head,
                              const void *payload);
void gt_server_stages_departed(gt_server_stages *g, uint64_t cookie);
/* Since when (wall time) the worker has been making a pass; false: it waits for an order. */
bool gt_server_stages_busy(const gt_server_stages *g, size_t worker, gt_ns *since);
/* What the worker does or waits for (gt_pipe_region_text); returns text. */
char *gt_server_stages_text(const gt_server_stages *g, size_t worker, char *text, size_t size);
/* The run ends: no more passes are ordered. */
void gt_server_stages_end(gt_server_stages *g);

/* ---- on a worker (stage_worker.c) ------------------------------------------------------------ */

gt_status gt_stage_worker_run(gt_run *run, const gt_clock_ops *clock);

#endif
