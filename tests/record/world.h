/* Shared by the tests of records: a short run's results and their summary; JSON by path. */
#pragma once

#include "tests.h"
#include "internal.h"

/* Returns the result of 10 steps without tests of the model, and the summary of such regions. */
gt_region_result w_region(const char *name, double wall_s);
gt_summary w_summary(const gt_region_result *regions, size_t n);

/* Returns the value at a path such as "regions/1/split/train_s"; fails if it is missing. */
const json_t *w_find(const json_t *root, const char *path);
double w_number(const json_t *root, const char *path);
bool w_null(const json_t *root, const char *path);
