/* The gateway: queues per peer, frames, and the order in which they leave: control first, then data
   and bulk as queued; peers take turns. */
#include "internal.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "headers go on the wire as they lie in memory: little endian");

/* Bytes of one link in a report, with the longest names and counts.  The size of the model does not
   bound reports. */
#define REPORT_LINK ((size_t)4 << 10)
#define ALIGNMENT   ((size_t)64)
/* frames in flight, if each is a whole message; larger ones leave no memory behind */
#define DISCARDED    (2 * GT_FRAME_PAYLOAD_MAX)
#define WHOLE_WINDOW (2 + GT_LINK_CONTROL_FRAMES)

/* ---- life ---- */

static void open_sender(gt_sender *s, const gt_gateway *g, const gt_gateway_spec *spec, size_t peer,
                        size_t window) {
  size_t stride =
      (g->frame_max + GT_FRAME_HEADER_MAX + GT_STAMP_BYTES + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  s->spec = spec->links[peer];
  s->spec.noutages = 0; /* outages begin with the run */
  s->noutages = spec->links[peer].noutages;
  s->wire.link = gt_link_start(spec->seed, g->self, peer, gt_now());
  s->window = window;
  s->slots = GT_NEW_ARRAY(gt_slot, window);
  s->memory = gt_reserve(window, stride); /* most frames are short */
  for (size_t i = 0; i < window; i++) s->slots[i].frame = s->memory + i * stride;
}

size_t gt_gateway_report_max(size_t nregions) {
  return GT_FRAME_MIN + nregions * REPORT_LINK;
}

gt_gateway *gt_gateway_create(gt_peers *servers, const gt_gateway_spec *spec,
                              const gt_gateway_events *events) {
  gt_gateway *g = GT_NEW(gt_gateway);
  g->nregions = spec->nregions;
  g->self = spec->self;
  g->names = GT_NEW_ARRAY(const char *, g->nregions);
  memcpy(g->names, spec->names, g->nregions * sizeof *g->names);
  g->timing = spec->emulate && !spec->virtual_clock ? &gt_timing_emulated : &gt_timing_direct;
  g->events = *events;
  g->ops = spec->endpoint ? spec->endpoint->ops : &gt_transport_mpi;
  g->seed = spec->seed;
  g->access = spec->access;
  g->function = spec->function;
  if (g->timing->modelled) g->up.rate_bps = g->access.up_bps;
  gt_landing_open(&g->landing, g->nregions, g->timing->modelled ? g->access.down_bps : 0);
  if (g->function.objects > 0) g->landing.function = &g->function;
  size_t least = spec->payload_max > GT_FRAME_MIN ? spec->payload_max : GT_FRAME_MIN,
         report = gt_gateway_report_max(g->nregions);
  g->message_max = least > report ? least : report;
  g->group_max = spec->group_max;
  const bool whole = spec->links[g->self == 0 && g->nregions > 1].look_s > 0;
  g->whole = whole && g->message_max <= GT_OBJECT_MAX;
  g->frame_max = !whole                           ? gt_link_frame_payload(spec->payload_max)
                 : g->message_max < GT_OBJECT_MAX ? g->message_max
                                                  : GT_OBJECT_MAX;
  g->senders = GT_NEW_ARRAY(gt_sender, g->nregions);
  g->receivers = GT_NEW_ARRAY(gt_receiver, g->nregions);
  size_t *windows = GT_NEW_ARRAY(size_t, g->nregions);
  for (size_t peer = 0; peer < g->nregions; peer++) {
    if (peer == g->self) continue;
    size_t window = whole ? WHOLE_WINDOW
                          : gt_link_window(&spec->links[peer], spec->emulate || spec->virtual_clock,
                                           g->frame_max);
    open_sender(&g->senders[peer], g, spec, peer, window);
    windows[peer] = window + 1; /* plus one for CLOCK frames */
    g->receivers[peer].heard = gt_now();
    if (spec->stream_bps) g->receivers[peer].stream_bps = spec->stream_bps[peer];
  }
  g->wire_max = g->frame_max + GT_FRAME_HEADER_MAX + GT_STAMP_BYTES;
  const gt_transport_spec transport = {.nregions = g->nregions,
                                       .self = g->self,
                                       .windows = windows,
                                       .frame_bytes = g->wire_max,
                                       .endpoint = spec->endpoint};
  g->transport = g->ops->open(servers, &transport);
  gt_free(windows);
  return g;
}

void gt_gateway_begin(gt_gateway *gateway, gt_ns now) {
  for (size_t peer = 0; peer < gateway->nregions; peer++) {
    gt_sender *s = &gateway->senders[peer];
    s->spec.noutages = s->noutages;
    if (!s->link_loaded) s->wire.link.origin = now;
  }
}

void gt_gateway_close(gt_gateway *gateway, double limit_s) {
  if (!gateway) return;
  if (gateway->timing->finish) gateway->timing->finish(gateway);
  gateway->ops->close(gateway->transport, limit_s);
  gt_receive_close(gateway);
  gt_agreement_close(gateway->agreement);
  gt_free(gateway->clock_frames);
  for (size_t peer = 0; peer < gateway->nregions; peer++) {
    gt_sender *s = &gateway->senders[peer];
    gt_queue_close(&s->control);
    gt_queue_close(&s->bulk);
    gt_free(s->slots);
    gt_free(s->memory);
    gt_free(gateway->receivers[peer].message);
  }
  gt_free(gateway->names);
  gt_free(gateway->senders);
  gt_free(gateway->receivers);
  gt_free(gateway);
}

/* ---- queueing ---- */

static gt_frame_header message_header(const gt_gateway *g, const gt_frame_header *head,
                                      size_t bytes) {
  gt_frame_header full = *head;
  full.magic = GT_FRAME_MAGIC;
  full.from = (uint16_t)g->self;
  full.frame_bytes = 0;
  full.message_bytes = bytes;
  return full;
}

static void *control_copy(const void *payload, size_t bytes) {
  if (bytes == 0) return NULL;
  void *copy = gt_alloc(bytes, 1);
  memcpy(copy, payload, bytes);
  return copy;
}

void gt_gateway_send(gt_gateway *gateway, size_t peer, const gt_frame_header *head,
                     const void *payload, size_t bytes, uint64_t cookie, gt_ns now) {
  bool control = gt_msg_is_control(head->kind);
  const size_t most = gt_message_max(gateway, head->kind);
  if (bytes > most)
    gt_panic(GT_ERR_FAULT, "a message of kind %u has %zu bytes; expected at most %zu", head->kind,
             bytes, most);
  if (peer >= gateway->nregions || peer == gateway->self)
    gt_panic(GT_ERR_FAULT, "a message of kind %u is for region %zu, which has no link", head->kind,
             peer);
  gt_sender *s = &gateway->senders[peer];
  if (s->gone) return;
  void *owned = control ? control_copy(payload, bytes) : NULL;
  *gt_queue_push(control ? &s->control : &s->bulk) = (gt_out_message){
      .head = message_header(gateway, head, bytes),
      .payload = owned ? owned : payload,
      .owned = owned,
      .bytes = bytes,
      .cookie = cookie,
      .queued = now,
  };
}

bool gt_gateway_drop(gt_gateway *gateway, size_t peer, uint64_t cookie) {
  gt_out_queue *q = &gateway->senders[peer].bulk;
  for (size_t i = q->n; i > 0; i--) {
    const gt_out_message *m = gt_queue_at(q, i - 1);
    if (m->cookie != cookie || m->begun) continue;
    gt_queue_remove(q, i - 1);
    return true;
  }
  return false;
}

size_t gt_gateway_queued(const gt_gateway *gateway, size_t peer) {
  const gt_out_queue *q = &gateway->senders[peer].bulk;
  return q->n - (q->n > 0 && gt_queue_at(q, 0)->begun);
}

void gt_gateway_drop_bulk(gt_gateway *gateway) {
  for (size_t peer = 0; peer < gateway->nregions; peer++)
    gt_queue_close(&gateway->senders[peer].bulk);
}

/* ---- progress ---- */

/* Puts the next frame on the link.  The frame is copied to a slot, so that the payload is free when
   the frame has left. */
static bool fill(gt_gateway *g, size_t peer, gt_ns now) {
  gt_sender *s = &g->senders[peer];
  gt_out_queue *q = gt_sender_next_queue(s, g->timing->modelled, now);
  if (!q) return false;
  gt_out_message *m = gt_queue_at(q, 0);
  gt_slot *slot = gt_sender_slot(s, s->filled);
  size_t left = m->bytes - m->taken, count = left < g->frame_max ? left : g->frame_max;
  gt_frame_header head = m->head;
  if (gt_gateway_has_offset(g, head.kind)) head.frame_offset = m->taken;
  head.frame_bytes = (uint32_t)count;
  const size_t header = gt_header_bytes(&head);
  memcpy(slot->frame, &head, header);
  if (count) memcpy(slot->frame + header, m->payload + m->taken, count);
  slot->bytes = header + count;
  m->begun = true;
  m->taken += count;
  bool last = m->taken == m->bytes;
  slot->cookie = last ? m->cookie : 0;
  g->timing->schedule(g, peer, slot, m->queued, now);
  gt_ledger_count(s, &head, last);
  s->filled++;
  if (last) gt_queue_pop(q);
  return true;
}

static void tell(gt_gateway *g, size_t peer, gt_ns now) {
  uint64_t cookie = gt_sender_slot(&g->senders[peer], g->senders[peer].told++)->cookie;
  if (cookie && g->events.on_departed) g->events.on_departed(g->events.ctx, peer, cookie, now);
}

static bool tell_departed(gt_gateway *g, size_t peer, gt_ns now) {
  gt_sender *s = &g->senders[peer];
  bool moved = false, modelled = g->timing->modelled;
  for (; modelled && s->told < s->filled && gt_sender_slot(s, s->told)->depart <= now; moved = true)
    tell(g, peer, now);
  for (; s->freed < s->launched && g->timing->reclaim(g, peer, now); moved = true) {
    const gt_slot *slot = gt_sender_slot(s, s->freed++);
    if (slot->bytes > DISCARDED) gt_discard(slot->frame, slot->bytes);
    if (!modelled) tell(g, peer, now);
  }
  return moved;
}

static bool move_peer(gt_gateway *g, size_t peer, gt_ns now) {
  bool moved = tell_departed(g, peer, now);
  moved |= fill(g, peer, now);
  moved |= g->timing->launch(g, peer, now);
  return moved;
}

/* Puts one frame to each peer on its link. */
static bool turn(gt_gateway *g, gt_ns now) {
  const size_t first = gt_access_first(&g->up, g->self);
  bool moved = false;
  for (size_t i = 0; i < g->nregions; i++) {
    const size_t peer = (first + i) % g->nregions;
    if (peer != g->self) moved |= move_peer(g, peer, now);
  }
  return moved;
}

/* Drops everything to and from a peer that is lost. */
static void drop_all(gt_gateway *g, size_t peer) {
  gt_sender *s = &g->senders[peer];
  gt_receiver *r = &g->receivers[peer];
  gt_queue_close(&s->control);
  gt_queue_close(&s->bulk);
  s->told = s->launched = s->freed = s->filled;
  gt_free(r->message);
  r->message = NULL;
  r->assembling = false;
  r->restarts++;
  r->heard = gt_now();
}

void gt_gateway_forget(gt_gateway *gateway, size_t peer) {
  if (gateway->senders[peer].gone) return;
  drop_all(gateway, peer);
  gateway->senders[peer].gone = true;
  gateway->ops->forget(gateway->transport, peer);
}

/* A peer that has started again can be sent to; one that has ended cannot. */
static void take_loss(gt_gateway *g, size_t peer, bool again, gt_ns now) {
  drop_all(g, peer);
  g->senders[peer].gone = !again;
  if (g->events.on_lost) g->events.on_lost(g->events.ctx, peer, now);
}

bool gt_gateway_poll(gt_gateway *gateway, gt_ns now) {
  bool any = false;
  if (gateway->ops->progress) gateway->ops->progress(gateway->transport);
  for (size_t peer = 0; gateway->ops->lost && peer < gateway->nregions; peer++) {
    const gt_loss loss =
        peer == gateway->self ? GT_NOT_LOST : gateway->ops->lost(gateway->transport, peer);
    if (loss != GT_NOT_LOST) take_loss(gateway, peer, loss == GT_STARTED_AGAIN, now);
  }
  for (size_t peer = 0; peer < gateway->nregions; peer++) {
    if (peer != gateway->self) any |= gt_receive_frames(gateway, peer, now);
  }
  any |= gateway->timing->land(gateway, now);
  while (turn(gateway, now)) any = true;
  return any;
}

/* A modelled link gives a frame to MPI only when it has arrived: the rest of a message is not in
   flight yet, and polling for it would take CPU time from others. */
static bool assembles(const gt_gateway *g, size_t peer) {
  return g->receivers[peer].assembling && !g->timing->modelled;
}

gt_ns gt_gateway_next(const gt_gateway *gateway, bool *large) {
  gt_ns due = gateway->timing->next_landing(gateway);
  bool pending = false;
  for (size_t peer = 0; peer < gateway->nregions; peer++) {
    if (peer == gateway->self) continue;
    const gt_sender *s = &gateway->senders[peer];
    gt_ns at = gt_sender_due(s, gateway->timing->modelled);
    if (at < due) due = at;
    pending |= s->freed < s->launched || assembles(gateway, peer);
  }
  if (large) *large = pending;
  return due;
}

bool gt_gateway_urgent(const gt_gateway *gateway) {
  for (size_t peer = 0; peer < gateway->nregions; peer++) {
    if (peer == gateway->self) continue;
    const gt_sender *s = &gateway->senders[peer];
    const bool leaves = s->freed < s->launched &&
                        (!gateway->ops->waits || gateway->ops->waits(gateway->transport, peer));
    if (leaves || assembles(gateway, peer)) return true;
  }
  return false;
}

bool gt_gateway_modelled(const gt_gateway *gateway) {
  return gateway->timing->modelled;
}

bool gt_gateway_left(const gt_gateway *gateway, size_t peer) {
  return gateway->ops->left && gateway->ops->left(gateway->transport, peer);
}

bool gt_gateway_receiving(const gt_gateway *gateway, size_t peer) {
  return gateway->receivers[peer].assembling;
}

gt_ns gt_gateway_heard(const gt_gateway *gateway, size_t peer) {
  const gt_ns whole = gateway->receivers[peer].heard,
              part = gateway->ops->heard ? gateway->ops->heard(gateway->transport, peer) : 0;
  return part > whole ? part : whole;
}
