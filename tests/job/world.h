/* Files and damaged texts, for tests of readers. */
#pragma once

#include "geotrain/base.h"
#include "tests.h"

/* Flips, cuts, copies of parts, and characters that are special in YAML and CSV; returns the new
   length, n at most. */
size_t w_damage(char *text, size_t n, gt_rng *rng);

/* Writes a file. */
void w_write(const char *path, const void *data, size_t size);
void w_write_text(const char *path, const char *text);
