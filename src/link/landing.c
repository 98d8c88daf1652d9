/* The queue at the receiver's access: senders take turns (self-clocked fair queueing; Golestani,
   INFOCOM 1994).  A frame's tag is its size plus the larger of the tag of its sender's last frame
   and the tag of the frame in service; the smallest tag is served next. */
#include "geotrain/link.h"

#define NONE UINT32_MAX

void gt_landing_open(gt_landing *l, size_t nregions, double rate_bps) {
  *l = (gt_landing){.access.rate_bps = rate_bps,
                    .tags = GT_NEW_ARRAY(int64_t, nregions),
                    .spare = NONE,
                    .held = NONE};
}

void gt_landing_close(gt_landing *l) {
  gt_free(l->tags);
  gt_free(l->places);
  gt_heap_close(&l->waiting);
}

static void serve(gt_landing *l, const gt_landing_frame *f, int64_t tag) {
  l->busy = true;
  l->tag = tag;
  l->served = *f;
  l->passes = gt_access_pass(&l->access, f->bytes, f->stream_bps, f->arrive);
  if (l->function && gt_msg_is_data(f->kind))
    l->function->byte_s += (double)f->bytes * gt_seconds(l->passes - f->arrive);
}

static uint32_t place_of(gt_landing *l, const gt_landing_frame *f) {
  uint32_t i = l->spare;
  if (i != NONE)
    l->spare = l->places[i].next;
  else {
    GT_GROW(l->places, l->nplaces, l->capacity, 16);
    i = (uint32_t)l->nplaces++;
  }
  l->places[i].frame = *f;
  return i;
}

static void free_place(gt_landing *l, uint32_t i) {
  l->places[i].next = l->spare;
  l->spare = i;
}

static bool put(gt_landing *l, const gt_landing_frame *f) {
  int64_t *last = &l->tags[f->from];
  *last = (*last > l->tag ? *last : l->tag) + (int64_t)f->bytes;
  if (l->busy) {
    gt_heap_push(&l->waiting, (gt_heap_entry){.at = *last, .key = f->from, .a = place_of(l, f)});
    return false;
  }
  serve(l, f, *last);
  l->busy = l->passes > f->arrive;
  return !l->busy;
}

/* ---- functions ------------------------------------------------------------------------------- */

void gt_landing_release(gt_landing *l, gt_ns now) {
  uint32_t oldest = NONE;
  if (l->nheld == 0) return;
  for (uint32_t i = l->held, next; i != NONE; i = next) { /* reverses the list */
    next = l->places[i].next;
    l->places[i].next = oldest;
    oldest = i;
  }
  l->held = NONE;
  l->nheld = 0;
  for (uint32_t i = oldest, next; i != NONE; i = next) {
    gt_landing_frame f = l->places[i].frame;
    next = l->places[i].next;
    free_place(l, i);
    l->function->byte_s += (double)f.bytes * gt_seconds(now - f.arrive);
    f.arrive = now;
    (void)put(l, &f);
  }
}

/* Holds an object until those of its round are there.  One invocation has seen each. */
static void hold(gt_landing *l, const gt_landing_frame *f) {
  gt_link_function *of = l->function;
  const uint32_t i = place_of(l, f);
  l->places[i].next = l->held;
  l->held = i;
  of->lists++;
  if (++l->nheld < of->objects) {
    of->seconds += gt_seconds(of->request);
    return;
  }
  of->complete = f->arrive - of->back;
  gt_landing_release(l, of->complete + of->start + 2 * of->request); /* list, and read */
}

static bool is_of_the_end(uint32_t kind) {
  return kind == GT_MSG_DONE || kind == GT_MSG_BYE;
}

static bool is_plain(uint32_t kind) {
  return kind == GT_MSG_ACK || kind == GT_MSG_PING || kind == GT_MSG_PONG;
}

bool gt_landing_put(gt_landing *l, const gt_landing_frame *f) {
  const bool function = l->function && l->function->objects > 0;
  if (l->access.rate_bps <= 0) return true;
  if (function && gt_msg_is_data(f->kind)) {
    hold(l, f);
    return false;
  }
  if (function && !is_plain(f->kind)) gt_landing_release(l, f->arrive);
  if (function && is_of_the_end(f->kind)) l->function->objects = 0;
  return put(l, f);
}

/* Writes a reference to an object whose last bit has left at `depart`; the receiver then reads
   that. */
static gt_link_times refer(const gt_link_function *f, gt_wire *wire, const gt_link_spec *spec,
                           gt_access *up, gt_ns depart, gt_ns queued) {
  const gt_ns there = depart + f->request > queued ? depart + f->request : queued;
  gt_link_times times = gt_wire_send(wire, spec, up, GT_LINK_REFERENCE_BYTES, there);
  times.arrive += gt_from_seconds(spec->look_s);
  wire->link.last_arrival = times.arrive;
  return times;
}

static bool is_same(const struct gt_link_written *a, const struct gt_link_written *b) {
  return a->value == b->value && a->bytes == b->bytes && a->kind == b->kind && a->range == b->range;
}

/* Gives the link what has been written for another region. */
static gt_link_times share(gt_link_function *f, gt_wire *wire, const gt_link_spec *spec,
                           gt_access *up, const struct gt_link_written *what) {
  const gt_ns left = f->written.depart, there = left > what->queued ? left : what->queued;
  f->shared++;
  f->shared_bytes += (int64_t)what->bytes;
  return f->objects > 0 ? gt_wire_send(wire, spec, NULL, what->bytes, there)
                        : refer(f, wire, spec, up, left, what->queued);
}

/* Counts how long the object is in the store: until the last region has found it. */
static void keep(gt_link_function *f, size_t bytes, gt_ns until) {
  struct gt_link_written *last = &f->written;
  if (until <= last->there) return;
  f->byte_s += (double)bytes * gt_seconds(until - last->there);
  last->there = until;
}

gt_link_times gt_function_write(gt_link_function *f, gt_wire *wire, const gt_link_spec *spec,
                                gt_access *up, const struct gt_link_written *what) {
  const bool once = f->objects > 0 || (f->shares && what->bytes >= GT_LINK_SHARED_MIN);
  if (!gt_msg_is_data(what->kind)) return gt_wire_send(wire, spec, up, what->bytes, what->queued);
  if (once && is_same(&f->written, what)) {
    const gt_link_times times = share(f, wire, spec, up, what);
    keep(f, what->bytes, times.arrive);
    return times;
  }
  const gt_link_times times = gt_wire_send(wire, spec, up, what->bytes, what->queued);
  f->written = *what;
  f->written.depart = f->written.there = times.depart;
  keep(f, what->bytes, times.arrive);
  if (f->objects > 0) f->seconds += gt_seconds(times.depart + f->request - f->complete - f->start);
  return times;
}

/* ---- taking ---------------------------------------------------------------------------------- */

gt_ns gt_landing_next(const gt_landing *l) {
  return l->busy ? l->passes : GT_NEVER;
}

gt_landing_frame gt_landing_take(gt_landing *l) {
  const gt_landing_frame served = l->served;
  l->busy = l->waiting.n > 0;
  if (!l->busy) return served;
  const gt_heap_entry next = gt_heap_pop(&l->waiting);
  serve(l, &l->places[next.a].frame, next.at);
  free_place(l, next.a);
  return served;
}

void gt_landing_all(gt_landing *l, const gt_landing_frame *frames, size_t n,
                    void (*passed)(void *ctx, const gt_landing_frame *frame, gt_ns at), void *ctx) {
  for (size_t i = 0; i < n || l->busy; i++) {
    while (l->busy && (i >= n || l->passes <= frames[i].arrive)) {
      const gt_ns at = l->passes;
      const gt_landing_frame f = gt_landing_take(l);
      passed(ctx, &f, at);
    }
    if (i < n && gt_landing_put(l, &frames[i])) passed(ctx, &frames[i], frames[i].arrive);
  }
}
