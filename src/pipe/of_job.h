/* Shared by of_job.c, search_of_job.c and of_job_spans.c. */
#pragma once

#include "geotrain/pipe_job.h"

static inline size_t gt_pipe_job_nspans(const gt_pipe_job *p) {
  return p->layout.stages * p->layout.chunks;
}

/* Returns the place of a span. */
static inline const gt_pipe_place *gt_pipe_job_place(const gt_pipe_job *p, size_t span) {
  return &p->layout.places[gt_pipe_stage_of(p->layout.stages, span)];
}

/* Fills p->spans.  Requires graph, layout.places and counts. */
gt_status gt_pipe_job_find_spans(gt_pipe_job *p);
/* Returns the multiply-adds of a sample, forward and backward. */
static inline double gt_pipe_work_of(const gt_operation *op) {
  return op->forward + op->backward_input + op->backward_weight;
}

/* Returns the seconds per sample of a training step of the whole model; 0: compute does not give
   them. */
double gt_pipe_step_sample_s(const gt_job *job, const gt_job_compute *compute);
/* Opens the links of a job, without regions of stages.  The caller closes *out, also after an
   error. */
gt_status gt_pipe_job_wan_open(gt_pipe_job_wan *out, const gt_job *job);
void gt_pipe_job_wan_close(gt_pipe_job_wan *wan);
/* Fills p->problem and its storage. */
gt_status gt_pipe_job_find_problem(gt_pipe_job *p);
