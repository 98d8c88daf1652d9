/* Functions that several strategies use. */
#include "internal.h"

void gt_sync_hold_while(gt_sync *s, bool waits) {
  const gt_sync_host *host = &s->env.host;
  if (waits)
    host->hold(host->ctx);
  else
    host->release(host->ctx);
}

void gt_sync_share_out(gt_sync *s, gt_vec update) {
  const gt_sync_env *env = &s->env;
  double all = 0;
  if (!env->options.average) return;
  for (size_t r = 0; r < env->nregions; r++)
    if (!s->done[r]) all += env->weights[r];
  float share = (float)(env->weights[env->self] / all);
  gt_vec_axpy(env->params, share - 1, update);
  gt_vec_scale(update, share);
}

gt_vec gt_sync_vec(const gt_sync *s, size_t n) {
  return gt_vec_of(s->env.params.data && n ? GT_NEW_ARRAY(float, n) : NULL, n);
}

void gt_sync_step(gt_sync *s, gt_vec grads) {
  gt_optim_step(s->env.optim, s->env.params, grads, gt_vec_of(NULL, s->env.params.n));
}

void gt_sync_step_into(gt_sync *s, gt_vec grads, gt_vec sum) {
  const gt_sync_env *env = &s->env;
  const bool gradients = env->options.gradients;
  const float share =
      gt_optim_step(env->optim, env->params, grads, gradients ? gt_vec_of(NULL, sum.n) : sum);
  if (gradients) gt_vec_axpy(sum, share, grads);
}

/* Returns the factor of an update of another region. */
static double rate_of(const gt_sync_env *env) {
  return env->options.scale * (env->options.gradients ? -gt_optim_lr(env->optim) : 1);
}

void gt_sync_received(void *ctx, size_t origin, gt_vec sum) {
  (void)origin;
  const gt_sync_env *env = &((gt_sync *)ctx)->env;
  gt_vec_axpy(env->params, (float)rate_of(env), sum);
}

void gt_sync_copy_model_out(const gt_sync *s, gt_vec model) {
  const gt_sync_env *env = &s->env;
  gt_vec_copy(gt_vec_range(model, 0, env->params.n), env->params);
  gt_vec_copy(gt_vec_range(model, env->params.n, env->buffers.n), env->buffers);
}

void gt_sync_buffers_moved(const gt_sync *s, float keep, float share, gt_vec other) {
  const gt_sync_host *host = &s->env.host;
  if (host->moved && other.n) host->moved(host->ctx, keep, share, other);
}

gt_optim_spec gt_sync_outer_spec(const gt_sync_options *options) {
  const bool adam = options->outer == GT_OUTER_ADAM, none = options->outer == GT_OUTER_NONE;
  const int64_t last = options->outer_rounds - 1;
  const bool falls = !none && options->outer_lr_min > 0;
  return (gt_optim_spec){.kind = adam ? GT_OPTIMIZER_ADAM : GT_OPTIMIZER_SGD,
                         .nesterov = options->outer == GT_OUTER_NESTEROV,
                         .schedule = {.kind = falls ? GT_LR_COSINE : GT_LR_CONSTANT,
                                      .lr = none ? 1 : options->outer_lr,
                                      .lr_min = options->outer_lr_min,
                                      .constant_steps = last - options->outer_rounds / 4,
                                      .total_steps = last},
                         .momentum = none ? 0 : options->outer_momentum,
                         .beta1 = options->outer_momentum,
                         .beta2 = 0.999,
                         .epsilon = 1e-8,
                         .clip = options->guard.clip};
}

static gt_status model_state(gt_sync *s, gt_vec params, gt_state_direction direction) {
  const gt_state_field model[] = {gt_sync_field("params", params),
                                  gt_sync_field("buffers", s->env.buffers)};
  GT_TRY(GT_STATE_FIELDS(direction, "model/", model));
  if (direction.from) gt_sync_buffers_moved(s, 0, 1, s->env.buffers);
  return GT_OK;
}

gt_status gt_sync_model(gt_sync *s, gt_state_direction direction) {
  return model_state(s, s->env.params, direction);
}

gt_status gt_sync_model_of_updates(gt_sync *s, const gt_broadcast *updates, gt_vec unsent,
                                   gt_vec *copy, gt_state_direction direction) {
  const gt_vec left = gt_broadcast_residual(updates);
  const float rate = (float)rate_of(&s->env);
  if (direction.from) {
    gt_vec_zero(left);
    return gt_sync_model(s, direction);
  }
  if (copy->n == 0) *copy = gt_sync_vec(s, s->env.params.n);
  gt_vec_copy(*copy, s->env.params);
  gt_vec_axpy(gt_vec_range(*copy, 0, left.n), -rate, left);
  gt_vec_axpy(gt_vec_range(*copy, 0, unsent.n), -rate, unsent);
  return model_state(s, *copy, direction);
}

gt_state_field gt_sync_field(const char *name, gt_vec v) {
  return (gt_state_field){v.n ? name : NULL, GT_TYPE_F32, v.data, v.n};
}
