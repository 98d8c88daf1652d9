/* sma: every f steps the regions wait for each other, and each takes the weighted mean of all
   models; a region's last round may have fewer steps.  Cloudless-Training (2023), synchronous model
   averaging.  Law: f = 1 with plain SGD is ssgd. */
#include "internal.h"

typedef struct {
  gt_sync base;
  gt_allreduce *rounds; /* contributes the model, which does not change while the region waits */
  int64_t steps;        /* since the last contribution */
} sma;

/* The region's model becomes the mean.  Workers do not know the part of the buffers that comes from
   the other regions yet: the host is informed. */
static void take_mean(gt_sync *s, gt_vec mean, float share) {
  const gt_sync_env *env = &s->env;
  gt_vec_scale(env->buffers, -share);
  gt_vec_axpy(env->buffers, 1, gt_vec_range(mean, env->params.n, env->buffers.n));
  gt_sync_buffers_moved(s, share, 1, env->buffers);
  gt_sync_copy_model_in(s, mean);
}

/* Applies complete rounds, then holds or releases the workers. */
static void advance(void *ctx) {
  gt_allreduce *r = ((sma *)ctx)->rounds;
  gt_vec mean;
  float share;
  while (gt_allreduce_next(r, &mean, &share)) {
    take_mean(ctx, mean, share);
    gt_allreduce_answer(r, mean);
  }
  gt_sync_hold_while(ctx, gt_allreduce_holds(r));
}

static void sma_open(gt_sync *s) {
  const gt_collective_spec spec = {
      .owner = "sync/", .kind = GT_MSG_STATE, .changed = advance, .ctx = s};
  ((sma *)s)->rounds = gt_allreduce_open(s->env.exchange, &spec, s->env.params, s->env.buffers);
}

static void sma_close(gt_sync *s) {
  gt_allreduce_close(((sma *)s)->rounds);
}

static void sma_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now;
  sma *a = (sma *)s;
  gt_sync_step(s, grads);
  gt_allreduce_behind(a->rounds, samples);
  if (++a->steps < s->env.options.period) return;
  a->steps = 0;
  gt_allreduce_contribute(a->rounds);
  advance(s);
}

static void sma_on_drain(gt_sync *s, gt_ns now) {
  (void)now;
  sma *a = (sma *)s;
  if (a->steps > 0) gt_allreduce_contribute(a->rounds);
  a->steps = 0;
  gt_allreduce_leave(a->rounds);
  advance(s);
}

static gt_status sma_state(gt_sync *s, gt_state_way way) {
  sma *a = (sma *)s;
  const gt_state_field steps = {"steps", GT_TYPE_I64, &a->steps, 1};
  GT_TRY(gt_allreduce_state(a->rounds, way));
  return gt_state_fields(way, "sync/", &steps, 1);
}

extern const gt_sync_ops gt_sync_sma;
const gt_sync_ops gt_sync_sma = {
    .name = "sma",
    .source = "Cloudless-Training (2023), synchronous inter-PS model averaging",
    .sends = GT_MSG_STATE,
    .waits = true,
    .needs_all = true,
    .between_steps = true,
    .size = sizeof(sma),
    .open = sma_open,
    .close = sma_close,
    .on_gradient = sma_on_gradient,
    .on_drain = sma_on_drain,
    .state = sma_state,
};
