/* The frames between this region and a peer as objects, in both directions. */
#include "store.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

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
static void clear(gt_transport *t, size_t peer) {
  store_lane *l = &t->lanes[peer];
  gt_store_share_leave(t, peer);
  for (size_t i = 0; i < STORE_PUTS; i++) {
    const store_putting *p = &l->puts[i];
    if (p->busy && p->share) gt_store_share_drop(t, p->share);
  }
  l->queued = l->begun = l->acked = l->received = 0;
  memset(l->slot_sequence, 0, l->nslots * sizeof *l->slot_sequence);
}

/* The next frames have another channel: another start of the peer. */
static void new_channel(store_lane *l) {
  l->stale = l->getting;
  l->ready = l->refers = false;
  l->next = 1;
  l->deleted = l->kept = 0;
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
  *gt_store_entry(l, l->queued) = (store_entry){.frame = frame, .bytes = bytes};
  l->slot_sequence[slot] = l->queued;
}

void gt_store_lane_queue_past(gt_transport *t, size_t peer) {
  for (size_t i = 0; i < t->npast; i++)
    gt_store_lane_queue(t, peer, 0, t->past[i].frame, t->past[i].bytes);
}

/* Begins to write the next message, unless it refers to an object that is not in the store. */
static void put_next(gt_transport *t, size_t peer, store_putting *p) {
  store_lane *l = &t->lanes[peer];
  gt_object_request *r = &p->request;
  gt_store_share_find(t, peer, l->begun + 1);
  const store_entry *e = gt_store_entry(l, l->begun + 1);
  store_share *share = e->share;
  const store_role role = !share                 ? STORE_PLAIN
                          : share->owner == peer ? STORE_KEPT
                                                 : STORE_REFERENCE;
  if (role == STORE_REFERENCE && !share->written) return;
  p->sequence = ++l->begun;
  p->busy = true;
  p->share = role == STORE_KEPT ? share : NULL;
  r->op = GT_OBJECT_PUT;
  r->body = (void *)(uintptr_t)e->frame;
  r->bytes = e->bytes;
  r->notes[STORE_READ] = l->next - 1;
  r->notes[STORE_ROLE] = role;
  r->notes[STORE_WRITTEN] = (uint64_t)gt_store_wall();
  name_frame(t, r->name, true, peer, l->begun);
  if (role == STORE_KEPT) gt_store_share_begin(p);
  if (role == STORE_REFERENCE) {
    gt_store_share_refer(p, e);
    t->store->counts[0].bytes_shared += (int64_t)e->bytes;
  }
  gt_objects_begin(t->store->objects, r);
}

static void take_put(gt_transport *t, store_putting *p) {
  const bool refers = p->request.notes[STORE_ROLE] == STORE_REFERENCE;
  gt_store_counts *c =
      refers ? &t->store->counts[1] : counts_of(t, p->request.body, p->request.bytes);
  c->writes++;
  c->bytes_out += (int64_t)p->request.bytes;
  p->busy = false;
  if (p->share) p->share->written = true;
}

void gt_store_lane_pump_out(gt_transport *t, size_t peer) {
  store_lane *l = &t->lanes[peer];
  for (size_t i = 0; i < STORE_PUTS; i++) {
    store_putting *p = &l->puts[i];
    if (p->busy && gt_store_ended(&p->request)) {
      take_put(t, p);
      if (p->sequence) gt_store_entry(l, p->sequence)->done = true;
    }
    if (!p->busy && l->begun < l->queued && t->store->peers[peer].start && !l->forgotten)
      put_next(t, peer, p);
  }
  while (l->acked < l->begun && gt_store_entry(l, l->acked + 1)->done) l->acked++;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static bool is_kept(const store_lane *l, uint64_t number) {
  return l->kept >> number % STORE_UNREAD & 1;
}

static void set_kept(store_lane *l, uint64_t number, bool kept) {
  const uint64_t bit = UINT64_C(1) << number % STORE_UNREAD;
  l->kept = kept ? l->kept | bit : l->kept & ~bit;
}

static void delete_read(gt_transport *t, size_t peer) {
  store_lane *l = &t->lanes[peer];
  if (l->deleting && !gt_store_ended(&l->deletion)) return;
  if (l->deleting) t->store->counts[0].deletes++;
  while (l->deleted + 1 < l->next && is_kept(l, l->deleted + 1)) set_kept(l, ++l->deleted, false);
  l->deleting = l->deleted + 1 < l->next && t->store->peers[peer].start;
  if (!l->deleting) return;
  l->deletion.op = GT_OBJECT_DELETE;
  name_frame(t, l->deletion.name, false, peer, ++l->deleted);
  gt_objects_begin(t->store->objects, &l->deletion);
}

static void ask(gt_transport *t, size_t peer, gt_ns now) {
  store_lane *l = &t->lanes[peer];
  if (now < l->look || l->next - l->deleted > STORE_UNREAD / 2) return;
  l->get.op = GT_OBJECT_GET;
  l->get.body = l->frame;
  l->get.bytes = t->frame_bytes;
  if (!l->refers) name_frame(t, l->get.name, false, peer, l->next);
  l->getting = true;
  l->moved = 0;
  l->asked = now;
  gt_objects_begin(t->store->objects, &l->get);
}

static void count_read(gt_transport *t, const store_lane *l) {
  const bool other = l->get.notes[STORE_ROLE] == STORE_REFERENCE;
  gt_store_counts *c = other ? &t->store->counts[1] : counts_of(t, l->frame, l->get.bytes);
  c->reads++;
  c->bytes_in += (int64_t)l->get.bytes;
  if (l->get.notes[STORE_ROLE] != STORE_KEPT)
    c->byte_s += (double)l->get.bytes *
                 fmax(0, gt_seconds(gt_store_wall() - (gt_ns)l->get.notes[STORE_WRITTEN]));
}

/* Takes what has been read: a frame, or where its payload is.  True: the frame is whole. */
static bool take_object(gt_transport *t, size_t peer, gt_ns now) {
  store_lane *l = &t->lanes[peer];
  l->heard = now;
  if (l->refers) {
    gt_store_share_fill(l, t->store->base.names[peer]);
    return true;
  }
  gt_store_share_read(t, peer, l->get.notes[STORE_READ]);
  if (l->get.notes[STORE_ROLE] == STORE_REFERENCE) {
    gt_store_share_take(l, t->store->base.names[peer]);
    ask(t, peer, now);
    return false;
  }
  set_kept(l, l->next, l->get.notes[STORE_ROLE] == STORE_KEPT);
  return true;
}

/* Takes the answer: the next frame, or nothing yet. */
static void take_answer(gt_transport *t, size_t peer, gt_ns now) {
  store_lane *l = &t->lanes[peer];
  const bool missing = gt_objects_state(&l->get) == GT_OBJECT_MISSING;
  l->getting = false;
  if (missing)
    t->store->counts[!t->servers].failed_reads++;
  else
    count_read(t, l);
  if (l->stale || missing) {
    l->look = l->stale ? 0 : l->asked + (t->servers ? t->store->polls[peer] : t->store->poll);
    if (!l->stale) l->empty = l->asked;
    l->stale = false;
    return;
  }
  if (!take_object(t, peer, now)) return;
  if (l->next > l->received)
    l->ready = true;
  else
    l->next++; /* an earlier start of the peer sent it, too */
}

/* An object that arrives is no silence, however long it takes. */
static void hear(store_lane *l, gt_ns now) {
  const size_t moved = atomic_load(&l->get.moved);
  if (!l->getting || l->stale || moved == l->moved) return;
  l->moved = moved;
  l->heard = now;
}

void gt_store_lane_pump_in(gt_transport *t, size_t peer) {
  store_lane *l = &t->lanes[peer];
  const gt_ns now = gt_now();
  hear(l, now);
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
  if (t->keeps && !t->past && !t->store->base.late[peer]) {
    l->acked = l->begun = 0;
    for (uint64_t n = 1; n <= l->queued; n++) gt_store_entry(l, n)->done = false;
    return;
  }
  /* a gateway that has not been used begins with this start of the peer */
  l->restarted = !t->keeps && (l->queued > 0 || l->received > 0 || has_begun(t->store));
  clear(t, peer);
  gt_store_lane_queue_past(t, peer);
}

void gt_store_lane_forget(gt_transport *t, size_t peer) {
  store_lane *l = &t->lanes[peer];
  const store_endpoint *s = t->store;
  /* the run has begun without it, but it is there by now */
  const bool comes = s->base.late[peer] && s->peers[peer].start && !l->queued && !l->received;
  clear(t, peer);
  new_channel(l);
  l->forgotten = true;
  if (comes) gt_store_lane_anew(t, peer);
}
