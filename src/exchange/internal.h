/* What the modules of exchange share: collectives, and what a topology makes of them. */
#ifndef GEOTRAIN_EXCHANGE_INTERNAL_H
#define GEOTRAIN_EXCHANGE_INTERNAL_H

#include "coder.h"
#include "geotrain/exchange.h"

/* What an exchange knows of each of its collectives. */
typedef struct gt_collective {
  gt_exchange *x;
  gt_collective_spec spec;
  size_t id, n;    /* its number, in order of opening; floats of what every region gets */
  size_t piece;    /* floats in a message of a hub or tree */
  gt_coder *coder; /* NULL: bodies are float32 */
  int64_t *count;  /* nregions; of one that is done: its gt_exchange_count */
  gt_allreduce *allreduce;
  gt_broadcast *broadcast; /* one of the two */
  struct gt_collective *next;
} gt_collective;

/* A message that a topology could not take yet; the body is owned. */
typedef struct {
  gt_collective *collective;
  gt_frame_header head;
  gt_payload body; /* NULL data in a simulation */
} gt_held_message;

typedef struct {
  gt_held_message *messages; /* oldest first */
  size_t n, capacity;
} gt_held;

/* A place in a line of regions whose held messages wait for the same, or the head of a line; the
   lines are circles. */
typedef struct {
  size_t next, before;
} gt_held_place;

/* Messages that could not be taken (held.c). */
typedef struct {
  gt_held *of; /* nregions */
  /* nregions: the regions; then the heads of nregions + 1 lines: for room at that region, and for
     something else */
  gt_held_place *places;
  size_t n;          /* messages */
  gt_payload *spare; /* bodies without a message */
  size_t nspare, spare_capacity;
} gt_held_all;

/* A region's place in a tree of sums. */
typedef struct {
  size_t parent;    /* itself at the root */
  size_t *children; /* ascending */
  size_t nchildren;
  size_t *neighbours; /* the parent, where there is one, and the children, ascending */
  size_t nneighbours;
  size_t *terms; /* what is added up here: the children and the region itself, ascending */
  size_t nterms;
  /* of the term i, the regions whose sums it is: members[begin[i]..begin[i + 1]) */
  size_t *members, *begin;
} gt_tree;

struct gt_exchange {
  gt_exchange_spec spec;
  const struct gt_topology_ops *topology;
  gt_collective *first, *last;
  size_t ncollectives;
  size_t *others; /* every region but this one, ascending; nregions - 1 */
  bool *done;     /* nregions: the region makes no more steps */
  bool *late;     /* it was done before the resume and may make steps again */
  gt_held_all held;
  size_t full; /* the region at which room was last missing; nregions: bytes were */
  /* The message that is being taken; its body is borrowed. */
  const gt_frame_header *taken;
  const void *taken_body;
  /* Messages for which gt_exchange_can_post_wanted asks next, and their regions; nregions places.
     */
  gt_outbox_want *wants;
  size_t *wanted, nwants;
  gt_tree tree; /* hub, tree */
};

/* common.c */
/* Makes the collective the exchange's last; gt_exchange_remove frees it, and the coder. */
void gt_exchange_add(gt_exchange *x, gt_collective *c, const gt_collective_spec *spec, size_t n,
                     gt_coder *coder);
void gt_exchange_remove(gt_collective *c);
/* Adds to what gt_exchange_can_post_wanted asks for. */
void gt_exchange_want(gt_exchange *x, size_t region, size_t messages);
/* True if all wanted messages, of so many floats each, can be posted now (gt_outbox_room).  If not,
   x->full is the first region without room, or nregions if limits.wan_bytes does not allow them. */
bool gt_exchange_can_post_wanted(const gt_collective *c, gt_room_use use, size_t floats);
/* The same for so many messages to each of n regions. */
bool gt_exchange_can_post(const gt_collective *c, gt_room_use use, const size_t *regions, size_t n,
                          size_t messages, size_t floats);
/* Returns the most bytes of a body of so many floats; of such messages on the wire. */
size_t gt_exchange_body_bytes(const gt_collective *c, size_t floats);
size_t gt_exchange_wire_bytes(const gt_collective *c, size_t messages, size_t floats);
/* A message of the region that waited is taken. */
void gt_exchange_acknowledge(const gt_exchange *x, size_t from);
/* GT_ERR_FAULT, unless the route says the n floats from offset on. */
gt_status gt_exchange_check_part(const gt_frame_header *head, size_t offset, size_t n);

/* What the body of a message is: numbers of this region alone, bytes that came and are passed on
   unchanged, or a sum made here.  A codec encodes the first and the last. */
typedef enum { GT_BODY_OWN, GT_BODY_PASSED, GT_BODY_SUM } gt_body;

/* The n floats from `first` on of a body. */
typedef struct {
  gt_body of;
  gt_payload *payload;
  size_t first, n;
  gt_msg_kind kind; /* 0: the collective's */
  uint64_t value, detail;
  gt_frame_route route; /* of a routed topology; its count is n */
  const size_t *to;     /* nto regions */
  size_t nto;
  bool replace; /* as in gt_outbox_message */
  bool again;   /* the same floats as in the last message: nothing was written for this one */
  bool exact;   /* float32 in spite of the codec */
} gt_message;

/* Gives the message a body of n floats, which the caller fills; with a codec, one of GT_BODY_PASSED
   has no data. */
gt_vec gt_exchange_fill(const gt_collective *c, gt_message *m, size_t n);
/* Posts the message, encoded if the collective has a codec; the one way out of an exchange. */
void gt_exchange_send(const gt_collective *c, gt_message *m);

/* held.c */
void gt_held_open(gt_exchange *x);
void gt_held_close(gt_exchange *x);
/* Gives the message to its collective, or holds a copy of it behind those of the region that are
   held; false: it is held. */
bool gt_held_or_taken(gt_exchange *x, gt_collective *c, size_t from, const gt_frame_header *head,
                      const void *body);
/* Gives held messages that wait for room at the region to their collectives; nregions: those that
   wait for anything else.  False: none could be taken. */
bool gt_held_retry(gt_exchange *x, size_t region);

/* ---- all-reduce: what every topology has in common (allreduce.c) ----------------------------- */

struct gt_allreduce {
  gt_collective base;
  gt_vec a, b;
  /* The last round that this region has a contribution to; has posted it; has applied. */
  int64_t own, posted, applied;
  int64_t samples; /* behind the contribution that is next to be posted */
  int64_t over;    /* 1: this region makes no more steps */
  int64_t floor;   /* after a resume: the newest round that anyone had applied or begun to add up */
  size_t unheard;  /* regions that have not told theirs */
  bool rejoins;    /* it was done before the resume and may make steps again */
  gt_vec mean;
  float share; /* of the own contribution in it; 0: there was none */
  /* Codecs whose payloads add up: `a` is the payload of `whole`, as float32 values, and `decoded`
     the decoded mean.  NULL: any other. */
  gt_coder *packer;
  gt_vec whole, decoded;
  /* A codec with two steps: the all-reduce of the payloads of the first; this one has those of the
     second.  NULL: one step. */
  gt_allreduce *first;
  int64_t staged;  /* 1: a contribution is in the first step */
  int64_t leaving; /* 1: it is the last one */
  char owner[32];  /* of the first step */
};

typedef struct {
  size_t size; /* of the topology's own struct, whose first member is gt_allreduce; zeroed */
  void (*open)(gt_allreduce *r);
  void (*close)(gt_allreduce *r);
  /* Moves on what can; true: mean and share are those of round applied + 1. */
  bool (*next)(gt_allreduce *r);
  /* False: it cannot be taken yet. */
  bool (*receive)(gt_allreduce *r, size_t from, const gt_frame_header *head, gt_vec body);
  /* GT_ERR_FAULT: no message of this region can be like that now; NULL: any can. */
  gt_status (*check)(const gt_allreduce *r, size_t from, const gt_frame_header *head);
  /* What was found of who takes part in the next round may be otherwise now. */
  void (*again)(gt_allreduce *r);
  /* Nothing here waits for anything, the own contribution aside. */
  bool (*settled)(const gt_allreduce *r);
  /* The newest round that it has begun to add up for others; NULL: it adds up for none. */
  int64_t (*begun)(const gt_allreduce *r);
  /* As gt_allreduce_*; NULL: every region gets the mean of whole contributions. */
  void (*part)(gt_allreduce *r, size_t rank, gt_vec x, uint64_t samples);
  bool (*answered)(const gt_allreduce *r);
  void (*answer)(gt_allreduce *r, gt_vec made);
  gt_status (*state)(gt_allreduce *r, const char *prefix, gt_state_direction direction);
} gt_allreduce_ops;

/* Returns the last round in which a region that was done before a resume cannot take part. */
static inline int64_t gt_allreduce_floor(const gt_allreduce *r) {
  return r->first && r->first->floor > r->floor ? r->first->floor : r->floor;
}
/* Every other region is done, and all rounds that they contributed to have been applied. */
bool gt_allreduce_is_last(const gt_allreduce *r);
/* sum = share x, or sum += share x. */
void gt_allreduce_add(gt_vec sum, float share, gt_vec x, bool first);
/* The same with n floats of the own contribution, from `first_float` on. */
void gt_allreduce_add_own(const gt_allreduce *r, gt_vec sum, float share, size_t first_float,
                          bool first);
/* The own contribution, a then b, as it is. */
void gt_allreduce_copy_own(const gt_allreduce *r, gt_vec body);

/* ---- broadcast ------------------------------------------------------------------------------- */

struct gt_broadcast {
  gt_collective base;
  bool replace;
  int64_t posted;     /* value of the last that this region posted */
  gt_message filling; /* between begin and post */
};

typedef struct {
  size_t size; /* as above */
  void (*open)(gt_broadcast *b);
  void (*close)(gt_broadcast *b);
  bool (*room)(const gt_broadcast *b);
  /* a vector of its own to fill; NULL, or one without floats: a payload is filled */
  gt_vec (*begin)(gt_broadcast *b);
  void (*post)(gt_broadcast *b, gt_message *m); /* the filled body, with value and detail */
  bool (*receive)(gt_broadcast *b, size_t from, const gt_frame_header *head, gt_vec body);
  /* as above */
  gt_status (*check)(const gt_broadcast *b, size_t from, const gt_frame_header *head);
  /* There may be room at the region for what waits here; nregions: at any.  NULL: nothing does. */
  void (*progress)(gt_broadcast *b, size_t region);
  bool (*drained)(const gt_broadcast *b);
  bool (*settled)(const gt_broadcast *b);
  gt_status (*state)(gt_broadcast *b, const char *prefix, gt_state_direction direction);
} gt_broadcast_ops;

/* ---- topologies ------------------------------------------------------------------------------ */

typedef struct {
  size_t messages, floats;
} gt_posts;

typedef struct gt_topology_ops {
  const char *name;
  bool routed;                  /* every message has a route; else none has */
  void (*open)(gt_exchange *x); /* finds the region's place; NULL: it needs none */
  void (*close)(gt_exchange *x);
  size_t (*unit)(const gt_collective *c); /* messages that one exchange puts on a link; NULL: 1 */
  /* The most messages that the region posts at a time, and the floats of each; NULL: all of the
     collective's, to every other region. */
  gt_posts (*at_once)(const gt_collective *c, size_t region);
  /* As gt_exchange_need_of; NULL: it is not known. */
  gt_exchange_need (*need)(const gt_exchange_spec *spec, gt_cast cast, size_t n);
  const gt_allreduce_ops *allreduce;
  const gt_broadcast_ops *broadcast; /* NULL: it has none */
} gt_topology_ops;

const gt_topology_ops *gt_topology_of(gt_topology topology);

#endif
