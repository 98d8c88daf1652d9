/* The card of each region: its start, the starts of the others that it has seen, its end. */
#include "store.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define CARD_MAGIC     UINT32_C(0x31435447) /* "GTC1" */
#define CARD_VERSION   2
#define CARD_BYTES_MAX ((size_t)64 << 10)
#define CARD_SLOWER    5 /* polls from one look at the cards to the next */
#define BYE_S          2.0

static store_card *own_card(const store_endpoint *s) {
  return (store_card *)(void *)s->own;
}

static void name_card(char name[GT_OBJECT_NAME], size_t region) {
  snprintf(name, GT_OBJECT_NAME, "region-%zu", region);
}

static void take_restart(store_endpoint *s, size_t peer) {
  if (!gt_endpoint_takes_back(&s->base))
    gt_panic(
        GT_ERR_LOST,
        "region %s has started again, and this run cannot take it back: end every region, then "
        "start each with --resume",
        s->base.names[peer]);
  gt_log(GT_LOG_WARN, "region %s has started again", s->base.names[peer]);
  for (size_t i = 0; i < STORE_TRANSPORTS; i++)
    if (s->open[i]) gt_store_lane_anew(s->open[i], peer);
}

/* The run has begun without the peer. */
static void take_late(store_endpoint *s, size_t peer) {
  for (size_t i = 0; i < STORE_TRANSPORTS; i++) {
    gt_transport *t = s->open[i];
    if (!t || !(t->lanes[peer].forgotten || (t->keeps && s->base.late[peer]))) continue;
    if (t->keeps) gt_log(GT_LOG_INFO, "region %s has come", s->base.names[peer]);
    gt_store_lane_anew(t, peer);
  }
}

static void take_end(store_endpoint *s, size_t peer, const store_card *c) {
  store_peer *p = &s->peers[peer];
  p->ended = true;
  p->ended_at = gt_now();
  p->code = (gt_status)c->code;
  if (p->code != GT_OK && !gt_endpoint_takes_back(&s->base))
    gt_panic(GT_ERR_LOST, "region %s has ended with code %d; its own log says why",
             s->base.names[peer], (int)p->code);
}

/* A card that is not this run's can be left from another one: the region's own replaces it. */
static void doubt(store_endpoint *s, size_t peer, const char *why) {
  if (!s->peers[peer].odd)
    gt_log(GT_LOG_WARN, "the card of region %s in the store is not used: %s", s->base.names[peer],
           why);
  s->peers[peer].odd = true;
}

static bool is_former(const store_peer *p, uint64_t start) {
  const size_t known = p->nformer < STORE_FORMER ? p->nformer : STORE_FORMER;
  for (size_t i = 0; i < known; i++)
    if (p->former[i] == start) return true;
  return false;
}

static bool has_ended_well(const store_peer *p) {
  return p->ended && p->code == GT_OK;
}

/* Takes a peer's card. */
static void take_card(store_endpoint *s, size_t peer) {
  store_peer *p = &s->peers[peer];
  store_card c;
  uint64_t knows;
  memcpy(&c, p->bytes, sizeof c); /* or less of it */
  if (p->get.bytes != s->card_bytes || c.magic != CARD_MAGIC || c.version != CARD_VERSION ||
      c.region != peer || c.nregions != s->base.nregions) {
    doubt(s, peer, "it is of another job or version");
    return;
  }
  memcpy(&knows, p->bytes + sizeof c + s->base.self * sizeof knows, sizeof knows);
  if (is_former(p, c.start)) return; /* a late word of an earlier start, or an old copy */
  if (p->start && p->start != c.start && !gt_endpoint_takes_back(&s->base)) {
    /* its card must not learn of this start, which ends */
    if (!has_ended_well(p)) take_restart(s, peer);
    return;
  }
  if (s->seen[peer] != c.start) {
    s->seen[peer] = c.start;
    s->due = true;
  }
  if (knows != s->base.start) return; /* of an earlier run, or it has not seen this start yet */
  if (p->start != c.start) {
    const bool again = p->start != 0;
    if (again) p->former[p->nformer++ % STORE_FORMER] = p->start;
    p->start = c.start;
    p->ended = false;
    if (again)
      take_restart(s, peer);
    else
      take_late(s, peer);
  }
  if (c.ended && !p->ended) take_end(s, peer, &c);
}

static void look_at(store_endpoint *s, size_t peer, gt_ns now) {
  store_peer *p = &s->peers[peer];
  const gt_object_state state = gt_objects_state(&p->get);
  if (p->asking && state != GT_OBJECT_BUSY) {
    p->asking = false;
    s->counts[1].reads += state != GT_OBJECT_MISSING;
    s->counts[1].failed_reads += state == GT_OBJECT_MISSING;
    if (state == GT_OBJECT_DONE) take_card(s, peer);
    if (state == GT_OBJECT_FAILED) doubt(s, peer, p->get.fault);
    p->next = now + (p->start ? CARD_SLOWER : 1) * s->poll;
  }
  if (p->asking || now < p->next) return;
  p->get.op = GT_OBJECT_GET;
  p->get.body = p->bytes;
  p->get.bytes = CARD_BYTES_MAX;
  name_card(p->get.name, peer);
  p->asking = true;
  gt_objects_begin(s->objects, &p->get);
}

static void ask_for_own(store_endpoint *s) {
  s->check.op = GT_OBJECT_GET;
  s->check.body = s->read;
  s->check.bytes = CARD_BYTES_MAX;
  name_card(s->check.name, s->base.self);
  s->checking = true;
  s->counts[1].reads++;
  gt_objects_begin(s->objects, &s->check);
}

/* True if another start of this region has written the card that was read. */
static bool is_replaced(const store_endpoint *s) {
  uint64_t start;
  if (gt_objects_state(&s->check) != GT_OBJECT_DONE || s->check.bytes != s->card_bytes)
    return false;
  memcpy(&start, s->read + offsetof(store_card, start), sizeof start);
  return start != s->base.start;
}

static void check_own(store_endpoint *s, gt_ns now) {
  if (s->checking && gt_store_ended(&s->check)) {
    s->checking = false;
    s->check_next = now + CARD_SLOWER * s->poll;
    if (gt_objects_state(&s->check) == GT_OBJECT_MISSING) s->due = true; /* after a clean-up */
    s->replaced = is_replaced(s);
    if (s->replaced)
      gt_panic(GT_ERR_CKPT,
               "another start of region %s has taken its place in the store; this one ends",
               s->base.names[s->base.self]);
  }
  if (!s->checking && !s->putting && !s->due && now >= s->check_next) ask_for_own(s);
}

static void begin_put(store_endpoint *s) {
  memcpy(s->written, s->own, s->card_bytes);
  s->put.op = GT_OBJECT_PUT;
  s->put.body = s->written;
  s->put.bytes = s->card_bytes;
  name_card(s->put.name, s->base.self);
  s->due = false;
  s->putting = true;
  s->counts[1].writes++;
  gt_objects_begin(s->objects, &s->put);
}

static void put_card(store_endpoint *s) {
  if (s->putting && gt_store_ended(&s->put)) s->putting = false;
  if (!s->putting && s->due && !s->checking) begin_put(s);
}

void gt_store_cards_progress(store_endpoint *s) {
  const gt_ns now = gt_now();
  put_card(s);
  check_own(s, now);
  for (size_t peer = 0; peer < s->base.nregions; peer++)
    if (peer != s->base.self) look_at(s, peer, now);
}

/* Waits for the requests for this region's card, without gt_store_ended: a store that fails must
   not end the run once more. */
static void wait_for_own(store_endpoint *s, gt_ns until) {
  gt_backoff backoff = {0};
  while (gt_now() < until) {
    if (s->putting && gt_objects_state(&s->put) != GT_OBJECT_BUSY) s->putting = false;
    if (s->checking && gt_objects_state(&s->check) != GT_OBJECT_BUSY) s->checking = false;
    if (!s->putting && !s->checking) return;
    gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, until);
  }
}

void gt_store_say_bye(store_endpoint *s, gt_status code) {
  const gt_ns until = gt_now() + gt_from_seconds(BYE_S);
  if (s->replaced) return; /* the card is another start's */
  own_card(s)->ended = 1;
  own_card(s)->code = (uint32_t)code;
  wait_for_own(s, until);
  if (!s->putting && !s->checking) ask_for_own(s);
  wait_for_own(s, until);
  if (s->putting || s->checking || is_replaced(s)) return;
  begin_put(s);
  wait_for_own(s, until);
}

void gt_store_cards_open(store_endpoint *s) {
  s->card_bytes = sizeof(store_card) + s->base.nregions * sizeof(uint64_t);
  s->own = gt_alloc(s->card_bytes, 1);
  s->written = gt_alloc(s->card_bytes, 1);
  s->read = gt_alloc(CARD_BYTES_MAX, 1);
  s->seen = (uint64_t *)(void *)(s->own + sizeof(store_card));
  s->peers = GT_NEW_ARRAY(store_peer, s->base.nregions);
  for (size_t r = 0; r < s->base.nregions; r++) s->peers[r].bytes = gt_alloc(CARD_BYTES_MAX, 1);
  *own_card(s) = (store_card){.magic = CARD_MAGIC,
                              .version = CARD_VERSION,
                              .region = (uint16_t)s->base.self,
                              .start = s->base.start,
                              .nregions = s->base.nregions};
  s->due = true;
}

void gt_store_cards_close(store_endpoint *s) {
  for (size_t r = 0; r < s->base.nregions; r++) gt_free(s->peers[r].bytes);
  gt_free(s->peers);
  gt_free(s->own);
  gt_free(s->written);
  gt_free(s->read);
}
