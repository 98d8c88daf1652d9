/* plan: which devices each region takes, what that costs, and where to aggregate.  Floor 4.  Numbers only: no MPI, no files, no job (DESIGN 2.16).  Everything is local.
   Times in seconds, prices in USD an hour of one device or rank, costs in USD. */
#ifndef GEOTRAIN_PLAN_H
#define GEOTRAIN_PLAN_H

#include "geotrain/base.h"

/* ---- elastic scheduling --------------------------------------------------------------------------------------------

   Cloudless-Training sizes each region by its load power, LP = sum over its devices of count x power / samples held: the region with the least LP keeps all it has, every other takes
   the cheapest set that reaches it.  That is the rule for epochs, `local: async` and no barrier.  Here it is derived for every case from one objective:

     x_rt        devices of type t that region r takes, 0 <= x_rt <= count_rt, ranks_min <= sum_t x_rt <= ranks_max; one device is one worker rank
     step_r(x)   seconds between two steps of the region: `async` (a step is one worker's batch) batch / sum_t x_rt power_rt; `sync` (a step is one batch of every worker)
                 batch / min over x_rt > 0 of power_rt; and never less than wan_step_s, at which the WAN lets steps go
     steps_r(x)  until steps: steps; until samples or epochs: ceil(samples to go / batch), and with `sync` ceil(that / sum_t x_rt)
     T(x)        no barrier: max over r of steps_r(x) step_r(x), and the others wait (they are paid for until all are done);
                 barrier: exchanges are every `period` steps of all regions that still make steps: the sum over exchanges k of max over those regions of (time of their period's
                 steps + exchange_s)
     cost(x)     T(x) / 3600 x sum over r of (ps_price_r + sum_t x_rt price_rt)

   Least cost subject to T(x) <= deadline_s and cost(x) <= budget; without a deadline, to T(x) <= T(everything everywhere), so that a plan is never slower nor dearer than that. */

typedef struct {
  int64_t count;
  double power; /* samples/s of one device, > 0 */
  double price; /* USD an hour of one, 0 or more */
} gt_plan_device;

typedef struct {
  const gt_plan_device *devices;
  size_t ndevices;
  double samples;               /* held: what an epoch takes */
  int64_t ranks_min, ranks_max; /* workers; 0: 1, and no upper end */
  double ps_price;              /* USD an hour of its PS rank */
  double wan_step_s;            /* the WAN lets no two steps be closer, on average; 0: it does not matter */
} gt_plan_region;

typedef struct {
  const gt_plan_region *regions;
  size_t nregions;
  bool local_sync, barrier;
  int64_t batch;     /* samples of one worker's step */
  int64_t period;    /* barrier: steps between exchanges */
  double exchange_s; /* barrier: what an exchange adds */
  double epochs;     /* exactly one of these is > 0 */
  int64_t steps, samples;
  double deadline_s; /* 0: none */
  double budget;     /* USD; 0: none.  With one, and no deadline, the fastest plan within it is wanted */
} gt_plan_problem;

typedef struct {
  int64_t *counts;     /* of all regions' devices, one after another in their order; gt_plan_counts many; the caller's */
  double time_s, cost; /* T(x), cost(x) */
  double bound;        /* no feasible plan costs less; cost when exact */
  bool exact;          /* proven: cost is the least there is */
  size_t slowest;      /* region that all wait for */
  size_t wan_bound;    /* regions whose steps go at the WAN's pace and not at their devices' */
} gt_plan_answer;

/* Devices of all regions together: how long gt_plan_answer.counts is. */
size_t gt_plan_counts(const gt_plan_problem *problem);
/* T(x) and cost(x), slowest and wan_bound of given counts: of what the user has, for everything everywhere. */
void gt_plan_value(const gt_plan_problem *problem, gt_plan_answer *answer);
/* Finds the least cost.  Exact where counts are at most 64 a type and the search ends within its work limit; beyond that `bound` says how far from it the plan can be.
   GT_ERR_JOB: no plan is possible, in one sentence that says why: region (by number) without a device, ranks_min above what there is, deadline before the fastest plan's end (which it
   names), budget below the cheapest plan's cost (likewise). */
gt_status gt_plan_elastic(const gt_plan_problem *problem, gt_plan_answer *answer);

/* ---- cost ------------------------------------------------------------------------------------------------------------ */

#endif
