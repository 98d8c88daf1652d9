/* Which passes the workers of a region begin, in which slots. */
#include "region.h"

/* In an evaluation: of the passes whose input is there, that of the latest chunk, whose output may
   go.  What it waits for is not held up by earlier chunks, so there is always a pass that can run
   somewhere. */
static bool next_forward(gt_pipe_region *region, gt_pipe_worker *w, gt_pass *pass) {
  const gt_pipe_layout *l = region->layout;
  for (size_t c = l->chunks; c-- > 0;) {
    if (w->next[c] >= w->forward_micros) continue;
    *pass = (gt_pass){GT_PASS_F, (uint32_t)gt_pipe_span_of(l->stages, c, w->stage), w->next[c]};
    const gt_pipe_held *held = gt_pipe_held_of(&w->in[c], w->step, w->next[c]);
    if (w->in[c].there && (!held || held->waits > 0)) continue;
    if (!w->out[c].there || gt_pipe_held_room(&w->out[c])) return true;
  }
  return false;
}

/* A training step's: the next of the list, as soon as its input is there and its output may go. */
static bool next_of_list(gt_pipe_region *region, gt_pipe_worker *w, gt_pass *pass) {
  const gt_pass *next = gt_pipe_next(&w->progress);
  if (!next) return false;
  const gt_pipe_side *out = gt_pipe_side_of(region, w->out, next);
  const bool stalled = out && !gt_pipe_held_room(out);
  region->stalls += stalled && !w->stalled;
  w->stalled = stalled;
  *pass = *next;
  return !stalled;
}

/* Where the slot of a span and micro-batch stands.  In an evaluation there is one at a time. */
static size_t *slot_of(const gt_pipe_region *region, gt_pipe_worker *w, const gt_pass *pass) {
  const size_t micro = w->forward_micros > 0 ? 0 : pass->micro;
  return &w->slot_of[gt_pipe_chunk_of(region, pass) * region->layout->micros + micro];
}

static size_t take_slot(const gt_pipe_region *region, gt_pipe_worker *w) {
  for (size_t i = 0; i < region->layout->slots[w->stage]; i++)
    if (!w->taken[i]) {
      w->taken[i] = true;
      return i;
    }
  gt_bug("pipe: stage %zu has no free slot", w->stage);
}

/* Parts of the input, in order of samples; returns how many. */
static size_t list_pieces(const gt_pipe_region *region, const gt_pipe_worker *w,
                          const gt_pipe_side *side) {
  gt_pipe_piece *pieces = region->pieces;
  const gt_pipe_place *place = &region->layout->places[w->stage];
  if (side->away) {
    pieces[0] = (gt_pipe_piece){.landed = true,
                                .worker = place->first_worker + w->replica,
                                .buffer = gt_pipe_held_buffer(side, w->input),
                                .count = region->layout->micro_samples / place->workers};
    return 1;
  }
  for (size_t j = 0; j < side->npeers; j++)
    pieces[j] = (gt_pipe_piece){.worker = side->peers[j].worker,
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
  if (w->forward_micros == 0) return w->progress.counter == region->schedule->lists[w->stage].n;
  for (size_t c = 0; c < region->layout->chunks; c++)
    if (w->next[c] < w->forward_micros) return false;
  return true;
}

static void begin(gt_pipe_region *region, size_t worker, const gt_pass *pass) {
  gt_pipe_worker *w = &region->workers[worker];
  const size_t chunk = gt_pipe_chunk_of(region, pass);
  gt_pipe_side *in = gt_pipe_side_of(region, w->in, pass),
               *out = gt_pipe_side_of(region, w->out, pass);
  w->busy = true;
  w->pass = *pass;
  w->input = in ? gt_pipe_held_of(in, w->step, pass->micro) : NULL;
  w->output = out ? gt_pipe_held_take(out, w->step, pass->micro) : NULL;
  if (w->output) w->output->forward_only = w->forward_micros > 0;
  if (w->forward_micros > 0)
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
                               .forward_only = w->forward_micros > 0,
                               .slot = w->slot,
                               .first = first_weights(w, chunk, pass->kind),
                               .last = all_begun(region, w),
                               .pieces = region->pieces,
                               .npieces = in ? list_pieces(region, w, in) : 0,
                               .out = out ? gt_pipe_held_buffer(out, w->output) : GT_PIPE_NONE};
  region->host.pass(region->host.ctx, worker, &order);
}

void gt_pipe_pass_end(gt_pipe_region *region, gt_pipe_worker *w) {
  const gt_pass *pass = &w->pass;
  w->busy = false;
  gt_pipe_flow_end(region, w);
  if (pass->kind == GT_PASS_F && gt_pipe_chunk_of(region, pass) == 0) w->ended++;
  if (pass->kind != GT_PASS_W && pass->kind != GT_PASS_BW && w->forward_micros == 0) return;
  w->taken[w->slot] = false;
  *slot_of(region, w, pass) = GT_PIPE_NONE;
}

/* An output of an evaluation is held until it has been read. */
static bool all_read(const gt_pipe_region *region, const gt_pipe_worker *w) {
  for (size_t c = 0; w->forward_micros > 0 && c < region->layout->chunks; c++)
    for (size_t i = 0; i < w->out[c].count; i++)
      if (w->out[c].held[i].used && w->out[c].held[i].step == w->step) return false;
  return true;
}

void gt_pipe_go_on(gt_pipe_region *region) {
  for (size_t i = 0; i < region->nworkers; i++) {
    gt_pipe_worker *w = &region->workers[i];
    gt_pass pass;
    if (!w->runs || w->busy) continue;
    if (w->forward_micros > 0 ? next_forward(region, w, &pass) : next_of_list(region, w, &pass)) {
      begin(region, i, &pass);
    } else if (all_begun(region, w) && all_read(region, w)) {
      w->runs = false;
      if (w->forward_micros == 0) gt_pipe_next_step(&w->progress);
      region->host.ended(region->host.ctx, i);
    }
  }
}
