/* Frames under the virtual clock: each is sent at once, followed by its arrival time; the receiver
   holds it until all regions have agreed that nothing can arrive before it (agreement.c). */
#include "internal.h"

#include <string.h>

#define RECLAIM_LIMIT_S 300.0

static gt_ns sooner(gt_ns a, gt_ns b) {
  return a < b ? a : b;
}

bool gt_gateway_take(gt_gateway *gateway) {
  bool any = false;
  for (size_t peer = 0; peer < gateway->nregions; peer++)
    if (peer != gateway->self) any |= gt_receive_frames(gateway, peer, 0);
  return any;
}

/* ---- departures ------------------------------------------------------------------------------ */

/* The arrival time follows the frame, and the next round announces it to the peers. */
static void schedule(gt_gateway *g, size_t peer, gt_slot *slot, gt_ns queued, gt_ns now) {
  (void)now;
  gt_sender_step(g, peer, slot, queued);
  memcpy(slot->frame + slot->bytes, &slot->arrive, sizeof slot->arrive);
  gt_agreement_sent(g->agreement, peer, slot->arrive);
}

static bool launch(gt_gateway *g, size_t peer, gt_ns now) {
  (void)now;
  gt_sender *s = &g->senders[peer];
  if (s->launched == s->filled) return false;
  for (; s->launched < s->filled; s->launched++) {
    gt_slot *slot = gt_sender_slot(s, s->launched);
    g->ops->send_frame(g->transport, peer, s->launched % s->window, slot->frame,
                       slot->bytes + GT_STAMP_BYTES);
  }
  return true;
}

/* Waits until the transport no longer needs the slot.  A receiver takes frames in every wait; so
   does this side here. */
static void await_slot(gt_gateway *g, size_t peer, size_t slot) {
  gt_backoff backoff;
  gt_ns until = gt_now() + gt_from_seconds(RECLAIM_LIMIT_S);
  gt_backoff_reset(&backoff);
  while (!g->ops->sent(g->transport, peer, slot)) {
    if (gt_gateway_take(g)) gt_backoff_reset(&backoff);
    if (gt_now() > until)
      gt_panic(GT_ERR_LOST, "waited %.0f s for region %zu to take a frame", RECLAIM_LIMIT_S, peer);
    gt_backoff_sleep(&backoff, GT_BACKOFF_IDLE, until);
  }
}

/* If no slot is left, the program waits in real time.  The link itself must take the frame at the
   model's time: otherwise messages queued earlier would arrive after all regions had agreed that
   none does. */
static bool reclaim(gt_gateway *g, size_t peer, gt_ns now) {
  (void)now;
  gt_sender *s = &g->senders[peer];
  size_t slot = s->freed % s->window;
  if (gt_sender_has_room(s)) return g->ops->sent(g->transport, peer, slot);
  await_slot(g, peer, slot);
  return true;
}

/* ---- arrivals -------------------------------------------------------------------------------- */

static void take_clock_frame(gt_gateway *g, size_t peer, const uint8_t *frame, size_t bytes) {
  if (bytes - GT_FRAME_HEADER_BYTES != gt_agreement_bytes(g->agreement))
    gt_gateway_refuse(g, peer, "a clock frame has %zu bytes; expected %zu", bytes,
                      GT_FRAME_HEADER_BYTES + gt_agreement_bytes(g->agreement));
  if (!gt_agreement_read(g->agreement, peer, frame + GT_FRAME_HEADER_BYTES))
    gt_gateway_refuse(g, peer, "a clock frame has an unexpected round");
}

static gt_ns stamp_of(const gt_gateway *g, size_t peer, const uint8_t *stamp) {
  gt_ns arrive, safe = gt_agreement_safe(g->agreement);
  memcpy(&arrive, stamp, sizeof arrive);
  if (arrive < safe)
    gt_gateway_refuse(
        g, peer,
        "a frame arrives at %.9f s, although all regions had agreed that none arrives "
        "before %.9f s",
        gt_seconds(arrive), gt_seconds(safe));
  return arrive;
}

static void arrive(gt_gateway *g, size_t peer, const uint8_t *frame, size_t bytes, gt_ns now) {
  (void)now;
  gt_receiver *r = &g->receivers[peer];
  r->heard = gt_now();
  if (gt_receive_header(frame, bytes).kind == GT_MSG_CLOCK) {
    take_clock_frame(g, peer, frame, bytes);
    return;
  }
  if (bytes >= GT_STAMP_BYTES) bytes -= GT_STAMP_BYTES;
  gt_receive_check(g, peer, frame, bytes);
  gt_receive_hold(g, peer, frame, bytes, stamp_of(g, peer, frame + bytes));
}

/* Does nothing: held frames wait for gt_gateway_deliver. */
static bool land(gt_gateway *g, gt_ns now) {
  (void)g, (void)now;
  return false;
}

static gt_ns next_landing(const gt_gateway *g) {
  (void)g;
  return GT_NEVER;
}

/* Returns the peer whose frame arrives next, the lowest among equals; self: no frame is known. */
static size_t next_sender(const gt_gateway *g, gt_ns *at) {
  size_t next = g->self;
  *at = GT_NEVER;
  for (size_t p = 0; p < g->nregions; p++) {
    const gt_held_frame *first = g->receivers[p].coming.first;
    if (!first || first->arrive >= *at) continue;
    *at = first->arrive;
    next = p;
  }
  return next;
}

gt_ns gt_gateway_arrival(const gt_gateway *gateway) {
  gt_ns at;
  (void)next_sender(gateway, &at);
  return sooner(at, gt_landing_next(&gateway->landing));
}

void gt_gateway_deliver(gt_gateway *gateway, gt_ns now) {
  gt_ns at;
  size_t peer = next_sender(gateway, &at);
  if (gateway->landing.busy && gt_landing_next(&gateway->landing) <= at)
    gt_receive_landed(gateway, now);
  else
    gt_receive_coming(gateway, peer, now);
}

/* ---- agreement ------------------------------------------------------------------------------- */

static void tell(gt_gateway *g, size_t peer, bool alive) {
  const size_t bytes = GT_FRAME_HEADER_BYTES + gt_agreement_bytes(g->agreement);
  uint8_t *frame = g->clock_frames + peer * bytes;
  size_t slot = g->senders[peer].window; /* after those of the ring */
  gt_frame_header head = {.magic = GT_FRAME_MAGIC, .kind = GT_MSG_CLOCK, .from = (uint16_t)g->self};
  await_slot(g, peer, slot);
  memcpy(frame, &head, GT_FRAME_HEADER_BYTES);
  gt_agreement_write(g->agreement, alive, frame + GT_FRAME_HEADER_BYTES);
  g->ops->send_frame(g->transport, peer, slot, frame, bytes);
}

static void tell_all(gt_gateway *g, bool alive) {
  for (size_t p = 0; p < g->nregions; p++)
    if (p != g->self && gt_agreement_takes_part(g->agreement, p)) tell(g, p, alive);
}

void gt_gateway_propose(gt_gateway *gateway, gt_ns next) {
  gt_agreement_open(gateway->agreement, next);
  tell_all(gateway, false);
}

void gt_gateway_alive(gt_gateway *gateway) {
  tell_all(gateway, true);
}

size_t gt_gateway_missing(const gt_gateway *gateway) {
  return gt_agreement_missing(gateway->agreement);
}

bool gt_gateway_agreed(gt_gateway *gateway, gt_ns *safe) {
  (void)gt_gateway_take(gateway);
  return gt_agreement_reached(gateway->agreement, safe);
}

/* ---- start ----------------------------------------------------------------------------------- */

const gt_timing_ops gt_timing_virtual = {
    .modelled = true,
    .schedule = schedule,
    .launch = launch,
    .reclaim = reclaim,
    .arrive = arrive,
    .land = land,
    .next_landing = next_landing,
    .finish = NULL,
};

void gt_gateway_virtual(gt_gateway *gateway, const gt_ns *delay_min) {
  size_t n = gateway->nregions;
  gateway->timing = &gt_timing_virtual;
  gateway->agreement = gt_agreement_create(n, gateway->self, delay_min);
  gateway->clock_frames =
      gt_alloc(n, GT_FRAME_HEADER_BYTES + gt_agreement_bytes(gateway->agreement));
  gateway->up.rate_bps = gateway->access.up_bps;
  gateway->landing.access.rate_bps = gateway->access.down_bps;
  for (size_t p = 0; p < n; p++) {
    gt_sender *s = &gateway->senders[p];
    s->spec.noutages = s->noutages;
    if (s->link_loaded) continue;
    /* greetings were sent in real time */
    s->wire = (gt_wire){.link = gt_link_start(gateway->seed, gateway->self, p, 0)};
  }
}
