/* ps_skip: for simulations, which leave out time that goes as what they have seen.  Local. */
#ifndef GEOTRAIN_PS_SKIP_H
#define GEOTRAIN_PS_SKIP_H

#include "geotrain/ps_state.h"

/* How often what was counted between two looks may come again before the region makes its last
   steps or, if evaluations count, its next evaluation; INFINITY: as often as one likes, for it
   makes no steps. */
double gt_ps_repeats(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to, bool evaluations);
/* Whether an evaluation that is under way goes on evenly enough between two looks for its chunks
   to come again too. */
bool gt_ps_chunks_repeat(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to);
/* Evaluations that the region will still make while it trains, about. */
double gt_ps_evaluations_left(const gt_ps *ps);
/* Evaluations that are due when what was counted between two looks, the second of which is now,
   has come again n times. */
double gt_ps_evaluations_at(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to, double n);
/* It has come again n times, in `gone` of time that the PS's clock does not show: counts go on
   by it; messages, orders and timers stay as they are, and the next checkpoint as far ahead as
   it was. */
void gt_ps_skip(gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to, int64_t n, gt_ns gone);

#endif
