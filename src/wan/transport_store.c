/* The transport over a store, and its endpoint (store.h). */
#include "store.h"

#include <stdio.h>
#include <string.h>

#define PART_S   5.0
#define PEERS_ID UINT64_C(1) /* number of the transport of a group; those of gateways are random */

static void store_progress(gt_transport *t) {
  store_endpoint *s = t->store;
  gt_store_cards_progress(s);
  for (size_t i = 0; i < STORE_TRANSPORTS; i++)
    if (s->open[i]) (void)gt_store_shares_progress(s->open[i]);
  for (size_t peer = 0; peer < s->base.nregions; peer++) {
    if (peer == s->base.self) continue;
    for (size_t i = 0; i < STORE_TRANSPORTS; i++)
      if (s->open[i]) gt_store_lane_pump_out(s->open[i], peer);
    gt_store_lane_pump_in(t, peer);
    /* a region that returns repeats its messages */
    if (t->past && t->lanes[peer].ready) gt_store_lane_release(t, peer);
  }
}

/* ---- the transport --------------------------------------------------------------------------- */

static size_t place_of(const gt_transport *t) {
  return t->servers ? STORE_OF_GATEWAY : STORE_OF_PEERS;
}

static gt_transport *store_open(gt_peers *servers, const gt_transport_spec *spec) {
  gt_transport *t = GT_NEW(gt_transport);
  store_endpoint *s = (store_endpoint *)spec->endpoint;
  *t = (gt_transport){.servers = servers,
                      .store = s,
                      .id = servers ? s->base.run_id : PEERS_ID,
                      .frame_bytes = spec->frame_bytes,
                      .keeps = !servers};
  t->lanes = GT_NEW_ARRAY(store_lane, spec->nregions);
  for (size_t peer = 0; peer < spec->nregions; peer++)
    if (peer != spec->self) gt_store_lane_open(t, peer, spec->windows[peer]);
  s->open[place_of(t)] = t;
  return t;
}

static void store_send_frame(gt_transport *t, size_t peer, size_t slot, const void *frame,
                             size_t bytes) {
  gt_store_lane_queue(t, peer, slot, frame, bytes);
  gt_store_lane_pump_out(t, peer);
}

/* True if the peer has ended, and everything that it has sent has been read. */
static bool has_gone(const gt_transport *t, size_t peer) {
  const store_lane *l = &t->lanes[peer];
  const store_peer *p = &t->store->peers[peer];
  return p->ended && !l->ready && l->empty > p->ended_at;
}

static bool has_left(const gt_transport *t, size_t peer) {
  return has_gone(t, peer) && t->store->peers[peer].code == GT_OK;
}

/* A peer that has left changes nothing: its object can be one that others read. */
static bool store_sent(gt_transport *t, size_t peer, size_t slot) {
  const store_lane *l = &t->lanes[peer];
  return l->slot_sequence[slot] <= l->acked;
}

static const void *store_receive(gt_transport *t, size_t peer, size_t *bytes) {
  store_lane *l = &t->lanes[peer];
  gt_store_lane_pump_in(t, peer);
  if (!l->ready || l->restarted) return NULL;
  *bytes = l->get.bytes;
  return l->frame;
}

static gt_ns store_heard(const gt_transport *t, size_t peer) {
  return t->lanes[peer].heard;
}

static gt_loss store_lost(gt_transport *t, size_t peer) {
  store_lane *l = &t->lanes[peer];
  const store_peer *p = &t->store->peers[peer];
  if (l->restarted) {
    l->restarted = false;
    return GT_STARTED_AGAIN;
  }
  if (!has_gone(t, peer) || p->code == GT_OK || l->forgotten) return GT_NOT_LOST;
  gt_store_lane_forget(t, peer);
  return GT_ENDED;
}

static bool store_here(const gt_transport *t, size_t peer) {
  return t->store->peers[peer].start != 0 && !t->store->peers[peer].ended;
}

static bool store_absent(const gt_transport *t, size_t peer) {
  (void)t, (void)peer;
  return false; /* a card does not say whether its region lives */
}

static void store_repeat(gt_transport *t, const gt_past_frame *frames, size_t n, const bool *late) {
  t->past = frames;
  t->npast = n;
  for (size_t peer = 0; peer < t->store->base.nregions; peer++)
    if (peer != t->store->base.self && (late[peer] || !t->store->peers[peer].start))
      gt_store_lane_queue_past(t, peer);
}

/* ---- closing --------------------------------------------------------------------------------- */

/* Returns a region for which frames are not in the store, or of which frames that were read are
   there; nregions: none.  Frames that still arrive are dropped. */
static size_t settle(gt_transport *t) {
  const size_t n = t->store->base.nregions;
  size_t missing = n, bytes;
  store_progress(t);
  for (size_t peer = 0; peer < n; peer++) {
    if (peer == t->store->base.self) continue;
    store_lane *l = &t->lanes[peer];
    while (store_receive(t, peer, &bytes)) gt_store_lane_release(t, peer);
    if (l->forgotten || !t->store->peers[peer].start) continue;
    if (l->deleting || l->deleted + 1 < l->next || (!has_left(t, peer) && l->acked < l->queued))
      missing = peer;
  }
  return missing;
}

static void keep_settling(void *context) {
  (void)settle(context);
}

/* True if a look at each lane, begun after that time, has found nothing. */
static bool found_nothing(const gt_transport *t, gt_ns since) {
  for (size_t peer = 0; peer < t->store->base.nregions; peer++) {
    const store_lane *l = &t->lanes[peer];
    const bool looks = peer != t->store->base.self && !l->forgotten && !l->refers;
    if (looks && l->empty <= since) return false;
  }
  return true;
}

/* Reads what the others had written before all met: it would stay in the store. */
static void read_the_rest(gt_transport *t, gt_ns until) {
  const gt_ns since = gt_now();
  gt_backoff backoff = {0};
  for (size_t peer = 0; peer < t->store->base.nregions; peer++) t->lanes[peer].look = 0;
  while ((settle(t) < t->store->base.nregions || !found_nothing(t, since)) && gt_now() < until)
    gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, until);
}

/* Ends with the regions that are there. */
static void part(gt_transport *t) {
  store_endpoint *s = t->store;
  const gt_ns until = gt_now() + gt_from_seconds(PART_S);
  gt_backoff backoff = {0};
  gt_store_say_bye(s, s->base.code);
  for (bool all = false; !all && gt_now() < until;) {
    all = true;
    (void)settle(t);
    for (size_t peer = 0; peer < s->base.nregions; peer++)
      all &= peer == s->base.self || !s->peers[peer].start || s->peers[peer].ended;
    gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, until);
  }
}

/* True if a request in progress uses the transport's memory. */
static bool is_used(const gt_transport *t) {
  bool used = false;
  for (size_t peer = 0; peer < t->store->base.nregions; peer++) {
    const store_lane *l = &t->lanes[peer];
    if (l->getting) used |= gt_objects_state(&l->get) == GT_OBJECT_BUSY;
    if (l->deleting) used |= gt_objects_state(&l->deletion) == GT_OBJECT_BUSY;
    for (size_t i = 0; i < STORE_PUTS; i++)
      if (l->puts[i].busy) used |= gt_objects_state(&l->puts[i].request) == GT_OBJECT_BUSY;
  }
  for (size_t i = 0; i < t->nshares; i++)
    if (t->shares[i]->deleting) used |= gt_objects_state(&t->shares[i]->deletion) == GT_OBJECT_BUSY;
  return used;
}

/* Nothing more is written.  Regions that have ended, or all, read no more; what others are to read
   stays. */
static void leave(gt_transport *t, bool all) {
  for (size_t peer = 0; peer < t->store->base.nregions; peer++) {
    const store_peer *p = &t->store->peers[peer];
    t->lanes[peer].queued = t->lanes[peer].begun;
    if (all || p->ended || !p->start) gt_store_share_leave(t, peer);
  }
  t->latest = NULL;
}

/* Ends requests, and deletes what all have read.  True if none is in progress. */
static bool ends_requests(gt_transport *t) {
  for (size_t peer = 0; peer < t->store->base.nregions; peer++) gt_store_lane_pump_out(t, peer);
  return gt_store_shares_progress(t) && !is_used(t);
}

static void store_close(gt_transport *t, double limit_s) {
  store_endpoint *s = t->store;
  const bool needs_all = t->servers && !s->base.restarts;
  const gt_ns until = gt_now() + gt_from_seconds(limit_s);
  gt_backoff backoff = {0};
  for (size_t missing; (missing = settle(t)) < s->base.nregions;) {
    if (gt_now() > until && !needs_all) break;
    if (gt_now() > until)
      gt_panic(GT_ERR_LOST, "waited %.0f s for the store to take the last frames to region %s",
               limit_s, s->base.names[missing]);
    gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, until);
  }
  if (t->servers && s->base.restarts) part(t);
  if (needs_all)
    gt_peers_meet(t->servers, &(gt_peers_wait){.what = "the other regions to close their links",
                                               .limit_s = limit_s,
                                               .progress = keep_settling,
                                               .context = t});
  if (needs_all) read_the_rest(t, gt_now() + gt_from_seconds(s->base.patience_s));
  s->open[place_of(t)] = NULL;
  const gt_ns end = gt_now() + gt_from_seconds(s->base.patience_s);
  leave(t, needs_all);
  while (!ends_requests(t) && gt_now() < end) gt_backoff_sleep(&backoff, GT_BACKOFF_BUSY, end);
  if (is_used(t)) /* a thread reads or writes memory that would be freed */
    gt_panic(GT_ERR_LOST, "waited %.0f s for the store to answer a request", s->base.patience_s);
  if (t->servers) s->base.run_id++; /* the next gateway of the run takes none of these frames */
  for (size_t peer = 0; peer < s->base.nregions; peer++) gt_store_lane_close(&t->lanes[peer]);
  gt_store_shares_close(t);
  gt_free(t->lanes);
  gt_free(t);
}

static void say_bye(void *transport, gt_status code) {
  gt_store_say_bye(((gt_transport *)transport)->store, code);
}

static const gt_transport_ops by_store = {
    .name = "store",
    .open = store_open,
    .progress = store_progress,
    .send_frame = store_send_frame,
    .sent = store_sent,
    .receive = store_receive,
    .release = gt_store_lane_release,
    .lost = store_lost,
    .forget = gt_store_lane_forget,
    .left = has_left,
    .heard = store_heard,
    .close = store_close,
    .say_bye = say_bye,
    .here = store_here,
    .absent = store_absent,
    .repeat = store_repeat,
};

/* ---- the endpoint ---------------------------------------------------------------------------- */

static void close_endpoint(gt_endpoint *endpoint) {
  store_endpoint *s = (store_endpoint *)endpoint;
  if (!gt_objects_close(s->objects)) return; /* a thread still uses what would be freed */
  gt_store_cards_close(s);
  gt_free(s->polls);
  gt_endpoint_free(endpoint);
  gt_free(s);
}

gt_status gt_store_join(gt_endpoint **out, const gt_store_spec *spec) {
  store_endpoint *s = GT_NEW(store_endpoint);
  gt_endpoint_init(&s->base, &by_store, spec->names, spec->nregions, spec->self);
  s->base.close = close_endpoint;
  s->base.restarts = spec->restarts;
  s->base.patience_s = spec->patience_s;
  s->poll = gt_from_seconds(spec->poll_s);
  s->polls = GT_NEW_ARRAY(gt_ns, spec->nregions);
  for (size_t r = 0; r < spec->nregions; r++) s->polls[r] = gt_from_seconds(spec->polls_s[r]);
  gt_store_cards_open(s);
  char owner[32];
  snprintf(owner, sizeof owner, "region-%zu", spec->self);
  const gt_status status = gt_objects_open(&s->objects, spec->url, owner, spec->patience_s);
  if (status == GT_OK)
    *out = &s->base;
  else
    close_endpoint(&s->base);
  return status;
}

void gt_store_count(const gt_endpoint *endpoint, gt_store_counts data[2]) {
  memcpy(data, ((const store_endpoint *)endpoint)->counts, 2 * sizeof *data);
}
