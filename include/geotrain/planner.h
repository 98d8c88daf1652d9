/* planner: decides before submission how many ranks each region gets and which strategy it uses,
   and predicts time and cost of the run.  Layer 10.  Local; no MPI.  Figures come from simulations
   of the job (sim.h), prices from the job (job.h). docs/planning.md defines a plan and the rule
   that chooses it. */
#pragma once

#include <stdio.h>

#include "geotrain/base.h"

/* All strings are borrowed until gt_planner_close. margin: share by which computing and links are
   faster for the low figure and slower for the high one, at least 0 and below 1. */
typedef struct {
  const char *job_path;
  const char *const *sets; /* "a.b=value" */
  size_t nsets;
  const char *regions_csv; /* as for gt_job_load_regions, or NULL */
  double margin;
} gt_planner_options;

typedef struct gt_planner gt_planner;

/* Finds the devices of each candidate (plan.strategies x plan.periods, otherwise the job's own) and
   chooses a candidate.  Simulations take seconds, for large jobs minutes.  The caller closes *out;
   after an error it is NULL.  GT_ERR_JOB: the job is invalid, or it lacks data that a plan requires
   (a device, the cost of work, a price for a budget), or no candidate meets the deadline, budget or
   limits; the text names the closest candidate and the limit that it exceeds.  GT_ERR_DATA: the
   data set.  GT_ERR_LIMIT: an outage without end. */
gt_status gt_planner_make(gt_planner **out, const gt_planner_options *options);
/* Frees the planner; accepts NULL. */
void gt_planner_close(gt_planner *p);

/* Prints the table: one line per candidate, the choice by region and by link, notes. */
void gt_planner_print(FILE *to, const gt_planner *p);
/* Writes the plan, with more details, as one JSON object: seconds, bytes and USD, null for unknown
   values.  Future versions only add keys.  GT_ERR_FAULT: jansson cannot build the object. */
gt_status gt_planner_json(FILE *to, const gt_planner *p);
/* Writes the job with the plan filled in, ready for training: strategy, period, ranks, devices,
   limits.wan_bytes, slurm.time, plan.predicted.  Replaces `path` completely or not at all.
   GT_ERR_JOB: it cannot be written; the text has the system's reason. */
gt_status gt_planner_write(const gt_planner *p, const char *path);
