/* guard: judges a region's contributions to means by their norms. */
#pragma once

#include "geotrain/sync.h"

/* The norms of the contributions so far; all zero at the start. */
typedef struct {
  int64_t judged;
  double mean, variance; /* of the norm, of the last 50 or so */
  double spread;         /* mean square of (norm - mean) / deviation */
} gt_norm_history;

typedef enum { GT_GUARD_SOUND, GT_GUARD_OUTLIER, GT_GUARD_NONFINITE } gt_verdict;

/* Judges a contribution by its norm, and adds it to the history. */
gt_verdict gt_guard_judge(gt_norm_history *g, const gt_guard_options *options, double norm);
gt_status gt_guard_state(gt_norm_history *g, const char *owner, gt_state_direction direction);
