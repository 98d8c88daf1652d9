/* The peers of a region's workers, the records of their buffers, and the packets that they can
   receive. */
#include "region.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- open and close -------------------------------------------------------------------------- */

/* Finds the workers of `to` that share samples with replica `replica` of `from`. */
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

/* ---- records of buffers ---------------------------------------------------------------------- */

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

/* ---- packets that are refused ---------------------------------------------------------------- */

static const char *name_of(const gt_pipe_packet *p) {
  return p->forward_only && p->gradient ? "the receipt"
         : p->gradient                  ? "the gradient"
                                        : "the activation";
}

__attribute__((format(printf, 3, 4))) static gt_status
refuse(const gt_pipe_region *region, const gt_pipe_packet *p, const char *format, ...) {
  char why[256];
  va_list list;
  va_start(list, format);
  vsnprintf(why, sizeof why, format, list);
  va_end(list);
  return GT_FAIL(GT_ERR_FAULT,
                 "region %zu got %s of micro-batch %u, step %lld, for span %u, from worker %zu of "
                 "stage %zu to worker %zu of stage %zu: %s",
                 region->self, name_of(p), p->micro, (long long)p->step, p->span, p->from_worker,
                 p->from_stage, p->to_worker, p->to_stage, why);
}

static bool has_worker(const gt_pipe_place *place, size_t worker) {
  return worker >= place->first_worker && worker - place->first_worker < place->workers;
}

/* ---- where ----------------------------------------------------------------------------------- */

static gt_status check_worker(const gt_pipe_region *region, const gt_pipe_packet *p, size_t stage,
                              size_t worker) {
  const gt_pipe_place *place = &region->layout->places[stage];
  if (has_worker(place, worker)) return GT_OK;
  return refuse(region, p, "stage %zu has workers %zu to %zu", stage, place->first_worker,
                place->first_worker + place->workers - 1);
}

static gt_status check_stages(const gt_pipe_region *region, const gt_pipe_packet *p) {
  const gt_pipe_layout *l = region->layout;
  size_t from;
  if (p->span >= l->stages * l->chunks)
    return refuse(region, p, "the number of spans is %zu", l->stages * l->chunks);
  if (!gt_pipe_next_span(l, p->span, p->gradient, &from))
    return refuse(region, p, "the %s span gets none", p->gradient ? "last" : "first");
  const size_t to_stage = gt_pipe_stage_of(l->stages, p->span),
               from_stage = gt_pipe_stage_of(l->stages, from);
  if (p->to_stage != to_stage) return refuse(region, p, "the span is of stage %zu", to_stage);
  if (p->from_stage != from_stage) return refuse(region, p, "stage %zu sends it", from_stage);
  if (l->places[to_stage].region != region->self)
    return refuse(region, p, "stage %zu is in region %zu", to_stage, l->places[to_stage].region);
  if (l->places[from_stage].region == region->self)
    return refuse(region, p, "both stages are in this region");
  GT_TRY(check_worker(region, p, to_stage, p->to_worker));
  return check_worker(region, p, from_stage, p->from_worker);
}

static gt_status check_samples(gt_pipe_region *region, const gt_pipe_packet *p,
                               gt_pipe_packet_route *route) {
  const gt_pipe_layout *l = region->layout;
  const bool empty = p->forward_only && p->gradient;
  route->worker = &region->workers[p->to_worker];
  route->chunk = p->span / l->stages;
  route->side = empty ? &route->worker->out[route->chunk]
                      : &route->worker->in[p->gradient * l->chunks + route->chunk];
  const size_t replica = p->from_worker - l->places[p->from_stage].first_worker;
  if (replica < route->side->replica || replica - route->side->replica >= route->side->npeers)
    return refuse(region, p, "the two have no samples in common");
  route->peer = replica - route->side->replica;
  const gt_pipe_peer *peer = &route->side->peers[route->peer];
  if (p->first != peer->first || p->count != peer->count)
    return refuse(region, p, "it has %zu samples from %zu on; expected %zu from %zu on", p->count,
                  p->first, peer->count, peer->first);
  const size_t bytes = empty ? 0 : peer->count * route->side->bytes;
  if (p->bytes != bytes)
    return refuse(region, p, "it has %zu bytes; expected %zu", p->bytes, bytes);
  return GT_OK;
}

/* ---- when ------------------------------------------------------------------------------------ */

/* Returns the number of micro-batches of the worker's step. */
static size_t micro_batches_of(const gt_pipe_region *region, const gt_pipe_worker *w) {
  return w->forward_micro_batches > 0 ? w->forward_micro_batches : region->layout->micro_batches;
}

/* Checks the step of a packet.  For its next step a worker receives only inputs of the first chunk,
   and only after it has run F of all micro-batches of its step: the sender has then ended that
   step. */
static gt_status check_step(const gt_pipe_region *region, const gt_pipe_packet *p,
                            const gt_pipe_packet_route *route) {
  const gt_pipe_worker *w = route->worker;
  size_t most = region->layout->micro_batches;
  if (p->step < w->step || (p->step == w->step && !w->runs))
    return refuse(region, p, "the worker has ended that step");
  if (p->step == w->step) {
    if (p->forward_only != (w->forward_micro_batches > 0))
      return refuse(region, p, "the step is %s",
                    p->forward_only ? "no evaluation" : "an evaluation");
    most = micro_batches_of(region, w);
  } else {
    if (p->step - 1 > w->step)
      return refuse(region, p, "it is too early: the worker's next step is %lld",
                    (long long)w->step + 1);
    if (p->gradient || route->chunk > 0)
      return refuse(region, p, "it is too early: the worker has not begun that step");
    if (w->runs && w->ended < micro_batches_of(region, w))
      return refuse(region, p, "it is too early: the worker has not run F of all of step %lld",
                    (long long)w->step);
    if (p->forward_only) most = region->forward_micro_batches;
  }
  return p->micro < most ? GT_OK : refuse(region, p, "the number of micro-batches is %zu", most);
}

/* True if F of the receiving span has run, which precedes every answer to it.  False after B, when
   no peer sends one. */
static bool ran_forward(const gt_pipe_region *region, const gt_pipe_packet *p,
                        const gt_pipe_packet_route *route) {
  const gt_pipe_worker *w = route->worker;
  if (w->busy && w->pass.kind == GT_PASS_F && w->pass.span == p->span && w->pass.micro == p->micro)
    return false;
  if (p->forward_only) return p->micro < w->next[route->chunk];
  return w->slot_of[route->chunk * region->layout->micro_batches + p->micro] != GT_PIPE_NONE;
}

/* True if the input is no longer recorded: it has been read. */
static bool was_read(const gt_pipe_packet *p, const gt_pipe_packet_route *route) {
  const gt_pipe_worker *w = route->worker;
  if (p->step != w->step) return false;
  if (p->forward_only) return p->micro < w->next[route->chunk];
  const gt_pipe_message message = {p->gradient, p->span, p->micro};
  return gt_pipe_has(&w->progress, &message);
}

gt_status gt_pipe_packet_check(gt_pipe_region *region, const gt_pipe_packet *packet,
                               gt_pipe_packet_route *route) {
  const gt_pipe_packet *p = packet;
  GT_TRY(check_stages(region, p));
  GT_TRY(check_samples(region, p, route));
  GT_TRY(check_step(region, p, route));
  const gt_pipe_held *held = gt_pipe_held_of(route->side, p->step, p->micro);
  if (held ? held->of[route->peer] > 0 : was_read(p, route))
    return refuse(region, p, "it is a duplicate");
  if (p->gradient && !ran_forward(region, p, route))
    return refuse(region, p, "the worker has not run F of it");
  if (!held && !gt_pipe_held_room(route->side))
    return refuse(region, p, "all of its %zu landing buffers are in use", route->side->count);
  if (held && held->forward_only != p->forward_only)
    return refuse(region, p, "other parts say that the step is %s",
                  p->forward_only ? "no evaluation" : "an evaluation");
  return GT_OK;
}
