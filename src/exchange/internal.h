/* Shared by the files of exchange: collectives, and the table of functions that implements them for
   a topology. */
#pragma once

#include "coder.h"
#include "geotrain/exchange.h"

/* A collective of an exchange: the common part of an all-reduce and a broadcast. */
typedef struct gt_collective {
  gt_exchange *x;
  gt_collective_spec spec;
  size_t id, n; /* index, in the order of opening; floats that every region gets */
  /* A body has npieces messages, more than one only over a hub or tree; piece k is of the floats
     from starts[k] to starts[k + 1]. */
  size_t npieces, *starts;
  size_t piece;       /* floats of the longest piece */
  size_t coded_bytes; /* maximum bytes of an encoded piece */
  gt_coder *coder;    /* NULL: bodies are float32 */
  int64_t *count;     /* nregions: gt_exchange_count of each region that is done */
  gt_allreduce *allreduce;
  gt_broadcast *broadcast; /* one of the two is NULL */
  struct gt_collective *next;
} gt_collective;

/* A held message: one that its collective could not take yet.  The body is owned. */
typedef struct {
  gt_collective *collective;
  gt_frame_header head;
  gt_payload body; /* data NULL in a simulation */
} gt_held_message;

typedef struct {
  gt_held_message *messages; /* oldest first */
  size_t n, capacity;
} gt_held;

/* A node of a circular, doubly linked list: a region, or the head of a queue.  A queue has the
   regions whose held messages wait for the same event. */
typedef struct {
  size_t next, before;
} gt_held_place;

/* Held messages (exchange.c). */
typedef struct {
  gt_held *of; /* nregions */
  /* 2 nregions + 1: a node for each region; then the heads of nregions + 1 queues: for room at
     region i, and, last, for any other event */
  gt_held_place *places;
  size_t n;          /* messages */
  gt_payload *spare; /* unused bodies */
  size_t nspare, spare_capacity;
} gt_held_all;

/* The position of a region in a tree. */
typedef struct {
  size_t parent;    /* the region itself at the root */
  size_t *children; /* ascending */
  size_t nchildren;
  size_t *neighbours; /* children and parent (the root has none), ascending */
  size_t nneighbours;
  /* terms of the sum that this region computes: children and the region itself, ascending */
  size_t *terms;
  size_t nterms;
  /* the regions in the branch of term i, whose contributions its sums contain:
     members[begin[i]..begin[i + 1]) */
  size_t *members, *begin;
} gt_tree;

struct gt_exchange {
  gt_exchange_spec spec;
  const struct gt_topology_ops *topology;
  gt_collective *first, *last;
  size_t ncollectives;
  size_t *others; /* all other regions, ascending; nregions - 1 */
  bool *done;     /* nregions: the region makes no more steps */
  bool *late;     /* nregions: the region was done before the resume and may make steps again */
  bool paused;
  gt_held_all held;
  /* the last region whose outbox had no room; nregions: the cap on bytes did not allow a message */
  size_t full;
  /* The message that a collective is taking; its body is borrowed. */
  const gt_frame_header *taken;
  const void *taken_body;
  /* Arguments of the next gt_exchange_can_post_wanted: numbers of messages, and their regions;
     nregions entries. */
  gt_outbox_want *wants;
  size_t *wanted, nwants;
  gt_tree tree; /* hub, tree */
};

/* common.c */
/* Appends the collective to the exchange; gt_exchange_remove frees the collective and its coder. */
void gt_exchange_add(gt_exchange *x, gt_collective *c, const gt_collective_spec *spec, size_t n,
                     gt_coder *coder);
void gt_exchange_remove(gt_collective *c);
/* Cuts a body into pieces; with a codec these begin at chunks. */
void gt_exchange_cut(gt_collective *c);
/* Adds a number of messages to a region to the next gt_exchange_can_post_wanted. */
void gt_exchange_want(gt_exchange *x, size_t region, size_t messages);
/* True if all wanted messages, each of `floats` floats, can be posted now (gt_outbox_room).  If
   not, x->full is the first region whose outbox has no room, or nregions if limits.wan_bytes does
   not allow the messages. */
bool gt_exchange_can_post_wanted(const gt_collective *c, gt_room_use use, size_t floats);
/* The same for `messages` messages to each of n regions. */
bool gt_exchange_can_post(const gt_collective *c, gt_room_use use, const size_t *regions, size_t n,
                          size_t messages, size_t floats);
/* Returns the maximum number of bytes of a message of `floats` floats. */
size_t gt_exchange_body_bytes(const gt_collective *c, size_t floats);
/* Acknowledges the oldest held message of the region, which has now been taken. */
void gt_exchange_acknowledge(const gt_exchange *x, size_t from);
/* Returns GT_ERR_FAULT unless the route of the message describes n floats from `offset` on. */
gt_status gt_exchange_check_part(const gt_frame_header *head, size_t offset, size_t n);

/* Returns GT_ERR_FAULT unless the message is of a step or round after `last`. */
gt_status gt_exchange_check_after(const gt_frame_header *head, int64_t last);

/* Returns the header of the collective's next held message from the region, and moves *i, at first
   0, behind it; NULL: it was the last one.  A check of a message counts held ones as taken. */
const gt_frame_header *gt_exchange_next_held(const gt_collective *c, size_t from, size_t *i);
/* Returns the number of the collective's held messages from the region; *last: the header of the
   newest one, unchanged if there is none. */
int64_t gt_exchange_held(const gt_collective *c, size_t from, const gt_frame_header **last);

/* Origin of a body.  OWN: numbers of this region alone.  PASSED: received bytes that are forwarded
   unchanged.  SUM: a sum computed in this region.  A codec encodes OWN and SUM. */
typedef enum { GT_BODY_OWN, GT_BODY_PASSED, GT_BODY_SUM } gt_body;

/* A message to post: n floats of a body.  `first`: where they are in the payload. */
typedef struct {
  gt_body of;
  gt_payload *payload;
  size_t first, n;
  gt_msg_kind kind; /* 0: that of the collective */
  uint64_t value, detail;
  gt_frame_route route; /* if the topology has routes; its count is set to n */
  const size_t *to;     /* nto regions */
  size_t nto;
  bool replace; /* as in gt_outbox_message */
  bool again;   /* the same body as in the last message, so no float was written for this one */
  bool exact;   /* float32, even if the collective has a codec */
} gt_message;

/* Gives the message a body of n floats, which the caller fills; with a codec they are those from
   m->route.offset on.  Returns a vector without data for GT_BODY_PASSED with a codec. */
gt_vec gt_exchange_fill(const gt_collective *c, gt_message *m, size_t n);
/* Posts the message, encoded if the collective has a codec.  All messages of an exchange are posted
   here. */
void gt_exchange_send(const gt_collective *c, gt_message *m);

/* ---- all-reduce, for every topology (collective.c) ------------------------------------------- */

struct gt_allreduce {
  gt_collective base;
  gt_vec a, b;
  /* Last round that this region has a contribution to; whose contribution it has posted; that it
     has applied. */
  int64_t own, posted, applied;
  int64_t samples; /* behind the next contribution to be posted */
  int64_t over;    /* 1: this region makes no more steps */
  int64_t floor;   /* after a resume: newest round that any region had applied or begun to add up */
  size_t unheard;  /* after a resume: number of regions whose newest round is not known yet */
  /* It contributes again after a pause: it was done before a resume, or it has returned. */
  bool rejoins;
  /* After a change of members: the newest round that any of them has applied, whose result this
     region lacks if `applied` is less; the last round in which late regions do not take part. */
  int64_t target, late_floor;
  gt_vec mean;
  float share;       /* of this region's contribution in the mean; 0: it did not contribute */
  bool empty;        /* all regions of the round abstained: there is no mean */
  int64_t abstained; /* 1: this region's contribution to round `own` has weight 0 */
  /* For codecs whose payloads add up (else NULL): `whole` is the contribution of the caller, `a`
     its payload as float32 values, `decoded` the decoded mean. */
  gt_coder *packer;
  gt_vec whole, decoded;
  /* For a codec with two steps (else NULL): the all-reduce of the payloads of the first step.  This
     all-reduce has those of the second. */
  gt_allreduce *first;
  /* With a quorum (exchange.h). */
  struct {
    uint64_t mask;     /* regions whose contributions are in `mean`, as bits */
    int64_t from;      /* the round for which the last contribution was begun */
    int64_t missed;    /* means without this region, since its last contribution in one */
    int64_t made;      /* contributions of this region */
    int64_t *included; /* GT_QUORUM_REGIONS, by number in the outbox: contributions in means */
    gt_ns grace;       /* when the next round no longer waits; GT_NEVER: it has no quorum yet */
  } quorum;
  int64_t staged;  /* 1: a contribution is in the first step */
  int64_t leaving; /* 1: that contribution is the region's last */
  char owner[32];  /* of the first step */
};

typedef struct {
  size_t size; /* of the topology's own struct, which begins with a gt_allreduce; zeroed */
  void (*open)(gt_allreduce *r);
  void (*close)(gt_allreduce *r);
  /* Makes all possible progress.  True: mean and share are those of round applied + 1. */
  bool (*next)(gt_allreduce *r);
  /* Takes a message.  False: it cannot be taken yet. */
  bool (*receive)(gt_allreduce *r, size_t from, const gt_frame_header *head, gt_vec body);
  /* Checks a header.  GT_ERR_FAULT: the next message of this region cannot have it.  NULL: every
     header is accepted. */
  gt_status (*check)(const gt_allreduce *r, size_t from, const gt_frame_header *head);
  /* Discards the cached membership of the next round. */
  void (*again)(gt_allreduce *r);
  /* True if no message is pending, apart from this region's contribution. */
  bool (*settled)(const gt_allreduce *r);
  /* Returns the newest round that this region has begun to add up for others.  NULL: it never adds
     up for others. */
  int64_t (*begun)(const gt_allreduce *r);
  /* As gt_allreduce_part etc.  NULL: contributions have no parts, and every region gets the
     mean. */
  void (*part)(gt_allreduce *r, size_t rank, gt_vec x, uint64_t samples);
  bool (*answered)(const gt_allreduce *r);
  void (*answer)(gt_allreduce *r, gt_vec made);
  gt_status (*state)(gt_allreduce *r, const char *prefix, gt_state_direction direction);
} gt_allreduce_ops;

/* Returns the last round in which a region cannot take part whose message has not come.  late: it
   contributes again after a pause. */
static inline int64_t gt_allreduce_floor(const gt_allreduce *r, bool late) {
  const int64_t floor = late && r->late_floor > r->floor ? r->late_floor : r->floor;
  return r->first && r->first->floor > floor ? r->first->floor : floor;
}
/* True if another member has the result of a round that this region has not applied. */
static inline bool gt_allreduce_lacks(const gt_allreduce *r) {
  return r->target > r->applied;
}
/* Returns the region's last contribution that has been applied: its round, or with a quorum its
   number, like gt_exchange_count. */
int64_t gt_allreduce_applied(const gt_allreduce *r, size_t region);
/* True if all other regions are done, and all rounds that they contributed to have been applied. */
bool gt_allreduce_is_last(const gt_allreduce *r);
/* Returns the weight of this region's contribution. */
double gt_allreduce_weight(const gt_allreduce *r);
/* Computes sum = share x if `first`, else sum += share x. */
void gt_allreduce_add(gt_vec sum, float share, gt_vec x, bool first);
/* Does the same with this region's contribution, from `first_float` on. */
void gt_allreduce_add_own(const gt_allreduce *r, gt_vec sum, float share, size_t first_float,
                          bool first);
/* Copies this region's contribution, a then b, to `body`; nothing if the region abstains. */
void gt_allreduce_copy_own(const gt_allreduce *r, gt_vec body);

/* ---- broadcast ------------------------------------------------------------------------------- */

struct gt_broadcast {
  gt_collective base;
  bool replace;
  int64_t posted;     /* value of this region's last message */
  int64_t lost;       /* value of the last one whose way a change of members has cut off */
  gt_message filling; /* valid from the question for room, or begin, to post */
};

typedef struct {
  size_t size; /* as in gt_allreduce_ops */
  void (*open)(gt_broadcast *b);
  void (*close)(gt_broadcast *b);
  bool (*room)(const gt_broadcast *b);
  /* Returns the vector of the topology that the owner fills.  NULL, or a vector of 0 floats: the
     owner fills a payload. */
  gt_vec (*begin)(gt_broadcast *b);
  void (*post)(gt_broadcast *b, gt_message *m); /* posts the filled body, with value and detail */
  bool (*receive)(gt_broadcast *b, size_t from, const gt_frame_header *head, gt_vec body);
  /* as above */
  gt_status (*check)(const gt_broadcast *b, size_t from, const gt_frame_header *head);
  /* Sends pending messages for which the outbox to `region` now has room; nregions: to any region.
     NULL: the topology keeps no pending messages. */
  void (*progress)(gt_broadcast *b, size_t region);
  bool (*drained)(const gt_broadcast *b);
  bool (*settled)(const gt_broadcast *b);
  gt_status (*state)(gt_broadcast *b, const char *prefix, gt_state_direction direction);
} gt_broadcast_ops;

/* ---- topologies ------------------------------------------------------------------------------ */

typedef struct gt_topology_ops {
  const char *name;
  bool routed;                  /* true: every message has a route; false: none has */
  bool in_pieces;               /* a body can have several messages (gt_collective.starts) */
  void (*open)(gt_exchange *x); /* finds the region's neighbors; may be NULL */
  void (*close)(gt_exchange *x);
  size_t (*unit)(const gt_collective *c); /* messages per link and exchange; NULL: 1 */
  /* As gt_exchange_need_of; NULL: not known. */
  gt_exchange_need (*need)(const gt_exchange_spec *spec, gt_cast cast, size_t n);
  const gt_allreduce_ops *allreduce;
  const gt_broadcast_ops *broadcast; /* NULL: the topology has no broadcast */
} gt_topology_ops;

const gt_topology_ops *gt_topology_of(gt_topology topology);

/* ---- change of members (collective.c) -------------------------------------------------------- */

/* Closes the part of the topology in the collective, except that of a broadcast over a mesh.
   Then, with the exchange's new members, the other two open it again without messages.  applied:
   the newest round that any member has applied; late regions take part after the round `floor`;
   late: this region is one; again: it lacks the result of the round `applied`. */
void gt_collective_interrupt(gt_collective *c);
void gt_allreduce_regroup(gt_allreduce *r, int64_t applied, int64_t floor, bool late, bool again);
void gt_broadcast_regroup(gt_broadcast *b);
