/* Finds the pipeline of a job, checks it as a run would, and writes the job with it. */
#include <math.h>
#include <string.h>

#include "pipeline_search.h"

/* ---- the pipeline ---------------------------------------------------------------------------- */

/* The job with this pipeline, and its plan; after an error neither. */
static gt_status try_found(gt_planner_search *s, const gt_pipe_job_search *problem,
                           const gt_pipe_found *found) {
  char *sets[GT_PIPE_SETS];
  const size_t n = gt_pipe_job_search_sets(problem, found, sets);
  gt_status status = gt_planner_search_load(&s->job, s, (const char *const *)sets, n);
  for (size_t i = 0; i < n; i++) gt_free(sets[i]);
  if (status == GT_OK) status = gt_planner_pipeline_make(&s->pipeline, s->job);
  if (status == GT_OK) return GT_OK;
  gt_job_close(s->job);
  s->job = NULL;
  return status;
}

/* The first of the found ones that fits exactly: the search estimates memory. */
static gt_status take_first(gt_planner_search *s, const gt_pipe_job_search *problem,
                            const gt_pipe_search_result *result) {
  gt_status status = GT_OK;
  s->looked = result->looked;
  s->fitting = result->fitting;
  s->simulated = result->simulated;
  s->by_fleet = problem->by_fleet;
  for (size_t i = 0; i < result->n; i++) {
    status = try_found(s, problem, &result->found[i]);
    if (status == GT_OK) return GT_OK;
  }
  return status;
}

/* The search knows no names. */
static gt_status named(const gt_job *job, gt_status status) {
  char why[GT_ERROR_TEXT_MAX - 80];
  snprintf(why, sizeof why, "%s", gt_error_text());
  return GT_FAIL(status, "%s: pipeline.stages: %s", job->name, why);
}

static gt_status search(gt_planner_search *s) {
  const gt_graph_spec model = gt_sim_shape_spec(&s->shape, s->asked);
  gt_pipe_job_search *problem = NULL;
  gt_pipe_search_result result = {0};
  GT_TRY(gt_pipe_job_search_open(&problem, s->asked, &model));
  gt_status status = gt_pipe_search_run(&result, &problem->problem);
  if (status != GT_OK) status = named(s->asked, status);
  if (status == GT_OK) status = take_first(s, problem, &result);
  if (status == GT_OK) gt_planner_find_fewer(s, &problem->problem, result.found[0].period_s);
  gt_pipe_search_close(&result);
  gt_pipe_job_search_close(problem);
  return status;
}

/* ---- open and close -------------------------------------------------------------------------- */

static gt_status make(gt_planner_search *s) {
  const gt_planner_options *o = &s->options;
  GT_TRY(gt_job_load_regions(&s->asked, o->job_path, o->sets, o->nsets, o->regions_csv));
  if (!s->asked->pipeline.search) gt_bug("job %s has no stages to be found", s->asked->name);
  GT_TRY(gt_sim_shape_of(&s->shape, s->asked));
  GT_TRY(search(s));
  return gt_planner_find_ways(s);
}

gt_status gt_planner_search_make(gt_planner_search **out, const gt_planner_options *options) {
  gt_planner_search *s = GT_NEW(gt_planner_search);
  *s = (gt_planner_search){.options = *options};
  const gt_status status = make(s);
  *out = status == GT_OK ? s : NULL;
  if (status != GT_OK) gt_planner_search_close(s);
  return status;
}

void gt_planner_search_close(gt_planner_search *search) {
  if (!search) return;
  gt_planner_pipeline_close(search->pipeline);
  gt_job_close(search->job);
  gt_sim_shape_close(&search->shape);
  gt_job_close(search->asked);
  gt_free(search->ways);
  gt_free(search->fewer);
  gt_free(search);
}

const gt_planner_pipeline *gt_planner_search_pipeline(const gt_planner_search *search) {
  return search->pipeline;
}

gt_status gt_planner_search_write(const gt_planner_search *search, const char *path) {
  char *text = gt_job_resolved(search->job);
  const gt_status status = gt_planner_put(path, text);
  gt_free(text);
  return status;
}
