/* planner_search: finds the pipeline of a job with pipeline.stages auto, and compares it with data
   parallelism over the regions.  Layer 10.  Local; no MPI.  Times of pipelines are those of
   pipe_job.h, times of data parallelism those of sim.h. docs/pipeline-search.md, "The search for a
   pipeline". */
#pragma once

#include <stdio.h>

#include "geotrain/planner.h"
#include "geotrain/planner_pipeline.h"

typedef struct gt_planner_search gt_planner_search;

/* Searches for a pipeline; ignores options.margin.  Takes seconds.  The caller closes *out; after
   an error it is NULL.  GT_ERR_JOB: the job is invalid, compute does not describe a region, or no
   pipeline fits.  GT_ERR_DATA: the data set. */
gt_status gt_planner_search_make(gt_planner_search **out, const gt_planner_options *options);
/* Frees the search; accepts NULL. */
void gt_planner_search_close(gt_planner_search *search);

/* Returns the plan of the best pipeline, owned by the search. */
const gt_planner_pipeline *gt_planner_search_pipeline(const gt_planner_search *search);
/* Prints the job's section `pipeline`, the comparison with data parallelism, and the pipeline's
   plan. */
void gt_planner_search_print(FILE *to, const gt_planner_search *search, size_t columns);
/* Writes the object of gt_planner_pipeline_json with the result of the search as "search".
   GT_ERR_FAULT: jansson cannot build it. */
gt_status gt_planner_search_json(FILE *to, const gt_planner_search *search);
/* Writes the job with the pipeline.  Replaces `path` completely or not at all.  GT_ERR_JOB: it
   cannot be written; the text has the system's reason. */
gt_status gt_planner_search_write(const gt_planner_search *search, const char *path);
