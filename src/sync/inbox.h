/* inbox: received messages that wait for those of other regions, first in, first out per peer.  Private to sync. */
#ifndef GEOTRAIN_SYNC_INBOX_H
#define GEOTRAIN_SYNC_INBOX_H

#include "geotrain/sync.h"

typedef struct {
  int64_t value;
  gt_vec vec;
} gt_inbox_slot;

typedef struct {
  gt_inbox_slot *ring; /* of `capacity` slots */
  size_t head;
  int64_t count;
} gt_inbox_queue;

/* Slots get memory when they are first needed; what is popped goes to `spare` and is used again. */
typedef struct {
  size_t nregions, capacity, n; /* n floats a message */
  bool with_memory;
  gt_inbox_queue *queues;
  float **spare;
  size_t nspare;
} gt_inbox;

/* For messages of n floats, at most `capacity` from a peer at a time.  with_memory false: only values are kept (simulation). */
void gt_inbox_open(gt_inbox *inbox, size_t nregions, size_t capacity, size_t n, bool with_memory);
void gt_inbox_close(gt_inbox *inbox);
/* Copies a message to the end of the peer's queue.  More than `capacity` ends the process: the sender broke its bound. */
void gt_inbox_push(gt_inbox *inbox, size_t peer, uint64_t value, gt_vec payload);
/* The oldest message of the peer, valid until it is popped, or NULL. */
const gt_inbox_slot *gt_inbox_front(const gt_inbox *inbox, size_t peer);
void gt_inbox_pop(gt_inbox *inbox, size_t peer);
bool gt_inbox_empty(const gt_inbox *inbox);
/* Names: "sync/inbox/<peer>/count", "sync/inbox/<peer>/<k>/value" and ".../data". */
void gt_inbox_save(gt_inbox *inbox, gt_state *state);
gt_status gt_inbox_load(gt_inbox *inbox, const gt_state *state);

#endif
