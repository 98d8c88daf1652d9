/* asgd: after every local step a region sends the update of its optimizer to every other region,
   which adds it at once; or it sends the step's gradient, which the others apply with their own
   learning rates.  Cloudless-Training (2023), asynchronous SGD between parameter servers; outboxes
   are bounded.  With `average`, a delayed average: Zhou et al. (2020), DaSGD; Wang et al. (2020),
   Overlap Local-SGD. */
#include "internal.h"

typedef struct {
  gt_sync base;
  int64_t steps, samples;
  int64_t late; /* 1: the last step's update waits in `update` for room, and the workers are held */
  int64_t draining;    /* 1: no more steps will be made: send what the codec has left out */
  gt_vec update, copy; /* copy: for members that lack the model */
  gt_broadcast *updates;
} asgd;

static void asgd_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now;
  asgd *a = (asgd *)s;
  a->steps++;
  a->draining = 0; /* a resume may have made the training longer */
  if (s->env.nregions == 1) {
    gt_sync_step(s, grads);
  } else if (gt_broadcast_room(a->updates)) {
    gt_vec update = gt_broadcast_begin(a->updates);
    gt_vec_zero(update);
    gt_sync_step_into(s, grads, update);
    gt_sync_share_out(s, update);
    gt_broadcast_post(a->updates, (uint64_t)a->steps, samples);
  } else {
    gt_vec_zero(a->update);
    gt_sync_step_into(s, grads, a->update);
    a->samples = (int64_t)samples;
    a->late = 1;
    gt_sync_hold_while(s, true);
  }
}

/* Posts the late update if the outbox has room; otherwise the workers stay held. */
static void send_late(void *ctx) {
  gt_sync *s = ctx;
  asgd *a = ctx;
  if (!a->late) return;
  if (gt_broadcast_room(a->updates)) {
    gt_vec update = gt_broadcast_begin(a->updates);
    gt_vec_copy(update, a->update);
    gt_sync_share_out(s, update);
    a->late = 0;
    gt_broadcast_post(a->updates, (uint64_t)a->steps, (uint64_t)a->samples);
  }
  gt_sync_hold_while(s, a->late);
}

/* There may be room. */
static void changed(void *ctx) {
  asgd *a = ctx;
  send_late(ctx);
  if (a->draining && !a->late) gt_broadcast_post_rest(a->updates);
}

static void asgd_on_drain(gt_sync *s, gt_ns now) {
  (void)now;
  ((asgd *)s)->draining = 1;
  changed(s);
}

static void asgd_open(gt_sync *s) {
  const gt_collective_spec spec = {.owner = "sync/",
                                   .kind = GT_MSG_UPDATE,
                                   .changed = changed,
                                   .received = gt_sync_received,
                                   .ctx = s};
  ((asgd *)s)->update = gt_sync_vec(s, s->env.params.n);
  ((asgd *)s)->updates = gt_broadcast_open(s->env.exchange, &spec, s->env.params.n, false);
}

static void asgd_close(gt_sync *s) {
  gt_broadcast_close(((asgd *)s)->updates);
  gt_free(((asgd *)s)->update.data);
  gt_free(((asgd *)s)->copy.data);
}

static bool asgd_drained(const gt_sync *s) {
  const asgd *a = (const asgd *)s;
  return !a->late && !(a->draining && gt_broadcast_rests(a->updates));
}

static gt_status asgd_state(gt_sync *s, gt_state_direction direction) {
  asgd *a = (asgd *)s;
  const gt_state_field fields[] = {{"steps", GT_TYPE_I64, &a->steps, 1},
                                   {"samples", GT_TYPE_I64, &a->samples, 1},
                                   {"late", GT_TYPE_I64, &a->late, 1}},
                       update = gt_sync_field("update", a->update);
  GT_TRY(GT_STATE_FIELDS(direction, "sync/", fields));
  if (a->late) GT_TRY(gt_state_fields(direction, "sync/", &update, 1));
  return gt_broadcast_state(a->updates, direction);
}

/* An update that has not been posted was part of the replaced model. */
static gt_status asgd_common(gt_sync *s, size_t range, gt_state_direction direction) {
  (void)range;
  asgd *a = (asgd *)s;
  const gt_vec unsent = gt_vec_range(a->update, 0, a->late ? a->update.n : 0);
  GT_TRY(gt_sync_model_of_updates(s, a->updates, unsent, &a->copy, direction));
  if (!direction.from) return GT_OK;
  a->late = 0;
  gt_sync_hold_while(s, false);
  return GT_OK;
}

extern const gt_sync_ops gt_sync_asgd;
const gt_sync_ops gt_sync_asgd = {
    .name = "asgd",
    .source = "Cloudless-Training (2023), ASGD",
    .sends = GT_MSG_UPDATE,
    .keeps = 1,
    .size = sizeof(asgd),
    .open = asgd_open,
    .close = asgd_close,
    .on_gradient = asgd_on_gradient,
    .on_drain = asgd_on_drain,
    .drained = asgd_drained,
    .state = asgd_state,
    .common = asgd_common,
};
