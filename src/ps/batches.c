/* Batch numbers of the region's seeded order: each is issued once, and again if no gradient comes
   back. */
#include <math.h>
#include <string.h>

#include "internal.h"

/* Returns the batches that `until: {epochs}` requires; 0 if training ends otherwise. */
int64_t gt_ps_total_batches(const gt_ps *ps) {
  double epochs = ps->spec.until.epochs;
  return epochs > 0
             ? (int64_t)ceil(epochs * (double)gt_order_batches_per_epoch(&ps->spec.order) - 1e-9)
             : 0;
}

/* Returns the number of workers with a batch, and the samples in their batches. */
static int64_t in_progress(const gt_ps *ps, int64_t *samples) {
  int64_t n = 0;
  *samples = 0;
  for (size_t w = 0; w < ps->spec.nworkers; w++)
    if (ps->workers[w].has_batch) {
      n++;
      *samples += (int64_t)gt_order_batch_size(&ps->spec.order, ps->workers[w].batch);
    }
  return n;
}

bool gt_ps_may_issue(const gt_ps *ps) {
  const gt_ps_interval *until = &ps->spec.until;
  if (ps->phase != GT_PS_TRAINING || ps->spec.nworkers == 0 || gt_ps_gave_up(ps)) return false;
  if (until->epochs > 0) return ps->nreissue > 0 || ps->totals.next_batch < gt_ps_total_batches(ps);
  if (until->steps > 0 && !ps->spec.local_async) return ps->totals.steps < until->steps;
  int64_t samples, batches = in_progress(ps, &samples);
  if (until->steps > 0) return ps->totals.steps + batches < until->steps;
  return ps->totals.samples + samples < until->samples;
}

int64_t gt_ps_take_number(gt_ps *ps) {
  if (ps->nreissue == 0) return ps->totals.next_batch++;
  int64_t number = ps->reissue[0];
  memmove(ps->reissue, ps->reissue + 1, --ps->nreissue * sizeof *ps->reissue);
  return number;
}

double gt_ps_share_done(const gt_ps *ps) {
  const gt_ps_interval *until = &ps->spec.until;
  if (ps->phase != GT_PS_TRAINING && ps->phase != GT_PS_STOPPED) return 1;
  if (until->epochs > 0) return (double)ps->totals.batches / (double)gt_ps_total_batches(ps);
  if (until->steps > 0) return (double)ps->totals.steps / (double)until->steps;
  return fmin(1, (double)ps->totals.samples / (double)until->samples);
}

int64_t gt_ps_steps_left(const gt_ps *ps) {
  const gt_ps_interval *until = &ps->spec.until;
  double batches;
  if (ps->phase != GT_PS_TRAINING) return 0;
  if (until->steps > 0)
    return until->steps > ps->totals.steps ? until->steps - ps->totals.steps : 0;
  if (until->epochs > 0)
    batches =
        (double)ps->nreissue + fmax(0, (double)(gt_ps_total_batches(ps) - ps->totals.next_batch));
  else
    batches = fmax(0, (double)(until->samples - ps->totals.samples) / (double)ps->spec.order.batch);
  return (int64_t)ceil(ps->spec.local_async ? batches : batches / (double)ps->spec.nworkers);
}
