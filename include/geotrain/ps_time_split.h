/* ps_time_split: the parts of a mini-batch (docs/time-split.md).  Local. */
#pragma once

#include "geotrain/ps_state.h"

/* Times in which the region's workers were held by uploads and downloads, mean over them, and the
   training's time (docs/time-split.md); saved with a checkpoint. */
typedef struct {
  gt_ns upload, download, training;
} gt_time_use;

typedef enum { GT_HELD_NOT, GT_HELD_UPLOAD, GT_HELD_DOWNLOAD } gt_held_by;
typedef struct {
  gt_time_use use;
  gt_held_by held_by; /* since `since` */
  double held_share;  /* of the workers */
  bool begun, over;   /* training, as of `since` */
  gt_ns since;
} gt_time_split;

/* Adds the time up to now to its cause; called after every event.  receiving: a message of the peer
   has begun to arrive. */
void gt_time_split_account(gt_time_split *split, const gt_ps *ps,
                           bool (*receiving)(const void *ctx, size_t peer), const void *ctx,
                           gt_ns now);
/* Seconds of a worker's average mini-batch; aggregate: the rest. */
typedef struct {
  double train, upload, aggregate, download;
} gt_time_split_parts;
void gt_time_split_batch(const gt_time_split *split, const gt_ps_view *view, const gt_ps_spec *spec,
                         gt_time_split_parts *parts);
