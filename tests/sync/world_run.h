/* Advances the world from event to event, in order of (time, position); restarts it from the saved
   state of its strategies. */
#ifndef GEOTRAIN_TESTS_SYNC_WORLD_RUN_H
#define GEOTRAIN_TESTS_SYNC_WORLD_RUN_H

#include "world.h"

void w_begin(world *w);

/* ---- events ---------------------------------------------------------------------------------- */

/* Processes one event; false: none is left. */
bool w_step(world *w);
/* Asserts that the world has finished: no deadlock, nothing in flight, nothing held. */
void w_assert_finished(const world *w);
void w_run_on(world *w);
world *w_run(const w_spec *spec);
/* Makes a random world: regions, steps (some none at all), period, outbox, window, delays, weights,
   workers. */
w_spec w_random(const char *strategy, uint64_t seed);

/* ---- restart --------------------------------------------------------------------------------- */

/* Restarts all regions.  With `crash`, messages in flight and their acknowledgements are lost:
   senders resend unacknowledged messages, receivers drop those already applied, workers compute
   again, DONE is announced again. */
void w_restart(world *w, bool crash);

#endif
