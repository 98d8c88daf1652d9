/* plan: the cost of a run of a job, from the job's prices (job.h) to the result that records and
   plans show (record.h).  Layer 5.  Local. */
#pragma once

#include "geotrain/job_prices.h"
#include "geotrain/link.h"
#include "geotrain/record.h"

/* Returns the requests of a region whose messages pass the model of a store: what it has written
   and read in this time, and its looks in vain. */
gt_store_result gt_plan_store_use(const gt_links *links, size_t region,
                                  const gt_link_objects *written, const gt_link_objects *read,
                                  const gt_link_function *function, double seconds);

/* Computes the cost of every rank of regions[].ranks for plan.start + wall_s, in steps of
   plan.billing, and of bytes[from * nregions + to] between regions (all traffic, strategy and
   other; NULL: none).  With a store, the egress of a region is what it writes to the store and what
   it reads from there.  regions: what each has asked of the store, nregions; NULL: not known.
   Items without a price cost nothing and are named in out->missing.  `prices` are those of `job`;
   both are borrowed for the call.  Never fails; the caller closes *out. */
void gt_plan_job_cost(gt_cost_result *out, const gt_job *job, const gt_job_prices *prices,
                      double wall_s, const double *bytes, const gt_region_result *regions);
/* Fills in the terms of the study for a run whose function is one of the regions, with their
   results; no-op for other jobs, or without places.  The equations have the mean times of steps,
   and the looks in vain of regions, which look all the time.  links: those of `job`. */
void gt_plan_job_terms(gt_cost_result *cost, const gt_job *job, const gt_links *links,
                       const gt_job_prices *prices, double wall_s, const gt_region_result *regions);
void gt_plan_job_cost_close(gt_cost_result *cost);
