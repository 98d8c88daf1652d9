/* What the modules of outbox share. */
#ifndef GEOTRAIN_OUTBOX_INTERNAL_H
#define GEOTRAIN_OUTBOX_INTERNAL_H

#include "geotrain/outbox.h"

/* Measurements of a link.  All are double, so that they are saved as they are. */
typedef struct {
  double bits, seconds;                        /* of all messages, until their acknowledgements */
  double rtt_ns;                               /* the shortest; 0: not measured yet */
  double late_bits, late_seconds, late_rtt_ns; /* the same, recently */
} outbox_measured;
#define OUTBOX_MEASURED (sizeof(outbox_measured) / sizeof(double))

/* A message to a peer, from its posting to its acknowledgement. */
typedef struct {
  uint64_t id;
  gt_frame_header head;
  gt_payload *payload;
  size_t first, bytes;   /* of it */
  bool parked;           /* the link's window is full: the gateway does not have it yet */
  bool departed, behind; /* behind: another was in front of it when it was posted */
  /* after a resume: the peer may have taken it already, so it keeps its payload */
  bool resent;
  gt_ns posted;
  struct {
    int64_t body, first; /* number of the body; the first float of it */
  } saved;
} outbox_message;

typedef struct {
  outbox_message *messages;           /* oldest first */
  size_t n, places, capacity, queued; /* places: allocated so far, at most capacity */
  size_t own; /* queued messages whose origin is this region, where messages have an origin */
  uint64_t next_id;
  int64_t sent, taken, received; /* sequences: sent; of the peer: acknowledged, received */
  bool held;
  double wan_bytes; /* sent in all, as the peer says; of this region itself: as counted */
  gt_ns last_ack;
  outbox_measured measured;
  gt_ns rate_at, rtt_at; /* when the link's rate and round trip were last measured */
  /* the peer's clock against this one, by an answer that took compared_rtt; compared_at 0: none */
  gt_ns ahead, compared_rtt, compared_at;
} outbox_peer;

/* Bytes under the cap; unused without one. */
typedef struct {
  /* nregions: that each may post in all; region 0 keeps them, elsewhere only the own counts */
  double *allowed;
  bool *known;     /* region 0: since the resume the region has told what it has sent */
  double queued;   /* posted, and not left yet */
  double need;     /* that wait to be allowed; 0: none */
  double low;      /* when less is left, more is asked for */
  double asked_at; /* what had been posted when more was asked for */
  /* to region 0, from it; the PONG that answers a question; 0: none is open */
  int64_t pings, pongs, answer;
  bool stopped, exhausted;
} outbox_account;

struct gt_outbox {
  gt_outbox_spec spec;
  gt_outbox_use use;
  outbox_peer *peers;    /* nregions */
  size_t unacknowledged; /* messages, of all peers */
  gt_payload **pool;
  size_t npool, pool_capacity;
  outbox_account account;
  gt_ns now;
  int64_t round;
};

/* outbox.c */
void gt_outbox_enqueue(gt_outbox *o, size_t peer, const gt_frame_header *head, gt_payload *payload,
                       size_t first, size_t bytes);

/* account.c */
void gt_account_open(gt_outbox *o);
void gt_account_close(gt_outbox *o);
void gt_account_load(gt_outbox *o, double left);
bool gt_account_allows(gt_outbox *o, double bytes); /* more; if not, they are asked for */
void gt_account_posted(gt_outbox *o, double bytes);
void gt_account_left(gt_outbox *o, double bytes); /* that were posted */

/* links.c: measured from a message that is acknowledged now; from the answer to a heartbeat of the
   time `sent`, given when the peer's clock was `theirs`.  Older checkpoints have no
   measurements. */
void gt_links_measure_rate(gt_outbox *o, outbox_peer *p, const outbox_message *m);
void gt_links_measure_answer(gt_outbox *o, outbox_peer *p, gt_ns sent, gt_ns theirs);
gt_status gt_links_load(gt_outbox *o, outbox_peer *p, const char *prefix, const gt_state *state);

#endif
