/* A lane: the frames between this region and a peer, in both directions, and the connections that
   carry them. */
#pragma once

#include "internal.h"
#include "tcp.h"

#define GT_TCP_FORMER 16

/* One of the connections of a lane. */
typedef struct {
  gt_connection c;
  bool said, greeted; /* this side's and the peer's HELLO have been written and read */
  gt_ns checked;      /* when its silence was last measured */
  /* dialling; a peer that dials has none of it */
  gt_ns dial_at;
  int failures;
  const struct addrinfo *address; /* the next to try */
  /* sending */
  uint64_t last; /* the last frame begun on this connection; 0: none */
  bool sending;  /* a part of it, `taken` bytes, has been copied to `out` */
  size_t taken;
  uint8_t *out; /* bytes out_at to out_end wait for the socket; NULL before the first connection */
  size_t out_at, out_end;
  /* receiving */
  gt_tcp_record head;
  size_t have; /* bytes of head and frame */
  uint8_t *frame;
  bool ready; /* the frame is complete and waits for its turn and release */
  uint64_t sequence;
  size_t frame_bytes;
} gt_stream;

typedef struct {
  const uint8_t *frame; /* borrowed from the gateway until it is acknowledged */
  size_t bytes;
  gt_stream *carrier; /* the connection on which it has been begun; NULL: none */
} gt_lane_entry;

/* Frames outlive connections. */
typedef struct {
  gt_stream *streams; /* nstreams of the transport */
  gt_ns heard;        /* when bytes were last read */
  gt_ns lost;         /* when a connection to the peer was last lost */
  bool left;          /* the peer is done: it needs nothing more */
  gt_quiet quiet;
  gt_rng rng;
  /* which start of the peer */
  uint64_t start; /* the last known; 0: none */
  uint64_t former[GT_TCP_FORMER];
  size_t nformer;     /* all so far; the last GT_TCP_FORMER of them are known */
  bool restarted;     /* the peer has started again, and the user of the lane has not seen it */
  bool returned;      /* of a group: this start of the peer came when the run had begun */
  bool forgotten;     /* nothing is sent or received until the peer starts again */
  gt_ns refused_till; /* 0: the peer has not refused this start */
  /* sending: acked <= begun <= queued, but the peer can have passed frames to come if frames are
     kept */
  gt_lane_entry *queue;    /* a ring of `window`; frame n is at n % window */
  uint64_t *slot_sequence; /* nslots: the last frame of each slot */
  size_t nslots, window;
  uint64_t queued, begun, acked;
  /* receiving */
  bool ack_due;
  gt_stream *current; /* it has the frame that the user reads; NULL: none */
  uint64_t received;
} gt_lane;

struct gt_transport {
  gt_peers *servers; /* NULL: the transport of a group */
  gt_tcp *tcp;
  uint64_t id; /* the same in all regions; another in each transport */
  size_t frame_bytes, nstreams;
  /* Frames are kept and repeated to a region that has started again, and those that a peer has
     received from an earlier start of this region are not sent. */
  bool keeps;
  /* A region that starts again gets these instead of the frames kept; NULL: gets those. */
  const gt_past_frame *past;
  size_t npast;
  gt_lane *lanes; /* of all regions; that of this one is unused */
  bool closing;   /* every frame of this side is acknowledged; the others may hang up */
};

void gt_lane_open(gt_transport *t, size_t peer, size_t window);
void gt_lane_close(gt_transport *t, size_t peer);
/* Forgets the connection, logs why, and dials again later; frames stay. */
void gt_lane_lose(gt_transport *t, size_t peer, gt_stream *s, const char *why);

/* True if the peer is connected. */
bool gt_lane_here(const gt_transport *t, size_t peer);
/* True if the peer, another region, was there, has not said that it is done, and has had no
   connection for the patience. */
bool gt_lane_absent(const gt_transport *t, size_t peer);

/* Drops the frames of both directions; the peer's next start begins with none. */
void gt_lane_forget(gt_transport *t, size_t peer);

/* Returns why a greeting of the peer on the stream cannot be accepted; NULL: it can. */
const char *gt_lane_greeting_fault(const gt_transport *t, size_t peer, const gt_stream *s,
                                   const gt_tcp_record *hello);
/* True if another start of the peer than that of the greeting is connected, or came later. */
bool gt_lane_has_other(const gt_transport *t, size_t peer, const gt_tcp_record *hello);
/* Writes the header of a record without a frame. */
gt_tcp_record gt_lane_record(const gt_transport *t, size_t peer, const gt_stream *s,
                             gt_tcp_kind kind, uint64_t sequence);
/* Takes over a connection with the peer's greeting. */
void gt_lane_adopt(gt_transport *t, size_t peer, gt_stream *s, const gt_connection *c,
                   const gt_tcp_record *hello);
/* Puts this region's greeting on a new connection. */
void gt_lane_say_hello(gt_transport *t, size_t peer, gt_stream *s);

/* Queues a frame.  slot: as in gt_transport_ops. */
void gt_lane_queue(gt_transport *t, size_t peer, size_t slot, const void *frame, size_t bytes);
/* Queues the frames for a region that starts again, or comes late. */
void gt_lane_queue_past(gt_transport *t, size_t peer);
/* Loses the connections whose other side is silent. */
void gt_lane_check(gt_transport *t, size_t peer, gt_ns now);
/* Writes and reads what the sockets take and have. */
void gt_lane_pump_out(gt_transport *t, size_t peer);
void gt_lane_pump_in(gt_transport *t, size_t peer);
/* Returns the stream that has the next frame; NULL: it has not arrived. */
gt_stream *gt_lane_next(gt_transport *t, size_t peer);
/* Frees the frame returned by gt_lane_next. */
void gt_lane_release(gt_transport *t, size_t peer);
/* Says that this region ends with the code, unless every connection is busy. */
void gt_lane_say_bye(gt_transport *t, size_t peer, gt_status code);
