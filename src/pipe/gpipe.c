/* GPipe (Huang et al. 2019, arXiv 1811.06965): all forward passes, then all backward passes. */
#include "internal.h"

static void order(gt_pipe_schedule *s) {
  for (size_t stage = 0; stage < s->stages; stage++) {
    for (size_t i = 0; i < s->micro_batches; i++) gt_pipe_add(s, GT_PASS_F, stage, i);
    for (size_t i = 0; i < s->micro_batches; i++) gt_pipe_add(s, GT_PASS_BW, stage, i);
  }
}

const gt_pipe_ops gt_pipe_gpipe = {.name = "gpipe", .chunks = 1, .order = order};
