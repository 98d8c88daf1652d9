/* What the files of_job*.c share.  of_job_shapes.c calls of_job.c, and that the others, which do not
   call each other. */
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

/* of_job.c: the pipeline of a job in one shape. */
typedef struct {
  size_t copy, micros;
  size_t variants; /* as in gt_pipe_job */
} gt_pipe_job_form;
gt_status gt_pipe_job_open_shape(gt_pipe_job **out, const gt_job *job, const gt_graph_spec *model,
                                 const gt_pipe_job_form *form);
/* One slot less of each stage that has more than its schedule needs; false: none has. */
bool gt_pipe_job_fewer_slots(gt_pipe_job *p);
/* of_job_spans.c: fills p->spans.  graph, layout.places and counts are set. */
gt_status gt_pipe_job_find_spans(gt_pipe_job *p);
/* of_job_holds.c: fills p->holds, and p->slots_most if memory is limited. */
gt_status gt_pipe_job_find_memory(gt_pipe_job *p, const gt_graph_spec *model);
/* of_job_need.c: whether a worker needs more than pipeline.memory, the first such stage and what it
   needs; GT_ERR_JOB: that says it. */
bool gt_pipe_job_exceeds(const gt_pipe_job *p, const gt_pipe_schedule *schedule, size_t *stage,
                         gt_pipe_need *need);
gt_status gt_pipe_job_check_memory(const gt_pipe_job *p, const gt_pipe_schedule *schedule,
                                   gt_pipe_kind kind);
/* of_job_times.c: fills p->problem and what is behind it. */
gt_status gt_pipe_job_find_problem(gt_pipe_job *p);

#endif
