/* Moves the world of world.h: opening, events in order of time, crashes, resumes. */
#ifndef GEOTRAIN_TESTS_PS_WORLD_RUN_H
#define GEOTRAIN_TESTS_PS_WORLD_RUN_H

#include "world_host.h"

/* ---- opening and closing --------------------------------------------------------------------- */

world *w_open(const w_spec *spec);
void w_close(world *w);

/* ---- events ---------------------------------------------------------------------------------- */

/* Outboxes are bounded; nobody who waits is left without a word. */
void w_check_bounds(world *w);
/* One event; false when there is none. */
bool w_step(world *w);
/* Until every region is in `phase`: a world that does not come there in ten minutes of its time is
   locked. */
void w_run_until(world *w, gt_ps_phase phase);

/* ---- crash and resume ------------------------------------------------------------------------ */

w_copy *w_find_copy(w_region *r, int64_t round);
/* The newest round durable in every region, 0: none; in *newest the newest anywhere. */
int64_t w_whole_round(world *w, int64_t *newest);
/* Every region is lost with all that was under way, and comes back from the newest round that is
   whole everywhere, which is returned. */
int64_t w_crash(world *w);

#endif
