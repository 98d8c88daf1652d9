/* ZB-H1 and ZB-H2 (Qi et al. 2024, arXiv 2401.10241): W fills the bubble.  ZB-H1 has the memory of
   1F1B; ZB-H2 up to twice that, and no bubble if F, B and W take the same time. */
#include "internal.h"

/* Writes `warm_up` F; then in turn B, W if more than `held` of them are due, and F; then the
   remaining W. */
static void order_stage(gt_pipe_schedule *schedule, size_t stage, size_t warm_up, size_t held) {
  const size_t m = schedule->micro_batches;
  size_t f = 0, w = 0;
  for (; f < warm_up && f < m; f++) gt_pipe_add(schedule, GT_PASS_F, stage, f);
  for (size_t b = 0; b < m; b++) {
    gt_pipe_add(schedule, GT_PASS_B, stage, b);
    if (b + 1 - w > held) gt_pipe_add(schedule, GT_PASS_W, stage, w++);
    if (f < m) gt_pipe_add(schedule, GT_PASS_F, stage, f++);
  }
  for (; w < m; w++) gt_pipe_add(schedule, GT_PASS_W, stage, w);
}

static void order_h1(gt_pipe_schedule *s) {
  for (size_t stage = 0; stage < s->stages; stage++)
    order_stage(s, stage, s->stages - stage, stage);
}

static void order_h2(gt_pipe_schedule *s) {
  for (size_t stage = 0; stage < s->stages; stage++)
    order_stage(s, stage, 2 * (s->stages - stage) - 1, 2 * stage);
}

const gt_pipe_ops gt_pipe_zb_h1 = {.name = "zb-h1", .chunks = 1, .order = order_h1};
const gt_pipe_ops gt_pipe_zb_h2 = {.name = "zb-h2", .chunks = 1, .order = order_h2};
