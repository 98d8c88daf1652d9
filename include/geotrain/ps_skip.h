/* ps_skip: for simulations, which skip time that repeats.  Local. */
#ifndef GEOTRAIN_PS_SKIP_H
#define GEOTRAIN_PS_SKIP_H

#include "geotrain/ps_state.h"

/* Returns how often what was counted between two looks may be repeated before the region makes its
   last steps or, if evaluations count, its next evaluation; INFINITY: any number, because the
   region makes no steps. */
double gt_ps_repeats(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to,
                     bool evaluations);
/* True if the evaluation that is under way proceeds evenly enough between two looks to be repeated
   too, chunk by chunk. */
bool gt_ps_chunks_repeat(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to);
/* Returns an estimate of the evaluations that the region will still make while it trains. */
double gt_ps_evaluations_left(const gt_ps *ps);
/* Evaluations that are due when what was counted between two looks (the second one is now) has been
   repeated n times. */
double gt_ps_evaluations_at(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to,
                            double n);
/* Repeats it n times, in a time `gone` that the PS's clock does not show: counts advance; messages,
   orders and timers stay as they are, and the next checkpoint stays as far ahead as it was. */
void gt_ps_skip(gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to, int64_t n, gt_ns gone);

#endif
