/* What of_job.c and search_of_job.c have of of_job_spans.c. */
#ifndef GEOTRAIN_PIPE_OF_JOB_H
#define GEOTRAIN_PIPE_OF_JOB_H

#include "geotrain/pipe_job.h"

static inline size_t gt_pipe_job_nspans(const gt_pipe_job *p) {
  return p->layout.stages * p->layout.chunks;
}

/* Where a span is. */
static inline const gt_pipe_place *gt_pipe_job_place(const gt_pipe_job *p, size_t span) {
  return &p->layout.places[gt_pipe_stage_of(p->layout.stages, span)];
}

/* Fills p->spans.  graph, layout.places and counts are set. */
gt_status gt_pipe_job_find_spans(gt_pipe_job *p);
/* Multiply-adds of a sample, forward and backward. */
static inline double gt_pipe_work_of(const gt_operation *op) {
  return op->forward + op->backward_input + op->backward_weight;
}

/* Seconds of a training step of the whole model, a sample; 0: compute does not say. */
double gt_pipe_step_sample_s(const gt_job *job, const gt_job_compute *compute);
/* The links of a job, without regions of stages.  Also after an error the caller closes *out. */
gt_status gt_pipe_job_wan_open(gt_pipe_job_wan *out, const gt_job *job);
void gt_pipe_job_wan_close(gt_pipe_job_wan *wan);
/* Fills p->problem and what is behind it. */
gt_status gt_pipe_job_find_problem(gt_pipe_job *p);

#endif
