/* Receiving: every header is checked, frames become messages. */
#include "inside.h"

#include <string.h>

static const char *header_fault(const gt_gateway *g, size_t peer, const gt_frame_header *head, size_t bytes) {
  if (bytes < GT_FRAME_HEADER_BYTES) return "is shorter than a header";
  if (head->magic != GT_FRAME_MAGIC) return "does not begin with GTF1";
  if (head->from != peer) return "names another sender";
  if (bytes != GT_FRAME_HEADER_BYTES + (size_t)head->frame_bytes) return "has another size than its header says";
  if (head->message_bytes > g->message_max) return "belongs to a message that is larger than any of this job";
  if (head->frame_offset > head->message_bytes || head->frame_bytes > head->message_bytes - head->frame_offset) return "reaches beyond its message";
  if (head->frame_bytes == 0 && head->message_bytes != 0) return "is an empty part of a message that is not";
  if (gt_msg_is_control(head->kind)) return head->frame_bytes == head->message_bytes ? NULL : "is a control message in parts";
  if (!gt_msg_is_data(head->kind) && !gt_msg_is_bulk(head->kind)) return "is of no known kind";
  return NULL;
}

static _Noreturn void refuse(size_t peer, const gt_frame_header *head, size_t bytes, const char *fault) {
  gt_panic(GT_ERR_FAULT, "a frame of %zu bytes from region %zu %s (kind %u, from %u, sequence %llu, %u of %llu bytes at %llu)", bytes, peer, fault,
           head->kind, head->from, (unsigned long long)head->sequence, head->frame_bytes, (unsigned long long)head->message_bytes,
           (unsigned long long)head->frame_offset);
}

/* Frames of a data or bulk message come in order; only control frames come between them. */
static const char *sequel_fault(const gt_receiver *r, const gt_frame_header *head) {
  if (!r->assembling) return head->frame_offset == 0 ? NULL : "continues a message that has not begun";
  if (head->kind != r->head.kind || head->sequence != r->head.sequence || head->message_bytes != r->head.message_bytes)
    return "interrupts another message";
  return head->frame_offset == r->have ? NULL : "leaves a gap in its message";
}

static void take_frame(gt_gateway *g, size_t peer, const gt_frame_header *head, const uint8_t *payload, gt_ns now) {
  gt_receiver *r = &g->receivers[peer];
  if (!gt_msg_is_control(head->kind)) {
    const char *fault = sequel_fault(r, head);
    if (fault) refuse(peer, head, GT_FRAME_HEADER_BYTES + (size_t)head->frame_bytes, fault);
  }
  if (head->frame_bytes == head->message_bytes) {
    g->events.on_message(g->events.ctx, peer, head, payload, now);
    return;
  }
  if (!r->assembling) {
    r->head = *head;
    r->assembling = true;
    r->have = 0;
  }
  memcpy(r->message + r->have, payload, head->frame_bytes);
  r->have += head->frame_bytes;
  if (r->have < head->message_bytes) return;
  r->assembling = false;
  g->events.on_message(g->events.ctx, peer, &r->head, r->message, now);
}

bool gt_receive_frames(gt_gateway *g, size_t peer, gt_ns now) {
  bool moved = false;
  size_t bytes;
  for (const uint8_t *frame; (frame = g->ops->receive(g->transport, peer, &bytes)) != NULL; moved = true) {
    gt_frame_header head = {0};
    memcpy(&head, frame, bytes < sizeof head ? bytes : sizeof head);
    const char *fault = header_fault(g, peer, &head, bytes);
    if (fault) refuse(peer, &head, bytes, fault);
    g->receivers[peer].heard = now;
    take_frame(g, peer, &head, frame + GT_FRAME_HEADER_BYTES, now);
    g->ops->release(g->transport, peer);
  }
  return moved;
}
