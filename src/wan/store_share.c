/* Messages of one payload to several regions: the first becomes an object that stays until all have
   read it, the others references to it (docs/store.md).  So a model passes this region's upload
   once. */
#include "store.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static _Noreturn void give_up(const gt_object_request *r) {
  gt_panic(GT_ERR_LOST, "the store cannot be used: %s: %s", r->name, r->fault);
}

bool gt_store_ended(const gt_object_request *r) {
  const gt_object_state state = gt_objects_state(r);
  if (state == GT_OBJECT_FAILED) give_up(r);
  return state != GT_OBJECT_BUSY;
}

gt_ns gt_store_wall(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * GT_SECOND + now.tv_nsec;
}

static size_t header_of(const store_entry *e) {
  const gt_frame_header head = gt_receive_header(e->frame, e->bytes);
  return gt_header_bytes(&head);
}

/* True if it is data, large, and one frame. */
static bool can_be_shared(const store_entry *e) {
  const gt_frame_header head = gt_receive_header(e->frame, e->bytes);
  return e->bytes >= GT_LINK_SHARED_MIN && !e->share && gt_msg_is_data(head.kind) &&
         head.frame_bytes == head.message_bytes;
}

static bool same_payload(const store_entry *a, const store_entry *b) {
  const size_t header = header_of(a);
  return a->bytes == b->bytes && header == header_of(b) &&
         memcmp(a->frame + header, b->frame + header, a->bytes - header) == 0;
}

/* Returns the number of an entry that has not begun and has this payload; 0: none. */
static uint64_t same_in(const store_lane *l, const store_entry *e) {
  for (uint64_t n = l->begun + 1; n <= l->queued && !l->forgotten; n++) {
    const store_entry *other = gt_store_entry(l, n);
    if (can_be_shared(other) && same_payload(e, other)) return n;
  }
  return 0;
}

static store_share *unused(gt_transport *t) {
  size_t i = 0;
  while (i < t->nshares && t->shares[i]->used) i++;
  if (i == t->nshares) {
    GT_GROW(t->shares, t->nshares, t->capacity, 4);
    store_share *s = t->shares[t->nshares++] = GT_NEW(store_share);
    s->waits = GT_NEW_ARRAY(uint64_t, t->store->base.nregions);
  }
  return t->shares[i];
}

static void join(gt_transport *t, store_share *s, size_t peer, uint64_t sequence) {
  gt_store_entry(&t->lanes[peer], sequence)->share = s;
  s->waits[peer] = sequence;
}

void gt_store_share_find(gt_transport *t, size_t peer, uint64_t sequence) {
  const store_entry *e = gt_store_entry(&t->lanes[peer], sequence);
  if (!t->servers || !can_be_shared(e)) return;
  for (size_t other = 0; other < t->store->base.nregions; other++) {
    const uint64_t n =
        other == t->store->base.self || other == peer || !t->store->peers[other].start
            ? 0
            : same_in(&t->lanes[other], e);
    if (n == 0) continue;
    if (!e->share) {
      store_share *s = unused(t);
      s->used = true;
      s->begun = s->written = false;
      s->owner = peer;
      s->bytes = e->bytes;
      join(t, s, peer, sequence);
    }
    join(t, e->share, other, n);
  }
}

void gt_store_share_begin(store_putting *p) {
  p->share->begun = true;
  p->share->at = (gt_ns)p->request.notes[STORE_WRITTEN];
  memcpy(p->share->deletion.name, p->request.name, GT_OBJECT_NAME);
}

void gt_store_share_refer(store_putting *p, const store_entry *e) {
  const size_t header = header_of(e);
  memcpy(p->reference, e->frame, header);
  memcpy(p->reference + header, e->share->deletion.name, GT_OBJECT_NAME);
  p->request.body = p->reference;
  p->request.bytes = header + GT_OBJECT_NAME;
}

static bool is_name(const char *name) {
  const size_t n = strspn(name, "0123456789abcdef/-");
  return n > 0 && n < GT_OBJECT_NAME && name[n] == '\0' && name[0] != '/';
}

static _Noreturn void refuse(const char *region, const char *fault) {
  gt_panic(GT_ERR_LOST, "a message of region %s was refused: its object in the store %s", region,
           fault);
}

void gt_store_share_take(store_lane *l, const char *region) {
  const gt_frame_header head = gt_receive_header(l->frame, l->get.bytes);
  const size_t header = gt_header_bytes(&head);
  if (l->get.bytes != header + GT_OBJECT_NAME || !is_name((const char *)l->frame + header))
    refuse(region, "refers to no other object");
  memcpy(l->header, l->frame, header);
  memcpy(l->get.name, l->frame + header, GT_OBJECT_NAME);
  l->refers = true;
}

void gt_store_share_fill(store_lane *l, const char *region) {
  const gt_frame_header head = gt_receive_header(l->header, sizeof l->header),
                        found = gt_receive_header(l->frame, l->get.bytes);
  const size_t header = gt_header_bytes(&head);
  if (header != gt_header_bytes(&found) || l->get.bytes != header + head.message_bytes)
    refuse(region, "refers to one of another size");
  memcpy(l->frame, l->header, header);
  l->refers = false;
}

void gt_store_share_read(gt_transport *t, size_t peer, uint64_t number) {
  for (size_t i = 0; i < t->nshares; i++)
    if (t->shares[i]->used && t->shares[i]->waits[peer] <= number) t->shares[i]->waits[peer] = 0;
}

/* Its messages are objects of their own again. */
static void dissolve(gt_transport *t, store_share *s) {
  for (size_t peer = 0; peer < t->store->base.nregions; peer++) {
    if (s->waits[peer] > 0) gt_store_entry(&t->lanes[peer], s->waits[peer])->share = NULL;
    s->waits[peer] = 0;
  }
  s->used = false;
}

void gt_store_share_leave(gt_transport *t, size_t peer) {
  for (size_t i = 0; i < t->nshares; i++) {
    store_share *s = t->shares[i];
    if (!s->used) continue;
    if (s->owner == peer && !s->begun)
      dissolve(t, s);
    else
      s->waits[peer] = 0;
  }
}

static bool is_read(const gt_transport *t, const store_share *s) {
  for (size_t peer = 0; peer < t->store->base.nregions; peer++)
    if (s->waits[peer] > 0) return false;
  return s->written;
}

bool gt_store_shares_progress(gt_transport *t) {
  bool none = true;
  for (size_t i = 0; i < t->nshares; i++) {
    store_share *s = t->shares[i];
    if (s->used && s->deleting && gt_store_ended(&s->deletion)) {
      s->used = s->deleting = false;
      t->store->counts[0].deletes++;
      t->store->counts[0].byte_s += (double)s->bytes * gt_seconds(gt_store_wall() - s->at);
    }
    if (s->used && !s->deleting && is_read(t, s)) {
      s->deletion.op = GT_OBJECT_DELETE;
      s->deleting = true;
      gt_objects_begin(t->store->objects, &s->deletion);
    }
    none &= !s->used;
  }
  return none;
}

void gt_store_shares_close(gt_transport *t) {
  for (size_t i = 0; i < t->nshares; i++) {
    gt_free(t->shares[i]->waits);
    gt_free(t->shares[i]);
  }
  gt_free(t->shares);
}
