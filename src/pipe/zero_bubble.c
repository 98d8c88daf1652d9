/* What ZB-H1 and ZB-H2 share. */
#include "internal.h"

void gt_pipe_zero_bubble(gt_pipe_schedule *schedule, size_t stage, size_t warm_up, size_t held) {
  const size_t m = schedule->micros;
  size_t f = 0, w = 0;
  for (; f < warm_up && f < m; f++) gt_pipe_add(schedule, GT_PASS_F, stage, f);
  for (size_t b = 0; b < m; b++) {
    gt_pipe_add(schedule, GT_PASS_B, stage, b);
    if (b + 1 - w > held) gt_pipe_add(schedule, GT_PASS_W, stage, w++);
    if (f < m) gt_pipe_add(schedule, GT_PASS_F, stage, f++);
  }
  for (; w < m; w++) gt_pipe_add(schedule, GT_PASS_W, stage, w);
}
