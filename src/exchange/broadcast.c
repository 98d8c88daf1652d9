/* Broadcast: what every topology has in common: one message that is filled, then posted. */
#include "internal.h"

#include <stdio.h>

static const gt_broadcast_ops *ops_of(const gt_broadcast *b) {
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
  if (ops_of(b)->close) ops_of(b)->close(b);
  gt_exchange_remove(&b->base);
}

bool gt_broadcast_room(const gt_broadcast *b) {
  return b->base.x->spec.nregions == 1 || ops_of(b)->room(b);
}

gt_vec gt_broadcast_begin(gt_broadcast *b) {
  if (ops_of(b)->begin) {
    gt_vec own = ops_of(b)->begin(b);
    if (own.n) return own;
  }
  return gt_exchange_fill(b->base.x, &b->filling, b->base.n);
}

void gt_broadcast_post(gt_broadcast *b, uint64_t value, uint64_t samples) {
  b->filling.value = value;
  b->filling.detail = samples;
  b->posted = (int64_t)value;
  ops_of(b)->post(b, &b->filling);
}

void gt_broadcast_save(gt_broadcast *b, gt_state *state) {
  char prefix[64];
  snprintf(prefix, sizeof prefix, "%sbroadcast/", b->base.spec.owner);
  if (ops_of(b)->save) ops_of(b)->save(b, prefix, state);
}

gt_status gt_broadcast_load(gt_broadcast *b, const gt_state *state) {
  char prefix[64];
  snprintf(prefix, sizeof prefix, "%sbroadcast/", b->base.spec.owner);
  return ops_of(b)->load ? ops_of(b)->load(b, prefix, state) : GT_OK;
}
