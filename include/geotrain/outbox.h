/* outbox: what a region sends to the others, from posting to acknowledgement: bounded outboxes,
   bodies, sequence numbers, heartbeats, the cap on bytes, and what is measured of the links.
   Layer 4.  Local: it never calls MPI, reads a clock or does I/O.  Its owner gives it the time with
   each event; it calls nothing but the gateway's table. */
#ifndef GEOTRAIN_OUTBOX_H
#define GEOTRAIN_OUTBOX_H

#include "geotrain/link.h"

typedef struct gt_outbox gt_outbox;

/* ---- gateway --------------------------------------------------------------------------------- */

/* wan.h has the contract of send.  A body of data is borrowed until gt_outbox_departed of its
   cookie, or until it is dropped. */
typedef struct {
  void *ctx;
  void (*send)(void *ctx, size_t peer, const gt_frame_header *head, const void *body, size_t bytes,
               uint64_t cookie);
  /* Forgets the message `cookie`; false: it has begun to leave. */
  bool (*drop)(void *ctx, size_t peer, uint64_t cookie);
} gt_outbox_gateway;

/* ---- life ------------------------------------------------------------------------------------ */

typedef struct {
  size_t nregions, self;
  /* Exchanges that may wait to leave on a link; that may have left and not be acknowledged. */
  size_t outbox, window;
  bool with_memory; /* false: bodies have no data (simulation) */
  double limit;     /* most bytes of all regions together; 0: none */
  /* What a heartbeat says of the region: its samples, and a number that changes while it works. */
  const int64_t *samples;
  const uint32_t *number;
  gt_outbox_gateway gateway;
} gt_outbox_spec;

gt_outbox *gt_outbox_create(const gt_outbox_spec *spec);
/* Takes NULL. */
void gt_outbox_close(gt_outbox *o);

/* Bodies of whole messages that there are from the start where messages are not pieces: two more
   than may be under way, because a replacing message is posted even if all earlier ones have begun
   to leave, and one to fill. */
#define GT_OUTBOX_SPARE ((size_t)3)

/* How an exchange uses the outbox.  unit: the most messages that one exchange puts on a link; body:
   bytes of its largest message if it is posted whole, 0: it posts pieces or nothing.  origin: this
   region in the routes of messages. */
typedef struct {
  size_t unit, body, origin;
  /* nregions, for the cap: the most that a region posts at a time, in bytes on the wire; it posts
     what others contribute, even when it makes no more steps.  Borrowed while the outbox lives. */
  const double *at_once;
  const bool *forwards;
} gt_outbox_use;
/* Opens the outboxes; once, before anything is posted. */
void gt_outbox_open(gt_outbox *o, const gt_outbox_use *use);

/* Sets the time of the event that is handled from now on. */
void gt_outbox_at(gt_outbox *o, gt_ns now);
/* Sets the checkpoint round of all messages that are sent from now on. */
void gt_outbox_round(gt_outbox *o, int64_t round);
/* Holds the data for the peer here (true), or lets it go (false). */
void gt_outbox_hold(gt_outbox *o, size_t peer, bool holds);
/* Call when the run stops: nothing waits for bytes any more. */
void gt_outbox_stop(gt_outbox *o);

/* ---- data ------------------------------------------------------------------------------------ */

/* A body of `bytes` bytes.  Free again when all regions to which it was posted have acknowledged
   it. */
typedef struct {
  void *data; /* NULL in a simulation */
  size_t bytes, capacity;
  int refs;
} gt_payload;

/* Returns a body to fill and post; its contents are undefined. */
gt_payload *gt_outbox_body(gt_outbox *o, size_t bytes);

/* What messages are posted for.  Where updates are forwarded, these and the region's own have an
   outbox each, so that neither starves the other. */
typedef enum { GT_ROOM_ANY, GT_ROOM_OWN, GT_ROOM_FORWARDED, GT_ROOM_REPLACING } gt_room_use;
/* Messages that are to be posted to a peer. */
typedef struct {
  size_t peer, messages;
} gt_outbox_want;
/* True if every peer's outbox and window have room for its messages (always, if they replace
   others), and the cap allows `bytes` more on the wire in all.  If not, *full is the first of the n
   that has no room, or n if bytes are missing: these are asked for.  A later gt_outbox_ping or
   gt_outbox_pong says that they are allowed, or gt_outbox_exhausted that they never are. */
bool gt_outbox_room(gt_outbox *o, const gt_outbox_want *wants, size_t n, gt_room_use use,
                    double bytes, size_t *full);
/* True if there may be room for messages of an exchange to the peer. */
bool gt_outbox_has_room(const gt_outbox *o, size_t peer);

/* The bytes [first, first + bytes) of `payload`. */
typedef struct {
  gt_payload *payload;
  size_t first, bytes;
  gt_frame_header head; /* only kind, range, value, detail, flags and route are used */
  /* If the peer's outbox is full, the message replaces the newest one there that has not begun to
     leave. */
  bool replace;
} gt_outbox_message;
/* Requires room, unless the message may replace another. */
void gt_outbox_post(gt_outbox *o, size_t peer, const gt_outbox_message *message);
/* Call when a message of the outbox has left; false: it is not here any more. */
bool gt_outbox_departed(gt_outbox *o, size_t peer, uint64_t cookie);
/* Call when the peer has taken every message up to this one.  False: that was known. */
bool gt_outbox_acknowledged(gt_outbox *o, size_t peer, int64_t sequence);
/* Hands over what waited for bytes. */
void gt_outbox_retry(gt_outbox *o);

/* Call when the peer's message of this sequence has come; it is the next one. */
void gt_outbox_received(gt_outbox *o, size_t peer, int64_t sequence);
/* Counts the oldest `more` messages of the peer as taken, and acknowledges all that are. */
void gt_outbox_ack(gt_outbox *o, size_t peer, int64_t more);

/* ---- control --------------------------------------------------------------------------------- */

/* Sends a control message, with `bytes` bytes that are copied; all: to every other region. */
void gt_outbox_control(gt_outbox *o, size_t peer, gt_frame_header head, const void *body,
                       size_t bytes);
void gt_outbox_control_all(gt_outbox *o, gt_frame_header head);
/* Sends a heartbeat (PING). */
void gt_outbox_beat(gt_outbox *o, size_t peer);
/* Take a heartbeat of a peer, which gt_outbox_answer answers, and an answer.  done: it makes no
   more steps.  True: what waited for bytes may go on (gt_outbox_retry). */
bool gt_outbox_ping(gt_outbox *o, size_t from, const gt_frame_header *head, bool done);
void gt_outbox_answer(gt_outbox *o, size_t from, const gt_frame_header *head);
bool gt_outbox_pong(gt_outbox *o, size_t from, const gt_frame_header *head);

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Counts bytes that left without the outbox (activations); that a peer says it has sent. */
void gt_outbox_left(gt_outbox *o, double bytes);
void gt_outbox_reported(gt_outbox *o, size_t peer, double bytes);
/* Returns what this region has posted; what all have, as far as known. */
double gt_outbox_posted(const gt_outbox *o);
double gt_outbox_wan_bytes(const gt_outbox *o);
/* True if bytes are waited for that the cap does not allow: the run has to end. */
bool gt_outbox_exhausted(const gt_outbox *o);

/* ---- views and state ------------------------------------------------------------------------- */

typedef struct {
  size_t queued, unacknowledged; /* messages */
  size_t most;                   /* messages that may be unacknowledged */
  int64_t sent, taken, received; /* sequence of the last one: sent; of the peer: taken, received */
  double bandwidth_bps, latency_s; /* measured; 0: not yet */
  /* The same, recently: a sample of t seconds ago has the weight exp(-t / 30). */
  double late_bps, late_latency_s;
  /* How far the peer's clock is ahead of this one's, by the quickest recent answer, if the two
     directions take the same time; `compared`: it has answered. */
  gt_ns ahead;
  bool compared;
} gt_outbox_view;
gt_outbox_view gt_outbox_get_view(const gt_outbox *o, size_t peer);
/* Messages that are not acknowledged, to all peers. */
size_t gt_outbox_unacknowledged(const gt_outbox *o);

/* Saves the state under the names "ps/peer/...", "ps/message/...".  left: bytes of the training's
   traffic that have left over all resumes, as the gateway counts them; sizes: bytes of a whole
   message with this header. */
void gt_outbox_save(gt_outbox *o, gt_state *state);
gt_status gt_outbox_load(gt_outbox *o, const gt_state *state, double left,
                         size_t (*size)(const void *ctx, const gt_frame_header *head),
                         const void *ctx);

#endif
