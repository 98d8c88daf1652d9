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

   Law: f = 1 with plain SGD is ssgd.  Law: outer sgd with lr 1 and momentum 0 equals no outer
   optimizer, to rounding. */
#include <math.h>
#include <stdio.h>

#include "fragment.h"
#include "internal.h"

/* ---- the guard ------------------------------------------------------------------------------- */

/* EDiT's rule for anomalous contributions (arXiv 2412.07210): with n the norm, and its mean and
   standard deviation so far, z = (n - mean) / std is an outlier above `outlier` max(1, std of z).
   Here an outlier enters the history with the largest norm that is none, so that norms which remain
   larger become the rule after some rounds, and one huge norm does not hide the next. */

/* The norms of the contributions so far; all zero at the start. */
typedef struct {
  int64_t judged;
  double mean, variance; /* of the norm, of the last 50 or so */
  double spread;         /* mean square of (norm - mean) / deviation */
} norm_history;

typedef enum { GT_GUARD_SOUND, GT_GUARD_OUTLIER, GT_GUARD_NONFINITE } gt_verdict;

#define LARGEST 0x1p100 /* a codec's residual and every sum of such values remain finite */
#define NEWEST  0.02    /* least weight of the newest norm in the history */
#define STEADY  0.1     /* least standard deviation, relative to the mean */

static double larger(double a, double b) {
  return a > b ? a : b;
}

static void add_norm(norm_history *g, double norm, double z) {
  const double weight = larger(NEWEST, 1 / (double)(g->judged + 1)), d = norm - g->mean;
  g->mean += weight * d;
  g->variance = (1 - weight) * (g->variance + weight * d * d);
  g->spread += weight * (z * z - g->spread);
  g->judged++;
}

/* Judges a contribution by its norm, and adds it to the history. */
static gt_verdict judge(norm_history *g, const gt_guard_options *options, double norm) {
  const double deviation = larger(sqrt(g->variance), STEADY * g->mean),
               limit = options->outlier * larger(1, sqrt(g->spread)),
               z = deviation > 0 ? (norm - g->mean) / deviation : 0;
  if (!(norm < LARGEST)) return GT_GUARD_NONFINITE;
  const bool outlier = options->outlier > 0 && g->judged >= options->warmup && z > limit;
  if (outlier)
    add_norm(g, g->mean + limit * deviation, limit);
  else
    add_norm(g, norm, z);
  return outlier ? GT_GUARD_OUTLIER : GT_GUARD_SOUND;
}

static gt_status guard_state(norm_history *g, const char *owner, gt_state_direction direction) {
  const gt_state_field fields[] = {{"judged", GT_TYPE_I64, &g->judged, 1},
                                   {"norm_mean", GT_TYPE_F64, &g->mean, 1},
                                   {"norm_variance", GT_TYPE_F64, &g->variance, 1},
                                   {"norm_spread", GT_TYPE_F64, &g->spread, 1}};
  return GT_STATE_FIELDS(direction, owner, fields);
}

enum { HERE = 1, EMPTY = 2 };

typedef struct {
  gt_sync *of;
  gt_fragment part;
  gt_allreduce *rounds;
  gt_vec buffers; /* those of the model in the last fragment, which has them all; else empty */
  int64_t steps;  /* since the last contribution */
  int64_t left;   /* 1: the last contribution has been made */
  bool open;      /* its last contribution is in no round yet */
  gt_vec sent;    /* the contribution: parameters, or anchor - parameters */
  /* With a delay: parameters and buffers as they were sent; a mean that is not due yet. */
  gt_vec before, sent_buffers, mean;
  int64_t arrived; /* HERE: that mean is here; EMPTY: there is none */
  float share;     /* of the own contribution in it */
  norm_history guard;
  int64_t renewed; /* 1: the next anchor replaces the parameters, also after a delay */
  /* With an outer optimizer, a lossy codec or a guard; else NULL and empty. */
  gt_optim *outer;
  gt_vec anchor;
  gt_vec anchor_buffers; /* with a guard: those of the last mean, at first the initial ones */
  gt_vec agreed;         /* options.regroups: parameters, then buffers, after the last round */
  char owner[32];        /* prefix of its state */
} fragment;

typedef struct {
  gt_sync base;
  size_t count;
  fragment *fragments;
  int64_t steps;    /* of the period */
  int64_t anchored; /* 1: the anchors have been set */
  bool draining;
} sma;

static bool is_anchored(const fragment *f) {
  return f->outer != NULL;
}

/* Without a copy, the contribution is the model itself, which does not change while the region
   waits. */
static bool lends_model(const sma *a) {
  const gt_sync_options *options = &a->base.env.options;
  return a->count == 1 && options->delay == 0 && !gt_sync_anchored(options);
}

/* The anchors of the first rounds are the initial model. */
static void set_anchors(sma *a) {
  for (size_t p = 0; p < a->count && !a->anchored; p++) {
    fragment *f = &a->fragments[p];
    if (is_anchored(f)) gt_fragment_gather(&f->part, f->anchor, a->base.env.params);
    if (f->agreed.n == 0) continue;
    gt_fragment_gather(&f->part, gt_vec_range(f->agreed, 0, f->part.n), a->base.env.params);
    gt_vec_copy(gt_vec_range(f->agreed, f->part.n, f->buffers.n), f->buffers);
  }
  a->anchored = 1;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* Buffers take the mean.  Workers still compute with buffers without the other regions' part, so
   the host is informed. */
static void take_buffers(fragment *f, gt_vec mean, bool unchanged) {
  const gt_sync *s = f->of;
  if (f->buffers.n == 0) return;
  if (unchanged) {
    gt_vec_scale(f->buffers, -f->share);
    gt_vec_axpy(f->buffers, 1, mean);
    gt_sync_buffers_moved(s, f->share, 1, f->buffers);
  } else {
    gt_sync_buffers_moved(s, 0, 1, mean);
  }
  gt_vec_copy(f->buffers, mean);
}

/* ---- contributions --------------------------------------------------------------------------- */

/* Writes the contribution, from the parameters as they are or, with a delay, as they were sent. */
static void fill(const sma *a, fragment *f) {
  if (lends_model(a)) return;
  if (f->before.n)
    gt_vec_copy(f->sent, f->before);
  else
    gt_fragment_gather(&f->part, f->sent, a->base.env.params);
  if (!is_anchored(f)) return;
  gt_vec_scale(f->sent, -1);
  gt_vec_axpy(f->sent, 1, f->anchor);
}

static void prepare(const sma *a, fragment *f) {
  if (f->before.n) {
    gt_fragment_gather(&f->part, f->before, a->base.env.params);
    gt_vec_copy(f->sent_buffers, f->buffers);
  }
  fill(a, f);
}

static bool is_finite(const fragment *f) {
  bool finite = true;
  for (size_t i = 0; i < f->part.ntensors; i++)
    finite = finite && gt_vec_finite(gt_vec_range(f->of->env.params, f->part.from[i],
                                                  f->part.tensors[i].count));
  return finite;
}

/* Goes back to the anchor where parameters are not finite; the optimizer then starts again. */
static void renew(sma *a) {
  bool any = false;
  set_anchors(a);
  for (size_t p = 0; p < a->count; p++) {
    fragment *f = &a->fragments[p];
    if (!gt_vec_finite(f->buffers)) take_buffers(f, f->anchor_buffers, false);
    if (is_finite(f)) continue;
    gt_fragment_scatter(&f->part, a->base.env.params, f->anchor);
    f->renewed = f->arrived || gt_allreduce_waiting(f->rounds);
    any = true;
  }
  if (any) gt_optim_renew(a->base.env.optim);
}

/* Judges the prepared contribution; false: it is in no mean. */
static bool is_sound(sma *a, fragment *f) {
  gt_sync *s = &a->base;
  double norm = 0;
  gt_optim_squares(f->outer, f->sent, &norm);
  norm = gt_vec_finite(f->buffers) ? sqrt(norm) : NAN;
  const gt_verdict verdict = judge(&f->guard, &s->env.options.guard, norm);
  if (verdict == GT_GUARD_SOUND) return true;
  if (verdict == GT_GUARD_NONFINITE) {
    renew(a);
    prepare(a, f);
  }
  s->excluded++;
  s->env.host.excluded(s->env.host.ctx, s->excluded, norm);
  return false;
}

static void contribute(sma *a, fragment *f) {
  prepare(a, f);
  f->steps = 0;
  f->open = true;
  f->renewed = gt_sync_guarded(&a->base.env.options) && !is_sound(a, f);
  if (f->renewed)
    gt_allreduce_abstain(f->rounds);
  else
    gt_allreduce_contribute(f->rounds);
}

/* ---- means ----------------------------------------------------------------------------------- */

/* Merges the agreed parameters with those that the region has reached since it sent its own. */
static void merge(const fragment *f, gt_vec agreed) {
  const gt_sync_env *env = &f->of->env;
  const float keep = (float)env->options.local_weight;
  for (size_t i = 0; i < f->part.ntensors; i++) {
    const gt_view *t = &f->part.tensors[i];
    const gt_vec w = gt_vec_range(env->params, f->part.from[i], t->count),
                 next = gt_vec_range(agreed, t->offset, t->count);
    if (env->options.late == GT_LATE_CARRY) {
      gt_vec_axpy(w, -1, gt_vec_range(f->before, t->offset, t->count));
      gt_vec_axpy(w, 1, next);
    } else if (env->options.late == GT_LATE_BLEND) {
      gt_vec_scale(w, keep);
      gt_vec_axpy(w, 1 - keep, next);
    } else {
      gt_vec_copy(w, next);
    }
  }
}

/* Takes the agreed parameters and buffers. */
static void settle(sma *a, fragment *f, gt_vec agreed, gt_vec buffers) {
  const bool own = f->share > 0 && !f->renewed;
  f->open = false;
  take_buffers(f, buffers, own && f->steps == 0);
  if (f->anchor_buffers.n) gt_vec_copy(f->anchor_buffers, buffers);
  if (own && f->steps > 0)
    merge(f, agreed);
  else
    gt_fragment_scatter(&f->part, a->base.env.params, agreed);
  f->arrived = f->renewed = 0;
}

static void apply(sma *a, fragment *f, gt_vec mean) {
  const size_t n = f->part.n;
  const gt_vec buffers = mean.n > 0 ? gt_vec_range(mean, n, f->buffers.n) : f->anchor_buffers;
  gt_vec agreed = f->anchor;
  set_anchors(a);
  if (is_anchored(f) && mean.n > 0)
    gt_optim_step(f->outer, f->anchor, gt_vec_range(mean, 0, n), gt_vec_of(NULL, n));
  if (!is_anchored(f)) agreed = gt_vec_range(mean, 0, n);
  if (f->agreed.n > 0) {
    gt_vec_copy(gt_vec_range(f->agreed, 0, n), agreed);
    gt_vec_copy(gt_vec_range(f->agreed, n, f->buffers.n), buffers);
  }
  settle(a, f, agreed, buffers);
}

/* The mean of the own contribution is to be applied now. */
static bool is_due(const sma *a, const fragment *f) {
  return a->draining || f->steps >= a->base.env.options.delay;
}

/* Keeps a mean with the own contribution until it is due; false: it is applied now. */
static bool keeps(const sma *a, fragment *f, gt_vec mean) {
  if ((f->share <= 0 && !f->renewed) || is_due(a, f)) return false;
  if (mean.n > 0 && mean.data != f->mean.data) gt_vec_copy(f->mean, mean);
  f->arrived = mean.n > 0 ? HERE : EMPTY;
  return true;
}

/* Takes complete rounds, as far as they are due. */
static void take_means(sma *a, fragment *f) {
  gt_vec mean;
  float share;
  if (f->arrived && is_due(a, f)) apply(a, f, f->arrived == HERE ? f->mean : gt_vec_of(NULL, 0));
  while (!f->arrived && gt_allreduce_next(f->rounds, &mean, &share)) {
    f->share = share;
    if (!keeps(a, f, mean)) {
      apply(a, f, mean);
      gt_allreduce_answer(f->rounds, mean);
    }
  }
}

/* The last contribution, once the one before it has been applied, or is void because members have
   changed, and once a region that has returned takes part. */
static void leave(sma *a, fragment *f) {
  const bool pending = f->arrived || gt_allreduce_waiting(f->rounds),
             lacks = f->steps > 0 || (f->open && !pending);
  if (f->left || (pending && f->steps > 0) || (lacks && gt_allreduce_holds(f->rounds))) return;
  if (lacks) contribute(a, f);
  gt_allreduce_leave(f->rounds);
  f->left = 1;
}

static bool waits(const sma *a, const fragment *f) {
  if (f->arrived) return false;
  return gt_allreduce_waiting(f->rounds) ? is_due(a, f) : gt_allreduce_holds(f->rounds);
}

/* Applies complete rounds, then holds or releases the workers. */
static void advance(void *ctx) {
  sma *a = ctx;
  bool held = false;
  for (size_t p = 0; p < a->count; p++) {
    fragment *f = &a->fragments[p];
    take_means(a, f);
    if (a->draining && !f->left) {
      leave(a, f);
      take_means(a, f);
    }
    held |= waits(a, f);
  }
  gt_sync_hold_while(ctx, held);
}

/* ---- the strategy ---------------------------------------------------------------------------- */

static void open_fragment(sma *a, fragment *f, size_t p) {
  gt_sync *s = &a->base;
  const gt_sync_env *env = &s->env;
  const bool anchored = gt_sync_anchored(&env->options), delayed = env->options.delay > 0;
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
  f->sent = lends_model(a) ? env->params : gt_sync_vec(s, n);
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
                                   .tensors = a->count > 1 ? f->part.tensors : NULL,
                                   .ntensors = f->part.ntensors,
                                   .changed = advance,
                                   .ctx = s};
  f->rounds =
      gt_allreduce_open(env->exchange, &spec, f->sent, delayed ? f->sent_buffers : f->buffers);
}

static void sma_open(gt_sync *s) {
  sma *a = (sma *)s;
  const gt_sync_env *env = &s->env;
  a->count = env->options.fragments > 1 ? (size_t)env->options.fragments : 1;
  a->fragments = GT_NEW_ARRAY(fragment, a->count);
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
  sma *a = (sma *)s;
  for (size_t p = 0; p < a->count; p++) {
    fragment *f = &a->fragments[p];
    gt_allreduce_close(f->rounds);
    gt_optim_close(f->outer);
    if (!lends_model(a)) gt_free(f->sent.data);
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
static int64_t offset_of(const sma *a, size_t p) {
  const int64_t period = a->base.env.options.period;
  return p == 0 ? period : (int64_t)p * period / (int64_t)a->count;
}

static void sma_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now;
  sma *a = (sma *)s;
  bool moved = false;
  a->draining = false;
  set_anchors(a);
  gt_sync_step(s, grads);
  gt_allreduce_behind(a->fragments[0].rounds, samples);
  a->steps++;
  for (size_t p = 0; p < a->count; p++) {
    fragment *f = &a->fragments[p];
    f->left = 0;
    f->steps++;
    if (f->arrived || gt_allreduce_waiting(f->rounds)) {
      moved |= is_due(a, f);
    } else if (a->steps == offset_of(a, p)) {
      contribute(a, f);
      moved = true;
    }
  }
  if (a->steps == s->env.options.period) a->steps = 0;
  if (moved) advance(s);
}

static void sma_on_nonfinite(gt_sync *s) {
  if (gt_sync_guarded(&s->env.options)) renew((sma *)s);
}

static void sma_on_drain(gt_sync *s, gt_ns now) {
  (void)now;
  sma *a = (sma *)s;
  a->draining = true;
  a->steps = 0;
  advance(s);
}

static bool sma_drained(const gt_sync *s) {
  const sma *a = (const sma *)s;
  bool left = true;
  for (size_t p = 0; p < a->count && a->draining; p++) left = left && a->fragments[p].left;
  return left;
}

/* ---- state ----------------------------------------------------------------------------------- */

/* A contribution whose round is pending: without a delay it follows from the checkpoint's model and
   anchor. */
static gt_status delayed_state(fragment *f, gt_state_direction direction) {
  const gt_state_field counters[] = {
      {"steps_since", GT_TYPE_I64, &f->steps, 1},     {"arrived", GT_TYPE_I64, &f->arrived, 1},
      {"share", GT_TYPE_F32, &f->share, 1},           gt_sync_field("before", f->before),
      gt_sync_field("sent_buffers", f->sent_buffers), gt_sync_field("mean", f->mean)};
  return GT_STATE_FIELDS(direction, f->owner, counters);
}

static gt_status outer_state(fragment *f, gt_state_direction direction) {
  char prefix[64];
  const gt_state_field anchor = gt_sync_field("anchor", f->anchor);
  snprintf(prefix, sizeof prefix, "%souter/", f->owner);
  GT_TRY(gt_state_fields(direction, f->owner, &anchor, 1));
  if (direction.from) return gt_optim_load(f->outer, prefix, direction.from);
  gt_optim_save(f->outer, prefix, direction.to);
  return GT_OK;
}

static gt_status fragment_state(sma *a, fragment *f, gt_state_direction direction) {
  const gt_state_field since = {"steps_since", GT_TYPE_I64, &f->steps, 1},
                       renewed = {"renewed", GT_TYPE_I64, &f->renewed, 1},
                       buffers = gt_sync_field("anchor_buffers", f->anchor_buffers),
                       agreed = gt_sync_field("agreed", f->agreed);
  GT_TRY(gt_allreduce_state(f->rounds, direction));
  if (gt_sync_guarded(&a->base.env.options)) {
    GT_TRY(gt_state_fields(direction, f->owner, &renewed, 1));
    if (buffers.name) GT_TRY(gt_state_fields(direction, f->owner, &buffers, 1));
    GT_TRY(guard_state(&f->guard, f->owner, direction));
  }
  if (is_anchored(f)) GT_TRY(outer_state(f, direction));
  if (f->agreed.n) GT_TRY(gt_state_fields(direction, f->owner, &agreed, 1));
  if (f->before.n)
    GT_TRY(delayed_state(f, direction));
  else if (a->count > 1)
    GT_TRY(gt_state_fields(direction, f->owner, &since, 1));
  if (!direction.from) return GT_OK;
  f->open = f->arrived || gt_allreduce_waiting(f->rounds);
  fill(a, f);
  return GT_OK;
}

/* ---- change of members ----------------------------------------------------------------------- */

/* The state after the last applied round, and the mean of a later one that is not due here. */
static gt_status common_fields(fragment *f, int64_t *arrived, gt_state_direction direction) {
  char prefix[64];
  const gt_state_field fields[] = {gt_sync_field("agreed", f->agreed),
                                   {"arrived", GT_TYPE_I64, arrived, 1}},
                       mean = gt_sync_field("mean", f->mean);
  GT_TRY(GT_STATE_FIELDS(direction, f->owner, fields));
  if (*arrived == HERE) GT_TRY(gt_state_fields(direction, f->owner, &mean, 1));
  if (!is_anchored(f)) return GT_OK;
  snprintf(prefix, sizeof prefix, "%souter/", f->owner);
  if (direction.from) return gt_optim_load(f->outer, prefix, direction.from);
  gt_optim_save(f->outer, prefix, direction.to);
  return GT_OK;
}

static void adopt(sma *a, fragment *f, int64_t arrived) {
  const size_t n = f->part.n;
  const gt_vec agreed = gt_vec_range(f->agreed, 0, n),
               buffers = gt_vec_range(f->agreed, n, f->buffers.n);
  f->share = gt_allreduce_adopt(f->rounds);
  if (is_anchored(f)) gt_vec_copy(f->anchor, agreed);
  a->anchored = 1;
  f->arrived = 0;
  if (arrived == 0) {
    settle(a, f, agreed, buffers);
    return;
  }
  const gt_vec mean = arrived == HERE ? f->mean : gt_vec_of(NULL, 0);
  if (!keeps(a, f, mean)) apply(a, f, mean);
}

static gt_status sma_common(gt_sync *s, size_t range, gt_state_direction direction) {
  sma *a = (sma *)s;
  size_t p = 0;
  while (p < a->count && gt_allreduce_range(a->fragments[p].rounds) != range) p++;
  if (p == a->count) gt_bug("range %zu is of no fragment", range);
  fragment *f = &a->fragments[p];
  int64_t arrived = f->arrived;
  if (direction.to) set_anchors(a);
  GT_TRY(common_fields(f, direction.to ? &f->arrived : &arrived, direction));
  if (direction.from) adopt(a, f, arrived);
  return GT_OK;
}

static int64_t *sma_place(gt_sync *s) {
  return &((sma *)s)->steps;
}

static gt_status sma_state(gt_sync *s, gt_state_direction direction) {
  sma *a = (sma *)s;
  const gt_state_field steps = {"steps", GT_TYPE_I64, &a->steps, 1},
                       excluded = {"excluded", GT_TYPE_I64, &s->excluded, 1},
                       anchored = {"anchored", GT_TYPE_I64, &a->anchored, 1};
  GT_TRY(gt_state_fields(direction, "sync/", &steps, 1));
  if (gt_sync_guarded(&s->env.options)) GT_TRY(gt_state_fields(direction, "sync/", &excluded, 1));
  for (size_t p = 0; p < a->count; p++) GT_TRY(fragment_state(a, &a->fragments[p], direction));
  if (a->count == 1 && !a->fragments[0].before.n) a->fragments[0].steps = a->steps;
  return is_anchored(&a->fragments[0]) || s->env.options.regroups
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
    .size = sizeof(sma),
    .open = sma_open,
    .close = sma_close,
    .on_gradient = sma_on_gradient,
    .on_nonfinite = sma_on_nonfinite,
    .on_drain = sma_on_drain,
    .drained = sma_drained,
    .state = sma_state,
    .common = sma_common,
    .place = sma_place,
};
