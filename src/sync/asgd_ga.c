/* asgd-ga: asgd with the updates of f local steps accumulated, then sent and cleared.
   Cloudless-Training (2023), ASGD with gradient accumulation.  Law: with f = 1 it is asgd. */
#include "internal.h"

typedef struct {
  gt_sync base;
  int64_t steps, held_steps, samples; /* made; behind `sum`; samples behind `sum` */
  int64_t draining;                   /* 1: no more steps come, send what there is */
  gt_vec sum;
} asgd_ga;

static void ga_open(gt_sync *s) {
  ((asgd_ga *)s)->sum = gt_sync_vec(s, s->env.params.n);
}

static void ga_close(gt_sync *s) {
  gt_free(((asgd_ga *)s)->sum.data);
}

static bool is_due(const gt_sync *s) {
  const asgd_ga *a = (const asgd_ga *)s;
  return a->held_steps >= s->env.period || (a->draining && a->held_steps > 0);
}

/* Posts the sum when it is due and every peer has room; holds while it is due and some peer has none. */
static void send_due(gt_sync *s) {
  asgd_ga *a = (asgd_ga *)s;
  const gt_sync_host *host = &s->env.host;
  if (!is_due(s)) return;
  if (!gt_sync_all_room(s)) {
    host->hold(host->ctx);
    return;
  }
  gt_payload *payload = host->payload(host->ctx, false);
  uint64_t samples = (uint64_t)a->samples;
  gt_vec_copy(payload->vec, a->sum);
  gt_sync_share_out(s, payload->vec);
  gt_vec_zero(a->sum);
  a->held_steps = a->samples = 0;
  host->post(host->ctx, payload, GT_MSG_UPDATE, (uint64_t)a->steps, samples, false);
  host->release(host->ctx);
}

static void ga_on_start(gt_sync *s, gt_ns now) {
  (void)now;
  send_due(s);
}

static void ga_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now;
  asgd_ga *a = (asgd_ga *)s;
  a->steps++;
  a->draining = 0; /* a resume may have made the training longer */
  if (s->env.nregions == 1) {
    gt_sync_step(s, grads);
    return;
  }
  gt_optim_step(s->env.optim, s->env.params, grads, a->sum);
  a->held_steps++;
  a->samples += (int64_t)samples;
  send_due(s);
}

static void ga_on_message(gt_sync *s, gt_ns now, size_t peer, const gt_frame_header *head, gt_vec payload) {
  (void)now, (void)peer, (void)head;
  gt_vec_axpy(s->env.params, (float)s->env.scale, payload);
}

static void ga_on_sent(gt_sync *s, gt_ns now, size_t peer) {
  (void)now, (void)peer;
  send_due(s);
}

static void ga_on_drain(gt_sync *s, gt_ns now) {
  (void)now;
  ((asgd_ga *)s)->draining = 1;
  send_due(s);
}

static bool ga_drained(const gt_sync *s) {
  return ((const asgd_ga *)s)->held_steps == 0;
}

static void ga_save(gt_sync *s, gt_state *state) {
  asgd_ga *a = (asgd_ga *)s;
  gt_sync_save_count(state, "steps", &a->steps);
  gt_sync_save_count(state, "held_steps", &a->held_steps);
  gt_sync_save_count(state, "samples", &a->samples);
  gt_sync_save_count(state, "draining", &a->draining);
  gt_sync_save_vec(state, "sum", a->sum);
}

static gt_status ga_load(gt_sync *s, const gt_state *state) {
  asgd_ga *a = (asgd_ga *)s;
  GT_TRY(gt_sync_load_count(state, "steps", &a->steps));
  GT_TRY(gt_sync_load_count(state, "held_steps", &a->held_steps));
  GT_TRY(gt_sync_load_count(state, "samples", &a->samples));
  GT_TRY(gt_sync_load_count(state, "draining", &a->draining));
  return gt_sync_load_vec(state, "sum", a->sum);
}

extern const gt_sync_ops gt_sync_asgd_ga;
const gt_sync_ops gt_sync_asgd_ga = {
    .name = "asgd-ga",
    .periodic = true,
    .source = "Cloudless-Training (2023), ASGD-GA",
    .sends = GT_MSG_UPDATE,
    .size = sizeof(asgd_ga),
    .open = ga_open,
    .close = ga_close,
    .on_start = ga_on_start,
    .on_gradient = ga_on_gradient,
    .on_message = ga_on_message,
    .on_sent = ga_on_sent,
    .on_drain = ga_on_drain,
    .drained = ga_drained,
    .save = ga_save,
    .load = ga_load,
};
