/* Bounded outboxes: messages from posting to acknowledgement, their bodies, and the cap on
   bytes. */
#include <math.h>
#include <string.h>

#include "internal.h"

/* ---- the cap on bytes ------------------------------------------------------------------------

   limits.wan_bytes is never exceeded.  Region 0 keeps the account: it allows each region some bytes
   beyond those that the region has posted, in total at most the limit.  A PING reports the bytes
   that a region has posted; the PONG answers with the bytes that it may post.  Bytes count from
   their post, not from their sending. */

#define KEEPER ((size_t)0)
/* At most 1/AHEAD of a region's equal share of the remaining bytes is allowed in advance. */
#define AHEAD 8.0

static bool limited(const gt_outbox *o) {
  return o->spec.limit > 0 && o->spec.nregions > 1;
}

static bool keeps(const gt_outbox *o) {
  return o->spec.self == KEEPER;
}

double gt_outbox_posted(const gt_outbox *o) {
  return o->peers[o->spec.self].wan_bytes + o->account.queued;
}

double gt_outbox_wan_bytes(const gt_outbox *o) {
  double sum = o->account.queued;
  for (size_t p = 0; p < o->spec.nregions; p++) sum += o->peers[p].wan_bytes;
  return sum;
}

static void account_open(gt_outbox *o) {
  outbox_account *b = &o->account;
  const size_t n = o->spec.nregions;
  if (!limited(o)) return;
  b->allowed = GT_NEW_ARRAY(double, n);
  b->known = GT_NEW_ARRAY(bool, n);
  b->most = GT_NEW_ARRAY(double, n);
  for (size_t p = 0; p < n; p++) {
    b->allowed[p] = floor(o->spec.limit / (AHEAD * (double)n));
    b->known[p] = true;
  }
  b->low = b->allowed[0] / 2;
}

static void account_close(gt_outbox *o) {
  gt_free(o->account.allowed);
  gt_free(o->account.known);
  gt_free(o->account.most);
}

/* Region 0 allows nothing in advance until every region has reported its bytes. */
void gt_account_load(gt_outbox *o, double left) {
  outbox_account *b = &o->account;
  const size_t self = o->spec.self;
  o->peers[self].wan_bytes = fmax(o->peers[self].wan_bytes, left);
  if (!limited(o)) return;
  for (size_t p = 0; p < o->spec.nregions; p++) b->known[p] = p == self;
  b->allowed[self] = gt_outbox_posted(o);
  b->low = 0;
}

void gt_outbox_stop(gt_outbox *o) {
  o->account.stopped = true;
}

bool gt_outbox_sends(const gt_outbox *o) {
  return o->queued > 0;
}

bool gt_outbox_exhausted(const gt_outbox *o) {
  return o->account.exhausted;
}

/* ---- the cap: region 0 ----------------------------------------------------------------------- */

static bool all_known(const gt_outbox *o) {
  for (size_t p = 0; p < o->spec.nregions; p++)
    if (!o->account.known[p]) return false;
  return true;
}

static double posted_by(const gt_outbox *o, size_t region) {
  return region == o->spec.self ? gt_outbox_posted(o) : o->peers[region].wan_bytes;
}

static void allow(gt_outbox *o, size_t region) {
  const double limit = o->spec.limit;
  double *allowed = o->account.allowed, posted = posted_by(o, region), all = 0, free_bytes = limit;
  if (!all_known(o)) return;
  for (size_t p = 0; p < o->spec.nregions; p++) {
    all += posted_by(o, p);
    free_bytes -= allowed[p];
  }
  const double once = o->account.most[region];
  const double ahead = fmax((limit - all) / (AHEAD * (double)o->spec.nregions), once);
  const double more = floor(fmin(posted + ahead - allowed[region], free_bytes));
  if (more > 0 && allowed[region] + more >= posted + once) allowed[region] += more;
}

/* ---- the cap: messages that wait ------------------------------------------------------------- */

void gt_outbox_beat(gt_outbox *o, size_t peer) {
  if (peer == KEEPER) o->account.pings++;
  gt_outbox_control(
      o, peer,
      (gt_frame_header){.kind = GT_MSG_PING,
                        .range = *o->spec.number,
                        .value = (uint64_t)o->now,
                        .posted_bytes = (uint64_t)gt_outbox_posted(o),
                        .most_bytes = limited(o) ? (uint64_t)o->account.most[o->spec.self] : 0,
                        .samples = (uint64_t)*o->spec.samples},
      NULL, 0);
}

static void ask(gt_outbox *o) {
  if (o->account.answer > 0) return;
  gt_outbox_beat(o, KEEPER);
  o->account.answer = o->account.pings;
  o->account.asked_at = gt_outbox_posted(o);
}

static bool enough(const gt_outbox *o, double bytes) {
  return gt_outbox_posted(o) + bytes <= o->account.allowed[o->spec.self];
}

/* True if `bytes` more are allowed; if not, asks for them. */
static bool allows(gt_outbox *o, double bytes) {
  outbox_account *b = &o->account;
  if (!limited(o)) return true;
  b->most[o->spec.self] = fmax(b->most[o->spec.self], bytes);
  if (keeps(o) && !enough(o, bytes)) allow(o, KEEPER);
  if (enough(o, bytes)) {
    if (bytes >= b->need) b->need = 0;
    return true;
  }
  b->need = bytes;
  if (!keeps(o))
    ask(o);
  else if (all_known(o))
    b->exhausted = true;
  return false;
}

static void account_posted(gt_outbox *o, double bytes) {
  o->account.queued += bytes;
  if (limited(o) && !keeps(o) && !enough(o, o->account.low)) ask(o);
}

/* Counts posted bytes as sent. */
static void account_left(gt_outbox *o, double bytes) {
  o->account.queued -= bytes;
  gt_outbox_left(o, bytes);
}

void gt_outbox_left(gt_outbox *o, double bytes) {
  o->peers[o->spec.self].wan_bytes += bytes;
}

void gt_outbox_reported(gt_outbox *o, size_t peer, double bytes) {
  o->peers[peer].wan_bytes = bytes;
}

/* Ends the wait of messages for bytes if the cap now allows them; else the run may have to end.
   final: a region that has posted as much as this one had when it asked gets no more. */
static bool go_on(gt_outbox *o, bool final) {
  outbox_account *b = &o->account;
  if (b->need <= 0 || b->stopped) return false;
  if (keeps(o) && !enough(o, b->need)) allow(o, KEEPER);
  if (enough(o, b->need)) {
    b->need = 0;
    return true;
  }
  if (final && (keeps(o) || gt_outbox_posted(o) == b->asked_at))
    b->exhausted = true;
  else if (final)
    ask(o);
  return false;
}

/* ---- the cap: heartbeats --------------------------------------------------------------------- */

bool gt_outbox_ping(gt_outbox *o, size_t from, const gt_frame_header *head) {
  outbox_account *b = &o->account;
  gt_outbox_reported(o, from, (double)head->posted_bytes);
  if (!limited(o) || !keeps(o)) return false;
  /* After a resume a region first reports the bytes that it has sent. */
  if (!b->known[from]) b->allowed[from] = o->peers[from].wan_bytes;
  b->known[from] = true;
  b->most[from] = (double)head->most_bytes;
  allow(o, from);
  return go_on(o, all_known(o));
}

void gt_outbox_answer(gt_outbox *o, size_t from, const gt_frame_header *head) {
  const bool allows = limited(o) && keeps(o) && all_known(o);
  gt_outbox_control(
      o, from,
      (gt_frame_header){.kind = GT_MSG_PONG,
                        .value = head->value,
                        .clock = (uint64_t)o->now,
                        .allowed_bytes = allows ? (uint64_t)o->account.allowed[from] : 0},
      NULL, 0);
}

bool gt_outbox_pong(gt_outbox *o, size_t from, const gt_frame_header *head) {
  outbox_account *b = &o->account;
  gt_links_measure_answer(o, &o->peers[from], (gt_ns)head->value, (gt_ns)head->clock);
  if (!limited(o) || from != KEEPER) return false;
  const double allowed = (double)head->allowed_bytes;
  double *own = &b->allowed[o->spec.self];
  if (allowed > *own) {
    *own = allowed;
    b->low = (allowed - gt_outbox_posted(o)) / 2;
  }
  if (++b->pongs < b->answer) return false;
  /* Region 0 cannot decide yet: the answer to the next heartbeat counts. */
  b->answer = allowed > 0 || b->need <= 0 ? 0 : b->pings + 1;
  return go_on(o, allowed > 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

static size_t inflight(const gt_outbox *o) {
  return (o->spec.outbox + o->spec.window) * o->use.unit;
}

gt_outbox *gt_outbox_create(const gt_outbox_spec *spec) {
  gt_outbox *o = GT_NEW(gt_outbox);
  o->spec = *spec;
  o->peers = GT_NEW_ARRAY(outbox_peer, spec->nregions);
  account_open(o);
  return o;
}

void gt_outbox_close(gt_outbox *o) {
  if (!o) return;
  for (size_t i = 0; i < o->npool; i++) {
    gt_free(o->pool[i]->data);
    gt_free(o->pool[i]);
  }
  for (size_t p = 0; p < o->spec.nregions; p++) gt_free(o->peers[p].messages);
  account_close(o);
  gt_free(o->orphans);
  gt_free(o->pool);
  gt_free(o->peers);
  gt_free(o);
}

/* Forwarded messages have an outbox of their own; a mesh forwards nothing. */
void gt_outbox_open(gt_outbox *o, const gt_outbox_use *use) {
  o->use = *use;
  const size_t own = inflight(o) + GT_OUTBOX_SPARE - 1;
  for (size_t p = 0; p < o->spec.nregions; p++)
    o->peers[p].capacity = own + o->spec.outbox * use->unit;
  for (size_t i = 0; i <= own && use->body > 0; i++) gt_outbox_body(o, use->body)->refs = 1;
  for (size_t i = 0; i < o->npool; i++) o->pool[i]->refs = 0;
}

void gt_outbox_at(gt_outbox *o, gt_ns now) {
  o->now = now;
}

gt_ns gt_outbox_now(const gt_outbox *o) {
  return o->now;
}

void gt_outbox_round(gt_outbox *o, int64_t round) {
  o->round = round;
}

void gt_outbox_hold(gt_outbox *o, size_t peer, bool holds) {
  o->peers[peer].held = holds;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* Returns a free body that is large enough.  The pool grows if peers end up with different models
   (ama), and if messages are pieces. */
gt_payload *gt_outbox_body(gt_outbox *o, size_t bytes) {
  gt_payload *free_one = NULL;
  for (size_t i = 0; i < o->npool && !free_one; i++)
    if (o->pool[i]->refs == 0 && o->pool[i]->capacity >= bytes) free_one = o->pool[i];
  if (!free_one) {
    GT_GROW(o->pool, o->npool, o->pool_capacity, 16);
    free_one = GT_NEW(gt_payload);
    free_one->capacity = bytes;
    free_one->data = o->spec.with_memory ? gt_alloc(bytes, 1) : NULL;
    o->pool[o->npool++] = free_one;
  }
  free_one->bytes = bytes;
  return free_one;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Forwarded messages and the region's own each have an outbox.  A single shared place would serve
   messages to several peers in an unfair order. */
static bool has_room(const gt_outbox *o, size_t peer, size_t messages, gt_room_use use) {
  const size_t outbox = o->spec.outbox, unit = o->use.unit;
  const outbox_peer *p = &o->peers[peer];
  if (use == GT_ROOM_REPLACING) return true;
  if (use == GT_ROOM_OWN)
    return p->own + messages <= outbox * unit && p->n + messages <= inflight(o) + outbox * unit;
  if (use == GT_ROOM_FORWARDED)
    return p->queued - p->own + messages <= (outbox > 1 ? outbox : 2) * unit &&
           p->n + messages <= inflight(o);
  return p->queued + messages <= outbox * unit && p->n + messages <= inflight(o);
}

bool gt_outbox_room(gt_outbox *o, const gt_outbox_want *wants, size_t n, gt_room_use use,
                    double bytes, size_t *full) {
  for (*full = 0; *full < n; ++*full)
    if (!has_room(o, wants[*full].peer, wants[*full].messages, use)) return false;
  return allows(o, bytes);
}

bool gt_outbox_has_room(const gt_outbox *o, size_t peer) {
  return has_room(o, peer, 1, GT_ROOM_OWN) || has_room(o, peer, 1, GT_ROOM_FORWARDED);
}

/* ---- posting --------------------------------------------------------------------------------- */

static double wire_bytes(const outbox_message *m) {
  return (double)gt_message_wire_bytes(&m->head, m->bytes);
}

static void hand_over(gt_outbox *o, size_t peer, outbox_message *m) {
  const unsigned char *data = m->payload->data;
  m->parked = false;
  m->head.round = (uint32_t)o->round;
  m->head.epoch = (uint16_t)o->epoch;
  if (o->spec.carries) {
    m->head.acknowledged = (uint64_t)o->peers[peer].taken;
    o->peers[peer].owed = false;
    o->peers[peer].answers = true;
  }
  o->spec.gateway.send(o->spec.gateway.ctx, peer, &m->head, data ? data + m->first : NULL, m->bytes,
                       m->id);
}

/* Gives the gateway messages in order, as far as the cap and the window allow.  Without
   acknowledgements the gateway holds at most a window; a newer model replaces one in the outbox. */
static void unpark(gt_outbox *o, size_t peer) {
  outbox_peer *p = &o->peers[peer];
  if (p->held || p->paused) return;
  for (size_t i = 0; i < p->n && i < inflight(o); i++) {
    outbox_message *m = &p->messages[i];
    if (!m->parked) continue;
    if (!allows(o, wire_bytes(m))) return;
    account_posted(o, wire_bytes(m));
    hand_over(o, peer, m);
  }
}

void gt_outbox_retry(gt_outbox *o) {
  for (size_t p = 0; p < o->spec.nregions; p++)
    if (p != o->spec.self) unpark(o, p);
}

/* The array grows as needed; most links never use the whole capacity. */
static outbox_message *new_place(outbox_peer *p) {
  if (p->n == p->places) {
    size_t places = 2 * p->places + 2 < p->capacity ? 2 * p->places + 2 : p->capacity;
    outbox_message *messages = GT_NEW_ARRAY(outbox_message, places);
    if (p->n) memcpy(messages, p->messages, p->n * sizeof *messages);
    gt_free(p->messages);
    p->messages = messages;
    p->places = places;
  }
  return &p->messages[p->n++];
}

void gt_outbox_enqueue(gt_outbox *o, size_t peer, const gt_frame_header *head, gt_payload *payload,
                       size_t first, size_t bytes) {
  outbox_peer *p = &o->peers[peer];
  outbox_message *m = new_place(p);
  *m = (outbox_message){.id = ++p->next_id,
                        .head = *head,
                        .payload = payload,
                        .first = first,
                        .bytes = bytes,
                        .own = head->route.origin == o->use.origin,
                        .parked = true,
                        .behind = p->queued > 0,
                        .posted = o->now};
  p->queued++;
  o->queued++;
  p->own += m->own;
  o->unacknowledged++;
  payload->refs++;
  unpark(o, peer);
}

/* Replaces the newest message by this one; false: all are being sent. */
static bool replace_newest(gt_outbox *o, size_t peer, const gt_outbox_message *by) {
  outbox_peer *p = &o->peers[peer];
  const gt_outbox_gateway *gateway = &o->spec.gateway;
  if (p->n == 0 || p->messages[p->n - 1].departed || p->messages[p->n - 1].resent) return false;
  outbox_message *m = &p->messages[p->n - 1];
  const bool parked = m->parked;
  if (!parked && !gateway->drop(gateway->ctx, peer, m->id)) return false;
  const uint64_t sequence = m->head.sequence;
  m->id = ++p->next_id;
  m->head = by->head;
  m->head.round = (uint32_t)o->round;
  m->head.sequence = sequence;
  m->payload->refs--;
  m->payload = by->payload;
  m->posted = o->now;
  by->payload->refs++;
  if (!parked) hand_over(o, peer, m);
  return true;
}

void gt_outbox_post(gt_outbox *o, size_t peer, const gt_outbox_message *message) {
  outbox_peer *p = &o->peers[peer];
  if (message->replace && !has_room(o, peer, 1, GT_ROOM_ANY) && replace_newest(o, peer, message))
    return;
  if (p->n == p->capacity) gt_bug("outbox: a message was posted to a peer without room");
  gt_frame_header head = message->head;
  head.round = (uint32_t)o->round;
  head.sequence = (uint64_t)++p->sent;
  gt_outbox_enqueue(o, peer, &head, message->payload, message->first, message->bytes);
}

static void has_left(gt_outbox *o, outbox_peer *p, const outbox_message *m) {
  p->queued--;
  o->queued--;
  p->own -= m->own;
  account_left(o, wire_bytes(m));
}

bool gt_outbox_departed(gt_outbox *o, size_t peer, uint64_t cookie) {
  outbox_peer *p = &o->peers[peer];
  for (size_t i = 0; i < p->n; i++)
    if (p->messages[i].id == cookie && !p->messages[i].departed) {
      p->messages[i].departed = true;
      has_left(o, p, &p->messages[i]);
      return true;
    }
  for (size_t i = 0; i < o->norphans; i++) {
    if (o->orphans[i].peer != peer || o->orphans[i].id != cookie) continue;
    o->orphans[i].payload->refs--;
    o->orphans[i] = o->orphans[--o->norphans];
    break;
  }
  return false;
}

/* ---- members --------------------------------------------------------------------------------- */

static void close_orphans(gt_outbox *o, size_t peer) {
  for (size_t i = o->norphans; i-- > 0;)
    if (o->orphans[i].peer == peer) {
      o->orphans[i].payload->refs--;
      o->orphans[i] = o->orphans[--o->norphans];
    }
}

void gt_outbox_lost(gt_outbox *o, size_t peer) {
  outbox_peer *p = &o->peers[peer];
  for (size_t i = 0; i < p->n; i++) p->messages[i].dropped |= !p->messages[i].parked;
  close_orphans(o, peer);
}

/* Keeps the body of a message that the gateway is sending. */
static void forget(gt_outbox *o, size_t peer, outbox_message *m) {
  const gt_outbox_gateway *gateway = &o->spec.gateway;
  const bool sending = !o->peers[peer].absent && !m->parked && !m->departed && !m->dropped &&
                       !gateway->drop(gateway->ctx, peer, m->id);
  if (!m->departed) has_left(o, &o->peers[peer], m);
  if (!sending) {
    m->payload->refs--;
    return;
  }
  GT_GROW(o->orphans, o->norphans, o->orphans_capacity, 4);
  o->orphans[o->norphans++] = (struct outbox_orphan){peer, m->id, m->payload};
}

void gt_outbox_renew(gt_outbox *o, size_t peer, bool present) {
  outbox_peer *p = &o->peers[peer];
  p->absent = !present;
  for (size_t i = 0; i < p->n; i++) forget(o, peer, &p->messages[i]);
  if (!present) close_orphans(o, peer);
  o->unacknowledged -= p->n;
  p->n = 0;
  p->sent = p->taken = p->received = 0;
  p->held = p->owed = p->answers = false;
}

void gt_outbox_epoch(gt_outbox *o, int64_t epoch, size_t origin) {
  o->epoch = epoch;
  o->use.origin = origin;
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

bool gt_outbox_acknowledged(gt_outbox *o, size_t peer, int64_t sequence, bool late) {
  outbox_peer *p = &o->peers[peer];
  size_t gone = 0;
  while (gone < p->n && (int64_t)p->messages[gone].head.sequence <= sequence) {
    outbox_message *m = &p->messages[gone++];
    /* the acknowledgement arrived before the report of its sending */
    if (!m->departed) has_left(o, p, m);
    if (!late) {
      gt_links_measure_rate(o, p, m);
      gt_links_measure_wait(o, p, m);
    }
    m->payload->refs--;
    p->last_ack = o->now;
  }
  if (gone == 0) return false;
  p->n -= gone;
  o->unacknowledged -= gone;
  memmove(p->messages, p->messages + gone, p->n * sizeof *p->messages);
  unpark(o, peer);
  return true;
}

void gt_outbox_received(gt_outbox *o, size_t peer, int64_t sequence) {
  o->peers[peer].received = sequence;
}

void gt_outbox_pause(gt_outbox *o, size_t peer, bool pauses) {
  o->peers[peer].paused = pauses && o->spec.carries;
  if (o->spec.carries && !pauses) unpark(o, peer);
}

/* True if a message was posted during a pause, and leaves after it. */
static bool leaves(const gt_outbox *o, const outbox_peer *p) {
  return p->paused && !p->held && p->n > 0 && p->n <= inflight(o) && p->messages[p->n - 1].parked;
}

void gt_outbox_ack(gt_outbox *o, size_t peer, int64_t more) {
  outbox_peer *p = &o->peers[peer];
  p->taken += more;
  p->owed = o->spec.carries && (p->answers || leaves(o, p));
  p->answers = false;
  if (!p->owed) gt_outbox_send_ack(o, peer);
}

void gt_outbox_ack_owed(gt_outbox *o) {
  for (size_t peer = 0; peer < o->spec.nregions && o->spec.carries; peer++)
    if (o->peers[peer].owed) {
      o->peers[peer].owed = false;
      gt_outbox_send_ack(o, peer);
    }
}

size_t gt_outbox_unacknowledged(const gt_outbox *o) {
  return o->unacknowledged;
}
