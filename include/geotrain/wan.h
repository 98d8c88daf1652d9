/* wan: the gateway: the region's only door to the WAN.  Frames, emulation in real time, ledger.  Floor 4.  Used by PS ranks only.
   Nothing here blocks: gt_gateway_poll does what can be done now and says when it wants to be called again. */
#ifndef GEOTRAIN_WAN_H
#define GEOTRAIN_WAN_H

#include <mpi.h>

#include "geotrain/link.h"
#include "geotrain/net.h"

typedef struct gt_gateway gt_gateway;

typedef struct {
  size_t nregions, self;
  const gt_link_spec *links; /* nregions: the direction self -> peer; [self] unused */
  bool emulate;              /* hold frames as the link model says; else they go out at once */
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
/* Frees.  Frames that have departed on an emulated link still arrive (it sleeps until they have, one latency at most); what is queued or on its way out is dropped: poll until
   gt_gateway_next says GT_NEVER first to lose nothing.  Collective over ps_comm (a barrier that sleeps comes first: nothing is under way when receives are cancelled). */
void gt_gateway_close(gt_gateway *gateway);

/* Queues a message for a peer.  head: kind, codec, round, sequence, value, detail, range are the caller's; the rest is filled in.  payload (bytes) is borrowed until
   on_departed for data and bulk kinds (cookie != 0), copied for control kinds (one frame, at most 4 KiB).  Order: control first, then data and bulk in the order queued. */
void gt_gateway_send(gt_gateway *gateway, size_t peer, const gt_frame_header *head, const void *payload, size_t bytes, uint64_t cookie, gt_ns now);
/* Puts another payload (same size) and header in place of the queued message `cookie`, if no frame of it has begun to leave; false: too late. */
bool gt_gateway_replace(gt_gateway *gateway, size_t peer, uint64_t cookie, const gt_frame_header *head, const void *payload, uint64_t new_cookie);
/* Moves everything that can move now.  Returns true when anything moved. */
bool gt_gateway_poll(gt_gateway *gateway, gt_ns now);
/* When it wants to be polled next, at the latest: a frame that departs or arrives; GT_NEVER when nothing is due.  `*large` (may be NULL): MPI transfers are pending. */
gt_ns gt_gateway_next(const gt_gateway *gateway, bool *large);
/* When something was last heard from the peer. */
gt_ns gt_gateway_heard(const gt_gateway *gateway, size_t peer);
/* Messages to the peer that have not begun to leave, data and bulk. */
size_t gt_gateway_queued(const gt_gateway *gateway, size_t peer);

/* ---- ledger ----------------------------------------------------------------------------------------------------------- */

#define GT_LEDGER_KINDS 64
typedef struct {
  int64_t messages, frames, payload_bytes, wire_bytes;
} gt_ledger_row;
/* What has left for the peer, by kind (index: gt_msg_kind); counted as frames leave. */
const gt_ledger_row *gt_gateway_ledger(const gt_gateway *gateway, size_t peer);
/* CPU seconds spent in emulation (link model and held frames), steps included, by counters. */
double gt_gateway_emulation_s(const gt_gateway *gateway);
/* Ledger and link-model state: "wan/<peer>/..."; times are saved relative to `now`. */
void gt_gateway_save(gt_gateway *gateway, gt_ns now, gt_state *state);
gt_status gt_gateway_load(gt_gateway *gateway, gt_ns now, const gt_state *state);

#endif
