/* An exchange: the list of topologies, its open collectives, the delivery of events to them, and
   the messages that wait until their collective can take them. */
#include <math.h>
#include <string.h>

#include "internal.h"

#define DECLARE(constant, name, table, facts) extern const gt_topology_ops table;
#define TABLE(constant, name, table, facts)   [constant] = &table,
GT_TOPOLOGIES(DECLARE)
GT_TOPOLOGY_OF_CENTRAL(DECLARE)
static const gt_topology_ops *const tables[] = {GT_TOPOLOGIES(TABLE) GT_TOPOLOGY_OF_CENTRAL(TABLE)};

const gt_topology_ops *gt_topology_of(gt_topology topology) {
  return tables[topology];
}

bool gt_topology_per_worker(gt_topology topology) {
  return gt_topology_of(topology)->allreduce->part != NULL;
}

bool gt_topology_broadcasts(gt_topology topology) {
  return gt_topology_of(topology)->broadcast != NULL;
}

/* ---- held messages --------------------------------------------------------------------------- */

/* Held messages: those that their collective could not take yet.  The messages of a region are
   taken in order, so all messages after a held one are also held.  A region with held messages
   waits in a queue: for room at the region whose outbox was full, or for any other event.  When an
   outbox has room again, its queue is served first come, first served.
   A message needs room at all neighbors of this region except its sender.  So if the first region
   in a queue now lacks room at another region, all regions in its queue move to the queue of that
   other region, except that region itself. */

static void held_open(gt_exchange *x) {
  const size_t n = x->spec.nregions;
  x->held.of = GT_NEW_ARRAY(gt_held, n);
  x->held.places = GT_NEW_ARRAY(gt_held_place, 2 * n + 1);
  for (size_t i = 0; i < 2 * n + 1; i++) x->held.places[i] = (gt_held_place){i, i};
}

static void held_close(gt_exchange *x) {
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

/* ---- held messages: queues ------------------------------------------------------------------- */

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

/* ---- held messages: taking them -------------------------------------------------------------- */

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

/* True if the message is a contribution, a sum or a mean of regions that all abstain. */
static bool is_empty(const gt_collective *c, const gt_frame_header *head) {
  const bool routed = (head->flags & GT_FRAME_ROUTED) != 0;
  return c->spec.abstains && (routed ? head->route.count : head->message_bytes) == 0;
}

/* Returns the turn of an encoded message. */
static gt_codec_turn turn_of(const gt_frame_header *head) {
  gt_codec_turn turn = {.round = head->value, .sender = head->from};
  if (head->flags & GT_FRAME_ROUTED) {
    turn.first = (size_t)head->route.offset;
    turn.count = (size_t)head->route.count;
  }
  return turn;
}

/* Gives the message to its collective.  False: it cannot be taken; x->full is the region whose
   outbox has no room, or nregions. */
static bool take(gt_collective *c, size_t from, const gt_frame_header *head, const void *bytes) {
  gt_exchange *x = c->x;
  const size_t n = (size_t)head->message_bytes;
  const gt_codec_turn turn = turn_of(head);
  const gt_vec body = head->codec && !is_empty(c, head)
                          ? gt_coder_decode(c->coder, &turn, bytes, n)
                          : gt_vec_of((float *)(uintptr_t)bytes, n / sizeof(float));
  x->full = x->spec.nregions;
  x->taken = head;
  x->taken_body = bytes;
  if (c->broadcast) return x->topology->broadcast->receive(c->broadcast, from, head, body);
  return x->topology->allreduce->receive(c->allreduce, from, head, body);
}

/* Gives the message to its collective.  False: a copy of the message is held, after the region's
   other held messages. */
static bool held_or_taken(gt_exchange *x, gt_collective *c, size_t from,
                          const gt_frame_header *head, const void *body) {
  const bool first = x->held.of[from].n == 0;
  if (first && !x->paused && take(c, from, head, body)) return true;
  if (first) put_last(x, x->paused ? x->spec.nregions : x->full, from);
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

/* Gives the held messages that wait for room at `region` (nregions: for any other event) to their
   collectives.  False: none could be taken. */
static bool held_retry(gt_exchange *x, size_t region) {
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

/* ---- life ------------------------------------------------------------------------------------ */

/* Allocates the arrays over regions. */
static void arrays_open(gt_exchange *x) {
  const size_t n = x->spec.nregions;
  x->others = GT_NEW_ARRAY(size_t, n);
  x->done = GT_NEW_ARRAY(bool, n);
  x->late = GT_NEW_ARRAY(bool, n);
  x->wants = GT_NEW_ARRAY(gt_outbox_want, n);
  x->wanted = GT_NEW_ARRAY(size_t, n);
  held_open(x);
  for (size_t r = 0, i = 0; r < n; r++)
    if (r != x->spec.self) x->others[i++] = r;
}

static void arrays_close(gt_exchange *x) {
  held_close(x);
  gt_free(x->wanted);
  gt_free(x->wants);
  gt_free(x->late);
  gt_free(x->done);
  gt_free(x->others);
}

gt_exchange *gt_exchange_create(const gt_exchange_spec *spec) {
  const size_t n = spec->nregions;
  if (spec->self >= n || spec->inflight < 1)
    gt_bug("an exchange of region %zu of %zu, %zu in flight", spec->self, n, spec->inflight);
  gt_exchange *x = GT_NEW(gt_exchange);
  x->spec = *spec;
  x->topology = gt_topology_of(spec->topology);
  arrays_open(x);
  if (x->topology->open) x->topology->open(x);
  return x;
}

void gt_exchange_close(gt_exchange *x) {
  if (!x) return;
  if (x->topology->close) x->topology->close(x);
  arrays_close(x);
  gt_free(x);
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool has_kind(const gt_collective *c, unsigned kind) {
  const bool answers = c->allreduce && c->x->topology->allreduce->answer && c->spec.answer;
  return kind == (unsigned)c->spec.kind || (answers && kind == (unsigned)c->spec.answer);
}

static gt_collective *collective_of(const gt_exchange *x, const gt_frame_header *head) {
  gt_collective *c = x->first;
  while (c && c->id != head->range) c = c->next;
  return c && has_kind(c, head->kind) ? c : NULL;
}

bool gt_exchange_takes(const gt_exchange *x, unsigned kind) {
  for (const gt_collective *c = x->first; c; c = c->next)
    if (has_kind(c, kind)) return true;
  return false;
}

bool gt_exchange_decodes(const gt_exchange *x, const gt_frame_header *head) {
  const gt_collective *c = collective_of(x, head);
  return head->codec == 0 || (c && c->coder && head->codec == gt_coder_kind(c->coder));
}

size_t gt_exchange_bytes(const gt_exchange *x, const gt_frame_header *head) {
  const gt_collective *c = collective_of(x, head);
  if (c && is_empty(c, head)) return 0;
  if (c && c->coder && head->codec) {
    return head->message_bytes < c->coded_bytes ? (size_t)head->message_bytes : c->coded_bytes;
  }
  if (!c || !(head->flags & GT_FRAME_ROUTED)) return c ? c->n * sizeof(float) : 0;
  return head->route.offset <= c->n && head->route.count <= c->n - head->route.offset
             ? (size_t)head->route.count * sizeof(float)
             : 0;
}

gt_exchange_need gt_exchange_need_of(const gt_exchange_spec *spec, gt_cast cast, size_t n) {
  const gt_topology_ops *topology = gt_topology_of(spec->topology);
  return topology->need ? topology->need(spec, cast, n) : (gt_exchange_need){0};
}

size_t gt_exchange_unit(const gt_exchange *x) {
  size_t most = 1;
  for (const gt_collective *c = x->first; c && x->topology->unit; c = c->next) {
    const size_t unit = x->topology->unit(c);
    if (unit > most) most = unit;
  }
  return most;
}

size_t gt_exchange_body_max(const gt_exchange *x) {
  size_t most = 0;
  for (const gt_collective *c = x->first; c; c = c->next) {
    const size_t bytes = gt_exchange_body_bytes(c, c->n);
    if (bytes > most) most = bytes;
  }
  return most;
}

gt_status gt_exchange_check(const gt_exchange *x, size_t from, const gt_frame_header *head) {
  const gt_collective *c = collective_of(x, head);
  const gt_topology_ops *topology = x->topology;
  const bool routed = (head->flags & GT_FRAME_ROUTED) != 0;
  if (routed != topology->routed)
    return GT_FAIL(GT_ERR_FAULT, "data has %s route; expected over a %s %s", routed ? "a" : "no",
                   topology->name, topology->routed ? "one" : "none");
  /* with a quorum a contribution can be late, which the topology checks */
  if (c->allreduce && c->spec.quorum <= 0)
    GT_TRY(gt_exchange_check_after(head, c->allreduce->applied));
  if (c->allreduce && topology->allreduce->check)
    return topology->allreduce->check(c->allreduce, from, head);
  if (c->broadcast && topology->broadcast->check)
    return topology->broadcast->check(c->broadcast, from, head);
  return GT_OK;
}

gt_status gt_exchange_check_body(const gt_exchange *x, const gt_frame_header *head,
                                 const void *body) {
  const gt_collective *c = collective_of(x, head);
  const gt_codec_turn turn = turn_of(head);
  if (!body || head->codec == 0) return GT_OK;
  return gt_coder_check(c->coder, &turn, body, (size_t)head->message_bytes);
}

static void changed(gt_exchange *x, size_t region) {
  for (gt_collective *c = x->first; c; c = c->next) {
    if (c->broadcast && x->topology->broadcast->progress)
      x->topology->broadcast->progress(c->broadcast, region);
    c->spec.changed(c->spec.ctx);
  }
}

/* Makes all possible progress after the outbox to `region` has room (nregions: after any other
   event).  Repeats until nothing changes. */
static void retry(gt_exchange *x, size_t region) {
  const size_t n = x->spec.nregions;
  bool moved = !x->paused;
  while (moved) {
    changed(x, region);
    moved = region < n && held_retry(x, region);
    moved |= held_retry(x, n);
  }
}

/* True if the message is finite.  Pieces of a broadcast are checked after they have been joined. */
static bool is_finite(const gt_collective *c, const gt_frame_header *head, const void *body) {
  const size_t bytes = (size_t)head->message_bytes;
  if (is_empty(c, head)) return true;
  if (c->broadcast && c->x->topology->routed) return true;
  if (head->codec) {
    const gt_codec_turn turn = turn_of(head);
    return gt_coder_finite(c->coder, &turn, body, bytes);
  }
  return gt_vec_finite(gt_vec_of((float *)(uintptr_t)body, bytes / sizeof(float)));
}

gt_receipt gt_exchange_receive(gt_exchange *x, size_t from, const gt_frame_header *head,
                               const void *body) {
  gt_collective *c = collective_of(x, head);
  if (!is_finite(c, head, body)) return GT_RECEIPT_NONFINITE;
  if (!held_or_taken(x, c, from, head, body)) return GT_RECEIPT_HELD;
  if (c->allreduce) retry(x, x->spec.nregions);
  return GT_RECEIPT_TAKEN;
}

/* ---- other events ---------------------------------------------------------------------------- */

void gt_exchange_start(gt_exchange *x) {
  retry(x, x->spec.nregions);
}

void gt_exchange_room(gt_exchange *x, size_t region) {
  retry(x, region);
}

static void joined(gt_allreduce *r, int64_t rounds) {
  if (r->unheard) r->unheard--;
  if (rounds > r->floor) r->floor = rounds;
  r->base.x->topology->allreduce->again(r);
}

void gt_exchange_peer(gt_exchange *x, size_t region, gt_peer_event event, const int64_t *counts) {
  x->done[region] = event == GT_PEER_DONE || event == GT_PEER_LEFT;
  x->late[region] = event == GT_PEER_REJOINED;
  for (gt_collective *c = x->first; c; c = c->next) {
    if (event == GT_PEER_DONE) c->count[region] = counts[c->id];
    if (c->allreduce && !x->done[region]) joined(c->allreduce, counts[c->id]);
  }
  retry(x, x->spec.nregions);
}

int64_t gt_exchange_rounds(const gt_exchange *x, size_t range) {
  const gt_collective *c = x->first;
  while (c && c->id != range) c = c->next;
  const gt_allreduce *r = c ? c->allreduce : NULL;
  if (!r) return 0;
  const int64_t begun = x->topology->allreduce->begun ? x->topology->allreduce->begun(r) : 0;
  return begun > r->applied ? begun : r->applied;
}

static bool broadcasts(const gt_broadcast *b, bool (*holds)(const gt_broadcast *b)) {
  return !holds || holds(b);
}

/* ---- change of members ----------------------------------------------------------------------- */

static gt_collective *range_of(const gt_exchange *x, size_t range) {
  gt_collective *c = x->first;
  while (c && c->id != range) c = c->next;
  return c;
}

/* Returns the all-reduce of the range: for the first step of a codec, that of the last one. */
static const gt_allreduce *whole_of(const gt_exchange *x, size_t range) {
  const gt_collective *at = range_of(x, range);
  for (const gt_collective *c = x->first; c && at; c = c->next)
    if (c->allreduce && c->allreduce->first && &c->allreduce->first->base == at)
      return c->allreduce;
  return at ? at->allreduce : NULL;
}

static bool is_whole(const gt_exchange *x, const gt_collective *c) {
  return c->allreduce && whole_of(x, c->id) == c->allreduce;
}

bool gt_exchange_has_state(const gt_exchange *x, size_t range) {
  const gt_collective *c = range_of(x, range);
  return c && (c->broadcast || is_whole(x, c));
}

gt_exchange_progress gt_exchange_progress_of(const gt_exchange *x, size_t range) {
  const gt_allreduce *r = whole_of(x, range);
  if (!r) return (gt_exchange_progress){0};
  return (gt_exchange_progress){.applied = r->applied, .own = r->own + (r->staged != 0)};
}

bool gt_exchange_continues(const gt_exchange *x) {
  for (const gt_collective *c = x->first; c; c = c->next)
    if (c->allreduce || x->topology->broadcast->close) return false;
  return true;
}

bool gt_exchange_is_late(const gt_exchange *x) {
  for (const gt_collective *c = x->first; c; c = c->next)
    if (c->allreduce && c->allreduce->rejoins) return true;
  return false;
}

void gt_exchange_pause(gt_exchange *x, bool paused) {
  x->paused = paused;
}

void gt_exchange_regroup(gt_exchange *x, const gt_exchange_group *group) {
  const gt_topology_ops *topology = x->topology;
  for (gt_collective *c = x->first; c; c = c->next) gt_collective_interrupt(c);
  if (topology->close) topology->close(x);
  arrays_close(x);
  memset(&x->tree, 0, sizeof x->tree);
  x->held = (gt_held_all){0};
  x->spec.nregions = group->nregions;
  x->spec.self = group->self;
  x->spec.weights = group->weights;
  x->spec.next = group->next;
  x->spec.regions = group->regions;
  arrays_open(x);
  for (size_t r = 0; r < group->nregions; r++) x->late[r] = group->late[r];
  if (topology->open) topology->open(x);
  for (gt_collective *c = x->first; c; c = c->next) {
    gt_free(c->count);
    c->count = GT_NEW_ARRAY(int64_t, group->nregions);
    if (c->broadcast) gt_broadcast_regroup(c->broadcast);
    if (is_whole(x, c))
      gt_allreduce_regroup(c->allreduce, group->applied[c->id], group->floor[c->id],
                           group->late[group->self], group->again);
  }
}

bool gt_exchange_drained(const gt_exchange *x) {
  for (const gt_collective *c = x->first; c; c = c->next) {
    const gt_allreduce *r = c->allreduce;
    if (r && (r->own > r->posted || r->staged)) return false;
    if (c->broadcast && !broadcasts(c->broadcast, x->topology->broadcast->drained)) return false;
  }
  return true;
}

bool gt_exchange_settled(const gt_exchange *x) {
  for (const gt_collective *c = x->first; c; c = c->next) {
    if (c->allreduce &&
        (gt_allreduce_waiting(c->allreduce) || !x->topology->allreduce->settled(c->allreduce)))
      return false;
    if (c->broadcast && !broadcasts(c->broadcast, x->topology->broadcast->settled)) return false;
  }
  return x->held.n == 0;
}

double gt_exchange_residual(const gt_exchange *x) {
  double sum = 0;
  for (const gt_collective *c = x->first; c; c = c->next) {
    const gt_coder *coder = c->allreduce && c->allreduce->packer ? c->allreduce->packer : c->coder;
    if (coder) sum += gt_coder_squares(coder);
  }
  return sqrt(sum);
}

size_t gt_exchange_ranges(const gt_exchange *x) {
  return x->ncollectives;
}

int64_t gt_exchange_count(const gt_exchange *x, size_t range) {
  const gt_collective *c = x->first;
  while (c->id != range) c = c->next;
  const gt_allreduce *r = c->allreduce;
  if (r) return c->spec.quorum > 0 ? r->quorum.made : r->own;
  return c->broadcast->posted > c->broadcast->lost ? c->broadcast->posted : 0;
}
