/* job_faults: the faults of a job, in the order of time.  Layer 1.  Local. */
#pragma once

#include "geotrain/job.h"

typedef enum { GT_FAULT_LOSS, GT_FAULT_CUT } gt_fault_kind;
typedef struct {
  gt_fault_kind kind;
  gt_ns at, until; /* until: the region has started again, the link is whole; GT_NEVER: never */
  size_t a, b;     /* LOSS: a, or nregions for the first region that is not lost; CUT: a and b */
} gt_fault;

/* The faults of a job, with the random ones, which are the same for the same seed.  The job
   outlives it. */
typedef struct gt_faults gt_faults;
gt_faults *gt_faults_open(const gt_job *job);
/* Takes NULL. */
void gt_faults_close(gt_faults *faults);
/* Returns the time of the next fault; GT_NEVER: none. */
gt_ns gt_faults_due(const gt_faults *faults);
/* Returns the next fault.  Requires one. */
gt_fault gt_faults_take(gt_faults *faults);
