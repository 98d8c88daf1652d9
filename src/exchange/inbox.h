/* inbox: received messages that wait for those of other regions, first in, first out per peer.
   Private to exchange. */
#ifndef GEOTRAIN_EXCHANGE_INBOX_H
#define GEOTRAIN_EXCHANGE_INBOX_H

#include "geotrain/tensor.h"

typedef struct {
  int64_t value;
  /* of the regions that it is a sum of, 0: it is one region's own; central: samples behind it */
  double weight;
  int64_t floats;
  gt_vec vec; /* of so many floats */
} gt_inbox_slot;

typedef struct {
  gt_inbox_slot *ring;
  size_t capacity, head;
  int64_t count;
} gt_inbox_queue;

/* Slots get memory when they are first needed; what is popped goes to `spare` and is used again.
   How many messages a peer can be ahead: while all make steps 2; once this region is done, inflight
   + 1 of its slowest peer's.  One case has no bound but time: a peer learns that another is done
   before this region does, and continues without it.  So queues grow. */
typedef struct {
  size_t nregions, n; /* n floats a message, at most */
  int64_t total;      /* messages in all queues */
  bool with_memory;
  bool pieces; /* messages differ in length and weight, which are saved, too */
  gt_inbox_queue *queues;
  float **spare;
  size_t nspare, spare_capacity;
} gt_inbox;

/* For messages of n floats, with places (not yet memory) for `expected` from a peer.  with_memory
   false: only values are kept (simulation); pieces: messages may be shorter, and have weights. */
void gt_inbox_open(gt_inbox *inbox, size_t nregions, size_t expected, size_t n, bool with_memory,
                   bool pieces);
void gt_inbox_close(gt_inbox *inbox);
/* Copies a message of n floats at most to the end of the peer's queue. */
void gt_inbox_push(gt_inbox *inbox, size_t peer, int64_t value, double weight, gt_vec payload);
/* The oldest message of the peer, valid until it is popped, or NULL. */
const gt_inbox_slot *gt_inbox_front(const gt_inbox *inbox, size_t peer);
void gt_inbox_pop(gt_inbox *inbox, size_t peer);
int64_t gt_inbox_count(const gt_inbox *inbox, size_t peer);
bool gt_inbox_empty(const gt_inbox *inbox);
/* Names: "<owner>inbox/<peer>/count", "<owner>inbox/<peer>/<k>/value" ".../data", and
   ".../weight" where it has one. */
gt_status gt_inbox_state(gt_inbox *inbox, const char *owner, gt_state_direction direction);

#endif
