/* Shared by the files pipeline_search*.c: the search's result. */
#pragma once

#include <jansson.h>

#include "geotrain/pipe_search.h"
#include "geotrain/planner_search.h"
#include "internal.h"
#include "pipeline.h"

/* Data parallelism over the regions by a strategy, with its prediction. */
typedef struct {
  const char *strategy; /* name */
  int64_t period;       /* 0: none */
  bool possible;        /* otherwise `why` has the reason, and the rest is 0 */
  char why[160];
  double samples_per_s, batch_bytes; /* on all links, of train.batch samples */
} gt_planner_alternative;

struct gt_planner_search {
  gt_planner_options options;
  gt_job *asked; /* as given */
  gt_sim_shape shape;
  gt_job *job; /* with the best pipeline */
  gt_planner_pipeline *pipeline;
  size_t looked, fitting, simulated; /* of gt_pipe_search_result */
  bool by_fleet;                     /* of gt_pipe_job_search */
  /* A faster pipeline with fewer workers: workers of each region, samples per second; 0: none. */
  size_t *fewer;
  double fewer_per_s;
  gt_planner_alternative *alternatives;
  size_t nalternatives;
  int batch; /* of data parallelism: samples of a worker */
};

/* Fills s->fewer and fewer_per_s. period_s: period of the pipeline with all workers. */
void gt_planner_find_fewer(gt_planner_search *s, const gt_pipe_search_problem *problem,
                           double period_s);
