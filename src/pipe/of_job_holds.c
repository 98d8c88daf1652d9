/* What the workers of a job's stages hold, and how many micro-batches fit into their memory. */
#include <stdio.h>

#include "of_job.h"

#define BYTES_TEXT ((size_t)32)

static const char *bytes_text(char text[BYTES_TEXT], double bytes) {
  const double mib = 0x1p20;
  snprintf(text, BYTES_TEXT, bytes < mib ? "%.4g KiB" : "%.4g MiB",
           bytes / (bytes < mib ? 1024 : mib));
  return text;
}

static gt_status find_holds(const gt_pipe_job *p, const gt_graph_spec *model, size_t stage,
                            gt_pipe_holds *holds) {
  const gt_pipe_layout *l = &p->layout;
  const size_t samples = l->micro_samples / l->places[stage].workers;
  (void)model;
  for (size_t c = 0; c < l->chunks; c++) {
    const gt_span *span = &p->spans[gt_pipe_span_of(l->stages, c, stage)];
    for (size_t i = span->first; i < span->end; i++) {
      const gt_operation op = gt_graph_operation(p->graph, i);
      holds->arrays += sizeof(float) * (2 * op.params + op.buffers);
      holds->slot += 2 * samples * op.output_bytes;
    }
  }
  return GT_OK;
}

/* The micro-batches that fit; as many as there are at most. */
static gt_status find_most(gt_pipe_job *p, size_t stage) {
  const gt_pipe_layout *l = &p->layout;
  const gt_pipe_holds *h = &p->holds[stage];
  const double memory = p->job->pipeline.memory_bytes, fixed = (double)(h->arrays + h->shared),
               needed = fixed + (double)(l->chunks * h->slot);
  const size_t most = l->chunks * l->micros;
  char have[BYTES_TEXT], need[BYTES_TEXT], arrays[BYTES_TEXT], slot[BYTES_TEXT];
  if (memory < needed)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: pipeline.memory is %s, and a worker of stage %zu needs %s for parameters, "
                   "gradients and scratch, and %s for each micro-batch in flight; %s or more is "
                   "needed",
                   p->job->name, bytes_text(have, memory), stage, bytes_text(arrays, fixed),
                   bytes_text(slot, (double)h->slot), bytes_text(need, needed));
  const double fits = h->slot > 0 ? (memory - fixed) / (double)h->slot : (double)most;
  p->slots_most[stage] = fits < (double)most ? (double)(size_t)fits : (double)most;
  return GT_OK;
}

gt_status gt_pipe_job_find_memory(gt_pipe_job *p, const gt_graph_spec *model) {
  const size_t stages = p->layout.stages;
  p->holds = GT_NEW_ARRAY(gt_pipe_holds, stages);
  for (size_t s = 0; s < stages; s++) GT_TRY(find_holds(p, model, s, &p->holds[s]));
  if (p->job->pipeline.memory_bytes <= 0) return GT_OK;
  p->slots_most = GT_NEW_ARRAY(double, stages);
  for (size_t s = 0; s < stages; s++) GT_TRY(find_most(p, s));
  return GT_OK;
}

static double with_slots(const gt_pipe_holds *h, double slots) {
  return (double)(h->arrays + h->shared) + slots * (double)h->slot;
}

gt_status gt_pipe_job_check_memory(const gt_pipe_job *p, const gt_pipe_schedule *schedule,
                                   gt_pipe_kind kind) {
  char have[BYTES_TEXT], need[BYTES_TEXT];
  for (size_t s = 0; s < p->layout.stages && p->slots_most; s++) {
    const double peak = gt_pipe_peak(schedule, &p->problem, s);
    if (peak <= p->slots_most[s]) continue;
    return GT_FAIL(GT_ERR_JOB,
                   "%s: pipeline.memory is %s, in which stage %zu has %g micro-batches in flight, "
                   "and schedule %s needs %g; %s, or another schedule, is needed",
                   p->job->name, bytes_text(have, p->job->pipeline.memory_bytes), s,
                   p->slots_most[s], gt_pipe_names[kind], peak,
                   bytes_text(need, with_slots(&p->holds[s], peak)));
  }
  return GT_OK;
}

size_t gt_pipe_job_memory(const gt_pipe_job *pipe, size_t stage) {
  return (size_t)with_slots(&pipe->holds[stage], (double)pipe->layout.slots[stage]);
}
