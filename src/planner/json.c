/* A plan as one JSON object: seconds, bytes and USD, null for unknown values; future versions only
   add keys. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* JSON has no NaN: json_real returns NULL for it, and an object that is built with it is NULL
   too. */
static json_t *number_or_null(bool known, double value) {
  return known && isfinite(value) ? json_real(value) : json_null();
}

static json_t *number(double value) {
  return number_or_null(true, value);
}

static json_t *outcome(const gt_planner *p, const gt_planner_outcome *o) {
  if (!o->known) return json_null();
  const gt_cost_result *cost = &o->cost;
  const gt_figures *f = &o->figures;
  bool known = p->prices.known;
  json_t *out = json_pack(
      "{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:o,s:o,s:o}", "wall_s", number(f->wall_s),
      "error_s", number(o->error_s), "train_s", number(o->train_s), "simulated", number(o->part),
      "step_s", number(f->step_s), "samples_per_s", number(f->samples_per_s), "waiting",
      number(f->waiting), "samples", (json_int_t)o->samples, "steps", (json_int_t)o->steps,
      "messages", (json_int_t)o->messages, "wan_bytes", number(f->wan_bytes), "other_bytes",
      number(o->other_bytes), "machine_hours", number(cost->machine_hours));
  json_object_set_new(out, "error_why",
                      o->why != GT_SIM_KNOWN ? json_string(gt_sim_doubt_text(o->why))
                                             : json_null());
  json_object_set_new(out, "usd", number_or_null(known, cost->usd));
  json_object_set_new(out, "worker_usd", number_or_null(known, cost->worker_usd));
  json_object_set_new(out, "ps_usd", number_or_null(known, cost->ps_usd));
  json_object_set_new(out, "egress_usd", number_or_null(known, cost->egress_usd));
  json_object_set_new(out, "assumed", json_boolean(cost->assumed));
  return out;
}

static json_t *region(const gt_planner *p, const gt_planner_set *set, size_t r) {
  const gt_job_region *from = &p->job->regions[r];
  const gt_cost_region *cost = &set->at[GT_PLANNER_EXPECTED].cost.regions[r];
  const gt_region_result *seen = &set->forecast.regions[r];
  const gt_planner_pool *pool = &p->pools[r];
  json_t *devices = json_array();
  for (size_t d = 0; d < pool->n && !pool->fixed; d++)
    json_array_append_new(devices, json_pack("{s:s,s:I,s:I}", "type", from->devices[d].type,
                                             "count", (json_int_t)set->counts[pool->first + d],
                                             "of", (json_int_t)from->devices[d].count));
  return json_pack("{s:s,s:I,s:b,s:o,s:I,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "name", from->name,
                   "ranks", (json_int_t)gt_planner_ranks(p, r, set->counts), "fixed",
                   (int)pool->fixed, "devices", devices, "steps", (json_int_t)seen->steps,
                   "samples", (json_int_t)seen->samples, "compute_s", number(seen->compute_s),
                   "wan_wait_s", number(seen->wan_wait_s), "local_wait_s",
                   number(seen->local_wait_s), "wall_s", number(seen->wall_s), "worker_usd",
                   number(cost->worker_usd), "ps_usd", number(cost->ps_usd), "egress_usd",
                   number(cost->egress_usd));
}

/* ---- links: if there are many, those chosen by gt_told, and sums of regions ---- */

static gt_told *links_told(const gt_planner *p, const gt_planner_set *set) {
  size_t n = p->job->nregions;
  gt_told *told = gt_told_create(n);
  for (size_t a = 0; a < n; a++)
    for (size_t b = 0; b < n; b++) {
      const gt_sim_traffic *t = &set->forecast.links[a * n + b];
      if (a != b)
        gt_told_add(told, a, b,
                    &(gt_link_traffic){llround(t->messages), llround(t->bytes_sent),
                                       llround(t->bytes_other), 0});
    }
  return told;
}

static json_t *link_of(const gt_planner *p, const gt_planner_set *set, gt_told_link at) {
  const gt_sim_traffic *traffic = &set->forecast.links[at.from * p->job->nregions + at.to];
  return json_pack("{s:s,s:s,s:o,s:o,s:o}", "from", p->job->regions[at.from].name, "to",
                   p->job->regions[at.to].name, "bytes_sent", number(traffic->bytes_sent),
                   "messages", number(traffic->messages), "bytes_other",
                   number(traffic->bytes_other));
}

static json_t *traffic_of(const gt_region_traffic *t) {
  return json_pack("{s:I,s:I,s:I,s:I}", "messages", (json_int_t)t->messages, "bytes_sent",
                   (json_int_t)t->bytes_sent, "bytes_received", (json_int_t)t->bytes_received,
                   "bytes_other", (json_int_t)t->bytes_other);
}

static void add_links(json_t *to, const gt_planner *p, const gt_planner_set *set) {
  gt_told *told = links_told(p, set);
  size_t n, left_out = gt_told_left_out(told);
  const gt_told_link *at = gt_told_links(told, &n);
  json_t *list = json_array(), *regions = json_object_get(to, "regions");
  for (size_t i = 0; i < n; i++) json_array_append_new(list, link_of(p, set, at[i]));
  json_object_set_new(to, "links", list);
  if (left_out > 0) json_object_set_new(to, "links_left_out", json_integer((json_int_t)left_out));
  for (size_t r = 0; r < p->job->nregions && left_out > 0; r++)
    json_object_set_new(json_array_get(regions, r), "traffic",
                        traffic_of(&gt_told_traffic(told)[r]));
  gt_told_close(told);
}

static json_t *set_of(const gt_planner *p, const gt_planner_set *set) {
  json_t *regions = json_array();
  for (size_t r = 0; r < p->job->nregions; r++) json_array_append_new(regions, region(p, set, r));
  json_t *out = json_pack("{s:o,s:o,s:o,s:o}", "low", outcome(p, &set->at[GT_PLANNER_LOW]),
                          "expected", outcome(p, &set->at[GT_PLANNER_EXPECTED]), "high",
                          outcome(p, &set->at[GT_PLANNER_HIGH]), "regions", regions);
  add_links(out, p, set);
  return out;
}

/* One value per axis, named by the part of its key after the dot; null if it does not apply. */
static json_t *values_of(const gt_planner_candidate *c) {
  json_t *out = json_object();
  for (const gt_planner_axis *axis = gt_planner_axes; axis->key; axis++) {
    const char *value = gt_planner_value(c, axis->key);
    json_t *said = value && axis->number ? json_integer(strtoll(value, NULL, 10))
                   : value               ? json_string(value)
                                         : json_null();
    json_object_set_new(out, strrchr(axis->key, '.') + 1, said);
  }
  return out;
}

static json_t *candidate(const gt_planner *p, const gt_planner_candidate *c) {
  const gt_planner_outcome *o = &gt_planner_proposed(c)->at[GT_PLANNER_EXPECTED],
                           *all = &c->everything.at[GT_PLANNER_EXPECTED];
  double before = gt_planner_cost(p, all);
  json_t *bound = json_array();
  for (size_t r = 0; r < p->job->nregions; r++)
    if (c->wan_bound[r]) json_array_append_new(bound, json_string(p->job->regions[r].name));
  json_t *out = values_of(c);
  json_t *rest = json_pack(
      "{s:o,s:b,s:o,s:b,s:i,s:b,s:o,s:I,s:o,s:o,s:o,s:o}", "samples_factor", number(c->factor),
      "possible", (int)c->fits, "why", c->fits ? json_null() : json_string(c->why), "is_everything",
      (int)c->whole, "adjusted", c->adjusted, "exact", (int)c->exact, "gap", number(c->gap), "sets",
      (json_int_t)c->sets, "saved", number(before > 0 ? 1 - gt_planner_cost(p, o) / before : 0),
      "longer", number(o->figures.wall_s / all->figures.wall_s - 1), "wan_bound", bound, "plan",
      set_of(p, gt_planner_proposed(c)));
  if (json_object_update(out, rest) != 0) { /* one of the two is NULL */
    json_decref(rest);
    json_decref(out);
    return NULL;
  }
  json_decref(rest);
  json_object_set_new(out, "everything", set_of(p, &c->everything));
  return out;
}

static json_t *texts(char *const *list, size_t n) {
  json_t *out = json_array();
  for (size_t i = 0; i < n; i++) json_array_append_new(out, json_string(list[i]));
  return out;
}

gt_status gt_planner_json(FILE *to, const gt_planner *p) {
  const gt_job *job = p->job;
  json_t *candidates = json_array();
  bool all = true;
  for (size_t i = 0; i < p->ncandidates; i++)
    all &= json_array_append_new(candidates, candidate(p, &p->candidates[i])) == 0;
  json_t *root = json_pack(
      "{s:s,s:s,s:I,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:o,s:o,s:I,s:I,s:I,s:o,s:o}", "job", job->name,
      "model", gt_model_names[job->model.name], "parameters", (json_int_t)p->shape.parameters,
      "margin", number(p->options.margin), "deadline_s",
      number_or_null(job->plan.deadline_s > 0, job->plan.deadline_s), "budget_usd",
      number_or_null(job->plan.budget > 0, job->plan.budget), "start_s", number(job->plan.start_s),
      "billing_s", number(job->plan.billing_s), "priced", (int)p->prices.known, "samples_assumed",
      (int)p->shape.assumed, "missing_prices", texts(p->prices.missing, p->prices.nmissing),
      "candidates", candidates, "cheapest", (json_int_t)p->cheapest, "fastest",
      (json_int_t)p->fastest, "choice", (json_int_t)p->choice, "slurm_time_s", number(p->slurm_s),
      "notes", texts(p->notes, p->nnotes));
  char *text = root && all ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
  json_decref(root);
  if (!text) return GT_FAIL(GT_ERR_FAULT, "the plan of %s is not a JSON object", job->name);
  fprintf(to, "%s\n", text);
  free(text);
  return GT_OK;
}
