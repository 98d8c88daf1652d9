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

gt_link_times gt_function_write(gt_link_function *f, gt_wire *wire, const gt_link_spec *spec,
                                gt_access *up, const struct gt_link_written *what) {
  struct gt_link_written *last = &f->written;
  if (f->objects == 0 || !gt_msg_is_data(what->kind))
    return gt_wire_send(wire, spec, up, what->bytes, what->queued);
  if (last->value == what->value && last->bytes == what->bytes && last->kind == what->kind &&
      last->range == what->range) {
    const gt_ns there = last->depart > what->queued ? last->depart : what->queued;
    f->shared++;
    f->shared_bytes += (int64_t)what->bytes;
    return gt_wire_send(wire, spec, NULL, what->bytes, there);
  }
  const gt_link_times times = gt_wire_send(wire, spec, up, what->bytes, what->queued);
  *last = *what;
  last->depart = times.depart;
  f->seconds += gt_seconds(times.depart + f->request - f->complete - f->start);
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
