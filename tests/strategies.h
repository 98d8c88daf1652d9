/* Strategies by name. */
#pragma once

#include <string.h>

#include "geotrain/sync.h"

/* Returns the strategy of this name; NULL: unknown. */
static inline const gt_sync_ops *sync_named(const char *name) {
  for (size_t i = 0; gt_strategy_names[i]; i++)
    if (strcmp(gt_strategy_names[i], name) == 0) return gt_sync_of((gt_strategy)i);
  return NULL;
}

/* True if the strategy has one of these facts (base_families.h). */
static inline bool strategy_has(const char *name, unsigned facts) {
  for (size_t i = 0; gt_strategy_names[i]; i++)
    if (strcmp(gt_strategy_names[i], name) == 0) return gt_strategy_has((gt_strategy)i, facts);
  return false;
}

/* True if it sends models without waiting for them, so that a newer one replaces one that has not
   left. */
static inline bool strategy_replaces(const gt_sync_ops *ops) {
  return ops->sends == GT_MSG_STATE && !ops->waits;
}
