/* The plan of a pipeline as tables and lines. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipeline.h"

#define MB        1e-6
#define AROUND    ((size_t)12) /* columns of a line of gt_pipe_text beside the drawing */
#define DRAWN_MIN ((size_t)20)

static size_t nspans(const gt_planner_pipeline *p) {
  return p->pipe->layout.stages * p->pipe->layout.chunks;
}

/* The longest name of a region, for a column. */
static int name_width(const gt_planner_pipeline *p) {
  size_t width = 6;
  for (size_t r = 0; r < p->job->nregions; r++)
    if (strlen(p->job->regions[r].name) > width) width = strlen(p->job->regions[r].name);
  return (int)width;
}

static void print_head(FILE *to, const gt_planner_pipeline *p) {
  const gt_pipe_layout *l = &p->pipe->layout;
  const size_t regions = l->nregions / p->ncopies;
  char copies[48] = "";
  if (p->ncopies > 1) snprintf(copies, sizeof copies, ", %zu copies", p->ncopies);
  fprintf(
      to,
      "%s: %s, %zu parameters; %zu stages%s in %zu region%s%s, schedule %s; a step: %d samples, "
      "%zu micro-batch%s of %zu\n\n",
      p->job->name, gt_model_names[p->job->model.name], p->shape.parameters, l->stages,
      l->chunks == 2 ? ", folded," : "", regions, regions == 1 ? "" : "s", copies,
      gt_pipe_names[p->job->pipeline.schedule], p->job->train.batch, l->micros,
      l->micros == 1 ? "" : "es", l->micro_samples);
}

/* Memory may allow other numbers to another copy. */
static void print_shapes(FILE *to, const gt_planner_pipeline *p) {
  char numbers[128];
  if (gt_pipe_job_shapes(p->pipe) > 1)
    fprintf(to,
            "a step may have %s micro-batches (pipeline.adapt: %s); memory is for the largest\n\n",
            gt_pipe_job_shapes_text(p->pipe, numbers, sizeof numbers),
            gt_adapt_names[p->job->pipeline.adapt]);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static size_t params_of(const gt_planner_pipeline *p, const gt_span *span) {
  size_t params = 0;
  for (size_t i = span->first; i < span->end; i++)
    params += gt_graph_operation(p->pipe->graph, i).params;
  return params;
}

static void print_span(FILE *to, const gt_planner_pipeline *p, size_t k) {
  const gt_pipe_job *pipe = p->pipe;
  const size_t s = gt_pipe_stage_of(pipe->layout.stages, k);
  const gt_pipe_span *span = &pipe->problem.spans[k];
  const gt_span *ops = &pipe->spans[k];
  const bool last = k + 1 == nspans(p);
  char cut[32] = "-";
  if (!last) snprintf(cut, sizeof cut, "%.4g", MB * (span->output_bytes + span->label_bytes));
  fprintf(to, "%5zu  %-*s %7zu %11zu %9s %9.4g %9.4g %9.4g  %s to %s\n", s, name_width(p),
          p->job->regions[pipe->layout.places[s].region].name, pipe->layout.places[s].workers,
          params_of(p, ops), cut, 1e3 * span->forward_s, 1e3 * span->backward_s,
          1e3 * span->weight_s, gt_graph_operation(pipe->graph, ops->first).name,
          gt_graph_operation(pipe->graph, ops->end - 1).name);
}

static void print_stages(FILE *to, const gt_planner_pipeline *p) {
  fprintf(to, "%5s  %-*s %7s %11s %9s %9s %9s %9s  %s\n", "stage", name_width(p), "region",
          "workers", "parameters", "sends MB", "F ms", "B ms", "W ms", "operations");
  for (size_t k = 0; k < nspans(p); k++) print_span(to, p, k);
  fprintf(
      to,
      "of a micro-batch: what a stage sends to the next; forward, gradient of the input, gradient "
      "of the\nweights on its slowest worker\n\n");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static double megabytes(size_t floats) {
  return MB * (double)(floats * sizeof(float));
}

static void print_worker(FILE *to, const gt_planner_pipeline *p, size_t s) {
  const gt_pipe_job *pipe = p->pipe;
  const gt_pipe_layout *l = &pipe->layout;
  const gt_pipe_need need = gt_pipe_job_need(pipe, l->schedule, s);
  size_t params = 0, buffers = 0;
  for (size_t c = 0; c < l->chunks; c++) {
    const gt_span *span = &pipe->spans[gt_pipe_span_of(l->stages, c, s)];
    params += params_of(p, span);
    for (size_t i = span->first; i < span->end; i++)
      buffers += gt_graph_operation(pipe->graph, i).buffers;
  }
  fprintf(to, "%5zu %10.4g %9.4g %8.4g %8.4g %8.4g %6zu %8.4g %8.4g %8.4g %8.4g\n", s,
          megabytes(params), megabytes(params), megabytes(buffers),
          MB * (double)(need.arrays - sizeof(float) * (2 * params + buffers)),
          MB * (double)need.scratch, need.slots, MB * (double)(need.slots * need.slot),
          MB * (double)need.areas, MB * (double)need.samples, MB * (double)need.all);
}

static void print_memory(FILE *to, const gt_planner_pipeline *p) {
  fprintf(to, "%5s %10s %9s %8s %8s %8s %6s %8s %8s %8s %8s\n", "stage", "parameters", "gradients",
          "buffers", "tied", "scratch", "slots", "in slots", "passing", "samples", "all");
  for (size_t s = 0; s < p->pipe->layout.stages; s++) print_worker(to, p, s);
  fprintf(to, "MB of a worker; tied: an embedding of another stage; slots: micro-batches in "
              "flight; passing: what\ngoes to other stages, and what comes from other regions");
  if (p->job->pipeline.memory_bytes > 0)
    fprintf(to, "; pipeline.memory allows %.4g", MB * p->job->pipeline.memory_bytes);
  fprintf(to, "\n\n");
}

/* ---- schedules ------------------------------------------------------------------------------- */

static void print_drawing(FILE *to, const gt_planner_pipeline *p, size_t columns) {
  const size_t drawn = columns > AROUND + DRAWN_MIN ? columns - AROUND : DRAWN_MIN;
  char *text = gt_pipe_text(p->pipe->layout.schedule, &p->pipe->problem, &p->result, drawn);
  fputs(text, to);
  gt_free(text);
  fprintf(
      to,
      "the first step, %.4g s: F forward, B and W gradients of inputs and weights%s, . waits\n\n",
      gt_seconds(p->result.makespan),
      p->pipe->layout.chunks == 2 ? " (small: the second parts)" : "");
}

static void print_schedules(FILE *to, const gt_planner_pipeline *p) {
  fprintf(to, "%-10s %9s %11s %10s %11s %8s %8s %6s %10s\n", "schedule", "period s", "samples/s",
          "waits", "makespan s", "bubble", "", "slots", "memory MB");
  for (size_t i = 0; i < p->nschedules; i++) {
    const gt_planner_schedule *s = &p->schedules[i];
    const bool chosen = s->kind == p->job->pipeline.schedule;
    if (!s->fits)
      fprintf(to, "%-10s not possible: %s\n", gt_pipe_names[s->kind], s->why);
    else
      fprintf(to, "%-10s %9.4g %11.4g %9.1f%% %11.4g %7.1f%% %8s %6zu %10.4g\n",
              gt_pipe_names[s->kind], gt_seconds(s->period),
              p->job->train.batch / gt_seconds(s->period), 100 * s->period_bubble,
              gt_seconds(s->makespan), 100 * s->bubble, chosen ? "chosen" : "", s->slots,
              MB * (double)s->memory);
  }
  fprintf(
      to,
      "period: from step to step; waits: its share in which the busiest stage waits; makespan: "
      "of the\nfirst step; bubble: the same share of its cost (docs/pipeline-schedules.md)\n\n");
}

/* ---- traffic and cost ------------------------------------------------------------------------ */

static void print_links(FILE *to, const gt_planner_pipeline *p) {
  const size_t n = p->job->nregions;
  const int width = name_width(p);
  if (n < 2) return;
  fprintf(to, "%-*s  %14s %14s\n", 2 * width + 4, "link", "MB a step", "MB of the run");
  for (size_t i = 0; i < n * n; i++)
    if (p->step_bytes[i] > 0)
      fprintf(to, "%-*s -> %-*s  %14.4g %14.4g\n", width, p->job->regions[i / n].name, width,
              p->job->regions[i % n].name, MB * p->step_bytes[i], MB * p->bytes[i]);
  fprintf(to, "%-*s  %14.4g %14.4g\n\n", 2 * width + 4, "all",
          MB * gt_planner_pipeline_step_bytes(p),
          MB * gt_planner_pipeline_step_bytes(p) * (double)p->steps);
}

static void print_run(FILE *to, const gt_planner_pipeline *p) {
  const gt_cost_result *c = &p->cost;
  fprintf(to,
          "the run: %" PRId64 " steps, %.4g s at %.4g samples/s, without evaluations and "
          "checkpoints%s\n",
          p->steps, p->wall_s, gt_planner_pipeline_rate(p),
          p->shape.assumed ? "; samples as regions[].samples says" : "");
  if (p->prices.known)
    fprintf(to, "cost: %.4g USD%s: workers %.4g, servers %.4g, egress %.4g; %.4g machine hours\n",
            c->usd, c->assumed ? " (some rates are assumed)" : "", c->worker_usd, c->ps_usd,
            c->egress_usd, c->machine_hours);
  else
    fprintf(to, "cost: %.4g machine hours; no price is known\n", c->machine_hours);
  for (size_t i = 0; i < c->nmissing; i++)
    fprintf(to, "not in it: the price of %s\n", c->missing[i]);
}

static void print_pipeline(FILE *to, const gt_planner_pipeline *p, size_t columns) {
  print_shapes(to, p);
  print_stages(to, p);
  print_memory(to, p);
  gt_planner_pipeline_print_servers(to, p);
  print_drawing(to, p, columns);
  gt_planner_pipeline_print_phases(to, p);
  print_schedules(to, p);
}

void gt_planner_pipeline_print(FILE *to, const gt_planner_pipeline *p, size_t columns) {
  print_head(to, p);
  for (size_t c = 0; c < p->ncopies; c++) {
    const gt_planner_pipeline one = gt_planner_pipeline_copy(p, c);
    if (p->ncopies > 1) gt_planner_pipeline_print_copy(to, p, c);
    print_pipeline(to, &one, columns);
  }
  if (p->ncopies > 1) gt_planner_pipeline_print_copies(to, p);
  print_links(to, p);
  print_run(to, p);
}
