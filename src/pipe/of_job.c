/* From a job and its model to a pipeline that can be run, planned and predicted. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "of_job.h"

/* ---- counts and places ----------------------------------------------------------------------- */

/* Workers of a region are numbered in the order of its stages. */
static void find_places(gt_pipe_job *p) {
  const gt_job *job = p->job;
  gt_pipe_layout *l = &p->layout;
  size_t *taken = GT_NEW_ARRAY(size_t, job->nregions);
  *l = (gt_pipe_layout){.nregions = job->nregions,
                        .stages = job->pipeline.nstages,
                        .chunks = gt_job_chunks(job),
                        .micros = l->micros,
                        .micro_samples = (size_t)job->train.batch / l->micros};
  l->places = GT_NEW_ARRAY(gt_pipe_place, l->stages);
  for (size_t s = 0; s < l->stages; s++) {
    const size_t workers = (size_t)job->pipeline.stages[s].workers,
                 region = gt_job_stage_region(job, p->copy, s);
    l->places[s] = (gt_pipe_place){region, taken[region], workers};
    taken[region] += workers;
  }
  gt_free(taken);
}

static void find_outputs(gt_pipe_job *p) {
  const size_t n = gt_pipe_job_nspans(p);
  p->layout.output_bytes = GT_NEW_ARRAY(size_t, n);
  for (size_t k = 0; k < n; k++)
    p->layout.output_bytes[k] = gt_graph_operation(p->graph, p->spans[k].end - 1).output_bytes;
}

/* Labels travel if the loss is in another region than the data.  Those of a text are its ids. */
static void find_labels(gt_pipe_job *p) {
  const bool text = gt_graph_of_text(p->graph);
  const size_t ids = text ? gt_graph_predictions(p->graph) + 1 : 1,
               last = gt_pipe_job_nspans(p) - 1;
  if (gt_pipe_job_place(p, 0)->region != gt_pipe_job_place(p, last)->region)
    p->layout.label_bytes = ids * sizeof(int32_t);
}

/* Tensors lie in the order of the operations that own them. */
static void find_owners(gt_pipe_job *p) {
  const gt_arrays *a = gt_graph_arrays(p->graph);
  size_t end = 0, t = 0;
  p->owners = GT_NEW_ARRAY(size_t, a->nviews);
  p->nowners = a->nviews;
  for (size_t k = 0; k < gt_pipe_job_nspans(p); k++) {
    end += gt_graph_span_floats(p->graph, p->spans[k], false);
    while (t < a->nviews && a->views[t].offset < end)
      p->owners[t++] = gt_pipe_job_place(p, k)->region;
  }
}

/* ---- the schedule ---------------------------------------------------------------------------- */

/* A region of which compute says nothing. */
static const char *untimed(const gt_job *job) {
  for (size_t r = 0; r < job->nregions; r++) {
    const gt_job_compute c = gt_job_compute_of(job, r);
    if (c.step_s <= 0 && c.samples_per_s <= 0) return job->regions[r].name;
  }
  return "";
}

static gt_status check_kind(const gt_pipe_job *p, gt_pipe_kind kind) {
  const size_t chunks = gt_pipe_chunks(kind);
  if (chunks > 0 && chunks != p->layout.chunks)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: schedule %s is for stages of %zu part%s of the model, and those of "
                   "pipeline.stages have %zu",
                   p->job->name, gt_pipe_names[kind], chunks, chunks == 1 ? "" : "s",
                   p->layout.chunks);
  if (kind != GT_PIPE_AUTO || p->timed) return GT_OK;
  const bool adapts = p->layout.adapts;
  return GT_FAIL(
      GT_ERR_JOB,
      "%s: %s is %s, and compute says nothing of region %s; add what a step takes, as in "
      "--set 'compute.step=10 ms', or a profile of `geotrain probe`, or %s",
      p->job->name, adapts ? "pipeline.adapt" : "pipeline.schedule",
      adapts ? gt_adapt_names[p->job->pipeline.adapt] : "auto", untimed(p->job),
      adapts ? "leave it out" : "choose a schedule such as 1f1b");
}

/* Of the fixed kinds that fit, the one with the least period takes the place of *out, which does not
   fit; where none does, *out stays. */
static gt_status best_fixed(gt_pipe_schedule **out, const gt_pipe_job *pipe) {
  gt_pipe_problem problem = pipe->problem;
  gt_ns least = GT_NEVER;
  gt_status status = GT_OK;
  problem.memory = NULL;
  for (int kind = 0; kind < (int)GT_PIPE_AUTO && status == GT_OK; kind++) {
    gt_pipe_schedule *other = NULL;
    gt_pipe_result result = {0};
    gt_pipe_need need;
    size_t stage;
    if (check_kind(pipe, (gt_pipe_kind)kind) != GT_OK ||
        gt_pipe_make(&other, (gt_pipe_kind)kind, &problem, NULL) != GT_OK)
      continue;
    const bool fits = !gt_pipe_job_exceeds(pipe, other, &stage, &need);
    if (fits) status = gt_pipe_evaluate(&result, other, &problem, GT_PIPE_STEADY);
    if (fits && status == GT_OK && result.period < least) {
      gt_pipe_schedule *worse = *out;
      least = result.period;
      *out = other;
      other = worse;
    }
    gt_pipe_result_close(&result);
    gt_pipe_schedule_close(other);
  }
  return status;
}

/* What goes to other stages and comes from them depends on the schedule: where it does not fit, the
   search begins again with fewer micro-batches in flight. */
static gt_status search_within(gt_pipe_schedule **out, const gt_pipe_job *pipe,
                               const gt_pipe_search *search) {
  const size_t stages = pipe->layout.stages;
  gt_pipe_problem problem = pipe->problem;
  double *most = GT_NEW_ARRAY(double, stages);
  gt_status status;
  for (size_t s = 0; pipe->slots_most && s < stages; s++) most[s] = pipe->slots_most[s];
  if (pipe->slots_most) problem.memory = most;
  for (;;) {
    gt_pipe_need need;
    size_t stage;
    status = gt_pipe_make(out, GT_PIPE_AUTO, &problem, search);
    if (status != GT_OK || !gt_pipe_job_exceeds(pipe, *out, &stage, &need)) break;
    if (need.slots <= pipe->layout.chunks) {
      status = best_fixed(out, pipe);
      break;
    }
    const double excess = (double)need.all - pipe->job->pipeline.memory_bytes,
                 fewer = ceil(excess / (double)need.slot), least = (double)pipe->layout.chunks;
    most[stage] = fmax(least, (double)need.slots - fmax(1, fewer));
    gt_pipe_schedule_close(*out);
    *out = NULL;
  }
  gt_free(most);
  return status;
}

gt_status gt_pipe_job_schedule(gt_pipe_schedule **out, const gt_pipe_job *pipe, gt_pipe_kind kind) {
  const gt_pipe_search search = {
      .aim = GT_PIPE_PERIOD, .variants = pipe->variants, .seed = pipe->job->seed};
  gt_pipe_problem problem = pipe->problem;
  *out = NULL;
  GT_TRY(check_kind(pipe, kind));
  /* Memory is compared below, where the keys are known. */
  problem.memory = NULL;
  if (kind == GT_PIPE_AUTO)
    GT_TRY(search_within(out, pipe, &search));
  else
    GT_TRY(gt_pipe_make(out, kind, &problem, &search));
  const gt_status status = gt_pipe_job_check_memory(pipe, *out, kind);
  if (status == GT_OK) return GT_OK;
  gt_pipe_schedule_close(*out);
  *out = NULL;
  return status;
}

static size_t more(size_t a, size_t b) {
  return a > b ? a : b;
}

bool gt_pipe_job_fewer_slots(gt_pipe_job *p) {
  gt_pipe_layout *l = &p->layout;
  bool fewer = false;
  for (size_t s = 0; s < l->stages; s++) {
    const bool spare = l->slots[s] > gt_pipe_slots(l->schedule, s);
    l->slots[s] -= spare;
    fewer |= spare;
  }
  return fewer;
}

/* If the schedule may change in the run, a worker has as many slots as fit, and no fewer than this
   schedule needs. */
static gt_status find_slots(gt_pipe_job *p) {
  gt_pipe_layout *l = &p->layout;
  gt_pipe_need need;
  size_t stage;
  l->slots = GT_NEW_ARRAY(size_t, l->stages);
  for (size_t s = 0; s < l->stages; s++) {
    const size_t needed = gt_pipe_slots(l->schedule, s),
                 most = p->slots_most ? (size_t)p->slots_most[s] : l->chunks * l->micros;
    l->slots[s] = l->adapts ? more(needed, most) : needed;
  }
  for (bool fewer = l->adapts; fewer && gt_pipe_job_exceeds(p, l->schedule, &stage, &need);)
    fewer = gt_pipe_job_fewer_slots(p);
  return gt_pipe_job_check_memory(p, l->schedule, p->job->pipeline.schedule);
}

static gt_status find_schedule(gt_pipe_job *p) {
  gt_pipe_layout *l = &p->layout;
  l->adapts = p->job->pipeline.adapt != GT_ADAPT_NOTHING;
  if (l->adapts) GT_TRY(check_kind(p, GT_PIPE_AUTO));
  GT_TRY(gt_pipe_job_schedule(&l->schedule, p, p->job->pipeline.schedule));
  return find_slots(p);
}

size_t gt_pipe_job_memory(const gt_pipe_job *pipe, size_t stage) {
  return gt_pipe_job_need(pipe, pipe->layout.schedule, stage).all;
}

/* ---- traffic --------------------------------------------------------------------------------- */

static size_t wire_bytes(size_t payload) {
  const gt_frame_header head = {.flags = GT_FRAME_ROUTED};
  return gt_message_wire_bytes(&head, payload);
}

/* A micro-batch from the workers of one stage to those of another, each sending to each that has
   samples in common. */
static size_t crossing(const gt_pipe_job *p, const gt_pipe_place *from, const gt_pipe_place *to,
                       size_t sample_bytes) {
  const size_t n = p->layout.micro_samples, one = n / from->workers, other = n / to->workers;
  size_t sum = 0;
  for (size_t at = 0, end; at < n; at = end) {
    const size_t a = (at / one + 1) * one, b = (at / other + 1) * other;
    end = a < b ? a : b;
    sum += wire_bytes((end - at) * sample_bytes);
  }
  return sum;
}

size_t gt_pipe_job_bytes(const gt_pipe_job *pipe, size_t from, size_t to) {
  const gt_pipe_layout *l = &pipe->layout;
  size_t sum = 0;
  for (size_t k = 0; k + 1 < gt_pipe_job_nspans(pipe) && from != to; k++) {
    const gt_pipe_place *a = gt_pipe_job_place(pipe, k), *b = gt_pipe_job_place(pipe, k + 1);
    const bool ahead = a->region == from && b->region == to;
    if (ahead || (a->region == to && b->region == from))
      sum += crossing(pipe, a, b, gt_pipe_sample_bytes(l, k, !ahead));
  }
  return sum * l->micros;
}

/* ---- open and close -------------------------------------------------------------------------- */

static gt_status find_all(gt_pipe_job *p, const gt_graph_spec *model) {
  gt_graph_spec spec = *model;
  spec.sizes_only = true;
  spec.batch_max = 0;
  GT_TRY(gt_graph_create(&p->graph, &spec));
  p->sample_bytes = spec.shape.h * spec.shape.w * spec.shape.c * sizeof(float) + sizeof(int32_t);
  find_places(p);
  GT_TRY(gt_pipe_job_find_spans(p));
  find_outputs(p);
  find_labels(p);
  find_owners(p);
  GT_TRY(gt_pipe_job_find_memory(p, model));
  GT_TRY(gt_pipe_job_find_problem(p));
  return find_schedule(p);
}

gt_status gt_pipe_job_open_shape(gt_pipe_job **out, const gt_job *job, const gt_graph_spec *model,
                                 const gt_pipe_job_form *form) {
  gt_pipe_job *p = GT_NEW(gt_pipe_job);
  *p = (gt_pipe_job){.job = job,
                     .copy = form->copy,
                     .variants = form->variants,
                     .layout = {.micros = form->micros}};
  *out = NULL;
  const gt_status status = find_all(p, model);
  if (status == GT_OK)
    *out = p;
  else
    gt_pipe_job_close(p);
  return status;
}

void gt_pipe_job_close(gt_pipe_job *pipe) {
  if (!pipe) return;
  void *owned[] = {pipe->spans,    pipe->holds,      pipe->sample_s,   pipe->problem_spans,
                   pipe->hops,     pipe->regions,    pipe->link_specs, pipe->access_bps,
                   pipe->update_s, pipe->slots_most, pipe->owners,     pipe->agree_s,
                   pipe->others};
  for (size_t i = 0; i < pipe->nothers; i++) gt_pipe_job_close(pipe->others[i]);
  gt_pipe_layout_close(&pipe->layout);
  gt_graph_close(pipe->graph);
  gt_links_close(pipe->links);
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) gt_free(owned[i]);
  gt_free(pipe);
}
