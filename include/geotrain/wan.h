/* wan: the gateway, through which all WAN traffic of a region passes: frames, emulation in real
   time, ledger.  Layer 4.  Used by PS ranks only.  Nothing here blocks: gt_gateway_poll makes all
   possible progress, and gt_gateway_next says when to poll again. */
#pragma once

#include "geotrain/link.h"
#include "geotrain/net_peers.h"
#include "geotrain/wan_endpoint.h"

typedef struct gt_gateway gt_gateway;

typedef struct {
  size_t nregions, self;
  const char *const *names;  /* nregions, for error messages; array copied, strings borrowed */
  const gt_link_spec *links; /* nregions: the direction self -> peer; [self] unused; borrowed */
  gt_link_access access;     /* of this region, shared by its links; only for modelled links */
  gt_link_function function; /* that this region is */
  /* nregions: the rate of a stream of frames from each peer (gt_link_stream_bps), for the model of
     this region's access; copied; NULL: unlimited. */
  const double *stream_bps;
  bool emulate;       /* delay frames by the link model; else send them at once */
  bool virtual_clock; /* gt_gateway_virtual will be called; until then frames are sent at once */
  uint64_t seed;
  size_t payload_max;    /* bytes of the largest message of any kind but GROUP */
  size_t group_max;      /* bytes of the largest message of kind GROUP; 0: there are none */
  gt_endpoint *endpoint; /* frames travel over it, borrowed; NULL: MPI; not with virtual_clock */
} gt_gateway_spec;

/* Callbacks of the gateway, from gt_gateway_poll and gt_gateway_deliver only. */
typedef struct {
  void *ctx;
  /* A whole message; payload (head->message_bytes) borrowed for the call. */
  void (*on_message)(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                     gt_ns now);
  /* The last frame of the message with this cookie has left; its payload is no longer read.
     Not called for cookie 0. */
  void (*on_departed)(void *ctx, size_t peer, uint64_t cookie, gt_ns now);
  /* The peer has started again, or has ended with an error: nothing that was queued for it, or had
     left, is kept, and on_departed is not called for it.  NULL is allowed where
     no region is taken back. */
  void (*on_lost)(void *ctx, size_t peer, gt_ns now);
} gt_gateway_events;

/* Call when a message of the peer is invalid: ends the run (GT_ERR_LOST) and names the region. */
_Noreturn void gt_gateway_refuse(const gt_gateway *gateway, size_t peer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Creates the gateway.  Collective over servers, whose ranks are region ids; borrowed until the
   gateway is closed. */
gt_gateway *gt_gateway_create(gt_peers *servers, const gt_gateway_spec *spec,
                              const gt_gateway_events *events);
/* Returns the largest REPORT, in bytes, that a gateway of so many regions accepts, even if
   payload_max is smaller. */
size_t gt_gateway_report_max(size_t nregions);
/* Frees the gateway.  Frames that have departed on an emulated link still arrive: the call sleeps
   until then, at most one latency.  Queued and partly sent messages are dropped; to lose nothing,
   first poll until gt_gateway_next returns GT_NEVER.  Collective over ps_comm: begins with a
   sleeping barrier, so that nothing is in flight when receives are cancelled.  limit_s: how long to
   wait for the other regions; after that, panic with 5. */
void gt_gateway_close(gt_gateway *gateway, double limit_s);

/* Queues a message for a peer.  The caller sets kind, codec, round, sequence, value, detail and
   range of head; the gateway fills in the rest.  payload (bytes): for data and bulk kinds (cookie
   != 0) borrowed until on_departed; for control kinds (one frame, at most 4 KiB) copied.  Order:
   control first, then data and bulk in the order queued. */
void gt_gateway_send(gt_gateway *gateway, size_t peer, const gt_frame_header *head,
                     const void *payload, size_t bytes, uint64_t cookie, gt_ns now);
/* Gives a peer up: nothing that is queued for it, or has left, is kept, on_departed is not called,
   and messages to it are dropped, until it starts again (on_lost).  Only with
   regions that are taken back. */
void gt_gateway_forget(gt_gateway *gateway, size_t peer);
/* A region that leaves the others does not wait for one that it has not heard from for so long. */
#define GT_LEAVE_S 5.0
/* True if the peer has ended well, and needs nothing more. */
bool gt_gateway_left(const gt_gateway *gateway, size_t peer);
/* Removes the queued message `cookie`; false: it has begun to leave, or has left. */
bool gt_gateway_drop(gt_gateway *gateway, size_t peer, uint64_t cookie);
/* Makes all possible progress.  Returns true if there was any. */
bool gt_gateway_poll(gt_gateway *gateway, gt_ns now);
/* Returns the latest time for the next gt_gateway_poll: a frame departs or arrives then.  GT_NEVER:
   nothing is due.  `*large` (NULL is allowed): not all that was sent has left, or a message is not
   complete. */
gt_ns gt_gateway_next(const gt_gateway *gateway, bool *large);
/* True if polling often is of use: bytes wait for the network, or a message is not complete. */
bool gt_gateway_urgent(const gt_gateway *gateway);
/* True if frames leave and arrive by the link model. */
bool gt_gateway_modelled(const gt_gateway *gateway);
/* True if a message of the peer has begun to arrive. */
bool gt_gateway_receiving(const gt_gateway *gateway, size_t peer);
/* Returns when something was last heard from the peer (always real time). */
gt_ns gt_gateway_heard(const gt_gateway *gateway, size_t peer);
/* Drops data and bulk messages that are not on a link yet, and the rest of a partly sent message.
   Call after a stop, when every peer drops data.  on_departed is not called for them. */
void gt_gateway_drop_bulk(gt_gateway *gateway);
/* Returns the number of data and bulk messages to the peer that have not begun to leave. */
size_t gt_gateway_queued(const gt_gateway *gateway, size_t peer);

/* Call when training begins: the traces and outages of the links start now, unless a checkpoint has
   restored their position. */
void gt_gateway_begin(gt_gateway *gateway, gt_ns now);

/* ---- virtual clock ------------------------------------------------------------------------------
   Every `now` is virtual.  Frames go to the transport as soon as the link model has determined
   their arrival time, and carry that time; the receiver delivers them in the order of (time of
   arrival, sending region, sequence).  The regions agree in rounds on the frames that can be
   delivered: every gateway announces a lower bound of its next event, and the arrival times of the
   frames sent since the last round.  From these and the minimum delays of the links each region
   computes the time before which it knows every frame (a conservative simulation: Chandy and Misra
   1979; in rounds: Nicol 1993).  Nothing depends on the real arrival of messages. */

/* Makes times virtual, beginning at 0.  delay_min: nregions x nregions, row: sender, all > 0
   except on the diagonal; copied.  Every PS calls it at the same point of its run, with nothing in
   flight. */
void gt_gateway_virtual(gt_gateway *gateway, const gt_ns *delay_min);
/* Receives frames from the transport and holds them; delivers none.  True if any were received. */
bool gt_gateway_take(gt_gateway *gateway);
/* Returns when the next known frame arrives; GT_NEVER: none is known. */
gt_ns gt_gateway_arrival(const gt_gateway *gateway);
/* Delivers the next known frame; now: the time at which the PS handles it, passed to on_message. */
void gt_gateway_deliver(gt_gateway *gateway, gt_ns now);
/* Opens a round: the next event of this region is at `next` or later.  GT_NEVER: the region has
   ended, sends nothing more and takes part in no later round.  (A region that only waits for others
   passes GT_NEVER - 1.) */
void gt_gateway_propose(gt_gateway *gateway, gt_ns next);
/* True if all regions have proposed: then every frame that arrives before *safe has been received.
   Does not wait. */
bool gt_gateway_agreed(gt_gateway *gateway, gt_ns *safe);
/* Returns a region that has not proposed; the number of regions: none is missing. */
size_t gt_gateway_missing(const gt_gateway *gateway);
/* Sends a heartbeat to the regions that wait for this one. */
void gt_gateway_alive(gt_gateway *gateway);

/* ---- ledger ---------------------------------------------------------------------------------- */

#define GT_LEDGER_KINDS 64
typedef struct {
  int64_t messages, frames, payload_bytes, wire_bytes;
} gt_ledger_row;
/* Returns the frames and bytes that have left for the peer, by kind (index: gt_msg_kind). */
const gt_ledger_row *gt_gateway_ledger(const gt_gateway *gateway, size_t peer);
/* Returns what has been received from all peers since the gateway was created. */
gt_link_objects gt_gateway_read(const gt_gateway *gateway);
const gt_link_function *gt_gateway_function(const gt_gateway *gateway);
/* Returns the total time in which frames were leaving for the peer. */
double gt_gateway_wire_s(const gt_gateway *gateway, size_t peer);
/* Returns the CPU seconds spent in emulation (link model and held frames), from CPU-time
   counters. */
double gt_gateway_emulation_s(const gt_gateway *gateway);
/* Saves ledger, time on the wire and state of the link model, as "wan/<peer>/..."; times are saved
   relative to `now`. */
void gt_gateway_save(gt_gateway *gateway, gt_ns now, gt_state *state);
gt_status gt_gateway_load(gt_gateway *gateway, gt_ns now, const gt_state *state);
