/* The operations of a job's spans: by the names at which its stages end, or cut evenly; and whether
   their stages can run them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "of_job.h"

#define KEY_SIZE ((size_t)64)

static double work_of(const gt_operation *op) {
  return op->forward + op->backward_input + op->backward_weight;
}

/* ---- by names -------------------------------------------------------------------------------- */

/* The name at which the span ends, and its key; NULL: it has none. */
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
  const gt_status status = GT_FAIL(
      GT_ERR_JOB,
      "%s: %s is \"%s\", and no operation of model %s has this name or one that begins with "
      "it and a dot; one such as %s is needed",
      p->job->name, key, name, gt_model_names[p->job->model.name], near ? near : names[n / 2]);
  gt_free(names);
  return status;
}

/* The nearest operations before and behind one, at which a span can end. */
static gt_status wrong_cut(const gt_pipe_job *p, const char *key, const char *name, size_t at) {
  const size_t n = gt_graph_operations(p->graph);
  size_t before = at, behind = at + 1;
  while (before > 0 && !gt_graph_operation(p->graph, before - 1).ends) before--;
  while (behind < n && !gt_graph_operation(p->graph, behind).ends) behind++;
  const bool both = before > 0 && behind + 1 < n;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: %s is %s, and the model cannot be cut behind its operation %s; the nearest "
                 "operation%s behind which it can be cut: %s%s%s",
                 p->job->name, key, name, gt_graph_operation(p->graph, at).name, both ? "s" : "",
                 before > 0       ? gt_graph_operation(p->graph, before - 1).name
                 : behind + 1 < n ? gt_graph_operation(p->graph, behind).name
                                  : "none",
                 both ? ", " : "", both ? gt_graph_operation(p->graph, behind).name : "");
}

/* The end of a span that has a name. */
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
                   "%s: %s is %s, and the model goes on behind it; its last part ends with %s, or "
                   "has no name",
                   p->job->name, key, name, gt_graph_operation(p->graph, n - 1).name);
  if (*end > first) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "%s: %s is %s, and the part of the model before ends with %s; one that ends later "
                 "is needed, so that the stage has operations",
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

/* Cuts 0 to n: cut 0 is before the model; sums are of the multiply-adds before each cut. */
typedef struct {
  const gt_pipe_job *p;
  size_t *at; /* the operation behind the cut */
  double *sums;
  size_t n;
  double *best; /* (spans + 1, n + 1): of the first spans, up to a cut */
  size_t *from; /* the cut before the last of them */
} cutter;

static double cost_of(const cutter *c, size_t span, size_t from, size_t to) {
  return (c->sums[to] - c->sums[from]) / (double)gt_pipe_job_place(c->p, span)->workers;
}

/* What the spans are worth with one more: the largest cost; or, with a limit for each of them, the
   sum of squares. */
static double join(double before, double cost, double limit) {
  if (limit == INFINITY) return fmax(before, cost);
  return cost > limit ? INFINITY : before + cost * cost;
}

/* The least that all spans up to the last cut are worth. */
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
    sum += work_of(&op);
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

#define ROUNDING 1e-12

/* The least largest cost, and of these cuts the most even one. */
static gt_status cut_evenly(gt_pipe_job *p) {
  cutter c;
  open_cutter(&c, p);
  gt_status status = GT_OK;
  const size_t spans = gt_pipe_job_nspans(p);
  if (c.n < spans)
    status =
        GT_FAIL(GT_ERR_JOB,
                "%s: pipeline.stages has %zu stages, and model %s can be cut into %zu parts at "
                "most; fewer are needed",
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

/* ---- what a stage can run -------------------------------------------------------------------- */

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
                 "%s: operation %s, in region %s, has the weights of %s, in region %s; both in "
                 "stages of one region, or model.untied: true, is needed",
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
                   "statistics, which would differ between them; 1 is needed",
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
