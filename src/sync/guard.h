/* guard: a region judges its own contributions to means.  Private to sync. */
#pragma once

#include "geotrain/ckpt.h"
#include "geotrain/sync.h"

/* The norms of the contributions so far; all zero at the start. */
typedef struct {
  int64_t judged;
  double mean, variance; /* of the norm, of the last 50 or so */
  double spread;         /* mean square of (norm - mean) / deviation */
} gt_guard;

typedef enum { GT_GUARD_SOUND, GT_GUARD_OUTLIER, GT_GUARD_NONFINITE } gt_verdict;

/* Judges a contribution by its norm, and adds it to the history. */
gt_verdict gt_guard_judge(gt_guard *guard, const gt_guard_options *options, double norm);
gt_status gt_guard_state(gt_guard *guard, const char *owner, gt_state_direction direction);
