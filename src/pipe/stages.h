/* What the modules of the search for stages share: costs, orders of groups, the programme. */
#ifndef GEOTRAIN_PIPE_STAGES_INTERNAL_H
#define GEOTRAIN_PIPE_STAGES_INTERNAL_H

#include "geotrain/pipe_stages.h"

/* ---- costs ----------------------------------------------------------------------------------- */

/* Sums of the operations' fields over the first i operations, noperations + 1 entries each. */
typedef struct {
  const gt_pipe_stages_problem *problem; /* borrowed */
  double *forward_s, *input_s, *weight_s, *parameter_bytes, *held_bytes;
} gt_pipe_costs;

void gt_pipe_costs_open(gt_pipe_costs *costs, const gt_pipe_stages_problem *problem);
void gt_pipe_costs_close(gt_pipe_costs *costs);

/* The stage of operations first..end-1 on `devices` devices of a group, as in the header but for
   memory and hops.  busy_s does not fall when `end` rises. */
gt_pipe_stage gt_pipe_costs_stage(const gt_pipe_costs *costs, size_t group, size_t first,
                                  size_t end, int64_t devices);
/* Memory that a stage takes without activations, and for each micro-batch in flight. */
typedef struct {
  double fixed_bytes, flight_bytes;
} gt_pipe_memory;
gt_pipe_memory gt_pipe_costs_memory(const gt_pipe_costs *costs, size_t first, size_t end,
                                    int64_t devices);
/* Micro-batches in flight with `behind` stages behind. */
double gt_pipe_costs_flight(const gt_pipe_stages_problem *problem, size_t behind);

/* Whether a group may have the first stage. */
bool gt_pipe_costs_may_start(const gt_pipe_stages_problem *problem, size_t group);

typedef struct {
  double send_s, back_s, busy_s;
} gt_pipe_crossing;
/* From a stage in group `from` to one in group `to` that begins at operation `cut`. */
gt_pipe_crossing gt_pipe_costs_hop(const gt_pipe_stages_problem *problem, size_t from, size_t to,
                                   size_t cut);

/* ---- orders of groups ------------------------------------------------------------------------ */

/* A graph without circles whose paths are the orders to try.  A node is a group together with what
   may follow it in the pipeline; nodes that may follow node v are next[first[v]..first[v + 1]),
   all below v. */
typedef struct {
  size_t n;
  size_t *group; /* n */
  bool *ends;    /* n: it may hold the last stage */
  size_t *first; /* n + 1 */
  size_t *next;
} gt_pipe_order;

/* Every order in which the groups of a region stay together: one node for each set of groups and
   each member of it that comes first in the pipeline.  At most GT_PIPE_ORDERS groups. */
void gt_pipe_order_all(gt_pipe_order *order, const gt_pipe_stages_problem *problem);
/* From `last` backwards always to the nearest group, all of a region before the next region; groups
   may be left out. */
void gt_pipe_order_near(gt_pipe_order *order, const gt_pipe_stages_problem *problem, size_t last);
void gt_pipe_order_close(gt_pipe_order *order);

/* ---- the programme --------------------------------------------------------------------------- */

/* The least slowest_s in these orders, if it is at most limit_s; otherwise INFINITY. */
double gt_pipe_stages_least(const gt_pipe_costs *costs, const gt_pipe_order *order, double limit_s);
/* Writes first, last, group and devices of the stages with the least pass_s whose slowest_s is at
   most limit_s, from the first stage on, to stages (noperations entries); returns their number, 0
   if there are none. */
size_t gt_pipe_stages_best(const gt_pipe_costs *costs, const gt_pipe_order *order, double limit_s,
                           gt_pipe_stage *stages);

#endif
