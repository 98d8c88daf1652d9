/* The operations of a job's spans: from the names at which its stages end, or cut evenly; checks
   that stages can run them; times of their passes and the problem of their schedule; bytes between
   regions. */
#include "of_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KEY_SIZE ((size_t)64)
#define ROUNDING 1e-12

enum { F, B, W, KINDS };

/* ---- by names -------------------------------------------------------------------------------- */

/* Returns the name of the span's last operation, and its key; NULL: no name. */
static const char *name_of(const gt_pipe_job *p, size_t span, char key[KEY_SIZE]) {
  const size_t s = gt_pipe_stage_of(p->layout.stages, span), chunk = span / p->layout.stages;
  const gt_job_stage *stage = &p->job->pipeline.stages[s];
  if (p->layout.chunks == 1)
    snprintf(key, KEY_SIZE, "pipeline.stages.%zu.last", s);
  else
    snprintf(key, KEY_SIZE, "pipeline.stages.%zu.last.%zu", s, chunk);
  return chunk < stage->nlast ? stage->last[chunk] : NULL;
}

static bool is_named(const char *operation, const char *name) {
  const size_t n = strlen(name);
  return strncmp(operation, name, n) == 0 && (operation[n] == '\0' || operation[n] == '.');
}

static gt_status unknown_name(const gt_pipe_job *p, const char *key, const char *name) {
  const size_t n = gt_graph_operations(p->graph);
  const char **names = GT_NEW_ARRAY(const char *, n);
  for (size_t i = 0; i < n; i++) names[i] = gt_graph_operation(p->graph, i).name;
  const char *near = gt_nearest(name, names, n);
  const gt_status status = GT_FAIL(GT_ERR_JOB,
                                   "%s: %s is \"%s\", which is not an operation of model %s or a "
                                   "group of operations; expected a name such as %s",
                                   p->job->name, key, name, gt_model_names[p->job->model.name],
                                   near ? near : names[n / 2]);
  gt_free(names);
  return status;
}

/* Reports the nearest operations before and after this one at which a span can end. */
static gt_status wrong_cut(const gt_pipe_job *p, const char *key, const char *name, size_t at) {
  const size_t n = gt_graph_operations(p->graph);
  size_t before = at, behind = at + 1;
  while (before > 0 && !gt_graph_operation(p->graph, before - 1).ends) before--;
  while (behind < n && !gt_graph_operation(p->graph, behind).ends) behind++;
  const bool both = before > 0 && behind + 1 < n;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: %s is %s, and the model cannot be cut after its operation %s; the nearest "
                 "operation%s after which it can be cut: %s%s%s",
                 p->job->name, key, name, gt_graph_operation(p->graph, at).name, both ? "s" : "",
                 before > 0       ? gt_graph_operation(p->graph, before - 1).name
                 : behind + 1 < n ? gt_graph_operation(p->graph, behind).name
                                  : "none",
                 both ? ", " : "", both ? gt_graph_operation(p->graph, behind).name : "");
}

/* Finds the end of a span with a name. */
static gt_status find_end(const gt_pipe_job *p, const char *key, const char *name, size_t *end) {
  size_t at = gt_graph_operations(p->graph);
  while (at > 0 && !is_named(gt_graph_operation(p->graph, at - 1).name, name)) at--;
  if (at == 0) return unknown_name(p, key, name);
  if (!gt_graph_operation(p->graph, at - 1).ends) return wrong_cut(p, key, name, at - 1);
  *end = at;
  return GT_OK;
}

static gt_status span_by_name(const gt_pipe_job *p, size_t span, size_t first, size_t *end) {
  const size_t n = gt_graph_operations(p->graph);
  const bool last = span + 1 == gt_pipe_job_nspans(p);
  char key[KEY_SIZE];
  const char *name = name_of(p, span, key);
  *end = n;
  if (name) GT_TRY(find_end(p, key, name, end));
  if (last && *end != n)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: %s is %s, and the model continues after it; its last part ends with %s, or "
                   "has no name",
                   p->job->name, key, name, gt_graph_operation(p->graph, n - 1).name);
  if (*end > first) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: %s is %s, and the part of the model before ends with %s; expected one that "
                 "ends later, so that the stage has operations",
                 p->job->name, key, name ? name : "not given",
                 gt_graph_operation(p->graph, first - 1).name);
}

static gt_status cut_by_names(gt_pipe_job *p) {
  for (size_t k = 0, first = 0; k < gt_pipe_job_nspans(p); first = p->spans[k++].end) {
    size_t end = 0;
    GT_TRY(span_by_name(p, k, first, &end));
    p->spans[k] = (gt_span){first, end};
  }
  return GT_OK;
}

/* ---- evenly ---------------------------------------------------------------------------------- */

/* Cuts 0 to n, where cut 0 is before the model. sums are of the multiply-adds before each cut. */
typedef struct {
  const gt_pipe_job *p;
  size_t *at; /* the operation after the cut */
  double *sums;
  size_t n;
  double *best; /* (spans + 1, n + 1): value of the first spans up to a cut */
  size_t *from; /* the cut before the last of these spans */
} cutter;

static double cost_of(const cutter *c, size_t span, size_t from, size_t to) {
  return (c->sums[to] - c->sums[from]) / (double)gt_pipe_job_place(c->p, span)->workers;
}

/* Returns the value of spans with one more: the largest cost, or with a limit per span the sum of
   squares. */
static double join(double before, double cost, double limit) {
  if (limit == INFINITY) return fmax(before, cost);
  return cost > limit ? INFINITY : before + cost * cost;
}

/* Returns the minimum value of all spans up to the last cut. */
static double search(cutter *c, double limit) {
  const size_t width = c->n + 1, spans = gt_pipe_job_nspans(c->p);
  for (size_t j = 0; j < width; j++) c->best[j] = j == 0 ? 0 : INFINITY;
  for (size_t k = 0; k < spans; k++)
    for (size_t to = 0; to < width; to++) {
      double *best = &c->best[(k + 1) * width + to];
      *best = INFINITY;
      for (size_t from = k; from < to; from++) {
        if (c->best[k * width + from] == INFINITY) continue;
        const double worth = join(c->best[k * width + from], cost_of(c, k, from, to), limit);
        if (worth >= *best) continue;
        *best = worth;
        c->from[(k + 1) * width + to] = from;
      }
    }
  return c->best[spans * width + c->n];
}

static void open_cutter(cutter *c, const gt_pipe_job *p) {
  const size_t n = gt_graph_operations(p->graph), spans = gt_pipe_job_nspans(p);
  double sum = 0;
  *c = (cutter){.p = p, .at = GT_NEW_ARRAY(size_t, n + 1), .sums = GT_NEW_ARRAY(double, n + 1)};
  for (size_t i = 0; i < n; i++) {
    const gt_operation op = gt_graph_operation(p->graph, i);
    sum += gt_pipe_work_of(&op);
    if (!op.ends && i + 1 < n) continue;
    c->at[++c->n] = i + 1;
    c->sums[c->n] = sum;
  }
  c->best = GT_NEW_ARRAY(double, (spans + 1) * (c->n + 1));
  c->from = GT_NEW_ARRAY(size_t, (spans + 1) * (c->n + 1));
}

static void close_cutter(cutter *c) {
  gt_free(c->at);
  gt_free(c->sums);
  gt_free(c->best);
  gt_free(c->from);
}

/* Minimises the largest cost, and among these cuts chooses the most even one. */
static gt_status cut_evenly(gt_pipe_job *p) {
  cutter c;
  open_cutter(&c, p);
  gt_status status = GT_OK;
  const size_t spans = gt_pipe_job_nspans(p);
  if (c.n < spans)
    status = GT_FAIL(GT_ERR_JOB,
                     "%s: pipeline.stages has %zu stages, and model %s can be cut into %zu parts "
                     "at most; expected fewer",
                     p->job->name, p->layout.stages, gt_model_names[p->job->model.name], c.n);
  else
    search(&c, search(&c, INFINITY) * (1 + ROUNDING));
  for (size_t k = spans, to = c.n; k-- > 0 && status == GT_OK;) {
    const size_t from = c.from[(k + 1) * (c.n + 1) + to];
    p->spans[k] = (gt_span){c.at[from], c.at[to]};
    to = from;
  }
  close_cutter(&c);
  return status;
}

/* ---- checks of stages ------------------------------------------------------------------------ */

static size_t span_with(const gt_pipe_job *p, size_t op) {
  size_t k = 0;
  while (op >= p->spans[k].end) k++;
  return k;
}

static gt_status check_tied(const gt_pipe_job *p, const gt_operation *op, size_t span) {
  const size_t owner = span_with(p, op->borrows);
  const gt_pipe_place *mine = gt_pipe_job_place(p, span), *its = gt_pipe_job_place(p, owner);
  if (mine->region == its->region) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: operation %s, in region %s, has the weights of %s, in region %s; expected "
                 "both in stages of one region, or model.untied: true",
                 p->job->name, op->name, p->job->regions[mine->region].name,
                 gt_graph_operation(p->graph, op->borrows).name, p->job->regions[its->region].name);
}

static gt_status check_operation(const gt_pipe_job *p, const gt_operation *op, size_t span) {
  const size_t stage = gt_pipe_stage_of(p->layout.stages, span),
               workers = p->layout.places[stage].workers;
  if (op->samples && span > 0)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: operation %s reads the samples, and pipeline.stages.%zu has it; the first "
                   "part of the model, in stage 0, must have it",
                   p->job->name, op->name, stage);
  if (op->buffers > 0 && workers > 1)
    return GT_FAIL(GT_ERR_JOB,
                   "%s: pipeline.stages.%zu.workers is %zu, and its operation %s has running "
                   "statistics, which would differ between them; expected 1",
                   p->job->name, stage, workers, op->name);
  return op->borrows < gt_graph_operations(p->graph) ? check_tied(p, op, span) : GT_OK;
}

gt_status gt_pipe_job_find_spans(gt_pipe_job *p) {
  bool named = false;
  for (size_t s = 0; s < p->layout.stages; s++) named |= p->job->pipeline.stages[s].nlast > 0;
  p->spans = GT_NEW_ARRAY(gt_span, gt_pipe_job_nspans(p));
  GT_TRY(named ? cut_by_names(p) : cut_evenly(p));
  for (size_t k = 0; k < gt_pipe_job_nspans(p); k++)
    for (size_t i = p->spans[k].first; i < p->spans[k].end; i++) {
      const gt_operation op = gt_graph_operation(p->graph, i);
      GT_TRY(check_operation(p, &op, k));
    }
  return GT_OK;
}

/* ---- passes ---------------------------------------------------------------------------------- */

double gt_pipe_step_sample_s(const gt_job *job, const gt_job_compute *compute) {
  if (compute->step_s > 0) return compute->step_s / job->train.batch;
  return compute->samples_per_s > 0 ? 1 / compute->samples_per_s : 0;
}

static void add_work(const gt_pipe_job *p, const gt_span *span, double work[KINDS]) {
  for (size_t i = span->first; i < span->end; i++) {
    const gt_operation op = gt_graph_operation(p->graph, i);
    work[F] += op.forward;
    work[B] += op.backward_input;
    work[W] += op.backward_weight;
  }
}

static void find_times(gt_pipe_job *p) {
  const size_t n = gt_pipe_job_nspans(p);
  const gt_span whole = {0, gt_graph_operations(p->graph)};
  double all[KINDS] = {0};
  add_work(p, &whole, all);
  p->timed = true;
  p->sample_s = GT_NEW_ARRAY(double, KINDS *n);
  for (size_t k = 0; k < n; k++) {
    const gt_job_compute c = gt_job_compute_of(p->job, gt_pipe_job_place(p, k)->region);
    const double step_s = gt_pipe_step_sample_s(p->job, &c);
    double work[KINDS] = {0};
    add_work(p, &p->spans[k], work);
    p->timed &= step_s > 0;
    for (size_t kind = 0; kind < KINDS; kind++)
      p->sample_s[KINDS * k + kind] = step_s * work[kind] / (all[F] + all[B] + all[W]);
  }
  if (!p->timed) memset(p->sample_s, 0, KINDS * n * sizeof *p->sample_s);
}

/* Returns the seconds of a pass other than BW: a constant part, and that of the samples. */
static double pass_s(const gt_pipe_job *p, size_t span, size_t kind, size_t samples,
                     size_t worker) {
  const gt_pipe_place *at = gt_pipe_job_place(p, span);
  const gt_job_compute c = gt_job_compute_of(p->job, at->region);
  if (!p->timed) return 0;
  return c.pass_s + (double)samples * p->sample_s[KINDS * span + kind] /
                        gt_job_worker_speed(p->job, at->region, &c, at->first_worker + worker);
}

gt_ns gt_pipe_job_time(const gt_pipe_job *pipe, size_t span, gt_pass_kind kind, size_t samples,
                       size_t worker) {
  static const size_t of[] = {[GT_PASS_F] = F, [GT_PASS_B] = B, [GT_PASS_W] = W};
  if (kind != GT_PASS_BW) return gt_from_seconds(pass_s(pipe, span, of[kind], samples, worker));
  return gt_from_seconds(pass_s(pipe, span, B, samples, worker)) +
         gt_from_seconds(pass_s(pipe, span, W, samples, worker));
}

/* Returns the seconds of a pass of a micro-batch on the slowest worker of the span's stage. */
static double slowest_s(const gt_pipe_job *p, size_t span, size_t kind) {
  const size_t workers = gt_pipe_job_place(p, span)->workers;
  double most = 0;
  for (size_t w = 0; w < workers; w++) {
    const double s = pass_s(p, span, kind, p->layout.micro_samples / workers, w);
    if (s > most) most = s;
  }
  return most;
}

/* ---- updates --------------------------------------------------------------------------------- */

static size_t params_of(const gt_pipe_job *p, size_t first, size_t end) {
  size_t params = 0;
  for (size_t i = first; i < end; i++) params += gt_graph_operation(p->graph, i).params;
  return params;
}

double gt_pipe_job_update_share(const gt_pipe_job *p, size_t region) {
  const gt_pipe_layout *l = &p->layout;
  const size_t all = params_of(p, 0, gt_graph_operations(p->graph));
  size_t own = 0;
  for (size_t stage = 0; stage < l->stages; stage++) {
    for (size_t chunk = 0; l->places[stage].region == region && chunk < l->chunks; chunk++) {
      const gt_span *span = &p->spans[gt_pipe_span_of(l->stages, chunk, stage)];
      own += params_of(p, span->first, span->end);
    }
  }
  return all > 0 ? (double)own / (double)all : 0;
}

static double update_s(const gt_pipe_job *p, size_t stage) {
  const size_t region = p->layout.places[stage].region;
  const gt_job_compute c = gt_job_compute_of(p->job, region);
  return c.local_s + c.update_s * gt_pipe_job_update_share(p, region);
}

/* ---- steps over regions ---------------------------------------------------------------------- */

/* Returns the bytes of a region's announcement that its gradient is complete; with train.clip it
   includes the squares of its tensors. */
static size_t told_bytes(const gt_pipe_job *p, size_t region) {
  size_t tensors = 0;
  for (size_t i = 0; i < p->nowners; i++) tensors += p->owners[i] == region;
  if (!(p->job->train.clip > 0)) tensors = 0;
  const size_t messages = 1 + (tensors + GT_CONTROL_NUMBERS - 1) / GT_CONTROL_NUMBERS;
  return messages * GT_FRAME_HEADER_BYTES + tensors * sizeof(double);
}

/* Sets agree_s, over idle links. */
static void find_agreement(gt_pipe_job *p) {
  const size_t n = p->layout.nregions;
  p->agree_s = GT_NEW_ARRAY(double, n *n);
  for (size_t i = 0; i < n * n; i++) {
    const gt_link_spec *link = &p->wan.specs[i];
    const double rate = gt_link_goodput(link);
    if (i / n == i % n) continue;
    p->agree_s[i] = link->latency_s + (rate > 0 ? 8.0 * (double)told_bytes(p, i / n) / rate : 0);
  }
}

/* ---- the problem ----------------------------------------------------------------------------- */

gt_status gt_pipe_job_wan_open(gt_pipe_job_wan *out, const gt_job *job) {
  const size_t n = job->nregions;
  *out = (gt_pipe_job_wan){.specs = GT_NEW_ARRAY(gt_link_spec, n * n),
                           .up_bps = GT_NEW_ARRAY(double, n),
                           .down_bps = GT_NEW_ARRAY(double, n)};
  GT_TRY(gt_links_create(&out->links, job));
  for (size_t r = 0; r < n; r++) {
    memcpy(&out->specs[r * n], gt_links_from(out->links, r), n * sizeof *out->specs);
    const gt_link_access access = gt_links_access(out->links, r);
    out->up_bps[r] = access.up_bps;
    out->down_bps[r] = access.down_bps;
  }
  out->wan = (gt_pipe_wan){.nregions = n,
                           .links = out->specs,
                           .up_bps = out->up_bps,
                           .down_bps = out->down_bps,
                           .seed = job->seed};
  return GT_OK;
}

void gt_pipe_job_wan_close(gt_pipe_job_wan *wan) {
  gt_links_close(wan->links);
  gt_free(wan->specs);
  gt_free(wan->up_bps);
  gt_free(wan->down_bps);
}

gt_status gt_pipe_job_find_problem(gt_pipe_job *p) {
  const gt_pipe_layout *l = &p->layout;
  const size_t n = gt_pipe_job_nspans(p);
  find_times(p);
  GT_TRY(gt_pipe_job_wan_open(&p->wan, p->job));
  p->regions = GT_NEW_ARRAY(size_t, l->stages);
  for (size_t s = 0; s < l->stages; s++) p->regions[s] = l->places[s].region;
  p->wan.wan.region = p->regions;
  p->problem_spans = GT_NEW_ARRAY(gt_pipe_span, n);
  p->hops = GT_NEW_ARRAY(gt_pipe_hop, l->stages);
  p->update_s = GT_NEW_ARRAY(double, l->stages);
  for (size_t k = 0; k < n; k++)
    p->problem_spans[k] =
        (gt_pipe_span){.forward_s = slowest_s(p, k, F),
                       .backward_s = slowest_s(p, k, B),
                       .weight_s = slowest_s(p, k, W),
                       .activation = 1,
                       .weight_share = 1,
                       .output_bytes = (double)(l->micro_samples * l->output_bytes[k]),
                       .label_bytes = (double)(l->micro_samples * l->label_bytes)};
  find_agreement(p);
  for (size_t s = 0; s < l->stages; s++) p->update_s[s] = p->timed ? update_s(p, s) : 0;
  p->problem = (gt_pipe_problem){.stages = l->stages,
                                 .chunks = l->chunks,
                                 .micro_batches = l->micro_batches,
                                 .spans = p->problem_spans,
                                 .ahead = p->hops,
                                 .back = p->hops,
                                 .wan = &p->wan.wan,
                                 .memory = p->slots_most,
                                 .update_s = p->update_s,
                                 .agree_s = p->agree_s};
  return GT_OK;
}

/* ---- traffic --------------------------------------------------------------------------------- */

static size_t wire_bytes(size_t payload) {
  const gt_frame_header head = {.flags = GT_FRAME_ROUTED};
  return gt_message_wire_bytes(&head, payload);
}

/* Returns the bytes of a micro-batch from the workers of one stage to those of another, where each
   sends to each that shares samples. */
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
  return sum * l->micro_batches;
}
