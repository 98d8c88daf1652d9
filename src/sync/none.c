/* none: every region trains alone; the baseline for the other strategies. */
#include "internal.h"

static void none_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples) {
  (void)now, (void)samples;
  gt_sync_step(s, grads);
}

extern const gt_sync_ops gt_sync_none;
const gt_sync_ops gt_sync_none = {
    .name = "none",
    .source = "no exchange",
    .between_steps = true,
    .size = sizeof(gt_sync),
    .on_gradient = none_on_gradient,
};
