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

/* ---- what a worker holds --------------------------------------------------------------------- */

/* The spans whose tensors a worker has, and which of them it runs. */
typedef struct {
  gt_span *spans;
  bool *runs;
  size_t n;
} held;

/* In the model's order. */
static void add_span(held *h, gt_span span, bool runs) {
  size_t at = h->n++;
  for (; at > 0 && h->spans[at - 1].first > span.first; at--) {
    h->spans[at] = h->spans[at - 1];
    h->runs[at] = h->runs[at - 1];
  }
  h->spans[at] = span;
  h->runs[at] = runs;
}

static bool has_operation(const held *h, size_t op) {
  for (size_t i = 0; i < h->n; i++)
    if (op >= h->spans[i].first && op < h->spans[i].end) return true;
  return false;
}

/* Also operations of other stages whose weights this one uses: of a tied head, the embedding. */
static void find_held(const gt_pipe_job *p, size_t stage, held *h) {
  const gt_pipe_layout *l = &p->layout;
  const size_t n = gt_graph_operations(p->graph);
  *h = (held){GT_NEW_ARRAY(gt_span, n), GT_NEW_ARRAY(bool, n), 0};
  for (size_t c = 0; c < l->chunks; c++)
    add_span(h, p->spans[gt_pipe_span_of(l->stages, c, stage)], true);
  for (size_t i = 0; i < n; i++) {
    const size_t owner = gt_graph_operation(p->graph, i).borrows;
    if (owner < n && has_operation(h, i) && !has_operation(h, owner))
      add_span(h, (gt_span){owner, owner + 1}, false);
  }
}

static gt_status plan_of(gt_memory_plan *plan, const gt_graph_spec *spec) {
  gt_graph *graph = NULL;
  GT_TRY(gt_graph_create(&graph, spec));
  *plan = gt_graph_memory(graph);
  gt_graph_close(graph);
  return GT_OK;
}

static gt_status find_holds(gt_pipe_job *p, const gt_graph_spec *model, size_t stage) {
  const gt_pipe_layout *l = &p->layout;
  gt_memory_plan plan = {0}, fused = {0};
  gt_graph_spec spec = *model;
  held h;
  find_held(p, stage, &h);
  spec.sizes_only = true;
  spec.batch_max = l->micro_samples / l->places[stage].workers;
  spec.batch = 0;
  spec.slots = 1;
  spec.spans = h.spans;
  spec.runs = h.runs;
  spec.nspans = h.n;
  spec.fused = false;
  spec.micros = l->micros;
  gt_status status = plan_of(&plan, &spec);
  spec.fused = true;
  if (status == GT_OK) status = plan_of(&fused, &spec);
  p->holds[stage] = (gt_pipe_holds){.arrays = plan.arrays,
                                    .shared = plan.shared,
                                    .slot = plan.slot,
                                    .fused_shared = fused.shared,
                                    .fused_slot = fused.slot};
  gt_free(h.spans);
  gt_free(h.runs);
  return status;
}

/* ---- what fits ------------------------------------------------------------------------------- */

/* The micro-batches that fit; as many as there are at most. */
static gt_status find_most(gt_pipe_job *p, size_t stage) {
  const gt_pipe_layout *l = &p->layout;
  const gt_pipe_holds *h = &p->holds[stage];
  /* of the two ways to compute gradients the smaller one: what a schedule needs is checked later */
  const size_t shared = h->fused_shared < h->shared ? h->fused_shared : h->shared,
               each = h->fused_slot < h->slot ? h->fused_slot : h->slot;
  const double memory = p->job->pipeline.memory_bytes, fixed = (double)(h->arrays + shared),
               needed = fixed + (double)(l->chunks * each);
  const size_t most = l->chunks * l->micros;
  char have[BYTES_TEXT], need[BYTES_TEXT], arrays[BYTES_TEXT], slot[BYTES_TEXT];
  if (memory < needed)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: pipeline.memory is %s, and a worker of stage %zu needs %s for parameters, "
                   "gradients and scratch, and %s for each micro-batch in flight; %s or more is "
                   "needed",
                   p->job->name, bytes_text(have, memory), stage, bytes_text(arrays, fixed),
                   bytes_text(slot, (double)each), bytes_text(need, needed));
  const double fits = each > 0 ? (memory - fixed) / (double)each : (double)most;
  p->slots_most[stage] = fits < (double)most ? (double)(size_t)fits : (double)most;
  return GT_OK;
}

gt_status gt_pipe_job_find_memory(gt_pipe_job *p, const gt_graph_spec *model) {
  const size_t stages = p->layout.stages;
  p->holds = GT_NEW_ARRAY(gt_pipe_holds, stages);
  for (size_t s = 0; s < stages; s++) GT_TRY(find_holds(p, model, s));
  if (p->job->pipeline.memory_bytes <= 0) return GT_OK;
  p->slots_most = GT_NEW_ARRAY(double, stages);
  for (size_t s = 0; s < stages; s++) GT_TRY(find_most(p, s));
  return GT_OK;
}
