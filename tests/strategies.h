/* Strategies by name. */
#ifndef GEOTRAIN_TESTS_STRATEGIES_H
#define GEOTRAIN_TESTS_STRATEGIES_H

#include <string.h>

#include "geotrain/sync.h"

/* NULL: unknown. */
static inline const gt_sync_ops *sync_named(const char *name) {
  for (size_t i = 0; gt_strategy_names[i]; i++)
    if (strcmp(gt_strategy_names[i], name) == 0) return gt_sync_of((gt_strategy)i);
  return NULL;
}

#endif
