/* The options of a run, apart from its job.  Separate from setup.h, so that code that needs only
   the options needs no MPI. */
#pragma once

#include "geotrain/base.h"

typedef enum { GT_RESUME_NO, GT_RESUME_YES, GT_RESUME_AUTO } gt_resume;

typedef struct {
  const char *job_path;
  const char *const *sets; /* "a.b=value" */
  size_t nsets;
  const char *run_dir; /* NULL: runs/<job name>-<date>-<time> */
  /* the region that this MPI job is; NULL: it is all regions */
  const char *region;
  gt_resume resume;     /* AUTO: the newest complete round, or from the beginning without one */
  int64_t resume_round; /* the round to resume from; 0: the newest */
  /* times are computed from the job's compute and wan sections and are the same in every run */
  bool virtual_clock;
  bool trains; /* false: links and machines are measured */
} gt_setup_options;
