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

static size_t region_of(const gt_exchange *x, size_t member) {
  return x->spec.regions ? x->spec.regions[member] : member;
}

size_t gt_exchange_wire_bytes(const gt_exchange *x, size_t messages, size_t floats) {
  const gt_frame_header head = {.flags = x->topology->routed ? GT_FRAME_ROUTED : 0};
  return messages * gt_message_wire_bytes(&head, floats * sizeof(float));
}

void gt_exchange_want(gt_exchange *x, size_t region, size_t messages) {
  x->wanted[x->nwants] = region;
  x->wants[x->nwants++] = (gt_outbox_want){region_of(x, region), messages};
}

bool gt_exchange_can_post_wanted(gt_exchange *x, gt_room_use use, size_t floats) {
  const size_t n = x->nwants;
  size_t messages = 0, full;
  for (size_t i = 0; i < n; i++) messages += x->wants[i].messages;
  x->nwants = 0;
  const double bytes = (double)gt_exchange_wire_bytes(x, messages, floats);
  if (gt_outbox_room(x->spec.outbox, x->wants, n, use, bytes, &full)) return true;
  x->full = full < n ? x->wanted[full] : x->spec.nregions;
  return false;
}

bool gt_exchange_can_post(gt_exchange *x, gt_room_use use, const size_t *regions, size_t n,
                          size_t messages, size_t floats) {
  for (size_t i = 0; i < n; i++) gt_exchange_want(x, regions[i], messages);
  return gt_exchange_can_post_wanted(x, use, floats);
}

gt_status gt_exchange_check_part(const gt_frame_header *head, size_t offset, size_t n) {
  if (head->route.offset == offset && head->route.count == n) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "data has %llu floats from %llu on; expected %zu from %zu on",
                 (unsigned long long)head->route.count, (unsigned long long)head->route.offset, n,
                 offset);
}

void gt_exchange_acknowledge(const gt_exchange *x, size_t from) {
  gt_outbox_ack(x->spec.outbox, region_of(x, from), 1);
}

gt_vec gt_exchange_fill(const gt_exchange *x, gt_message *m, size_t n) {
  const gt_exchange_events *events = &x->spec.events;
  if (events->filling) events->filling(events->ctx);
  m->payload = gt_outbox_body(x->spec.outbox, n * sizeof(float));
  m->n = n;
  return gt_vec_of(m->payload->data, n);
}

void gt_exchange_send(const gt_collective *c, const gt_message *m) {
  const gt_exchange *x = c->x;
  const gt_exchange_events *events = &x->spec.events;
  gt_outbox_message out = {.payload = m->payload,
                           .first = m->first * sizeof(float),
                           .bytes = m->n * sizeof(float),
                           .head = {.kind = (uint8_t)(m->kind ? m->kind : c->spec.kind),
                                    .range = (uint32_t)c->id,
                                    .value = m->value,
                                    .detail = m->detail},
                           .replace = m->replace};
  if (x->topology->routed) {
    out.head.flags = GT_FRAME_ROUTED;
    out.head.route = m->route;
    out.head.route.count = m->n;
  }
  if (events->filled) events->filled(events->ctx, out.head.kind, m->again ? 0 : m->n);
  m->payload->refs++; /* so that it is not taken for free between two regions */
  for (size_t i = 0; i < m->nto; i++) gt_outbox_post(x->spec.outbox, region_of(x, m->to[i]), &out);
  m->payload->refs--;
}
