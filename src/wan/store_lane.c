/* The frames between this region and a peer as objects, in both directions. */
#include "store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static _Noreturn void give_up(const gt_object_request *r) {
  gt_panic(GT_ERR_LOST, "the store cannot be used: %s: %s", r->name, r->fault);
}

bool gt_store_ended(const gt_object_request *r) {
  const gt_object_state state = gt_objects_state(r);
  if (state == GT_OBJECT_FAILED) give_up(r);
  return state != GT_OBJECT_BUSY;
}

/* ---- lanes: names and life ------------------------------------------------------------------- */

/* Writes the name of a frame on the way from one region to the other. */
static void name_frame(const gt_transport *t, char name[GT_OBJECT_NAME], bool out, size_t peer,
                       uint64_t sequence) {
  const store_endpoint *s = t->store;
  const size_t self = s->base.self, from = out ? self : peer, to = out ? peer : self;
  const uint64_t own = s->base.start, other = s->peers[peer].start;
  snprintf(name, GT_OBJECT_NAME, "%zu-%zu/%016" PRIx64 "-%016" PRIx64 "-%" PRIx64 "/%" PRIu64, from,
           to, out ? own : other, out ? other : own, t->id, sequence);
}

static store_entry *entry_at(const store_lane *l, uint64_t sequence) {
  return &l->queue[sequence % l->window];
}

void gt_store_lane_open(gt_transport *t, size_t peer, size_t window) {
  store_lane *l = &t->lanes[peer];
  l->window = l->nslots = window;
  l->queue = GT_NEW_ARRAY(store_entry, window);
  l->slot_sequence = GT_NEW_ARRAY(uint64_t, window);
  l->frame = gt_reserve(t->frame_bytes, 1);
  l->next = 1;
  l->heard = gt_now();
}

void gt_store_lane_close(store_lane *l) {
  gt_free(l->queue);
  gt_free(l->slot_sequence);
  gt_free(l->frame);
}

/* What was sent and received counts no longer.  Requests in progress end by themselves. */
static void clear(store_lane *l) {
  l->queued = l->begun = l->acked = l->received = 0;
  memset(l->slot_sequence, 0, l->nslots * sizeof *l->slot_sequence);
}

/* The next frames have another channel: another start of the peer. */
static void new_channel(store_lane *l) {
  l->stale = l->getting;
  l->ready = false;
  l->next = 1;
  l->deleted = 0;
  l->look = l->empty = 0;
  for (size_t i = 0; i < STORE_PUTS; i++) l->puts[i].sequence = 0;
}

/* Returns the counts to which a frame belongs. */
static gt_store_counts *counts_of(const gt_transport *t, const void *frame, size_t bytes) {
  const bool data = t->servers && gt_msg_is_data(gt_receive_header(frame, bytes).kind);
  return &t->store->counts[!data];
}

/* True if the run has begun: the group has what a region that returns gets. */
static bool has_begun(const store_endpoint *s) {
  const gt_transport *group = s->open[STORE_OF_PEERS];
  return group && group->past;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void make_room(store_lane *l) {
  const size_t window = 2 * l->window + 2;
  store_entry *queue = GT_NEW_ARRAY(store_entry, window);
  memcpy(queue, l->queue, l->window * sizeof *queue);
  gt_free(l->queue);
  l->queue = queue;
  l->window = window;
}

void gt_store_lane_queue(gt_transport *t, size_t peer, size_t slot, const void *frame,
                         size_t bytes) {
  store_lane *l = &t->lanes[peer];
  if (l->restarted || l->forgotten) return; /* the frame is for an earlier start */
  l->queued++;
  if (t->keeps && l->queued >= l->window) make_room(l);
  *entry_at(l, l->queued) = (store_entry){frame, bytes, false};
  l->slot_sequence[slot] = l->queued;
}

static void put_next(gt_transport *t, size_t peer, store_putting *p) {
  store_lane *l = &t->lanes[peer];
  const store_entry *e = entry_at(l, ++l->begun);
  p->sequence = l->begun;
  p->busy = true;
  p->request.op = GT_OBJECT_PUT;
  p->request.body = (void *)(uintptr_t)e->frame;
  p->request.bytes = e->bytes;
  name_frame(t, p->request.name, true, peer, l->begun);
  gt_objects_begin(t->store->objects, &p->request);
}

void gt_store_lane_pump_out(gt_transport *t, size_t peer) {
  store_lane *l = &t->lanes[peer];
  for (size_t i = 0; i < STORE_PUTS; i++) {
    store_putting *p = &l->puts[i];
    if (p->busy && gt_store_ended(&p->request)) {
      gt_store_counts *c = counts_of(t, p->request.body, p->request.bytes);
      c->writes++;
      c->bytes_out += (int64_t)p->request.bytes;
      p->busy = false;
      if (p->sequence) entry_at(l, p->sequence)->done = true;
    }
    if (!p->busy && l->begun < l->queued && t->store->peers[peer].start && !l->forgotten)
      put_next(t, peer, p);
  }
  while (l->acked < l->begun && entry_at(l, l->acked + 1)->done) l->acked++;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void delete_read(gt_transport *t, size_t peer) {
  store_lane *l = &t->lanes[peer];
  if (l->deleting && !gt_store_ended(&l->deletion)) return;
  if (l->deleting) t->store->counts[0].deletes++;
  l->deleting = l->deleted + 1 < l->next && t->store->peers[peer].start;
  if (!l->deleting) return;
  l->deletion.op = GT_OBJECT_DELETE;
  name_frame(t, l->deletion.name, false, peer, ++l->deleted);
  gt_objects_begin(t->store->objects, &l->deletion);
}

static void ask(gt_transport *t, size_t peer, gt_ns now) {
  store_lane *l = &t->lanes[peer];
  if (now < l->look) return;
  l->get.op = GT_OBJECT_GET;
  l->get.body = l->frame;
  l->get.bytes = t->frame_bytes;
  name_frame(t, l->get.name, false, peer, l->next);
  l->getting = true;
  l->asked = now;
  gt_objects_begin(t->store->objects, &l->get);
}

/* Takes the answer: the next frame, or nothing yet. */
static void take_answer(gt_transport *t, size_t peer, gt_ns now) {
  store_lane *l = &t->lanes[peer];
  l->getting = false;
  if (gt_objects_state(&l->get) == GT_OBJECT_MISSING) {
    t->store->counts[!t->servers].failed_reads++;
  } else {
    gt_store_counts *c = counts_of(t, l->frame, l->get.bytes);
    c->reads++;
    c->bytes_in += (int64_t)l->get.bytes;
  }
  if (l->stale || gt_objects_state(&l->get) == GT_OBJECT_MISSING) {
    l->look = l->stale ? 0 : l->asked + (t->servers ? t->store->polls[peer] : t->store->poll);
    if (!l->stale) l->empty = l->asked;
    l->stale = false;
    return;
  }
  l->heard = now;
  if (l->next > l->received)
    l->ready = true;
  else
    l->next++; /* an earlier start of the peer sent it, too */
}

void gt_store_lane_pump_in(gt_transport *t, size_t peer) {
  store_lane *l = &t->lanes[peer];
  const gt_ns now = gt_now();
  if (l->getting && gt_store_ended(&l->get)) take_answer(t, peer, now);
  delete_read(t, peer);
  if (!l->getting && !l->ready && t->store->peers[peer].start && !l->forgotten) ask(t, peer, now);
}

void gt_store_lane_release(gt_transport *t, size_t peer) {
  store_lane *l = &t->lanes[peer];
  l->ready = false;
  l->received = l->next++;
  if (l->get.bytes > 2 * GT_FRAME_PAYLOAD_MAX) gt_discard(l->frame, l->get.bytes);
}

void gt_store_lane_anew(gt_transport *t, size_t peer) {
  store_lane *l = &t->lanes[peer];
  l->forgotten = false;
  new_channel(l);
  if (t->keeps && !t->past) {
    l->acked = l->begun = 0;
    for (uint64_t n = 1; n <= l->queued; n++) entry_at(l, n)->done = false;
    return;
  }
  /* a gateway that has not been used begins with this start of the peer */
  l->restarted = !t->keeps && (l->queued > 0 || l->received > 0 || has_begun(t->store));
  clear(l);
  for (size_t i = 0; i < t->npast; i++)
    gt_store_lane_queue(t, peer, 0, t->past[i].frame, t->past[i].bytes);
}

void gt_store_lane_forget(gt_transport *t, size_t peer) {
  store_lane *l = &t->lanes[peer];
  clear(l);
  new_channel(l);
  l->forgotten = true;
}
