/* planner_pipeline: predicts a job's pipeline before submission: stages, its schedule and the other
   schedules, times, memory, traffic and cost.  Layer 10.  Local; no MPI.  Times are those of
   pipe_job.h in simulated time; docs/pipeline-plan.md lists their limits. */
#pragma once

#include <stdio.h>

#include "geotrain/job.h"

typedef struct gt_planner_pipeline gt_planner_pipeline;

/* Plans the pipeline of a job, which has one and is borrowed until gt_planner_pipeline_close.
   GT_ERR_JOB: compute does not describe a region, or the pipeline is invalid (gt_pipe_job_open).
   GT_ERR_DATA: the data set.  The caller closes *out; after an error it is NULL. */
gt_status gt_planner_pipeline_make(gt_planner_pipeline **out, const gt_job *job);
/* Frees the plan; accepts NULL. */
void gt_planner_pipeline_close(gt_planner_pipeline *p);

/* Prints tables, and the schedule in lines of at most `columns` (40 or more). */
void gt_planner_pipeline_print(FILE *to, const gt_planner_pipeline *p, size_t columns);
/* Writes the plan as one JSON object: seconds, bytes and USD, null for unknown values.
   GT_ERR_FAULT: jansson cannot build the object. */
gt_status gt_planner_pipeline_json(FILE *to, const gt_planner_pipeline *p);
/* Draws the schedule.  GT_ERR_JOB: the file cannot be written; the text has the system's reason. */
gt_status gt_planner_pipeline_svg(const gt_planner_pipeline *p, const char *path);
