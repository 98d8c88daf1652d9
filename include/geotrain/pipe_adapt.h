/* pipe_adapt: follows the network while a pipeline runs: from what is measured of the links it
   decides when the stages go on in another order, or where it may also with another number of
   micro-batches, which is an order of more or fewer of them.  Layer 5.  Numbers only, local.  One
   region of a pipeline decides; the others measure, and take the orders that it tells.  Places of
   stages and slots stay as planned; if micro-batches do, the parameters of the run do too.

   Thresholds are geotrain's choice: a link that costs 1.25 times as much, or as little, as the plan
   was judged with, for 3 steps; a gain of more than 5 %; 20 steps from switch to switch; and never
   more than 1 % behind the plan of the start.  An order that is better than the plan over all links
   that there have been, by 2 %, takes its place. */
#ifndef GEOTRAIN_PIPE_ADAPT_H
#define GEOTRAIN_PIPE_ADAPT_H

#include "geotrain/pipe.h"

#define GT_PIPE_ADAPT_WEIGHT 0.3  /* of the newest step in the weighted cost of a link */
#define GT_PIPE_ADAPT_RATIO  1.25 /* of weighted to planned cost, or its inverse */
#define GT_PIPE_ADAPT_STEPS  3    /* beyond the ratio, one after the other */
#define GT_PIPE_ADAPT_GAIN   1.05 /* period before / period after */
#define GT_PIPE_ADAPT_BETTER 1.02 /* the same, of an order that is never worse than the plan */
#define GT_PIPE_ADAPT_REST   20   /* steps from one switch to the next */
#define GT_PIPE_ADAPT_PAST   40   /* steps that are looked back at */
/* of the steps that the plan of the start would have made in the same time; half of what is
   promised, because costs are measured */
#define GT_PIPE_ADAPT_BEHIND 0.005

/* What one direction between two regions was in a step.  rate_bps 0: not measured; latency_s 0:
   not measured. */
typedef struct {
  double rate_bps, latency_s;
} gt_pipe_cost;

typedef struct {
  const gt_pipe_problem *problem; /* as planned, with links; borrowed */
  /* The same pipeline with other numbers of micro-batches, each another one; copied, but what they
     point to is borrowed. */
  const gt_pipe_problem *others;
  size_t nothers;
  const gt_pipe_schedule *schedule; /* the plan of the start, sound for it; borrowed */
  /* Its aim is the period, whatever it says; variants are for the problem, others have as many
     passes in all. */
  gt_pipe_search search;
  bool decides; /* false: another region does */
} gt_pipe_adapt_spec;

typedef struct gt_pipe_adapt gt_pipe_adapt;

gt_pipe_adapt *gt_pipe_adapt_create(const gt_pipe_adapt_spec *spec);
/* Takes NULL. */
void gt_pipe_adapt_close(gt_pipe_adapt *adapt);

/* Stages of the two regions are neighbours, so that activations or gradients use the link. */
bool gt_pipe_adapt_uses(const gt_pipe_adapt *adapt, size_t from, size_t to);

/* Returns what was measured last, or planned, of a link that is used. */
gt_pipe_cost gt_pipe_adapt_cost(const gt_pipe_adapt *adapt, size_t from, size_t to);

/* Call when a step has been made, in the order in force; measured: [from * nregions + to].  The
   order that waits, if one does, is in force from the next step on.  After that the region that
   decides may choose another one, which waits for the next call.  Returns whether an order is in
   force now that was not before. */
bool gt_pipe_adapt_step(gt_pipe_adapt *adapt, const gt_pipe_cost *measured);
/* Returns the order that waits as numbers, one a pass, valid until the next call; returns how many,
   0: none waits. */
size_t gt_pipe_adapt_told(gt_pipe_adapt *adapt, const int64_t **passes);
/* Checks an order.  GT_ERR_FAULT: these are no sound order of this pipeline, in a number of
   micro-batches that it may have. */
gt_status gt_pipe_adapt_check(const gt_pipe_adapt *adapt, const int64_t *passes, size_t n);
/* Call when the region that decides has told this order: it waits.  Errors as above. */
gt_status gt_pipe_adapt_take(gt_pipe_adapt *adapt, const int64_t *passes, size_t n);
/* Returns the most passes of a step. */
size_t gt_pipe_adapt_passes(const gt_pipe_adapt *adapt);
/* Returns the order in force; owned, valid until another one is. */
const gt_pipe_schedule *gt_pipe_adapt_schedule(const gt_pipe_adapt *adapt);

/* Why the order in force was chosen, in the region that decides: the link whose cost had changed
   most, and the period before and after by what is measured.  back: it is the plan of the start, or
   the order that has taken its place, because another one fell behind it. */
typedef struct {
  size_t from, to;
  gt_pipe_cost planned, found; /* rate 0: unlimited */
  double before_s, after_s;
  bool back;
} gt_pipe_adapt_reason;
gt_pipe_adapt_reason gt_pipe_adapt_why(const gt_pipe_adapt *adapt);

/* Saves the state under the names "adapt/...".  What is saved with another plan of the start, or in
   numbers of micro-batches that there are no problems of now, is not used: *used is false, and the
   run continues as at its beginning.  GT_ERR_CKPT: an order is not sound. */
void gt_pipe_adapt_save(gt_pipe_adapt *adapt, gt_state *state);
gt_status gt_pipe_adapt_load(gt_pipe_adapt *adapt, const gt_state *state, bool *used);

#endif
