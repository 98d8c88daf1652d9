/* train: one training run over MPI: PS loop, worker loop, checkpoint and resume, the end.  Layer 7. */
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

/* What a run of the job costs, planned or measured: every rank of regions[].ranks for plan.start + wall_s, billed in steps of plan.billing, and bytes[from * nregions + to] between regions
   (all traffic, strategy and other; NULL: none).  What has no price counts nothing and is named in missing.  Local; the caller closes *out. */
void gt_train_cost(gt_cost_result *out, const gt_job *job, const gt_job_prices *prices, double wall_s, const double *bytes);
void gt_train_cost_close(gt_cost_result *cost);

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
