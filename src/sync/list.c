/* The list of strategies, and dispatch. */
#include "internal.h"

#define DECLARE(constant, name, table, facts) extern const gt_sync_ops table;
#define TABLE(constant, name, table, facts)   [constant] = &table,
GT_STRATEGIES(DECLARE)
static const gt_sync_ops *const tables[] = {GT_STRATEGIES(TABLE)};

const gt_sync_ops *gt_sync_of(gt_strategy strategy) {
  return tables[strategy];
}

/* The anchor and the optimizer's arrays.  The differences to send are computed again after a
   resume. */
static size_t outer_arrays(const gt_sync_options *options) {
  if (!gt_sync_anchored(options)) return 0;
  const gt_optim_spec spec = gt_sync_outer_spec(options);
  return 1 + gt_optim_arrays(&spec);
}

/* The parameters as they were sent, and a mean that is not due yet. */
static size_t delayed_arrays(const gt_sync_options *options) {
  return options->delay > 0 || options->quorum > 0 ? 2 : 0;
}

size_t gt_sync_keeps(const gt_sync_ops *ops, const gt_sync_options *options) {
  return ops->keeps + outer_arrays(options) + delayed_arrays(options) + gt_sync_anchored(options);
}

size_t gt_sync_saves(const gt_sync_ops *ops, const gt_sync_options *options) {
  return ops->saves + outer_arrays(options) + delayed_arrays(options) + (options->quorum > 0);
}

bool gt_sync_identical(const gt_sync_ops *ops, size_t buffers) {
  return ops->identical && (buffers == 0 || ops->sends == GT_MSG_STATE);
}

gt_sync *gt_sync_create(const gt_sync_ops *ops, const gt_sync_env *env) {
  const gt_sync_options *options = &env->options;
  if (options->period < 1 || env->self >= env->nregions || (options->average && options->gradients))
    gt_bug("strategy %s is made with period %lld, region %zu of %zu%s", ops->name,
           (long long)options->period, env->self, env->nregions,
           options->average && options->gradients ? ", gradients averaged" : "");
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

/* ---- dispatch ------------------------------------------------------------------------------- */

void gt_sync_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  if (s->ops->on_gradient) s->ops->on_gradient(s, now, grads, samples);
}

void gt_sync_on_part(gt_sync *s, size_t rank, gt_vec grads, uint64_t samples) {
  s->ops->on_part(s, rank, grads, samples);
}

void gt_sync_on_nonfinite(gt_sync *s) {
  if (s->ops->on_nonfinite) s->ops->on_nonfinite(s);
}

void gt_sync_on_timer(gt_sync *s, gt_ns now, size_t id) {
  if (s->ops->on_timer) s->ops->on_timer(s, now, id);
}

void gt_sync_on_peer(gt_sync *s, size_t peer, gt_peer_event event) {
  s->done[peer] = event == GT_PEER_DONE || event == GT_PEER_LEFT;
}

void gt_sync_on_drain(gt_sync *s, gt_ns now) {
  if (s->ops->on_drain) s->ops->on_drain(s, now);
}

bool gt_sync_drained(const gt_sync *s) {
  return !s->ops->drained || s->ops->drained(s);
}

gt_status gt_sync_state(gt_sync *s, gt_state_direction direction) {
  if (s->env.options.average)
    GT_TRY(gt_state_flags(direction, "sync/", "done", s->done, s->env.nregions));
  return s->ops->state ? s->ops->state(s, direction) : GT_OK;
}

/* ---- change of members ----------------------------------------------------------------------- */

void gt_sync_regroup(gt_sync *s, size_t nregions, size_t self, const double *weights,
                     size_t trains) {
  gt_sync_env *env = &s->env;
  gt_free(s->done);
  s->done = GT_NEW_ARRAY(bool, nregions);
  env->nregions = nregions;
  env->self = self;
  env->weights = weights;
  if (env->options.mean && trains > 0) env->options.scale = 1 / (double)trains;
}

gt_status gt_sync_common(gt_sync *s, size_t range, gt_state_direction direction) {
  return s->ops->common ? s->ops->common(s, range, direction) : GT_OK;
}

int64_t gt_sync_stride(const gt_sync *s) {
  const gt_sync_options *o = &s->env.options;
  if (!s->ops->sends || !s->ops->waits || o->quorum > 0) return 0;
  if (!s->ops->place) return 1;
  return o->fragments > 1 ? o->period / o->fragments : o->period;
}

int64_t gt_sync_place(gt_sync *s, bool set, int64_t place) {
  int64_t *at = s->ops->place ? s->ops->place(s) : NULL;
  if (at && set) *at = place;
  return at ? *at : 0;
}
