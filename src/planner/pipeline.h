/* What the files pipeline*.c share: the predicted pipeline. */
#ifndef GEOTRAIN_PLANNER_PIPELINE_INTERNAL_H
#define GEOTRAIN_PLANNER_PIPELINE_INTERNAL_H

#include "geotrain/pipe_job.h"
#include "geotrain/plan_job.h"
#include "geotrain/planner_pipeline.h"
#include "geotrain/sim_shape.h"

/* A kind of schedule for the job's pipeline. */
typedef struct {
  gt_pipe_kind kind;
  bool fits;     /* else `why` says why not, and the rest is 0 */
  char why[192]; /* without the job's name */
  gt_ns makespan, period;
  double bubble, period_bubble;
  size_t slots, memory; /* the most of any stage; bytes of a worker */
} gt_planner_schedule;

struct gt_planner_pipeline {
  const gt_job *job;
  gt_sim_shape shape;
  gt_pipe_job *pipe;
  gt_pipe_result result; /* of the job's schedule */
  gt_planner_schedule *schedules;
  size_t nschedules;
  gt_job_prices prices;
  /* Of the whole run; bytes [from, to], with those of one step in step_bytes. */
  int64_t steps;
  double wall_s;
  double *step_bytes, *bytes;
  gt_cost_result cost;
};

/* Samples a second, and bytes of a step on all links. */
double gt_planner_pipeline_rate(const gt_planner_pipeline *p);
double gt_planner_pipeline_step_bytes(const gt_planner_pipeline *p);

#endif
