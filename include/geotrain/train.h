/* train: one training run over MPI: setup, PS loop, worker loop, checkpoint and resume, the end.  Layer 7. */
#ifndef GEOTRAIN_TRAIN_H
#define GEOTRAIN_TRAIN_H

#include "geotrain/base.h"
#include "geotrain/job.h"
#include "geotrain/record.h"

typedef enum { GT_RESUME_NO, GT_RESUME_YES, GT_RESUME_AUTO } gt_resume;

typedef struct {
  const char *job_path;
  const char *const *sets; /* "a.b=value" */
  size_t nsets;
  const char *run_dir;  /* NULL: runs/<job name>-<date>-<time> */
  gt_resume resume;     /* AUTO: the newest whole round, or from the beginning where there is none */
  int64_t resume_round; /* the round to go on from; 0: the newest */
  gt_live_mode live;
  bool virtual_clock; /* times are what the job's compute and wan say, the same in every run */
} gt_train_options;

/* Starts MPI, trains, ends MPI.  Collective over the world; every rank returns the same status, and one of them has printed why.  A rank that
   is lost or waits too long ends the job from within (MPI_Abort with the status). */
gt_status gt_train(const gt_train_options *options);

typedef struct {
  const char *job_path;
  const char *const *sets;
  size_t nsets;
  const char *run_dir; /* NULL: what train would take; whether it takes a checkpoint is tried there */
  const char *out;     /* where the profile goes; NULL: profile.yaml in the current directory */
  bool sustained;      /* also messages as large as the model's, on all links at once, however long that takes */
  double link_limit_s; /* a link on which nothing passes for so long is blocked; 0: 10 */
} gt_probe_options;

/* Measures links, devices, MPI and the checkpoint directory for a job, prints what it found on rank 0 and writes a profile.  Collective over the world, starts and
   ends MPI; every rank returns the same status: GT_OK is GO, GT_ERR_NOGO is NO-GO (the reasons were printed), GT_ERR_JOB a job that no run could take.
   A blocked link ends the job from within (MPI_Abort with 7). */
gt_status gt_probe(const gt_probe_options *options);

#endif
