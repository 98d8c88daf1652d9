/* One PS that a test drives by hand. */
#include "world_hand.h"
#include "../strategies.h"

static void on_send(void *ctx, size_t peer, const gt_frame_header *head, const void *payload,
                    size_t bytes, uint64_t cookie) {
  (void)peer, (void)cookie;
  hand *h = ctx;
  if (gt_msg_is_data(head->kind)) memcpy(h->sent, payload, bytes);
  if (head->kind == GT_MSG_JOINED) h->joined = *head;
}

static bool on_drop(void *ctx, size_t peer, uint64_t cookie) {
  (void)ctx, (void)peer, (void)cookie;
  return true;
}

static void on_order(void *ctx, size_t worker, const gt_ps_order *o) {
  hand *h = ctx;
  if (o->kind == GT_PS_KEEPALIVE) return;
  assert_int_equal(h->orders[worker].kind, 0);
  h->orders[worker] = *o;
  if (o->params.data) h->given[worker] = o->params.data[0];
}

static void on_taken(void *ctx, size_t worker) {
  (void)worker;
  ((hand *)ctx)->taken++;
}

static const float *on_reduced(void *ctx) {
  hand *h = ctx;
  h->asked++;
  return h->reduced;
}

static void on_note(void *ctx, gt_ps_note note, double a, double b) {
  (void)a, (void)b;
  ((hand *)ctx)->notes += note == GT_NOTE_NONFINITE;
}

gt_ps_spec h_spec(hand *h, const char *strategy, size_t nregions, size_t workers) {
  static const double one[] = {1}, two[] = {0.5, 0.5};
  const gt_optim_spec sgd = {.kind = GT_OPTIMIZER_SGD,
                             .schedule = {.kind = GT_LR_CONSTANT, .lr = 1}};
  *h = (hand){.nworkers = workers};
  must(gt_optim_create(&h->optim, &sgd, H_PARAMS, true));
  return (gt_ps_spec){.nregions = nregions,
                      .nworkers = workers,
                      .strategy = sync_named(strategy),
                      .weights = nregions == 1 ? one : two,
                      .options = {.period = 1, .scale = 1},
                      .outbox = 100,
                      .window = 100,
                      .params = gt_vec_of(h->params, H_PARAMS),
                      .grads = gt_vec_of(h->grads, H_PARAMS),
                      .buffers = gt_vec_of(h->buffers, H_BUFFERS),
                      .optim = h->optim,
                      .order = {.seed = 1, .n = 16, .batch = 4},
                      .until = {.steps = 1000},
                      .snapshot = gt_vec_of(h->snapshot, H_PARAMS),
                      .snapshot_buffers = gt_vec_of(h->snapshot + H_PARAMS, H_BUFFERS),
                      .nonfinite_limit = 100,
                      .heartbeat = GT_SECOND,
                      .keepalive = GT_SECOND,
                      .host = {.ctx = h,
                               .gateway = {h, on_send, on_drop},
                               .order = on_order,
                               .taken = on_taken,
                               .reduced = on_reduced,
                               .note = on_note}};
}

void h_open(hand *h, const gt_ps_spec *spec) {
  h->ps = gt_ps_create(spec);
}

void h_start(hand *h) {
  gt_ps_start(h->ps, 0);
  for (size_t w = 0; w < h->nworkers; w++) gt_ps_ready(h->ps, w, 0);
}

void h_close(hand *h) {
  gt_ps_close(h->ps);
  gt_optim_close(h->optim);
}

void h_push(hand *h, size_t worker, int64_t samples, float g, float b) {
  assert_int_equal(h->orders[worker].kind, GT_PS_TRAIN);
  h->orders[worker].kind = 0;
  for (size_t i = 0; i < H_PARAMS; i++) h->lent[worker][i] = g;
  for (size_t i = 0; i < H_BUFFERS; i++) h->own[worker][i] = b;
  gt_ps_push p = {
      .samples = samples, .buffers = h->own[worker], .nonfinite = !isfinite(g) || !isfinite(b)};
  gt_ps_gradient(h->ps, worker, &p, h->lent[worker], 1);
}
