/* Held messages: those that their collective could not take yet.  The messages of a region are
   taken in order, so all messages after a held one are also held.  A region with held messages
   waits in a queue: for room at the region whose outbox was full, or for any other event.  When an
   outbox has room again, its queue is served first come, first served.
   A message needs room at all neighbors of this region except its sender.  So if the first region
   in a queue now lacks room at another region, all regions in its queue move to the queue of that
   other region, except that region itself. */
#include "internal.h"

#include <string.h>

void gt_held_open(gt_exchange *x) {
  const size_t n = x->spec.nregions;
  x->held.of = GT_NEW_ARRAY(gt_held, n);
  x->held.places = GT_NEW_ARRAY(gt_held_place, 2 * n + 1);
  for (size_t i = 0; i < 2 * n + 1; i++) x->held.places[i] = (gt_held_place){i, i};
}

void gt_held_close(gt_exchange *x) {
  gt_held_all *all = &x->held;
  for (size_t r = 0; r < x->spec.nregions; r++) {
    for (size_t i = 0; i < all->of[r].n; i++) gt_free(all->of[r].messages[i].body.data);
    gt_free(all->of[r].messages);
  }
  while (all->nspare) gt_free(all->spare[--all->nspare].data);
  gt_free(all->spare);
  gt_free(all->places);
  gt_free(all->of);
}

/* ---- queues ---------------------------------------------------------------------------------- */

static size_t head_of(const gt_exchange *x, size_t line) {
  return x->spec.nregions + line;
}

static void put_before(gt_exchange *x, size_t at, size_t from) {
  gt_held_place *places = x->held.places;
  places[from] = (gt_held_place){.next = at, .before = places[at].before};
  places[places[at].before].next = from;
  places[at].before = from;
}

static void put_last(gt_exchange *x, size_t line, size_t from) {
  put_before(x, head_of(x, line), from);
}

static void put_first(gt_exchange *x, size_t line, size_t from) {
  put_before(x, x->held.places[head_of(x, line)].next, from);
}

static void leave(gt_exchange *x, size_t from) {
  gt_held_place *places = x->held.places, *place = &places[from];
  places[place->before].next = place->next;
  places[place->next].before = place->before;
  *place = (gt_held_place){from, from};
}

/* Moves all regions of queue `line` to the end of queue `to`. */
static void append(gt_exchange *x, size_t to, size_t line) {
  gt_held_place *places = x->held.places;
  const size_t head = head_of(x, line), end = head_of(x, to), first = places[head].next,
               last = places[head].before;
  if (first == head) return;
  places[head] = (gt_held_place){head, head};
  places[places[end].before].next = first;
  places[first].before = places[end].before;
  places[last].next = end;
  places[end].before = last;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Returns a body of at least `bytes` bytes, at least a piece, so that all pieces can reuse it. */
static gt_payload body_for(gt_exchange *x, size_t bytes) {
  gt_held_all *all = &x->held;
  const size_t piece = x->spec.piece * sizeof(float);
  gt_payload body = {.capacity = bytes > piece ? bytes : piece};
  if (!x->spec.with_memory) return (gt_payload){0};
  if (all->nspare && all->spare[all->nspare - 1].capacity >= bytes)
    return all->spare[--all->nspare];
  body.data = gt_alloc(body.capacity, 1);
  return body;
}

static void free_body(gt_exchange *x, const gt_held_message *m) {
  gt_held_all *all = &x->held;
  if (!m->body.data) return;
  GT_GROW(all->spare, all->nspare, all->spare_capacity, 4);
  all->spare[all->nspare++] = m->body;
}

static void hold(gt_exchange *x, gt_collective *c, size_t from, const gt_frame_header *head,
                 const void *body) {
  gt_held *h = &x->held.of[from];
  const size_t bytes = (size_t)head->message_bytes;
  GT_GROW(h->messages, h->n, h->capacity, 4);
  gt_held_message *m = &h->messages[h->n++];
  *m = (gt_held_message){.collective = c, .head = *head, .body = body_for(x, bytes)};
  if (m->body.data && bytes) memcpy(m->body.data, body, bytes);
  x->held.n++;
}

/* Gives the message to its collective.  False: it cannot be taken; x->full is the region whose
   outbox has no room, or nregions. */
static bool take(gt_collective *c, size_t from, const gt_frame_header *head, const void *bytes) {
  gt_exchange *x = c->x;
  const size_t n = (size_t)head->message_bytes;
  const gt_codec_turn turn = {.round = head->value, .sender = (uint32_t)from};
  const gt_vec body = head->codec ? gt_coder_decode(c->coder, &turn, bytes, n)
                                  : gt_vec_of((float *)(uintptr_t)bytes, n / sizeof(float));
  x->full = x->spec.nregions;
  x->taken = head;
  x->taken_body = bytes;
  if (c->broadcast) return x->topology->broadcast->receive(c->broadcast, from, head, body);
  return x->topology->allreduce->receive(c->allreduce, from, head, body);
}

bool gt_held_or_taken(gt_exchange *x, gt_collective *c, size_t from, const gt_frame_header *head,
                      const void *body) {
  const bool first = x->held.of[from].n == 0;
  if (first && take(c, from, head, body)) return true;
  if (first) put_last(x, x->full, from);
  hold(x, c, from, head, body);
  return false;
}

/* Takes the region's messages in order until one cannot be taken.  The region must not be in a
   queue.  False: the first message could not be taken. */
static bool take_all(gt_exchange *x, size_t from) {
  gt_held *h = &x->held.of[from];
  bool moved = false;
  while (h->n > 0) {
    gt_held_message *m = &h->messages[0];
    if (!take(m->collective, from, &m->head, m->body.data)) break;
    moved = true;
    free_body(x, m);
    memmove(m, m + 1, --h->n * sizeof *m);
    x->held.n--;
    gt_exchange_acknowledge(x, from);
  }
  return moved;
}

/* Takes messages of one region as take_all, and puts the region in the queue for room that is
   missing. */
static bool take_of(gt_exchange *x, size_t from) {
  leave(x, from);
  const bool moved = take_all(x, from);
  if (x->held.of[from].n > 0) put_last(x, x->full, from);
  return moved;
}

/* Retries the regions that wait for anything other than room. */
static bool retry_others(gt_exchange *x) {
  const gt_held_place *head = &x->held.places[head_of(x, x->spec.nregions)];
  const size_t last = head->before;
  bool moved = false;
  for (size_t from = x->spec.nregions;
       from != last && head->next != head_of(x, x->spec.nregions);) {
    from = head->next;
    moved |= take_of(x, from);
  }
  return moved;
}

bool gt_held_retry(gt_exchange *x, size_t region) {
  const size_t n = x->spec.nregions;
  const gt_held_place *head = &x->held.places[head_of(x, region)];
  bool moved = false;
  if (region == n) return retry_others(x);
  while (head->next != head_of(x, region)) {
    const size_t from = head->next;
    leave(x, from);
    moved |= take_all(x, from);
    const size_t full = x->full;
    if (x->held.of[from].n == 0) continue;
    if (full == region) {
      put_first(x, region, from);
      break;
    }
    put_last(x, full, from);
    if (full == n) continue;
    append(x, full, region);
    if (x->held.of[full].n > 0) moved |= take_of(x, full);
    break;
  }
  return moved;
}
