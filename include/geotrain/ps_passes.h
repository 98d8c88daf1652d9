/* ps_passes: the passes of a region's workers in a pipeline, ordered by a PS with
   gt_ps_spec.passes: orders to train and to evaluate become steps of the region's state machine
   (pipe_region.h), and packets get their headers.  Numbers only, no MPI and no clock: a run and a
   simulation use the same code.  Local. */
#pragma once

#include "geotrain/ps.h"
#include "geotrain/ps_pass_times.h"
#include "geotrain/record.h"

typedef struct gt_ps_passes gt_ps_passes;

/* Returns the passes of a PS; NULL: it orders none. */
gt_ps_passes *gt_ps_passes_of(const gt_ps *ps);

/* Returns the phases of a worker up to now; or adds those of a checkpoint. */
gt_phase_times gt_ps_passes_phases(const gt_ps_passes *passes, size_t worker);
void gt_ps_passes_had(gt_ps_passes *passes, size_t worker, const gt_phase_times *earlier);
/* Returns the mean over the region's workers of their wait for links. */
double gt_ps_passes_transfer_s(const gt_ps_passes *passes);
/* Adds the means of the phases, and the changes of the schedule, to a region's result; the workers'
   wait for links counts as WAN wait.  No effect if the PS orders no passes. */
void gt_ps_passes_result(const gt_ps *ps, gt_region_result *result);
/* Returns the samples of a worker: of a micro-batch of the current size, and of a step. */
size_t gt_ps_passes_share(const gt_ps_passes *passes, size_t worker);
size_t gt_ps_passes_samples(const gt_ps_passes *passes, size_t worker);
/* Returns the shape of the micro-batches (gt_pipe_job_shape) of steps that begin now. */
size_t gt_ps_passes_shape(const gt_ps_passes *passes);
/* Writes the worker's current pass or wait (gt_pipe_region_text).  Returns text. */
char *gt_ps_passes_text(const gt_ps_passes *passes, size_t worker, char *text, size_t size);
/* Returns the time by the job of a pass of a worker (from 0, of its region), with micro-batches of
   its shape; 0: the job gives no time. */
gt_ns gt_ps_pass_time(const gt_pipe_job *job, size_t worker, size_t span, gt_pass_kind kind);
