/* sim_shape: sizes of a job's model and of its regions' data, for commands that do not train.
   Layer 8.  Local; reads data sets. */
#pragma once

#include <stdio.h>

#include "geotrain/job.h"
#include "geotrain/pipe_job.h"
#include "geotrain/ps_of_job.h"
#include "geotrain/sim.h"

typedef struct {
  size_t parameters, buffers; /* floats */
  gt_view *tensors;           /* ntensors, of the parameters; owned */
  size_t ntensors;
  gt_sample_shape sample;
  bool text;          /* as in gt_graph_spec */
  int64_t *samples;   /* nregions: to train with; owned */
  int64_t *held;      /* nregions: held back for validation; owned */
  gt_ps_tests *tests; /* likewise */
  /* True: no data set is available.  Samples are then regions[].samples, the model has its usual
     sample shape, and no region evaluates. */
  bool assumed;
} gt_sim_shape;

/* Reads the shape from the data set, or from regions[].samples if this machine cannot read one.  On
   success the caller closes *out; on error *out owns nothing.  GT_ERR_JOB, GT_ERR_DATA: the text
   names the missing item. */
gt_status gt_sim_shape_of(gt_sim_shape *out, const gt_job *job);
/* Opens the data of every region and prints a line for each to `to`.  Then checks that the samples
   of all regions have the same shape, that the model accepts it, that the samples can be divided
   among the regions, that the pipeline can be divided into stages, and that each worker fits into
   the memory of this machine. elsewhere[nregions]: true if the file of this region can be on another
   machine: it is not checked if it cannot be read, or if data.partition.by is file, so that a file
   of its path here can be another region's; *naway receives the number of such files.  If *naway >
   0, the division of samples is not checked; if no file can be read, only the name of the model is
   checked.
   GT_ERR_JOB, GT_ERR_DATA: the first fault. */
gt_status gt_sim_shape_check(const gt_job *job, const bool *elsewhere, FILE *to, size_t *naway);
void gt_sim_shape_close(gt_sim_shape *shape);
/* Reads the data sets of the job again, and opens the models of its workers, for gt_sim_spec.  The
   caller closes *out, which is NULL after an error.  threads: of the workers; results do not depend
   on it.  GT_ERR_JOB: the job has a pipeline, validation
   or initial values from a file, or its data are not here; GT_ERR_DATA: they cannot be read. */
gt_status gt_sim_arithmetic_open(gt_sim_arithmetic **out, const gt_job *job,
                                 const gt_sim_shape *shape, size_t threads);
void gt_sim_arithmetic_close(gt_sim_arithmetic *arithmetic); /* NULL is allowed */
/* Returns the spec of the job's model for gt_pipe_job_open and gt_pipe_job_search_open. */
gt_graph_spec gt_sim_shape_spec(const gt_sim_shape *shape, const gt_job *job);
/* Opens the pipelines of the job's replicas (gt_job_replicas) for a model of this shape.  The
   caller closes *out, which is NULL without a pipeline, and after an error.  Errors: as
   gt_pipe_job_open. */
gt_status gt_sim_shape_pipes(gt_pipe_job ***out, const gt_job *job, const gt_sim_shape *shape);
/* Takes NULL. */
void gt_sim_pipes_close(gt_pipe_job **pipes, const gt_job *job);
