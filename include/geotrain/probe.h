/* probe: links, devices, MPI and the checkpoint directory of a job, measured by the ranks that
   would train.  Layer 8. */
#ifndef GEOTRAIN_PROBE_H
#define GEOTRAIN_PROBE_H

#include "geotrain/base.h"

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
