/* Broadcast: what every topology has in common: one message that is filled, then posted. */
#include "internal.h"

static const gt_broadcast_ops *ops_of(const gt_broadcast *b) {
  return b->base.x->topology->broadcast;
}

gt_broadcast *gt_broadcast_open(gt_exchange *x, const gt_collective_spec *spec, size_t n, bool replace) {
  gt_broadcast *b = GT_NEW(gt_broadcast);
  gt_exchange_add(x, &b->base, spec, n);
  b->base.broadcast = b;
  b->replace = replace;
  return b;
}

void gt_broadcast_close(gt_broadcast *b) {
  gt_free(b);
}

/* What is replaced needs no room, only the bytes. */
bool gt_broadcast_room(const gt_broadcast *b) {
  const gt_exchange_spec *spec = &b->base.x->spec;
  if (spec->nregions == 1) return true;
  if (b->replace) return !spec->host.afford || spec->host.afford(spec->host.ctx);
  return ops_of(b)->room(b);
}

gt_vec gt_broadcast_begin(gt_broadcast *b) {
  const gt_exchange_host *host = &b->base.x->spec.host;
  b->filling = host->payload(host->ctx, b->base.n);
  return b->filling->vec;
}

gt_vec gt_broadcast_post(gt_broadcast *b, uint64_t value, uint64_t samples) {
  gt_payload *payload = b->filling;
  gt_frame_header head = {.kind = (uint8_t)b->base.spec.kind, .range = (uint32_t)b->base.id, .value = value, .detail = samples};
  gt_vec seen = payload->vec;
  b->filling = NULL;
  ops_of(b)->post(b, payload, &head);
  return seen;
}
