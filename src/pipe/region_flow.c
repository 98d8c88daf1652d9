/* What passes read and write: between workers of the region, and to other regions. */
#include "region.h"

size_t gt_pipe_chunk_of(const gt_pipe_region *region, const gt_pass *pass) {
  return pass->span / region->layout->stages;
}

gt_pipe_side *gt_pipe_side_of(const gt_pipe_region *region, gt_pipe_side *sides,
                              const gt_pass *pass) {
  const size_t q =
      (pass->kind != GT_PASS_F) * region->layout->chunks + gt_pipe_chunk_of(region, pass);
  return pass->kind != GT_PASS_W && sides[q].there ? &sides[q] : NULL;
}

void gt_pipe_held_read(gt_pipe_held *held) {
  held->waits--;
  gt_pipe_held_settle(held);
}

void gt_pipe_input_part(gt_pipe_region *region, gt_pipe_worker *w, size_t q, gt_pipe_held *held,
                        size_t peer, size_t buffer) {
  const gt_pipe_layout *l = region->layout;
  held->of[peer] = 1 + buffer;
  if (--held->waits > 0 || held->forward_only) return;
  const gt_pipe_message message = {
      q >= l->chunks, (uint32_t)gt_pipe_span_of(l->stages, q % l->chunks, w->stage), held->micro};
  gt_pipe_arrived(&w->progress, &message);
}

gt_pipe_held *gt_pipe_input(gt_pipe_side *side, int64_t step, uint32_t micro, bool forward_only) {
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
  gt_pipe_held *held = gt_pipe_input(in, w->step, w->pass.micro, w->forward_micros > 0);
  if (!held)
    gt_bug("pipe: stage %zu holds more inputs of span %zu than its schedule can leave unread",
           reader->stage, side->span);
  gt_pipe_input_part(region, reader, q, held, w->replica - in->replica, buffer);
}

/* To a worker of another region; without a buffer, that its output has been read. */
static void send(gt_pipe_region *region, const gt_pipe_worker *w, const gt_pipe_side *side,
                 const gt_pipe_peer *to, size_t buffer) {
  const gt_pipe_layout *l = region->layout;
  const bool empty = buffer == GT_PIPE_NONE, gradient = w->pass.span > side->span,
             forward_only = w->forward_micros > 0;
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

/* The pass has read its input. */
static void end_input(gt_pipe_region *region, gt_pipe_worker *w, const gt_pipe_side *side) {
  gt_pipe_held *input = w->input;
  for (size_t j = 0; j < side->npeers; j++) {
    const gt_pipe_peer *from = &side->peers[j];
    if (!side->away)
      gt_pipe_held_read(gt_pipe_held_out(region, &region->workers[from->worker], input->of[j] - 1));
    else if (input->forward_only)
      send(region, w, side, from, GT_PIPE_NONE);
  }
  input->used = false;
}

/* The pass has written its output. */
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

void gt_pipe_flow_end(gt_pipe_region *region, gt_pipe_worker *w) {
  if (w->output) end_output(region, w, gt_pipe_side_of(region, w->out, &w->pass));
  if (w->input) end_input(region, w, gt_pipe_side_of(region, w->in, &w->pass));
}
