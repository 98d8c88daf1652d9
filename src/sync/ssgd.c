/* ssgd: at every step the regions average their gradients before any continues.  A round is a step.
   Synchronous SGD (Chen et al. 2016), with a weighted mean over the active regions.  Every region's
   optimizer makes the same step; or only one region's does and sends its parameters, and then only
   its optimizer has state.

   If a region has only a part of the model (replicas of a pipeline) and the mean is clipped by the
   norm of all parts, the region waits for the norm after the round is complete. */
#include "internal.h"

typedef struct {
  gt_sync base;
  gt_allreduce *steps;
  gt_vec grads;      /* the own gradient until its round is applied; no data with env.per_worker */
  gt_vec mean;       /* host.norm: of a complete round, until the norm is known */
  int64_t unclipped; /* 1: `mean` is a complete round's */
} ssgd;

static void make_step(gt_sync *s, gt_vec mean) {
  gt_allreduce *r = ((ssgd *)s)->steps;
  gt_sync_step(s, mean);
  gt_allreduce_answer(r, s->env.params);
}

static void take_step(gt_sync *s, gt_vec params) {
  gt_vec_copy(s->env.params, params);
  gt_optim_count(s->env.optim);
}

static void keep_mean(gt_sync *s, gt_vec mean) {
  ssgd *a = (ssgd *)s;
  gt_vec_copy(a->mean, mean);
  a->unclipped = 1;
  s->env.host.tell_squares(s->env.host.ctx, a->mean);
}

/* Makes the step of a mean that waits for its norm; false: it still waits. */
static bool clip_mean(gt_sync *s) {
  ssgd *a = (ssgd *)s;
  double norm;
  if (!a->unclipped) return true;
  if (!s->env.host.norm(s->env.host.ctx, &norm)) return false;
  gt_optim_norm(s->env.optim, norm);
  a->unclipped = 0;
  make_step(s, a->mean);
  return true;
}

/* Makes the steps of complete rounds, then holds or releases the workers. */
static void advance(void *ctx) {
  ssgd *a = ctx;
  const gt_sync *s = ctx;
  gt_vec mean;
  float share;
  while (clip_mean(ctx) && gt_allreduce_next(a->steps, &mean, &share)) {
    if (gt_allreduce_answered(a->steps))
      take_step(ctx, mean);
    else if (s->env.host.norm)
      keep_mean(ctx, mean);
    else
      make_step(ctx, mean);
  }
  gt_sync_hold_while(ctx, a->unclipped || gt_allreduce_holds(a->steps));
}

static void ssgd_open(gt_sync *s) {
  ssgd *a = (ssgd *)s;
  const gt_collective_spec spec = {.owner = "sync/",
                                   .kind = GT_MSG_UPDATE,
                                   .answer = GT_MSG_STATE,
                                   .changed = advance,
                                   .ctx = s};
  const size_t n = s->env.params.n;
  a->grads = s->env.per_worker ? gt_vec_of(NULL, n) : gt_sync_vec(s, n);
  a->mean = s->env.host.norm ? gt_sync_vec(s, n) : gt_vec_of(NULL, n);
  a->steps = gt_allreduce_open(s->env.exchange, &spec, a->grads, gt_vec_of(NULL, 0));
}

static void ssgd_close(gt_sync *s) {
  ssgd *a = (ssgd *)s;
  gt_allreduce_close(a->steps);
  gt_free(a->grads.data);
  gt_free(a->mean.data);
}

static void ssgd_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now;
  ssgd *a = (ssgd *)s;
  gt_vec_copy(a->grads, grads);
  gt_allreduce_behind(a->steps, samples);
  gt_allreduce_contribute(a->steps);
  advance(s);
}

static void ssgd_on_part(gt_sync *s, size_t rank, gt_vec grads, uint64_t samples) {
  gt_allreduce_part(((ssgd *)s)->steps, rank, grads, samples);
}

static void ssgd_on_drain(gt_sync *s, gt_ns now) {
  (void)now;
  gt_allreduce_leave(((ssgd *)s)->steps);
  advance(s);
}

static bool ssgd_drained(const gt_sync *s) {
  return !((const ssgd *)s)->unclipped;
}

static bool keeps_grads(const gt_sync *s) {
  return !s->env.per_worker && gt_allreduce_waiting(((const ssgd *)s)->steps);
}

static gt_status ssgd_state(gt_sync *s, gt_state_direction direction) {
  ssgd *a = (ssgd *)s;
  const gt_state_field grads = gt_sync_field("grads", a->grads),
                       unclipped = {"unclipped", GT_TYPE_I64, &a->unclipped, 1},
                       mean = gt_sync_field("mean", a->mean);
  GT_TRY(gt_allreduce_state(a->steps, direction));
  if (keeps_grads(s)) GT_TRY(gt_state_fields(direction, "sync/", &grads, 1));
  if (!s->env.host.norm) return GT_OK;
  GT_TRY(gt_state_fields(direction, "sync/", &unclipped, 1));
  return a->unclipped ? gt_state_fields(direction, "sync/", &mean, 1) : GT_OK;
}

/* After a round all regions have the same parameters and the same state of the optimizer. */
static gt_status ssgd_common(gt_sync *s, size_t range, gt_state_direction direction) {
  (void)range;
  const gt_state_field params = gt_sync_field("params", s->env.params);
  GT_TRY(gt_state_fields(direction, "model/", &params, 1));
  if (direction.to) {
    gt_optim_save(s->env.optim, "", direction.to);
    return GT_OK;
  }
  GT_TRY(gt_optim_load(s->env.optim, "", direction.from));
  (void)gt_allreduce_adopt(((ssgd *)s)->steps);
  return GT_OK;
}

extern const gt_sync_ops gt_sync_ssgd;
const gt_sync_ops gt_sync_ssgd = {
    .name = "ssgd",
    .source = "synchronous SGD, Chen et al. (2016)",
    .sends = GT_MSG_UPDATE,
    .waits = true,
    .needs_all = true,
    .between_steps = true,
    .lockstep = true,
    .identical = true,
    .keeps = 1,
    .saves = 1,
    .size = sizeof(ssgd),
    .open = ssgd_open,
    .close = ssgd_close,
    .on_gradient = ssgd_on_gradient,
    .on_part = ssgd_on_part,
    .on_drain = ssgd_on_drain,
    .drained = ssgd_drained,
    .state = ssgd_state,
    .common = ssgd_common,
};
