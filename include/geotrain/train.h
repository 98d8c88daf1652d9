/* train: one training run over MPI: PS loop, worker loop, checkpoint and resume, final model and
   summary.  Layer 9. */
#pragma once

#include "geotrain/base.h"
#include "geotrain/job.h"
#include "geotrain/record.h"
#include "geotrain/setup_options.h"

typedef struct {
  gt_setup_options setup;
  gt_live_mode live;
} gt_train_options;

/* Starts MPI, trains, ends MPI.  Collective over the world.  Every rank returns the same status,
   and one rank has printed the reason.  A rank that is lost or waits too long aborts the job
   (MPI_Abort with the status). */
gt_status gt_train(const gt_train_options *options);
