/* plan: what a run of a job costs, from the job's prices (job.h) to the result that records and plans
   show (record.h).  Layer 5.  Local. */
#ifndef GEOTRAIN_PLAN_JOB_H
#define GEOTRAIN_PLAN_JOB_H

#include "geotrain/job.h"
#include "geotrain/record.h"

/* Every rank of regions[].ranks is paid for plan.start + wall_s, in steps of plan.billing, and so are
   bytes[from * nregions + to] between regions (all traffic, strategy and other; NULL: none).  What
   has no price costs nothing and is named in out->missing.  `prices` are of `job`; both are
   borrowed for the call.  Never fails; the caller closes *out. */
void gt_plan_job_cost(gt_cost_result *out, const gt_job *job, const gt_job_prices *prices, double wall_s, const double *bytes);
void gt_plan_job_cost_close(gt_cost_result *cost);

#endif
