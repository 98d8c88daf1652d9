/* What orders of the adapter take, would have taken in the last steps, and lose. */
#include "adapt.h"

#include <math.h>
#include <string.h>

#define LAG 2 /* steps until a bad order is left: measured, told */

/* ---- periods --------------------------------------------------------------------------------- */

/* Steps of which recent costs are known. */
static int64_t known(const gt_pipe_adapt *a) {
  return a->counts.seen < GT_PIPE_ADAPT_PAST ? a->counts.seen : GT_PIPE_ADAPT_PAST;
}

/* The period by the costs of a step; those of the step before it are often the same. */
static double period_then(gt_pipe_adapt *a, const gt_pipe_schedule *order, int64_t step,
                          int64_t first, double before_s) {
  const gt_pipe_cost *costs = gt_pipe_adapt_recent(a, step);
  if (step > first &&
      memcmp(costs, gt_pipe_adapt_recent(a, step - 1), a->n * a->n * sizeof *costs) == 0)
    return before_s;
  return gt_pipe_adapt_period(a, order, costs);
}

void gt_pipe_adapt_look_back(gt_pipe_adapt *a, adapt_order which) {
  const int64_t first = a->counts.seen - known(a);
  double before_s = 0;
  for (int64_t k = first; k < a->counts.seen; k++) {
    before_s = period_then(a, a->orders[which], k, first, before_s);
    *adapt_at(a, which, k) = before_s;
  }
}

static void count(adapt_progress *progress, double took_s, double period_s) {
  progress->start += took_s / period_s;
  progress->behind += took_s / period_s - 1;
}

void gt_pipe_adapt_account(gt_pipe_adapt *a) {
  const int64_t step = a->counts.seen - 1, first = a->counts.seen - known(a);
  for (int64_t which = 0; which < ADAPT_ORDERS; which++) {
    const double before_s = step > 0 ? *adapt_at(a, which, step - 1) : 0;
    if (a->orders[which])
      *adapt_at(a, which, step) = period_then(a, a->orders[which], step, first, before_s);
  }
  const double took = adapt_now(a, a->counts.force);
  a->took[step % GT_PIPE_ADAPT_PAST] = took;
  count(&a->progress, took, adapt_now(a, ADAPT_START));
  if (a->orders[ADAPT_BETTER]) count(&a->since, took, adapt_now(a, ADAPT_BETTER));
}

/* ---- what an order may lose ------------------------------------------------------------------ */

static double loss_of(double period_s, double other_s) {
  return period_s / other_s - 1;
}

adapt_loss gt_pipe_loss_at(gt_pipe_adapt *a, double period_s, int64_t step) {
  return (adapt_loss){loss_of(period_s, *adapt_at(a, ADAPT_START, step)),
                      a->orders[ADAPT_BETTER] ? loss_of(period_s, *adapt_at(a, ADAPT_BETTER, step))
                                              : 0};
}

adapt_loss gt_pipe_loss_planned(gt_pipe_adapt *a, const gt_pipe_schedule *order) {
  const gt_pipe_schedule *better = a->orders[ADAPT_BETTER];
  const double s = gt_pipe_adapt_period(a, order, a->planned);
  return (adapt_loss){loss_of(s, gt_pipe_adapt_period(a, a->orders[ADAPT_START], a->planned)),
                      better ? loss_of(s, gt_pipe_adapt_period(a, better, a->planned)) : 0};
}

adapt_loss gt_pipe_loss_larger(adapt_loss x, adapt_loss y) {
  return (adapt_loss){fmax(x.start, y.start), fmax(x.better, y.better)};
}

static bool within(const adapt_progress *progress, double lost) {
  return lost <= 0 || progress->behind + LAG * lost <= GT_PIPE_ADAPT_BEHIND * progress->start;
}

bool gt_pipe_affords(const gt_pipe_adapt *a, adapt_loss lost) {
  return within(&a->progress, lost.start) && within(&a->since, lost.better);
}

/* ---- the past -------------------------------------------------------------------------------- */

adapt_past gt_pipe_past_of(gt_pipe_adapt *a, const gt_pipe_schedule *order) {
  const int64_t first = a->counts.seen - known(a);
  int64_t which = 0;
  adapt_past p = {0, {-1, -1}}; /* nothing loses less */
  double s = 0;
  while (which < ADAPT_ORDERS && order != a->orders[which]) which++;
  for (int64_t k = first; k < a->counts.seen; k++) {
    s = which < ADAPT_ORDERS ? *adapt_at(a, which, k) : period_then(a, order, k, first, s);
    p.steps += a->took[k % GT_PIPE_ADAPT_PAST] / s;
    p.worst = gt_pipe_loss_larger(p.worst, gt_pipe_loss_at(a, s, k));
  }
  return p;
}
