#include "world.h"
#include "tests.h"

void w_alike(world *w, size_t stages, size_t chunks, size_t micro_batches, double forward_s,
             double backward_s, double weight_s, double delay_s) {
  *w = (world){.problem = {.stages = stages, .chunks = chunks, .micro_batches = micro_batches}};
  assert_true(stages <= W_STAGES_MAX && stages * chunks <= W_SPANS_MAX);
  for (size_t k = 0; k < stages * chunks; k++)
    w->spans[k] = (gt_pipe_span){.forward_s = forward_s,
                                 .backward_s = backward_s,
                                 .weight_s = weight_s,
                                 .activation = 1,
                                 .weight_share = 0.5};
  for (size_t s = 0; s < stages; s++) w->ahead[s].delay_s = w->back[s].delay_s = delay_s;
  w->problem.spans = w->spans;
  w->problem.ahead = w->ahead;
  w->problem.back = w->back;
}

void w_limit(world *w, double memory) {
  for (size_t s = 0; s < w->problem.stages; s++) w->memory[s] = memory;
  w->problem.memory = w->memory;
}

void w_published(world *w, double memory) {
  w_alike(w, 8, 1, 24, 18.522, 18.086, 9.337, 0.601);
  w_limit(w, memory);
}

void w_over_wan(world *w, double delay_s, double memory) {
  w_alike(w, 4, 1, 16, 1, 1, 1, 0);
  w->ahead[1].delay_s = w->back[1].delay_s = delay_s;
  w_limit(w, memory);
}

gt_pipe_schedule *w_make(const world *w, gt_pipe_kind kind, const gt_pipe_search *search) {
  gt_pipe_schedule *s;
  must(gt_pipe_make(&s, kind, &w->problem, search));
  return s;
}

gt_pipe_result w_run(const world *w, gt_pipe_kind kind, const gt_pipe_search *search) {
  gt_pipe_schedule *s = w_make(w, kind, search);
  gt_pipe_result r;
  must(gt_pipe_evaluate(&r, s, &w->problem, GT_PIPE_STEADY));
  gt_pipe_schedule_close(s);
  return r;
}
