/* The list of strategies, what they share, and dispatch. */
#include "internal.h"

#include <string.h>

#define DECLARE(constant, name, table) extern const gt_sync_ops table;
#define TABLE(constant, name, table)   [constant] = &table,
GT_STRATEGIES(DECLARE)
static const gt_sync_ops *const tables[] = {GT_STRATEGIES(TABLE)};

const gt_sync_ops *gt_sync_of(gt_strategy strategy) {
  return tables[strategy];
}

const gt_sync_ops *gt_sync_find(const char *name) {
  for (size_t i = 0; gt_strategy_names[i]; i++)
    if (strcmp(gt_strategy_names[i], name) == 0) return tables[i];
  return NULL;
}

gt_sync *gt_sync_create(const gt_sync_ops *ops, const gt_sync_env *env) {
  if (env->period < 1 || env->self >= env->nregions)
    gt_bug("strategy %s is made with period %lld, region %zu of %zu", ops->name, (long long)env->period, env->self, env->nregions);
  gt_sync *s = gt_alloc(1, ops->size);
  s->ops = ops;
  s->env = *env;
  s->done = GT_NEW_ARRAY(bool, env->nregions);
  if (ops->open) ops->open(s);
  return s;
}

void gt_sync_close(gt_sync *s) {
  if (!s) return;
  if (s->ops->close) s->ops->close(s);
  gt_free(s->done);
  gt_free(s);
}

/* ---- dispatch ---------------------------------------------------------------------------------------------------- */

void gt_sync_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  if (s->ops->on_gradient) s->ops->on_gradient(s, now, grads, samples);
}

void gt_sync_on_timer(gt_sync *s, gt_ns now) {
  if (s->ops->on_timer) s->ops->on_timer(s, now);
}

void gt_sync_on_peer(gt_sync *s, size_t peer, gt_peer_event event) {
  s->done[peer] = event != GT_PEER_JOINED;
}

void gt_sync_on_drain(gt_sync *s, gt_ns now) {
  if (s->ops->on_drain) s->ops->on_drain(s, now);
}

bool gt_sync_drained(const gt_sync *s) {
  return !s->ops->drained || s->ops->drained(s);
}

void gt_sync_save(gt_sync *s, gt_state *state) {
  if (s->env.average) gt_state_add(state, "sync/", "done", GT_TYPE_U8, s->done, s->env.nregions);
  s->ops->save(s, state);
}

gt_status gt_sync_load(gt_sync *s, const gt_state *state) {
  size_t n = s->env.nregions;
  uint8_t *done = GT_NEW_ARRAY(uint8_t, n);
  gt_status status = s->env.average ? gt_state_get(state, "sync/", "done", GT_TYPE_U8, done, n) : GT_OK;
  for (size_t p = 0; p < n; p++) s->done[p] = done[p] != 0;
  gt_free(done);
  return status == GT_OK ? s->ops->load(s, state) : status;
}

/* ---- shared ------------------------------------------------------------------------------------------------------ */

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
  if (!env->average) return;
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

void gt_sync_copy_model_out(const gt_sync *s, gt_vec model) {
  const gt_sync_env *env = &s->env;
  gt_vec_copy(gt_vec_range(model, 0, env->params.n), env->params);
  gt_vec_copy(gt_vec_range(model, env->params.n, env->buffers.n), env->buffers);
}

void gt_sync_copy_model_in(gt_sync *s, gt_vec model) {
  const gt_sync_env *env = &s->env;
  gt_vec_copy(env->params, gt_vec_range(model, 0, env->params.n));
  gt_vec_copy(env->buffers, gt_vec_range(model, env->params.n, env->buffers.n));
}

void gt_sync_buffers_moved(const gt_sync *s, float keep, float share, gt_vec other) {
  const gt_sync_host *host = &s->env.host;
  if (host->moved && other.n) host->moved(host->ctx, keep, share, other);
}

void gt_sync_save_vec(gt_state *state, const char *name, gt_vec v) {
  if (v.n) gt_state_add(state, "sync/", name, GT_TYPE_F32, v.data, v.n);
}

gt_status gt_sync_load_vec(const gt_state *state, const char *name, gt_vec v) {
  return v.data ? gt_state_get(state, "sync/", name, GT_TYPE_F32, v.data, v.n) : GT_OK;
}

void gt_sync_save_count(gt_state *state, const char *name, int64_t *count) {
  gt_state_add(state, "sync/", name, GT_TYPE_I64, count, 1);
}

gt_status gt_sync_load_count(const gt_state *state, const char *name, int64_t *count) {
  return gt_state_get(state, "sync/", name, GT_TYPE_I64, count, 1);
}
