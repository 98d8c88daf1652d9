/* ps_pass_times: the time of a pipeline's workers by phase (docs/time-split.md).  The phases of a
   worker add up to the time from the start of training to its end, on the PS's clock.  Numbers
   only: a run under any clock and a simulation use the same code.  Local. */
#pragma once

#include "geotrain/base.h"
#include "geotrain/base_phases.h"
#include "geotrain/pipe.h"

typedef struct {
  gt_ns of[GT_NPHASES];
} gt_phase_times;

typedef struct gt_pass_times gt_pass_times;
gt_pass_times *gt_pass_times_create(size_t nworkers);
/* Takes NULL. */
void gt_pass_times_close(gt_pass_times *times);

/* Events of a worker, at `now`, which never decreases.  Times begin at the first one. */

/* Call when the worker gets an order to make a step, or to evaluate.  held: the time since its push
   in which other regions held it. */
void gt_pass_times_ordered(gt_pass_times *t, size_t worker, bool evaluates, gt_ns held, gt_ns now);
/* Call when the worker begins a pass.  sent: send time of the message whose arrival allowed the
   pass; GT_NEVER: the pass did not wait for a link. */
void gt_pass_times_begins(gt_pass_times *t, size_t worker, gt_pass_kind kind, gt_ns sent,
                          gt_ns now);
/* Call when the worker reports the end of the pass; compute: duration of the pass. */
void gt_pass_times_done(gt_pass_times *t, size_t worker, gt_ns compute, gt_ns now);
/* Call when all passes of the worker's step are done and the PS has received its gradient. */
void gt_pass_times_ends(gt_pass_times *t, size_t worker, gt_ns now);
void gt_pass_times_pushed(gt_pass_times *t, size_t worker, gt_ns now);

/* Call when training starts, and when training ends; later events do not count.  Only the first of
   repeated calls counts. */
void gt_pass_times_begin(gt_pass_times *t, gt_ns now);
void gt_pass_times_end(gt_pass_times *t, const gt_ns *held, gt_ns now);

/* Returns a worker's phases up to now.  held: as in gt_pass_times_ordered, for the wait up to
   now. */
gt_phase_times gt_pass_times_of(const gt_pass_times *t, size_t worker, gt_ns held, gt_ns now);
/* Adds the phases of earlier starts. */
void gt_pass_times_add(gt_pass_times *t, size_t worker, const gt_phase_times *earlier);
