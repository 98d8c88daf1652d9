/* The plan of a pipeline as tables and lines, and as one JSON object. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/ps_memory.h"
#include "geotrain/record_table.h"
#include "pipeline.h"

#define MB           1e-6
#define DIGITS       .format = GT_COLUMN_DIGITS, .digits = 4
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define AROUND       ((size_t)12) /* columns of a line of gt_pipe_text beside the drawing */
#define DRAWN_MIN    ((size_t)20)

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

static gt_table *links_of(const gt_planner_pipeline *p) {
  static const gt_column columns[] = {
      {.title = "link"},
      {.key = "from"},
      {.key = "to"},
      {.key = "step_bytes", .title = "a step", .unit = "MB", DIGITS},
      {.key = "bytes", .title = "the run", .unit = "MB", DIGITS}};
  const size_t n = p->job->nregions;
  gt_table *t = gt_table_create(columns, COUNT(columns));
  char link[GT_LINK_NAME];
  for (size_t i = 0; i < n * n; i++) {
    const char *from = p->job->regions[i / n].name, *to = p->job->regions[i % n].name;
    if (p->step_bytes[i] > 0)
      gt_table_add(t, GT_ROW(gt_cell_text(gt_link_name(link, from, to)), gt_cell_text(from),
                             gt_cell_text(to), gt_cell_number(p->step_bytes[i]),
                             gt_cell_number(p->bytes[i])));
  }
  return t;
}

static void print_links(FILE *to, const gt_planner_pipeline *p) {
  const double step_bytes = gt_planner_pipeline_step_bytes(p);
  if (p->job->nregions < 2) return;
  gt_table *t = links_of(p);
  gt_table_add(t, GT_ROW(gt_cell_text("all"), {0}, {0}, gt_cell_number(step_bytes),
                         gt_cell_number(step_bytes * (double)p->steps)));
  gt_table_print(to, t);
  gt_table_close(t);
  fputc('\n', to);
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

/* ---- servers ------------------------------------------------------------------------------------ */

static gt_ps_need need_of(const gt_planner_pipeline *p, size_t region) {
  const gt_ps_setting how = {.modelled = p->job->wan.emulate,
                             .apart = p->job->regions[region].nhosts > 1,
                             .wiring = &p->wiring};
  return gt_ps_need_of(p->pipe, region, &how);
}

/* With several copies also what they exchange, and what the lead holds at the end. */
static void print_server(FILE *to, const gt_planner_pipeline *p, size_t region) {
  const gt_ps_need n = need_of(p, region);
  fprintf(to, "%-12.12s %9.4g %9.4g %9.4g %9.4g", p->job->regions[region].name,
          MB * (double)n.arrays, MB * (double)n.optimizer, MB * (double)n.workers,
          MB * (double)n.frames);
  if (p->ncopies > 1) fprintf(to, " %9.4g", MB * (double)n.exchange);
  fprintf(to, " %10.4g", MB * (double)n.checkpoint);
  if (p->ncopies > 1) fprintf(to, " %9.4g", MB * (double)n.ending);
  fprintf(to, " %9.4g\n", MB * (double)n.all);
}

static void print_servers(FILE *to, const gt_planner_pipeline *p) {
  const bool several = p->ncopies > 1;
  fprintf(to, "%-12s %9s %9s %9s %9s%s %10s%s %9s\n", "server of", "arrays", "optimizer",
          "workers'", "frames", several ? "  exchange" : "", "checkpoint",
          several ? "    ending" : "", "all");
  for (size_t r = 0; r < p->job->nregions; r++)
    if (gt_job_copy_of(p->job, r) == p->pipe->copy) print_server(to, p, r);
  fprintf(to, "MB of a parameter server; workers': its workers' memory that it reads and writes, "
              "counted there, too");
  if (several)
    fprintf(to, ";\nexchange: what the strategy keeps, what is sent to other copies, and what has "
                "come and waits;\nending: what the lead gets of the models at the end, when there "
                "is no checkpoint");
  fprintf(to, "\n\n");
}

/* ---- phases ------------------------------------------------------------------------------------- */

#define KEY(constant, key, title) key,
static const char *const keys[] = {GT_PHASE_LIST(KEY)};
#undef KEY
#define TITLE(constant, key, title) title,
static const char *const titles[] = {GT_PHASE_LIST(TITLE)};
#undef TITLE

static double phase_s(const gt_planner_pipeline *p, size_t stage, size_t phase) {
  return gt_seconds(p->result.stages[stage].phases[phase]) / (double)GT_PIPE_STEADY;
}

static bool any_has(const gt_planner_pipeline *p, size_t phase) {
  for (size_t s = 0; s < p->pipe->layout.stages; s++)
    if (p->result.stages[s].phases[phase] > 0) return true;
  return false;
}

static void print_phases(FILE *to, const gt_planner_pipeline *p) {
  fprintf(to, "%5s", "stage");
  for (size_t i = 0; i < GT_NPHASES; i++)
    if (any_has(p, i)) fprintf(to, " %9s", titles[i]);
  fprintf(to, "\n");
  for (size_t s = 0; s < p->pipe->layout.stages; s++) {
    fprintf(to, "%5zu", s);
    for (size_t i = 0; i < GT_NPHASES; i++)
      if (any_has(p, i)) fprintf(to, " %9.4g", 1e3 * phase_s(p, s, i));
    fprintf(to, "\n");
  }
  fprintf(
      to,
      "ms of a step, mean of the first %zu: passes; bubble: nothing to do; transfer: waiting for "
      "what is on\na link (docs/time-split.md)\n\n",
      GT_PIPE_STEADY);
}

/* ---- copies ------------------------------------------------------------------------------------- */

static void print_regions(FILE *to, const gt_planner_pipeline *p, size_t copy) {
  const char *before = "";
  for (size_t r = 0; r < p->job->nregions; r++) {
    if (gt_job_copy_of(p->job, r) != copy) continue;
    fprintf(to, "%s%s", before, p->job->regions[r].name);
    before = ", ";
  }
}

static void print_copy(FILE *to, const gt_planner_pipeline *p, size_t copy) {
  fprintf(to, "copy %zu: ", copy + 1);
  print_regions(to, p, copy);
  fprintf(to, "\n\n");
}

static void print_copies(FILE *to, const gt_planner_pipeline *p) {
  const char *strategy = gt_strategy_names[p->job->sync.strategy];
  fprintf(to, "%4s %9s %9s %11s %8s  %s\n", "copy", "alone s", "period s", "samples/s", "steps",
          "regions");
  for (size_t c = 0; c < p->ncopies; c++) {
    const gt_planner_copy *of = &p->copies[c];
    fprintf(to, "%4zu %9.4g %9.4g %11.4g %8lld  ", c + 1, gt_seconds(of->result.period),
            of->period_s, p->job->train.batch / of->period_s, (long long)of->steps);
    print_regions(to, p, c);
    fprintf(to, "\n");
  }
  fprintf(to,
          "period: from step to step with what copies exchange (%s), simulated, mean of steps %lld "
          "to %lld;\nalone: without it\n",
          strategy, (long long)p->measured_from + 1, (long long)p->measured_to);
  if (gt_job_key_used("sync.period", strategy) && p->job->sync.period > GT_PLANNER_PERIOD_MAX)
    fprintf(to, "exchanges every %lld steps are not in it\n", (long long)p->job->sync.period);
  if (p->job->pipeline.adapt != GT_ADAPT_NOTHING)
    fprintf(to,
            "pipeline.adapt is %s: each copy follows its own links; these are the plans of the "
            "start\n",
            gt_adapt_names[p->job->pipeline.adapt]);
  fprintf(to, "\n");
}

/* ---- all tables --------------------------------------------------------------------------------- */

static void print_pipeline(FILE *to, const gt_planner_pipeline *p, size_t columns) {
  print_shapes(to, p);
  print_stages(to, p);
  print_memory(to, p);
  print_servers(to, p);
  print_drawing(to, p, columns);
  print_phases(to, p);
  print_schedules(to, p);
}

void gt_planner_pipeline_print(FILE *to, const gt_planner_pipeline *p, size_t columns) {
  print_head(to, p);
  for (size_t c = 0; c < p->ncopies; c++) {
    const gt_planner_pipeline one = gt_planner_pipeline_copy(p, c);
    if (p->ncopies > 1) print_copy(to, p, c);
    print_pipeline(to, &one, columns);
  }
  if (p->ncopies > 1) print_copies(to, p);
  print_links(to, p);
  print_run(to, p);
}

/* ---- JSON --------------------------------------------------------------------------------------- */

static json_t *number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

static json_t *whole(size_t value) {
  return json_integer((json_int_t)value);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static json_t *part(const gt_planner_pipeline *p, size_t k) {
  const gt_pipe_job *pipe = p->pipe;
  const gt_pipe_span *span = &pipe->problem.spans[k];
  const gt_span *ops = &pipe->spans[k];
  size_t params = 0;
  for (size_t i = ops->first; i < ops->end; i++)
    params += gt_graph_operation(pipe->graph, i).params;
  return json_pack("{s:o,s:s,s:s,s:o,s:o,s:o,s:o,s:o}", "part", whole(k), "first",
                   gt_graph_operation(pipe->graph, ops->first).name, "last",
                   gt_graph_operation(pipe->graph, ops->end - 1).name, "parameters", whole(params),
                   "output_bytes", number(span->output_bytes + span->label_bytes), "forward_s",
                   number(span->forward_s), "backward_input_s", number(span->backward_s),
                   "backward_weight_s", number(span->weight_s));
}

static json_t *phases(const gt_planner_pipeline *p, size_t s) {
  json_t *out = json_object();
  for (size_t i = 0; i < GT_NPHASES; i++)
    json_object_set_new(out, keys[i], number(phase_s(p, s, i)));
  return out;
}

static json_t *stage(const gt_planner_pipeline *p, size_t s) {
  const gt_pipe_layout *l = &p->pipe->layout;
  const gt_pipe_need need = gt_pipe_job_need(p->pipe, l->schedule, s);
  json_t *parts = json_array();
  for (size_t c = 0; c < l->chunks; c++)
    json_array_append_new(parts, part(p, gt_pipe_span_of(l->stages, c, s)));
  return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "region",
                   p->job->regions[l->places[s].region].name, "first_worker",
                   whole(l->places[s].first_worker), "workers", whole(l->places[s].workers),
                   "slots", whole(l->slots[s]), "arrays_bytes", whole(need.arrays), "scratch_bytes",
                   whole(need.scratch), "slot_bytes", whole(need.slot), "passing_bytes",
                   whole(need.areas), "samples_bytes", whole(need.samples), "memory_bytes",
                   whole(need.all), "update_s", number(p->pipe->problem.update_s[s]), "parts",
                   parts, "phases", phases(p, s));
}

static json_t *stages(const gt_planner_pipeline *p) {
  json_t *out = json_array();
  for (size_t s = 0; s < p->pipe->layout.stages; s++) json_array_append_new(out, stage(p, s));
  return out;
}

/* ---- schedules ------------------------------------------------------------------------------- */

static json_t *schedule(const gt_planner_pipeline *p, const gt_planner_schedule *s) {
  json_t *out = json_pack("{s:s,s:b,s:b,s:o}", "schedule", gt_pipe_names[s->kind], "chosen",
                          s->kind == p->job->pipeline.schedule, "possible", (int)s->fits, "why",
                          s->fits ? json_null() : json_string(s->why));
  if (!s->fits) return out;
  json_object_set_new(out, "period_s", number(gt_seconds(s->period)));
  json_object_set_new(out, "makespan_s", number(gt_seconds(s->makespan)));
  json_object_set_new(out, "bubble", number(s->bubble));
  json_object_set_new(out, "period_bubble", number(s->period_bubble));
  json_object_set_new(out, "slots", whole(s->slots));
  json_object_set_new(out, "memory_bytes", whole(s->memory));
  return out;
}

static json_t *schedules(const gt_planner_pipeline *p) {
  json_t *out = json_array();
  for (size_t i = 0; i < p->nschedules; i++)
    json_array_append_new(out, schedule(p, &p->schedules[i]));
  return out;
}

/* ---- traffic and cost ------------------------------------------------------------------------ */

/* The table as JSON; closes it. */
static json_t *json_of(gt_table *table) {
  json_t *list = gt_table_json(table);
  gt_table_close(table);
  return list;
}

static json_t *cost(const gt_planner_pipeline *p) {
  const gt_cost_result *c = &p->cost;
  const bool known = p->prices.known;
  json_t *missing = json_array();
  for (size_t i = 0; i < c->nmissing; i++)
    json_array_append_new(missing, json_string(c->missing[i]));
  return json_pack("{s:o,s:o,s:o,s:o,s:o,s:b,s:o}", "usd", known ? number(c->usd) : json_null(),
                   "worker_usd", known ? number(c->worker_usd) : json_null(), "ps_usd",
                   known ? number(c->ps_usd) : json_null(), "egress_usd",
                   known ? number(c->egress_usd) : json_null(), "machine_hours",
                   number(c->machine_hours), "assumed", (int)c->assumed, "missing_prices", missing);
}

static json_t *servers(const gt_planner_pipeline *p) {
  json_t *out = json_array();
  for (size_t r = 0; r < p->job->nregions; r++) {
    if (gt_job_copy_of(p->job, r) != p->pipe->copy) continue;
    const gt_ps_need n = need_of(p, r);
    json_array_append_new(
        out, json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "region", p->job->regions[r].name,
                       "arrays_bytes", (json_int_t)n.arrays, "optimizer_bytes",
                       (json_int_t)n.optimizer, "workers_bytes", (json_int_t)n.workers,
                       "frames_bytes", (json_int_t)n.frames, "exchange_bytes",
                       (json_int_t)n.exchange, "checkpoint_bytes", (json_int_t)n.checkpoint,
                       "ending_bytes", (json_int_t)n.ending, "memory_bytes", (json_int_t)n.all));
  }
  return out;
}

static json_t *copies(const gt_planner_pipeline *p) {
  json_t *out = json_array();
  for (size_t c = 0; c < p->ncopies && p->ncopies > 1; c++) {
    const gt_planner_pipeline one = gt_planner_pipeline_copy(p, c);
    const gt_planner_copy *of = &p->copies[c];
    json_array_append_new(out, json_pack("{s:o,s:o,s:I,s:o,s:o,s:o}", "alone_s",
                                         number(gt_seconds(of->result.period)), "period_s",
                                         number(of->period_s), "steps", (json_int_t)of->steps,
                                         "stages", stages(&one), "servers", servers(&one),
                                         "schedules", schedules(&one)));
  }
  return out;
}

json_t *gt_planner_pipeline_object(const gt_planner_pipeline *p) {
  const gt_job *job = p->job;
  const gt_pipe_layout *l = &p->pipe->layout;
  char hash[GT_SHA256_HEX];
  gt_pipe_hash(l->schedule, hash);
  return json_pack(
      "{s:s,s:s,s:o,s:s,s:s,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:o,s:b,s:o,s:o,s:o,s:o,s:o,s:o}",
      "job", job->name, "model", gt_model_names[job->model.name], "parameters",
      whole(p->shape.parameters), "schedule", gt_pipe_names[job->pipeline.schedule],
      "schedule_sha256", hash, "batch", job->train.batch, "micro_batches", whole(l->micros),
      "micro_samples", whole(l->micro_samples), "period_s", number(gt_planner_pipeline_period_s(p)),
      "makespan_s", number(gt_seconds(p->result.makespan)), "bubble", number(p->result.bubble),
      "period_bubble", number(p->result.period_bubble), "samples_per_s",
      number(gt_planner_pipeline_rate(p)), "steps", (json_int_t)p->steps, "wall_s",
      number(p->wall_s), "samples_assumed", (int)p->shape.assumed, "stages", stages(p), "servers",
      servers(p), "schedules", schedules(p), "copies", copies(p), "links", json_of(links_of(p)),
      "cost", cost(p));
}

gt_status gt_planner_pipeline_dump(FILE *to, json_t *root, const char *name) {
  char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
  json_decref(root);
  if (!text) return GT_FAIL(GT_ERR_FAULT, "the plan of %s is not a JSON object", name);
  fprintf(to, "%s\n", text);
  free(text);
  return GT_OK;
}

gt_status gt_planner_pipeline_json(FILE *to, const gt_planner_pipeline *p) {
  return gt_planner_pipeline_dump(to, gt_planner_pipeline_object(p), p->job->name);
}
