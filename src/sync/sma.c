/* sma: every f steps the regions agree on a model; a region's last round may have fewer steps.
   Without an outer optimizer the next model is the weighted mean of all models (Cloudless-Training
   2023, synchronous model averaging).  With one, the anchor, the model of the last round, makes a
   step against the weighted mean of anchor - model (DiLoCo, arXiv 2311.08105, Alg. 1; SlowMo, arXiv
   1910.00643, is sgd with momentum).  With a lossy codec or a guard and no outer optimizer the
   anchor moves by that mean.  Buffers always take the mean.

   With P fragments, each has rounds of its own every f steps, fragment p at step p f / P of the
   period (Streaming DiLoCo, arXiv 2501.18512).  A mean is applied `delay` steps after the
   contribution; a region that does not have it then waits.  The steps made meanwhile are carried
   over: w = agreed + (w - w as it was sent) (LOSCAR-SGD, arXiv 2605.20866).  At the end, a round
   of every fragment without delay makes the regions equal.

   With a guard a region abstains from a round if its own contribution is not finite or an
   outlier, and takes the next anchor.

   With a quorum a round can end without a region that is late (Decoupled DiLoCo).  The region adds
   the anchor's change to its own model, and trains on.  Its contribution, in flight or yet to be
   made, is the difference to the anchor from which it was begun, and is in a later mean.

   Law: f = 1 with plain SGD is ssgd.  Law: outer sgd with lr 1 and momentum 0 equals no outer
   optimizer, to rounding. */
#include <stdio.h>

#include "sma.h"

static bool is_pending(const gt_sma_fragment *f) {
  return f->arrived || gt_allreduce_waiting(f->rounds);
}

/* True if the last contribution has been made, and is not void because members have changed. */
static bool has_left(const gt_sma_fragment *f) {
  return f->left && (!f->open || is_pending(f));
}

/* The last contribution, once the one before it has been applied or is void, and once a region that
   has returned takes part. */
static void leave(gt_sma *a, gt_sma_fragment *f) {
  const bool pending = is_pending(f), lacks = f->steps > 0 || (f->open && !pending);
  if (has_left(f) || (pending && f->steps > 0) || (lacks && gt_allreduce_holds(f->rounds))) return;
  if (lacks) gt_sma_contribute(a, f);
  gt_allreduce_leave(f->rounds);
  f->left = 1;
}

static bool waits(const gt_sma *a, const gt_sma_fragment *f) {
  if (f->arrived) return false;
  if (!gt_allreduce_waiting(f->rounds)) return gt_allreduce_holds(f->rounds);
  return f->behind ? a->draining || f->owes : gt_sma_is_delay_over(a, f);
}

/* A round that has its quorum waits for others until its grace is over. */
static void set_timer(const gt_sma *a) {
  const gt_sync_host *host = &a->base.env.host;
  gt_ns at = GT_NEVER;
  for (size_t p = 0; p < a->count; p++) {
    const gt_ns grace = gt_allreduce_grace(a->fragments[p].rounds);
    if (grace < at) at = grace;
  }
  host->timer(host->ctx, 0, at);
}

/* Applies complete rounds and makes contributions; true: the region waits. */
static bool progress(gt_sma *a) {
  bool held = false;
  for (size_t p = 0; p < a->count; p++) {
    gt_sma_fragment *f = &a->fragments[p];
    gt_sma_take_means(a, f);
    if (f->owes && !f->arrived && !gt_allreduce_waiting(f->rounds)) {
      gt_sma_contribute(a, f);
      gt_sma_take_means(a, f);
    }
    if (a->draining && !has_left(f)) {
      leave(a, f);
      gt_sma_take_means(a, f);
    }
    held |= waits(a, f);
  }
  return held;
}

/* Makes all possible progress, then holds or releases the workers. */
static void advance(void *ctx) {
  gt_sma *a = ctx;
  const bool before = a->held;
  a->held = progress(a);
  if (a->held && !before && gt_sma_has_quorum(a))
    a->held = progress(a); /* means of the next step are due */
  if (gt_sma_has_quorum(a)) set_timer(a);
  gt_sync_hold_while(ctx, a->held);
}

/* After a step, or the last one.  With a quorum more means can have arrived. */
static void advance_by_step(gt_sma *a) {
  if (gt_sma_has_quorum(a))
    gt_exchange_start(a->base.env.exchange);
  else
    advance(a);
}

/* ---- the strategy ---------------------------------------------------------------------------- */

static void open_fragment(gt_sma *a, gt_sma_fragment *f, size_t p) {
  gt_sync *s = &a->base;
  const gt_sync_env *env = &s->env;
  const bool anchored = gt_sync_anchored(&env->options),
             delayed = env->options.delay > 0 || gt_sma_has_quorum(a);
  const size_t n = f->part.n;
  f->of = s;
  f->buffers = p + 1 == a->count ? env->buffers : gt_vec_of(NULL, 0);
  snprintf(f->owner, sizeof f->owner, a->count == 1 ? "sync/" : "sync/%zu/", p);
  if (anchored) {
    const gt_optim_spec outer = gt_sync_outer_spec(&env->options);
    if (gt_optim_create(&f->outer, &outer, n, env->params.data != NULL) != GT_OK)
      gt_bug("outer optimizer: %s", gt_error_text());
    f->anchor = gt_sync_vec(s, n);
    f->anchor_buffers = gt_sync_vec(s, gt_sync_guarded(&env->options) ? f->buffers.n : 0);
    if (f->anchor_buffers.n) gt_vec_copy(f->anchor_buffers, f->buffers);
  }
  f->sent = gt_sma_lends_model(a) ? env->params : gt_sync_vec(s, n);
  if (delayed) {
    f->before = gt_sync_vec(s, n);
    f->sent_buffers = gt_sync_vec(s, f->buffers.n);
    f->mean = gt_sync_vec(s, n + f->buffers.n);
  }
  if (env->options.regroups) f->agreed = gt_sync_vec(s, n + f->buffers.n);
  const gt_collective_spec spec = {.owner = f->owner,
                                   .kind = GT_MSG_STATE,
                                   .additive = anchored,
                                   .abstains = gt_sync_guarded(&env->options),
                                   .quorum = env->options.quorum,
                                   .grace = env->options.grace,
                                   .tensors = a->count > 1 ? f->part.tensors : NULL,
                                   .ntensors = f->part.ntensors,
                                   .changed = advance,
                                   .ctx = s};
  f->rounds =
      gt_allreduce_open(env->exchange, &spec, f->sent, delayed ? f->sent_buffers : f->buffers);
}

static void sma_open(gt_sync *s) {
  gt_sma *a = (gt_sma *)s;
  const gt_sync_env *env = &s->env;
  a->count = env->options.fragments > 1 ? (size_t)env->options.fragments : 1;
  a->fragments = GT_NEW_ARRAY(gt_sma_fragment, a->count);
  gt_fragment *parts = GT_NEW_ARRAY(gt_fragment, a->count);
  gt_fragments_open(parts, a->count, a->count > 1 ? env->tensors : NULL, env->ntensors,
                    env->params.n);
  for (size_t p = 0; p < a->count; p++) {
    a->fragments[p].part = parts[p];
    open_fragment(a, &a->fragments[p], p);
  }
  gt_free(parts);
}

static void sma_close(gt_sync *s) {
  gt_sma *a = (gt_sma *)s;
  for (size_t p = 0; p < a->count; p++) {
    gt_sma_fragment *f = &a->fragments[p];
    gt_allreduce_close(f->rounds);
    gt_optim_close(f->outer);
    if (!gt_sma_lends_model(a)) gt_free(f->sent.data);
    gt_free(f->before.data);
    gt_free(f->sent_buffers.data);
    gt_free(f->mean.data);
    gt_free(f->agreed.data);
    gt_free(f->anchor.data);
    gt_free(f->anchor_buffers.data);
    gt_fragment_close(&f->part);
  }
  gt_free(a->fragments);
}

/* The step of the period at which the fragment is sent. */
static int64_t offset_of(const gt_sma *a, size_t p) {
  const int64_t period = a->base.env.options.period;
  return p == 0 ? period : (int64_t)p * period / (int64_t)a->count;
}

static void sma_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now;
  gt_sma *a = (gt_sma *)s;
  bool moved = gt_sma_has_quorum(a);
  a->draining = false;
  a->stepping = true;
  gt_sma_set_anchors(a);
  gt_sync_step(s, grads);
  gt_allreduce_behind(a->fragments[0].rounds, samples);
  a->steps++;
  for (size_t p = 0; p < a->count; p++) {
    gt_sma_fragment *f = &a->fragments[p];
    const bool is_last = a->steps == offset_of(a, p);
    f->left = 0;
    f->steps++;
    if (gt_sma_has_quorum(a)) gt_sma_take_means(a, f);
    if (f->arrived || gt_allreduce_waiting(f->rounds)) {
      f->owes |= f->behind && is_last;
      moved |= gt_sma_is_due(a, f);
    } else if (is_last) {
      gt_sma_contribute(a, f);
      moved = true;
    }
  }
  if (a->steps == s->env.options.period) a->steps = 0;
  if (moved) advance_by_step(a);
  a->stepping = false;
}

static void sma_on_nonfinite(gt_sync *s) {
  if (gt_sync_guarded(&s->env.options)) gt_sma_renew((gt_sma *)s);
}

static void sma_on_drain(gt_sync *s, gt_ns now) {
  (void)now;
  gt_sma *a = (gt_sma *)s;
  a->draining = true;
  a->steps = 0;
  advance_by_step(a);
}

static bool sma_drained(const gt_sync *s) {
  const gt_sma *a = (const gt_sma *)s;
  bool left = true;
  for (size_t p = 0; p < a->count && a->draining; p++) left = left && has_left(&a->fragments[p]);
  return left;
}

static void sma_on_timer(gt_sync *s, gt_ns now, size_t id) {
  (void)now;
  (void)id;
  gt_exchange_start(s->env.exchange);
}

/* ---- state ----------------------------------------------------------------------------------- */

/* A contribution whose round is pending: without a delay it follows from the checkpoint's model and
   anchor. */
static gt_status delayed_state(gt_sma_fragment *f, gt_state_direction direction) {
  const gt_state_field counters[] = {
      {"steps_since", GT_TYPE_I64, &f->steps, 1},     {"arrived", GT_TYPE_I64, &f->arrived, 1},
      {"share", GT_TYPE_F32, &f->share, 1},           gt_sync_field("before", f->before),
      gt_sync_field("sent_buffers", f->sent_buffers), gt_sync_field("mean", f->mean)};
  return GT_STATE_FIELDS(direction, f->owner, counters);
}

/* The contribution in flight does not follow from parameters that have moved since. */
static gt_status quorum_state(gt_sma_fragment *f, gt_state_direction direction) {
  const gt_state_field fields[] = {{"missed", GT_TYPE_I64, &f->missed, 1},
                                   {"prompt", GT_TYPE_I64, &f->prompt, 1},
                                   {"late", GT_TYPE_I64, &f->late, 1},
                                   {"behind", GT_TYPE_I64, &f->behind, 1},
                                   {"owes", GT_TYPE_I64, &f->owes, 1}},
                       sent = gt_sync_field("sent", f->sent);
  GT_TRY(GT_STATE_FIELDS(direction, f->owner, fields));
  return gt_allreduce_waiting(f->rounds) ? gt_state_fields(direction, f->owner, &sent, 1) : GT_OK;
}

static gt_status outer_state(gt_sma_fragment *f, gt_state_direction direction) {
  char prefix[64];
  const gt_state_field anchor = gt_sync_field("anchor", f->anchor);
  snprintf(prefix, sizeof prefix, "%souter/", f->owner);
  GT_TRY(gt_state_fields(direction, f->owner, &anchor, 1));
  if (direction.from) return gt_optim_load(f->outer, prefix, direction.from);
  gt_optim_save(f->outer, prefix, direction.to);
  return GT_OK;
}

static gt_status fragment_state(gt_sma *a, gt_sma_fragment *f, gt_state_direction direction) {
  const gt_state_field since = {"steps_since", GT_TYPE_I64, &f->steps, 1},
                       renewed = {"renewed", GT_TYPE_I64, &f->renewed, 1},
                       buffers = gt_sync_field("anchor_buffers", f->anchor_buffers),
                       agreed = gt_sync_field("agreed", f->agreed);
  GT_TRY(gt_allreduce_state(f->rounds, direction));
  if (gt_sync_guarded(&a->base.env.options)) {
    GT_TRY(gt_state_fields(direction, f->owner, &renewed, 1));
    if (buffers.name) GT_TRY(gt_state_fields(direction, f->owner, &buffers, 1));
    GT_TRY(gt_guard_state(&f->guard, f->owner, direction));
  }
  if (gt_sma_has_quorum(a)) GT_TRY(quorum_state(f, direction));
  if (gt_sma_is_anchored(f)) GT_TRY(outer_state(f, direction));
  if (f->agreed.n) GT_TRY(gt_state_fields(direction, f->owner, &agreed, 1));
  if (f->before.n)
    GT_TRY(delayed_state(f, direction));
  else if (a->count > 1)
    GT_TRY(gt_state_fields(direction, f->owner, &since, 1));
  if (!direction.from) return GT_OK;
  f->open = (f->arrived && !f->missed) || gt_allreduce_waiting(f->rounds);
  if (!gt_sma_has_quorum(a)) gt_sma_fill(a, f);
  return GT_OK;
}

/* ---- change of members ----------------------------------------------------------------------- */

/* The state after the last applied round, and the mean of a later one that is not due here. */
static gt_status common_fields(gt_sma_fragment *f, int64_t *arrived, gt_state_direction direction) {
  char prefix[64];
  const gt_state_field fields[] = {gt_sync_field("agreed", f->agreed),
                                   {"arrived", GT_TYPE_I64, arrived, 1}},
                       mean = gt_sync_field("mean", f->mean);
  GT_TRY(GT_STATE_FIELDS(direction, f->owner, fields));
  if (*arrived == GT_SMA_HERE) GT_TRY(gt_state_fields(direction, f->owner, &mean, 1));
  if (gt_sma_has_quorum((const gt_sma *)f->of))
    GT_TRY(gt_allreduce_included_state(f->rounds, direction));
  if (!gt_sma_is_anchored(f)) return GT_OK;
  snprintf(prefix, sizeof prefix, "%souter/", f->owner);
  if (direction.from) return gt_optim_load(f->outer, prefix, direction.from);
  gt_optim_save(f->outer, prefix, direction.to);
  return GT_OK;
}

static gt_status sma_common(gt_sync *s, size_t range, gt_state_direction direction) {
  gt_sma *a = (gt_sma *)s;
  size_t p = 0;
  while (p < a->count && gt_allreduce_range(a->fragments[p].rounds) != range) p++;
  if (p == a->count) gt_bug("range %zu is of no fragment", range);
  gt_sma_fragment *f = &a->fragments[p];
  int64_t arrived = f->arrived;
  if (direction.to || gt_sma_has_quorum(a)) gt_sma_set_anchors(a);
  GT_TRY(common_fields(f, direction.to ? &f->arrived : &arrived, direction));
  if (direction.from) gt_sma_adopt(a, f, arrived);
  return GT_OK;
}

static int64_t *sma_place(gt_sync *s) {
  return &((gt_sma *)s)->steps;
}

static gt_status sma_state(gt_sync *s, gt_state_direction direction) {
  gt_sma *a = (gt_sma *)s;
  const gt_state_field steps = {"steps", GT_TYPE_I64, &a->steps, 1},
                       excluded = {"excluded", GT_TYPE_I64, &s->excluded, 1},
                       missed = {"missed_rounds", GT_TYPE_I64, &s->missed, 1},
                       anchored = {"anchored", GT_TYPE_I64, &a->anchored, 1};
  GT_TRY(gt_state_fields(direction, "sync/", &steps, 1));
  if (gt_sync_guarded(&s->env.options)) GT_TRY(gt_state_fields(direction, "sync/", &excluded, 1));
  if (gt_sma_has_quorum(a)) GT_TRY(gt_state_fields(direction, "sync/", &missed, 1));
  for (size_t p = 0; p < a->count; p++) GT_TRY(fragment_state(a, &a->fragments[p], direction));
  if (a->count == 1 && !a->fragments[0].before.n) a->fragments[0].steps = a->steps;
  return gt_sma_is_anchored(&a->fragments[0]) || s->env.options.regroups
             ? gt_state_fields(direction, "sync/", &anchored, 1)
             : GT_OK;
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
    .size = sizeof(gt_sma),
    .open = sma_open,
    .close = sma_close,
    .on_gradient = sma_on_gradient,
    .on_timer = sma_on_timer,
    .on_nonfinite = sma_on_nonfinite,
    .on_drain = sma_on_drain,
    .drained = sma_drained,
    .state = sma_state,
    .common = sma_common,
    .place = sma_place,
};
