/* Skips time in a simulation that would repeat earlier time: counts advance, and messages in flight
   stay the same. */
#include <math.h>

#include "geotrain/ps_skip.h"
#include "internal.h"

#define CHUNKS_MIN 16 /* per worker, so that the time of a chunk is exact enough */

/* ---- limits ---------------------------------------------------------------------------------- */

static double progress(const gt_ps_interval *by, const gt_ps_view *v) {
  return by->epochs > 0  ? (double)v->batches
         : by->steps > 0 ? (double)v->steps
                         : (double)v->samples;
}

/* Converts batches to the interval's unit. */
static double in_unit(const gt_ps *ps, const gt_ps_interval *by, double batches) {
  return by->epochs > 0 || by->steps > 0 ? batches : batches * (double)ps->spec.order.batch;
}

static double end_of(const gt_ps *ps) {
  const gt_ps_interval *until = &ps->spec.until;
  return until->epochs > 0  ? (double)gt_ps_total_batches(ps)
         : until->steps > 0 ? (double)until->steps
                            : (double)until->samples;
}

static double next_evaluation(const gt_ps *ps) {
  const gt_ps_interval *every = &ps->spec.eval_every;
  double number = (double)gt_ps_evals_due(ps) + 1;
  if (every->epochs > 0)
    return number * every->epochs * (double)gt_order_batches_per_epoch(&ps->spec.order);
  return number * (every->steps > 0 ? (double)every->steps : (double)every->samples);
}

static double times(double left, double each) {
  return each > 0 ? fmax(0, floor(left / each)) : INFINITY;
}

static bool evaluates(const gt_ps *ps) {
  const gt_ps_interval *every = &ps->spec.eval_every;
  return ps->spec.test_samples > 0 && (every->epochs > 0 || every->steps > 0 || every->samples > 0);
}

bool gt_ps_chunks_repeat(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to) {
  return ps->eval.active && to->chunks - from->chunks >= (int64_t)(CHUNKS_MIN * ps->spec.nworkers);
}

/* The last chunks of an evaluation in progress are always simulated. */
static double chunks_left(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to) {
  if (!gt_ps_chunks_repeat(ps, from, to)) return INFINITY;
  return times((double)(ps->eval.chunks - ps->eval.given) - 2 * (double)ps->spec.nworkers,
               (double)(to->chunks - from->chunks));
}

double gt_ps_repeats(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to,
                     bool evaluations) {
  const gt_ps_interval *until = &ps->spec.until, *every = &ps->spec.eval_every;
  double workers = (double)ps->spec.nworkers,
         near =
             (double)ps->spec.options.period * (ps->spec.local_async ? 1 : workers) + 2 * workers;
  if (ps->phase != GT_PS_TRAINING) return INFINITY;
  double n = times(end_of(ps) - progress(until, to) - in_unit(ps, until, near),
                   progress(until, to) - progress(until, from));
  if (!evaluations || !evaluates(ps)) return n;
  n = fmin(n, chunks_left(ps, from, to));
  return fmin(n, times(next_evaluation(ps) - progress(every, to) - in_unit(ps, every, 2 * workers),
                       progress(every, to) - progress(every, from)));
}

double gt_ps_evaluations_left(const gt_ps *ps) {
  if (ps->phase != GT_PS_TRAINING || !evaluates(ps)) return 0;
  double done = fmax(gt_ps_share_done(ps), 1e-9), made = (double)gt_ps_evals_due(ps);
  gt_ps_view v;
  gt_ps_get_view(ps, ps->now, &v);
  double each = next_evaluation(ps) / (made + 1),
         all = progress(&ps->spec.eval_every, &v) / done / each;
  return fmax(0, floor(all - 1e-9) - made);
}

double gt_ps_evaluations_at(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to,
                            double n) {
  const gt_ps_interval *every = &ps->spec.eval_every;
  if (!evaluates(ps)) return 0;
  double each = next_evaluation(ps) / ((double)gt_ps_evals_due(ps) + 1), x = progress(every, to);
  return floor((x + n * (x - progress(every, from))) / each + 1e-9);
}

/* ---- skipping -------------------------------------------------------------------------------- */

void gt_ps_skip(gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to, int64_t n, gt_ns gone) {
  ps_totals *t = &ps->totals;
  int64_t steps = n * (to->steps - from->steps), samples = n * (to->samples - from->samples),
          batches = n * (to->batches - from->batches);
  int64_t evals = gt_ps_evals_due(ps), chunks = n * (to->chunks - from->chunks);
  t->steps += steps;
  t->samples += samples;
  t->batches += batches;
  t->next_batch += batches;
  t->compute += n * (to->compute - from->compute);
  t->wait += n * (to->wait - from->wait);
  t->wan_wait += n * (to->wan_wait - from->wan_wait);
  t->update += n * (to->update - from->update);
  t->encode += n * (to->encode - from->encode);
  gt_ps_coded_add(ps, from, to, n);
  ps->steps_at_round += steps;
  ps->samples_at_round += samples;
  if (ps->phase == GT_PS_DRAINING || ps->phase == GT_PS_FOLLOWING) ps->phase_since -= gone;
  if (gt_ps_chunks_repeat(ps, from, to) && ps->eval.given + (size_t)chunks <= ps->eval.chunks) {
    ps->eval.given += (size_t)chunks;
    ps->eval.back += (size_t)chunks;
  }
  evals = gt_ps_evals_due(ps) - evals;
  t->evals += evals;
  ps->eval.number += evals;
}
