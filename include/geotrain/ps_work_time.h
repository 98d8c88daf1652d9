/* ps_work_time: the time of work by the job's compute section.  Local. */
#pragma once

#include "geotrain/data.h"

/* Returns the cost by the job's compute section; order: of the region; c: gt_job_compute_of. */
gt_ns gt_cost_step(const gt_job *job, const gt_order *order, const gt_job_compute *c, size_t worker,
                   int64_t batch);
gt_ns gt_cost_eval(const gt_job *job, const gt_order *order, const gt_job_compute *c, size_t worker,
                   int64_t samples);
/* Returns how many times longer this worker takes because of compute.speed. */
double gt_cost_slowdown(const gt_job *job, size_t region, size_t worker);
/* Checks the costs.  GT_ERR_JOB names a region without times in compute; why: "under --clock
   virtual". */
gt_status gt_cost_check(const gt_job *job, const char *why);
