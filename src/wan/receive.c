/* Receiving: checks every header and reassembles messages; holds frames until they arrive by the
   model. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *route_fault(const gt_frame_header *head) {
  const bool routed = head->flags & GT_FRAME_ROUTED;
  if (!gt_msg_is_activation(head->kind))
    return routed && !gt_msg_is_data(head->kind) ? "has a route but is not data" : NULL;
  if (!routed) return "is an activation without a route";
  return head->route.weight == 0 ? NULL : "is an activation with a weight";
}

static uint64_t offset_of(const gt_gateway *g, const gt_frame_header *head) {
  return gt_gateway_has_offset(g, head->kind) ? head->frame_offset : 0;
}

static const char *header_fault(const gt_gateway *g, size_t peer, const gt_frame_header *head,
                                size_t bytes) {
  if (bytes < GT_FRAME_HEADER_BYTES) return "is shorter than a header";
  if (head->magic != GT_FRAME_MAGIC) return "does not begin with GTF1";
  if (head->from != peer) return "names another sender";
  if (head->flags > GT_FRAME_ROUTED) return "has unknown flags";
  if (bytes != gt_header_bytes(head) + (size_t)head->frame_bytes)
    return "differs in size from its header";
  const char *fault = route_fault(head);
  if (fault) return fault;
  if (head->kind == GT_MSG_GROUP && g->group_max == 0) return "has an unknown kind";
  if (head->message_bytes > gt_message_max(g, head->kind))
    return "belongs to a message larger than any of this job";
  const uint64_t offset = offset_of(g, head);
  if (offset > head->message_bytes || head->frame_bytes > head->message_bytes - offset)
    return "reaches beyond its message";
  if (head->frame_bytes == 0 && head->message_bytes != 0)
    return "is an empty part of a non-empty message";
  if (gt_msg_is_control(head->kind))
    return head->frame_bytes == head->message_bytes ? NULL : "is a control message in parts";
  return gt_msg_is_traffic(head->kind) || gt_msg_is_rare(head->kind) ? NULL : "has an unknown kind";
}

void gt_gateway_refuse(const gt_gateway *g, size_t peer, const char *format, ...) {
  char text[GT_ERROR_TEXT_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  gt_panic(GT_ERR_LOST, "a message of region %s was refused: %s", g->names[peer], text);
}

static _Noreturn void refuse(const gt_gateway *g, size_t peer, const gt_frame_header *head,
                             size_t bytes, const char *fault) {
  gt_gateway_refuse(g, peer,
                    "a frame of %zu bytes %s (kind %u, from %u, sequence %llu, %u of %llu bytes at "
                    "%llu)",
                    bytes, fault, head->kind, head->from, (unsigned long long)head->sequence,
                    head->frame_bytes, (unsigned long long)head->message_bytes,
                    (unsigned long long)head->frame_offset);
}

gt_frame_header gt_receive_header(const uint8_t *frame, size_t bytes) {
  gt_frame_header head = {0};
  memcpy(&head, frame, bytes < GT_FRAME_HEADER_BYTES ? bytes : GT_FRAME_HEADER_BYTES);
  if (bytes >= GT_FRAME_HEADER_MAX && head.flags == GT_FRAME_ROUTED)
    memcpy(&head.route, frame + GT_FRAME_HEADER_BYTES, sizeof head.route);
  return head;
}

void gt_receive_check(const gt_gateway *g, size_t peer, const uint8_t *frame, size_t bytes) {
  gt_frame_header head = gt_receive_header(frame, bytes);
  const char *fault = header_fault(g, peer, &head, bytes);
  if (fault) refuse(g, peer, &head, bytes, fault);
}

/* Activations are not numbered: value, range and route identify them. */
static bool same_message(const gt_frame_header *a, const gt_frame_header *b) {
  return a->kind == b->kind && a->sequence == b->sequence && a->message_bytes == b->message_bytes &&
         a->value == b->value && a->range == b->range && a->route.origin == b->route.origin &&
         a->route.origin_rank == b->route.origin_rank &&
         a->route.destination == b->route.destination &&
         a->route.destination_rank == b->route.destination_rank &&
         a->route.offset == b->route.offset && a->route.count == b->route.count;
}

/* Frames of a data or bulk message come in order; only control frames can come between them. */
static const char *sequel_fault(const gt_gateway *g, const gt_receiver *r,
                                const gt_frame_header *head) {
  const uint64_t offset = offset_of(g, head);
  if (!r->assembling) return offset == 0 ? NULL : "continues a message that has not begun";
  if (!same_message(head, &r->head)) return "interrupts another message";
  return offset == r->have ? NULL : "leaves a gap in its message";
}

static void forget_message(gt_receiver *r) {
  gt_free(r->message);
  r->message = NULL;
}

/* The buffer is allocated for the first message of several frames: a peer that sends none needs no
   memory.  A rare message gets a buffer of its size, freed afterwards. */
static void begin_message(const gt_gateway *g, gt_receiver *r, const gt_frame_header *head) {
  const bool rare = gt_msg_is_rare(head->kind);
  if (rare) forget_message(r);
  if (!r->message) r->message = gt_alloc(rare ? (size_t)head->message_bytes : g->message_max, 1);
  r->head = *head;
  r->assembling = true;
  r->have = 0;
}

static void take_frame(gt_gateway *g, size_t peer, const gt_frame_header *head,
                       const uint8_t *payload, gt_ns now) {
  gt_receiver *r = &g->receivers[peer];
  if (!gt_msg_is_control(head->kind)) {
    const char *fault = sequel_fault(g, r, head);
    if (fault) refuse(g, peer, head, gt_header_bytes(head) + (size_t)head->frame_bytes, fault);
  }
  if (head->frame_bytes == head->message_bytes) {
    gt_link_object(&g->read, head->kind, gt_header_bytes(head) + (size_t)head->frame_bytes);
    g->events.on_message(g->events.ctx, peer, head, payload, now);
    return;
  }
  if (!r->assembling) begin_message(g, r, head);
  memcpy(r->message + r->have, payload, head->frame_bytes);
  r->have += head->frame_bytes;
  if (r->have < head->message_bytes) return;
  g->events.on_message(g->events.ctx, peer, &r->head, r->message, now);
  r->assembling = false;
  if (gt_msg_is_rare(r->head.kind)) forget_message(r);
}

/* ---- frames received that have not arrived yet ----------------------------------------------- */

static gt_held_frame *copy_of(gt_gateway *g, size_t peer, const uint8_t *frame, size_t bytes,
                              gt_ns arrive) {
  gt_held_frame *h = g->spare;
  if (h)
    g->spare = h->next;
  else {
    h = GT_NEW(gt_held_frame);
    h->frame = gt_alloc(g->wire_max, 1);
  }
  h->next = NULL;
  h->arrive = arrive;
  h->peer = peer;
  h->bytes = bytes;
  h->restarts = g->receivers[peer].restarts;
  memcpy(h->frame, frame, bytes);
  return h;
}

void gt_receive_hold(gt_gateway *g, size_t peer, const uint8_t *frame, size_t bytes, gt_ns arrive) {
  gt_held_queue *q = &g->receivers[peer].coming;
  gt_held_frame *h = copy_of(g, peer, frame, bytes, arrive);
  if (q->last && q->first)
    q->last->next = h;
  else
    q->first = h;
  q->last = h;
}

static gt_held_frame *take_first(gt_held_queue *q) {
  gt_held_frame *h = q->first;
  q->first = h->next;
  return h;
}

void gt_receive_hand_on(gt_gateway *g, size_t peer, const uint8_t *frame, gt_ns now) {
  gt_frame_header head = gt_receive_header(frame, GT_FRAME_HEADER_MAX);
  take_frame(g, peer, &head, frame + gt_header_bytes(&head), now);
}

static void put_back(gt_gateway *g, gt_held_frame *h) {
  h->next = g->spare;
  g->spare = h;
}

static void hand_on_held(gt_gateway *g, gt_held_frame *h, gt_ns now) {
  if (h->restarts == g->receivers[h->peer].restarts) gt_receive_hand_on(g, h->peer, h->frame, now);
  put_back(g, h);
}

static void put(gt_gateway *g, gt_held_frame *h, gt_ns now) {
  const gt_landing_frame frame = {.arrive = h->arrive,
                                  .from = h->peer,
                                  .bytes = h->bytes,
                                  .kind = gt_receive_header(h->frame, h->bytes).kind,
                                  .stream_bps = g->receivers[h->peer].stream_bps,
                                  .of.frame = h};
  if (gt_landing_put(&g->landing, &frame)) hand_on_held(g, h, now);
}

void gt_receive_put(gt_gateway *g, size_t peer, const uint8_t *frame, size_t bytes, gt_ns now) {
  put(g, copy_of(g, peer, frame, bytes, now), now);
}

void gt_receive_landed(gt_gateway *g, gt_ns now) {
  hand_on_held(g, gt_landing_take(&g->landing).of.frame, now);
}

void gt_receive_coming(gt_gateway *g, size_t peer, gt_ns now) {
  put(g, take_first(&g->receivers[peer].coming), now);
}

static void close_queue(gt_held_frame *h) {
  while (h) {
    gt_held_frame *next = h->next;
    gt_free(h->frame);
    gt_free(h);
    h = next;
  }
}

void gt_receive_close(gt_gateway *g) {
  gt_landing_release(&g->landing, 0);
  while (gt_landing_next(&g->landing) != GT_NEVER)
    put_back(g, gt_landing_take(&g->landing).of.frame);
  gt_landing_close(&g->landing);
  close_queue(g->spare);
  for (size_t peer = 0; peer < g->nregions; peer++) close_queue(g->receivers[peer].coming.first);
}

/* ---- from the transport ---------------------------------------------------------------------- */

bool gt_receive_frames(gt_gateway *g, size_t peer, gt_ns now) {
  bool moved = false;
  size_t bytes;
  for (const uint8_t *frame; (frame = g->ops->receive(g->transport, peer, &bytes)) != NULL;
       moved = true) {
    if (bytes > g->wire_max) /* the transport has not received it */
      gt_gateway_refuse(g, peer, "a frame has %zu bytes; the longest of this job has %zu", bytes,
                        g->wire_max);
    g->timing->arrive(g, peer, frame, bytes, now);
    g->ops->release(g->transport, peer);
  }
  return moved;
}
