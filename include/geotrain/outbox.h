/* outbox: the messages of a region to the others until they are acknowledged: bounded outboxes,
   bodies, sequence numbers, heartbeats, the cap on bytes, and measurements of the links.  Layer 4.
   Local: it never calls MPI, reads a clock or does I/O.  Its owner gives it the time with each
   event; it calls only the gateway's table. */
#pragma once

#include "geotrain/link.h"

typedef struct gt_outbox gt_outbox;

/* ---- gateway --------------------------------------------------------------------------------- */

/* wan.h has the contract of send.  The body of a data message is borrowed until gt_outbox_departed
   of its cookie, or until it is dropped. */
typedef struct {
  void *ctx;
  void (*send)(void *ctx, size_t peer, const gt_frame_header *head, const void *body, size_t bytes,
               uint64_t cookie);
  /* Discards the message `cookie`; false: a part of it has been sent. */
  bool (*drop)(void *ctx, size_t peer, uint64_t cookie);
} gt_outbox_gateway;

/* ---- life ------------------------------------------------------------------------------------ */

typedef struct {
  size_t nregions, self;
  /* Maximum number of messages per link that are pending; maximum number in flight. */
  size_t outbox, window;
  bool with_memory; /* false: bodies have no data (simulation) */
  /* Messages are objects of a store, so that each costs a request: an acknowledgement waits for the
     next data to the peer, if the last one did not wait in vain, or for the next control
     message. */
  bool carries;
  double limit; /* maximum bytes of all regions together; 0: no limit */
  /* Contents of a heartbeat: the region's samples, and a number that changes while the region
     works. */
  const int64_t *samples;
  const uint32_t *number;
  gt_outbox_gateway gateway;
} gt_outbox_spec;

gt_outbox *gt_outbox_create(const gt_outbox_spec *spec);
/* Takes NULL. */
void gt_outbox_close(gt_outbox *o);

/* Without pieces, the pool has window + GT_OUTBOX_SPARE bodies at the start: `window` in flight, 2
   of replacing messages, which are posted even if all earlier messages are being sent, and 1 to
   fill. */
#define GT_OUTBOX_SPARE ((size_t)3)

/* Sizes of messages.  unit: maximum number of messages that one exchange sends over a link.  body:
   size of the largest message in bytes if messages are posted whole; 0: they are posted in pieces,
   or not at all.  origin: this region in the routes of messages. */
typedef struct {
  size_t unit, body, origin;
} gt_outbox_use;
/* Opens the outboxes.  Call it once, before the first post. */
void gt_outbox_open(gt_outbox *o, const gt_outbox_use *use);

/* Sets the time of the event that is handled from now on. */
void gt_outbox_at(gt_outbox *o, gt_ns now);
gt_ns gt_outbox_now(const gt_outbox *o);
/* Sets the checkpoint round of all later messages. */
void gt_outbox_round(gt_outbox *o, int64_t round);
/* Keeps the data messages to the peer in the outbox (true), or lets them leave (false). */
void gt_outbox_hold(gt_outbox *o, size_t peer, bool holds);
/* Forgets all messages to and from the peer, and their numbers.  present: false: it gets no
   messages any more, except those about members; then the gateway has discarded all messages to
   it. */
void gt_outbox_renew(gt_outbox *o, size_t peer, bool present);
/* Call when the peer is lost: the gateway has dropped all messages to it. */
void gt_outbox_lost(gt_outbox *o, size_t peer);
/* Sets the membership epoch of all later messages, and this region in their routes. */
void gt_outbox_epoch(gt_outbox *o, int64_t epoch, size_t origin);
/* Call when the run stops: messages no longer wait for bytes. */
void gt_outbox_stop(gt_outbox *o);

/* ---- data ------------------------------------------------------------------------------------ */

/* A body of `bytes` bytes.  It becomes free when all its receivers have acknowledged it. */
typedef struct {
  void *data; /* NULL in a simulation */
  size_t bytes, capacity;
  int refs;
} gt_payload;

/* Returns a body to fill and post; its contents are undefined. */
gt_payload *gt_outbox_body(gt_outbox *o, size_t bytes);

/* The room that a message needs.  OWN: among the region's own messages.  FORWARDED: among the
   messages that it forwards; counted separately, so that neither kind starves the other.  ANY:
   among all messages.  REPLACING: none, because the message replaces another. */
typedef enum { GT_ROOM_ANY, GT_ROOM_OWN, GT_ROOM_FORWARDED, GT_ROOM_REPLACING } gt_room_use;
/* A number of messages to a peer. */
typedef struct {
  size_t peer, messages;
} gt_outbox_want;
/* True if the outbox and window of every peer have room for its messages, and the cap allows
   `bytes` more bytes on the wire.  If not, *full is the index of the first want without room.  If
   only the cap does not allow the messages, *full is n, and the outbox asks region 0 for more
   bytes: a later gt_outbox_ping or gt_outbox_pong returns true when they are allowed;
   gt_outbox_exhausted returns true if they never will be. */
bool gt_outbox_room(gt_outbox *o, const gt_outbox_want *wants, size_t n, gt_room_use use,
                    double bytes, size_t *full);
/* True if the outbox of the peer has room for the messages of an exchange. */
bool gt_outbox_has_room(const gt_outbox *o, size_t peer);

/* A message with the bytes [first, first + bytes) of `payload`. */
typedef struct {
  gt_payload *payload;
  size_t first, bytes;
  gt_frame_header head; /* kind, codec, range, value, detail, flags and route */
  /* If the peer's outbox is full, the message replaces the newest one whose sending has not
     begun. */
  bool replace;
} gt_outbox_message;
/* Posts a message.  Requires room, unless the message can replace another. */
void gt_outbox_post(gt_outbox *o, size_t peer, const gt_outbox_message *message);
/* Call when a message of the outbox has been sent.  False: it is no longer in the outbox. */
bool gt_outbox_departed(gt_outbox *o, size_t peer, uint64_t cookie);
/* Call when the peer has acknowledged every message up to this sequence number; late: when it had
   data to send.  False: it had done so already. */
bool gt_outbox_acknowledged(gt_outbox *o, size_t peer, int64_t sequence, bool late);
/* Gives the gateway the messages that waited for bytes. */
void gt_outbox_retry(gt_outbox *o);

/* Keeps what is posted to the peer until the acknowledgement of its message can go with it (true),
   and lets it leave (false).  No-op unless `carries`. */
void gt_outbox_pause(gt_outbox *o, size_t peer, bool pauses);
/* Call when a message of the peer has arrived.  Its sequence number must be the next one. */
void gt_outbox_received(gt_outbox *o, size_t peer, int64_t sequence);
/* Counts the oldest `more` messages of the peer as taken, and acknowledges all messages taken, now
   or later (carries). */
void gt_outbox_ack(gt_outbox *o, size_t peer, int64_t more);
/* Sends the acknowledgements that wait for data (carries): there is none to come. */
void gt_outbox_ack_owed(gt_outbox *o);

/* ---- control --------------------------------------------------------------------------------- */

/* Sends a control message with a copy of `bytes` bytes; all: to every other region. */
void gt_outbox_control(gt_outbox *o, size_t peer, gt_frame_header head, const void *body,
                       size_t bytes);
void gt_outbox_control_all(gt_outbox *o, gt_frame_header head);
/* Sends a heartbeat (PING). */
void gt_outbox_beat(gt_outbox *o, size_t peer);
/* Take a heartbeat of a peer (ping) or the answer to one (pong); gt_outbox_answer answers a
   heartbeat.  True: more bytes are allowed; call gt_outbox_retry. */
bool gt_outbox_ping(gt_outbox *o, size_t from, const gt_frame_header *head);
void gt_outbox_answer(gt_outbox *o, size_t from, const gt_frame_header *head);
bool gt_outbox_pong(gt_outbox *o, size_t from, const gt_frame_header *head);

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Counts bytes that were sent without the outbox (activations), or the bytes that a peer reports as
   sent. */
void gt_outbox_left(gt_outbox *o, double bytes);
void gt_outbox_reported(gt_outbox *o, size_t peer, double bytes);
/* Return the bytes that this region has posted, and those that all regions have posted, as far as
   known. */
double gt_outbox_posted(const gt_outbox *o);
double gt_outbox_wan_bytes(const gt_outbox *o);
/* True if some message has not left yet. */
bool gt_outbox_sends(const gt_outbox *o);
/* True if messages wait for bytes that the cap will never allow: the run has to end. */
bool gt_outbox_exhausted(const gt_outbox *o);

/* ---- views and state ------------------------------------------------------------------------- */

typedef struct {
  size_t queued, unacknowledged; /* messages */
  size_t most;                   /* maximum number of unacknowledged messages */
  /* sequence numbers: the last one sent; the last ones of the peer taken and received */
  int64_t sent, taken, received;
  double bandwidth_bps, latency_s; /* measured; 0: not yet */
  /* Mean and longest time from the post of a message until the peer has taken it, of the messages
     that were acknowledged since this start; 0: none. */
  double staleness_s, staleness_s_longest;
  /* Recent measurements: a sample that is t seconds old has the weight exp(-t / 30). */
  double late_bps, late_latency_s;
  /* Time by which the peer's clock is ahead of this region's clock, from the quickest recent
     answer, if both directions take the same time.  compared: the peer has answered. */
  gt_ns ahead;
  bool compared;
} gt_outbox_view;
gt_outbox_view gt_outbox_get_view(const gt_outbox *o, size_t peer);
/* Returns the number of unacknowledged messages to all peers. */
size_t gt_outbox_unacknowledged(const gt_outbox *o);

/* Saves the state, or loads it.  Names: "ps/peer/...", "ps/message/...".  left: bytes of the
   training's traffic sent before and after all resumes, as the gateway counts them.  size: returns
   the bytes of a whole message with this header. */
void gt_outbox_save(gt_outbox *o, gt_state *state);
gt_status gt_outbox_load(gt_outbox *o, const gt_state *state, double left,
                         size_t (*size)(const void *ctx, const gt_frame_header *head),
                         const void *ctx);
