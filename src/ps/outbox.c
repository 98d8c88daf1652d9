/* Bounded outboxes: messages from posting to acknowledgement, and their payloads; what the exchange
   and the strategy ask of the PS. */
#include <string.h>

#include "internal.h"

size_t gt_ps_inflight(const gt_ps *ps) {
  return (ps->spec.outbox + ps->spec.window) * ps->unit;
}

/* ---- payloads -------------------------------------------------------------------------------- */

/* A free payload that is large enough.  The pool is filled when the PS is created; it grows if
   peers end up with different models (ama), and if messages are pieces. */
gt_payload *gt_ps_payload(gt_ps *ps, size_t floats) {
  gt_payload *free_one = NULL;
  for (size_t i = 0; i < ps->npool && !free_one; i++)
    if (ps->pool[i]->refs == 0 && ps->pool[i]->capacity >= floats) free_one = ps->pool[i];
  if (!free_one) {
    GT_GROW(ps->pool, ps->npool, ps->pool_capacity, 16);
    free_one = GT_NEW(gt_payload);
    free_one->capacity = floats;
    free_one->vec.data = ps->spec.params.data ? GT_NEW_ARRAY(float, floats) : NULL;
    ps->pool[ps->npool++] = free_one;
  }
  free_one->vec.n = floats;
  return free_one;
}

static gt_payload *host_payload(void *ctx, size_t n) {
  gt_ps *ps = ctx;
  ps->encode_from = gt_ps_clock(ps);
  return gt_ps_payload(ps, n);
}

/* ---- posting --------------------------------------------------------------------------------- */

static bool has_places(const gt_ps *ps, size_t peer, size_t messages) {
  const ps_peer *p = &ps->peers[peer];
  return p->queued + messages <= ps->spec.outbox * ps->unit &&
         p->n + messages <= gt_ps_inflight(ps);
}

static bool has_place(const gt_ps *ps, size_t peer) {
  return has_places(ps, peer, 1);
}

static bool is_own(const gt_ps *ps, const ps_message *m) {
  return m->head.route.origin == ps->twins.self;
}

/* Messages that are forwarded and those of the region itself each have an outbox of their own.  With
   a single place those that need it at several peers would be served in an unfair order. */
static bool host_room(void *ctx, size_t member, size_t messages, gt_room_use use) {
  const gt_ps *ps = ctx;
  const size_t peer = ps->twins.regions[member], outbox = ps->spec.outbox;
  const ps_peer *p = &ps->peers[peer];
  if (use == GT_ROOM_OWN)
    return p->own + messages <= outbox * ps->unit &&
           p->n + messages <= gt_ps_inflight(ps) + outbox * ps->unit;
  if (use == GT_ROOM_FORWARDED)
    return p->queued - p->own + messages <= (outbox > 1 ? outbox : 2) * ps->unit &&
           p->n + messages <= gt_ps_inflight(ps);
  return has_places(ps, peer, messages);
}

/* There may be room for the exchange's messages to the region. */
static void room_at(gt_ps *ps, size_t region) {
  const size_t member = ps->twins.of[region];
  if (member != PS_NONE &&
      (host_room(ps, member, 1, GT_ROOM_OWN) || host_room(ps, member, 1, GT_ROOM_FORWARDED)))
    gt_exchange_room(ps->exchange, member);
}

static bool host_afford(void *ctx, size_t messages, size_t floats) {
  gt_ps *ps = ctx;
  return gt_ps_affords(ps, (double)gt_exchange_wire_bytes(ps->exchange, messages, floats));
}

static double wire_bytes(const ps_message *m) {
  return (double)gt_message_wire_bytes(&m->head, m->bytes);
}

static const float *body_of(const ps_message *m) {
  return m->payload->vec.data ? m->payload->vec.data + m->first : NULL;
}

static void hand_over(gt_ps *ps, size_t peer, ps_message *m) {
  m->parked = false;
  gt_ps_budget_posted(ps, wire_bytes(m));
  m->head.round = (uint32_t)ps->round;
  ps->spec.host.send(ps->spec.host.ctx, peer, &m->head, body_of(m), m->bytes, m->id);
}

/* Grows as needed; most links never use the whole capacity. */
static ps_message *new_place(ps_peer *p) {
  if (p->n == p->places) {
    size_t places = 2 * p->places + 2 < p->capacity ? 2 * p->places + 2 : p->capacity;
    ps_message *messages = GT_NEW_ARRAY(ps_message, places);
    if (p->n) memcpy(messages, p->messages, p->n * sizeof *messages);
    gt_free(p->messages);
    p->messages = messages;
    p->places = places;
  }
  return &p->messages[p->n++];
}

/* Hands over messages in order, as far as the limit on bytes and the window allow, and when the peer
   has taken every round that this region has. */
static void unpark(gt_ps *ps, size_t peer) {
  ps_peer *p = &ps->peers[peer];
  if (gt_ps_behind(ps, peer)) return;
  for (size_t i = 0; i < p->n && i < gt_ps_inflight(ps); i++) {
    ps_message *m = &p->messages[i];
    if (!m->parked) continue;
    if (!gt_ps_affords(ps, wire_bytes(m))) return;
    hand_over(ps, peer, m);
  }
}

void gt_ps_outbox_retry(gt_ps *ps) {
  for (size_t p = 0; p < ps->spec.nregions; p++)
    if (p != ps->spec.self) unpark(ps, p);
  for (size_t p = 0; p < ps->spec.nregions; p++)
    if (p != ps->spec.self) room_at(ps, p);
}

/* However long a peer does not acknowledge, the gateway gets no more than the window allows: a
   newer model replaces one here instead. */
void gt_ps_enqueue(gt_ps *ps, size_t peer, const gt_frame_header *head, gt_payload *payload,
                   size_t first, size_t n) {
  ps_peer *p = &ps->peers[peer];
  ps_message *m = new_place(p);
  *m = (ps_message){.id = ++p->next_id,
                    .head = *head,
                    .payload = payload,
                    .first = (int64_t)first,
                    .bytes = n * sizeof(float),
                    .parked = true,
                    .behind = p->queued > 0,
                    .posted = ps->now};
  p->queued++;
  p->own += is_own(ps, m);
  ps->unacknowledged++;
  payload->refs++;
  unpark(ps, peer);
}

/* Replaces the payload of the newest message that has not begun to leave; false: there is none. */
static bool replace_newest(gt_ps *ps, size_t peer, const gt_frame_header *head,
                           gt_payload *payload) {
  ps_peer *p = &ps->peers[peer];
  if (p->n == 0 || p->messages[p->n - 1].departed || p->messages[p->n - 1].resent) return false;
  ps_message *m = &p->messages[p->n - 1];
  gt_frame_header swapped = *head;
  swapped.sequence = m->head.sequence;
  uint64_t id = p->next_id + 1;
  if (!m->parked &&
      !ps->spec.host.replace(ps->spec.host.ctx, peer, m->id, &swapped, payload->vec.data, id))
    return false;
  p->next_id = m->id = id;
  m->head = swapped;
  m->payload->refs--;
  m->payload = payload;
  m->posted = ps->now;
  payload->refs++;
  return true;
}

static void post_to(gt_ps *ps, size_t peer, const gt_exchange_message *m) {
  ps_peer *p = &ps->peers[peer];
  gt_frame_header head = m->head;
  head.round = (uint32_t)ps->round;
  if (m->replace && !has_place(ps, peer) && replace_newest(ps, peer, &head, m->payload)) return;
  if (p->n == p->capacity) gt_bug("outbox: a message was posted to a peer without room");
  head.sequence = (uint64_t)++p->sent_seq;
  gt_ps_enqueue(ps, peer, &head, m->payload, m->first, m->n);
}

double gt_ps_part(const gt_ps *ps, unsigned kind, size_t n) {
  const size_t whole = ps->spec.params.n + (kind == GT_MSG_STATE ? ps->spec.buffers.n : 0);
  return (double)n / (double)whole;
}

static void host_post(void *ctx, const gt_exchange_message *m) {
  gt_ps *ps = ctx;
  const double copied = m->again ? 0 : gt_ps_part(ps, m->head.kind, m->n);
  ps->totals.encode += gt_ps_worked(ps, GT_WORK_COPY, copied) - ps->encode_from;
  ps->encode_from = gt_ps_clock(ps); /* of the next piece of the same payload */
  m->payload->refs++;                /* so that it is not taken for free between two peers */
  for (size_t i = 0; i < m->nto; i++) post_to(ps, ps->twins.regions[m->to[i]], m);
  m->payload->refs--;
}

/* Messages that are not finite are dropped and counted; if no region can continue without them, the
   run ends. */
void gt_ps_spoilt(gt_ps *ps, size_t from) {
  ps->totals.nonfinite++;
  ps->spec.host.note(ps->spec.host.ctx, GT_NOTE_NONFINITE, (double)ps->totals.nonfinite,
                     -1 - (double)from);
  ps->peers[from].rejected = gt_ps_strategy(ps)->needs_all;
  if (ps->peers[from].rejected || ps->totals.nonfinite >= ps->spec.nonfinite_limit)
    ps->want_stop = GT_ERR_LIMIT;
}

static void host_spoilt(void *ctx, size_t member) {
  gt_ps *ps = ctx;
  gt_ps_spoilt(ps, ps->twins.regions[member]);
}

/* The exchange has taken the oldest message of the region that waited. */
static void host_taken(void *ctx, size_t member) {
  gt_ps *ps = ctx;
  const size_t peer = ps->twins.regions[member];
  gt_ps_control(ps, peer, GT_MSG_ACK, ++ps->peers[peer].applied_seq, 0);
}

void gt_ps_outbox_departed(gt_ps *ps, size_t peer, uint64_t cookie) {
  ps_peer *p = &ps->peers[peer];
  for (size_t i = 0; i < p->n; i++)
    if (p->messages[i].id == cookie && !p->messages[i].departed) {
      p->messages[i].departed = true;
      p->queued--;
      p->own -= is_own(ps, &p->messages[i]);
      gt_ps_budget_left(ps, wire_bytes(&p->messages[i]));
      room_at(ps, peer);
      break;
    }
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

void gt_ps_acknowledged(gt_ps *ps, size_t peer, int64_t sequence) {
  ps_peer *p = &ps->peers[peer];
  size_t gone = 0;
  while (gone < p->n && (int64_t)p->messages[gone].head.sequence <= sequence) {
    ps_message *m = &p->messages[gone++];
    if (!m->departed) { /* its acknowledgement overtook the news that it had left */
      p->queued--;
      p->own -= is_own(ps, m);
      gt_ps_budget_left(ps, wire_bytes(m));
    }
    gt_ps_measure_rate(ps, p, m);
    m->payload->refs--;
    p->last_ack = ps->now;
  }
  if (gone == 0) return;
  p->n -= gone;
  ps->unacknowledged -= gone;
  memmove(p->messages, p->messages + gone, p->n * sizeof *p->messages);
  unpark(ps, peer);
  room_at(ps, peer);
}

/* ---- control --------------------------------------------------------------------------------- */

void gt_ps_control(gt_ps *ps, size_t peer, gt_msg_kind kind, int64_t value, int64_t detail) {
  gt_frame_header head = {.kind = (uint8_t)kind,
                          .round = (uint32_t)ps->round,
                          .value = (uint64_t)value,
                          .detail = (uint64_t)detail};
  ps->spec.host.send(ps->spec.host.ctx, peer, &head, NULL, 0, 0);
}

void gt_ps_control_all(gt_ps *ps, gt_msg_kind kind, int64_t value, int64_t detail) {
  for (size_t p = 0; p < ps->spec.nregions; p++)
    if (p != ps->spec.self) gt_ps_control(ps, p, kind, value, detail);
}

/* ---- what a strategy sees -------------------------------------------------------------------- */

/* The workers are held as long as one of the strategies does so. */
static void set_holder(gt_ps *ps, unsigned holder, bool holds) {
  ps->holders = holds ? ps->holders | holder : ps->holders & ~holder;
  if (ps->held == (ps->holders != 0)) return;
  if (ps->held) ps->held_total += ps->now - ps->held_since;
  ps->held_since = ps->now;
  ps->held = ps->holders != 0;
}

enum { HOLDER_SYNC = 1, HOLDER_BETWEEN = 2 };

static void host_hold(void *ctx) {
  set_holder(ctx, HOLDER_SYNC, true);
}

static void host_release(void *ctx) {
  set_holder(ctx, HOLDER_SYNC, false);
}

static void between_hold(void *ctx) {
  set_holder(ctx, HOLDER_BETWEEN, true);
}

static void between_release(void *ctx) {
  set_holder(ctx, HOLDER_BETWEEN, false);
}

static gt_link_view host_link(void *ctx, size_t member) {
  return gt_ps_link_view(ctx, ((const gt_ps *)ctx)->twins.regions[member]);
}

static void host_timer(void *ctx, size_t id, gt_ns at) {
  gt_ps *ps = ctx;
  if (id >= GT_SYNC_TIMERS) gt_bug("timer %zu; there are %d", id, GT_SYNC_TIMERS);
  ps->timer_at[id] = at;
}

/* With stages also what this region has posted, for limits.wan_bytes. */
void gt_ps_tell_peer(gt_ps *ps, size_t peer, int64_t value, int64_t detail) {
  const gt_frame_header head = {
      .kind = GT_MSG_STRATEGY,
      .round = (uint32_t)ps->round,
      .sequence = ps->spec.nstages ? (uint64_t)gt_ps_committed(ps) : 0,
      .value = (uint64_t)value,
      .detail = (uint64_t)detail,
  };
  ps->spec.host.send(ps->spec.host.ctx, peer, &head, NULL, 0, 0);
}

static void host_tell(void *ctx, size_t mate, int64_t value, int64_t detail) {
  gt_ps *ps = ctx;
  gt_ps_tell_peer(ps, ps->mates.regions[mate], value, detail);
}

void gt_ps_tell_numbers(gt_ps *ps, size_t peer, int64_t value, size_t first, const double *numbers,
                        size_t n) {
  const gt_frame_header head = {.kind = GT_MSG_STRATEGY,
                                .round = (uint32_t)ps->round,
                                .value = (uint64_t)value,
                                .range = (uint32_t)first};
  ps->spec.host.send(ps->spec.host.ctx, peer, &head, numbers, n * sizeof *numbers, 0);
}

static void host_tell_numbers(void *ctx, size_t mate, int64_t value, size_t first,
                              const double *numbers, size_t n) {
  gt_ps *ps = ctx;
  gt_ps_tell_numbers(ps, ps->mates.regions[mate], value, first, numbers, n);
}

static void host_decided(void *ctx, const char *what, const char *choice, const char *why) {
  const gt_ps_host *host = &((const gt_ps *)ctx)->spec.host;
  if (host->decided) host->decided(host->ctx, what, choice, why);
}

gt_sync_host gt_ps_sync_host(gt_ps *ps) {
  return (gt_sync_host){.ctx = ps,
                        .hold = host_hold,
                        .release = host_release,
                        .timer = host_timer,
                        .tell = host_tell,
                        .tell_numbers = host_tell_numbers,
                        .decided = host_decided,
                        .link = host_link,
                        .moved = gt_ps_buffers_moved,
                        .made = gt_ps_stages_made};
}

gt_sync_host gt_ps_between_host(gt_ps *ps) {
  return (gt_sync_host){.ctx = ps,
                        .hold = between_hold,
                        .release = between_release,
                        .timer = host_timer,
                        .decided = host_decided,
                        .link = host_link,
                        .moved = gt_ps_buffers_moved};
}

gt_exchange_host gt_ps_exchange_host(gt_ps *ps) {
  return (gt_exchange_host){.ctx = ps,
                            .payload = host_payload,
                            .room = host_room,
                            .afford = host_afford,
                            .post = host_post,
                            .taken = host_taken,
                            .spoilt = host_spoilt};
}
