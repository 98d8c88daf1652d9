/* Damaged texts, for tests of readers. */
#ifndef GEOTRAIN_TESTS_JOB_WORLD_H
#define GEOTRAIN_TESTS_JOB_WORLD_H

#include "geotrain/base.h"

/* Flips, cuts, copies of parts, and characters that are special in YAML and CSV; returns the new
   length, n at most. */
size_t w_damage(char *text, size_t n, gt_rng *rng);

#endif
