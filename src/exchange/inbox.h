/* inbox: received messages that wait for those of other regions, first in, first out per peer.
   Private to exchange. */
#pragma once

#include "geotrain/tensor.h"

typedef struct {
  int64_t value;
  /* weight of the regions whose sum the message is; 0: it is the contribution of one region;
     central: samples behind it */
  double weight;
  int64_t floats;
  gt_vec vec; /* `floats` floats */
} gt_inbox_slot;

typedef struct {
  gt_inbox_slot *ring;
  size_t capacity, head;
  int64_t count;
} gt_inbox_queue;

/* Slots get memory when they are first used; memory of popped messages goes to `spare` for reuse.
   A peer can be 2 messages ahead while all regions make steps, and inflight + 1 messages ahead of
   the slowest peer once this region is done.  In one case there is no bound: a peer learns before
   this region that a third region is done, and continues without it.  So queues grow. */
typedef struct {
  size_t nregions, n; /* n: maximum floats of a message */
  int64_t total;      /* messages in all queues */
  bool with_memory;
  bool pieces; /* messages differ in length and weight, which are also saved */
  gt_inbox_queue *queues;
  float **spare;
  size_t nspare, spare_capacity;
} gt_inbox;

/* Opens an inbox for messages of n floats, with slots (without memory yet) for `expected` messages
   of each peer. with_memory false: messages have no floats (simulation).  pieces: messages can be
   shorter than n, and have weights. */
void gt_inbox_open(gt_inbox *inbox, size_t nregions, size_t expected, size_t n, bool with_memory,
                   bool pieces);
void gt_inbox_close(gt_inbox *inbox);
/* Copies a message of at most n floats to the end of the peer's queue. */
void gt_inbox_push(gt_inbox *inbox, size_t peer, int64_t value, double weight, gt_vec payload);
/* Returns the oldest message of the peer, valid until it is popped, or NULL. */
const gt_inbox_slot *gt_inbox_front(const gt_inbox *inbox, size_t peer);
/* Returns the newest message of the peer, or NULL. */
const gt_inbox_slot *gt_inbox_back(const gt_inbox *inbox, size_t peer);
void gt_inbox_pop(gt_inbox *inbox, size_t peer);
int64_t gt_inbox_count(const gt_inbox *inbox, size_t peer);
bool gt_inbox_empty(const gt_inbox *inbox);
/* Saves or loads the messages.  Names: "<owner>inbox/<peer>/count",
   "<owner>inbox/<peer>/<k>/value", ".../data", and with `pieces` ".../weight" and ".../floats". */
gt_status gt_inbox_state(gt_inbox *inbox, const char *owner, gt_state_direction direction);
