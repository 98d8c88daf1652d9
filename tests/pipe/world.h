/* Pipelines for tests: all stages alike, or all different. */
#pragma once

#include "geotrain/pipe.h"

#define W_STAGES_MAX 8
#define W_SPANS_MAX  16

typedef struct {
  gt_pipe_problem problem; /* points into the rest, so a world must not move */
  gt_pipe_span spans[W_SPANS_MAX];
  gt_pipe_hop ahead[W_STAGES_MAX], back[W_STAGES_MAX];
  double memory[W_STAGES_MAX], update_s[W_STAGES_MAX];
} world;

/* Makes a world in which every span takes the given times; every hop delay_s; activation 1, half of
   it for W. */
void w_alike(world *w, size_t stages, size_t chunks, size_t micro_batches, double forward_s,
             double backward_s, double weight_s, double delay_s);
/* The row of the zero-bubble paper: 8 stages, 24 micro-batches; times in seconds for its
   milliseconds. */
void w_published(world *w, double memory);
/* 4 stages, 16 micro-batches, F = B = W = 1 s, delay_s each way on the middle hop. */
void w_over_wan(world *w, double delay_s, double memory);
void w_limit(world *w, double memory);

/* Makes and evaluates a schedule; a refusal fails the test. */
gt_pipe_result w_run(const world *w, gt_pipe_kind kind, const gt_pipe_search *search);
/* Returns the schedule; closed by the caller. */
gt_pipe_schedule *w_make(const world *w, gt_pipe_kind kind, const gt_pipe_search *search);
