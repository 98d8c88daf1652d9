/* What a run is asked for, beside its job.  Apart from setup.h, so that who only asks needs no
   MPI. */
#ifndef GEOTRAIN_SETUP_OPTIONS_H
#define GEOTRAIN_SETUP_OPTIONS_H

#include "geotrain/base.h"

typedef enum { GT_RESUME_NO, GT_RESUME_YES, GT_RESUME_AUTO } gt_resume;

typedef struct {
  const char *job_path;
  const char *const *sets; /* "a.b=value" */
  size_t nsets;
  const char *run_dir;  /* NULL: runs/<job name>-<date>-<time> */
  gt_resume resume;     /* AUTO: the newest whole round, or from the beginning where there is none */
  int64_t resume_round; /* the round to go on from; 0: the newest */
  bool virtual_clock;   /* times are what the job's compute and wan say, the same in every run */
} gt_setup_options;

#endif
