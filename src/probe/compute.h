/* Private to the measurement of work: a worker's side, a PS's side, which steps count as what. */
#ifndef GEOTRAIN_PROBE_COMPUTE_H
#define GEOTRAIN_PROBE_COMPUTE_H

#include "internal.h"

/* steps.c, local.  What a worker's step is measured for, by its number from 0 on: nothing (caches
   are cold), steps one after the other, or steps after a pause. */
typedef enum { GT_PROBE_COLD, GT_PROBE_WARM, GT_PROBE_PAUSED, GT_PROBE_PHASES } gt_probe_phase;
gt_probe_phase gt_probe_phase_of(int64_t step);
/* Whether this step waits for a while before it begins. */
bool gt_probe_pause_before(int64_t step);
/* Whether a worker that has made so many steps, since so many seconds, has made enough. */
bool gt_probe_enough(int64_t steps, double passed_s);

/* worker.c: the steps of a worker.  Open is local: it loads a few batches of the region's own
   samples (errors as gt_setup_loader; *out is to be closed all the same).  Run is collective over
   the region, and leaves in p->own what the steps say. */
typedef struct gt_probe_steps gt_probe_steps;
gt_status gt_probe_steps_open(gt_probe_steps **out, gt_probe_state *p);
void gt_probe_steps_run(gt_probe_steps *w);
void gt_probe_steps_close(gt_probe_steps *w);

/* What a PS works on; message: a sum of updates, as strategies keep it. */
typedef struct {
  gt_optim *optim;
  gt_vec params, grads, message;
} gt_probe_material;

/* server.c: gives the region's workers orders until they have made enough steps, and applies what
   they push; p->own.update_s.  Collective over the region, and over the PS ranks. */
void gt_probe_serve(gt_probe_state *p, gt_probe_material *m);

#endif
