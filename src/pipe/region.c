/* A region as a state machine: events in, orders and packets out. */
#include "region.h"

/* ---- events ---------------------------------------------------------------------------------- */

static gt_status find_worker(const gt_pipe_region *region, size_t worker) {
  if (worker < region->nworkers && region->workers[worker].stage != GT_PIPE_NONE) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "worker %zu of region %zu has no stage of the pipeline", worker,
                 region->self);
}

/* What has come of this step already must be of its kind. */
static gt_status check_early(const gt_pipe_region *region, size_t worker, int64_t step,
                             size_t forward_micros) {
  const gt_pipe_side *side = &region->workers[worker].in[0];
  for (size_t i = 0; i < side->count; i++) {
    const gt_pipe_held *held = &side->held[i];
    if (!held->used || held->step != step) continue;
    if (held->forward_only != (forward_micros > 0))
      return GT_FAIL(GT_ERR_FAULT,
                     "step %lld is %s for worker %zu of region %zu; stage %zu has it "
                     "as %s",
                     (long long)step, forward_micros > 0 ? "an evaluation" : "a training step",
                     worker, region->self, side->stage,
                     held->forward_only ? "an evaluation" : "a training step");
    if (held->forward_only && held->micro >= forward_micros)
      return GT_FAIL(GT_ERR_FAULT,
                     "step %lld is an evaluation of %zu micro-batches for worker %zu of region "
                     "%zu; stage %zu has sent micro-batch %u",
                     (long long)step, forward_micros, worker, region->self, side->stage,
                     held->micro);
  }
  return GT_OK;
}

gt_status gt_pipe_region_step(gt_pipe_region *region, size_t worker, int64_t step,
                              size_t forward_micros) {
  GT_TRY(find_worker(region, worker));
  gt_pipe_worker *w = &region->workers[worker];
  if (w->runs || step != w->step + 1)
    return GT_FAIL(GT_ERR_FAULT, "worker %zu of region %zu cannot begin step %lld: it has %s %lld",
                   worker, region->self, (long long)step, w->runs ? "not ended" : "ended",
                   (long long)w->step);
  if (forward_micros > region->forward_micros)
    return GT_FAIL(GT_ERR_FAULT,
                   "step %lld is an evaluation of %zu micro-batches; %zu are the most",
                   (long long)step, forward_micros, region->forward_micros);
  GT_TRY(check_early(region, worker, step, forward_micros));
  w->step = step;
  w->runs = true;
  w->forward_micros = forward_micros;
  w->ended = 0;
  for (size_t c = 0; c < region->layout->chunks; c++) {
    w->next[c] = 0;
    w->weighed[c] = false;
  }
  gt_pipe_go_on(region);
  return GT_OK;
}

gt_status gt_pipe_region_done(gt_pipe_region *region, size_t worker) {
  GT_TRY(find_worker(region, worker));
  gt_pipe_worker *w = &region->workers[worker];
  if (!w->busy)
    return GT_FAIL(GT_ERR_FAULT, "worker %zu of region %zu has ended a pass, and it runs none",
                   worker, region->self);
  gt_pipe_pass_end(region, w);
  gt_pipe_go_on(region);
  return GT_OK;
}

gt_status gt_pipe_region_message(gt_pipe_region *region, gt_pipe_packet *packet) {
  gt_pipe_packet_way way;
  GT_TRY(gt_pipe_packet_check(region, packet, &way));
  packet->buffer = GT_PIPE_NONE;
  packet->at = 0;
  if (packet->forward_only && packet->gradient) {
    gt_pipe_held *held = gt_pipe_held_of(way.side, packet->step, packet->micro);
    held->of[way.peer] = 1;
    gt_pipe_held_read(held);
  } else {
    gt_pipe_held *held = gt_pipe_input(way.side, packet->step, packet->micro, packet->forward_only);
    packet->buffer = gt_pipe_held_buffer(way.side, held);
    packet->at = way.side->peers[way.peer].here;
    region->host.land(region->host.ctx, packet);
    gt_pipe_input_part(region, way.worker, packet->gradient * region->layout->chunks + way.chunk,
                       held, way.peer, 0);
  }
  gt_pipe_go_on(region);
  return GT_OK;
}

gt_status gt_pipe_region_departed(gt_pipe_region *region, size_t worker, size_t buffer) {
  GT_TRY(find_worker(region, worker));
  gt_pipe_held *held = gt_pipe_held_out(region, &region->workers[worker], buffer);
  if (!held || !held->used || held->leaving == 0)
    return GT_FAIL(
        GT_ERR_FAULT,
        "a packet has left from buffer %zu of worker %zu of region %zu, where none waits", buffer,
        worker, region->self);
  held->leaving--;
  gt_pipe_held_settle(held);
  gt_pipe_go_on(region);
  return GT_OK;
}

/* Of another order: what is outstanding of a span is no more than its slots, so all buffers
   suffice. */
static gt_status check_schedule(const gt_pipe_region *region, const gt_pipe_schedule *schedule) {
  const gt_pipe_layout *l = region->layout;
  if (!l->adapts || schedule->stages != l->stages || schedule->chunks != l->chunks ||
      schedule->micros != l->micros)
    return GT_FAIL(GT_ERR_FAULT, "the pipeline cannot change to a schedule of another shape");
  for (size_t s = 0; s < l->stages; s++)
    if (gt_pipe_slots(schedule, s) > l->slots[s])
      return GT_FAIL(GT_ERR_FAULT, "stage %zu has %zu slots; the new schedule needs %zu", s,
                     l->slots[s], gt_pipe_slots(schedule, s));
  return GT_OK;
}

gt_status gt_pipe_region_reorder(gt_pipe_region *region, const gt_pipe_schedule *schedule) {
  GT_TRY(check_schedule(region, schedule));
  for (size_t i = 0; i < region->nworkers; i++)
    if (region->workers[i].runs)
      return GT_FAIL(GT_ERR_FAULT,
                     "the schedule cannot change while worker %zu of region %zu is in step %lld", i,
                     region->self, (long long)region->workers[i].step);
  region->schedule = schedule;
  for (size_t i = 0; i < region->nworkers; i++) region->workers[i].progress.schedule = schedule;
  return GT_OK;
}

gt_status gt_pipe_region_skip(gt_pipe_region *region, int64_t step) {
  for (size_t i = 0; i < region->nworkers; i++) {
    const gt_pipe_worker *w = &region->workers[i];
    if (w->stage != GT_PIPE_NONE && (w->runs || step <= w->step))
      return GT_FAIL(
          GT_ERR_FAULT, "worker %zu of region %zu cannot go on with step %lld: it has %s %lld", i,
          region->self, (long long)step, w->runs ? "not ended" : "ended", (long long)w->step);
  }
  for (size_t i = 0; i < region->nworkers; i++) region->workers[i].step = step - 1;
  return GT_OK;
}

static bool has_early(const gt_pipe_worker *w, const gt_pipe_side *side) {
  for (size_t i = 0; i < side->count; i++)
    if (side->held[i].used && side->held[i].step > w->step) return true;
  return false;
}

bool gt_pipe_region_early(const gt_pipe_region *region) {
  for (size_t i = 0; i < region->nworkers; i++) {
    const gt_pipe_worker *w = &region->workers[i];
    for (size_t q = 0; w->stage != GT_PIPE_NONE && q < 2 * region->layout->chunks; q++)
      if (has_early(w, &w->in[q])) return true;
  }
  return false;
}

/* ---- create and close ------------------------------------------------------------------------ */

static void open_worker(gt_pipe_region *region, size_t stage, size_t replica, int64_t first_step) {
  const gt_pipe_layout *l = region->layout;
  gt_pipe_worker *w = &region->workers[l->places[stage].first_worker + replica];
  *w = (gt_pipe_worker){.stage = stage,
                        .replica = replica,
                        .step = first_step - 1,
                        .progress = gt_pipe_progress_open(region->schedule, stage),
                        .next = GT_NEW_ARRAY(uint32_t, l->chunks),
                        .weighed = GT_NEW_ARRAY(bool, l->chunks),
                        .taken = GT_NEW_ARRAY(bool, l->slots[stage]),
                        .slot_of = GT_NEW_ARRAY(size_t, l->chunks * l->micros)};
  for (size_t i = 0; i < l->chunks * l->micros; i++) w->slot_of[i] = GT_PIPE_NONE;
  gt_pipe_sides_open(region, w);
}

static size_t more(size_t a, size_t b) {
  return a > b ? a : b;
}

static void open_workers(gt_pipe_region *region, int64_t first_step) {
  const gt_pipe_layout *l = region->layout;
  size_t most = 1;
  for (size_t s = 0; s < l->stages; s++) {
    const gt_pipe_place *place = &l->places[s];
    if (place->workers > most) most = place->workers;
    if (place->region == region->self && place->first_worker + place->workers > region->nworkers)
      region->nworkers = place->first_worker + place->workers;
  }
  region->pieces = GT_NEW_ARRAY(gt_pipe_piece, most);
  region->workers = GT_NEW_ARRAY(gt_pipe_worker, region->nworkers);
  for (size_t i = 0; i < region->nworkers; i++) region->workers[i].stage = GT_PIPE_NONE;
  for (size_t s = 0; s < l->stages; s++)
    for (size_t r = 0; l->places[s].region == region->self && r < l->places[s].workers; r++)
      open_worker(region, s, r, first_step);
}

gt_status gt_pipe_region_create(gt_pipe_region **out, const gt_pipe_region_spec *spec) {
  *out = NULL;
  GT_TRY(gt_pipe_layout_check(spec->layout));
  if (spec->region >= spec->layout->nregions || spec->first_step < 0)
    return GT_FAIL(GT_ERR_FAULT,
                   "region %zu is to begin with step %lld; there are %zu regions, and steps are "
                   "numbered from 0",
                   spec->region, (long long)spec->first_step, spec->layout->nregions);
  gt_pipe_region *region = GT_NEW(gt_pipe_region);
  region->layout = spec->layout;
  region->schedule = spec->layout->schedule;
  region->self = spec->region;
  region->forward_micros = spec->forward_micros;
  region->stride = more(spec->stride, more(spec->forward_micros, spec->layout->micros));
  region->host = spec->host;
  open_workers(region, spec->first_step);
  *out = region;
  return GT_OK;
}

void gt_pipe_region_close(gt_pipe_region *region) {
  if (!region) return;
  for (size_t i = 0; i < region->nworkers; i++) {
    gt_pipe_worker *w = &region->workers[i];
    gt_pipe_sides_close(region, w);
    gt_pipe_progress_close(&w->progress);
    gt_free(w->next);
    gt_free(w->weighed);
    gt_free(w->taken);
    gt_free(w->slot_of);
  }
  gt_free(region->workers);
  gt_free(region->pieces);
  gt_free(region);
}

/* ---- for the host ---------------------------------------------------------------------------- */

uint64_t gt_pipe_region_number(const gt_pipe_region *region, int64_t step, uint32_t micro) {
  return (uint64_t)step * region->stride + micro;
}

void gt_pipe_region_of_number(const gt_pipe_region *region, uint64_t number, int64_t *step,
                              uint32_t *micro) {
  *step = (int64_t)(number / region->stride);
  *micro = (uint32_t)(number % region->stride);
}

size_t gt_pipe_region_stalls(const gt_pipe_region *region) {
  return region->stalls;
}
