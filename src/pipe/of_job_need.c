/* All that a worker of a stage needs, with a given schedule. */
#include <stdio.h>

#include "of_job.h"

/* No pass of the stage computes the two gradients apart. */
static bool is_fused(const gt_pipe_schedule *schedule, size_t stage) {
  const gt_pipe_list *list = &schedule->lists[stage];
  for (size_t i = 0; i < list->n; i++)
    if (list->passes[i].kind == GT_PASS_W) return false;
  return true;
}

/* An operation of the stage reads samples, or it ends with the loss. */
static bool reads(const gt_pipe_job *p, size_t stage) {
  for (size_t c = 0; c < p->layout.chunks; c++) {
    const size_t span = gt_pipe_span_of(p->layout.stages, c, stage);
    if (span + 1 == gt_pipe_job_nspans(p)) return true;
    for (size_t i = p->spans[span].first; i < p->spans[span].end; i++)
      if (gt_graph_operation(p->graph, i).samples) return true;
  }
  return false;
}

/* Of this shape alone. */
static gt_pipe_need own_need(const gt_pipe_job *pipe, const gt_pipe_schedule *schedule,
                             size_t stage) {
  const gt_pipe_holds *h = &pipe->holds[stage];
  gt_pipe_layout with = pipe->layout;
  with.schedule = (gt_pipe_schedule *)(uintptr_t)schedule;
  /* another schedule may take the place of this one, within the slots */
  const bool adapts = with.adapts && with.slots, fused = !adapts && is_fused(schedule, stage);
  with.adapts = adapts;
  gt_pipe_need n = {
      .arrays = h->arrays,
      .scratch = fused ? h->fused_shared : h->shared,
      .slots = adapts ? with.slots[stage] : gt_pipe_slots(schedule, stage),
      .slot = fused ? h->fused_slot : h->slot,
      .areas = gt_pipe_out_all(&with, stage).bytes + gt_pipe_landing_all(&with, stage).bytes,
      .samples = reads(pipe, stage) ? (size_t)pipe->job->train.batch * pipe->sample_bytes : 0};
  n.samples += n.slots * with.micro_samples / with.places[stage].workers * with.label_bytes;
  return n;
}

static size_t most(size_t a, size_t b) {
  return a > b ? a : b;
}

/* Shapes use the same memory, one after the other. */
static void widen(gt_pipe_need *n, const gt_pipe_need *other) {
  if (other->scratch + other->slots * other->slot > n->scratch + n->slots * n->slot) {
    n->scratch = other->scratch;
    n->slots = other->slots;
    n->slot = other->slot;
  }
  n->areas = most(n->areas, other->areas);
  n->samples = most(n->samples, other->samples);
}

gt_pipe_need gt_pipe_job_need(const gt_pipe_job *pipe, const gt_pipe_schedule *schedule,
                              size_t stage) {
  gt_pipe_need n = own_need(pipe, schedule, stage);
  for (size_t i = 0; i < pipe->nothers; i++) {
    const gt_pipe_need other = own_need(pipe->others[i], pipe->others[i]->layout.schedule, stage);
    widen(&n, &other);
  }
  n.all = n.arrays + n.scratch + n.slots * n.slot + n.areas + n.samples;
  return n;
}

/* ---- pipeline.memory ------------------------------------------------------------------------- */

bool gt_pipe_job_exceeds(const gt_pipe_job *p, const gt_pipe_schedule *schedule, size_t *stage,
                         gt_pipe_need *need) {
  for (*stage = 0; p->slots_most && *stage < p->layout.stages; ++*stage) {
    *need = gt_pipe_job_need(p, schedule, *stage);
    if ((double)need->all > p->job->pipeline.memory_bytes) return true;
  }
  return false;
}

gt_status gt_pipe_job_check_memory(const gt_pipe_job *p, const gt_pipe_schedule *schedule,
                                   gt_pipe_kind kind) {
  const double mib = 0x1p20;
  gt_pipe_need need;
  size_t stage;
  if (!gt_pipe_job_exceeds(p, schedule, &stage, &need)) return GT_OK;
  return GT_FAIL(
      GT_ERR_JOB,
      "%s: pipeline.memory is %.4g MiB, and a worker of stage %zu needs %.4g MiB with "
      "schedule %s: %.4g for parameters, gradients and buffers, %.4g for %zu "
      "micro-batches in flight, %.4g for what goes to other stages and comes from them, "
      "%.4g for scratch and samples; more stages, more micro-batches or another schedule "
      "need less",
      p->job->name, p->job->pipeline.memory_bytes / mib, stage, (double)need.all / mib,
      gt_pipe_names[kind], (double)need.arrays / mib, (double)(need.slots * need.slot) / mib,
      need.slots, (double)need.areas / mib, (double)(need.scratch + need.samples) / mib);
}
