/* sim: what a job trains, for programs that train nothing themselves: the floats of its model and
   the samples of its regions.  Layer 8.  Reads data sets; local. */
#ifndef GEOTRAIN_SIM_SHAPE_H
#define GEOTRAIN_SIM_SHAPE_H

#include <stdio.h>

#include "geotrain/job.h"
#include "geotrain/pipe_job.h"
#include "geotrain/ps_of_job.h"

typedef struct {
  size_t parameters, buffers; /* floats */
  gt_sample_shape sample;
  bool text;          /* as in gt_graph_spec */
  int64_t *samples;   /* nregions; owned */
  gt_ps_tests *tests; /* likewise */
  /* No data set is available: samples are those of regions[].samples, the model has its usual
     sample shape, and there is no evaluation. */
  bool assumed;
} gt_sim_shape;

/* Reads the shape from the data set, if the job names one that can be read here; else from
   regions[].samples.  The caller closes *out; after an error it is closed already.  GT_ERR_JOB,
   GT_ERR_DATA say what is missing. */
gt_status gt_sim_shape_of(gt_sim_shape *out, const gt_job *job);
/* Opens the data of every region and prints a line for each to `to`.  Then checks that the samples
   of all regions are alike, that the model takes them, that the regions can share them, that the
   pipeline can be cut, and that each worker fits into the memory of this machine.
   elsewhere[nregions]: a file of this region that cannot be read here may be on other machines;
   *naway receives the number of such files.  With one of them, the division is not checked; if no
   file can be read, only the name of the model is.  GT_ERR_JOB, GT_ERR_DATA: the first fault. */
gt_status gt_sim_shape_check(const gt_job *job, const bool *elsewhere, FILE *to, size_t *naway);
void gt_sim_shape_close(gt_sim_shape *shape);
/* Returns what gt_pipe_job_open and gt_pipe_job_search_open need of the job's model. */
gt_graph_spec gt_sim_shape_spec(const gt_sim_shape *shape, const gt_job *job);
/* Opens the pipelines of the job's replicas (gt_job_replicas), for a model of this shape; *out is
   NULL if it has none, and after an error.  The caller closes them.  Errors as gt_pipe_job_open. */
gt_status gt_sim_shape_pipes(gt_pipe_job ***out, const gt_job *job, const gt_sim_shape *shape);
/* Takes NULL. */
void gt_sim_pipes_close(gt_pipe_job **pipes, const gt_job *job);

#endif
