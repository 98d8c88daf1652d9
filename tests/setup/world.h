/* Ranks that have begun to set up a run, for tests of one step of it. */
#ifndef GEOTRAIN_TESTS_SETUP_WORLD_H
#define GEOTRAIN_TESTS_SETUP_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "internal.h"

#define W_LIMIT_S 30.0

extern int w_rank; /* of the world */

/* Starts MPI, makes a folder for all ranks, runs the tests, removes it and ends MPI; what main
   returns.  Collective over the world. */
int w_main(const struct CMUnitTest *tests, size_t n);
/* The same of one process, without MPI. */
int w_main_alone(const struct CMUnitTest *tests, size_t n);
/* FOLDER/name, in one of 16 buffers in turn. */
const char *w_path(const char *name);
/* All ranks meet: what one has written before, all can read after. */
void w_meet(void);

/* Job and roles are known: the ranks of `regions` (YAML, such as "[{name: a, ranks: 2}]") are those
   of the world; data and train are more keys of these sections ("path: x.h5").  options are
   borrowed, NULL: none.  gt_setup_close ends it.  Collective over the world. */
void w_begin(gt_run *run, const gt_setup_options *options, const char *regions, const char *data,
             const char *train);
/* As w_begin of one rank, without MPI: a PS of region "a". */
void w_begin_alone(gt_run *run, const gt_setup_options *options);
void w_end_alone(gt_run *run);

/* Writes the region's file of a round in run_dir, with these items, and waits until it is there. */
void w_write_round(const char *run_dir, const char *region, int64_t round, bool doubtful,
                   gt_state *state);

/* The call failed with `status` and a sentence that holds `text`. */
void w_failed(gt_status found, gt_status needed, const char *text);

#endif
