/* rounds: numbered exchanges in which every active region takes part once: the barrier and the weighted mean.  Private to sync.
   A region takes part in the rounds 1 to its last; when it is done it follows: it applies what the others' rounds give. */
#ifndef GEOTRAIN_SYNC_ROUNDS_H
#define GEOTRAIN_SYNC_ROUNDS_H

#include "inbox.h"

typedef struct {
  const gt_sync_env *env;
  gt_inbox inbox;
  int64_t own, posted, applied; /* the last round that this region has a contribution to; has posted it; has applied */
  int64_t samples;              /* behind the contribution that is next to be posted */
  int64_t *last;                /* nregions: the last round each region takes part in; INT64_MAX while it makes steps */
  gt_vec mean;
  bool held; /* what the host was told last */
} gt_rounds;

/* Contributions have n floats. */
void gt_rounds_open(gt_rounds *r, const gt_sync *s, size_t n);
void gt_rounds_close(gt_rounds *r);
/* The region has a contribution to its next round; it stays as it is until the round is applied. */
void gt_rounds_contribute(gt_rounds *r);
/* The contribution is not posted, and every outbox has room. */
bool gt_rounds_can_post(const gt_rounds *r, const gt_sync *s);
/* Forms the next round's mean in r->mean if all that belongs to it is here; own contribution: a, then b.  Sums are in region order with weights
   renormalised over the active regions: every region gets the same bits.  Call it until it returns false. */
bool gt_rounds_next(gt_rounds *r, gt_vec a, gt_vec b);
/* The region waits: its contribution's round is not applied, be it that it is not posted or that others' are not here. */
bool gt_rounds_waiting(const gt_rounds *r);
/* Holds the workers while the region waits, else releases them.  The last thing in an event. */
void gt_rounds_hold(gt_rounds *r);
/* True when the own contribution is posted; when, beyond that, nothing here waits for anything. */
bool gt_rounds_drained(const gt_rounds *r);
bool gt_rounds_settled(const gt_rounds *r);
/* Names: "sync/rounds/...", "sync/inbox/...". */
void gt_rounds_save(gt_rounds *r, gt_state *state);
gt_status gt_rounds_load(gt_rounds *r, const gt_state *state);

#endif
