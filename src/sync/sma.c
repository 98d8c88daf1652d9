/* sma: every f steps the regions wait for each other and agree on a model; a region's last round
   may have fewer steps.  Without an outer optimizer the next model is the weighted mean of all
   models (Cloudless-Training 2023, synchronous model averaging).  With one, the anchor, the model
   of the last round, makes a step against the weighted mean of anchor - model (DiLoCo, arXiv
   2311.08105, Alg. 1; SlowMo, arXiv 1910.00643, is sgd with momentum).  With a lossy codec and
   no outer optimizer the anchor moves by that mean.  Buffers always take the
   mean.  Law: f = 1 with plain SGD is ssgd.  Law: outer sgd with lr 1 and momentum 0 equals no
   outer optimizer, to rounding. */
#include "internal.h"

typedef struct {
  gt_sync base;
  gt_allreduce *rounds; /* contributes the model, which does not change while the region waits */
  int64_t steps;        /* since the last contribution */
  /* With an outer optimizer or a lossy codec; else NULL and empty. */
  gt_optim *outer;
  gt_vec anchor, difference; /* params.n each; difference: anchor - model, the contribution */
  int64_t anchored;          /* 1: the anchor has been set */
} sma;

/* The anchor of the first round is the initial model. */
static void set_anchor(sma *a) {
  if (a->outer && !a->anchored) gt_vec_copy(a->anchor, a->base.env.params);
  a->anchored = 1;
}

/* Replaces the region's model by the agreed one.  Workers still compute with buffers without the
   other regions' part, so the host is informed. */
static void take_mean(sma *a, gt_vec mean, float share) {
  const gt_sync_env *env = &a->base.env;
  set_anchor(a);
  gt_vec_scale(env->buffers, -share);
  gt_vec_axpy(env->buffers, 1, gt_vec_range(mean, env->params.n, env->buffers.n));
  gt_sync_buffers_moved(&a->base, share, 1, env->buffers);
  gt_sync_copy_model_in(&a->base, mean);
  if (!a->outer) return;
  gt_optim_step(a->outer, a->anchor, gt_vec_range(mean, 0, env->params.n),
                gt_vec_of(NULL, env->params.n));
  gt_vec_copy(env->params, a->anchor);
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

static void contribute(sma *a) {
  if (a->outer) {
    gt_vec_copy(a->difference, a->anchor);
    gt_vec_axpy(a->difference, -1, a->base.env.params);
  }
  a->steps = 0;
  gt_allreduce_contribute(a->rounds);
}

static void sma_open(gt_sync *s) {
  sma *a = (sma *)s;
  const gt_sync_env *env = &s->env;
  const bool anchored = gt_sync_anchored(&env->options);
  const gt_collective_spec spec = {
      .owner = "sync/", .kind = GT_MSG_STATE, .additive = anchored, .changed = advance, .ctx = s};
  if (anchored) {
    const gt_optim_spec outer = gt_sync_outer_spec(&env->options);
    if (gt_optim_create(&a->outer, &outer, env->params.n, env->params.data != NULL) != GT_OK)
      gt_bug("outer optimizer: %s", gt_error_text());
    a->anchor = gt_sync_vec(s, env->params.n);
    a->difference = gt_sync_vec(s, env->params.n);
  }
  a->rounds =
      gt_allreduce_open(env->exchange, &spec, a->outer ? a->difference : env->params, env->buffers);
}

static void sma_close(gt_sync *s) {
  sma *a = (sma *)s;
  gt_allreduce_close(a->rounds);
  gt_optim_close(a->outer);
  gt_free(a->anchor.data);
  gt_free(a->difference.data);
}

static void sma_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now;
  sma *a = (sma *)s;
  set_anchor(a);
  gt_sync_step(s, grads);
  gt_allreduce_behind(a->rounds, samples);
  if (++a->steps < s->env.options.period) return;
  contribute(a);
  advance(s);
}

static void sma_on_drain(gt_sync *s, gt_ns now) {
  (void)now;
  sma *a = (sma *)s;
  if (a->steps > 0) contribute(a);
  gt_allreduce_leave(a->rounds);
  advance(s);
}

/* While a region waits, the checkpoint's model and anchor contain its difference. */
static gt_status outer_state(sma *a, gt_state_direction direction) {
  const gt_state_field fields[] = {gt_sync_field("anchor", a->anchor),
                                   {"anchored", GT_TYPE_I64, &a->anchored, 1}};
  if (!a->outer) return GT_OK;
  GT_TRY(GT_STATE_FIELDS(direction, "sync/", fields));
  if (direction.to) {
    gt_optim_save(a->outer, "sync/outer/", direction.to);
    return GT_OK;
  }
  GT_TRY(gt_optim_load(a->outer, "sync/outer/", direction.from));
  gt_vec_copy(a->difference, a->anchor);
  gt_vec_axpy(a->difference, -1, a->base.env.params);
  return GT_OK;
}

static gt_status sma_state(gt_sync *s, gt_state_direction direction) {
  sma *a = (sma *)s;
  const gt_state_field steps = {"steps", GT_TYPE_I64, &a->steps, 1};
  GT_TRY(gt_allreduce_state(a->rounds, direction));
  GT_TRY(gt_state_fields(direction, "sync/", &steps, 1));
  return outer_state(a, direction);
}

extern const gt_sync_ops gt_sync_sma;
const gt_sync_ops gt_sync_sma = {
    .name = "sma",
    .source = "Cloudless-Training (2023), synchronous inter-PS model averaging",
    .sends = GT_MSG_STATE,
    .waits = true,
    .needs_all = true,
    .between_steps = true,
    .identical = true,
    .size = sizeof(sma),
    .open = sma_open,
    .close = sma_close,
    .on_gradient = sma_on_gradient,
    .on_drain = sma_on_drain,
    .state = sma_state,
};
