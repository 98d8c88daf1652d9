/* The plan of a pipeline as one JSON object. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "pipeline.h"

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
    json_object_set_new(out, gt_planner_pipeline_phase_key(i),
                        number(gt_planner_pipeline_phase_s(p, s, i)));
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

static json_t *links(const gt_planner_pipeline *p) {
  const size_t n = p->job->nregions;
  json_t *out = json_array();
  for (size_t i = 0; i < n * n; i++)
    if (p->step_bytes[i] > 0)
      json_array_append_new(out, json_pack("{s:s,s:s,s:o,s:o}", "from", p->job->regions[i / n].name,
                                           "to", p->job->regions[i % n].name, "step_bytes",
                                           number(p->step_bytes[i]), "bytes", number(p->bytes[i])));
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

static json_t *copies(const gt_planner_pipeline *p) {
  json_t *out = json_array();
  for (size_t c = 0; c < p->ncopies && p->ncopies > 1; c++) {
    const gt_planner_pipeline one = gt_planner_pipeline_copy(p, c);
    const gt_planner_copy *of = &p->copies[c];
    json_array_append_new(
        out, json_pack("{s:o,s:o,s:I,s:o,s:o,s:o}", "alone_s",
                       number(gt_seconds(of->result.period)), "period_s", number(of->period_s),
                       "steps", (json_int_t)of->steps, "stages", stages(&one), "servers",
                       gt_planner_pipeline_servers(&one), "schedules", schedules(&one)));
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
      gt_planner_pipeline_servers(p), "schedules", schedules(p), "copies", copies(p), "links",
      links(p), "cost", cost(p));
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
