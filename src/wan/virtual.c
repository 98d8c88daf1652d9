/* The virtual clock's side of the gateway: frames carry their time of arrival, and in rounds the regions agree up to when each knows of everything
   (wan.h). */
#include "internal.h"

#include <string.h>

#define RECLAIM_LIMIT_S 300.0

/* What a region says in a round; on the wire: round, next, sent[nregions]. */
typedef struct {
  int64_t round;
  gt_ns next;  /* its next event is then or later; GT_NEVER: it has ended */
  gt_ns *sent; /* nregions: the earliest arrival of what it has sent since the last round; GT_NEVER: nothing */
} promise;

struct gt_clock_agreement {
  gt_ns *back; /* nregions: the least time in which an event of a region can lead to a frame that arrives here */
  gt_ns *sent; /* nregions, since the last round */
  int64_t round;
  gt_ns safe; /* of the last round */
  promise own;
  promise *promises; /* 2 a region, for a peer may be a round ahead */
  bool *ended;
  uint8_t *frames; /* one a region, as it leaves */
  size_t frame_bytes;
};

static gt_ns sum(gt_ns a, gt_ns b) {
  return a > GT_NEVER - b ? GT_NEVER : a + b;
}

static gt_ns sooner(gt_ns a, gt_ns b) {
  return a < b ? a : b;
}

/* ---- life ------------------------------------------------------------------------------------------------------------------------ */

/* Floyd and Warshall: chains of messages over other regions may be faster than the direct link. */
static void find_back(gt_clock_agreement *a, const gt_gateway *g, const gt_ns *delay_min) {
  size_t n = g->nregions;
  gt_ns *d = GT_NEW_ARRAY(gt_ns, n * n);
  for (size_t i = 0; i < n * n; i++) d[i] = i / n == i % n ? 0 : delay_min[i];
  for (size_t k = 0; k < n; k++)
    for (size_t i = 0; i < n; i++)
      for (size_t j = 0; j < n; j++) d[i * n + j] = sooner(d[i * n + j], sum(d[i * n + k], d[k * n + j]));
  for (size_t r = 0; r < n; r++) {
    a->back[r] = GT_NEVER;
    for (size_t p = 0; p < n; p++)
      if (p != g->self) a->back[r] = sooner(a->back[r], sum(d[r * n + p], delay_min[p * n + g->self]));
  }
  gt_free(d);
}

static void forget_sent(gt_clock_agreement *a, size_t n) {
  for (size_t p = 0; p < n; p++) a->sent[p] = GT_NEVER;
}

void gt_gateway_virtual(gt_gateway *gateway, const gt_ns *delay_min) {
  size_t n = gateway->nregions;
  gt_clock_agreement *a = GT_NEW(gt_clock_agreement);
  a->back = GT_NEW_ARRAY(gt_ns, n);
  a->sent = GT_NEW_ARRAY(gt_ns, n);
  a->own.sent = GT_NEW_ARRAY(gt_ns, n);
  a->promises = GT_NEW_ARRAY(promise, 2 * n);
  for (size_t i = 0; i < 2 * n; i++) a->promises[i].sent = GT_NEW_ARRAY(gt_ns, n);
  a->ended = GT_NEW_ARRAY(bool, n);
  a->frame_bytes = GT_FRAME_HEADER_BYTES + (2 + n) * sizeof(gt_ns);
  a->frames = gt_alloc(n, a->frame_bytes);
  find_back(a, gateway, delay_min);
  forget_sent(a, n);
  gateway->agreement = a;
  gateway->emulate = true;
  gateway->up.rate_bps = gateway->down.rate_bps = gateway->access_bps;
  for (size_t p = 0; p < n; p++) {
    gt_sender *s = &gateway->senders[p];
    if (s->link_loaded) continue;
    s->link = gt_link_start(gateway->seed, gateway->self, p, 0);
    s->wire = s->wire_until = 0; /* greetings travelled in real time */
  }
  gt_gateway_begin(gateway, 0);
}

void gt_clock_agreement_close(gt_gateway *g) {
  gt_clock_agreement *a = g->agreement;
  if (!a) return;
  for (size_t i = 0; i < 2 * g->nregions; i++) gt_free(a->promises[i].sent);
  gt_free(a->promises);
  gt_free(a->own.sent);
  gt_free(a->back);
  gt_free(a->sent);
  gt_free(a->ended);
  gt_free(a->frames);
  gt_free(a);
}

/* ---- frames ---------------------------------------------------------------------------------------------------------------------- */

void gt_clock_agreement_stamp(gt_gateway *g, size_t peer, gt_slot *slot) {
  memcpy(slot->frame + slot->bytes, &slot->arrive, sizeof slot->arrive);
  g->agreement->sent[peer] = sooner(g->agreement->sent[peer], slot->arrive);
}

/* The receiver takes frames whatever it waits for; so does this side meanwhile. */
void gt_clock_agreement_reclaim(gt_gateway *g, size_t peer, size_t slot) {
  gt_backoff backoff;
  gt_ns until = gt_now() + gt_from_seconds(RECLAIM_LIMIT_S);
  gt_backoff_reset(&backoff);
  while (!g->ops->sent(g->transport, peer, slot)) {
    if (gt_gateway_take(g)) gt_backoff_reset(&backoff);
    if (gt_now() > until) gt_panic(GT_ERR_LOST, "waited %.0f s for region %zu to take a frame", RECLAIM_LIMIT_S, peer);
    gt_backoff_sleep(&backoff, GT_BACKOFF_IDLE, until);
  }
}

gt_ns gt_clock_agreement_check(const gt_gateway *g, size_t peer, gt_ns arrive) {
  if (arrive < g->agreement->safe)
    gt_panic(GT_ERR_FAULT, "a frame of region %zu arrives at %.9f s, after all regions had agreed that nothing does before %.9f s", peer,
             gt_seconds(arrive), gt_seconds(g->agreement->safe));
  return arrive;
}

bool gt_gateway_take(gt_gateway *gateway) {
  bool any = false;
  for (size_t peer = 0; peer < gateway->nregions; peer++)
    if (peer != gateway->self) any |= gt_receive_frames(gateway, peer, 0);
  return any;
}

/* The peer whose frame arrives next, the lowest among equals; self: none is known of. */
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
  return gateway->landing.first ? sooner(at, gateway->landing.first->arrive) : at;
}

void gt_gateway_deliver(gt_gateway *gateway, gt_ns now) {
  gt_ns at;
  size_t peer = next_sender(gateway, &at);
  if (gateway->landing.first && gateway->landing.first->arrive <= at)
    gt_receive_first_landed(gateway, now);
  else
    gt_receive_coming(gateway, peer, now);
}

/* ---- rounds ---------------------------------------------------------------------------------------------------------------------- */

static void tell(gt_gateway *g, size_t peer, int64_t round, const promise *said) {
  gt_clock_agreement *a = g->agreement;
  uint8_t *frame = a->frames + peer * a->frame_bytes;
  size_t slot = g->senders[peer].window; /* behind those of the ring */
  gt_frame_header head = {.magic = GT_FRAME_MAGIC, .kind = GT_MSG_CLOCK, .from = (uint16_t)g->self};
  gt_clock_agreement_reclaim(g, peer, slot);
  memcpy(frame, &head, sizeof head);
  memcpy(frame + sizeof head, &round, sizeof round);
  memcpy(frame + sizeof head + sizeof round, &said->next, sizeof said->next);
  memcpy(frame + sizeof head + sizeof round + sizeof said->next, said->sent, g->nregions * sizeof *said->sent);
  g->ops->send_frame(g->transport, peer, slot, frame, a->frame_bytes);
}

void gt_clock_agreement_clock_frame(gt_gateway *g, size_t peer, const uint8_t *payload, size_t bytes) {
  gt_clock_agreement *a = g->agreement;
  int64_t round;
  if (bytes != a->frame_bytes - GT_FRAME_HEADER_BYTES) gt_panic(GT_ERR_FAULT, "region %zu sent a clock frame of %zu bytes", peer, bytes);
  memcpy(&round, payload, sizeof round);
  if (round == 0) return; /* a sign of life */
  promise *p = &a->promises[2 * peer + (size_t)(round & 1)];
  p->round = round;
  memcpy(&p->next, payload + sizeof round, sizeof p->next);
  memcpy(p->sent, payload + sizeof round + sizeof p->next, g->nregions * sizeof *p->sent);
}

void gt_gateway_propose(gt_gateway *gateway, gt_ns next) {
  gt_clock_agreement *a = gateway->agreement;
  a->round++;
  a->own.next = next;
  memcpy(a->own.sent, a->sent, gateway->nregions * sizeof *a->sent);
  forget_sent(a, gateway->nregions);
  for (size_t p = 0; p < gateway->nregions; p++)
    if (p != gateway->self && !a->ended[p]) tell(gateway, p, a->round, &a->own);
}

void gt_gateway_alive(gt_gateway *gateway) {
  for (size_t p = 0; p < gateway->nregions; p++)
    if (p != gateway->self && !gateway->agreement->ended[p]) tell(gateway, p, 0, &gateway->agreement->own);
}

static const promise *said_by(const gt_gateway *g, size_t region) {
  const gt_clock_agreement *a = g->agreement;
  return region == g->self ? &a->own : &a->promises[2 * region + (size_t)(a->round & 1)];
}

/* The earliest event of each region, by its own word and by what is under way to it; from there, what may come here. */
static gt_ns work_out(const gt_gateway *g) {
  const gt_clock_agreement *a = g->agreement;
  gt_ns safe = GT_NEVER;
  for (size_t r = 0; r < g->nregions; r++) {
    if (a->ended[r]) continue;
    gt_ns first = said_by(g, r)->next;
    for (size_t p = 0; p < g->nregions; p++)
      if (!a->ended[p]) first = sooner(first, said_by(g, p)->sent[r]);
    safe = sooner(safe, sum(first, a->back[r]));
  }
  return safe;
}

bool gt_gateway_agreed(gt_gateway *gateway, gt_ns *safe) {
  gt_clock_agreement *a = gateway->agreement;
  (void)gt_gateway_take(gateway);
  for (size_t p = 0; p < gateway->nregions; p++)
    if (p != gateway->self && !a->ended[p] && said_by(gateway, p)->round != a->round) return false;
  *safe = a->safe = work_out(gateway);
  for (size_t p = 0; p < gateway->nregions; p++)
    if (p != gateway->self && !a->ended[p] && said_by(gateway, p)->next == GT_NEVER) a->ended[p] = true;
  return true;
}
