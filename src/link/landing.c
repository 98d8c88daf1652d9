/* The queue at the receiver's access: senders take turns (self-clocked fair queueing; Golestani,
   INFOCOM 1994).  A frame's tag is its size plus the larger of the tag of its sender's last frame
   and the tag of the frame in service; the smallest tag is served next. */
#include "geotrain/link.h"

#define NONE UINT32_MAX

void gt_landing_open(gt_landing *l, size_t nregions, double rate_bps) {
  *l = (gt_landing){
      .access.rate_bps = rate_bps, .tags = GT_NEW_ARRAY(int64_t, nregions), .spare = NONE};
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

bool gt_landing_put(gt_landing *l, const gt_landing_frame *f) {
  if (l->access.rate_bps <= 0) return true;
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

gt_ns gt_landing_next(const gt_landing *l) {
  return l->busy ? l->passes : GT_NEVER;
}

gt_landing_frame gt_landing_take(gt_landing *l) {
  const gt_landing_frame served = l->served;
  l->busy = l->waiting.n > 0;
  if (!l->busy) return served;
  const gt_heap_entry next = gt_heap_pop(&l->waiting);
  serve(l, &l->places[next.a].frame, next.at);
  l->places[next.a].next = l->spare;
  l->spare = next.a;
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
