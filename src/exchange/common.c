/* Functions that collectives and topologies share: room, bodies, encoding, posting. */
#include <string.h>

#include "internal.h"

void gt_exchange_cut(gt_collective *c) {
  const size_t n = c->n, most = c->x->topology->in_pieces ? c->x->spec.piece : n;
  size_t end = 0, capacity = 0;
  gt_free(c->starts);
  c->starts = NULL;
  c->npieces = c->piece = c->coded_bytes = 0;
  GT_GROW(c->starts, c->npieces, capacity, 4);
  c->starts[0] = 0;
  do {
    const size_t first = end;
    end = gt_coder_cut(c->coder, n, first, most);
    GT_GROW(c->starts, c->npieces + 1, capacity, 4);
    c->starts[++c->npieces] = end;
    const gt_codec_turn turn = {.first = first, .count = end - first};
    const size_t bytes = c->coder ? gt_coder_bound(c->coder, &turn) : 0;
    if (end - first > c->piece) c->piece = end - first;
    if (bytes > c->coded_bytes) c->coded_bytes = bytes;
  } while (end < n);
}

void gt_exchange_add(gt_exchange *x, gt_collective *c, const gt_collective_spec *spec, size_t n,
                     gt_coder *coder) {
  c->x = x;
  c->spec = *spec;
  c->n = n;
  c->coder = coder;
  gt_exchange_cut(c);
  c->count = GT_NEW_ARRAY(int64_t, x->spec.nregions);
  c->id = x->ncollectives++;
  if (x->last)
    x->last->next = c;
  else
    x->first = c;
  x->last = c;
}

void gt_exchange_remove(gt_collective *c) {
  gt_coder_close(c->coder);
  gt_free(c->starts);
  gt_free(c->count);
  gt_free(c);
}

static size_t region_of(const gt_exchange *x, size_t member) {
  return x->spec.regions ? x->spec.regions[member] : member;
}

size_t gt_exchange_body_bytes(const gt_collective *c, size_t floats) {
  const bool exact = c->broadcast && c->broadcast->filling.exact;
  return c->coder && !exact ? c->coded_bytes : floats * sizeof(float);
}

void gt_exchange_want(gt_exchange *x, size_t region, size_t messages) {
  x->wanted[x->nwants] = region;
  x->wants[x->nwants++] = (gt_outbox_want){region_of(x, region), messages};
}

bool gt_exchange_can_post_wanted(const gt_collective *c, gt_room_use use, size_t floats) {
  gt_exchange *x = c->x;
  const size_t n = x->nwants;
  size_t messages = 0, full;
  for (size_t i = 0; i < n; i++) messages += x->wants[i].messages;
  x->nwants = 0;
  const gt_frame_header head = {.flags = x->topology->routed ? GT_FRAME_ROUTED : 0};
  const size_t each = gt_message_wire_bytes(&head, gt_exchange_body_bytes(c, floats));
  if (gt_outbox_room(x->spec.outbox, x->wants, n, use, (double)(messages * each), &full))
    return true;
  x->full = full < n ? x->wanted[full] : x->spec.nregions;
  return false;
}

bool gt_exchange_can_post(const gt_collective *c, gt_room_use use, const size_t *regions, size_t n,
                          size_t messages, size_t floats) {
  for (size_t i = 0; i < n; i++) gt_exchange_want(c->x, regions[i], messages);
  return gt_exchange_can_post_wanted(c, use, floats);
}

gt_status gt_exchange_check_part(const gt_frame_header *head, size_t offset, size_t n) {
  if (head->route.offset == offset && head->route.count == n) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "data has %llu floats from %llu on; expected %zu from %zu on",
                 (unsigned long long)head->route.count, (unsigned long long)head->route.offset, n,
                 offset);
}

gt_status gt_exchange_check_after(const gt_frame_header *head, int64_t last) {
  if ((int64_t)head->value > last) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "data is of step or round %lld; expected one after %lld",
                 (long long)head->value, (long long)last);
}

const gt_frame_header *gt_exchange_next_held(const gt_collective *c, size_t from, size_t *i) {
  const gt_held *h = &c->x->held.of[from];
  while (*i < h->n && h->messages[*i].collective != c) ++*i;
  return *i < h->n ? &h->messages[(*i)++].head : NULL;
}

int64_t gt_exchange_held(const gt_collective *c, size_t from, const gt_frame_header **last) {
  int64_t n = 0;
  size_t i = 0;
  for (const gt_frame_header *m; (m = gt_exchange_next_held(c, from, &i)); n++) *last = m;
  return n;
}

void gt_exchange_acknowledge(const gt_exchange *x, size_t from) {
  gt_outbox_ack(x->spec.outbox, region_of(x, from), 1);
}

static bool is_encoded(const gt_collective *c, const gt_message *m) {
  return c->coder && !m->exact;
}

gt_vec gt_exchange_fill(const gt_collective *c, gt_message *m, size_t n) {
  const gt_exchange_events *events = &c->x->spec.events;
  if (events->filling) events->filling(events->ctx);
  m->n = n;
  m->payload = NULL;
  if (is_encoded(c, m) && n > 0)
    return m->of == GT_BODY_PASSED
               ? gt_vec_of(NULL, n)
               : gt_vec_range(gt_coder_sent(c->coder), (size_t)m->route.offset, n);
  m->payload = gt_outbox_body(c->x->spec.outbox, n * sizeof(float));
  return gt_vec_of(m->payload->data, n);
}

/* Gives the message its encoded payload; returns the length in bytes. */
static size_t encode(const gt_collective *c, gt_message *m) {
  const gt_exchange *x = c->x;
  const bool sum = m->of == GT_BODY_SUM;
  const size_t self = x->spec.self;
  if (m->of == GT_BODY_PASSED) {
    const size_t bytes = (size_t)x->taken->message_bytes;
    m->payload = gt_outbox_body(x->spec.outbox, bytes);
    if (x->taken_body && bytes) memcpy(m->payload->data, x->taken_body, bytes);
    return bytes;
  }
  if (m->n == 0) return 0;
  const gt_codec_turn turn = {.round = m->value,
                              .sender = (uint32_t)(sum ? x->spec.nregions + self : self),
                              .first = (size_t)m->route.offset,
                              .count = m->n};
  m->payload = gt_outbox_body(x->spec.outbox, c->coded_bytes);
  m->payload->bytes = gt_coder_encode(c->coder, sum, &turn, m->payload->data);
  return m->payload->bytes;
}

void gt_exchange_send(const gt_collective *c, gt_message *m) {
  const gt_exchange *x = c->x;
  const gt_exchange_events *events = &x->spec.events;
  const bool encoded = is_encoded(c, m);
  const size_t bytes = encoded ? encode(c, m) : m->n * sizeof(float);
  gt_outbox_message out = {.payload = m->payload,
                           .first = encoded ? 0 : m->first * sizeof(float),
                           .bytes = bytes,
                           .head = {.kind = (uint8_t)(m->kind ? m->kind : c->spec.kind),
                                    .codec = encoded ? gt_coder_kind(c->coder) : 0,
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
  m->payload->refs++; /* keeps the body from being reused between two regions */
  for (size_t i = 0; i < m->nto; i++) gt_outbox_post(x->spec.outbox, region_of(x, m->to[i]), &out);
  m->payload->refs--;
}
