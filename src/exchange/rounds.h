/* rounds: who takes part in a round, as seen by a region to which every other region sends its
   contribution itself: each region of a mesh, and the central one.  Private to exchange. */
#ifndef GEOTRAIN_EXCHANGE_ROUNDS_H
#define GEOTRAIN_EXCHANGE_ROUNDS_H

#include "inbox.h"
#include "internal.h"

typedef struct {
  gt_allreduce base;
  gt_inbox inbox; /* contributions that wait for others' */
  /* nregions: of the region's next contribution only a part is here; NULL: each is one message */
  const bool *partial;
  /* of the first so many regions it is known whether they take part in the next round */
  size_t clear;
} gt_rounds;

/* What was found may be otherwise now. */
void gt_rounds_again(gt_allreduce *r);
/* The contribution of every region that takes part in the next round is here, and there is at least
   one. */
bool gt_rounds_complete(gt_rounds *t);
/* Of a round that is complete: whether the region takes part; the sum of the weights of those that
   do. */
bool gt_rounds_takes(const gt_rounds *t, size_t region);
double gt_rounds_weight(const gt_rounds *t);

#endif
