/* From a job and its model to a pipeline for runs, plans and predictions.  If the number of
   micro-batches adapts, also the other numbers that a run may use: those that divide the batch into
   at least a sample per worker, from a quarter to four times the job's, whose memory fits. */
#include "of_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BYTES_TEXT ((size_t)32)
/* Other numbers of micro-batches: at most this many times fewer or more. */
#define FEWER ((size_t)4)
#define MORE  ((size_t)4)
/* At the start each number requires some order; a run searches its own. */
#define VARIANTS ((size_t)1)

static const char *bytes_text(char text[BYTES_TEXT], double bytes) {
  const double mib = 0x1p20;
  snprintf(text, BYTES_TEXT, bytes < mib ? "%.4g KiB" : "%.4g MiB",
           bytes / (bytes < mib ? 1024 : mib));
  return text;
}

/* ---- memory of a worker ---------------------------------------------------------------------- */

/* The spans whose tensors a worker has, and a flag for those that it runs. */
typedef struct {
  gt_span *spans;
  bool *runs;
  size_t n;
} held;

/* Adds a span in the model's order. */
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

/* Finds the spans, including operations of other stages whose weights this one uses: for a tied
   head the embedding. */
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
  spec.micro_batches = l->micro_batches;
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

/* ---- the memory limit ------------------------------------------------------------------------ */

/* Finds the number of micro-batches that fit, at most that of the step. */
static gt_status find_most(gt_pipe_job *p, size_t stage) {
  const gt_pipe_layout *l = &p->layout;
  const gt_pipe_holds *h = &p->holds[stage];
  /* the smaller of the two ways to compute gradients; the schedule's memory is checked later */
  const size_t shared = h->fused_shared < h->shared ? h->fused_shared : h->shared,
               each = h->fused_slot < h->slot ? h->fused_slot : h->slot;
  const double memory = p->job->pipeline.memory_bytes, fixed = (double)(h->arrays + shared),
               needed = fixed + (double)(l->chunks * each);
  const size_t most = l->chunks * l->micro_batches;
  char have[BYTES_TEXT], need[BYTES_TEXT], arrays[BYTES_TEXT], slot[BYTES_TEXT];
  if (memory < needed)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: pipeline.memory is %s, and a worker of stage %zu needs %s for parameters, gradients "
        "and scratch, and %s for each micro-batch in flight; expected %s or more",
        p->job->name, bytes_text(have, memory), stage, bytes_text(arrays, fixed),
        bytes_text(slot, (double)each), bytes_text(need, needed));
  const double fits = each > 0 ? (memory - fixed) / (double)each : (double)most;
  p->slots_most[stage] = fits < (double)most ? (double)(size_t)fits : (double)most;
  return GT_OK;
}

/* Fills p->holds, and p->slots_most if memory is limited. */
static gt_status find_memory(gt_pipe_job *p, const gt_graph_spec *model) {
  const size_t stages = p->layout.stages;
  p->holds = GT_NEW_ARRAY(gt_pipe_holds, stages);
  for (size_t s = 0; s < stages; s++) GT_TRY(find_holds(p, model, s));
  if (p->job->pipeline.memory_bytes <= 0) return GT_OK;
  p->slots_most = GT_NEW_ARRAY(double, stages);
  for (size_t s = 0; s < stages; s++) GT_TRY(find_most(p, s));
  return GT_OK;
}

/* ---- all that a worker needs, with a given schedule ------------------------------------------ */

/* True if no pass of the stage computes the two gradients separately. */
static bool is_fused(const gt_pipe_schedule *schedule, size_t stage) {
  const gt_pipe_list *list = &schedule->lists[stage];
  for (size_t i = 0; i < list->n; i++)
    if (list->passes[i].kind == GT_PASS_W) return false;
  return true;
}

/* True if an operation of the stage reads samples, or the stage ends with the loss. */
static bool reads(const gt_pipe_job *p, size_t stage) {
  for (size_t c = 0; c < p->layout.chunks; c++) {
    const size_t span = gt_pipe_span_of(p->layout.stages, c, stage);
    if (span + 1 == gt_pipe_job_nspans(p)) return true;
    for (size_t i = p->spans[span].first; i < p->spans[span].end; i++)
      if (gt_graph_operation(p->graph, i).samples) return true;
  }
  return false;
}

/* Returns the memory of this shape only. */
static gt_pipe_need own_need(const gt_pipe_job *pipe, const gt_pipe_schedule *schedule,
                             size_t stage) {
  const gt_pipe_holds *h = &pipe->holds[stage];
  gt_pipe_layout with = pipe->layout;
  with.schedule = (gt_pipe_schedule *)(uintptr_t)schedule;
  /* another schedule that fits into the slots may replace this one */
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

static size_t more(size_t a, size_t b) {
  return a > b ? a : b;
}

/* Takes the maximum: shapes use the same memory, one after the other. */
static void widen(gt_pipe_need *n, const gt_pipe_need *other) {
  if (other->scratch + other->slots * other->slot > n->scratch + n->slots * n->slot) {
    n->scratch = other->scratch;
    n->slots = other->slots;
    n->slot = other->slot;
  }
  n->areas = more(n->areas, other->areas);
  n->samples = more(n->samples, other->samples);
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

/* True if a worker uses more than pipeline.memory; returns the first such stage and its memory. */
static bool exceeds(const gt_pipe_job *p, const gt_pipe_schedule *schedule, size_t *stage,
                    gt_pipe_need *need) {
  for (*stage = 0; p->slots_most && *stage < p->layout.stages; ++*stage) {
    *need = gt_pipe_job_need(p, schedule, *stage);
    if ((double)need->all > p->job->pipeline.memory_bytes) return true;
  }
  return false;
}

static gt_status check_memory(const gt_pipe_job *p, const gt_pipe_schedule *schedule,
                              gt_pipe_kind kind) {
  const double mib = 0x1p20;
  gt_pipe_need need;
  size_t stage;
  if (!exceeds(p, schedule, &stage, &need)) return GT_OK;
  return GT_FAIL(
      GT_ERR_JOB,
      "%s: pipeline.memory is %.4g MiB, and a worker of stage %zu needs %.4g MiB with schedule %s: "
      "%.4g for parameters, gradients and buffers, %.4g for %zu micro-batches in flight, %.4g for "
      "messages to and from other stages, %.4g for scratch and samples; more stages, more "
      "micro-batches or another schedule need less",
      p->job->name, p->job->pipeline.memory_bytes / mib, stage, (double)need.all / mib,
      gt_pipe_names[kind], (double)need.arrays / mib, (double)(need.slots * need.slot) / mib,
      need.slots, (double)need.areas / mib, (double)(need.scratch + need.samples) / mib);
}

/* ---- counts and places ----------------------------------------------------------------------- */

/* Sets the places; workers of a region are numbered in the order of its stages. */
static void find_places(gt_pipe_job *p) {
  const gt_job *job = p->job;
  gt_pipe_layout *l = &p->layout;
  size_t *taken = GT_NEW_ARRAY(size_t, job->nregions);
  *l = (gt_pipe_layout){.nregions = job->nregions,
                        .stages = job->pipeline.nstages,
                        .chunks = gt_job_chunks(job),
                        .micro_batches = l->micro_batches,
                        .micro_samples = (size_t)job->train.batch / l->micro_batches};
  l->places = GT_NEW_ARRAY(gt_pipe_place, l->stages);
  for (size_t s = 0; s < l->stages; s++) {
    const size_t workers = (size_t)job->pipeline.stages[s].workers,
                 region = gt_job_stage_region(job, p->replica, s);
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

/* Decides if labels are sent: the loss is in another region than the data.  Labels of a text are
   its ids. */
static void find_labels(gt_pipe_job *p) {
  const bool text = gt_graph_of_text(p->graph);
  const size_t ids = text ? gt_graph_predictions(p->graph) + 1 : 1,
               last = gt_pipe_job_nspans(p) - 1;
  if (gt_pipe_job_place(p, 0)->region != gt_pipe_job_place(p, last)->region)
    p->layout.label_bytes = ids * sizeof(int32_t);
}

/* Finds the owners; tensors are in the order of the operations that own them. */
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

/* Returns a region without a time of a step in compute, or NULL. */
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
    return GT_FAIL(
        GT_ERR_JOB, "%s: schedule %s needs %zu span%s per stage; pipeline.stages has %zu",
        p->job->name, gt_pipe_names[kind], chunks, chunks == 1 ? "" : "s", p->layout.chunks);
  if (kind != GT_PIPE_AUTO || p->timed) return GT_OK;
  const bool adapts = p->layout.adapts;
  return GT_FAIL(
      GT_ERR_JOB,
      "%s: %s is %s and compute.step is not given for region %s; expected it, as in --set "
      "'compute.step=10 ms', or a profile of `geotrain probe`, or %s",
      p->job->name, adapts ? "pipeline.adapt" : "pipeline.schedule",
      adapts ? gt_adapt_names[p->job->pipeline.adapt] : "auto", untimed(p->job),
      adapts ? "no pipeline.adapt" : "a schedule such as 1f1b");
}

/* Replaces *out, which does not fit, by the fixed kind with the least period that fits; if none
   does, keeps *out. */
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
    const bool fits = !exceeds(pipe, other, &stage, &need);
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

/* Searches within memory.  Messages to and from other stages depend on the schedule: if it does not
   fit, searches again with fewer micro-batches in flight. */
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
    if (status != GT_OK || !exceeds(pipe, *out, &stage, &need)) break;
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
  /* memory is compared below, where the keys are known */
  problem.memory = NULL;
  if (kind == GT_PIPE_AUTO)
    GT_TRY(search_within(out, pipe, &search));
  else
    GT_TRY(gt_pipe_make(out, kind, &problem, &search));
  const gt_status status = check_memory(pipe, *out, kind);
  if (status == GT_OK) return GT_OK;
  gt_pipe_schedule_close(*out);
  *out = NULL;
  return status;
}

/* Removes one slot of each stage that has more than its schedule uses; false: none has. */
static bool fewer_slots(gt_pipe_job *p) {
  gt_pipe_layout *l = &p->layout;
  bool fewer = false;
  for (size_t s = 0; s < l->stages; s++) {
    const bool spare = l->slots[s] > gt_pipe_slots(l->schedule, s);
    l->slots[s] -= spare;
    fewer |= spare;
  }
  return fewer;
}

/* Sets the slots.  If the schedule may change in the run, a worker has as many as fit, at least
   those of this schedule. */
static gt_status find_slots(gt_pipe_job *p) {
  gt_pipe_layout *l = &p->layout;
  gt_pipe_need need;
  size_t stage;
  l->slots = GT_NEW_ARRAY(size_t, l->stages);
  for (size_t s = 0; s < l->stages; s++) {
    const size_t needed = gt_pipe_slots(l->schedule, s),
                 most = p->slots_most ? (size_t)p->slots_most[s] : l->chunks * l->micro_batches;
    l->slots[s] = l->adapts ? more(needed, most) : needed;
  }
  for (bool fewer = l->adapts; fewer && exceeds(p, l->schedule, &stage, &need);)
    fewer = fewer_slots(p);
  return check_memory(p, l->schedule, p->job->pipeline.schedule);
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
  GT_TRY(find_memory(p, model));
  GT_TRY(gt_pipe_job_find_problem(p));
  return find_schedule(p);
}

/* Opens one shape.  Requires job, replica, variants and layout.micro_batches in `begin`. */
static gt_status open_shape(gt_pipe_job **out, const gt_pipe_job *begin,
                            const gt_graph_spec *model) {
  gt_pipe_job *p = GT_NEW(gt_pipe_job);
  *p = *begin;
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
  void *owned[] = {pipe->spans,   pipe->holds,    pipe->sample_s,   pipe->problem_spans,
                   pipe->hops,    pipe->regions,  pipe->slots_most, pipe->owners,
                   pipe->agree_s, pipe->update_s, pipe->others};
  for (size_t i = 0; i < pipe->nothers; i++) gt_pipe_job_close(pipe->others[i]);
  gt_pipe_layout_close(&pipe->layout);
  gt_graph_close(pipe->graph);
  gt_pipe_job_wan_close(&pipe->wan);
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) gt_free(owned[i]);
  gt_free(pipe);
}

/* ---- other numbers of micro-batches ---------------------------------------------------------- */

static bool divides(const gt_job *job, size_t micro_batches) {
  const size_t batch = (size_t)job->train.batch;
  if (batch % micro_batches != 0) return false;
  for (size_t s = 0; s < job->pipeline.nstages; s++)
    if (batch / micro_batches % (size_t)job->pipeline.stages[s].workers != 0) return false;
  return true;
}

/* Rejects statistics of micro-batches, which depend on the size of these. */
static gt_status check_statistics(const gt_pipe_job *p) {
  for (size_t i = 0; i < gt_graph_operations(p->graph); i++) {
    const gt_operation op = gt_graph_operation(p->graph, i);
    if (op.buffers == 0) continue;
    return GT_FAIL(GT_ERR_JOB,
                   "%s: pipeline.adapt is %s, and %s keeps statistics of micro-batches, which "
                   "depend on their size; expected false, true or another model",
                   p->job->name, gt_adapt_names[GT_ADAPT_MICRO_BATCHES], op.name);
  }
  return GT_OK;
}

/* Adds a shape, unless it does not fit in addition to the others. */
static void add_shape(gt_pipe_job *p, const gt_graph_spec *model, size_t micro_batches) {
  const gt_pipe_job begin = {.job = p->job,
                             .replica = p->replica,
                             .variants = VARIANTS,
                             .layout = {.micro_batches = micro_batches}};
  gt_pipe_job *shape;
  gt_pipe_need need;
  size_t stage;
  if (open_shape(&shape, &begin, model) != GT_OK) return;
  p->others[p->nothers++] = shape;
  while (exceeds(p, p->layout.schedule, &stage, &need)) {
    if (fewer_slots(shape)) continue;
    p->nothers--;
    gt_pipe_job_close(shape);
    return;
  }
}

static gt_status add_shapes(gt_pipe_job *p, const gt_graph_spec *model) {
  const size_t own = p->layout.micro_batches, first = (own + FEWER - 1) / FEWER, last = own * MORE;
  GT_TRY(check_statistics(p));
  p->others = GT_NEW_ARRAY(gt_pipe_job *, last - first + 1);
  for (size_t micro_batches = first; micro_batches <= last; micro_batches++)
    if (micro_batches != own && divides(p->job, micro_batches)) add_shape(p, model, micro_batches);
  return GT_OK;
}

gt_status gt_pipe_job_open(gt_pipe_job **out, const gt_job *job, const gt_graph_spec *model,
                           size_t replica) {
  const gt_pipe_job begin = {.job = job,
                             .replica = replica,
                             .layout = {.micro_batches = (size_t)job->pipeline.micro_batches}};
  *out = NULL;
  if (job->pipeline.nstages == 0) gt_bug("job %s has no pipeline", job->name);
  GT_TRY(open_shape(out, &begin, model));
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

/* Returns the next larger number of micro-batches, or 0. */
static size_t next_of(const gt_pipe_job *pipe, size_t micro_batches) {
  size_t next = 0;
  for (size_t i = 0; i <= pipe->nothers; i++) {
    const size_t m = gt_pipe_job_shape(pipe, i)->layout.micro_batches;
    if (m > micro_batches && (next == 0 || m < next)) next = m;
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

size_t gt_pipe_job_shape_of(const gt_pipe_job *pipe, size_t micro_batches) {
  for (size_t i = 0; i <= pipe->nothers; i++)
    if (gt_pipe_job_shape(pipe, i)->layout.micro_batches == micro_batches) return i;
  gt_bug("the pipeline has no shape of %zu micro-batches", micro_batches);
}
