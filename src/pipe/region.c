/* A region as a state machine: events are its input, orders and packets its output. */
#include "region.h"

#include <stdio.h>

#define WHO_MAX 80

/* ---- inputs and outputs ---------------------------------------------------------------------- */

static size_t chunk_of(const gt_pipe_region *region, const gt_pass *pass) {
  return pass->span / region->layout->stages;
}

/* Returns the side of a pass's input or output; NULL: none. */
static gt_pipe_side *side_of(const gt_pipe_region *region, gt_pipe_side *sides,
                             const gt_pass *pass) {
  const size_t q = (pass->kind != GT_PASS_F) * region->layout->chunks + chunk_of(region, pass);
  return pass->kind != GT_PASS_W && sides[q].there ? &sides[q] : NULL;
}

/* Counts one read of the output. */
static void read_once(gt_pipe_held *held) {
  held->waits--;
  gt_pipe_held_settle(held);
}

/* Takes a part of the input from the peer's out buffer, or landed (buffer 0). q: index of the
   side. */
static void take_part(gt_pipe_region *region, gt_pipe_worker *w, size_t q, gt_pipe_held *held,
                      size_t peer, size_t buffer) {
  const gt_pipe_layout *l = region->layout;
  held->of[peer] = 1 + buffer;
  if (--held->waits > 0 || held->forward_only) return;
  const gt_pipe_message message = {
      q >= l->chunks, (uint32_t)gt_pipe_span_of(l->stages, q % l->chunks, w->stage), held->micro};
  gt_pipe_arrived(&w->progress, &message);
}

/* Returns the record of a micro-batch's input, new for its first part; NULL: no free record. */
static gt_pipe_held *input_of(gt_pipe_side *side, int64_t step, uint32_t micro, bool forward_only) {
  gt_pipe_held *held = gt_pipe_held_of(side, step, micro);
  if (held) return held;
  held = gt_pipe_held_take(side, step, micro);
  if (!held) return NULL;
  held->forward_only = forward_only;
  held->waits = side->npeers;
  return held;
}

/* Hands the output to the worker of this region that reads it. */
static void hand_over(gt_pipe_region *region, const gt_pipe_worker *w, const gt_pipe_side *side,
                      const gt_pipe_peer *to, size_t buffer) {
  const gt_pipe_layout *l = region->layout;
  gt_pipe_worker *reader = &region->workers[to->worker];
  const size_t q = (w->pass.span > side->span) * l->chunks + side->span / l->stages;
  gt_pipe_side *in = &reader->in[q];
  gt_pipe_held *held = input_of(in, w->step, w->pass.micro, w->forward_micro_batches > 0);
  if (!held)
    gt_bug("pipe: stage %zu holds more inputs of span %zu than its schedule can leave unread",
           reader->stage, side->span);
  take_part(region, reader, q, held, w->replica - in->replica, buffer);
}

/* Sends the output to a worker of another region; without a buffer, the confirmation that its
   output has been read. */
static void send(gt_pipe_region *region, const gt_pipe_worker *w, const gt_pipe_side *side,
                 const gt_pipe_peer *to, size_t buffer) {
  const gt_pipe_layout *l = region->layout;
  const bool empty = buffer == GT_PIPE_NONE, gradient = w->pass.span > side->span,
             forward_only = w->forward_micro_batches > 0;
  const gt_pipe_packet packet = {.gradient = gradient,
                                 .forward_only = forward_only,
                                 .span = (uint32_t)side->span,
                                 .micro = w->pass.micro,
                                 .step = w->step,
                                 .from_stage = w->stage,
                                 .from_worker = l->places[w->stage].first_worker + w->replica,
                                 .to_stage = side->stage,
                                 .to_worker = to->worker,
                                 .first = to->first,
                                 .count = to->count,
                                 .bytes = empty ? 0 : to->count * side->bytes,
                                 .buffer = buffer,
                                 .at = empty ? 0 : to->here};
  region->host.send(region->host.ctx, l->places[side->stage].region, &packet);
}

/* Ends the input, which the pass has read. */
static void end_input(gt_pipe_region *region, gt_pipe_worker *w, const gt_pipe_side *side) {
  gt_pipe_held *input = w->input;
  for (size_t j = 0; j < side->npeers; j++) {
    const gt_pipe_peer *from = &side->peers[j];
    if (!side->away)
      read_once(gt_pipe_held_out(region, &region->workers[from->worker], input->of[j] - 1));
    else if (input->forward_only)
      send(region, w, side, from, GT_PIPE_NONE);
  }
  input->used = false;
}

/* Ends the output, which the pass has written. */
static void end_output(gt_pipe_region *region, gt_pipe_worker *w, const gt_pipe_side *side) {
  gt_pipe_held *output = w->output;
  const size_t buffer = gt_pipe_held_buffer(side, output);
  output->waits = side->away && !output->forward_only ? 0 : side->npeers;
  output->leaving = side->away ? side->npeers : 0;
  for (size_t j = 0; j < side->npeers; j++)
    if (side->away)
      send(region, w, side, &side->peers[j], buffer);
    else
      hand_over(region, w, side, &side->peers[j], buffer);
}

static void end_flow(gt_pipe_region *region, gt_pipe_worker *w) {
  if (w->output) end_output(region, w, side_of(region, w->out, &w->pass));
  if (w->input) end_input(region, w, side_of(region, w->in, &w->pass));
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Finds the next pass of an evaluation: of the passes with complete input and a free buffer for the
   output, that of the latest chunk.  Its input does not depend on earlier chunks of the worker, so
   that some worker can always run a pass. */
static bool next_forward(gt_pipe_region *region, gt_pipe_worker *w, gt_pass *pass) {
  const gt_pipe_layout *l = region->layout;
  for (size_t c = l->chunks; c-- > 0;) {
    if (w->next[c] >= w->forward_micro_batches) continue;
    *pass = (gt_pass){GT_PASS_F, (uint32_t)gt_pipe_span_of(l->stages, c, w->stage), w->next[c]};
    const gt_pipe_held *held = gt_pipe_held_of(&w->in[c], w->step, w->next[c]);
    if (w->in[c].there && (!held || held->waits > 0)) continue;
    if (!w->out[c].there || gt_pipe_held_room(&w->out[c])) return true;
  }
  return false;
}

/* Finds the next pass of a training step: the next one of the list, when its input is complete and
   a buffer for its output is free. */
static bool next_of_list(gt_pipe_region *region, gt_pipe_worker *w, gt_pass *pass) {
  const gt_pass *next = gt_pipe_next(&w->progress);
  if (!next) return false;
  const gt_pipe_side *out = side_of(region, w->out, next);
  const bool stalled = out && !gt_pipe_held_room(out);
  region->stalls += stalled && !w->stalled;
  w->stalled = stalled;
  *pass = *next;
  return !stalled;
}

/* Returns the place of the slot of a span and micro-batch; an evaluation uses one slot at a
   time. */
static size_t *slot_of(const gt_pipe_region *region, gt_pipe_worker *w, const gt_pass *pass) {
  const size_t micro = w->forward_micro_batches > 0 ? 0 : pass->micro;
  return &w->slot_of[chunk_of(region, pass) * region->layout->micro_batches + micro];
}

static size_t take_slot(const gt_pipe_region *region, gt_pipe_worker *w) {
  for (size_t i = 0; i < region->layout->slots[w->stage]; i++)
    if (!w->taken[i]) {
      w->taken[i] = true;
      return i;
    }
  gt_bug("pipe: stage %zu has no free slot", w->stage);
}

/* Lists the parts of the input in order of samples; returns their number. */
static size_t list_pieces(const gt_pipe_region *region, const gt_pipe_worker *w,
                          const gt_pipe_side *side) {
  gt_pipe_input *pieces = region->pieces;
  const gt_pipe_place *place = &region->layout->places[w->stage];
  if (side->away) {
    pieces[0] = (gt_pipe_input){.landed = true,
                                .worker = place->first_worker + w->replica,
                                .buffer = gt_pipe_held_buffer(side, w->input),
                                .count = region->layout->micro_samples / place->workers};
    return 1;
  }
  for (size_t j = 0; j < side->npeers; j++)
    pieces[j] = (gt_pipe_input){.worker = side->peers[j].worker,
                                .buffer = w->input->of[j] - 1,
                                .at = side->peers[j].there,
                                .first = side->peers[j].here,
                                .count = side->peers[j].count};
  return side->npeers;
}

static bool first_weights(gt_pipe_worker *w, size_t chunk, gt_pass_kind kind) {
  if ((kind != GT_PASS_W && kind != GT_PASS_BW) || w->weighed[chunk]) return false;
  w->weighed[chunk] = true;
  return true;
}

static bool all_begun(const gt_pipe_region *region, const gt_pipe_worker *w) {
  if (w->forward_micro_batches == 0)
    return w->progress.counter == region->schedule->lists[w->stage].n;
  for (size_t c = 0; c < region->layout->chunks; c++)
    if (w->next[c] < w->forward_micro_batches) return false;
  return true;
}

static void begin(gt_pipe_region *region, size_t worker, const gt_pass *pass) {
  gt_pipe_worker *w = &region->workers[worker];
  const size_t chunk = chunk_of(region, pass);
  gt_pipe_side *in = side_of(region, w->in, pass), *out = side_of(region, w->out, pass);
  w->busy = true;
  w->pass = *pass;
  w->input = in ? gt_pipe_held_of(in, w->step, pass->micro) : NULL;
  w->output = out ? gt_pipe_held_take(out, w->step, pass->micro) : NULL;
  if (w->output) w->output->forward_only = w->forward_micro_batches > 0;
  if (w->forward_micro_batches > 0)
    w->next[chunk]++;
  else
    gt_pipe_begun(&w->progress);
  if (pass->kind == GT_PASS_F) *slot_of(region, w, pass) = take_slot(region, w);
  w->slot = *slot_of(region, w, pass);
  const gt_pipe_order order = {.kind = pass->kind,
                               .span = pass->span,
                               .micro = pass->micro,
                               .chunk = chunk,
                               .step = w->step,
                               .forward_only = w->forward_micro_batches > 0,
                               .slot = w->slot,
                               .first = first_weights(w, chunk, pass->kind),
                               .last = all_begun(region, w),
                               .pieces = region->pieces,
                               .npieces = in ? list_pieces(region, w, in) : 0,
                               .out = out ? gt_pipe_held_buffer(out, w->output) : GT_PIPE_NONE};
  region->host.pass(region->host.ctx, worker, &order);
}

static void end_pass(gt_pipe_region *region, gt_pipe_worker *w) {
  const gt_pass *pass = &w->pass;
  w->busy = false;
  end_flow(region, w);
  if (pass->kind == GT_PASS_F && chunk_of(region, pass) == 0) w->ended++;
  if (pass->kind != GT_PASS_W && pass->kind != GT_PASS_BW && w->forward_micro_batches == 0) return;
  w->taken[w->slot] = false;
  *slot_of(region, w, pass) = GT_PIPE_NONE;
}

/* True if all outputs of an evaluation have been read; each is kept until then. */
static bool all_read(const gt_pipe_region *region, const gt_pipe_worker *w) {
  for (size_t c = 0; w->forward_micro_batches > 0 && c < region->layout->chunks; c++)
    for (size_t i = 0; i < w->out[c].count; i++)
      if (w->out[c].held[i].used && w->out[c].held[i].step == w->step) return false;
  return true;
}

/* Starts the next pass of every idle worker, in the order of the workers. */
static void go_on(gt_pipe_region *region) {
  for (size_t i = 0; i < region->nworkers; i++) {
    gt_pipe_worker *w = &region->workers[i];
    gt_pass pass;
    if (!w->runs || w->busy) continue;
    if (w->forward_micro_batches > 0 ? next_forward(region, w, &pass)
                                     : next_of_list(region, w, &pass)) {
      begin(region, i, &pass);
    } else if (all_begun(region, w) && all_read(region, w)) {
      w->runs = false;
      if (w->forward_micro_batches == 0) gt_pipe_next_step(&w->progress);
      region->host.ended(region->host.ctx, i);
    }
  }
}

/* ---- events ---------------------------------------------------------------------------------- */

static gt_status find_worker(const gt_pipe_region *region, size_t worker) {
  if (worker < region->nworkers && region->workers[worker].stage != GT_PIPE_NONE) return GT_OK;
  return GT_FAIL(GT_ERR_FAULT, "worker %zu of region %zu has no stage of the pipeline", worker,
                 region->self);
}

/* Checks that packets that have arrived for this step are of its kind. */
static gt_status check_early(const gt_pipe_region *region, size_t worker, int64_t step,
                             size_t forward_micro_batches) {
  const gt_pipe_side *side = &region->workers[worker].in[0];
  for (size_t i = 0; i < side->count; i++) {
    const gt_pipe_held *held = &side->held[i];
    if (!held->used || held->step != step) continue;
    if (held->forward_only != (forward_micro_batches > 0))
      return GT_FAIL(
          GT_ERR_FAULT,
          "step %lld is %s for worker %zu of region %zu; stage %zu has it "
          "as %s",
          (long long)step, forward_micro_batches > 0 ? "an evaluation" : "a training step", worker,
          region->self, side->stage, held->forward_only ? "an evaluation" : "a training step");
    if (held->forward_only && held->micro >= forward_micro_batches)
      return GT_FAIL(GT_ERR_FAULT,
                     "step %lld is an evaluation of %zu micro-batches for worker %zu of region "
                     "%zu; stage %zu has sent micro-batch %u",
                     (long long)step, forward_micro_batches, worker, region->self, side->stage,
                     held->micro);
  }
  return GT_OK;
}

gt_status gt_pipe_region_step(gt_pipe_region *region, size_t worker, int64_t step,
                              size_t forward_micro_batches) {
  GT_TRY(find_worker(region, worker));
  gt_pipe_worker *w = &region->workers[worker];
  if (w->runs || step != w->step + 1)
    return GT_FAIL(GT_ERR_FAULT, "worker %zu of region %zu cannot begin step %lld: it has %s %lld",
                   worker, region->self, (long long)step, w->runs ? "not ended" : "ended",
                   (long long)w->step);
  if (forward_micro_batches > region->forward_micro_batches)
    return GT_FAIL(GT_ERR_FAULT,
                   "step %lld is an evaluation of %zu micro-batches; expected at most %zu",
                   (long long)step, forward_micro_batches, region->forward_micro_batches);
  GT_TRY(check_early(region, worker, step, forward_micro_batches));
  w->step = step;
  w->runs = true;
  w->forward_micro_batches = forward_micro_batches;
  w->ended = 0;
  for (size_t c = 0; c < region->layout->chunks; c++) {
    w->next[c] = 0;
    w->weighed[c] = false;
  }
  go_on(region);
  return GT_OK;
}

gt_status gt_pipe_region_done(gt_pipe_region *region, size_t worker) {
  GT_TRY(find_worker(region, worker));
  gt_pipe_worker *w = &region->workers[worker];
  if (!w->busy)
    return GT_FAIL(GT_ERR_FAULT, "worker %zu of region %zu has ended a pass, but runs none", worker,
                   region->self);
  end_pass(region, w);
  go_on(region);
  return GT_OK;
}

gt_status gt_pipe_region_message(gt_pipe_region *region, gt_pipe_packet *packet) {
  gt_pipe_packet_route route;
  GT_TRY(gt_pipe_packet_check(region, packet, &route));
  packet->buffer = GT_PIPE_NONE;
  packet->at = 0;
  if (packet->forward_only && packet->gradient) {
    gt_pipe_held *held = gt_pipe_held_of(route.side, packet->step, packet->micro);
    held->of[route.peer] = 1;
    read_once(held);
  } else {
    gt_pipe_held *held = input_of(route.side, packet->step, packet->micro, packet->forward_only);
    packet->buffer = gt_pipe_held_buffer(route.side, held);
    packet->at = route.side->peers[route.peer].here;
    region->host.land(region->host.ctx, packet);
    take_part(region, route.worker, packet->gradient * region->layout->chunks + route.chunk, held,
              route.peer, 0);
  }
  go_on(region);
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
  go_on(region);
  return GT_OK;
}

/* Checks another order.  A span has at most as many outstanding micro-batches as slots, so that all
   buffers suffice. */
static gt_status check_schedule(const gt_pipe_region *region, const gt_pipe_schedule *schedule) {
  const gt_pipe_layout *l = region->layout;
  if (!l->adapts || schedule->stages != l->stages || schedule->chunks != l->chunks ||
      schedule->micro_batches != l->micro_batches)
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
          GT_ERR_FAULT, "worker %zu of region %zu cannot continue with step %lld: it has %s %lld",
          i, region->self, (long long)step, w->runs ? "not ended" : "ended", (long long)w->step);
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
                        .slot_of = GT_NEW_ARRAY(size_t, l->chunks * l->micro_batches)};
  for (size_t i = 0; i < l->chunks * l->micro_batches; i++) w->slot_of[i] = GT_PIPE_NONE;
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
  region->pieces = GT_NEW_ARRAY(gt_pipe_input, most);
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
  region->forward_micro_batches = spec->forward_micro_batches;
  region->stride =
      more(spec->stride, more(spec->forward_micro_batches, spec->layout->micro_batches));
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

/* ---- a worker as text ------------------------------------------------------------------------ */

static void name_worker(const gt_pipe_region *region, const gt_pipe_worker *w, char *who) {
  const gt_pipe_place *place = &region->layout->places[w->stage];
  if (place->workers == 1)
    snprintf(who, WHO_MAX, "stage %zu", w->stage);
  else
    snprintf(who, WHO_MAX, "worker %zu of stage %zu", place->first_worker + w->replica, w->stage);
}

/* Writes the input of a micro-batch; with one chunk without the span. */
static void say_input(const gt_pipe_region *region, const gt_pipe_worker *w, bool gradient,
                      size_t chunk, size_t micro, char *text, size_t size) {
  const gt_pipe_layout *l = region->layout;
  char who[WHO_MAX], span[WHO_MAX] = "";
  name_worker(region, w, who);
  if (l->chunks > 1)
    snprintf(span, sizeof span, " for span %zu", gt_pipe_span_of(l->stages, chunk, w->stage));
  snprintf(text, size, "%s waits for the %s of micro-batch %zu%s from stage %zu", who,
           gradient ? "gradient" : "activation", micro, span,
           w->in[gradient * l->chunks + chunk].stage);
}

static void say_room(const gt_pipe_region *region, const gt_pipe_worker *w, const gt_pass *pass,
                     char *text, size_t size) {
  char who[WHO_MAX];
  name_worker(region, w, who);
  snprintf(text, size, "%s waits for a free buffer for the output of %s of span %u, micro-batch %u",
           who, gt_pass_names[pass->kind], pass->span, pass->micro);
}

static void say_evaluation(const gt_pipe_region *region, const gt_pipe_worker *w, char *text,
                           size_t size) {
  const gt_pipe_layout *l = region->layout;
  char who[WHO_MAX];
  for (size_t c = 0; c < l->chunks; c++) {
    if (w->next[c] >= w->forward_micro_batches) continue;
    const gt_pipe_held *held =
        w->in[c].there ? gt_pipe_held_of(&w->in[c], w->step, w->next[c]) : NULL;
    const gt_pass pass = {GT_PASS_F, (uint32_t)gt_pipe_span_of(l->stages, c, w->stage), w->next[c]};
    if (w->in[c].there && (!held || held->waits > 0))
      say_input(region, w, false, c, w->next[c], text, size);
    else
      say_room(region, w, &pass, text, size);
    return;
  }
  name_worker(region, w, who);
  snprintf(text, size, "%s waits until its outputs have been read", who);
}

char *gt_pipe_region_text(const gt_pipe_region *region, size_t worker, char *text, size_t size) {
  const gt_pipe_worker *w = worker < region->nworkers ? &region->workers[worker] : NULL;
  char who[WHO_MAX];
  gt_pipe_message message;
  if (!w || w->stage == GT_PIPE_NONE) {
    snprintf(text, size, "worker %zu has no stage", worker);
    return text;
  }
  const gt_pipe_list *list = &region->schedule->lists[w->stage];
  name_worker(region, w, who);
  if (!w->runs) {
    snprintf(text, size, "%s waits for step %lld to begin", who, (long long)w->step + 1);
  } else if (w->busy) {
    snprintf(text, size, "%s runs %s of span %u, micro-batch %u", who, gt_pass_names[w->pass.kind],
             w->pass.span, w->pass.micro);
  } else if (w->forward_micro_batches > 0) {
    say_evaluation(region, w, text, size);
  } else if (w->progress.counter == list->n) {
    snprintf(text, size, "%s has ended the passes of step %lld", who, (long long)w->step);
  } else {
    const gt_pass *pass = &list->passes[w->progress.counter];
    if (gt_pipe_needs(region->schedule, pass, &message) && !gt_pipe_has(&w->progress, &message))
      say_input(region, w, message.gradient, pass->span / region->layout->stages, pass->micro, text,
                size);
    else
      say_room(region, w, pass, text, size);
  }
  return text;
}
