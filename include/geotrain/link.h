/* link: the one model of a WAN link, the message header, frames.  Floor 2.  No MPI, no clock, no memory: pure steps. */
#ifndef GEOTRAIN_LINK_H
#define GEOTRAIN_LINK_H

#include "geotrain/base.h"

/* ---- the link model --------------------------------------------------------------------------------------------- */

/* One direction between two regions.  bandwidth_bps 0: unlimited. */
typedef struct {
  double bandwidth_bps, latency_s, jitter_s; /* latency one way; jitter: standard deviation, seeded, never reorders */
} gt_link_spec;

/* busy_until: when the last frame given to the link has left the sender; last_arrival: no later frame arrives before it. */
typedef struct {
  gt_ns busy_until, last_arrival;
  gt_rng rng;
} gt_link_state;

typedef struct {
  gt_ns depart; /* the frame's last bit has left the sender */
  gt_ns arrive; /* the frame is at the receiver */
} gt_link_times;

/* state of the direction from -> to. */
gt_link_state gt_link_start(uint64_t seed, size_t from, size_t to);
/* Gives the link a frame of size_bytes that is ready at `ready`; first come, first served.
   depart = max(ready, busy_until) + 8 size / bandwidth;  arrive = max(last_arrival, depart + max(0, latency + jitter z)). */
gt_link_times gt_link_step(gt_link_state *state, const gt_link_spec *spec, size_t size_bytes, gt_ns ready);

/* ---- messages and frames ---------------------------------------------------------------------------------------- */

#define GT_FRAME_HEADER_BYTES 64
#define GT_FRAME_PAYLOAD_MAX  ((size_t)1 << 20)
#define GT_PROTOCOL_VERSION   1

typedef enum {
  /* strategy traffic: ordered, acknowledged, saved while unacknowledged */
  GT_MSG_UPDATE = 1, /* additive: gradients or parameter updates */
  GT_MSG_STATE = 2,  /* a model */
  /* control: one frame each, sent before data, neither ordered with data nor resent */
  GT_MSG_HELLO = 16,
  GT_MSG_ACK,  /* value: the last applied sequence */
  GT_MSG_PING, /* value: the sender's clock; answered by PONG with the same value; also the heartbeat */
  GT_MSG_PONG,
  GT_MSG_ROUND,   /* value: checkpoint round opened; detail: exit code to stop with, or 0 */
  GT_MSG_WRITTEN, /* value: round durable at the sender */
  GT_MSG_DONE,    /* value: the region's last step; detail: its last data sequence */
  GT_MSG_JOINED,  /* after a resume; value: the rounds that the sender's strategy has applied; detail: its last data sequence */
  GT_MSG_BYE,
  /* bulk, not strategy traffic: framed like data, on their own sequence */
  GT_MSG_REPORT = 32, /* a region's result, JSON */
  GT_MSG_MODEL        /* a region's final model */
} gt_msg_kind;

static inline bool gt_msg_is_data(uint32_t kind) {
  return kind == GT_MSG_UPDATE || kind == GT_MSG_STATE;
}

/* What goes in front of every frame: 64 bytes, little endian, in this order (docs/wire-format.md). */
typedef struct {
  uint32_t magic;         /* "GTF1" */
  uint8_t kind, codec;    /* gt_msg_kind; codec 0: none */
  uint16_t from;          /* region id of the sender */
  uint32_t frame_bytes;   /* payload bytes in this frame */
  uint32_t round;         /* the sender's checkpoint round */
  uint64_t sequence;      /* per link and class, from 1 */
  uint64_t frame_offset;  /* of this frame's payload in the message */
  uint64_t message_bytes; /* payload bytes of the whole message */
  uint64_t value;         /* data: the sender's step or round number; control: see kinds */
  uint64_t detail;        /* data: samples behind the update; control: see kinds */
  uint32_t range;         /* fragment; 0: the whole model */
  uint32_t reserved;
} gt_frame_header;

/* Bytes that a message of payload_bytes puts on the wire: payload + 64 a frame. */
size_t gt_wire_bytes(size_t payload_bytes);

#endif
