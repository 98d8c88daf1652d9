/* Messages of one payload to several regions: the first becomes an object that stays until all have
   read it, and another payload follows; the others become references to it (docs/store.md).  So a
   model passes this region's upload once. */
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

/* True if it is data, large, one frame, and not for the only other region. */
static bool can_be_shared(const gt_transport *t, const store_entry *e) {
  const gt_frame_header head = gt_receive_header(e->frame, e->bytes);
  return t->servers && t->store->base.nregions > 2 && e->bytes >= GT_LINK_SHARED_MIN &&
         gt_msg_is_data(head.kind) && head.frame_bytes == head.message_bytes;
}

/* Returns a hash of the payload: four products side by side, so that none waits for another. */
static uint64_t hash_of(const store_entry *e) {
  enum { LANES = 4, STEP = LANES * sizeof(uint64_t) };
  uint64_t word, lanes[LANES] = {1, 2, 3, 4}, sum = e->bytes;
  size_t at = header_of(e);
  for (; at + STEP <= e->bytes; at += STEP)
    for (size_t k = 0; k < LANES; k++) {
      memcpy(&word, e->frame + at + k * sizeof word, sizeof word);
      lanes[k] = (lanes[k] ^ word) * UINT64_C(0x9e3779b97f4a7c15);
      lanes[k] ^= lanes[k] >> 29;
    }
  for (; at < e->bytes; at++) sum = (sum ^ e->frame[at]) * UINT64_C(0x100000001b3);
  for (size_t k = 0; k < LANES; k++) sum = (sum ^ lanes[k]) * UINT64_C(0xbf58476d1ce4e5b9);
  return sum;
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

static bool has_payload(const store_share *s, size_t header, size_t payload, uint64_t hash) {
  return s && s->header == header && s->payload == payload && s->hash == hash;
}

void gt_store_share_find(gt_transport *t, size_t peer, uint64_t sequence) {
  store_entry *e = gt_store_entry(&t->lanes[peer], sequence);
  store_share *s = t->latest;
  if (e->share || !can_be_shared(t, e)) return;
  const uint64_t hash = hash_of(e);
  const size_t header = header_of(e), payload = e->bytes - header;
  if (!has_payload(s, header, payload, hash) || s->owner == peer || s->waits[peer] > 0) {
    s = t->latest = unused(t);
    s->used = true;
    s->written = false;
    s->owner = peer;
    s->header = header;
    s->payload = payload;
    s->hash = hash;
  }
  s->waits[peer] = sequence;
  e->share = s;
}

void gt_store_share_begin(store_putting *p) {
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

void gt_store_share_leave(gt_transport *t, size_t peer) {
  for (size_t i = 0; i < t->nshares; i++) t->shares[i]->waits[peer] = 0;
}

void gt_store_share_drop(gt_transport *t, store_share *s) {
  for (size_t peer = 0; peer < t->store->base.nregions; peer++) {
    store_lane *l = &t->lanes[peer];
    s->waits[peer] = 0;
    for (uint64_t n = l->begun + 1; n <= l->queued; n++)
      if (gt_store_entry(l, n)->share == s) gt_store_entry(l, n)->share = NULL;
  }
  if (t->latest == s) t->latest = NULL;
}

/* The latest payload stays for a message to another region that has not been sent yet. */
static bool is_read(const gt_transport *t, const store_share *s) {
  for (size_t peer = 0; peer < t->store->base.nregions; peer++)
    if (s->waits[peer] > 0) return false;
  return s->written && s != t->latest;
}

bool gt_store_shares_progress(gt_transport *t) {
  bool none = true;
  for (size_t i = 0; i < t->nshares; i++) {
    store_share *s = t->shares[i];
    if (s->used && s->deleting && gt_store_ended(&s->deletion)) {
      s->used = s->deleting = false;
      t->store->counts[0].deletes++;
      t->store->counts[0].byte_s += (double)s->payload * gt_seconds(gt_store_wall() - s->at);
    }
    if (s->used && !s->deleting && is_read(t, s)) {
      s->deletion.op = GT_OBJECT_DELETE;
      s->deleting = true;
      gt_objects_begin(t->store->objects, &s->deletion);
    }
    none &= !s->used || (s->written && !s->deleting);
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
