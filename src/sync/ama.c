/* ama: every f steps a region sends its model w_i, and the others move their models towards it: w
   += a_i (w_i - w), where a_i is the region's weight, or 1/2.  No region waits: a newer model
   replaces one whose sending has not begun.  Cloudless-Training (2023), asynchronous model
   averaging between parameter servers. */
#include "internal.h"

typedef struct {
  gt_sync base;
  gt_broadcast *models;
  int64_t steps, unsent_steps, samples; /* steps made; steps and samples since the last post */
  bool draining;                        /* training is over: send the rest */
} ama;

/* Without room (limits.wan_bytes) the model stays due. */
static void post_model(gt_sync *s) {
  ama *a = (ama *)s;
  if (!gt_broadcast_room(a->models)) return;
  uint64_t samples = (uint64_t)a->samples;
  a->unsent_steps = a->samples = 0;
  if (s->env.nregions == 1) return;
  gt_sync_copy_model_out(s, gt_broadcast_begin(a->models));
  gt_broadcast_post(a->models, (uint64_t)a->steps, samples);
}

static void ama_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now;
  ama *a = (ama *)s;
  gt_sync_step(s, grads);
  a->steps++;
  a->draining = false; /* a resume may have made the training longer */
  a->samples += (int64_t)samples;
  if (++a->unsent_steps >= s->env.options.period) post_model(s);
}

static void received(void *ctx, size_t origin, gt_vec body) {
  gt_sync *s = ctx;
  const gt_sync_env *env = &s->env;
  float share = env->options.halves ? 0.5f : (float)env->weights[origin];
  gt_vec_lerp(env->params, share, gt_vec_range(body, 0, env->params.n));
  gt_vec buffers = gt_vec_range(body, env->params.n, env->buffers.n);
  gt_vec_lerp(env->buffers, share, buffers);
  gt_sync_buffers_moved(s, 1 - share, share, buffers);
}

static void ama_on_drain(gt_sync *s, gt_ns now) {
  (void)now;
  ama *a = (ama *)s;
  a->draining = true;
  if (a->unsent_steps > 0) post_model(s);
}

static bool ama_drained(const gt_sync *s) {
  const ama *a = (const ama *)s;
  return !a->draining || a->unsent_steps == 0;
}

static void changed(void *ctx) {
  if (!ama_drained(ctx)) post_model(ctx);
}

static void ama_open(gt_sync *s) {
  const gt_collective_spec spec = {
      .owner = "sync/", .kind = GT_MSG_STATE, .changed = changed, .received = received, .ctx = s};
  ((ama *)s)->models =
      gt_broadcast_open(s->env.exchange, &spec, s->env.params.n + s->env.buffers.n, true);
}

static void ama_close(gt_sync *s) {
  gt_broadcast_close(((ama *)s)->models);
}

static gt_status ama_state(gt_sync *s, gt_state_direction direction) {
  ama *a = (ama *)s;
  const gt_state_field fields[] = {{"steps", GT_TYPE_I64, &a->steps, 1},
                                   {"unsent_steps", GT_TYPE_I64, &a->unsent_steps, 1},
                                   {"samples", GT_TYPE_I64, &a->samples, 1}};
  GT_TRY(GT_STATE_FIELDS(direction, "sync/", fields));
  return gt_broadcast_state(a->models, direction);
}

static gt_status ama_common(gt_sync *s, size_t range, gt_state_direction direction) {
  (void)range;
  return gt_sync_model(s, direction);
}

extern const gt_sync_ops gt_sync_ama;
const gt_sync_ops gt_sync_ama = {
    .name = "ama",
    .source = "Cloudless-Training (2023), inter-PS model averaging",
    .sends = GT_MSG_STATE,
    .size = sizeof(ama),
    .open = ama_open,
    .close = ama_close,
    .on_gradient = ama_on_gradient,
    .on_drain = ama_on_drain,
    .drained = ama_drained,
    .state = ama_state,
    .common = ama_common,
};
