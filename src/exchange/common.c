/* Functions of an exchange that its collectives and topologies use. */
#include "internal.h"

void gt_exchange_add(gt_exchange *x, gt_collective *c, const gt_collective_spec *spec, size_t n) {
  c->x = x;
  c->spec = *spec;
  c->n = n;
  c->count = GT_NEW_ARRAY(int64_t, x->spec.nregions);
  c->id = x->ncollectives++;
  if (x->last)
    x->last->next = c;
  else
    x->first = c;
  x->last = c;
}

void gt_exchange_remove(gt_collective *c) {
  gt_free(c->count);
  gt_free(c);
}

bool gt_exchange_room_at(gt_exchange *x, const size_t *regions, size_t n, size_t messages,
                         gt_room_use use) {
  const gt_exchange_host *host = &x->spec.host;
  for (size_t i = 0; i < n; i++)
    if (!host->room(host->ctx, regions[i], messages, use)) {
      x->full = regions[i];
      return false;
    }
  return true;
}

bool gt_exchange_affords(gt_exchange *x, size_t messages, size_t floats) {
  const gt_exchange_host *host = &x->spec.host;
  if (!host->afford || host->afford(host->ctx, messages, floats)) return true;
  x->full = x->spec.nregions;
  return false;
}

bool gt_exchange_can_post(gt_exchange *x, const size_t *regions, size_t n, size_t messages,
                          size_t floats) {
  return gt_exchange_room_at(x, regions, n, messages, GT_ROOM_ANY) &&
         gt_exchange_affords(x, n * messages, floats);
}

gt_status gt_exchange_check_part(const gt_frame_header *head, size_t offset, size_t n) {
  if (head->route.offset == offset && head->route.count == n) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "data has %llu floats from %llu on; %zu from %zu on are needed",
                 (unsigned long long)head->route.count, (unsigned long long)head->route.offset, n,
                 offset);
}

gt_payload *gt_exchange_body(const gt_exchange *x, size_t n) {
  return x->spec.host.payload(x->spec.host.ctx, n);
}

gt_frame_header gt_collective_head(const gt_collective *c, uint64_t value, uint64_t detail) {
  return (gt_frame_header){
      .kind = (uint8_t)c->spec.kind, .range = (uint32_t)c->id, .value = value, .detail = detail};
}

gt_frame_header gt_collective_routed(const gt_collective *c, uint64_t value, uint64_t detail,
                                     const gt_frame_route *route) {
  gt_frame_header head = gt_collective_head(c, value, detail);
  head.flags = GT_FRAME_ROUTED;
  head.route = *route;
  return head;
}
