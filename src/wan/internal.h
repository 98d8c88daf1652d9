/* The internal interface of wan: transports, timings, queues, and the two directions of a peer. */
#pragma once

#include "geotrain/net.h"
#include "geotrain/wan.h"

#define GT_FRAME_MAGIC       UINT32_C(0x31465447) /* "GTF1" */
#define GT_CONTROL_BYTES_MAX ((size_t)4096)
/* Under the virtual clock the arrival time follows each frame. */
#define GT_STAMP_BYTES sizeof(gt_ns)

/* True for bulk messages that are rare: at the end of the run, or in an epoch. */
static inline bool gt_msg_is_rare(uint32_t kind) {
  return kind == GT_MSG_REPORT || kind == GT_MSG_MODEL || kind == GT_MSG_GROUP;
}

/* ---- transports ------------------------------------------------------------------------------ */

typedef struct gt_transport gt_transport;
typedef enum { GT_NOT_LOST, GT_STARTED_AGAIN, GT_ENDED } gt_loss;

typedef struct {
  size_t nregions, self;
  const size_t *windows; /* nregions: largest number of frames in flight to each peer */
  size_t frame_bytes;    /* of the largest frame, header included */
  gt_endpoint *endpoint; /* borrowed; NULL: MPI */
} gt_transport_spec;

typedef struct {
  uint8_t *frame;
  size_t bytes;
} gt_past_frame;

/* Delivers frames to a peer: whole, intact and in the order sent.  Only close blocks.  In a group
   (peers_apart.c), frames stay borrowed until the transport is closed. */
typedef struct {
  const char *name;
  /* servers: borrowed; NULL: the messages of a group (peers_apart.c), whose close does not wait for
     peers */
  gt_transport *(*open)(gt_peers *servers, const gt_transport_spec *spec);
  /* Makes connections and continues what waits for them.  NULL: no-op. */
  void (*progress)(gt_transport *t);
  /* Starts sending; the frame is borrowed until `sent` returns true.  slot: 0..window-1, free. */
  void (*send_frame)(gt_transport *t, size_t peer, size_t slot, const void *frame, size_t bytes);
  bool (*sent)(gt_transport *t, size_t peer, size_t slot);
  /* True if bytes for the peer wait until a connection takes them.  NULL: while any is not sent. */
  bool (*waits)(const gt_transport *t, size_t peer);
  /* Returns the next frame that has arrived from the peer, valid until `release`; NULL: none. */
  const void *(*receive)(gt_transport *t, size_t peer, size_t *bytes);
  void (*release)(gt_transport *t, size_t peer);
  /* Says, once, that the peer has started again, and has none of the frames so far, or that it has
     ended with an error, and is forgotten.  `receive` returns none of its frames before.  NULL:
     never. */
  gt_loss (*lost)(gt_transport *t, size_t peer);
  /* Nothing is sent to the peer, and none of its frames is received, until it starts again. */
  void (*forget)(gt_transport *t, size_t peer);
  /* True if the peer has ended well.  NULL: not known. */
  bool (*left)(const gt_transport *t, size_t peer);
  /* Returns when bytes of the peer last arrived, also of a frame that is not complete.  NULL: not
     known. */
  gt_ns (*heard)(const gt_transport *t, size_t peer);
  /* Returns when every region has called it; frames that still arrive are dropped.  Collective;
     limit_s: how long to wait for the others. */
  void (*close)(gt_transport *t, double limit_s);
  /* The following are of a group's transport. */
  /* Tells the other regions that this one ends with the code; GT_OK: it needs nothing more.  Never
     waits long: it is a gt_on_panic function. */
  void (*say_bye)(void *t, gt_status code);
  /* True if the peer is connected, as far as is known. */
  bool (*here)(const gt_transport *t, size_t peer);
  /* True if the peer was there, has not said that it is done, and has been away for the
     patience. */
  bool (*absent)(const gt_transport *t, size_t peer);
  /* From now on a region that starts again, or comes for the first time, gets these frames instead
     of those kept, and one that is there and late (nregions) after those kept; borrowed.  A late
     one that comes before gets none until then. */
  void (*repeat)(gt_transport *t, const gt_past_frame *frames, size_t n, const bool *late);
} gt_transport_ops;

extern const gt_transport_ops gt_transport_mpi, gt_transport_tcp;

/* ---- endpoints ------------------------------------------------------------------------------- */

/* The first member of each implementation. */
struct gt_endpoint {
  const gt_transport_ops *ops;
  void (*close)(gt_endpoint *endpoint);
  const char **names; /* nregions; owned, the texts too */
  size_t nregions, self;
  uint64_t run_id;
  uint64_t start; /* number of this start of the region: random, never 0 */
  bool restarts, returns;
  bool meeting;      /* a group has not completed its first exchange: the run has not begun */
  gt_status code;    /* with which this region ends */
  uint64_t *relayed; /* nregions: bytes copied to each region for another one */
  bool *late;        /* nregions: the run has begun without the region */
  bool (*enough)(const void *ctx, const bool *there); /* NULL: all must be there to begin */
  const void *enough_ctx;
  double patience_s;
};

/* True if a region that ends with an error, or starts again, does not end the others. */
static inline bool gt_endpoint_takes_back(const gt_endpoint *e) {
  return e->restarts || e->meeting;
}
/* Sets what all endpoints have; names are copied.  gt_endpoint_free frees it. */
void gt_endpoint_init(gt_endpoint *endpoint, const gt_transport_ops *ops, const char *const *names,
                      size_t nregions, size_t self);
void gt_endpoint_free(gt_endpoint *endpoint);

/* ---- sending --------------------------------------------------------------------------------- */

typedef struct {
  gt_frame_header head;
  const uint8_t *payload;
  void *owned;         /* the copy of a control message's payload, or NULL */
  size_t bytes, taken; /* taken: bytes in frames that have begun to leave */
  bool begun;
  uint64_t cookie;
  gt_ns queued;
} gt_out_message;

/* A growing ring; in a steady state it does not grow. */
typedef struct {
  gt_out_message *at;
  size_t capacity, first, n;
} gt_out_queue;

gt_out_message *gt_queue_push(gt_out_queue *q);
gt_out_message *gt_queue_at(const gt_out_queue *q, size_t i);
void gt_queue_pop(gt_out_queue *q);
void gt_queue_remove(gt_out_queue *q, size_t i);
void gt_queue_close(gt_out_queue *q);

/* A frame between the link and the transport. */
typedef struct {
  uint8_t *frame;
  size_t bytes;
  gt_ns depart, arrive;
  uint64_t cookie; /* of the message whose last frame this is, or 0 */
} gt_slot;

#define GT_LINK_WORDS (sizeof(gt_link_state) / sizeof(int64_t))

/* Slots are a ring of `window`; the counters only grow: freed <= launched <= filled, told <=
   filled. */
typedef struct {
  gt_out_queue control, bulk; /* bulk: data and bulk kinds, in the order queued */
  gt_slot *slots;
  uint8_t *memory;
  size_t window;
  uint64_t filled, told, launched, freed;
  gt_link_spec spec;
  size_t noutages; /* noutages of the spec, in effect once the run has begun */
  gt_wire wire;
  bool link_loaded; /* from a checkpoint: traces and outages resume there */
  bool gone;        /* the peer is given up: messages to it are dropped */
  gt_ledger_row ledger[GT_LEDGER_KINDS];
  int64_t saved[GT_LINK_WORDS]; /* the link's state with relative times, borrowed by a checkpoint */
  int64_t saved_wire;
} gt_sender;

static inline gt_slot *gt_sender_slot(gt_sender *s, uint64_t i) {
  return &s->slots[i % s->window];
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* A frame that has been received but not delivered. */
typedef struct gt_held_frame {
  struct gt_held_frame *next;
  gt_ns arrive;
  size_t peer, bytes;
  uint64_t restarts; /* of the peer before it came */
  uint8_t *frame;
} gt_held_frame;

typedef struct {
  gt_held_frame *first, *last;
} gt_held_queue;

typedef struct {
  gt_ns heard;
  uint64_t restarts;    /* how often the peer has started again */
  double stream_bps;    /* rate at which frames come in; 0: unlimited */
  gt_held_queue coming; /* under the virtual clock, in order of arrival */
  gt_frame_header head; /* of the message under assembly */
  bool assembling;
  size_t have;
  uint8_t *message; /* message_max bytes, or a rare message's; NULL: none of several frames yet */
} gt_receiver;

/* ---- timing ---------------------------------------------------------------------------------- */

/* When frames leave and arrive, and which side waits until then.  `now` is wall time, except under
   the virtual clock. */
typedef struct {
  /* Links follow the link model: a frame occupies its link until the model says that it has left.
     Otherwise a frame has left when the transport no longer needs it. */
  bool modelled;
  /* Sets when the frame in the slot leaves and arrives. */
  void (*schedule)(gt_gateway *g, size_t peer, gt_slot *slot, gt_ns queued, gt_ns now);
  /* Gives the transport the frames that are due.  True if there were any. */
  bool (*launch)(gt_gateway *g, size_t peer, gt_ns now);
  /* True if the transport is done with the oldest launched slot. */
  bool (*reclaim)(gt_gateway *g, size_t peer, gt_ns now);
  /* Called for each frame received by the transport: delivers it, or holds it until its arrival
     time. Borrowed for the call. */
  void (*arrive)(gt_gateway *g, size_t peer, const uint8_t *frame, size_t bytes, gt_ns now);
  /* Delivers held frames, if gt_gateway_poll is allowed to.  next_landing: when it can deliver the
     next. */
  bool (*land)(gt_gateway *g, gt_ns now);
  gt_ns (*next_landing)(const gt_gateway *g);
  /* Called before the transport closes: frames that have left still arrive.  Can sleep.  NULL:
     no-op. */
  void (*finish)(gt_gateway *g);
} gt_timing_ops;

/* real.c.  Direct: frames are sent at once.  Emulated: the sender holds each frame until its
   arrival time by the model. */
extern const gt_timing_ops gt_timing_direct, gt_timing_emulated;
/* virtual.c, from gt_gateway_virtual on: frames are sent at once, with their arrival time. */
extern const gt_timing_ops gt_timing_virtual;

/* ---- the gateway ----------------------------------------------------------------------------- */

typedef struct gt_agreement gt_agreement;

struct gt_gateway {
  size_t nregions, self, frame_max, message_max, group_max; /* payload bytes */
  gt_gateway_events events;
  const char **names; /* nregions */
  bool whole;         /* each message of data is one frame */
  size_t wire_max;    /* bytes of the longest frame with its header */
  const gt_transport_ops *ops;
  gt_transport *transport;
  const gt_timing_ops *timing;
  gt_sender *senders;     /* nregions; [self] unused */
  gt_receiver *receivers; /* nregions; [self] unused */
  uint64_t seed;
  gt_link_access access;
  int64_t saved_access[2]; /* busy until, relative to now; borrowed by a checkpoint */
  gt_access up;            /* this region's access to the WAN */
  gt_landing landing;      /* the same for received frames; `frame` is a gt_held_frame */
  gt_held_frame *spare;    /* free list */
  gt_link_objects read;    /* received */
  gt_link_function function;
  gt_ns emulation_cpu;
  /* Under the virtual clock; else NULL. */
  gt_agreement *agreement;
  uint8_t *clock_frames; /* one per region, in wire format */
};

static inline size_t gt_message_max(const gt_gateway *g, uint32_t kind) {
  if (gt_msg_is_control(kind)) return GT_CONTROL_BYTES_MAX;
  return kind == GT_MSG_GROUP ? g->group_max : g->message_max;
}

/* True if the header of such a message has the offset of its frame. */
static inline bool gt_gateway_has_offset(const gt_gateway *g, uint32_t kind) {
  return !gt_msg_is_control(kind) && !(g->whole && gt_msg_is_data(kind));
}

/* sender.c: the next frame to leave.  modelled: as in gt_timing_ops. */
/* Returns the queue whose first frame the link takes next, or NULL: nothing is queued, the link is
   busy, or all slots are in use. */
gt_out_queue *gt_sender_next_queue(gt_sender *s, bool modelled, gt_ns now);
/* True if a slot is free for a frame of any kind. */
bool gt_sender_has_room(const gt_sender *s);
/* Puts the frame on its modelled link: sets when it leaves and arrives. */
void gt_sender_step(gt_gateway *g, size_t peer, gt_slot *slot, gt_ns queued);
/* Returns when the sender needs the next poll. */
gt_ns gt_sender_due(const gt_sender *s, bool modelled);

/* receive.c: reassembles messages from frames. */
/* Takes every frame of the peer from the transport and gives it to the timing.  True if there were
   any. */
bool gt_receive_frames(gt_gateway *g, size_t peer, gt_ns now);
/* Returns the header; bytes beyond the end of a short frame are zero. */
gt_frame_header gt_receive_header(const uint8_t *frame, size_t bytes);
/* Ends the job if the frame is invalid. */
void gt_receive_check(const gt_gateway *g, size_t peer, const uint8_t *frame, size_t bytes);
/* Adds a checked frame to its message; delivers the message to on_message when it is complete. */
void gt_receive_hand_on(gt_gateway *g, size_t peer, const uint8_t *frame, gt_ns now);
/* Copies the frame to the end of the peer's queue, until it arrives. */
void gt_receive_hold(gt_gateway *g, size_t peer, const uint8_t *frame, size_t bytes, gt_ns arrive);
/* Takes the peer's first held frame: delivers it, or puts it on the access. */
void gt_receive_coming(gt_gateway *g, size_t peer, gt_ns now);
/* Copies a frame that arrives at `now` and puts it on the access. */
void gt_receive_put(gt_gateway *g, size_t peer, const uint8_t *frame, size_t bytes, gt_ns now);
/* Delivers the next frame that passes the access. */
void gt_receive_landed(gt_gateway *g, gt_ns now);
void gt_receive_close(gt_gateway *g);

/* agreement.c: the time before which a region knows every frame that arrives (wan.h).  Numbers
   only, no MPI.  All regions open the same rounds.  In each round a region announces a lower bound
   of its next event, and the earliest arrival at each region of the frames sent since the last
   round. */
/* delay_min: as in gt_gateway_virtual. */
gt_agreement *gt_agreement_create(size_t nregions, size_t self, const gt_ns *delay_min);
void gt_agreement_close(gt_agreement *a);
/* Records a frame that arrives at the region at `arrive`. */
void gt_agreement_sent(gt_agreement *a, size_t region, gt_ns arrive);
/* Opens the next round with this region's announcement; GT_NEVER: it takes part in no later
   round. */
void gt_agreement_open(gt_agreement *a, gt_ns next);
/* False if the region has announced GT_NEVER; it gets no further announcements. */
bool gt_agreement_takes_part(const gt_agreement *a, size_t region);
/* Writes this region's announcement in wire format, gt_agreement_bytes long; alive: a heartbeat,
   which belongs to no round. */
size_t gt_agreement_bytes(const gt_agreement *a);
void gt_agreement_write(const gt_agreement *a, bool alive, uint8_t *word);
/* Reads another region's announcement; false if it is of neither the open round nor the next. */
bool gt_agreement_read(gt_agreement *a, size_t region, const uint8_t *word);
/* Returns the first region whose announcement is missing in the open round; nregions: none. */
size_t gt_agreement_missing(const gt_agreement *a);
/* True if all participants have announced: all frames that arrive before *safe have been sent. */
bool gt_agreement_reached(gt_agreement *a, gt_ns *safe);
/* Returns the result of the last round. */
gt_ns gt_agreement_safe(const gt_agreement *a);

/* ledger.c */
void gt_ledger_count(gt_sender *s, const gt_frame_header *head, bool last);
