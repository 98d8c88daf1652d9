/* Shared by the files pipeline*.c: the predicted pipeline. */
#pragma once

#include <jansson.h>

#include "geotrain/job_prices.h"
#include "geotrain/pipe_job.h"
#include "geotrain/plan_job.h"
#include "geotrain/planner_pipeline.h"
#include "geotrain/sim_shape.h"

/* A kind of schedule for the job's pipeline. */
typedef struct {
  gt_pipe_kind kind;
  bool fits;     /* otherwise `why` has the reason, and the rest is 0 */
  char why[192]; /* without the job's name */
  gt_ns makespan, period;
  double bubble, period_bubble;
  size_t slots, memory; /* the maximum over stages; bytes of a worker */
} gt_planner_schedule;

/* One of the replicas of the pipeline. */
typedef struct {
  gt_pipe_job *pipe;     /* of gt_planner_pipeline.pipes */
  gt_pipe_result result; /* of its schedule, alone */
  gt_planner_schedule *schedules;
  int64_t steps;   /* of the run */
  double period_s; /* includes the exchange between replicas */
} gt_planner_replica;

struct gt_planner_pipeline {
  const gt_job *job;
  gt_sim_shape shape;
  gt_pipe_job **pipes; /* of all replicas */
  gt_planner_replica *replicas;
  size_t nreplicas;
  gt_routes routes; /* of the exchange between replicas */
  /* Those of the current replica, initially the first one. */
  gt_pipe_job *pipe;
  gt_pipe_result result; /* of the job's schedule */
  gt_planner_schedule *schedules;
  size_t nschedules;
  int64_t measured_from, measured_to; /* of replicas: steps with known time and bytes */
  gt_job_prices prices;
  /* Of the whole run. bytes [from, to]; step_bytes: those of one step. */
  int64_t steps;
  double wall_s;
  double *step_bytes, *bytes;
  gt_cost_result cost;
};

/* In this order: returns the period of the slowest replica, the samples per second of all replicas,
   and the bytes of one step of each on all links. */
double gt_planner_pipeline_period_s(const gt_planner_pipeline *p);
double gt_planner_pipeline_rate(const gt_planner_pipeline *p);
double gt_planner_pipeline_step_bytes(const gt_planner_pipeline *p);

/* the plan omits exchanges that are further apart */
#define GT_PLANNER_PERIOD_MAX 1000
/* Returns the plan with this replica as the current one.  It borrows everything and is not
   closed. */
gt_planner_pipeline gt_planner_pipeline_replica(const gt_planner_pipeline *p, size_t replica);

/* pipeline_print.c: the first returns the plan as an object, or NULL if it cannot be built.  The
   second prints an object as text and takes ownership.  GT_ERR_FAULT: root is NULL; name: of the
   job. */
json_t *gt_planner_pipeline_object(const gt_planner_pipeline *p);
gt_status gt_planner_pipeline_dump(FILE *to, json_t *root, const char *name);
