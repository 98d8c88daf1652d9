/* ZB-H2 (Qi et al. 2024, arXiv 2401.10241): up to twice the memory of 1F1B; without a bubble where F,
   B and W take the same time. */
#include "internal.h"

static void order(gt_pipe_schedule *s) {
  for (size_t stage = 0; stage < s->stages; stage++)
    gt_pipe_zero_bubble(s, stage, 2 * (s->stages - stage) - 1, 2 * stage);
}

const gt_pipe_ops gt_pipe_zb_h2 = {.name = "zb-h2", .chunks = 1, .order = order};
