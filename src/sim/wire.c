/* Links between regions: puts frames on a link and delivers them in the same order as src/wan does,
   but without contents. */
#include <string.h>

#include "internal.h"

#define LAST_FRAME   ((uint32_t)1 << 31)
#define SENDER_SHIFT 40

/* ---- messages -------------------------------------------------------------------------------- */

static sim_message *message(gt_sim *sim, uint32_t i) {
  return &sim->messages[i];
}

static uint32_t new_message(gt_sim *sim) {
  uint32_t i = sim->spare;
  if (i != SIM_NONE) {
    sim->spare = sim->messages[i].next;
    return i;
  }
  GT_GROW(sim->messages, sim->nmessages, sim->capacity, 1024);
  return (uint32_t)sim->nmessages++;
}

/* ---- headers --------------------------------------------------------------------------------- */

static uint32_t new_route(gt_sim *sim, const gt_frame_route *route) {
  uint32_t i = sim->spare_route;
  if (i != SIM_NONE)
    sim->spare_route = (uint32_t)sim->frame_routes[i].offset;
  else {
    GT_GROW(sim->frame_routes, sim->nframe_routes, sim->frame_routes_capacity, 256);
    i = (uint32_t)sim->nframe_routes++;
  }
  sim->frame_routes[i] = *route;
  return i;
}

static void drop_route(gt_sim *sim, sim_header *head) {
  if (head->route == SIM_NONE) return;
  sim->frame_routes[head->route].offset = sim->spare_route;
  sim->spare_route = head->route;
  head->route = SIM_NONE;
}

static sim_header pack(gt_sim *sim, size_t from, const gt_frame_header *head) {
  return (sim_header){.sequence = head->sequence,
                      .most_bytes = head->most_bytes,
                      .value = head->value,
                      .detail = head->detail,
                      .round = head->round,
                      .range = head->range,
                      .route =
                          head->flags & GT_FRAME_ROUTED ? new_route(sim, &head->route) : SIM_NONE,
                      .from = (uint16_t)from,
                      .kind = head->kind,
                      .codec = head->codec};
}

static gt_frame_header unpack(const gt_sim *sim, const sim_message *m) {
  const sim_header *h = &m->head;
  gt_frame_header head = {.kind = h->kind,
                          .codec = h->codec,
                          .from = h->from,
                          .round = h->round,
                          .sequence = h->sequence,
                          .most_bytes = h->most_bytes,
                          .message_bytes = m->bytes,
                          .epoch = m->epoch,
                          .value = h->value,
                          .detail = h->detail,
                          .range = h->range};
  if (h->route == SIM_NONE) return head;
  head.flags = GT_FRAME_ROUTED;
  head.route = sim->frame_routes[h->route];
  return head;
}

static size_t header_bytes(const sim_message *m) {
  return m->head.route == SIM_NONE ? GT_FRAME_HEADER_BYTES : GT_FRAME_HEADER_MAX;
}

static void drop_user(gt_sim *sim, uint32_t i) {
  sim_message *m = message(sim, i);
  if (--m->users > 0) return;
  drop_route(sim, &m->head);
  gt_free(m->body);
  m->body = NULL;
  m->next = sim->spare;
  sim->spare = i;
}

/* ---- life ------------------------------------------------------------------------------------ */

void gt_sim_wires_open(sim_region *r, const sim_wire_hooks *hooks) {
  gt_sim *sim = r->sim;
  r->wire_hooks = hooks;
  r->wires = GT_NEW_ARRAY(sim_wire, sim->n);
  r->ready = GT_NEW_ARRAY(uint64_t, sim->n / 64 + 1);
  const gt_link_access access = gt_links_access(sim->spec.links, r->id);
  r->up.rate_bps = access.up_bps;
  if (access.down_bps > 0) /* 8 bytes for each pair of regions */
    gt_landing_open(&r->landing, sim->n, access.down_bps);
  r->function = gt_links_function(sim->spec.links, r->id);
  if (r->function.objects > 0) r->landing.function = &r->function;
  for (size_t p = 0; p < sim->n; p++) {
    sim_list none = {SIM_NONE, SIM_NONE};
    sim_wire *w = &r->wires[p];
    w->wire.link = gt_link_start(sim->spec.job->seed, r->id, p, 0);
    w->control = w->bulk = w->leaving = none;
    w->due = GT_NEVER;
    /* sent before time begins */
    if (p == r->id) continue;
    gt_sim_count(w, GT_MSG_HELLO, GT_HELLO_BYTES, GT_FRAME_HEADER_BYTES, true);
    r->read.control++;
  }
}

void gt_sim_wires_close(sim_region *r) {
  gt_free(r->wires);
  gt_free(r->ready);
  gt_heap_close(&r->due);
  gt_heap_close(&r->arrivals);
  gt_landing_close(&r->landing);
}

/* ---- queues ---------------------------------------------------------------------------------- */

/* Adds the time at which the wire needs to be polled to the region's heap; older entries of the
   wire become stale. */
static void set_due(sim_region *r, size_t peer) {
  sim_wire *w = &r->wires[peer];
  gt_ns due = GT_NEVER;
  if (!w->cut && (w->control.first != SIM_NONE || w->bulk.first != SIM_NONE))
    due = w->wire.link.busy_until;
  if (w->leaving.first != SIM_NONE && message(r->sim, w->leaving.first)->depart < due)
    due = message(r->sim, w->leaving.first)->depart;
  if (due == w->due) return;
  w->due = due;
  if (due != GT_NEVER)
    gt_heap_push(&r->due, (gt_heap_entry){.at = due, .key = peer, .a = (uint32_t)peer});
}

/* Returns a copy of the body of a message; NULL: it has no contents.  Without arithmetic only
   messages about members or scores have any. */
static void *body_of(const gt_sim *sim, const gt_frame_header *head, const void *payload,
                     size_t bytes) {
  const bool small =
      head->kind == GT_MSG_MEMBERS || head->kind == GT_MSG_GROUP || head->kind == GT_MSG_SCORE;
  if (!payload || bytes == 0 || !(small || sim->spec.arithmetic)) return NULL;
  void *body = gt_alloc(bytes, 1);
  memcpy(body, payload, bytes);
  return body;
}

void gt_sim_send(sim_region *r, size_t peer, const gt_frame_header *head, const void *payload,
                 size_t bytes, uint64_t cookie, gt_ns now) {
  gt_sim *sim = r->sim;
  sim_wire *w = &r->wires[peer];
  sim_list *q = gt_msg_is_control(head->kind) ? &w->control : &w->bulk;
  if (w->down) return;
  uint32_t i = new_message(sim);
  sim_message *m = message(sim, i);
  *m = (sim_message){.head = pack(sim, r->id, head),
                     .bytes = bytes,
                     .cookie = cookie,
                     .queued = now,
                     .next = SIM_NONE,
                     .next_leaving = SIM_NONE,
                     .body = body_of(sim, head, payload, bytes),
                     .epoch = head->epoch,
                     .start = (uint16_t)r->starts,
                     .users = 1};
  if (q->first == SIM_NONE)
    q->first = i;
  else
    message(sim, q->last)->next = i;
  q->last = i;
  set_due(r, peer);
}

bool gt_sim_drop(sim_region *r, size_t peer, uint64_t cookie) {
  sim_list *q = &r->wires[peer].bulk;
  uint32_t before = SIM_NONE;
  for (uint32_t i = q->first; i != SIM_NONE; before = i, i = message(r->sim, i)->next) {
    const sim_message *m = message(r->sim, i);
    if (m->cookie != cookie || m->taken > 0) continue;
    *(before == SIM_NONE ? &q->first : &message(r->sim, before)->next) = m->next;
    if (q->last == i) q->last = before;
    drop_user(r->sim, i);
    set_due(r, peer);
    return true;
  }
  return false;
}

/* ---- leaving --------------------------------------------------------------------------------- */

static sim_list *next_queue(gt_sim *sim, sim_wire *w, gt_ns now) {
  if (w->wire.link.busy_until > now || w->cut) return NULL;
  if (w->control.first == SIM_NONE) return w->bulk.first == SIM_NONE ? NULL : &w->bulk;
  if (w->bulk.first == SIM_NONE) return &w->control;
  return gt_wire_control_first(&w->wire, message(sim, w->control.first)->queued,
                               message(sim, w->bulk.first)->queued)
             ? &w->control
             : &w->bulk;
}

/* Only the last frame of a message has an effect at its arrival, unless frames queue for the access
   there or are watched. */
static void travel(sim_region *r, size_t peer, uint32_t i, size_t frame_bytes, bool last,
                   gt_ns arrive) {
  sim_region *to = &r->sim->regions[peer];
  if (!last && to->landing.access.rate_bps <= 0 && !r->sim->exact) return;
  message(r->sim, i)->users++;
  gt_heap_push(&to->arrivals,
               (gt_heap_entry){.at = arrive,
                               .key = ((uint64_t)r->id << SENDER_SHIFT) | to->arrived++,
                               .a = i,
                               .b = (uint32_t)frame_bytes | (last ? LAST_FRAME : 0)});
  if (arrive < r->sim->agenda.at[peer] && !to->ended && !to->away)
    gt_sim_agenda_set(&r->sim->agenda, peer, arrive);
}

/* Call when the last frame of the message is on the link. */
static void has_begun_to_leave(gt_sim *sim, sim_wire *w, sim_list *queue, uint32_t i, gt_ns depart,
                               bool whole) {
  sim_message *m = message(sim, i);
  gt_sim_count(w, m->head.kind, m->bytes, header_bytes(m), whole);
  queue->first = m->next;
  m->depart = depart;
  if (m->cookie == 0 && !sim->exact) return;
  m->users++;
  if (w->leaving.first == SIM_NONE)
    w->leaving.first = i;
  else
    message(sim, w->leaving.last)->next_leaving = i;
  w->leaving.last = i;
}

static bool fill(sim_region *r, size_t peer, gt_ns now) {
  gt_sim *sim = r->sim;
  sim_wire *w = &r->wires[peer];
  sim_list *q = next_queue(sim, w, now);
  if (!q) return false;
  uint32_t i = q->first;
  sim_message *m = message(sim, i);
  size_t left = m->bytes - m->taken;
  const gt_link_spec *link = &gt_links_from(sim->spec.links, r->id)[peer];
  const bool whole = link->look_s > 0;
  const size_t bytes = gt_frame_take(&left, header_bytes(m), whole);
  m->taken = m->bytes - left;
  const struct gt_link_written what = {.queued = m->queued,
                                       .value = m->head.value,
                                       .bytes = bytes,
                                       .kind = m->head.kind,
                                       .range = m->head.range};
  const gt_link_times times = gt_function_write(&r->function, &w->wire, link, &r->up, &what);
  if (left == 0) has_begun_to_leave(sim, w, q, i, times.depart, whole);
  travel(r, peer, i, bytes, left == 0, times.arrive);
  if (left == 0) drop_user(sim, i);
  return true;
}

static bool tell_departed(sim_region *r, size_t peer, gt_ns now) {
  gt_sim *sim = r->sim;
  sim_wire *w = &r->wires[peer];
  bool moved = false;
  while (w->leaving.first != SIM_NONE && message(sim, w->leaving.first)->depart <= now) {
    uint32_t i = w->leaving.first;
    uint64_t cookie = message(sim, i)->cookie;
    w->leaving.first = message(sim, i)->next_leaving;
    drop_user(sim, i);
    if (cookie) r->wire_hooks->departed(r, peer, cookie);
    moved = true;
  }
  return moved;
}

/* Sets the bit of every wire whose time has come. */
static void gather_ready(sim_region *r, gt_ns now) {
  while (r->due.n > 0 && r->due.at[0].at <= now) {
    gt_heap_entry e = gt_heap_pop(&r->due);
    if (r->wires[e.a].due != e.at) continue;
    r->wires[e.a].due = GT_NEVER;
    r->ready[e.a / 64] |= (uint64_t)1 << (e.a % 64);
  }
}

static bool move(sim_region *r, size_t peer, gt_ns now) {
  bool moved = tell_departed(r, peer, now);
  moved |= fill(r, peer, now);
  if (!moved) {
    r->ready[peer / 64] &= ~((uint64_t)1 << (peer % 64));
    set_due(r, peer);
  }
  gather_ready(r, now);
  return moved;
}

/* Moves the peers from `first` to `last` - 1. */
static bool turn_of(sim_region *r, size_t first, size_t last, gt_ns now) {
  bool moved = false;
  for (size_t word = first / 64; 64 * word < last; word++) {
    uint64_t seen = word == first / 64 ? ((uint64_t)1 << first % 64) - 1 : 0;
    if (last < 64 * (word + 1)) seen |= ~(((uint64_t)1 << last % 64) - 1);
    for (uint64_t bits; (bits = r->ready[word] & ~seen) != 0;) {
      unsigned bit = (unsigned)__builtin_ctzll(bits);
      seen |= ((uint64_t)2 << bit) - 1; /* this one and the lower ones */
      moved |= move(r, 64 * word + bit, now);
    }
  }
  return moved;
}

/* Sends one frame per peer, in the order of the gateway; later wires that become ready meanwhile
   have their turn too. */
static bool turn(sim_region *r, gt_ns now) {
  const size_t first = gt_access_first(&r->up, r->id);
  bool moved = turn_of(r, first, r->sim->n, now);
  return turn_of(r, 0, first, now) || moved;
}

void gt_sim_poll(sim_region *r, gt_ns now) {
  gather_ready(r, now);
  while (turn(r, now)) continue;
}

gt_ns gt_sim_link_next(sim_region *r) {
  while (r->due.n > 0 && r->wires[r->due.at[0].a].due != r->due.at[0].at) gt_heap_pop(&r->due);
  return r->due.n > 0 ? r->due.at[0].at : GT_NEVER;
}

/* ---- arriving -------------------------------------------------------------------------------- */

gt_ns gt_sim_arrival_next(const sim_region *r) {
  gt_ns at = r->arrivals.n > 0 ? r->arrivals.at[0].at : GT_NEVER,
        passes = gt_landing_next(&r->landing);
  return passes < at ? passes : at;
}

/* A message of a region from before its last start is void. */
static void hand_on(sim_region *r, uint32_t message_of, bool last) {
  sim_message *m = message(r->sim, message_of);
  gt_frame_header head = unpack(r->sim, m);
  const bool counts = last && m->start == (uint16_t)r->sim->regions[head.from].starts;
  void *body = last ? m->body : NULL;
  if (last) m->body = NULL;
  drop_user(r->sim, message_of);
  if (!gt_msg_is_control(head.kind)) r->wires[head.from].receiving = !last;
  if (last) gt_link_object(&r->read, head.kind, gt_header_bytes(&head) + head.message_bytes);
  if (counts) r->wire_hooks->message(r, &head, body);
  gt_free(body);
}

/* Takes the next frame that has passed the access. */
static void land(sim_region *r) {
  const uint64_t number = gt_landing_take(&r->landing).of.number;
  hand_on(r, (uint32_t)number, number >> 32);
}

static bool put(sim_region *r, const gt_heap_entry *e) {
  const gt_sim *sim = r->sim;
  const size_t from = (size_t)(e->key >> SENDER_SHIFT);
  const gt_link_spec *link = &gt_links_from(sim->spec.links, from)[r->id];
  const gt_landing_frame frame = {.arrive = e->at,
                                  .from = from,
                                  .bytes = e->b & ~LAST_FRAME,
                                  .kind = sim->messages[e->a].head.kind,
                                  .stream_bps =
                                      gt_link_stream_bps(link, sim->regions[from].up.rate_bps),
                                  .of.number = (uint64_t)((e->b & LAST_FRAME) != 0) << 32 | e->a};
  return gt_landing_put(&r->landing, &frame);
}

/* Frames that have passed the access come before those that arrive at it. */
void gt_sim_deliver(sim_region *r) {
  gt_ns at = r->arrivals.n > 0 ? r->arrivals.at[0].at : GT_NEVER;
  if (r->landing.busy && gt_landing_next(&r->landing) <= at) {
    land(r);
    return;
  }
  const gt_heap_entry e = gt_heap_pop(&r->arrivals);
  if (r->landing.access.rate_bps <= 0 || put(r, &e)) hand_on(r, e.a, e.b & LAST_FRAME);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void clear(gt_sim *sim, sim_list *list) {
  for (uint32_t i = list->first, next; i != SIM_NONE; i = next) {
    next = message(sim, i)->next;
    drop_user(sim, i);
  }
  *list = (sim_list){SIM_NONE, SIM_NONE};
}

void gt_sim_wire_clear(sim_region *r, size_t peer) {
  sim_wire *w = &r->wires[peer];
  clear(r->sim, &w->control);
  clear(r->sim, &w->bulk);
  for (uint32_t i = w->leaving.first, next; i != SIM_NONE; i = next) {
    next = message(r->sim, i)->next_leaving;
    drop_user(r->sim, i);
  }
  w->leaving = (sim_list){SIM_NONE, SIM_NONE};
  w->receiving = false;
  set_due(r, peer);
}

void gt_sim_wire_cut(sim_region *r, size_t peer, bool cut) {
  r->wires[peer].cut = cut;
  set_due(r, peer);
}

void gt_sim_arrivals_clear(sim_region *r) {
  gt_landing_release(&r->landing, 0);
  while (r->landing.busy) drop_user(r->sim, (uint32_t)gt_landing_take(&r->landing).of.number);
  while (r->arrivals.n > 0) drop_user(r->sim, gt_heap_pop(&r->arrivals).a);
}
