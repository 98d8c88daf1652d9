/* Private to train: a run whose regions have the stages of one pipeline. */
#pragma once

#include "geotrain/ps_passes.h"
#include "internal.h"

/* Flags of a gt_pass_msg. */
enum {
  GT_STAGE_BEGIN = 1,  /* the first pass of the worker's step */
  GT_STAGE_WEIGHT = 2, /* the first weight gradient of its span in the step */
  GT_STAGE_SCORE = 4   /* of an evaluation */
};

/* ---- what a stage's workers have (stage_server.c) -------------------------------------------- */

/* The largest of the areas of the region's workers, over all shapes of micro-batches: they use it
   one after the other. */
size_t gt_stage_area_max(const gt_pipe_job *pipe, size_t region);

/* ---- on a PS (stage_server.c) ---------------------------------------------------------------- */

/* A gt_server_stages passes on what the PS orders of passes to the region's workers, and moves
   activations between workers and gateway. */
gt_server_stages *gt_server_stages_open(gt_server *s);
/* Takes NULL. */
void gt_server_stages_close(gt_server_stages *g);
/* Fills in the functions of a gt_ps_host for passes (ctx: the server). */
void gt_server_stages_host(gt_ps_host *host);
/* A worker has pushed: it is idle. */
void gt_server_stages_pushed(gt_server_stages *g, size_t worker, const gt_push_msg *push);
/* Since when (wall time) the worker has been making a pass; false: it waits for an order. */
bool gt_server_stages_busy(const gt_server_stages *g, size_t worker, gt_ns *since);
/* The phases of the region's workers (ps_pass_times.h) in checkpoints. */
void gt_server_stages_save(gt_server_stages *g, gt_state *state);
gt_status gt_server_stages_load(gt_server_stages *g, const gt_state *state);

/* ---- what a PS tells of them (stage_server.c) ------------------------------------------------ */

/* Writes a line with the phases of every worker to the region's record; nothing if there is no
   pipeline.  As gt_record_line. */
gt_status gt_server_stages_record(const gt_server *s);

/* Logs what the ranks of all regions will need; writes a line with that and what
   they have used to the region's record (as gt_record_line).  Nothing if there is no pipeline. */
void gt_server_stages_say_memory(const gt_server *s);
gt_status gt_server_stages_record_memory(const gt_server *s);

/* ---- a resume with another cut (recut.c) ----------------------------------------------------- */

/* Where the floats of a region's part lie in the whole model: place and count of each of its
   ranges, (n, 2).  The caller frees it. */
int64_t *gt_recut_places(const gt_part_ranges *ranges);
/* Adds them to a checkpoint, which borrows them. */
void gt_recut_save(const gt_region_part *part, int64_t *params, int64_t *buffers, gt_state *state);
/* Cuts the loaded state of a round again, for the stages of this run: parameters, buffers and the
   optimizer's arrays; state owns its data.  Reads parts that the region's own file lacks from the
   other regions' files of the round in the run directory.  same_stages: pipeline.stages are those
   of the checkpoint's job.  Local.  GT_ERR_CKPT names the file that is missing or does not fit. */
gt_status gt_recut(gt_server *s, const gt_ckpt_info *info, gt_state *state, bool same_stages);

/* ---- on a worker (stage_worker.c) ------------------------------------------------------------ */

gt_status gt_stage_worker_run(gt_run *run, const gt_clock_ops *clock);
