/* ps_skip: lets simulations skip time that repeats.  Local. */
#pragma once

#include "geotrain/ps_state.h"

/* Returns how often the counts between two views can repeat before the region makes its last steps
   or, if evaluations count, its next evaluation; INFINITY: any number, because the region makes no
   steps. */
double gt_ps_repeats(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to,
                     bool evaluations);
/* True if the evaluation in progress proceeds evenly enough between two views to repeat too, chunk
   by chunk. */
bool gt_ps_chunks_repeat(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to);
/* Returns an estimate of the evaluations that the region will still make while it trains. */
double gt_ps_evaluations_left(const gt_ps *ps);
/* Returns the evaluations that are due after the counts between two views (the second one is now)
   have repeated n times. */
double gt_ps_evaluations_at(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to,
                            double n);
/* Repeats the counts n times, in a time `gone` that the PS's clock does not show: counts advance;
   messages, orders and timers stay the same, and the next checkpoint stays as far ahead as
   before. */
void gt_ps_skip(gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to, int64_t n, gt_ns gone);
