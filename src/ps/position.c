/* How many steps of each region are in the group's model, for strategies with rounds and local:
   sync: a region that returns continues after them.  Every member counts alike, from the decisions
   about epochs; a region that was away gets the counts with the state of the group. */
#include <string.h>

#include "internal.h"

void gt_ps_position_open(ps_epoch *e, size_t nregions, size_t ranges) {
  e->steps = GT_NEW_ARRAY(int64_t, nregions);
  e->places = GT_NEW_ARRAY(int64_t, nregions);
  e->floors = GT_NEW_ARRAY(int64_t, nregions * ranges + 1);
  e->lasts = GT_NEW_ARRAY(int64_t, nregions * ranges + 1);
}

void gt_ps_position_close(ps_epoch *e) {
  gt_free(e->steps);
  gt_free(e->places);
  gt_free(e->floors);
  gt_free(e->lasts);
}

/* Returns the steps behind the contributions of a region, from when it was taken in to its last one
   in the group's model.  It began within a period, so the first contribution has fewer. */
static int64_t steps_since(const gt_ps *ps, size_t region) {
  const ps_epoch *e = &ps->epoch;
  const size_t ranges = gt_exchange_ranges(ps->exchange);
  const int64_t stride = gt_sync_stride(ps->sync), *floors = e->floors + region * ranges,
                *lasts = e->lasts + region * ranges;
  int64_t contributions = 0;
  for (size_t i = 0; i < ranges; i++)
    if (gt_exchange_has_state(ps->exchange, i) && lasts[i] > floors[i])
      contributions += lasts[i] - floors[i];
  return contributions && stride ? contributions * stride - e->places[region] % stride : 0;
}

/* A round that only a lost region has applied is repeated: a region that was left out before then
   is in it no more, also if it has been taken in since. */
static void undo(gt_ps *ps, const ps_decision *d, size_t region) {
  ps_epoch *e = &ps->epoch;
  const size_t ranges = gt_exchange_ranges(ps->exchange);
  int64_t *lasts = e->lasts + region * ranges;
  for (size_t i = 0; i < ranges; i++) {
    if (lasts[i] <= d->applied[i]) continue;
    if (e->member[region] && gt_exchange_has_state(ps->exchange, i))
      e->steps[region] -= (lasts[i] - d->applied[i]) * gt_sync_stride(ps->sync);
    lasts[i] = d->applied[i];
  }
  if (e->steps[region] < 0) e->steps[region] = 0; /* a first contribution has fewer */
}

/* The region is left out, or is taken in once more. */
static void note_lasts(gt_ps *ps, const ps_decision *d, size_t region) {
  const ps_epoch *e = &ps->epoch;
  const size_t ranges = gt_exchange_ranges(ps->exchange), at = region * ranges;
  for (size_t i = 0; i < ranges; i++)
    if (e->member[region] && d->applied[i] > e->floors[at + i]) e->lasts[at + i] = d->applied[i];
}

void gt_ps_position_note(gt_ps *ps, const ps_decision *d) {
  ps_epoch *e = &ps->epoch;
  const size_t ranges = gt_exchange_ranges(ps->exchange);
  for (size_t r = 0; r < ps->spec.nregions; r++) {
    undo(ps, d, r);
    if (d->members[r] && !d->late[r]) continue;
    note_lasts(ps, d, r);
    if (!d->members[r]) continue;
    e->steps[r] += steps_since(ps, r);
    memcpy(e->floors + r * ranges, d->floor, ranges * sizeof *d->floor);
    e->places[r] = d->place;
  }
}

#define MOST ((int64_t)1 << 40) /* sums and products stay in range */

gt_status gt_ps_position_state(gt_ps *ps, gt_state_direction direction) {
  const ps_epoch *e = &ps->epoch;
  const size_t n = ps->spec.nregions, all = n * gt_exchange_ranges(ps->exchange);
  const gt_state_field fields[] = {{"steps", GT_TYPE_I64, e->steps, n},
                                   {"places", GT_TYPE_I64, e->places, n},
                                   {"floors", GT_TYPE_I64, e->floors, all},
                                   {"lasts", GT_TYPE_I64, e->lasts, all}};
  GT_TRY(GT_STATE_FIELDS(direction, "ps/epoch/", fields));
  for (size_t f = 0; direction.from && f < sizeof fields / sizeof *fields; f++)
    for (size_t i = 0; i < fields[f].count; i++) {
      const int64_t value = ((const int64_t *)fields[f].data)[i];
      if (value < 0 || value > MOST)
        return GT_FAIL(GT_ERR_FAULT, "ps/epoch/%s has %lld; expected 0 or more", fields[f].name,
                       (long long)value);
    }
  return GT_OK;
}

/* Gives back the batches that were being computed; false: they are not the last ones. */
static bool give_back(gt_ps *ps) {
  ps_totals *t = &ps->totals;
  if (t->batches + (int64_t)ps->nreissue != t->next_batch) return false;
  t->next_batch = t->batches;
  ps->nreissue = 0;
  return true;
}

/* Returns the batches of the last step: fewer than workers at the end. */
static int64_t last_step(const gt_ps *ps) {
  const int64_t all = gt_ps_total_batches(ps), workers = (int64_t)ps->spec.nworkers;
  return ps->totals.batches == all && all % workers ? all % workers : workers;
}

static void move_batch(gt_ps *ps, bool back) {
  ps_totals *t = &ps->totals;
  if (back) t->next_batch--;
  const int64_t samples = (int64_t)gt_order_batch_size(&ps->spec.order, t->next_batch);
  if (!back) t->next_batch++;
  t->batches += back ? -1 : 1;
  t->samples += back ? -samples : samples;
}

void gt_ps_position_take(gt_ps *ps) {
  ps_totals *t = &ps->totals;
  const int64_t steps = ps->epoch.steps[ps->spec.self];
  const bool knows = gt_sync_stride(ps->sync) > 0 && !ps->spec.local_async && ps->spec.nworkers > 0;
  if (!knows || ps->phase != GT_PS_TRAINING || !give_back(ps)) return;
  const int64_t before = t->samples;
  for (; t->steps > steps && t->next_batch > 0; t->steps--)
    for (int64_t n = last_step(ps); n > 0 && t->next_batch > 0; n--) move_batch(ps, true);
  for (; t->steps < steps && gt_ps_may_issue(ps); t->steps++) {
    for (size_t w = 0; w < ps->spec.nworkers && gt_ps_may_issue(ps); w++) move_batch(ps, false);
    if (!ps->sync->ops->lockstep) gt_optim_count(ps->spec.optim);
  }
  ps->moved_samples += t->samples - before;
  ps->steps_at_round = t->steps;
  ps->samples_at_round = t->samples;
  t->evals = gt_ps_evals_due(ps); /* those of the steps that it leaves out are not made */
}
