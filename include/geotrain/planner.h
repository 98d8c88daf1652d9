/* planner: how many ranks each region shall have and with which strategy, how long that takes and
   what it costs, before anything is submitted.  Layer 9.  Local; no MPI.  Every figure comes from
   simulations of the job (sim.h), every price from the job's (job.h).  docs/planning.md says what
   a plan is and by what rule it is chosen. */
#ifndef GEOTRAIN_PLANNER_H
#define GEOTRAIN_PLANNER_H

#include <stdio.h>

#include "geotrain/base.h"

/* All strings are borrowed until gt_planner_close. margin: the low and the high figure are those of
   computing and links so much faster and slower, as a share, 0 or more and below 1. */
typedef struct {
  const char *job_path;
  const char *const *sets; /* "a.b=value" */
  size_t nsets;
  const char *regions_csv; /* as for gt_job_load_regions, or NULL */
  double margin;
} gt_planner_options;

typedef struct gt_planner gt_planner;

/* Finds the devices of each candidate (plan.strategies x plan.periods, else the job's own) and
   which candidate is proposed. Simulates all the while: seconds, for large jobs minutes. The caller
   closes *out; after an error it is NULL. GT_ERR_JOB: the job, or what it lacks for a plan (a
   device, what work costs, a price for a budget); or no candidate holds its deadline, budget or
   limits: the one that comes nearest is named, with what it misses. GT_ERR_DATA: its data set.
   GT_ERR_LIMIT: an outage without end. */
gt_status gt_planner_make(gt_planner **out, const gt_planner_options *options);
/* NULL is taken. */
void gt_planner_close(gt_planner *p);

/* The table that people read: a line a candidate, the choice by region and by link, notes. */
void gt_planner_print(FILE *to, const gt_planner *p);
/* The same and more as one JSON object: seconds, bytes and USD, null what is not known; keys are
   only ever added.  GT_ERR_FAULT: jansson makes no object of it. */
gt_status gt_planner_json(FILE *to, const gt_planner *p);
/* The job with the plan filled in, as a file that trains: strategy, period, ranks, devices,
   limits.wan_bytes, slurm.time, plan.predicted.  It takes the place of `path` whole or not at all.
   GT_ERR_JOB: it cannot be written; the system's reason is named. */
gt_status gt_planner_write(const gt_planner *p, const char *path);

#endif
