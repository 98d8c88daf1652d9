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

typedef struct {
  const uint8_t *frame; /* borrowed */
  size_t bytes;
  bool done;
} store_entry;

typedef struct {
  gt_object_request request;
  uint64_t sequence; /* 0: of no entry */
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
  /* receiving: `next` is asked for; frames of a group up to `received` came from an earlier start */
  gt_object_request get, deletion;
  uint8_t *frame;
  bool getting, ready, deleting;
  bool stale; /* the request is of a channel that has ended */
  uint64_t next, deleted, received;
  gt_ns look, heard;
  gt_ns asked, empty; /* when the request began; and one that found nothing */
} store_lane;

struct gt_transport {
  gt_peers *servers; /* NULL: the transport of a group */
  struct store_endpoint *store;
  uint64_t id;
  size_t frame_bytes;
  bool keeps;
  const gt_past_frame *past;
  size_t npast;
  store_lane *lanes;
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

/* True if the request has ended; a failure ends the run. */
bool gt_store_ended(const gt_object_request *request);

/* ---- store_lane.c ---------------------------------------------------------------------------- */

void gt_store_lane_open(gt_transport *t, size_t peer, size_t window);
void gt_store_lane_close(store_lane *lane);
/* Queues a frame.  slot: as in gt_transport_ops. */
void gt_store_lane_queue(gt_transport *t, size_t peer, size_t slot, const void *frame,
                         size_t bytes);
/* Starts and ends requests. */
void gt_store_lane_pump_out(gt_transport *t, size_t peer);
void gt_store_lane_pump_in(gt_transport *t, size_t peer);
/* Frees the frame that is ready. */
void gt_store_lane_release(gt_transport *t, size_t peer);
/* Drops the frames of both directions; the peer's next start begins with none. */
void gt_store_lane_forget(gt_transport *t, size_t peer);
/* Begins again with a peer that has started again. */
void gt_store_lane_anew(gt_transport *t, size_t peer);

/* ---- store_card.c ---------------------------------------------------------------------------- */

void gt_store_cards_open(store_endpoint *s);
void gt_store_cards_close(store_endpoint *s);
/* Writes this region's card, if it has changed, and looks at the others. */
void gt_store_cards_progress(store_endpoint *s);
/* Writes the end to the card, and waits until it is in the store, at most 2 s. */
void gt_store_say_bye(store_endpoint *s, gt_status code);
