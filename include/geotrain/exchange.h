/* exchange: by which way regions speak: two collectives over regions, all-reduce and broadcast.
   Layer 4.  Local: a collective is a state machine.  It never calls MPI, waits, reads a clock or
   does I/O; what it needs comes with an event, what it wants goes to its host.
   R regions, w_i the weight of region i, n floats. */
#ifndef GEOTRAIN_EXCHANGE_H
#define GEOTRAIN_EXCHANGE_H

#include "geotrain/base_families.h"
#include "geotrain/link.h"
#include "geotrain/tensor.h"

typedef struct gt_exchange gt_exchange;

/* ---- what the PS does for an exchange -------------------------------------------------------- */

/* A message body of vec.n floats.  Owned by the host; given back when the last region that it was
   posted to has acknowledged it. */
typedef struct gt_payload {
  gt_vec vec;
  size_t capacity; /* floats that its memory holds: the host's */
  int refs;
} gt_payload;

/* A message to post: the n floats of `payload` from `first` on. */
typedef struct {
  gt_payload *payload;
  size_t first, n;
  gt_frame_header head; /* kind, range, value, detail, flags and route count */
  const size_t *to;     /* nto regions */
  size_t nto;
  /* A region whose outbox is full gets it in place of the newest message that has not begun to
     leave. */
  bool replace;
} gt_exchange_message;

typedef struct {
  void *ctx;
  /* A body of n floats to fill and post, contents undefined.  There is always one when every
     region that it is posted to has room or may be given it in place of another. */
  gt_payload *(*payload)(void *ctx, size_t n);
  /* The region's outbox takes so many more messages, and limits.wan_bytes leaves one to
     everybody. */
  bool (*room)(void *ctx, size_t region, size_t messages);
  /* limits.wan_bytes leaves one more message to every other region.  False: gt_exchange_room
     follows when it does, or the run ends.  NULL: always. */
  bool (*afford)(void *ctx);
  void (*post)(void *ctx, const gt_exchange_message *message);
  /* The oldest message of the region that gt_exchange_receive left waiting is taken: it may be
     acknowledged. */
  void (*taken)(void *ctx, size_t region);
  /* The region's message, of several pieces, is not finite: it was dropped. */
  void (*spoilt)(void *ctx, size_t region);
} gt_exchange_host;

/* Everything in it is borrowed and outlives the exchange; the struct itself is copied. */
typedef struct {
  size_t nregions, self;
  const double *weights; /* nregions, sum 1 */
  size_t inflight;       /* most messages that can be under way on one link */
  bool with_memory;      /* false: vectors have no data (simulation) */
  gt_topology topology;
  /* nregions.  hub, tree: the region that each one's sums go to, itself at the root; ring: the
     region behind each one; mesh: NULL. */
  const size_t *next;
  size_t piece; /* floats of a message that is added up or forwarded on its way */
  gt_exchange_host host;
} gt_exchange_spec;

/* ---- topologies of a job --------------------------------------------------------------------- */

/* It has a broadcast, and not all-reduce alone. */
bool gt_topology_broadcasts(gt_topology topology);
/* Writes `next` of an exchange of hub, tree or ring: nregions.  links: what the job's links carry;
   bytes: of a message; hub: the region, nregions: the one that the others reach soonest.  The same
   in every region.  tree: a spanning tree of the links on which a message takes least (Prim 1957),
   rooted in the middle of its longest path; ring: of least slowest link, up to 8 regions, beyond
   that from each region to the nearest that is left. */
void gt_topology_place(gt_topology topology, const gt_links *links, size_t nregions, size_t bytes,
                       size_t hub, size_t *next);

gt_exchange *gt_exchange_create(const gt_exchange_spec *spec);
/* After the collectives, which whoever opened them closes. */
void gt_exchange_close(gt_exchange *x);

/* ---- events ---------------------------------------------------------------------------------- */

typedef enum { GT_PEER_JOINED, GT_PEER_REJOINED, GT_PEER_LEFT, GT_PEER_DONE } gt_peer_event;

/* Training starts or goes on. */
void gt_exchange_start(gt_exchange *x);
/* A place in the region's outbox became free. */
void gt_exchange_room(gt_exchange *x, size_t region);
/* Bytes that the message has; 0: no collective takes it. */
size_t gt_exchange_bytes(const gt_exchange *x, const gt_frame_header *head);
/* Messages that one exchange of it all puts on a link at most; once every collective is open. */
size_t gt_exchange_unit(const gt_exchange *x);
/* GT_ERR_FAULT: no next message of the region can be like that: its way, its part of the range, its
   round. */
gt_status gt_exchange_check(const gt_exchange *x, size_t from, const gt_frame_header *head);
/* A message was received, in order and once; its body, of gt_exchange_bytes, is borrowed.  True: it
   may be acknowledged; false: once the host is told that it is taken. */
bool gt_exchange_receive(gt_exchange *x, size_t from, const gt_frame_header *head, gt_vec body);
/* DONE: the region makes no more steps; count: its gt_exchange_count.  It stays, applies messages,
   and counts zero in means of later rounds.  With a mesh every message that it ever sent has been
   received.  JOINED: after a resume, never in a fresh start, once for every region; REJOINED:
   one that was done and may make steps again; count: its gt_exchange_rounds; every message that it
   sent before the resume has been received. */
void gt_exchange_peer(gt_exchange *x, size_t region, gt_peer_event event, int64_t count);
/* The newest round of an all-reduce that this region has applied, or has begun to add up for
   others; 0 where there is none. */
int64_t gt_exchange_rounds(const gt_exchange *x);
/* What this region has to send of its own is posted; beyond that, once every other region is done,
   nothing is to come or waits here. */
bool gt_exchange_drained(const gt_exchange *x);
bool gt_exchange_settled(const gt_exchange *x);
/* The last round that this region contributed to, or the value of its last broadcast. */
int64_t gt_exchange_count(const gt_exchange *x);

/* ---- collectives ----------------------------------------------------------------------------- */

/* What both are opened with.  Regions open theirs in the same order: a message names its collective
   by that (the range in its header). */
typedef struct {
  const char *owner; /* in front of the names of its state: "sync/"; borrowed */
  gt_msg_kind kind;  /* GT_MSG_UPDATE: additive; GT_MSG_STATE: a model */
  /* Something may go on: room, a contribution, a region's end.  Called within events. */
  void (*changed)(void *ctx);
  /* Of a broadcast: a body of region `origin`, in its order, once; borrowed. */
  void (*received)(void *ctx, size_t origin, gt_vec body);
  void *ctx;
} gt_collective_spec;

/* ---- all-reduce: numbered rounds; every region takes the same weighted mean, bit for bit ----- */

typedef struct gt_allreduce gt_allreduce;

/* A contribution is a, then b (b.n may be 0): borrowed while the all-reduce lives, and unchanged
   from gt_allreduce_contribute until its round is applied. */
gt_allreduce *gt_allreduce_open(gt_exchange *x, const gt_collective_spec *spec, gt_vec a, gt_vec b);
void gt_allreduce_close(gt_allreduce *r);
/* So many samples more are behind the contribution that is next to be posted. */
void gt_allreduce_behind(gt_allreduce *r, uint64_t samples);
/* The region has a contribution to its next round. */
void gt_allreduce_contribute(gt_allreduce *r);
/* The region makes no more steps (after its last contribution). */
void gt_allreduce_leave(gt_allreduce *r);
/* Posts what can be posted; then, if all that belongs to the next round is here, *mean is its mean
   (a.n + b.n floats, until the next call) and *share what the own contribution counts in it (0:
   there was none).  Call it until it returns false. */
bool gt_allreduce_next(gt_allreduce *r, gt_vec *mean, float *share);
/* The own contribution's round is not applied yet. */
bool gt_allreduce_waiting(const gt_allreduce *r);
/* It waits, or has not caught up after a resume: no step may be made. */
bool gt_allreduce_holds(const gt_allreduce *r);
/* Names: "<owner>rounds/...", "<owner>inbox/...". */
void gt_allreduce_save(gt_allreduce *r, gt_state *state);
gt_status gt_allreduce_load(gt_allreduce *r, const gt_state *state);

/* ---- broadcast: every other region gets it, in the order of its origin, once ----------------- */

typedef struct gt_broadcast gt_broadcast;

/* Messages of n floats; replace: a newer one takes the place of one that has not begun to leave. */
gt_broadcast *gt_broadcast_open(gt_exchange *x, const gt_collective_spec *spec, size_t n,
                                bool replace);
void gt_broadcast_close(gt_broadcast *b);
/* One more can be posted now; always so where there is no other region. */
bool gt_broadcast_room(const gt_broadcast *b);
/* A body to fill, then to post: n floats, contents undefined.  Only with room, and with another
   region. */
gt_vec gt_broadcast_begin(gt_broadcast *b);
/* Posts it.  value: the sender's step, which grows; samples behind it. */
void gt_broadcast_post(gt_broadcast *b, uint64_t value, uint64_t samples);
/* What is under way here, as a mesh has nothing.  Names: "<owner>broadcast/...". */
void gt_broadcast_save(gt_broadcast *b, gt_state *state);
gt_status gt_broadcast_load(gt_broadcast *b, const gt_state *state);

#endif
