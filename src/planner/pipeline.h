/* What the files pipeline*.c share: the predicted pipeline. */
#ifndef GEOTRAIN_PLANNER_PIPELINE_INTERNAL_H
#define GEOTRAIN_PLANNER_PIPELINE_INTERNAL_H

#include <jansson.h>

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

/* One of the replicas of the pipeline. */
typedef struct {
  gt_pipe_job *pipe;     /* of gt_planner_pipeline.pipes */
  gt_pipe_result result; /* of its schedule, alone */
  gt_planner_schedule *schedules;
  int64_t steps;   /* of the run */
  double period_s; /* with what the replicas exchange */
} gt_planner_replica;

struct gt_planner_pipeline {
  const gt_job *job;
  gt_sim_shape shape;
  gt_pipe_job **pipes; /* of all replicas */
  gt_planner_replica *replicas;
  size_t nreplicas;
  gt_routes routes; /* of the exchange between replicas */
  /* Of the replica that is looked at, the first one: those of `replicas`. */
  gt_pipe_job *pipe;
  gt_pipe_result result; /* of the job's schedule */
  gt_planner_schedule *schedules;
  size_t nschedules;
  int64_t measured_from, measured_to; /* of replicas: steps with known time and bytes */
  gt_job_prices prices;
  /* Of the whole run; bytes [from, to], with those of one step in step_bytes. */
  int64_t steps;
  double wall_s;
  double *step_bytes, *bytes;
  gt_cost_result cost;
};

/* From step to step of the slowest replica; samples a second of all, and bytes of a step of each
   on all links. */
double gt_planner_pipeline_period_s(const gt_planner_pipeline *p);
double gt_planner_pipeline_rate(const gt_planner_pipeline *p);
double gt_planner_pipeline_step_bytes(const gt_planner_pipeline *p);

/* exchanges that are further apart are not in the plan */
#define GT_PLANNER_PERIOD_MAX 1000
/* The plan as it is seen of one replica; it borrows everything and is not closed. */
gt_planner_pipeline gt_planner_pipeline_replica(const gt_planner_pipeline *p, size_t replica);

/* pipeline_print.c: the plan as an object, NULL if it cannot be built; and an object as text, which
   it takes.  GT_ERR_FAULT: root is NULL; name: of the job. */
json_t *gt_planner_pipeline_object(const gt_planner_pipeline *p);
gt_status gt_planner_pipeline_dump(FILE *to, json_t *root, const char *name);

#endif
