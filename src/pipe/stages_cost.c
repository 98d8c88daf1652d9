/* What a stage and a hop cost: time, memory, transfers. */
#include <math.h>

#include "stages.h"

void gt_pipe_costs_open(gt_pipe_costs *costs, const gt_pipe_stages_problem *problem) {
  size_t n = problem->noperations;
  *costs = (gt_pipe_costs){.problem = problem,
                           .forward_s = GT_NEW_ARRAY(double, n + 1),
                           .input_s = GT_NEW_ARRAY(double, n + 1),
                           .weight_s = GT_NEW_ARRAY(double, n + 1),
                           .parameter_bytes = GT_NEW_ARRAY(double, n + 1),
                           .held_bytes = GT_NEW_ARRAY(double, n + 1)};
  for (size_t i = 0; i < n; i++) {
    const gt_pipe_operation *o = &problem->operations[i];
    costs->forward_s[i + 1] = costs->forward_s[i] + o->forward_s;
    costs->input_s[i + 1] = costs->input_s[i] + o->input_s;
    costs->weight_s[i + 1] = costs->weight_s[i] + o->weight_s;
    costs->parameter_bytes[i + 1] = costs->parameter_bytes[i] + o->parameter_bytes;
    costs->held_bytes[i + 1] = costs->held_bytes[i] + o->activation_bytes + o->kept_bytes;
  }
}

void gt_pipe_costs_close(gt_pipe_costs *costs) {
  gt_free(costs->forward_s);
  gt_free(costs->input_s);
  gt_free(costs->weight_s);
  gt_free(costs->parameter_bytes);
  gt_free(costs->held_bytes);
  *costs = (gt_pipe_costs){0};
}

/* Samples of a micro-batch that one of `devices` devices computes. */
static double share_of(const gt_pipe_stages_problem *p, int64_t devices) {
  const int64_t samples = (p->micro_batch + devices - 1) / devices;
  return (double)samples;
}

gt_pipe_stage gt_pipe_costs_stage(const gt_pipe_costs *costs, size_t group, size_t first,
                                  size_t end, int64_t devices) {
  const gt_pipe_stages_problem *p = costs->problem;
  double unit = share_of(p, devices) / p->groups[group].power;
  gt_pipe_stage s = {.group = group, .first = first, .last = end - 1, .devices = devices};
  s.forward_s = unit * (costs->forward_s[end] - costs->forward_s[first]);
  s.input_s = unit * (costs->input_s[end] - costs->input_s[first]);
  s.weight_s = unit * (costs->weight_s[end] - costs->weight_s[first]);
  double parameter_bytes = costs->parameter_bytes[end] - costs->parameter_bytes[first];
  s.sync_s = 2 * gt_pipe_transfer_s(p->between[group * p->ngroups + group],
                                    (double)devices * parameter_bytes);
  s.busy_s = s.forward_s + s.input_s + s.weight_s + s.sync_s / (double)p->micro_batches;
  return s;
}

gt_pipe_memory gt_pipe_costs_memory(const gt_pipe_costs *costs, size_t first, size_t end,
                                    int64_t devices) {
  const gt_pipe_stages_problem *p = costs->problem;
  return (gt_pipe_memory){p->copies * (costs->parameter_bytes[end] - costs->parameter_bytes[first]),
                          share_of(p, devices) *
                              (costs->held_bytes[end] - costs->held_bytes[first])};
}

double gt_pipe_costs_flight(const gt_pipe_stages_problem *problem, size_t behind) {
  return fmin((double)problem->in_flight[behind], (double)problem->micro_batches);
}

bool gt_pipe_costs_may_start(const gt_pipe_stages_problem *problem, size_t group) {
  return !problem->may_start || problem->may_start[group];
}

gt_pipe_crossing gt_pipe_costs_hop(const gt_pipe_stages_problem *problem, size_t from, size_t to,
                                   size_t cut) {
  gt_pipe_link there = problem->between[from * problem->ngroups + to],
               back = problem->between[to * problem->ngroups + from];
  double bytes = (double)problem->micro_batch * problem->operations[cut].cut_bytes;
  return (gt_pipe_crossing){
      gt_pipe_transfer_s(there, bytes), gt_pipe_transfer_s(back, bytes),
      fmax(gt_pipe_occupied_s(there, bytes), gt_pipe_occupied_s(back, bytes))};
}
