/* probe: measures links, devices, MPI and the checkpoint directory of a job, on the ranks that
   would train.  Layer 9. */
#pragma once

#include "geotrain/base.h"

typedef struct {
  const char *job_path;
  const char *const *sets;
  size_t nsets;
  /* NULL: the directory that train would use.  The probe tests it by writing a checkpoint. */
  const char *run_dir;
  /* the region that this MPI job is; NULL: it is all regions.  Then only addresses, certificates
     and directions between the regions are measured, and the store of a job with one; no profile */
  const char *region;
  /* path of the profile; NULL: profile.yaml in the current directory.  With a region: path of the
     store's rates as a catalogue; NULL: they are only printed */
  const char *out;
  /* also measures messages of the model's size, on all links at once, however long that takes */
  bool sustained;
  bool fleet;          /* also measures the section fleet of the profile */
  double link_limit_s; /* a link that passes nothing for this long is blocked; 0: 10 */
} gt_probe_options;

/* Measures links, devices, MPI and the checkpoint directory for a job, prints the results on rank 0
   and writes a profile.  Collective over the world, starts and ends MPI.  Every rank returns the
   same status: GT_OK is GO, GT_ERR_NOGO is NO-GO (the reasons were printed), GT_ERR_JOB means that
   no run could use the job.  A blocked link aborts the job (MPI_Abort with 7). */
gt_status gt_probe(const gt_probe_options *options);
