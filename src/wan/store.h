/* Regions joined by a store.  A message is an object, named by the two starts of its regions and a
   number; the receiver asks for the next number until it is there, and deletes what it has read.
   Each region has one object more, its card: who it is, and which starts of the others it has seen.
   Two regions are connected when each card has the start of the other, so that cards and messages
   of an earlier run, or start, are never taken for those of this one. */
#pragma once

#include "geotrain/wan_store.h"
#include "internal.h"

#define STORE_PUTS   4 /* of one peer at a time */
#define STORE_FORMER 8
#define STORE_UNREAD 64 /* objects of a peer that have been read and are still there */
enum { STORE_OF_PEERS, STORE_OF_GATEWAY, STORE_TRANSPORTS };

/* A region's card; `seen` numbers follow: the starts that it has seen of each region, 0: none. */
typedef struct {
  uint32_t magic;
  uint16_t version, region;
  uint32_t ended, code; /* ended: the region is at its end, with this code */
  uint64_t start, nregions;
} store_card;

/* What is known of another region. */
typedef struct {
  gt_object_request get;
  uint8_t *bytes; /* of its card */
  bool asking;
  uint64_t start; /* connected; 0: not yet */
  uint64_t former[STORE_FORMER];
  size_t nformer; /* all so far; the last STORE_FORMER of them are known */
  gt_status code;
  bool ended, odd; /* odd: a card of another job has been reported */
  gt_ns ended_at, next;
} store_peer;

/* Notes of an object: how many objects of the reader the writer has read; what the object is; when
   it was written, in ns since 1970. */
enum { STORE_READ, STORE_ROLE, STORE_WRITTEN };
/* Kept: the writer deletes it when all have read it.  A reference has the header of a message and
   the name of the kept object with its payload. */
typedef enum { STORE_PLAIN, STORE_KEPT, STORE_REFERENCE } store_role;

/* A payload that several regions get: one object, in the lane of `owner`, and references. */
typedef struct {
  bool used, written;
  size_t owner, header, payload; /* header, payload: their bytes */
  uint64_t hash;
  gt_ns at;        /* when it was written, in ns since 1970 */
  uint64_t *waits; /* nregions: number of the message with it that is to be read; 0: none */
  gt_object_request deletion;
  bool deleting;
} store_share;

typedef struct {
  const uint8_t *frame; /* borrowed */
  size_t bytes;
  store_share *share; /* NULL: none */
  bool done;
} store_entry;

typedef struct {
  gt_object_request request;
  uint8_t reference[GT_FRAME_HEADER_MAX + GT_OBJECT_NAME];
  store_share *share; /* whose object this is; NULL: none */
  uint64_t sequence;  /* 0: of no entry */
  bool busy;
} store_putting;

/* The frames between this region and a peer.  Numbers count from 1 for each start. */
typedef struct {
  bool restarted, forgotten;
  /* sending: acked <= begun <= queued; acked: those up to it are objects */
  store_entry *queue;
  size_t window, nslots;
  uint64_t *slot_sequence;
  uint64_t queued, begun, acked;
  store_putting puts[STORE_PUTS];
  /* receiving: `next` is asked for; frames of a group up to `received` came from an earlier
     start */
  gt_object_request get, deletion;
  uint8_t *frame, header[GT_FRAME_HEADER_MAX]; /* header: of the message while `refers` */
  bool getting, ready, deleting, refers;       /* refers: `get` is for such a payload */
  uint64_t kept; /* bit n % STORE_UNREAD: the writer deletes object n */
  bool stale;    /* the request is of a channel that has ended */
  uint64_t next, deleted, received;
  gt_ns look, heard;
  size_t moved;       /* bytes of `get` that have been heard */
  gt_ns asked, empty; /* when the request began; and one that found nothing */
} store_lane;

static inline store_entry *gt_store_entry(const store_lane *l, uint64_t sequence) {
  return &l->queue[sequence % l->window];
}

struct gt_transport {
  gt_peers *servers; /* NULL: the transport of a group */
  struct store_endpoint *store;
  uint64_t id;
  size_t frame_bytes;
  bool keeps;
  const gt_past_frame *past;
  size_t npast;
  store_lane *lanes;
  store_share **shares, *latest; /* latest: of the last payload written; NULL: none */
  size_t nshares, capacity;
};

typedef struct store_endpoint {
  gt_endpoint base;
  gt_objects *objects;
  gt_ns poll, *polls; /* polls: nregions, for messages of each region in a run */
  size_t card_bytes;
  uint8_t *own, *written, *read; /* the card, what is being written of it, and what the store has */
  uint64_t *seen;                /* nregions, in the card */
  gt_object_request put, check;
  bool due, putting, checking;
  bool replaced; /* another start of this region has written its card */
  gt_ns check_next;
  store_peer *peers;
  gt_transport *open[STORE_TRANSPORTS];
  gt_store_counts counts[2]; /* of data, of others */
} store_endpoint;

/* ---- store_lane.c ---------------------------------------------------------------------------- */

void gt_store_lane_open(gt_transport *t, size_t peer, size_t window);
void gt_store_lane_close(store_lane *lane);
/* Queues a frame.  slot: as in gt_transport_ops. */
void gt_store_lane_queue(gt_transport *t, size_t peer, size_t slot, const void *frame,
                         size_t bytes);
/* Queues the frames for a region that starts again, or comes late. */
void gt_store_lane_queue_past(gt_transport *t, size_t peer);
/* Starts and ends requests. */
void gt_store_lane_pump_out(gt_transport *t, size_t peer);
void gt_store_lane_pump_in(gt_transport *t, size_t peer);
/* Frees the frame that is ready. */
void gt_store_lane_release(gt_transport *t, size_t peer);
/* Drops the frames of both directions; the peer's next start begins with none. */
void gt_store_lane_forget(gt_transport *t, size_t peer);
/* Begins with another start of the peer than before, or with one after it was forgotten. */
void gt_store_lane_anew(gt_transport *t, size_t peer);

/* ---- store_share.c: a message to several regions is written once ----------------------------- */

/* Makes the entry, which is about to be written, a part of the share with its payload, if it is large
   data. */
void gt_store_share_find(gt_transport *t, size_t peer, uint64_t sequence);
/* The request is for the share's object. */
void gt_store_share_begin(store_putting *p);
/* Makes the request one for a reference to the share of the entry. */
void gt_store_share_refer(store_putting *p, const store_entry *e);
/* Takes a reference: the next request of the lane is for the object that it names. */
void gt_store_share_take(store_lane *l, const char *region);
/* Gives the object that was read the header of the message. */
void gt_store_share_fill(store_lane *l, const char *region);
/* The peer has read so many of this region's objects. */
void gt_store_share_read(gt_transport *t, size_t peer, uint64_t number);
/* The peer reads no more of what it was sent. */
void gt_store_share_leave(gt_transport *t, size_t peer);
/* The frame of a share that is being written is no longer kept, so its object can have any bytes:
   no message refers to it. */
void gt_store_share_drop(gt_transport *t, store_share *share);
/* Deletes what all have read.  True if what is left waits for a reader. */
bool gt_store_shares_progress(gt_transport *t);
void gt_store_shares_close(gt_transport *t);
/* True if the request has ended; a failure ends the run. */
bool gt_store_ended(const gt_object_request *request);
/* Returns the time in ns since 1970. */
gt_ns gt_store_wall(void);

/* ---- store_card.c ---------------------------------------------------------------------------- */

void gt_store_cards_open(store_endpoint *s);
void gt_store_cards_close(store_endpoint *s);
/* Writes this region's card, if it has changed, and looks at the others. */
void gt_store_cards_progress(store_endpoint *s);
/* Writes the end to the card, and waits until it is in the store, at most 2 s. */
void gt_store_say_bye(store_endpoint *s, gt_status code);
