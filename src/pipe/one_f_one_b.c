/* 1F1B (PipeDream, Harlap et al. 2018, arXiv 1806.03377; DAPPLE, Fan et al. 2021, arXiv
   2007.01045): stage s runs p - s - 1 forward passes, then one forward and one backward pass in
   turn. */
#include "internal.h"

static void order(gt_pipe_schedule *s) {
  for (size_t stage = 0; stage < s->stages; stage++) {
    size_t f = 0;
    for (; f < s->stages - stage - 1 && f < s->micro_batches; f++)
      gt_pipe_add(s, GT_PASS_F, stage, f);
    for (size_t b = 0; b < s->micro_batches; b++) {
      if (f < s->micro_batches) gt_pipe_add(s, GT_PASS_F, stage, f++);
      gt_pipe_add(s, GT_PASS_BW, stage, b);
    }
  }
}

const gt_pipe_ops gt_pipe_1f1b = {.name = "1f1b", .chunks = 1, .order = order};
