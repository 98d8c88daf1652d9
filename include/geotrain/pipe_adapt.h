/* pipe_adapt: adapts a running pipeline to measured links: its stages switch to another order of
   passes, and, if allowed, to another number of micro-batches.  Layer 5.  Computes with numbers
   only; local.  One region of a pipeline decides; the other regions measure, and take the orders
   that it sends.  Places of stages and slots do not change.  If the number of micro-batches does
   not change, the bits of the parameters do not change.
   Thresholds are geotrain's choice.  A switch requires that for 3 steps the cost of a link differs
   by the factor 1.25 from the cost for which the current order was chosen, a gain of more than 5 %,
   and 20 steps since the last switch.  A run is never more than 1 % behind the initial plan.  An
   order that is better than the plan by 2 % for all recent costs of the links replaces the plan. */
#pragma once

#include "geotrain/pipe.h"

#define GT_PIPE_ADAPT_WEIGHT 0.3  /* weight of the newest step in the weighted cost of a link */
#define GT_PIPE_ADAPT_RATIO  1.25 /* ratio of weighted to planned cost, or its inverse */
#define GT_PIPE_ADAPT_STEPS  3    /* steps in succession beyond the ratio */
#define GT_PIPE_ADAPT_GAIN   1.05 /* period before / period after */
#define GT_PIPE_ADAPT_BETTER 1.02 /* the same for an order that is never worse than the plan */
#define GT_PIPE_ADAPT_REST   20   /* steps from one switch to the next */
#define GT_PIPE_ADAPT_PAST   40   /* recent steps whose costs are kept */
/* maximum share of steps by which a run may fall behind the initial plan; half of the documented
   share, because costs are measured */
#define GT_PIPE_ADAPT_BEHIND 0.005

/* One direction between two regions, measured in a step. 0: not measured. */
typedef struct {
  double rate_bps, latency_s;
} gt_pipe_cost;

typedef struct {
  const gt_pipe_problem *problem; /* as planned, with links; borrowed */
  /* The same pipeline with other, distinct numbers of micro-batches.  Copied; their pointers are
     borrowed. */
  const gt_pipe_problem *others;
  size_t nothers;
  const gt_pipe_schedule *schedule; /* the initial plan, sound for the problem; borrowed */
  /* The aim is always the period.  variants: for `problem`; `others` are searched with the same
     number of passes in total. */
  gt_pipe_search search;
  bool decides; /* false: another region decides */
} gt_pipe_adapt_spec;

typedef struct gt_pipe_adapt gt_pipe_adapt;

gt_pipe_adapt *gt_pipe_adapt_create(const gt_pipe_adapt_spec *spec);
/* Frees the adapter; accepts NULL. */
void gt_pipe_adapt_close(gt_pipe_adapt *adapt);

/* True if the two regions have neighbor stages, so that activations or gradients use the link. */
bool gt_pipe_adapt_uses(const gt_pipe_adapt *adapt, size_t from, size_t to);

/* Returns the last measured cost of a used link, or the planned one. */
gt_pipe_cost gt_pipe_adapt_cost(const gt_pipe_adapt *adapt, size_t from, size_t to);

/* Call after each step, made in the current order. measured: [from * nregions + to].  Makes a
   pending order the current one.  After that, the deciding region may choose another order, which
   is pending until the next call.  Returns true if the current order has changed. */
bool gt_pipe_adapt_step(gt_pipe_adapt *adapt, const gt_pipe_cost *measured);
/* Returns the number of passes of the pending order (0: none) and its passes as numbers, valid
   until the next call. */
size_t gt_pipe_adapt_told(gt_pipe_adapt *adapt, const int64_t **passes);
/* Checks an order.  GT_ERR_FAULT: it is not a sound order of this pipeline with an allowed number
   of micro-batches. */
gt_status gt_pipe_adapt_check(const gt_pipe_adapt *adapt, const int64_t *passes, size_t n);
/* Call with the order that the deciding region has sent; it becomes pending.  Errors as above. */
gt_status gt_pipe_adapt_take(gt_pipe_adapt *adapt, const int64_t *passes, size_t n);
/* Returns the maximum number of passes of a step. */
size_t gt_pipe_adapt_passes(const gt_pipe_adapt *adapt);
/* Returns the current order; owned, valid until it is replaced. */
const gt_pipe_schedule *gt_pipe_adapt_schedule(const gt_pipe_adapt *adapt);

/* The reason of the current order, in the deciding region: the link with the greatest change of
   cost, and the periods before and after by measured costs. back: the order is the initial plan, or
   the better order in its place, because the run fell behind it. */
typedef struct {
  size_t from, to;
  gt_pipe_cost planned, found; /* rate 0: unlimited */
  double before_s, after_s;
  bool back;
} gt_pipe_adapt_reason;
gt_pipe_adapt_reason gt_pipe_adapt_why(const gt_pipe_adapt *adapt);

/* Saves the state under the names "adapt/..."; gt_pipe_adapt_load loads it.  A state of another
   initial plan, or with numbers of micro-batches that are not allowed now, is ignored: *used is
   false, and the run starts with the initial plan.  GT_ERR_CKPT: an order is not sound. */
void gt_pipe_adapt_save(gt_pipe_adapt *adapt, gt_state *state);
gt_status gt_pipe_adapt_load(gt_pipe_adapt *adapt, const gt_state *state, bool *used);
