/* Departures to a peer: the choice between its queues, its slots, and its link. */
#include "internal.h"

/* reserved beyond the window, so that held data never delays control */
#define CONTROL_SLOTS GT_LINK_CONTROL_FRAMES

static bool control_can_leave(const gt_sender *s) {
  return s->control.n > 0 && s->filled - s->freed < s->window;
}

bool gt_sender_has_room(const gt_sender *s) {
  return s->filled - s->freed + CONTROL_SLOTS < s->window;
}

static bool bulk_can_leave(const gt_sender *s) {
  return s->bulk.n > 0 && gt_sender_has_room(s);
}

gt_out_queue *gt_sender_next_queue(gt_sender *s, bool modelled, gt_ns now) {
  if (modelled && s->wire.link.busy_until > now) return NULL;
  bool data_can_leave = bulk_can_leave(s);
  if (!control_can_leave(s)) return data_can_leave ? &s->bulk : NULL;
  if (!data_can_leave || !modelled) return &s->control;
  return gt_wire_control_first(&s->wire, gt_queue_at(&s->control, 0)->queued,
                               gt_queue_at(&s->bulk, 0)->queued)
             ? &s->control
             : &s->bulk;
}

/* The frame counts as ready since it was queued, however late the poll, so late polls do not lower
   the link's throughput. */
void gt_sender_step(gt_gateway *g, size_t peer, gt_slot *slot, gt_ns queued) {
  gt_sender *s = &g->senders[peer];
  const gt_frame_header head = gt_receive_header(slot->frame, slot->bytes);
  const struct gt_link_written what = {.queued = queued,
                                       .value = head.value,
                                       .bytes = slot->bytes,
                                       .kind = head.kind,
                                       .range = head.range};
  const gt_link_times times = gt_function_write(&g->function, &s->wire, &s->spec, &g->up, &what);
  slot->depart = times.depart;
  slot->arrive = times.arrive;
}

static gt_ns sooner(gt_ns a, gt_ns b) {
  return a < b ? a : b;
}

gt_ns gt_sender_due(const gt_sender *s, bool modelled) {
  gt_ns due = GT_NEVER;
  if (control_can_leave(s) || bulk_can_leave(s)) due = modelled ? s->wire.link.busy_until : 0;
  if (!modelled) return due;
  if (s->told < s->filled) due = sooner(due, s->slots[s->told % s->window].depart);
  if (s->launched < s->filled) due = sooner(due, s->slots[s->launched % s->window].arrive);
  return due;
}
