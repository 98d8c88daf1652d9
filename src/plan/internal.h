/* Shared by the files of plan: prices of a job in the form of the equations. */
#pragma once

#include "geotrain/job_prices.h"
#include "geotrain/plan.h"

/* The tiers of the job's tariffs, one after another, for gt_plan_egress. */
typedef struct {
  gt_plan_tier *tiers;
  gt_plan_tariff *tariffs; /* nsites x nsites */
  double *pool_gb;         /* npools; 0 at first */
} tariff_set;

/* The caller closes it. */
tariff_set gt_plan_tariffs_of(const gt_job_prices *prices);
void gt_plan_tariffs_close(tariff_set *set);

/* The memory of a function, and USD per GB of memory and second. */
typedef struct {
  double gb, usd;
  bool assumed;
} gt_plan_price;
/* Returns the smallest size of memory in which the region's function holds two objects: a sum, and
   what is added to it.  usd 0: it has no price. */
gt_plan_price gt_plan_function_price(const gt_job_prices *prices, size_t region,
                                     double object_bytes);
