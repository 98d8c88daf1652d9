/* ssgd: every step the regions average their gradients before anyone goes on.  A round is a step.
   Synchronous SGD (Chen et al. 2016), the mean weighted over the regions that still make steps. */
#include "internal.h"
#include "rounds.h"

typedef struct {
  gt_sync base;
  gt_rounds rounds;
  gt_vec grads; /* the own gradient while its round is open */
} ssgd;

static void ssgd_open(gt_sync *s) {
  ssgd *a = (ssgd *)s;
  gt_rounds_open(&a->rounds, s, s->env.params.n);
  a->grads = gt_sync_vec(s, s->env.params.n);
}

static void ssgd_close(gt_sync *s) {
  ssgd *a = (ssgd *)s;
  gt_free(a->grads.data);
  gt_rounds_close(&a->rounds);
}

/* Does all that can be done now: posts, applies complete steps, holds or releases. */
static void advance(gt_sync *s) {
  ssgd *a = (ssgd *)s;
  gt_rounds *r = &a->rounds;
  const gt_sync_host *host = &s->env.host;
  if (gt_rounds_can_post(r, s)) {
    gt_payload *payload = host->payload(host->ctx, false);
    gt_vec_copy(payload->vec, a->grads);
    r->posted = r->own;
    host->post(host->ctx, payload, GT_MSG_UPDATE, (uint64_t)r->own, (uint64_t)r->samples, false);
  }
  while (gt_rounds_next(r, a->grads, gt_vec_of(NULL, 0))) gt_sync_step(s, r->mean);
  gt_rounds_hold(r);
}

static void ssgd_on_start(gt_sync *s, gt_ns now) {
  (void)now;
  advance(s);
}

static void ssgd_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now;
  ssgd *a = (ssgd *)s;
  gt_vec_copy(a->grads, grads);
  a->rounds.samples = (int64_t)samples;
  gt_rounds_contribute(&a->rounds);
  advance(s);
}

static void ssgd_on_message(gt_sync *s, gt_ns now, size_t peer, const gt_frame_header *head, gt_vec payload) {
  (void)now;
  gt_inbox_push(&((ssgd *)s)->rounds.inbox, peer, head->value, payload);
  advance(s);
}

static void ssgd_on_sent(gt_sync *s, gt_ns now, size_t peer) {
  (void)now, (void)peer;
  advance(s);
}

static void ssgd_on_peer(gt_sync *s, gt_ns now, size_t peer, gt_peer_event event, int64_t value) {
  (void)now;
  gt_rounds_peer(&((ssgd *)s)->rounds, peer, event, value);
  advance(s);
}

static void ssgd_on_drain(gt_sync *s, gt_ns now) {
  (void)now;
  gt_rounds_leave(&((ssgd *)s)->rounds);
  advance(s);
}

static bool ssgd_drained(const gt_sync *s) {
  return gt_rounds_drained(&((const ssgd *)s)->rounds);
}

static bool ssgd_settled(const gt_sync *s) {
  return gt_rounds_settled(&((const ssgd *)s)->rounds);
}

static int64_t ssgd_rounds(const gt_sync *s) {
  return ((const ssgd *)s)->rounds.applied;
}

static void ssgd_save(gt_sync *s, gt_state *state) {
  ssgd *a = (ssgd *)s;
  gt_rounds_save(&a->rounds, state);
  if (gt_rounds_waiting(&a->rounds)) gt_sync_save_vec(state, "grads", a->grads);
}

static gt_status ssgd_load(gt_sync *s, const gt_state *state) {
  ssgd *a = (ssgd *)s;
  GT_TRY(gt_rounds_load(&a->rounds, state));
  return gt_rounds_waiting(&a->rounds) ? gt_sync_load_vec(state, "grads", a->grads) : GT_OK;
}

extern const gt_sync_ops gt_sync_ssgd;
const gt_sync_ops gt_sync_ssgd = {
    .name = "ssgd",
    .source = "synchronous SGD, Chen et al. (2016)",
    .sends = GT_MSG_UPDATE,
    .barrier = true,
    .lockstep = true,
    .size = sizeof(ssgd),
    .open = ssgd_open,
    .close = ssgd_close,
    .on_start = ssgd_on_start,
    .on_gradient = ssgd_on_gradient,
    .on_message = ssgd_on_message,
    .on_sent = ssgd_on_sent,
    .on_peer = ssgd_on_peer,
    .on_drain = ssgd_on_drain,
    .drained = ssgd_drained,
    .settled = ssgd_settled,
    .rounds = ssgd_rounds,
    .save = ssgd_save,
    .load = ssgd_load,
};
