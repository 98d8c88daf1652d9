/* rounds: numbered exchanges in which every active region takes part once: the barrier and the weighted mean.  Private to sync.
   Messages carry the number of their round, so who takes part is seen from what arrives: a peer whose next message is of a later round, or that is done and
   has none, does not.  A region that is done follows: it applies what the others' rounds give.  One whose training was made longer takes part again from the
   round after the newest that anyone had applied when all resumed. */
#ifndef GEOTRAIN_SYNC_ROUNDS_H
#define GEOTRAIN_SYNC_ROUNDS_H

#include "inbox.h"

typedef struct {
  const gt_sync_env *env;
  gt_inbox inbox;
  int64_t own, posted, applied; /* the last round that this region has a contribution to; has posted it; has applied */
  int64_t samples;              /* behind the contribution that is next to be posted */
  int64_t over;                 /* 1: this region makes no more steps */
  int64_t floor;                /* after a resume: the newest round that anyone had applied */
  size_t unheard;               /* peers that have not told theirs */
  bool rejoins;                 /* it was done before the resume and may make steps again */
  bool *done;                   /* nregions: the peer sends no more */
  size_t clear;                 /* of the first so many regions it is known whether they take part in the next round */
  gt_vec mean;
  float share; /* of the own contribution in it; 0: there was none */
  bool held;   /* what the host was told last */
} gt_rounds;

/* Contributions have n floats. */
void gt_rounds_open(gt_rounds *r, const gt_sync *s, size_t n);
void gt_rounds_close(gt_rounds *r);
/* The region has a contribution to its next round; it stays as it is until the round is applied. */
void gt_rounds_contribute(gt_rounds *r);
/* The region makes no more steps (after its last contribution). */
void gt_rounds_leave(gt_rounds *r);
/* on_peer of a strategy. */
void gt_rounds_peer(gt_rounds *r, size_t peer, gt_peer_event event, int64_t value);
/* The contribution is not posted, and every outbox has room. */
bool gt_rounds_can_post(const gt_rounds *r, const gt_sync *s);
/* Forms the next round's mean in r->mean if all that belongs to it is here; own contribution: a, then b.  Sums are in region order with weights
   renormalised over the active regions: every region gets the same bits.  Call it until it returns false. */
bool gt_rounds_next(gt_rounds *r, gt_vec a, gt_vec b);
/* The region waits: its contribution's round is not applied, be it that it is not posted or that others' are not here. */
bool gt_rounds_waiting(const gt_rounds *r);
/* Holds the workers while the region waits or has not caught up after a resume, else releases them.  The last thing in an event. */
void gt_rounds_hold(gt_rounds *r);
/* True when the own contribution is posted; when, beyond that, nothing here waits for anything. */
bool gt_rounds_drained(const gt_rounds *r);
bool gt_rounds_settled(const gt_rounds *r);
/* Names: "sync/rounds/...", "sync/inbox/...". */
void gt_rounds_save(gt_rounds *r, gt_state *state);
gt_status gt_rounds_load(gt_rounds *r, const gt_state *state);

#endif
