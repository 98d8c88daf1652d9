/* The pipeline of a job, and where the number of its micro-batches follows the network the other
   numbers that a run may change to: those that divide the batch and of which each worker gets
   samples, from a quarter to four times the job's, whose memory fits. */
#include <stdio.h>

#include "of_job.h"

#define FEWER ((size_t)4)
#define MORE  ((size_t)4)
/* An order of each is needed at the start only to have one; a run searches its own. */
#define VARIANTS ((size_t)1)

static bool divides(const gt_job *job, size_t micros) {
  const size_t batch = (size_t)job->train.batch;
  if (batch % micros != 0) return false;
  for (size_t s = 0; s < job->pipeline.nstages; s++)
    if (batch / micros % (size_t)job->pipeline.stages[s].workers != 0) return false;
  return true;
}

/* Statistics of a micro-batch depend on its size. */
static gt_status check_statistics(const gt_pipe_job *p) {
  for (size_t i = 0; i < gt_graph_operations(p->graph); i++) {
    const gt_operation op = gt_graph_operation(p->graph, i);
    if (op.buffers == 0) continue;
    return GT_FAIL(GT_ERR_JOB,
                   "%s: pipeline.adapt is %s, and %s keeps statistics of micro-batches, which "
                   "depend on their size; false, true or another model is needed",
                   p->job->name, gt_adapt_names[GT_ADAPT_MICRO_BATCHES], op.name);
  }
  return GT_OK;
}

/* One that does not fit beside the others is left out. */
static void add_shape(gt_pipe_job *p, const gt_graph_spec *model, size_t micros) {
  const gt_pipe_job_form form = {.copy = p->copy, .micros = micros, .variants = VARIANTS};
  gt_pipe_job *shape;
  gt_pipe_need need;
  size_t stage;
  if (gt_pipe_job_open_shape(&shape, p->job, model, &form) != GT_OK) return;
  p->others[p->nothers++] = shape;
  while (gt_pipe_job_exceeds(p, p->layout.schedule, &stage, &need)) {
    if (gt_pipe_job_fewer_slots(shape)) continue;
    p->nothers--;
    gt_pipe_job_close(shape);
    return;
  }
}

static gt_status add_shapes(gt_pipe_job *p, const gt_graph_spec *model) {
  const size_t own = p->layout.micros, first = (own + FEWER - 1) / FEWER, last = own * MORE;
  GT_TRY(check_statistics(p));
  p->others = GT_NEW_ARRAY(gt_pipe_job *, last - first + 1);
  for (size_t micros = first; micros <= last; micros++)
    if (micros != own && divides(p->job, micros)) add_shape(p, model, micros);
  return GT_OK;
}

gt_status gt_pipe_job_open(gt_pipe_job **out, const gt_job *job, const gt_graph_spec *model,
                           size_t copy) {
  const gt_pipe_job_form form = {.copy = copy, .micros = (size_t)job->pipeline.micro_batches};
  *out = NULL;
  if (job->pipeline.nstages == 0) gt_bug("job %s has no pipeline", job->name);
  GT_TRY(gt_pipe_job_open_shape(out, job, model, &form));
  if (job->pipeline.adapt != GT_ADAPT_MICRO_BATCHES) return GT_OK;
  const gt_status status = add_shapes(*out, model);
  if (status == GT_OK) return GT_OK;
  gt_pipe_job_close(*out);
  *out = NULL;
  return status;
}

size_t gt_pipe_job_shapes(const gt_pipe_job *pipe) {
  return 1 + pipe->nothers;
}

const gt_pipe_job *gt_pipe_job_shape(const gt_pipe_job *pipe, size_t shape) {
  if (shape > pipe->nothers) gt_bug("the pipeline has no shape %zu", shape);
  return shape == 0 ? pipe : pipe->others[shape - 1];
}

/* The least number of micro-batches that is more than this; 0: there is none. */
static size_t next_of(const gt_pipe_job *pipe, size_t micros) {
  size_t next = 0;
  for (size_t i = 0; i <= pipe->nothers; i++) {
    const size_t m = gt_pipe_job_shape(pipe, i)->layout.micros;
    if (m > micros && (next == 0 || m < next)) next = m;
  }
  return next;
}

char *gt_pipe_job_shapes_text(const gt_pipe_job *pipe, char *text, size_t size) {
  size_t used = 0, m = next_of(pipe, 0);
  for (size_t next; m > 0 && used + 32 < size; m = next) {
    const char *before = used == 0 ? "" : next_of(pipe, m) > 0 ? ", " : " or ";
    next = next_of(pipe, m);
    used += (size_t)snprintf(text + used, size - used, "%s%zu", before, m);
  }
  return text;
}

size_t gt_pipe_job_shape_of(const gt_pipe_job *pipe, size_t micros) {
  for (size_t i = 0; i <= pipe->nothers; i++)
    if (gt_pipe_job_shape(pipe, i)->layout.micros == micros) return i;
  gt_bug("the pipeline has no shape of %zu micro-batches", micros);
}
