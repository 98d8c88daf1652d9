/* What of_job.c has of of_job_spans.c. */
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
/* Fills p->problem and what is behind it. */
gt_status gt_pipe_job_find_problem(gt_pipe_job *p);

#endif
