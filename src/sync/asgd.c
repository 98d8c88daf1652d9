/* asgd: after every local step the update that the optimizer applied goes to every other region, which adds it at once.
   Cloudless-Training (2023), asynchronous SGD between parameter servers; outboxes are bounded.
   With `average`, averages that arrive late: Zhou et al. (2020), DaSGD; Wang et al. (2020), Overlap Local-SGD. */
#include "internal.h"

typedef struct {
  gt_sync base;
  int64_t steps, samples;
  int64_t late; /* 1: the last step's update waits in `update` for room, and the workers are held */
  gt_vec update;
} asgd;

static void asgd_open(gt_sync *s) {
  ((asgd *)s)->update = gt_sync_vec(s, s->env.params.n);
}

static void asgd_close(gt_sync *s) {
  gt_free(((asgd *)s)->update.data);
}

static void asgd_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now;
  asgd *a = (asgd *)s;
  const gt_sync_host *host = &s->env.host;
  a->steps++;
  if (s->env.nregions == 1) {
    gt_sync_step(s, grads);
  } else if (gt_sync_all_room(s)) {
    gt_payload *payload = host->payload(host->ctx, false);
    gt_vec_zero(payload->vec);
    gt_optim_step(s->env.optim, s->env.params, grads, payload->vec);
    gt_sync_share_out(s, payload->vec);
    host->post(host->ctx, payload, GT_MSG_UPDATE, (uint64_t)a->steps, samples, false);
  } else {
    gt_vec_zero(a->update);
    gt_optim_step(s->env.optim, s->env.params, grads, a->update);
    a->samples = (int64_t)samples;
    a->late = 1;
    host->hold(host->ctx);
  }
}

static void asgd_on_message(gt_sync *s, gt_ns now, size_t peer, const gt_frame_header *head, gt_vec payload) {
  (void)now, (void)peer, (void)head;
  gt_vec_axpy(s->env.params, (float)s->env.scale, payload);
}

/* Posts the late update when every peer has room, else holds on. */
static void send_late(gt_sync *s) {
  asgd *a = (asgd *)s;
  const gt_sync_host *host = &s->env.host;
  if (!a->late) return;
  if (!gt_sync_all_room(s)) {
    host->hold(host->ctx);
    return;
  }
  gt_payload *payload = host->payload(host->ctx, false);
  gt_vec_copy(payload->vec, a->update);
  gt_sync_share_out(s, payload->vec);
  a->late = 0;
  host->post(host->ctx, payload, GT_MSG_UPDATE, (uint64_t)a->steps, (uint64_t)a->samples, false);
  host->release(host->ctx);
}

static void asgd_on_start(gt_sync *s, gt_ns now) {
  (void)now;
  send_late(s);
}

static void asgd_on_sent(gt_sync *s, gt_ns now, size_t peer) {
  (void)now, (void)peer;
  send_late(s);
}

static bool asgd_drained(const gt_sync *s) {
  return !((const asgd *)s)->late;
}

static void asgd_save(gt_sync *s, gt_state *state) {
  asgd *a = (asgd *)s;
  gt_sync_save_count(state, "steps", &a->steps);
  gt_sync_save_count(state, "samples", &a->samples);
  gt_sync_save_count(state, "late", &a->late);
  if (a->late) gt_sync_save_vec(state, "update", a->update);
}

static gt_status asgd_load(gt_sync *s, const gt_state *state) {
  asgd *a = (asgd *)s;
  GT_TRY(gt_sync_load_count(state, "steps", &a->steps));
  GT_TRY(gt_sync_load_count(state, "samples", &a->samples));
  GT_TRY(gt_sync_load_count(state, "late", &a->late));
  return a->late ? gt_sync_load_vec(state, "update", a->update) : GT_OK;
}

extern const gt_sync_ops gt_sync_asgd;
const gt_sync_ops gt_sync_asgd = {
    .name = "asgd",
    .source = "Cloudless-Training (2023), ASGD",
    .sends = GT_MSG_UPDATE,
    .size = sizeof(asgd),
    .open = asgd_open,
    .close = asgd_close,
    .on_start = asgd_on_start,
    .on_gradient = asgd_on_gradient,
    .on_message = asgd_on_message,
    .on_sent = asgd_on_sent,
    .drained = asgd_drained,
    .save = asgd_save,
    .load = asgd_load,
};
