/* train: one training run over MPI: PS loop, worker loop, checkpoint and resume, the end.  Layer 8. */
#ifndef GEOTRAIN_TRAIN_H
#define GEOTRAIN_TRAIN_H

#include "geotrain/base.h"
#include "geotrain/job.h"
#include "geotrain/record.h"
#include "geotrain/setup_options.h"

typedef struct {
  gt_setup_options setup;
  gt_live_mode live;
} gt_train_options;

/* Starts MPI, trains, ends MPI.  Collective over the world; every rank returns the same status, and one of them has printed why.  A rank that
   is lost or waits too long ends the job from within (MPI_Abort with the status). */
gt_status gt_train(const gt_train_options *options);

#endif
