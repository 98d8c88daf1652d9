/* A pipeline in a run: its checks, and the number of buffers of its workers. */
#include "region.h"

void gt_pipe_layout_close(gt_pipe_layout *layout) {
  if (!layout) return;
  gt_free(layout->places);
  gt_free(layout->output_bytes);
  gt_free(layout->slots);
  gt_pipe_schedule_close(layout->schedule);
  *layout = (gt_pipe_layout){0};
}

/* ---- checks ---------------------------------------------------------------------------------- */

static gt_status check_place(const gt_pipe_layout *l, size_t s) {
  const gt_pipe_place *place = &l->places[s];
  if (place->region >= l->nregions)
    return GT_FAIL(GT_ERR_JOB, "stage %zu is in region %zu; expected a number below %zu", s,
                   place->region, l->nregions);
  if (place->workers < 1 || l->micro_samples % place->workers)
    return GT_FAIL(GT_ERR_JOB,
                   "stage %zu has %zu workers for %zu samples of a micro-batch; expected a number "
                   "that divides them",
                   s, place->workers, l->micro_samples);
  for (size_t t = 0; t < s; t++) {
    const gt_pipe_place *other = &l->places[t];
    if (other->region == place->region &&
        place->first_worker < other->first_worker + other->workers &&
        other->first_worker < place->first_worker + place->workers)
      return GT_FAIL(GT_ERR_JOB, "stages %zu and %zu share a worker of region %zu", t, s,
                     place->region);
  }
  if (l->slots[s] < gt_pipe_slots(l->schedule, s))
    return GT_FAIL(GT_ERR_JOB, "stage %zu has %zu slots; its schedule needs %zu", s, l->slots[s],
                   gt_pipe_slots(l->schedule, s));
  return GT_OK;
}

gt_status gt_pipe_layout_check(const gt_pipe_layout *layout) {
  const gt_pipe_schedule *s = layout->schedule;
  if (s->stages != layout->stages || s->chunks != layout->chunks ||
      s->micro_batches != layout->micro_batches || s->stages < 1 || s->chunks < 1 ||
      s->micro_batches < 1)
    return GT_FAIL(GT_ERR_JOB,
                   "the schedule is for %zu stages of %zu chunks and %zu micro-batches; the layout "
                   "has %zu of %zu and %zu",
                   s->stages, s->chunks, s->micro_batches, layout->stages, layout->chunks,
                   layout->micro_batches);
  if (layout->micro_samples < 1) return GT_FAIL(GT_ERR_JOB, "a micro-batch has no samples");
  GT_TRY(gt_pipe_check_order(s));
  for (size_t i = 0; i < layout->stages; i++) GT_TRY(check_place(layout, i));
  return GT_OK;
}

size_t gt_pipe_sample_bytes(const gt_pipe_layout *l, size_t span, bool gradient) {
  return l->output_bytes[span] + (gradient ? 0 : l->label_bytes);
}

size_t gt_pipe_stage_at(const gt_pipe_layout *l, size_t region, size_t worker) {
  for (size_t s = 0; s < l->stages; s++) {
    const gt_pipe_place *p = &l->places[s];
    if (p->region == region && worker >= p->first_worker && worker < p->first_worker + p->workers)
      return s;
  }
  gt_bug("worker %zu of region %zu has no stage", worker, region);
}

/* ---- micro-batches of a worker --------------------------------------------------------------- */

size_t gt_pipe_slots(const gt_pipe_schedule *schedule, size_t stage) {
  const gt_pipe_list *list = &schedule->lists[stage];
  size_t held = 0, peak = 0;
  for (size_t i = 0; i < list->n; i++) {
    const gt_pass_kind kind = list->passes[i].kind;
    if (kind == GT_PASS_F && ++held > peak) peak = held;
    if (kind == GT_PASS_W || kind == GT_PASS_BW) held--;
  }
  return peak;
}

size_t gt_pipe_outstanding(const gt_pipe_schedule *schedule, size_t span) {
  const gt_pipe_list *list = &schedule->lists[gt_pipe_stage_of(schedule->stages, span)];
  size_t held = 0, peak = 0;
  for (size_t i = 0; i < list->n; i++) {
    const gt_pass *pass = &list->passes[i];
    if (pass->span != span) continue;
    if (pass->kind == GT_PASS_F && ++held > peak) peak = held;
    if (pass->kind == GT_PASS_B || pass->kind == GT_PASS_BW) held--;
  }
  return peak;
}

size_t gt_pipe_outstanding_most(const gt_pipe_layout *layout, size_t span) {
  if (!layout->adapts) return gt_pipe_outstanding(layout->schedule, span);
  const size_t slots = layout->slots[gt_pipe_stage_of(layout->stages, span)];
  return slots < layout->micro_batches ? slots : layout->micro_batches;
}

/* ---- buffers --------------------------------------------------------------------------------- */

bool gt_pipe_next_span(const gt_pipe_layout *layout, size_t span, bool ahead, size_t *next) {
  if (ahead ? span + 1 >= layout->stages * layout->chunks : span == 0) return false;
  *next = ahead ? span + 1 : span - 1;
  return true;
}

/* Returns the buffers of one chunk and direction; first is 0.  ahead: for the next span.

   Proof that they suffice.  Let a worker r of span k and a worker r' of span k + 1 share samples;
   the workers of a stage run the same list.  A micro-batch is outstanding at r from the start of
   its F of span k to the end of its B; a list has at most n = gt_pipe_outstanding(k) at a time.
   - B at r requires the gradients of all such r', which follow their F.  Hence an output of r has
     been read (in its region) or has left and arrived (in another) while it is outstanding: r uses
     at most n out buffers.
   - Outputs that F of r' has not read: of the workers r, the most advanced has started F of all of
     them and can have ended B of none: at most n landing buffers.
   - A gradient that r' has started to compute and that some r has not read is outstanding there; of
     the workers r, the last one has all of them: at most n out buffers at r', and n landing buffers
     at r.
   Steps do not add up: r ends a step when it has ended all B, so that all r' have ended all F of it
   and have free landing buffers for the next outputs of r; and r' starts B of a step only after all
   r have started that step, and have therefore read all gradients of the step before.
   In an evaluation r keeps an output until all r' have read it (other regions confirm by an empty
   packet), and a worker has ended when all its outputs have been read.  r starts micro-batches in
   order, at most n that have unread outputs: packets for r' are within n micro-batches from the
   first one that r' has not read. */
static gt_pipe_buffers buffers_of(const gt_pipe_layout *layout, size_t stage, size_t chunk,
                                  bool ahead, bool landing) {
  const bool gradient = ahead == landing;
  const size_t span = gt_pipe_span_of(layout->stages, chunk, stage);
  const gt_pipe_place *here = &layout->places[stage];
  size_t next;
  if (!gt_pipe_next_span(layout, span, ahead, &next)) return (gt_pipe_buffers){0};
  if (landing && layout->places[gt_pipe_stage_of(layout->stages, next)].region == here->region)
    return (gt_pipe_buffers){0};
  const size_t lower = ahead ? span : next;
  return (gt_pipe_buffers){.count = gt_pipe_outstanding_most(layout, lower),
                           .bytes = layout->micro_samples / here->workers *
                                    gt_pipe_sample_bytes(layout, lower, gradient)};
}

/* Returns the q-th kind of a worker's buffers: outputs precede gradients, lower chunks precede
   higher ones. */
static gt_pipe_buffers buffers_nth(const gt_pipe_layout *layout, size_t stage, size_t q,
                                   bool landing) {
  const bool gradient = q >= layout->chunks;
  return buffers_of(layout, stage, gradient ? q - layout->chunks : q, gradient == landing, landing);
}

static gt_pipe_buffers buffers_at(const gt_pipe_layout *layout, size_t stage, size_t chunk,
                                  bool gradient, bool landing) {
  const size_t nth = gradient * layout->chunks + chunk;
  gt_pipe_buffers b = buffers_nth(layout, stage, nth, landing);
  for (size_t q = 0; q < nth; q++) b.first += buffers_nth(layout, stage, q, landing).count;
  return b;
}

gt_pipe_buffers gt_pipe_out_buffers(const gt_pipe_layout *layout, size_t stage, size_t chunk,
                                    bool gradient) {
  return buffers_at(layout, stage, chunk, gradient, false);
}

gt_pipe_buffers gt_pipe_landing_buffers(const gt_pipe_layout *layout, size_t stage, size_t chunk,
                                        bool gradient) {
  return buffers_at(layout, stage, chunk, gradient, true);
}

static gt_pipe_buffers all_of(const gt_pipe_layout *layout, size_t stage, bool landing) {
  gt_pipe_buffers all = {0};
  for (size_t q = 0; q < 2 * layout->chunks; q++) {
    const gt_pipe_buffers b = buffers_nth(layout, stage, q, landing);
    all.count += b.count;
    all.bytes += b.count * b.bytes;
  }
  return all;
}

gt_pipe_buffers gt_pipe_out_all(const gt_pipe_layout *layout, size_t stage) {
  return all_of(layout, stage, false);
}

gt_pipe_buffers gt_pipe_landing_all(const gt_pipe_layout *layout, size_t stage) {
  return all_of(layout, stage, true);
}
