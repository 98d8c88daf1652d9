/* sma: a fragment's contributions to means, and what it does with means. */
#include "sma.h"

#include <math.h>

/* The anchors of the first rounds are the initial model. */
void gt_sma_set_anchors(gt_sma *a) {
  for (size_t p = 0; p < a->count && !a->anchored; p++) {
    gt_sma_fragment *f = &a->fragments[p];
    if (gt_sma_is_anchored(f)) gt_fragment_gather(&f->part, f->anchor, a->base.env.params);
    if (f->agreed.n == 0) continue;
    gt_fragment_gather(&f->part, gt_vec_range(f->agreed, 0, f->part.n), a->base.env.params);
    gt_vec_copy(gt_vec_range(f->agreed, f->part.n, f->buffers.n), f->buffers);
  }
  a->anchored = 1;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* Buffers take the mean.  Workers still compute with buffers without the other regions' part, so
   the host is informed. */
static void take_buffers(gt_sma_fragment *f, gt_vec mean, bool unchanged) {
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
  if (f->anchor_buffers.n && mean.data != f->anchor_buffers.data)
    gt_vec_copy(f->anchor_buffers, mean);
}

/* ---- contributions --------------------------------------------------------------------------- */

/* Writes the contribution, from the parameters as they are or, with a delay, as they were sent. */
void gt_sma_fill(const gt_sma *a, gt_sma_fragment *f) {
  if (gt_sma_lends_model(a)) return;
  if (f->before.n)
    gt_vec_copy(f->sent, f->before);
  else
    gt_fragment_gather(&f->part, f->sent, a->base.env.params);
  if (!gt_sma_is_anchored(f)) return;
  gt_vec_scale(f->sent, -1);
  gt_vec_axpy(f->sent, 1, f->anchor);
}

static void prepare(const gt_sma *a, gt_sma_fragment *f) {
  if (f->before.n) {
    gt_fragment_gather(&f->part, f->before, a->base.env.params);
    gt_vec_copy(f->sent_buffers, f->buffers);
  }
  gt_sma_fill(a, f);
}

static bool is_finite(const gt_sma_fragment *f) {
  bool finite = true;
  for (size_t i = 0; i < f->part.ntensors; i++)
    finite = finite && gt_vec_finite(gt_vec_range(f->of->env.params, f->part.from[i],
                                                  f->part.tensors[i].count));
  return finite;
}

/* Goes back to the anchor where parameters are not finite; the optimizer then starts again. */
void gt_sma_renew(gt_sma *a) {
  bool any = false;
  gt_sma_set_anchors(a);
  for (size_t p = 0; p < a->count; p++) {
    gt_sma_fragment *f = &a->fragments[p];
    if (!gt_vec_finite(f->buffers)) take_buffers(f, f->anchor_buffers, false);
    if (is_finite(f)) continue;
    gt_fragment_scatter(&f->part, a->base.env.params, f->anchor);
    f->renewed = f->arrived || gt_allreduce_waiting(f->rounds);
    any = true;
  }
  if (any) gt_optim_renew(a->base.env.optim);
}

/* Judges the prepared contribution; false: it is in no mean. */
static bool is_sound(gt_sma *a, gt_sma_fragment *f) {
  gt_sync *s = &a->base;
  double norm = 0;
  gt_optim_squares(f->outer, f->sent, &norm);
  norm = gt_vec_finite(f->buffers) ? sqrt(norm) : NAN;
  const gt_verdict verdict = gt_guard_judge(&f->guard, &s->env.options.guard, norm);
  if (verdict == GT_GUARD_SOUND) return true;
  if (verdict == GT_GUARD_NONFINITE) {
    gt_sma_renew(a);
    prepare(a, f);
  }
  s->excluded++;
  s->env.host.excluded(s->env.host.ctx, s->excluded, norm);
  return false;
}

void gt_sma_contribute(gt_sma *a, gt_sma_fragment *f) {
  prepare(a, f);
  f->steps = f->late = f->owes = 0;
  f->open = true;
  f->renewed = gt_sync_guarded(&a->base.env.options) && !is_sound(a, f);
  if (f->renewed)
    gt_allreduce_abstain(f->rounds);
  else
    gt_allreduce_contribute(f->rounds);
}

/* ---- means ----------------------------------------------------------------------------------- */

/* Merges the agreed parameters with those that the region has reached since it sent its own. */
static void merge(const gt_sma_fragment *f, gt_vec agreed) {
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
static void settle(gt_sma *a, gt_sma_fragment *f, gt_vec agreed, gt_vec buffers) {
  const bool own = f->share > 0 && !f->renewed;
  f->open = false;
  take_buffers(f, buffers, own && f->steps == 0);
  if (own && f->steps > 0)
    merge(f, agreed);
  else
    gt_fragment_scatter(&f->part, a->base.env.params, agreed);
  f->arrived = f->renewed = 0;
}

/* Adds `factor` times the anchor to the parameters, and to those that were sent and are in no mean
   yet. */
static void add_anchor(const gt_sma *a, const gt_sma_fragment *f, float factor) {
  for (size_t i = 0; i < f->part.ntensors; i++) {
    const gt_view *t = &f->part.tensors[i];
    gt_vec_axpy(gt_vec_range(a->base.env.params, f->part.from[i], t->count), factor,
                gt_vec_range(f->anchor, t->offset, t->count));
  }
  if (f->late) gt_vec_axpy(f->before, factor, f->anchor);
}

static void keep_agreed(gt_sma_fragment *f, gt_vec agreed, gt_vec buffers) {
  if (f->agreed.n == 0) return;
  gt_vec_copy(gt_vec_range(f->agreed, 0, f->part.n), agreed);
  gt_vec_copy(gt_vec_range(f->agreed, f->part.n, f->buffers.n), buffers);
}

static void apply(gt_sma *a, gt_sma_fragment *f, gt_vec mean) {
  const size_t n = f->part.n;
  const gt_vec buffers = mean.n > 0 ? gt_vec_range(mean, n, f->buffers.n) : f->anchor_buffers;
  const bool moves = f->missed && mean.n > 0;
  gt_sma_set_anchors(a);
  if (moves) add_anchor(a, f, -1);
  if (gt_sma_is_anchored(f) && mean.n > 0)
    gt_optim_step(f->outer, f->anchor, gt_vec_range(mean, 0, n), gt_vec_of(NULL, n));
  if (moves) add_anchor(a, f, 1);
  const gt_vec agreed = gt_sma_is_anchored(f) ? f->anchor : gt_vec_range(mean, 0, n);
  keep_agreed(f, agreed, buffers);
  if (!f->missed) {
    settle(a, f, agreed, buffers);
    return;
  }
  take_buffers(f, buffers, false);
  f->arrived = 0;
}

/* The delay between the last contribution and its mean is over. */
bool gt_sma_is_delay_over(const gt_sma *a, const gt_sma_fragment *f) {
  return a->draining || f->steps >= a->base.env.options.delay;
}

/* The mean is to be applied now. */
bool gt_sma_is_due(const gt_sma *a, const gt_sma_fragment *f) {
  return f->prompt ? a->draining || a->stepping || a->held : gt_sma_is_delay_over(a, f);
}

/* Keeps a mean until it is due; false: it is applied now. */
static bool keeps(const gt_sma *a, gt_sma_fragment *f, gt_vec mean) {
  if ((f->share <= 0 && !f->renewed && !f->prompt) || gt_sma_is_due(a, f)) return false;
  if (mean.n > 0 && mean.data != f->mean.data) gt_vec_copy(f->mean, mean);
  f->arrived = mean.n > 0 ? GT_SMA_HERE : GT_SMA_EMPTY;
  return true;
}

/* Notes what the next mean is for the region; pending: it had a contribution in flight before. */
static void note_mean(gt_sma_fragment *f, bool pending) {
  f->late = gt_allreduce_waiting(f->rounds);
  f->missed = !pending || f->late;
  f->prompt = f->missed || f->behind;
  f->behind = f->missed || (f->behind && f->steps > f->of->env.options.delay);
  if (f->missed && (f->late || !f->left)) f->of->missed++;
}

/* Takes complete rounds, as far as they are due. */
void gt_sma_take_means(gt_sma *a, gt_sma_fragment *f) {
  gt_vec mean;
  float share;
  if (f->arrived && gt_sma_is_due(a, f))
    apply(a, f, f->arrived == GT_SMA_HERE ? f->mean : gt_vec_of(NULL, 0));
  while (!f->arrived) {
    const bool pending = gt_allreduce_waiting(f->rounds);
    if (!gt_allreduce_next(f->rounds, &mean, &share)) break;
    f->share = share;
    if (gt_sma_has_quorum(a)) note_mean(f, pending);
    if (!keeps(a, f, mean)) {
      apply(a, f, mean);
      gt_allreduce_answer(f->rounds, mean);
    }
  }
}

/* ---- change of members ----------------------------------------------------------------------- */

/* With a quorum the region's last contribution is in a mean that it lacks, or in none; then it adds
   the anchor's change to its model.  Of a region that has returned, later ones can be in means. */
static void adopt_quorum(gt_sma *a, gt_sma_fragment *f, int64_t arrived) {
  const size_t n = f->part.n;
  const gt_vec agreed = gt_vec_range(f->agreed, 0, n);
  const int64_t open = gt_allreduce_open_contributions(f->rounds);
  (void)gt_allreduce_adopt(f->rounds);
  f->late = gt_allreduce_waiting(f->rounds);
  f->missed = (open > 0 || (open == 0 && !f->open)) && (f->late || !f->left);
  f->share = open == 0 && f->open ? 1 : 0; /* the buffers take the mean in any case */
  if (f->missed) add_anchor(a, f, -1);
  gt_vec_copy(f->anchor, agreed);
  if (arrived == GT_SMA_HERE)
    gt_optim_step(f->outer, f->anchor, gt_vec_range(f->mean, 0, n), gt_vec_of(NULL, n));
  if (f->missed) add_anchor(a, f, 1);
  gt_vec_copy(agreed, f->anchor);
  const gt_vec buffers = gt_vec_range(f->agreed, n, f->buffers.n);
  if (arrived == GT_SMA_HERE) gt_vec_copy(buffers, gt_vec_range(f->mean, n, f->buffers.n));
  f->arrived = 0;
  if (!f->late) {
    f->open = f->missed && open > 0; /* to be made again */
    f->owes = 0;
  }
  take_buffers(f, buffers, false);
  if (f->missed) return;
  if (f->share > 0 && !f->renewed && f->steps > 0)
    merge(f, agreed);
  else
    gt_fragment_scatter(&f->part, a->base.env.params, agreed);
  f->renewed = 0;
}

void gt_sma_adopt(gt_sma *a, gt_sma_fragment *f, int64_t arrived) {
  const size_t n = f->part.n;
  const gt_vec agreed = gt_vec_range(f->agreed, 0, n),
               buffers = gt_vec_range(f->agreed, n, f->buffers.n);
  if (gt_sma_has_quorum(a)) {
    adopt_quorum(a, f, arrived);
    return;
  }
  a->anchored = 1;
  f->share = gt_allreduce_adopt(f->rounds);
  if (gt_sma_is_anchored(f)) gt_vec_copy(f->anchor, agreed);
  f->arrived = 0;
  if (arrived == 0) {
    settle(a, f, agreed, buffers);
    return;
  }
  const gt_vec mean = arrived == GT_SMA_HERE ? f->mean : gt_vec_of(NULL, 0);
  if (!keeps(a, f, mean)) apply(a, f, mean);
}
