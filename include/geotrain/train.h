/* train: one training run over MPI: setup, PS loop, worker loop, checkpoint and resume, the end.  Floor 6. */
#ifndef GEOTRAIN_TRAIN_H
#define GEOTRAIN_TRAIN_H

#include "geotrain/base.h"
#include "geotrain/record.h"

typedef enum { GT_RESUME_NO, GT_RESUME_YES, GT_RESUME_AUTO } gt_resume;

typedef struct {
  const char *job_path;
  const char *const *sets; /* "a.b=value" */
  size_t nsets;
  const char *run_dir; /* NULL: runs/<job name>-<date>-<time> */
  gt_resume resume;    /* AUTO: the newest whole round, or from the beginning where there is none */
  gt_live_mode live;
  bool virtual_clock; /* times are what the job's compute and wan say, the same in every run (DESIGN 2.6) */
} gt_train_options;

/* Starts MPI, trains, ends MPI.  Collective over the world; every rank returns the same status, and one of them has printed why.  A rank that
   is lost or waits too long ends the job from within (MPI_Abort with the status). */
gt_status gt_train(const gt_train_options *options);

#endif
