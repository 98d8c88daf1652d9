/* ZB-H1 (Qi et al. 2024, arXiv 2401.10241): the memory of 1F1B; W fills a part of the bubble at
   the end. */
#include "internal.h"

static void order(gt_pipe_schedule *s) {
  for (size_t stage = 0; stage < s->stages; stage++)
    gt_pipe_zero_bubble(s, stage, s->stages - stage, stage);
}

const gt_pipe_ops gt_pipe_zb_h1 = {.name = "zb-h1", .chunks = 1, .order = order};
