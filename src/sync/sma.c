/* sma: every f steps the regions wait for each other, and each takes the weighted mean of all models; a region's last round may
   have fewer.  Cloudless-Training (2023), synchronous model averaging.  Law: f = 1 with plain SGD is ssgd. */
#include "internal.h"
#include "rounds.h"

typedef struct {
  gt_sync base;
  gt_rounds rounds; /* the own contribution is the model itself: while the region waits, nothing changes it */
  int64_t steps;    /* since the last contribution */
} sma;

static void sma_open(gt_sync *s) {
  gt_rounds_open(&((sma *)s)->rounds, s, s->env.params.n + s->env.buffers.n);
}

static void sma_close(gt_sync *s) {
  gt_rounds_close(&((sma *)s)->rounds);
}

/* The region's model becomes the mean.  The others' part of it is what workers do not know yet. */
static void take_mean(gt_sync *s) {
  const gt_rounds *r = &((sma *)s)->rounds;
  const gt_sync_env *env = &s->env;
  gt_vec_scale(env->buffers, -r->share);
  gt_vec_axpy(env->buffers, 1, gt_vec_range(r->mean, env->params.n, env->buffers.n));
  gt_sync_buffers_moved(s, r->share, 1, env->buffers);
  gt_sync_copy_model_in(s, r->mean);
}

/* Does all that can be done now: posts, applies complete rounds, holds or releases. */
static void advance(gt_sync *s) {
  gt_rounds *r = &((sma *)s)->rounds;
  const gt_sync_host *host = &s->env.host;
  if (gt_rounds_can_post(r, s)) {
    gt_payload *payload = host->payload(host->ctx, true);
    uint64_t samples = (uint64_t)r->samples;
    gt_sync_copy_model_out(s, payload->vec);
    r->posted = r->own;
    r->samples = 0;
    host->post(host->ctx, payload, GT_MSG_STATE, (uint64_t)r->own, samples, false);
  }
  while (gt_rounds_next(r, s->env.params, s->env.buffers)) take_mean(s);
  gt_rounds_hold(r);
}

static void sma_on_start(gt_sync *s, gt_ns now) {
  (void)now;
  advance(s);
}

static void sma_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now;
  sma *a = (sma *)s;
  gt_sync_step(s, grads);
  a->steps++;
  a->rounds.samples += (int64_t)samples;
  if (a->steps < s->env.period) return;
  a->steps = 0;
  gt_rounds_contribute(&a->rounds);
  advance(s);
}

static void sma_on_message(gt_sync *s, gt_ns now, size_t peer, const gt_frame_header *head, gt_vec payload) {
  (void)now;
  gt_inbox_push(&((sma *)s)->rounds.inbox, peer, head->value, payload);
  advance(s);
}

static void sma_on_sent(gt_sync *s, gt_ns now, size_t peer) {
  (void)now, (void)peer;
  advance(s);
}

static void sma_on_peer(gt_sync *s, gt_ns now, size_t peer, gt_peer_event event, int64_t value) {
  (void)now;
  gt_rounds_peer(&((sma *)s)->rounds, peer, event, value);
  advance(s);
}

static void sma_on_drain(gt_sync *s, gt_ns now) {
  (void)now;
  sma *a = (sma *)s;
  if (a->steps > 0) gt_rounds_contribute(&a->rounds);
  a->steps = 0;
  gt_rounds_leave(&a->rounds);
  advance(s);
}

static bool sma_drained(const gt_sync *s) {
  return gt_rounds_drained(&((const sma *)s)->rounds);
}

static bool sma_settled(const gt_sync *s) {
  return gt_rounds_settled(&((const sma *)s)->rounds);
}

static int64_t sma_rounds(const gt_sync *s) {
  return ((const sma *)s)->rounds.applied;
}

static void sma_save(gt_sync *s, gt_state *state) {
  sma *a = (sma *)s;
  gt_rounds_save(&a->rounds, state);
  gt_sync_save_count(state, "steps", &a->steps);
}

static gt_status sma_load(gt_sync *s, const gt_state *state) {
  sma *a = (sma *)s;
  GT_TRY(gt_rounds_load(&a->rounds, state));
  return gt_sync_load_count(state, "steps", &a->steps);
}

extern const gt_sync_ops gt_sync_sma;
const gt_sync_ops gt_sync_sma = {
    .name = "sma",
    .periodic = true,
    .source = "Cloudless-Training (2023), synchronous inter-PS model averaging",
    .sends = GT_MSG_STATE,
    .barrier = true,
    .size = sizeof(sma),
    .open = sma_open,
    .close = sma_close,
    .on_start = sma_on_start,
    .on_gradient = sma_on_gradient,
    .on_message = sma_on_message,
    .on_sent = sma_on_sent,
    .on_peer = sma_on_peer,
    .on_drain = sma_on_drain,
    .drained = sma_drained,
    .settled = sma_settled,
    .rounds = sma_rounds,
    .save = sma_save,
    .load = sma_load,
};
