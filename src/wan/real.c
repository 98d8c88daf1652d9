/* Frames in real time.  Direct: sent at once.  Emulated: the sender holds each frame until its
   arrival time by the link model, then gives it to the transport, so the clocks of hosts are never
   compared. */
#include "internal.h"

#include <time.h>

static gt_ns cpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (gt_ns)t.tv_sec * GT_SECOND + (gt_ns)t.tv_nsec;
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void schedule_now(gt_gateway *g, size_t peer, gt_slot *slot, gt_ns queued, gt_ns now) {
  (void)g, (void)peer, (void)queued;
  slot->depart = slot->arrive = now;
}

static void schedule_by_link(gt_gateway *g, size_t peer, gt_slot *slot, gt_ns queued, gt_ns now) {
  (void)now;
  gt_ns begin = cpu_now();
  gt_sender_step(g, peer, slot, queued);
  g->emulation_cpu += cpu_now() - begin;
}

static bool launch(gt_gateway *g, size_t peer, gt_ns now) {
  gt_sender *s = &g->senders[peer];
  if (s->launched == s->filled || gt_sender_slot(s, s->launched)->arrive > now) return false;
  while (s->launched < s->filled && gt_sender_slot(s, s->launched)->arrive <= now) {
    gt_slot *slot = gt_sender_slot(s, s->launched);
    g->ops->send_frame(g->transport, peer, s->launched % s->window, slot->frame, slot->bytes);
    s->launched++;
  }
  return true;
}

static bool launch_held(gt_gateway *g, size_t peer, gt_ns now) {
  gt_sender *s = &g->senders[peer];
  if (s->launched == s->filled || gt_sender_slot(s, s->launched)->arrive > now) return false;
  gt_ns begin = cpu_now();
  launch(g, peer, now);
  g->emulation_cpu += cpu_now() - begin;
  return true;
}

static bool sent(gt_gateway *g, size_t peer, gt_ns now) {
  (void)now;
  gt_sender *s = &g->senders[peer];
  return g->ops->sent(g->transport, peer, s->freed % s->window);
}

/* A frame is on the wire until the transport no longer needs it. */
static bool sent_over_wire(gt_gateway *g, size_t peer, gt_ns now) {
  gt_sender *s = &g->senders[peer];
  if (!sent(g, peer, now)) return false;
  gt_wire_add(&s->wire, gt_sender_slot(s, s->freed)->depart, now);
  return true;
}

/* ---- arriving -------------------------------------------------------------------------------- */

static void arrive(gt_gateway *g, size_t peer, const uint8_t *frame, size_t bytes, gt_ns now) {
  g->receivers[peer].heard = now;
  gt_receive_check(g, peer, frame, bytes);
  if (g->landing.access.rate_bps > 0)
    gt_receive_put(g, peer, frame, bytes, now);
  else
    gt_receive_hand_on(g, peer, frame, now);
}

static bool land(gt_gateway *g, gt_ns now) {
  bool moved = false;
  for (; gt_landing_next(&g->landing) <= now; moved = true) gt_receive_landed(g, now);
  return moved;
}

static gt_ns next_landing(const gt_gateway *g) {
  return gt_landing_next(&g->landing);
}

/* ---- closing --------------------------------------------------------------------------------- */

/* Frames that have left on an emulated link still arrive; the others are dropped. */
static void deliver_departed(gt_gateway *g) {
  gt_ns now = gt_now();
  for (size_t peer = 0; peer < g->nregions; peer++) {
    gt_sender *s = &g->senders[peer];
    while (s->launched < s->filled && gt_sender_slot(s, s->launched)->depart <= now) {
      gt_sleep(gt_sender_slot(s, s->launched)->arrive - gt_now());
      launch_held(g, peer, gt_now());
    }
  }
}

const gt_timing_ops gt_timing_direct = {
    .modelled = false,
    .schedule = schedule_now,
    .launch = launch,
    .reclaim = sent_over_wire,
    .arrive = arrive,
    .land = land,
    .next_landing = next_landing,
    .finish = NULL,
};

const gt_timing_ops gt_timing_emulated = {
    .modelled = true,
    .schedule = schedule_by_link,
    .launch = launch_held,
    .reclaim = sent,
    .arrive = arrive,
    .land = land,
    .next_landing = next_landing,
    .finish = deliver_departed,
};
