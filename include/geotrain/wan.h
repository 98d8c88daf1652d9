/* wan: the gateway: the region's only door to the WAN.  Frames, emulation in real time, ledger.  Layer 4.  Used by PS ranks only.
   Nothing here blocks: gt_gateway_poll does what can be done now and says when it wants to be called again. */
#ifndef GEOTRAIN_WAN_H
#define GEOTRAIN_WAN_H

#include <mpi.h>

#include "geotrain/link.h"
#include "geotrain/net.h"

typedef struct gt_gateway gt_gateway;

typedef struct {
  size_t nregions, self;
  const gt_link_spec *links; /* nregions: the direction self -> peer; [self] unused; borrowed */
  double access_bps;         /* of this region, each direction, shared by its links; 0: unlimited; emulated only */
  bool emulate;              /* hold frames as the link model says; else they go out at once */
  bool virtual_clock;        /* gt_gateway_virtual will be called: until then frames go out at once */
  uint64_t seed;
  size_t payload_max; /* bytes of the largest message */
} gt_gateway_spec;

/* What the gateway tells; called from gt_gateway_poll only. */
typedef struct {
  void *ctx;
  /* A whole message; payload (head->message_bytes) borrowed for the call. */
  void (*on_message)(void *ctx, size_t peer, const gt_frame_header *head, const void *payload, gt_ns now);
  /* The last frame of the message that was sent with this cookie has left; its payload is not read any more.  Not called for cookie 0. */
  void (*on_departed)(void *ctx, size_t peer, uint64_t cookie, gt_ns now);
} gt_gateway_events;

/* Collective over ps_comm, whose ranks are region ids. */
gt_gateway *gt_gateway_create(MPI_Comm ps_comm, const gt_gateway_spec *spec, const gt_gateway_events *events);
/* Bytes of the longest REPORT that a gateway of so many regions takes, however small payload_max is. */
size_t gt_gateway_report_max(size_t nregions);
/* Frees.  Frames that have departed on an emulated link still arrive (it sleeps until they have, one latency at most); what is queued or on its way out is dropped: poll until
   gt_gateway_next says GT_NEVER first to lose nothing.  Collective over ps_comm (a barrier that sleeps comes first: nothing is under way when receives are cancelled);
   limit_s: for the other regions to come.  Past it: panic with 5. */
void gt_gateway_close(gt_gateway *gateway, double limit_s);

/* Queues a message for a peer.  head: kind, codec, round, sequence, value, detail, range are the caller's; the rest is filled in.  payload (bytes) is borrowed until
   on_departed for data and bulk kinds (cookie != 0), copied for control kinds (one frame, at most 4 KiB).  Order: control first, then data and bulk in the order queued. */
void gt_gateway_send(gt_gateway *gateway, size_t peer, const gt_frame_header *head, const void *payload, size_t bytes, uint64_t cookie, gt_ns now);
/* Puts another payload (same size) and header in place of the queued message `cookie`, if no frame of it has begun to leave; false: too late. */
bool gt_gateway_replace(gt_gateway *gateway, size_t peer, uint64_t cookie, const gt_frame_header *head, const void *payload, uint64_t new_cookie);
/* Moves everything that can move now.  Returns true when anything moved. */
bool gt_gateway_poll(gt_gateway *gateway, gt_ns now);
/* When it wants to be polled next, at the latest: a frame that departs or arrives; GT_NEVER when nothing is due.  `*large` (may be NULL): MPI transfers are pending. */
gt_ns gt_gateway_next(const gt_gateway *gateway, bool *large);
/* Frames leave and arrive as the link model says. */
bool gt_gateway_modelled(const gt_gateway *gateway);
/* A message of the peer has begun to arrive. */
bool gt_gateway_receiving(const gt_gateway *gateway, size_t peer);
/* When something was last heard from the peer (always real time). */
gt_ns gt_gateway_heard(const gt_gateway *gateway, size_t peer);
/* Data and bulk that have not been put on a link are dropped, the rest of a begun message too: after a stop, when every peer drops data.  Nobody is told of them. */
void gt_gateway_drop_bulk(gt_gateway *gateway);
/* Messages to the peer that have not begun to leave, data and bulk. */
size_t gt_gateway_queued(const gt_gateway *gateway, size_t peer);

/* Training begins: from now on links' traces and outages count, unless a checkpoint has said where in them the run is. */
void gt_gateway_begin(gt_gateway *gateway, gt_ns now);

/* ---- virtual clock ----------------------------------------------------------------------------------------------------

   Under it every `now` is virtual.  Frames go to the transport as soon as the link model knows when they arrive, and carry that time; the receiver hands
   them on in the order of (time of arrival, sending region, sequence).  What may be handed on is agreed in rounds: every gateway says when its next event can be, and when
   the frames arrive that it has sent since the last round; with the links' guaranteed minimum delays each works out up to when it knows of everything
   (a conservative simulation: Chandy and Misra 1979; in rounds: Nicol 1993).  Nothing of it depends on when messages really come. */

/* From now on times are virtual and begin at 0.  delay_min: nregions x nregions, row: sender, all > 0 but the diagonal; copied.  Every PS does it at the same point of
   its run, with nothing under way. */
void gt_gateway_virtual(gt_gateway *gateway, const gt_ns *delay_min);
/* Takes frames off the transport; never hands them on.  True when there were any. */
bool gt_gateway_take(gt_gateway *gateway);
/* When the next frame arrives that is known of; GT_NEVER: none is. */
gt_ns gt_gateway_arrival(const gt_gateway *gateway);
/* Hands that frame on; now: the time at which it is looked at, given to on_message. */
void gt_gateway_deliver(gt_gateway *gateway, gt_ns now);
/* Opens a round: this region's next event is at `next` or later; GT_NEVER: it has ended, will send nothing more and
   takes part in no later round (one that only waits for others says GT_NEVER - 1). */
void gt_gateway_propose(gt_gateway *gateway, gt_ns next);
/* True when all have spoken: every frame that arrives before *safe is here.  Does not wait. */
bool gt_gateway_agreed(gt_gateway *gateway, gt_ns *safe);
/* A sign of life to those that wait for this region. */
void gt_gateway_alive(gt_gateway *gateway);

/* ---- ledger ----------------------------------------------------------------------------------------------------------- */

#define GT_LEDGER_KINDS 64
typedef struct {
  int64_t messages, frames, payload_bytes, wire_bytes;
} gt_ledger_row;
/* What has left for the peer, by kind (index: gt_msg_kind); counted as frames leave. */
const gt_ledger_row *gt_gateway_ledger(const gt_gateway *gateway, size_t peer);
/* Time in which frames were leaving for the peer. */
double gt_gateway_wire_s(const gt_gateway *gateway, size_t peer);
/* CPU seconds spent in emulation (link model and held frames), steps included, by counters. */
double gt_gateway_emulation_s(const gt_gateway *gateway);
/* Ledger, time on the wire and link-model state: "wan/<peer>/..."; times are saved relative to `now`. */
void gt_gateway_save(gt_gateway *gateway, gt_ns now, gt_state *state);
gt_status gt_gateway_load(gt_gateway *gateway, gt_ns now, const gt_state *state);

#endif
