/* The cost of a run of geotrain's own topology: machine hours of its ranks, and the traffic of its
   links. */
#include <math.h>

#include "geotrain/plan.h"

double gt_plan_billed(double seconds, const gt_plan_billing *billing) {
  double s = seconds > 0 ? fmax(seconds, billing->min_s) : 0;
  /* 60.00000001 s count as one minute */
  if (billing->step_s > 0) s = ceil(s / billing->step_s - 1e-9) * billing->step_s;
  return s;
}

static void add_machines(gt_plan_cost_sum *sum, gt_plan_cost_region *r) {
  double hours = gt_plan_billed(r->seconds, &r->billing) / 3600;
  r->worker_usd = (double)r->workers * hours * r->worker_price;
  r->ps_usd = hours * r->ps_price;
  r->egress_usd = 0;
  sum->worker_usd += r->worker_usd;
  sum->ps_usd += r->ps_usd;
  sum->machine_hours += ((double)r->workers + 1) * hours;
}

gt_plan_cost_sum gt_plan_topology_cost(gt_plan_cost_region *regions, size_t nregions,
                                       gt_plan_cost_link *links, size_t nlinks,
                                       const double *used_gb, size_t npools) {
  gt_plan_cost_sum sum = {0};
  gt_plan_flow *flows = GT_NEW_ARRAY(gt_plan_flow, nlinks + 1);
  for (size_t i = 0; i < nregions; i++) add_machines(&sum, &regions[i]);
  for (size_t i = 0; i < nlinks; i++)
    flows[i] = (gt_plan_flow){.tariff = &links[i].tariff, .gb = links[i].bytes / 1e9};
  gt_plan_egress(flows, nlinks, used_gb, npools);
  for (size_t i = 0; i < nlinks; i++) {
    links[i].usd = flows[i].usd;
    regions[links[i].from].egress_usd += flows[i].usd;
    sum.egress_usd += flows[i].usd;
  }
  for (size_t i = 0; i < nregions; i++)
    regions[i].usd = regions[i].worker_usd + regions[i].ps_usd + regions[i].egress_usd;
  sum.machine_usd = sum.worker_usd + sum.ps_usd;
  sum.usd = sum.machine_usd + sum.egress_usd;
  gt_free(flows);
  return sum;
}
