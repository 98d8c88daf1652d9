/* Compares a set with the best one so far, and computes the cost of its machines. */
#include <math.h>

#include "bill.h"

bool gt_planner_bill_by_time(const gt_planner_bill *b) {
  return b->p->job->plan.budget > 0 && b->p->job->plan.deadline_s <= 0;
}

bool gt_planner_bill_better(const gt_planner_verdict *a, const gt_planner_verdict *b) {
  if (a->fits != b->fits) return a->fits;
  if (!a->fits) return a->over < b->over * (1 - GT_PLANNER_BILL_EQUAL);
  if (fabs(a->first - b->first) > GT_PLANNER_BILL_EQUAL * b->first) return a->first < b->first;
  return a->second < b->second * (1 - GT_PLANNER_BILL_EQUAL);
}

gt_planner_verdict gt_planner_bill_best(const gt_planner_bill *b) {
  return b->nkept > 0
             ? b->verdicts[0]
             : (gt_planner_verdict){.over = INFINITY, .first = INFINITY, .second = INFINITY};
}

bool gt_planner_bill_may_be_better(const gt_planner_bill *b, double least) {
  gt_planner_verdict best = gt_planner_bill_best(b);
  return !best.fits || least <= best.first * (1 + GT_PLANNER_BILL_EQUAL);
}

double gt_planner_bill_machines(const gt_planner_bill *b, const int64_t *counts, double wall_s) {
  double cost = 0;
  for (size_t r = 0; r < b->problem->nregions; r++) {
    const gt_plan_region *region = &b->problem->regions[r];
    gt_plan_billing billing = {b->p->job->plan.billing_s, b->p->prices.regions[r].min_s};
    double rate = region->ps_price;
    for (size_t d = 0; d < region->ndevices; d++)
      rate += (double)counts[b->p->pools[r].first + d] * region->devices[d].price;
    cost += rate * gt_plan_billed(b->p->job->plan.start_s + wall_s, &billing) / 3600;
  }
  return cost;
}
