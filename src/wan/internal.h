/* What the modules of wan share: transports, queues, and a peer's two directions. */
#ifndef GEOTRAIN_WAN_INTERNAL_H
#define GEOTRAIN_WAN_INTERNAL_H

#include "geotrain/wan.h"

#define GT_FRAME_MAGIC       UINT32_C(0x31465447) /* "GTF1" */
#define GT_CONTROL_BYTES_MAX ((size_t)4096)
#define GT_STAMP_BYTES       sizeof(gt_ns) /* behind a frame, under the virtual clock: when it arrives */

static inline bool gt_msg_is_bulk(uint32_t kind) {
  return kind == GT_MSG_REPORT || kind == GT_MSG_MODEL;
}

/* ---- transports -------------------------------------------------------------------------------------------------------- */

typedef struct gt_transport gt_transport;

typedef struct {
  size_t nregions, self;
  const size_t *windows; /* nregions: frames that may be under way to each peer at a time */
  size_t frame_bytes;    /* of the largest frame, header included */
} gt_transport_spec;

/* How frames reach a peer: whole, intact and in the order sent.  Nothing blocks but close. */
typedef struct {
  const char *name;
  gt_transport *(*open)(MPI_Comm ps_comm, const gt_transport_spec *spec);
  /* Starts sending; the frame is borrowed until `sent` says true.  slot: 0..window-1, free. */
  void (*send_frame)(gt_transport *t, size_t peer, size_t slot, const void *frame, size_t bytes);
  bool (*sent)(gt_transport *t, size_t peer, size_t slot);
  /* The next frame that has arrived from the peer, valid until `release`; NULL: none. */
  const void *(*receive)(gt_transport *t, size_t peer, size_t *bytes);
  void (*release)(gt_transport *t, size_t peer);
  /* Ends when every region has come here: frames that still arrive are dropped.  Collective; limit_s: for them to come. */
  void (*close)(gt_transport *t, double limit_s);
} gt_transport_ops;

extern const gt_transport_ops gt_transport_mpi;

/* ---- sending ------------------------------------------------------------------------------------------------------------ */

typedef struct {
  gt_frame_header head;
  const uint8_t *payload;
  void *owned;         /* the copy of a control message's payload, or NULL */
  size_t bytes, taken; /* of these, in frames that have begun to leave */
  bool begun;
  uint64_t cookie;
  gt_ns queued;
} gt_out_message;

/* A ring that grows; in a steady state it does not. */
typedef struct {
  gt_out_message *at;
  size_t capacity, first, n;
} gt_out_queue;

gt_out_message *gt_queue_push(gt_out_queue *q);
gt_out_message *gt_queue_at(const gt_out_queue *q, size_t i);
void gt_queue_pop(gt_out_queue *q);
void gt_queue_close(gt_out_queue *q);

/* A frame between the link and the transport. */
typedef struct {
  uint8_t *frame;
  size_t bytes;
  gt_ns depart, arrive;
  uint64_t cookie; /* of the message whose last frame this is, or 0 */
} gt_slot;

#define GT_LINK_WORDS (sizeof(gt_link_state) / sizeof(int64_t))

/* Slots are a ring of `window`; the counters only grow: freed <= launched <= filled, told <= filled. */
typedef struct {
  gt_out_queue control, bulk; /* bulk: data and bulk kinds, in the order queued */
  gt_slot *slots;
  uint8_t *memory;
  size_t window;
  uint64_t filled, told, launched, freed;
  gt_link_spec spec;
  gt_link_state link;
  bool link_loaded; /* from a checkpoint: its life goes on */
  gt_ledger_row ledger[GT_LEDGER_KINDS];
  gt_ns wire, wire_until;       /* time in which frames were leaving, and up to when it is counted */
  int64_t saved[GT_LINK_WORDS]; /* the link's state, times relative, as lent to a checkpoint */
  int64_t saved_wire;
} gt_sender;

static inline gt_slot *gt_sender_slot(gt_sender *s, uint64_t i) {
  return &s->slots[i % s->window];
}

/* ---- receiving ---------------------------------------------------------------------------------------------------------- */

/* A frame that is here and has not been handed on. */
typedef struct gt_held_frame {
  struct gt_held_frame *next;
  gt_ns arrive;
  size_t peer, bytes;
  uint8_t *frame;
} gt_held_frame;

typedef struct {
  gt_held_frame *first, *last;
} gt_held_queue;

typedef struct {
  gt_ns heard;
  gt_held_queue coming; /* under the virtual clock: by time of arrival */
  gt_frame_header head; /* of the message under assembly */
  bool assembling;
  size_t have;
  uint8_t *message; /* message_max; NULL: none of several frames has come */
} gt_receiver;

typedef struct gt_clock_agreement gt_clock_agreement;

struct gt_gateway {
  size_t nregions, self, frame_max, message_max; /* payload bytes */
  bool emulate;
  gt_gateway_events events;
  const gt_transport_ops *ops;
  gt_transport *transport;
  gt_sender *senders;     /* nregions; [self] unused */
  gt_receiver *receivers; /* nregions; [self] unused */
  uint64_t seed;
  double access_bps;
  int64_t saved_access[2];       /* busy until, relative, as lent to a checkpoint */
  gt_access up, down;            /* this region's access to the WAN */
  gt_held_queue landing;         /* frames that pass the access, in order */
  gt_held_frame *spare;          /* to be used again */
  gt_clock_agreement *agreement; /* NULL: real time */
  gt_ns emulation_cpu;
};

/* emulate.c */
/* The queue whose front frame the link takes next, or NULL: nothing is queued, or the link is busy, or every slot is. */
gt_out_queue *gt_sender_next_queue(gt_sender *s, bool emulate, gt_ns now);
/* A slot is free for a frame of any kind. */
bool gt_sender_has_room(const gt_sender *s);
/* When a frame in this slot leaves and arrives, by the link model; without emulation at once. */
void gt_sender_schedule(gt_gateway *g, gt_sender *s, gt_slot *slot, gt_ns queued, gt_ns now);
/* Frames whose time has come go to the transport.  True when any did. */
bool gt_sender_launch(gt_gateway *g, size_t peer, gt_ns now);
/* When the sender wants to be polled next. */
gt_ns gt_sender_due(const gt_sender *s, bool emulate);
size_t gt_sender_window(const gt_link_spec *spec, bool emulate, size_t frame_bytes);

/* receive.c */
/* Takes every frame that has arrived from the peer: hands it on, or holds it until it has passed the access, or until its virtual time. */
bool gt_receive_frames(gt_gateway *g, size_t peer, gt_ns now);
/* Hands on what has passed the access. */
bool gt_receive_landed(gt_gateway *g, gt_ns now);
void gt_receive_close(gt_gateway *g);
/* A frame that is held, from its queue: handed on, or put on the access. */
void gt_receive_coming(gt_gateway *g, size_t peer, gt_ns now);
void gt_receive_first_landed(gt_gateway *g, gt_ns now);

/* virtual.c */
/* The frame's time of arrival goes behind it, and the peers will be told of it. */
void gt_clock_agreement_stamp(gt_gateway *g, size_t peer, gt_slot *slot);
/* A CLOCK frame. */
void gt_clock_agreement_clock_frame(gt_gateway *g, size_t peer, const uint8_t *payload, size_t bytes);
/* The time of arrival of a frame that has come; ends the job where it is one that cannot be. */
gt_ns gt_clock_agreement_check(const gt_gateway *g, size_t peer, gt_ns arrive);
/* Waits until the transport does not need the slot any more. */
void gt_clock_agreement_reclaim(gt_gateway *g, size_t peer, size_t slot);
void gt_clock_agreement_close(gt_gateway *g);

/* ledger.c */
void gt_ledger_count(gt_sender *s, const gt_frame_header *head, bool last);
/* Something was leaving in this time. */
void gt_ledger_wire(gt_sender *s, gt_ns from, gt_ns until);

#endif
