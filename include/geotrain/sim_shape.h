/* sim: what a job trains, for programs that train nothing: the floats of its model and the samples
   of its regions.  Layer 8.  Reads data sets; local. */
#ifndef GEOTRAIN_SIM_SHAPE_H
#define GEOTRAIN_SIM_SHAPE_H

#include "geotrain/job.h"
#include "geotrain/nn.h"

typedef struct {
  size_t parameters, buffers; /* floats */
  gt_sample_shape sample;
  size_t test_samples;
  int64_t *samples; /* nregions; owned */
  bool assumed;     /* no data set is at hand: samples are what regions[].samples say, the model takes its usual ones, and there is no evaluation */
} gt_sim_shape;

/* Of the data set, where the job names one that is there; else of regions[].samples.  The caller
   closes *out; after an error it is closed.  GT_ERR_JOB, GT_ERR_DATA say what is missing. */
gt_status gt_sim_shape_of(gt_sim_shape *out, const gt_job *job);
/* Whether the job's model takes its data, and the regions can share it; where some file cannot be read here, only whether there is such a model.
   GT_ERR_JOB, GT_ERR_DATA say what does not fit. */
gt_status gt_sim_shape_check(const gt_job *job);
void gt_sim_shape_close(gt_sim_shape *shape);

#endif
