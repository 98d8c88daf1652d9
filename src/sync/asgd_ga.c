/* asgd-ga: asgd, but a region accumulates the updates, or the gradients, of f local steps, then
   sends the sum and clears it.  Cloudless-Training (2023), ASGD with gradient accumulation.  Law:
   with f = 1 it is asgd. */
#include "internal.h"

typedef struct {
  gt_sync base;
  int64_t steps, held_steps, samples; /* steps made; steps in `sum`; samples in `sum` */
  int64_t draining;                   /* 1: training is over: send the rest */
  gt_vec sum, copy;                   /* copy: for members that lack the model */
  gt_broadcast *updates;
} asgd_ga;

static bool is_due(const gt_sync *s) {
  const asgd_ga *a = (const asgd_ga *)s;
  return a->held_steps >= s->env.options.period || (a->draining && a->held_steps > 0);
}

/* Posts the sum if it is due and the outbox has room; without room, holds the workers. */
static void send_due(void *ctx) {
  gt_sync *s = ctx;
  asgd_ga *a = ctx;
  if (!is_due(s)) {
    if (a->draining) gt_broadcast_post_rest(a->updates);
    return;
  }
  if (gt_broadcast_room(a->updates)) {
    uint64_t samples = (uint64_t)a->samples;
    gt_vec update = gt_broadcast_begin(a->updates);
    gt_vec_copy(update, a->sum);
    gt_sync_share_out(s, update);
    gt_vec_zero(a->sum);
    a->held_steps = a->samples = 0;
    gt_broadcast_post(a->updates, (uint64_t)a->steps, samples);
    if (a->draining) gt_broadcast_post_rest(a->updates);
  }
  gt_sync_hold_while(s, is_due(s));
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
  gt_sync_step_into(s, grads, a->sum);
  a->held_steps++;
  a->samples += (int64_t)samples;
  send_due(s);
}

static void ga_open(gt_sync *s) {
  const gt_collective_spec spec = {.owner = "sync/",
                                   .kind = GT_MSG_UPDATE,
                                   .changed = send_due,
                                   .received = gt_sync_received,
                                   .ctx = s};
  ((asgd_ga *)s)->sum = gt_sync_vec(s, s->env.params.n);
  ((asgd_ga *)s)->updates = gt_broadcast_open(s->env.exchange, &spec, s->env.params.n, false);
}

static void ga_close(gt_sync *s) {
  gt_broadcast_close(((asgd_ga *)s)->updates);
  gt_free(((asgd_ga *)s)->sum.data);
  gt_free(((asgd_ga *)s)->copy.data);
}

static void ga_on_drain(gt_sync *s, gt_ns now) {
  (void)now;
  ((asgd_ga *)s)->draining = 1;
  send_due(s);
}

static bool ga_drained(const gt_sync *s) {
  const asgd_ga *a = (const asgd_ga *)s;
  return a->held_steps == 0 && !(a->draining && gt_broadcast_rests(a->updates));
}

static gt_status ga_state(gt_sync *s, gt_state_direction direction) {
  asgd_ga *a = (asgd_ga *)s;
  const gt_state_field fields[] = {{"steps", GT_TYPE_I64, &a->steps, 1},
                                   {"held_steps", GT_TYPE_I64, &a->held_steps, 1},
                                   {"samples", GT_TYPE_I64, &a->samples, 1},
                                   {"draining", GT_TYPE_I64, &a->draining, 1},
                                   gt_sync_field("sum", a->sum)};
  GT_TRY(GT_STATE_FIELDS(direction, "sync/", fields));
  return gt_broadcast_state(a->updates, direction);
}

/* The sum was part of the replaced model. */
static gt_status ga_common(gt_sync *s, size_t range, gt_state_direction direction) {
  (void)range;
  asgd_ga *a = (asgd_ga *)s;
  GT_TRY(gt_sync_model_of_updates(s, a->updates, a->sum, &a->copy, direction));
  if (!direction.from) return GT_OK;
  gt_vec_zero(a->sum);
  a->held_steps = a->samples = 0;
  gt_sync_hold_while(s, false);
  return GT_OK;
}

extern const gt_sync_ops gt_sync_asgd_ga;
const gt_sync_ops gt_sync_asgd_ga = {
    .name = "asgd-ga",
    .source = "Cloudless-Training (2023), ASGD-GA",
    .sends = GT_MSG_UPDATE,
    .keeps = 1,
    .saves = 1,
    .size = sizeof(asgd_ga),
    .open = ga_open,
    .close = ga_close,
    .on_gradient = ga_on_gradient,
    .on_drain = ga_on_drain,
    .drained = ga_drained,
    .state = ga_state,
    .common = ga_common,
};
