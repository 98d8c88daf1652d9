/* What holds at the end of every run of the world, and worlds made at random. */
#ifndef GEOTRAIN_TESTS_PS_WORLD_LAWS_H
#define GEOTRAIN_TESTS_PS_WORLD_LAWS_H

#include "world_run.h"

/* ---- laws ------------------------------------------------------------------------------------ */

/* Every batch number up to the end trained exactly once, every sample `epochs` times. */
void w_check_epochs(world *w, int64_t epochs);
bool w_lockstep(const w_spec *spec);
/* Every region has the same bits. */
void w_check_identical(world *w);
/* Gives the world a topology at random: mesh, hub, tree, and where there are rounds ring or
   central. */
void w_place(w_spec *spec);
/* A world at random, with a mesh. */
w_spec w_random(const char *strategy, bool local_async, size_t nregions, uint64_t seed);

#endif
