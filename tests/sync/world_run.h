/* Moves the world from event to event, in order of (time, place); restarts it from what its
   strategies saved. */
#ifndef GEOTRAIN_TESTS_SYNC_WORLD_RUN_H
#define GEOTRAIN_TESTS_SYNC_WORLD_RUN_H

#include "world.h"

void w_begin(world *w);

/* ---- events ---------------------------------------------------------------------------------- */

/* One event; false when there is none. */
bool w_step(world *w);
/* Nothing moves any more, and everything has come to its end: no deadlock, nothing under way,
   nothing kept. */
void w_assert_finished(const world *w);
void w_run_on(world *w);
world *w_run(const w_spec *spec);
/* A world made at random: regions, steps (some none at all), period, outbox, window, delays,
   weights, workers. */
w_spec w_random(const char *strategy, uint64_t seed);

/* ---- restart --------------------------------------------------------------------------------- */

/* All regions restart.  With `crash` what was under way is lost with its acknowledgement: senders
   send again what is not acknowledged, receivers drop what they had applied, workers compute again,
   DONE is said again. */
void w_restart(world *w, bool crash);

#endif
