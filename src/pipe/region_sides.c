/* The peers of a region's workers, and what their buffers hold. */
#include "region.h"

/* ---- open and close -------------------------------------------------------------------------- */

/* The workers of `to` that have samples of replica `replica` of `from`. */
static void open_peers(const gt_pipe_layout *l, gt_pipe_side *side, size_t from, size_t replica) {
  const gt_pipe_place *place = &l->places[side->stage];
  const size_t own = l->micro_samples / l->places[from].workers,
               share = l->micro_samples / place->workers, begin = replica * own, end = begin + own;
  side->replica = begin / share;
  side->npeers = (end - 1) / share - side->replica + 1;
  side->peers = GT_NEW_ARRAY(gt_pipe_peer, side->npeers);
  for (size_t j = 0; j < side->npeers; j++) {
    const size_t first = (side->replica + j) * share, last = first + share,
                 a = first > begin ? first : begin, b = last < end ? last : end;
    side->peers[j] = (gt_pipe_peer){.worker = place->first_worker + side->replica + j,
                                    .first = a,
                                    .count = b - a,
                                    .here = a - begin,
                                    .there = a - first};
  }
}

static gt_pipe_side open_side(const gt_pipe_region *region, const gt_pipe_worker *w, size_t chunk,
                              bool gradient, bool in) {
  const gt_pipe_layout *l = region->layout;
  const size_t span = gt_pipe_span_of(l->stages, chunk, w->stage);
  gt_pipe_side side = {0};
  if (!gt_pipe_next_span(l, span, gradient == in, &side.span)) return side;
  const size_t lower = side.span < span ? side.span : span;
  side.there = true;
  side.stage = gt_pipe_stage_of(l->stages, side.span);
  side.away = l->places[side.stage].region != region->self;
  side.bytes = gt_pipe_sample_bytes(l, lower, gradient);
  side.count = gt_pipe_outstanding_most(l, lower);
  side.first = (in ? gt_pipe_landing_buffers(l, w->stage, chunk, gradient)
                   : gt_pipe_out_buffers(l, w->stage, chunk, gradient))
                   .first;
  open_peers(l, &side, w->stage, w->replica);
  side.held = GT_NEW_ARRAY(gt_pipe_held, side.count);
  side.marks = GT_NEW_ARRAY(size_t, side.count * side.npeers);
  for (size_t i = 0; i < side.count; i++) side.held[i].of = &side.marks[i * side.npeers];
  return side;
}

void gt_pipe_sides_open(gt_pipe_region *region, gt_pipe_worker *worker) {
  const size_t chunks = region->layout->chunks;
  worker->in = GT_NEW_ARRAY(gt_pipe_side, 2 * chunks);
  worker->out = GT_NEW_ARRAY(gt_pipe_side, 2 * chunks);
  for (size_t c = 0; c < chunks; c++) {
    worker->in[c] = open_side(region, worker, c, false, true);
    worker->in[chunks + c] = open_side(region, worker, c, true, true);
    worker->out[c] = open_side(region, worker, c, false, false);
    worker->out[chunks + c] = open_side(region, worker, c, true, false);
  }
}

static void close_side(gt_pipe_side *side) {
  gt_free(side->peers);
  gt_free(side->held);
  gt_free(side->marks);
}

void gt_pipe_sides_close(gt_pipe_region *region, gt_pipe_worker *worker) {
  for (size_t q = 0; worker->in && q < 2 * region->layout->chunks; q++) {
    close_side(&worker->in[q]);
    close_side(&worker->out[q]);
  }
  gt_free(worker->in);
  gt_free(worker->out);
}

/* ---- what is held ---------------------------------------------------------------------------- */

gt_pipe_held *gt_pipe_held_of(const gt_pipe_side *side, int64_t step, uint32_t micro) {
  for (size_t i = 0; i < side->count; i++) {
    gt_pipe_held *held = &side->held[i];
    if (held->used && held->step == step && held->micro == micro) return held;
  }
  return NULL;
}

static gt_pipe_held *free_of(const gt_pipe_side *side) {
  for (size_t i = 0; i < side->count; i++)
    if (!side->held[i].used) return &side->held[i];
  return NULL;
}

bool gt_pipe_held_room(const gt_pipe_side *side) {
  return free_of(side) != NULL;
}

gt_pipe_held *gt_pipe_held_take(gt_pipe_side *side, int64_t step, uint32_t micro) {
  gt_pipe_held *held = free_of(side);
  if (!held) return NULL;
  *held = (gt_pipe_held){.used = true, .micro = micro, .step = step, .of = held->of};
  for (size_t j = 0; j < side->npeers; j++) held->of[j] = 0;
  return held;
}

size_t gt_pipe_held_buffer(const gt_pipe_side *side, const gt_pipe_held *held) {
  return side->first + (size_t)(held - side->held);
}

gt_pipe_held *gt_pipe_held_out(const gt_pipe_region *region, const gt_pipe_worker *worker,
                               size_t buffer) {
  for (size_t q = 0; q < 2 * region->layout->chunks; q++) {
    const gt_pipe_side *side = &worker->out[q];
    if (buffer >= side->first && buffer - side->first < side->count)
      return &side->held[buffer - side->first];
  }
  return NULL;
}

void gt_pipe_held_settle(gt_pipe_held *held) {
  if (held->waits == 0 && held->leaving == 0) held->used = false;
}
