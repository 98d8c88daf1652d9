/* ps_pass_times: where the time of a pipeline's workers goes (docs/time-split.md).  The phases of a
   worker add up to the time from the begin of training to its end, on the PS's clock.  Numbers
   only: a run under any clock and a simulation use the same code.  Local. */
#ifndef GEOTRAIN_PS_PASS_TIMES_H
#define GEOTRAIN_PS_PASS_TIMES_H

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

/* Events of a worker, at `now`, which never goes back.  Times begin at the first one. */

/* Call when it is ordered to make a step, or to evaluate.  held: since its push it was held for
   other regions so long. */
void gt_pass_times_ordered(gt_pass_times *t, size_t worker, bool evaluates, gt_ns held, gt_ns now);
/* Call when it begins a pass.  sent: when the message was sent whose arrival lets it begin;
   GT_NEVER: it has waited for nothing that was on a link. */
void gt_pass_times_begins(gt_pass_times *t, size_t worker, gt_pass_kind kind, gt_ns sent,
                          gt_ns now);
/* Call when it has reported the pass, which took so long. */
void gt_pass_times_done(gt_pass_times *t, size_t worker, gt_ns compute, gt_ns now);
/* Call when all its passes of the step are made; its gradient has come. */
void gt_pass_times_ends(gt_pass_times *t, size_t worker, gt_ns now);
void gt_pass_times_pushed(gt_pass_times *t, size_t worker, gt_ns now);

/* Call when training has begun, and when it is over: nothing more is counted then.  Of repeated
   calls the first counts. */
void gt_pass_times_begin(gt_pass_times *t, gt_ns now);
void gt_pass_times_end(gt_pass_times *t, const gt_ns *held, gt_ns now);

/* Returns a worker's phases up to now; held: as in gt_pass_times_ordered, if it were ordered
   now. */
gt_phase_times gt_pass_times_of(const gt_pass_times *t, size_t worker, gt_ns held, gt_ns now);
/* Adds what earlier starts have counted. */
void gt_pass_times_add(gt_pass_times *t, size_t worker, const gt_phase_times *earlier);

#endif
