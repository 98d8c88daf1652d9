/* Shared by the files of outbox. */
#pragma once

#include "geotrain/outbox.h"

/* Measurements of a link.  All are double, so that a checkpoint has their exact values. */
typedef struct {
  double bits, seconds;                        /* of all messages, until their acknowledgements */
  double rtt_ns;                               /* the shortest; 0: not measured yet */
  double late_bits, late_seconds, late_rtt_ns; /* the same for recent messages */
} outbox_measured;
#define OUTBOX_MEASURED (sizeof(outbox_measured) / sizeof(double))

/* A message to a peer, from its posting to its acknowledgement. */
typedef struct {
  uint64_t id;
  gt_frame_header head;
  gt_payload *payload;
  size_t first, bytes;   /* of the body */
  bool own;              /* this region is its origin, if messages have an origin */
  bool parked;           /* the link's window is full: the gateway does not have the message yet */
  bool departed, behind; /* behind: an earlier message was in flight when this one was posted */
  bool dropped;          /* the gateway had the message and has dropped it: the peer was lost */
  /* after a resume: the peer may have taken the message already, so its payload stays the same */
  bool resent;
  gt_ns posted;
  struct {
    int64_t body, first; /* number of the body; its first float */
  } saved;
} outbox_message;

typedef struct {
  outbox_message *messages;           /* oldest first */
  size_t n, places, capacity, queued; /* places: allocated so far, at most capacity */
  size_t own; /* queued messages with this region as origin, if messages have an origin */
  uint64_t next_id;
  int64_t sent, taken, received; /* sequences: last one sent; of the peer: acknowledged, received */
  bool held, absent;             /* absent: it is no member */
  bool owed, answers; /* an acknowledgement waits; data has left since the last one was due */
  bool paused;        /* data does not leave now */
  double wan_bytes;   /* total sent, as the peer reports; of this region: as counted */
  gt_ns last_ack;
  /* From posting to acknowledgement, of the messages of this start; not in checkpoints. */
  struct {
    gt_ns sum, longest;
    int64_t n;
  } waits;
  outbox_measured measured;
  gt_ns rate_at, rtt_at; /* last measurement of the link's rate, of its round trip */
  /* the peer's clock relative to this one, by an answer that took compared_rtt; compared_at 0:
     none */
  gt_ns ahead, compared_rtt, compared_at;
} outbox_peer;

/* Bytes under the cap; unused without one. */
typedef struct {
  /* nregions: bytes that each region may post in all; region 0 has them all, others only their
     own */
  double *allowed;
  double *most;    /* the same: most bytes that the region has wanted to post in one event */
  bool *known;     /* nregions, at region 0: the region has reported its bytes since the resume */
  double queued;   /* posted, not sent yet */
  double need;     /* bytes that messages wait for; 0: none */
  double low;      /* below this rest the region asks for more */
  double asked_at; /* bytes posted when the region asked */
  /* PINGs sent to region 0 and PONGs received; number of the PONG that answers the open question,
     0: none is open */
  int64_t pings, pongs, answer;
  bool stopped, exhausted;
} outbox_account;

struct gt_outbox {
  gt_outbox_spec spec;
  gt_outbox_use use;
  outbox_peer *peers;            /* nregions */
  size_t queued, unacknowledged; /* messages, of all peers */
  gt_payload **pool;
  size_t npool, pool_capacity;
  outbox_account account;
  gt_ns now;
  int64_t round, epoch;
  /* forgotten messages that the gateway is still sending */
  struct outbox_orphan {
    size_t peer;
    uint64_t id;
    gt_payload *payload;
  } * orphans;
  size_t norphans, orphans_capacity;
};

/* Sends the acknowledgement of all messages taken. */
void gt_outbox_send_ack(gt_outbox *o, size_t peer);
/* outbox.c */
void gt_outbox_enqueue(gt_outbox *o, size_t peer, const gt_frame_header *head, gt_payload *payload,
                       size_t first, size_t bytes);

/* Sets the region's own bytes after a resume. */
void gt_account_load(gt_outbox *o, double left);

/* links.c: measure with a message that is acknowledged now, or with the answer to a heartbeat sent
   at `sent`, given at `theirs` by the peer's clock.  Older checkpoints have no measurements. */
void gt_links_measure_rate(gt_outbox *o, outbox_peer *p, const outbox_message *m);
void gt_links_measure_wait(const gt_outbox *o, outbox_peer *p, const outbox_message *m);
void gt_links_measure_answer(gt_outbox *o, outbox_peer *p, gt_ns sent, gt_ns theirs);
gt_status gt_links_load(gt_outbox *o, outbox_peer *p, const char *prefix, const gt_state *state);
