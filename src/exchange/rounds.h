/* rounds: membership of a round, for a region that receives the contribution of every other region
   directly: each region of a mesh, and the root of central.  Private to exchange. */
#pragma once

#include "inbox.h"
#include "internal.h"

typedef struct {
  gt_allreduce base;
  gt_inbox inbox; /* contributions that wait for those of other regions */
  /* nregions: only a part of the region's next contribution has arrived; NULL: a contribution is
     one message */
  const bool *partial;
  /* for regions 0 to clear - 1 it is known whether they take part in the next round */
  size_t clear;
} gt_rounds;

/* Discards the cached membership of the next round. */
void gt_rounds_again(gt_allreduce *r);
/* True if the contributions of all regions that take part in the next round have arrived, at least
   one. */
bool gt_rounds_complete(gt_rounds *t);
/* For a complete round: true if the region takes part; true if it takes part and abstains; returns
   the sum of the weights of the regions that take part and do not abstain. */
bool gt_rounds_takes(const gt_rounds *t, size_t region);
bool gt_rounds_abstains(const gt_rounds *t, size_t region);
double gt_rounds_weight(const gt_rounds *t);
