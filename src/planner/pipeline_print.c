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
#define FIXED        .format = GT_COLUMN_FIXED, .digits = 1
#define WHOLE        .format = GT_COLUMN_WHOLE
#define DIGITS       .format = GT_COLUMN_DIGITS, .digits = 4
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define AROUND       ((size_t)12) /* columns of a line of gt_pipe_text outside the drawing */
#define DRAWN_MIN    ((size_t)20)

static size_t nspans(const gt_planner_pipeline *p) {
  return p->pipe->layout.stages * p->pipe->layout.chunks;
}

/* Returns the table as JSON and closes it. */
static json_t *json_of(gt_table *table) {
  json_t *list = gt_table_json(table);
  gt_table_close(table);
  return list;
}

static void print_head(FILE *to, const gt_planner_pipeline *p) {
  const gt_pipe_layout *l = &p->pipe->layout;
  const size_t regions = l->nregions / p->nreplicas;
  char replicas[48] = "";
  if (p->nreplicas > 1) snprintf(replicas, sizeof replicas, ", %zu replicas", p->nreplicas);
  gt_print_wrapped(
      to, 2,
      "%s: %s, %zu parameters; %zu stages%s in %zu region%s%s, schedule %s; a step: %d samples, "
      "%zu micro-batch%s of %zu\n",
      p->job->name, gt_model_names[p->job->model.name], p->shape.parameters, l->stages,
      l->chunks == 2 ? ", folded," : "", regions, regions == 1 ? "" : "s", replicas,
      gt_pipe_names[p->job->pipeline.schedule], p->job->train.batch, l->micro_batches,
      l->micro_batches == 1 ? "" : "es", l->micro_samples);
}

/* The memory limit can allow each replica other numbers. */
static void print_shapes(FILE *to, const gt_planner_pipeline *p) {
  char numbers[128];
  if (gt_pipe_job_shapes(p->pipe) > 1)
    gt_print_wrapped(to, 2,
                     "a step may have %s micro-batches (pipeline.adapt: %s); memory is for the "
                     "largest\n",
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

static const gt_column span_columns[] = {
    {.title = "stage", WHOLE},
    {.title = "region"},
    {.title = "workers", WHOLE},
    {.key = "part"},
    {.key = "first"},
    {.key = "last"},
    {.key = "parameters", .title = "parameters", WHOLE},
    {.title = "operations"},
    {.key = "output_bytes"},
    {.title = "sends", .unit = "MB", DIGITS, .breaks = true},
    {.key = "forward_s", .title = "F", .unit = "ms", DIGITS},
    {.key = "backward_input_s", .title = "B", .unit = "ms", DIGITS},
    {.key = "backward_weight_s", .title = "W", .unit = "ms", DIGITS}};

static void add_span(gt_table *t, const gt_planner_pipeline *p, size_t k) {
  const gt_pipe_job *pipe = p->pipe;
  const size_t s = gt_pipe_stage_of(pipe->layout.stages, k);
  const gt_pipe_place *place = &pipe->layout.places[s];
  const gt_pipe_span *span = &pipe->problem.spans[k];
  const gt_span *ops = &pipe->spans[k];
  const char *first = gt_graph_operation(pipe->graph, ops->first).name,
             *last = gt_graph_operation(pipe->graph, ops->end - 1).name;
  const double output_bytes = span->output_bytes + span->label_bytes;
  char region[GT_SHORT_NAME], operations[256];
  snprintf(operations, sizeof operations, "%s to %s", first, last);
  gt_table_add(t, GT_ROW(gt_cell_whole((int64_t)s),
                         gt_cell_text(gt_short_name(region, p->job->regions[place->region].name)),
                         gt_cell_whole((int64_t)place->workers), gt_cell_whole((int64_t)k),
                         gt_cell_text(first), gt_cell_text(last),
                         gt_cell_whole((int64_t)params_of(p, ops)), gt_cell_text(operations),
                         gt_cell_number(output_bytes),
                         gt_cell_number(k + 1 < nspans(p) ? output_bytes : NAN),
                         gt_cell_number(span->forward_s), gt_cell_number(span->backward_s),
                         gt_cell_number(span->weight_s)));
}

static void print_stages(FILE *to, const gt_planner_pipeline *p) {
  gt_table *t = gt_table_create(GT_ARRAY(span_columns));
  for (size_t k = 0; k < nspans(p); k++) add_span(t, p, k);
  gt_table_finish(to, t);
  gt_print_wrapped(to, 2,
                   "per micro-batch: the message to the next stage; F forward, B gradient of the "
                   "input, W gradient of the weights, on the slowest worker\n");
}

/* ---- memory ---------------------------------------------------------------------------------- */

#define MEGABYTES(name)                                                                            \
  { .title = name, .unit = "MB", DIGITS }

/* Returns an empty cell for 0: a kind of memory that no stage has is not shown. */
static gt_cell memory_cell(size_t bytes) {
  return bytes > 0 ? gt_cell_number((double)bytes) : (gt_cell){0};
}

static void add_worker(gt_table *t, const gt_planner_pipeline *p, size_t s) {
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
  gt_table_add(t, GT_ROW(gt_cell_whole((int64_t)s), memory_cell(sizeof(float) * params),
                         memory_cell(sizeof(float) * params), memory_cell(sizeof(float) * buffers),
                         memory_cell(need.arrays - sizeof(float) * (2 * params + buffers)),
                         memory_cell(need.scratch), gt_cell_whole((int64_t)need.slots),
                         memory_cell(need.slots * need.slot), memory_cell(need.areas),
                         memory_cell(need.samples), memory_cell(need.all)));
}

static void print_memory(FILE *to, const gt_planner_pipeline *p) {
  static const gt_column columns[] = {
      {.title = "stage", WHOLE}, MEGABYTES("params"),   MEGABYTES("grads"),
      MEGABYTES("buffers"),      MEGABYTES("tied"),     MEGABYTES("scratch"),
      {.title = "slots", WHOLE}, MEGABYTES("in slots"), MEGABYTES("passing"),
      MEGABYTES("samples"),      MEGABYTES("all")};
  char allowed[64] = "";
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t s = 0; s < p->pipe->layout.stages; s++) add_worker(t, p, s);
  gt_table_finish(to, t);
  if (p->job->pipeline.memory_bytes > 0)
    snprintf(allowed, sizeof allowed, "; pipeline.memory allows %.4g MB",
             MB * p->job->pipeline.memory_bytes);
  gt_print_wrapped(to, 2,
                   "per worker; tied: an embedding of another stage; slots: micro-batches in "
                   "flight; passing: messages to other stages and from other regions%s\n",
                   allowed);
}

/* ---- schedules ------------------------------------------------------------------------------- */

static void print_drawing(FILE *to, const gt_planner_pipeline *p, size_t columns) {
  const size_t drawn = columns > AROUND + DRAWN_MIN ? columns - AROUND : DRAWN_MIN;
  char *text = gt_pipe_text(p->pipe->layout.schedule, &p->pipe->problem, &p->result, drawn);
  fputs(text, to);
  gt_free(text);
  gt_print_wrapped(to, 2,
                   "the first step, %.4g s; F: forward; B, W: gradients of inputs and of "
                   "weights%s; dots: waiting\n",
                   gt_seconds(p->result.makespan),
                   p->pipe->layout.chunks == 2 ? " (small letters: second chunk)" : "");
}

static gt_table *schedules_of(const gt_planner_pipeline *p) {
  static const gt_column columns[] = {
      {.key = "schedule", .title = "schedule"},
      {.key = "chosen", .title = "chosen", WHOLE},
      {.key = "possible"},
      {.key = "why"},
      {.key = "period_s", .title = "period", .unit = "s", DIGITS},
      {.title = "samples/s", DIGITS},
      {.key = "makespan_s", .title = "makespan", .unit = "s", DIGITS},
      {.key = "bubble", .title = "bubble", .unit = "%", FIXED},
      {.key = "period_bubble", .title = "waits", .unit = "%", FIXED},
      {.key = "slots", .title = "slots", WHOLE},
      {.key = "memory_bytes", .title = "memory", .unit = "MB", DIGITS}};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t i = 0; i < p->nschedules; i++) {
    const gt_planner_schedule *s = &p->schedules[i];
    gt_cell row[COUNT(columns)] = {gt_cell_text(gt_pipe_names[s->kind]),
                                   gt_cell_flag(s->kind == p->job->pipeline.schedule),
                                   gt_cell_flag(s->fits), gt_cell_text(s->fits ? NULL : s->why)};
    if (s->fits) {
      row[4] = gt_cell_number(gt_seconds(s->period));
      row[5] = gt_cell_number(p->job->train.batch / gt_seconds(s->period));
      row[6] = gt_cell_number(gt_seconds(s->makespan));
      row[7] = gt_cell_number(s->bubble);
      row[8] = gt_cell_number(s->period_bubble);
      row[9] = gt_cell_whole((int64_t)s->slots);
      row[10] = gt_cell_whole((int64_t)s->memory);
    }
    gt_table_add(t, GT_ARRAY(row));
    if (!s->fits) gt_table_note(t, "not feasible: %s", s->why);
  }
  return t;
}

static void print_schedules(FILE *to, const gt_planner_pipeline *p) {
  gt_table_finish(to, schedules_of(p));
  gt_print_wrapped(
      to, 2,
      "period: from step to step; makespan: of the first step; waits: share of the period, "
      "bubble: share of the cost, in which the busiest stage computes no pass "
      "(docs/pipeline-schedules.md)\n");
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
  gt_table *t = gt_table_create(GT_ARRAY(columns));
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
  double bytes = 0;
  for (size_t i = 0; i < p->job->nregions * p->job->nregions; i++) bytes += p->bytes[i];
  if (p->job->nregions < 2) return;
  gt_table *t = links_of(p);
  gt_table_add(
      t, GT_ROW(gt_cell_text("all"), {0}, {0}, gt_cell_number(step_bytes), gt_cell_number(bytes)));
  gt_table_finish(to, t);
  fputc('\n', to);
}

static void print_run(FILE *to, const gt_planner_pipeline *p) {
  const gt_cost_result *c = &p->cost;
  gt_print_wrapped(to, 2,
                   "the run: %" PRId64 " steps, %.4g s at %.4g samples/s, without evaluations and "
                   "checkpoints%s",
                   p->steps, p->wall_s, gt_planner_pipeline_rate(p),
                   p->shape.assumed ? "; samples from regions[].samples" : "");
  if (p->prices.known)
    gt_print_wrapped(
        to, 2, "cost: %.4g USD%s: workers %.4g, servers %.4g, egress %.4g; %.4g machine hours",
        c->usd, c->assumed ? " (some rates are assumed)" : "", c->worker_usd, c->ps_usd,
        c->egress_usd, c->machine_hours);
  else
    fprintf(to, "cost: %.4g machine hours; no price is known\n", c->machine_hours);
  for (size_t i = 0; i < c->nmissing; i++)
    gt_print_wrapped(to, 2, "without the price of %s, which is not known", c->missing[i]);
}

/* ---- servers ------------------------------------------------------------------------------------
   */

static const gt_column server_columns[] = {
    {.title = "server of"},
    {.key = "region"},
    {.key = "arrays_bytes", .title = "arrays", .unit = "MB", DIGITS},
    {.key = "optimizer_bytes", .title = "optimizer", .unit = "MB", DIGITS},
    {.key = "workers_bytes", .title = "workers'", .unit = "MB", DIGITS},
    {.key = "frames_bytes", .title = "frames", .unit = "MB", DIGITS},
    {.key = "exchange_bytes", .title = "exchange", .unit = "MB", DIGITS},
    {.key = "checkpoint_bytes", .title = "checkpoint", .unit = "MB", DIGITS},
    {.key = "ending_bytes", .title = "ending", .unit = "MB", DIGITS},
    {.key = "memory_bytes", .title = "all", .unit = "MB", DIGITS}};
enum { EXCHANGE = 6, ENDING = 8, SERVER_COLUMNS = COUNT(server_columns) };

static gt_ps_need need_of(const gt_planner_pipeline *p, size_t region) {
  const gt_ps_setting how = {.modelled = p->job->wan.emulate,
                             .apart = p->job->regions[region].nhosts > 1,
                             .routes = &p->routes};
  return gt_ps_need_of(p->pipe, region, &how);
}

/* Returns the table of the current replica; with several replicas, also their exchange and the
   memory of the lead's ending. */
static gt_table *servers_of(const gt_planner_pipeline *p, const gt_column columns[SERVER_COLUMNS]) {
  gt_table *t = gt_table_create(columns, SERVER_COLUMNS);
  char name[GT_SHORT_NAME];
  for (size_t r = 0; r < p->job->nregions; r++) {
    if (gt_job_replica_of(p->job, r) != p->pipe->replica) continue;
    const gt_ps_need n = need_of(p, r);
    const char *region = p->job->regions[r].name;
    gt_table_add(t, GT_ROW(gt_cell_text(gt_short_name(name, region)), gt_cell_text(region),
                           gt_cell_whole((int64_t)n.arrays), gt_cell_whole((int64_t)n.optimizer),
                           gt_cell_whole((int64_t)n.workers), gt_cell_whole((int64_t)n.frames),
                           gt_cell_whole((int64_t)n.exchange), gt_cell_whole((int64_t)n.checkpoint),
                           gt_cell_whole((int64_t)n.ending), gt_cell_whole((int64_t)n.all)));
  }
  return t;
}

static void print_servers(FILE *to, const gt_planner_pipeline *p) {
  const bool several = p->nreplicas > 1;
  gt_column columns[SERVER_COLUMNS];
  memcpy(columns, server_columns, sizeof columns);
  if (!several) columns[EXCHANGE].title = columns[ENDING].title = NULL;
  gt_table_finish(to, servers_of(p, columns));
  gt_print_wrapped(to, 2,
                   "per parameter server; workers': memory of its workers that it reads and "
                   "writes, also counted there%s\n",
                   several ? "; exchange: the strategy's arrays, messages to other replicas, and "
                             "received messages that are pending; ending: the models that the lead "
                             "receives at the end, if no checkpoint is written"
                           : "");
}

/* ---- phases -------------------------------------------------------------------------------------
   */

#define KEY(constant, key, title) key,
static const char *const keys[] = {GT_PHASE_LIST(KEY)};
#undef KEY
static double phase_s(const gt_planner_pipeline *p, size_t stage, size_t phase) {
  return gt_seconds(p->result.stages[stage].phases[phase]) / (double)GT_PIPE_STEADY;
}

static bool any_has(const gt_planner_pipeline *p, size_t phase) {
  for (size_t s = 0; s < p->pipe->layout.stages; s++)
    if (p->result.stages[s].phases[phase] > 0) return true;
  return false;
}

static void print_phases(FILE *to, const gt_planner_pipeline *p) {
#define COLUMN(constant, key, name) {.title = name, .unit = "ms", DIGITS},
  static const gt_column columns[] = {{.title = "stage", WHOLE}, GT_PHASE_LIST(COLUMN)};
#undef COLUMN
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t s = 0; s < p->pipe->layout.stages; s++) {
    gt_cell row[COUNT(columns)] = {gt_cell_whole((int64_t)s)};
    for (size_t i = 0; i < GT_NPHASES; i++)
      if (any_has(p, i)) row[1 + i] = gt_cell_number(phase_s(p, s, i));
    gt_table_add(t, GT_ARRAY(row));
  }
  gt_table_finish(to, t);
  gt_print_wrapped(to, 2,
                   "per step, mean of the first %zu: passes; bubble: no pass to compute; transfer: "
                   "waiting for messages on links (docs/time-split.md)\n",
                   GT_PIPE_STEADY);
}

/* ---- replicas ------------------------------------------------------------------------------- */

static const char *regions_text(char *text, size_t size, const gt_planner_pipeline *p,
                                size_t replica) {
  size_t at = 0;
  *text = '\0';
  for (size_t r = 0; r < p->job->nregions && at < size; r++)
    if (gt_job_replica_of(p->job, r) == replica)
      at += (size_t)snprintf(text + at, size - at, "%s%s", at ? ", " : "", p->job->regions[r].name);
  return text;
}

static void print_replica(FILE *to, const gt_planner_pipeline *p, size_t replica) {
  char regions[1024];
  gt_print_wrapped(to, 2, "replica %zu: %s\n", replica + 1,
                   regions_text(regions, sizeof regions, p, replica));
}

static void print_replicas(FILE *to, const gt_planner_pipeline *p) {
  static const gt_column columns[] = {{.title = "copy", WHOLE},
                                      {.title = "alone", .unit = "s", DIGITS},
                                      {.title = "period", .unit = "s", DIGITS},
                                      {.title = "samples/s", DIGITS},
                                      {.title = "steps", WHOLE},
                                      {.title = "regions"}};
  const char *strategy = gt_strategy_names[p->job->sync.strategy];
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  char regions[1024];
  for (size_t c = 0; c < p->nreplicas; c++) {
    const gt_planner_replica *of = &p->replicas[c];
    gt_table_add(
        t, GT_ROW(gt_cell_whole((int64_t)c + 1), gt_cell_number(gt_seconds(of->result.period)),
                  gt_cell_number(of->period_s), gt_cell_number(p->job->train.batch / of->period_s),
                  gt_cell_whole(of->steps),
                  gt_cell_text(regions_text(regions, sizeof regions, p, c))));
  }
  gt_table_finish(to, t);
  gt_print_wrapped(to, 2,
                   "period: from step to step, with the exchange between replicas (%s), simulated, "
                   "mean of steps %lld to %lld; alone: without the exchange",
                   strategy, (long long)p->measured_from + 1, (long long)p->measured_to);
  if (gt_job_key_used("sync.period", strategy) && p->job->sync.period > GT_PLANNER_PERIOD_MAX)
    fprintf(to, "the period excludes the exchanges every %lld steps\n",
            (long long)p->job->sync.period);
  if (p->job->pipeline.adapt != GT_ADAPT_NOTHING)
    gt_print_wrapped(
        to, 2,
        "pipeline.adapt is %s: each replica adapts to its own links; these are the initial plans",
        gt_adapt_names[p->job->pipeline.adapt]);
  fputc('\n', to);
}

/* ---- all tables ---------------------------------------------------------------------------------
   */

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
  for (size_t c = 0; c < p->nreplicas; c++) {
    const gt_planner_pipeline one = gt_planner_pipeline_replica(p, c);
    if (p->nreplicas > 1) print_replica(to, p, c);
    print_pipeline(to, &one, columns);
  }
  if (p->nreplicas > 1) print_replicas(to, p);
  print_links(to, p);
  print_run(to, p);
}

/* ---- JSON ---------------------------------------------------------------------------------------
   */

static json_t *number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

static json_t *whole(size_t value) {
  return json_integer((json_int_t)value);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static json_t *phases(const gt_planner_pipeline *p, size_t s) {
  json_t *out = json_object();
  for (size_t i = 0; i < GT_NPHASES; i++)
    json_object_set_new(out, keys[i], number(phase_s(p, s, i)));
  return out;
}

static json_t *stage(const gt_planner_pipeline *p, size_t s) {
  const gt_pipe_layout *l = &p->pipe->layout;
  const gt_pipe_need need = gt_pipe_job_need(p->pipe, l->schedule, s);
  gt_table *parts = gt_table_create(GT_ARRAY(span_columns));
  for (size_t c = 0; c < l->chunks; c++) add_span(parts, p, gt_pipe_span_of(l->stages, c, s));
  return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "region",
                   p->job->regions[l->places[s].region].name, "first_worker",
                   whole(l->places[s].first_worker), "workers", whole(l->places[s].workers),
                   "slots", whole(l->slots[s]), "arrays_bytes", whole(need.arrays), "scratch_bytes",
                   whole(need.scratch), "slot_bytes", whole(need.slot), "passing_bytes",
                   whole(need.areas), "samples_bytes", whole(need.samples), "memory_bytes",
                   whole(need.all), "update_s", number(p->pipe->problem.update_s[s]), "parts",
                   json_of(parts), "phases", phases(p, s));
}

static json_t *stages(const gt_planner_pipeline *p) {
  json_t *out = json_array();
  for (size_t s = 0; s < p->pipe->layout.stages; s++) json_array_append_new(out, stage(p, s));
  return out;
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

static json_t *replicas(const gt_planner_pipeline *p) {
  json_t *out = json_array();
  for (size_t c = 0; c < p->nreplicas && p->nreplicas > 1; c++) {
    const gt_planner_pipeline one = gt_planner_pipeline_replica(p, c);
    const gt_planner_replica *of = &p->replicas[c];
    json_array_append_new(out, json_pack("{s:o,s:o,s:I,s:o,s:o,s:o}", "alone_s",
                                         number(gt_seconds(of->result.period)), "period_s",
                                         number(of->period_s), "steps", (json_int_t)of->steps,
                                         "stages", stages(&one), "servers",
                                         json_of(servers_of(&one, server_columns)), "schedules",
                                         json_of(schedules_of(&one))));
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
      "schedule_sha256", hash, "batch", job->train.batch, "micro_batches", whole(l->micro_batches),
      "micro_samples", whole(l->micro_samples), "period_s", number(gt_planner_pipeline_period_s(p)),
      "makespan_s", number(gt_seconds(p->result.makespan)), "bubble", number(p->result.bubble),
      "period_bubble", number(p->result.period_bubble), "samples_per_s",
      number(gt_planner_pipeline_rate(p)), "steps", (json_int_t)p->steps, "wall_s",
      number(p->wall_s), "samples_assumed", (int)p->shape.assumed, "stages", stages(p), "servers",
      json_of(servers_of(p, server_columns)), "schedules", json_of(schedules_of(p)), "copies",
      replicas(p), "links", json_of(links_of(p)), "cost", cost(p));
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
