/* Private to the measurement of work: worker's side, PS's side, classification of steps. */
#ifndef GEOTRAIN_PROBE_COMPUTE_H
#define GEOTRAIN_PROBE_COMPUTE_H

#include "internal.h"

/* steps.c, local.  What a worker's step with this number (from 0) is measured for: nothing (caches
   are cold), steps in direct succession, or steps after a pause. */
typedef enum { GT_PROBE_COLD, GT_PROBE_WARM, GT_PROBE_PAUSED, GT_PROBE_PHASES } gt_probe_phase;
gt_probe_phase gt_probe_phase_of(int64_t step);
/* Whether the worker pauses before this step. */
bool gt_probe_pause_before(int64_t step);
/* Whether a worker has made enough steps, given their number and the seconds since the first. */
bool gt_probe_enough(int64_t steps, double passed_s);

/* worker.c: the steps of a worker.  Open is local: it loads a few batches of the region's own
   samples (errors as gt_setup_loader; *out must be closed in any case).  Run is collective over the
   region, and stores the measurements in p->own. */
typedef struct gt_probe_steps gt_probe_steps;
gt_status gt_probe_steps_open(gt_probe_steps **out, gt_probe_state *p);
void gt_probe_steps_run(gt_probe_steps *w);
void gt_probe_steps_close(gt_probe_steps *w);

/* What a PS works on; message: a sum of updates in the strategies' format. */
typedef struct {
  gt_optim *optim;
  gt_vec params, grads, message;
} gt_probe_material;

/* server.c: gives orders to the region's workers until they have made enough steps, and applies
   what they push; sets p->own.update_s.  Collective over the region, and over the PS ranks. */
void gt_probe_serve(gt_probe_state *p, gt_probe_material *m);

#endif
