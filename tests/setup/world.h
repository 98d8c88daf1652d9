/* Ranks that have begun to set up a run, for tests of single setup steps. */
#pragma once

#include <unistd.h>

#include "tests.h"
#include "internal.h"

#define W_LIMIT_S 30.0

extern int w_rank; /* rank in the world */
extern gt_peers *w_world;

/* Starts MPI and creates a folder for all ranks, before all tests of a file; the matching function
   ends MPI.  Collective over the world. */
int w_start_ranks(void **unused);
int w_end_ranks(void **unused);
/* Barrier: files written by one rank before it can be read by all after it. */
void w_meet(void);

/* Sets up job and roles: the ranks of `regions` (YAML, such as "[{name: a, ranks: 2}]") are those
   of the world; data and train are more keys of these sections ("path: x.h5"). options are
   borrowed, NULL: none. gt_setup_close ends it.  Collective over the world. */
void w_begin(gt_run *run, const gt_setup_options *options, const char *regions, const char *data,
             const char *train);
/* Does w_begin for one rank without MPI: a PS of region "a". */
void w_begin_alone(gt_run *run, const gt_setup_options *options);
void w_end_alone(gt_run *run);

/* Writes the region's file of a round to run_dir, with these items, and waits until it is
   complete. */
void w_write_round(const char *run_dir, const char *region, int64_t round, bool doubtful,
                   gt_state *state);
