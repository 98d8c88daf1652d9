/* Collectives, without their topology.  All-reduce in numbered rounds: which round the region is
   in, and whether it waits; who takes part in a round, and how its mean is formed, is the
   topology's. Broadcast: one message that is filled, then posted. */
#include "internal.h"

#include <stdio.h>

static const gt_allreduce_ops *ops_of(const gt_allreduce *r) {
  return r->base.x->topology->allreduce;
}

static gt_vec vector_of(const gt_exchange *x, size_t n) {
  return gt_vec_of(x->spec.with_memory && n ? GT_NEW_ARRAY(float, n) : NULL, n);
}

gt_allreduce *gt_allreduce_open(gt_exchange *x, const gt_collective_spec *spec, gt_vec a,
                                gt_vec b) {
  const gt_allreduce_ops *ops = x->topology->allreduce;
  gt_allreduce *r = gt_alloc(1, ops->size);
  gt_exchange_add(x, &r->base, spec, a.n + b.n);
  r->base.allreduce = r;
  r->a = a;
  r->b = b;
  r->mean = vector_of(x, a.n + b.n);
  ops->open(r);
  return r;
}

void gt_allreduce_close(gt_allreduce *r) {
  if (!r) return;
  ops_of(r)->close(r);
  gt_free(r->mean.data);
  gt_exchange_remove(&r->base);
}

void gt_allreduce_behind(gt_allreduce *r, uint64_t samples) {
  r->samples += (int64_t)samples;
}

void gt_allreduce_contribute(gt_allreduce *r) {
  ops_of(r)->again(r);
  if (r->rejoins) r->own = r->posted = r->applied;
  r->rejoins = false;
  r->over = 0;
  r->own++;
}

void gt_allreduce_part(gt_allreduce *r, size_t rank, gt_vec x, uint64_t samples) {
  ops_of(r)->part(r, rank, x, samples);
}

void gt_allreduce_leave(gt_allreduce *r) {
  r->over = 1;
  r->rejoins = false;
}

bool gt_allreduce_next(gt_allreduce *r, gt_vec *mean, float *share) {
  if (!ops_of(r)->next(r)) return false;
  r->applied++;
  ops_of(r)->again(r);
  *mean = r->mean;
  *share = r->share;
  return true;
}

bool gt_allreduce_answered(const gt_allreduce *r) {
  return ops_of(r)->answered && ops_of(r)->answered(r);
}

void gt_allreduce_answer(gt_allreduce *r, gt_vec made) {
  if (ops_of(r)->answer) ops_of(r)->answer(r, made);
}

bool gt_allreduce_waiting(const gt_allreduce *r) {
  return r->own > r->applied;
}

bool gt_allreduce_holds(const gt_allreduce *r) {
  return gt_allreduce_waiting(r) || (r->rejoins && (r->unheard || r->applied < r->floor));
}

bool gt_allreduce_is_last(const gt_allreduce *r) {
  const gt_exchange *x = r->base.x;
  for (size_t i = 0; i < x->spec.nregions; i++)
    if (i != x->spec.self && (!x->done[i] || r->base.count[i] > r->applied)) return false;
  return true;
}

/* ---- sums ------------------------------------------------------------------------------------ */

void gt_allreduce_add(gt_vec sum, float share, gt_vec x, bool first) {
  if (first)
    gt_vec_set_scaled(sum, share, x);
  else
    gt_vec_axpy(sum, share, x);
}

void gt_allreduce_add_own(const gt_allreduce *r, gt_vec sum, float share, size_t first_float,
                          bool first) {
  const size_t in_a = first_float < r->a.n ? r->a.n - first_float : 0,
               from_a = in_a < sum.n ? in_a : sum.n;
  if (from_a)
    gt_allreduce_add(gt_vec_range(sum, 0, from_a), share, gt_vec_range(r->a, first_float, from_a),
                     first);
  if (from_a == sum.n) return;
  const size_t in_b = first_float + from_a - r->a.n;
  gt_allreduce_add(gt_vec_range(sum, from_a, sum.n - from_a), share,
                   gt_vec_range(r->b, in_b, sum.n - from_a), first);
}

void gt_allreduce_copy_own(const gt_allreduce *r, gt_vec body) {
  gt_vec_copy(gt_vec_range(body, 0, r->a.n), r->a);
  if (r->b.n) gt_vec_copy(gt_vec_range(body, r->a.n, r->b.n), r->b);
}

/* ---- state ----------------------------------------------------------------------------------- */

gt_status gt_allreduce_state(gt_allreduce *r, gt_state_direction direction) {
  char prefix[64];
  const gt_state_field counters[] = {{"own", GT_TYPE_I64, &r->own, 1},
                                     {"posted", GT_TYPE_I64, &r->posted, 1},
                                     {"applied", GT_TYPE_I64, &r->applied, 1},
                                     {"samples", GT_TYPE_I64, &r->samples, 1},
                                     {"over", GT_TYPE_I64, &r->over, 1}};
  snprintf(prefix, sizeof prefix, "%srounds/", r->base.spec.owner);
  GT_TRY(GT_STATE_FIELDS(direction, prefix, counters));
  if (direction.from) {
    ops_of(r)->again(r);
    r->rejoins = r->over != 0;
    r->floor = r->applied;
    r->unheard = r->base.x->spec.nregions - 1;
  }
  return ops_of(r)->state(r, prefix, direction);
}

/* ---- broadcast ------------------------------------------------------------------------------- */

static const gt_broadcast_ops *cast_ops_of(const gt_broadcast *b) {
  return b->base.x->topology->broadcast;
}

gt_broadcast *gt_broadcast_open(gt_exchange *x, const gt_collective_spec *spec, size_t n,
                                bool replace) {
  const gt_broadcast_ops *ops = x->topology->broadcast;
  gt_broadcast *b = gt_alloc(1, ops->size);
  gt_exchange_add(x, &b->base, spec, n);
  b->base.broadcast = b;
  b->replace = replace;
  if (ops->open) ops->open(b);
  return b;
}

void gt_broadcast_close(gt_broadcast *b) {
  if (!b) return;
  if (cast_ops_of(b)->close) cast_ops_of(b)->close(b);
  gt_exchange_remove(&b->base);
}

bool gt_broadcast_room(const gt_broadcast *b) {
  return b->base.x->spec.nregions == 1 || cast_ops_of(b)->room(b);
}

gt_vec gt_broadcast_begin(gt_broadcast *b) {
  if (cast_ops_of(b)->begin) {
    gt_vec own = cast_ops_of(b)->begin(b);
    if (own.n) return own;
  }
  return gt_exchange_fill(b->base.x, &b->filling, b->base.n);
}

void gt_broadcast_post(gt_broadcast *b, uint64_t value, uint64_t samples) {
  b->filling.value = value;
  b->filling.detail = samples;
  b->posted = (int64_t)value;
  cast_ops_of(b)->post(b, &b->filling);
}

gt_status gt_broadcast_state(gt_broadcast *b, gt_state_direction direction) {
  char prefix[64];
  snprintf(prefix, sizeof prefix, "%sbroadcast/", b->base.spec.owner);
  return cast_ops_of(b)->state ? cast_ops_of(b)->state(b, prefix, direction) : GT_OK;
}
