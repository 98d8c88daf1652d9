/* A plan as tables (candidates, the choice by region and by link, assumptions) and as one JSON
   object: seconds, bytes and USD, null for unknown values.  Future versions only add keys. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/record_table.h"
#include "internal.h"

#define FEW   ((size_t)6) /* maximum number of regions that are shown one by one */
#define LABEL 11          /* columns of a line's name */

/* "3+5": ranks of each region, or their sum. */
static const char *ranks_text(char *buf, size_t size, const gt_planner *p, const int64_t *counts) {
  int64_t sum = 0;
  size_t n = p->job->nregions, at = 0;
  for (size_t r = 0; r < n; r++) {
    int64_t ranks = gt_planner_ranks(p, r, counts);
    sum += ranks;
    if (n <= FEW && at < size)
      at += (size_t)snprintf(buf + at, size - at, "%s%" PRId64, r ? "+" : "", ranks);
  }
  if (n > FEW) snprintf(buf, size, "%" PRId64, sum);
  return buf;
}

/* "*" after a cost that contains assumptions. */
static const char *mark(const gt_planner_outcome *o) {
  return o->cost.assumed ? "*" : "";
}

/* Returns the difference in percent. */
static double percent(double now, double before) {
  return before > 0 ? 100 * (now / before - 1) : 0;
}

/* Returns the cost, machine hours if no price is known. */
static gt_cell cost_cell(char text[40], const gt_planner *p, const gt_planner_outcome *o) {
  snprintf(text, 40, "%.4g%s", gt_planner_cost(p, o), p->prices.known ? mark(o) : "");
  return gt_cell_text(text);
}

static gt_cell money_cell(char text[32], const gt_planner *p, double usd, const char *star) {
  if (!p->prices.known) return (gt_cell){0};
  snprintf(text, 32, "%.4g%s", usd, usd > 0 ? star : "");
  return gt_cell_text(text);
}

/* ---- candidates ------------------------------------------------------------------------------ */

#define DIGITS   .format = GT_COLUMN_DIGITS, .digits = 4
#define FIXED(n) .format = GT_COLUMN_FIXED, .digits = n
#define WHOLE    .format = GT_COLUMN_WHOLE

static void print_head(FILE *to, const gt_planner *p) {
  const gt_job *job = p->job;
  double margin = 100 * p->options.margin;
  bool factor = false;
  for (size_t i = 0; i < p->ncandidates; i++) factor |= p->candidates[i].factor != 1;
  gt_print_wrapped(to, 2, "%s: %s, %zu parameters, %zu regions; %zu candidate%s, compared at %s",
                   job->name, gt_model_names[job->model.name], p->shape.parameters, job->nregions,
                   p->ncandidates, p->ncandidates == 1 ? "" : "s",
                   factor ? "plan.samples_factor times the samples" : "equal samples");
  gt_print_wrapped(to, 2,
                   "time: from the first step, which is %g s after the start; low, high: computing "
                   "and links %g %% faster and slower than in the job\n",
                   job->plan.start_s, margin);
}

/* Adds the difference from everything everywhere. */
static void add_comparison(gt_cell row[5], char texts[5][40], const gt_planner *p,
                           const gt_planner_candidate *c) {
  const gt_planner_outcome *o = &gt_planner_proposed(c)->at[GT_PLANNER_EXPECTED],
                           *all = &c->everything.at[GT_PLANNER_EXPECTED];
  bool all_whole = true;
  for (size_t i = 0; i < p->ncandidates; i++) all_whole &= p->candidates[i].whole;
  if (c->whole) {
    row[0] = gt_cell_text(all_whole ? NULL : "the same");
    return;
  }
  snprintf(texts[3], sizeof texts[3], "%.1f",
           -percent(gt_planner_cost(p, o), gt_planner_cost(p, all)));
  snprintf(texts[4], sizeof texts[4], "%+.1f", percent(o->figures.wall_s, all->figures.wall_s));
  row[0] = gt_cell_text(ranks_text(texts[0], sizeof texts[0], p, c->everything.counts));
  row[1] = gt_cell_number(all->figures.wall_s);
  row[2] = cost_cell(texts[2], p, all);
  row[3] = gt_cell_text(texts[3]);
  row[4] = gt_cell_text(texts[4]);
}

static void add_candidate(gt_table *t, const gt_planner *p, const gt_planner_candidate *c) {
  const gt_planner_set *set = gt_planner_proposed(c);
  const gt_planner_outcome *o = &set->at[GT_PLANNER_EXPECTED];
  char ranks[40], cost[40], money[4][32], texts[5][40];
  gt_cell row[19] = {gt_cell_text(c->label),
                     gt_cell_text(ranks_text(ranks, sizeof ranks, p, set->counts)),
                     gt_cell_number(o->figures.step_s),
                     gt_cell_number(set->at[GT_PLANNER_LOW].figures.wall_s),
                     gt_cell_number(o->figures.wall_s),
                     gt_cell_number(set->at[GT_PLANNER_HIGH].figures.wall_s),
                     gt_cell_number(o->figures.samples_per_s),
                     gt_cell_number(o->figures.wan_bytes),
                     gt_cell_number(fmax(0, o->figures.waiting)),
                     cost_cell(cost, p, o),
                     money_cell(money[0], p, o->cost.worker_usd, mark(o)),
                     money_cell(money[1], p, o->cost.ps_usd, mark(o)),
                     money_cell(money[2], p, o->cost.egress_usd, mark(o))};
  if (p->prices.store.known) row[13] = money_cell(money[3], p, o->cost.store_usd, mark(o));
  add_comparison(row + 14, texts, p, c);
  gt_table_add(t, row, 19);
  if (c->unproven)
    gt_table_note(t, "not chosen: %s", c->why);
  else if (!c->fits && c->factor != 1)
    gt_table_note(t, "not feasible: %s; at %g times the samples: %" PRId64, c->why, c->factor,
                  o->samples);
  else if (!c->fits)
    gt_table_note(t, "not feasible: %s", c->why);
  else if (c->factor != 1)
    gt_table_note(t, "at %g times the samples: %" PRId64, c->factor, o->samples);
}

static void print_candidates(FILE *to, const gt_planner *p) {
  const char *cost = p->prices.known ? "USD" : "h";
  const gt_column columns[] = {{.title = "candidate"},
                               {.title = "ranks", WHOLE},
                               {.title = "step", .unit = "ms", DIGITS},
                               {.title = "low", .unit = "s", FIXED(2)},
                               {.title = "time", .unit = "s", FIXED(2)},
                               {.title = "high", .unit = "s", FIXED(2)},
                               {.title = "samples/s", FIXED(1)},
                               {.title = "WAN", .unit = "MB", FIXED(2)},
                               {.title = "waits", .unit = "%", FIXED(1)},
                               {.title = "cost", .unit = cost, DIGITS, .breaks = true},
                               {.title = "workers", .unit = "USD", DIGITS},
                               {.title = "PS", .unit = "USD", DIGITS},
                               {.title = "egress", .unit = "USD", DIGITS},
                               {.title = "store", .unit = "USD", DIGITS},
                               {.title = "everything", WHOLE, .breaks = true},
                               {.title = "time", .unit = "s", FIXED(2)},
                               {.title = "cost", .unit = cost, DIGITS},
                               {.title = "saved", .unit = "%", FIXED(1)},
                               {.title = "longer", .unit = "%", FIXED(1)}};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t i = 0; i < p->ncandidates; i++) add_candidate(t, p, &p->candidates[i]);
  gt_table_finish(to, t);
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* "2 of 4 v100, 1 of 1 t4". */
static const char *devices_text(char *text, size_t size, const gt_planner *p, size_t r,
                                const int64_t *counts) {
  const gt_job_region *region = &p->job->regions[r];
  size_t at = 0;
  if (p->pools[r].fixed)
    return gt_job_trains(p->job, r) ? "as in the job" : "none: it only aggregates";
  *text = '\0';
  for (size_t d = 0; d < region->ndevices && at < size; d++)
    at += (size_t)snprintf(text + at, size - at, "%s%" PRId64 " of %" PRId64 " %s", d ? ", " : "",
                           counts[p->pools[r].first + d], region->devices[d].count,
                           region->devices[d].type);
  return text;
}

static void print_regions(FILE *to, const gt_planner *p, const gt_planner_set *set,
                          const char *star) {
  static const gt_column columns[] = {{.title = "region"},
                                      {.title = "ranks", WHOLE},
                                      {.title = "steps", WHOLE},
                                      {.title = "samples", WHOLE},
                                      {.title = "waits", .unit = "%", FIXED(1)},
                                      {.title = "devices"},
                                      {.title = "cost", .unit = "USD", DIGITS, .breaks = true},
                                      {.title = "workers", .unit = "USD", DIGITS},
                                      {.title = "PS", .unit = "USD", DIGITS},
                                      {.title = "egress", .unit = "USD", DIGITS}};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t r = 0; r < p->job->nregions; r++) {
    const gt_cost_region *cost = &set->at[GT_PLANNER_EXPECTED].cost.regions[r];
    const gt_region_result *seen = &set->forecast.regions[r];
    const double usd = cost->worker_usd + cost->ps_usd + cost->egress_usd;
    char name[GT_SHORT_NAME], devices[512], money[4][32];
    gt_cell row[10] = {gt_cell_text(gt_short_name(name, p->job->regions[r].name)),
                       gt_cell_whole(gt_planner_ranks(p, r, set->counts))};
    if (gt_job_trains(p->job, r)) {
      row[2] = gt_cell_whole(seen->steps);
      row[3] = gt_cell_whole(seen->samples);
      row[4] = gt_cell_number(seen->wall_s > 0 ? seen->wan_wait_s / seen->wall_s : 0);
    }
    row[5] = gt_cell_text(devices_text(devices, sizeof devices, p, r, set->counts));
    row[6] = money_cell(money[0], p, usd, star);
    row[7] = money_cell(money[1], p, cost->worker_usd, star);
    row[8] = money_cell(money[2], p, cost->ps_usd, star);
    row[9] = money_cell(money[3], p, cost->egress_usd, star);
    gt_table_add(t, row, 10);
  }
  fputc('\n', to);
  gt_table_finish(to, t);
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

static gt_table *links_of(const gt_planner *p, const gt_planner_set *set, gt_told *told) {
  static const gt_column columns[] = {
      {.title = "link"},
      {.key = "from"},
      {.key = "to"},
      {.key = "bytes_sent", .title = "sent", .unit = "MB", FIXED(2)},
      {.key = "messages", .title = "messages", FIXED(0)},
      {.key = "bytes_other", .title = "other", .unit = "MB", FIXED(3)}};
  size_t n;
  const gt_told_link *at = gt_told_links(told, &n);
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  char link[GT_LINK_NAME];
  for (size_t i = 0; i < n; i++) {
    const char *from = p->job->regions[at[i].from].name, *to = p->job->regions[at[i].to].name;
    const gt_sim_traffic *traffic = &set->forecast.links[at[i].from * p->job->nregions + at[i].to];
    gt_table_add(t,
                 GT_ROW(gt_cell_text(gt_link_name(link, from, to)), gt_cell_text(from),
                        gt_cell_text(to), gt_cell_number(traffic->bytes_sent),
                        gt_cell_number(traffic->messages), gt_cell_number(traffic->bytes_other)));
  }
  return t;
}

static void print_links(FILE *to, const gt_planner *p, const gt_planner_set *set) {
  gt_told *told = links_told(p, set);
  gt_table *t = links_of(p, set, told);
  if (p->job->nregions > 1) fputc('\n', to);
  gt_table_finish(to, t);
  gt_told_close(told);
}

static void print_one(FILE *to, const gt_planner *p, const char *title, size_t i) {
  const gt_planner_candidate *c = &p->candidates[i];
  const gt_planner_outcome *o = &gt_planner_proposed(c)->at[GT_PLANNER_EXPECTED];
  gt_print_wrapped(to, LABEL, "%-10s %s: %.2f s, %.4g %s%s", title, c->label, o->figures.wall_s,
                   gt_planner_cost(p, o), p->prices.known ? "USD" : "machine hours",
                   c->fits       ? ""
                   : c->unproven ? " (not chosen)"
                                 : " (not feasible)");
}

static void print_choice(FILE *to, const gt_planner *p) {
  const gt_planner_candidate *c = &p->candidates[p->choice];
  const gt_job *job = p->job;
  print_one(to, p, "cheapest", p->cheapest);
  print_one(to, p, "fastest", p->fastest);
  if (job->plan.deadline_s > 0)
    gt_print_wrapped(
        to, LABEL, "choice     %s, the cheapest whose high figure and start end within %.10g s%s",
        c->label, job->plan.deadline_s, job->plan.budget > 0 ? " and within the budget" : "");
  else if (job->plan.budget > 0)
    gt_print_wrapped(to, LABEL,
                     "choice     %s, the fastest whose high figure costs at most %.10g USD",
                     c->label, job->plan.budget);
  else
    gt_print_wrapped(to, LABEL, "choice     %s, the cheapest", c->label);
}

static void print_faults(FILE *to, const gt_planner *p) {
  const gt_planner_faults *f = &p->faults;
  if (!f->known) return;
  fprintf(to, "\nwith faults    %.2f s instead of %.2f s, %.4g %s\n", f->wall_s, f->undisturbed_s,
          p->prices.known ? f->cost.usd : f->cost.machine_hours,
          p->prices.known ? "USD" : "machine hours");
  gt_print_faults(to, &f->found);
}

static bool any_assumed(const gt_planner *p) {
  for (size_t i = 0; i < p->ncandidates; i++)
    if (gt_planner_proposed(&p->candidates[i])->at[GT_PLANNER_EXPECTED].cost.assumed ||
        p->candidates[i].everything.at[GT_PLANNER_EXPECTED].cost.assumed)
      return true;
  return false;
}

void gt_planner_print(FILE *to, const gt_planner *p) {
  const gt_planner_set *set = gt_planner_proposed(&p->candidates[p->choice]);
  print_head(to, p);
  print_candidates(to, p);
  fputc('\n', to);
  print_choice(to, p);
  if (p->job->nregions <= 2 * FEW) print_regions(to, p, set, mark(&set->at[GT_PLANNER_EXPECTED]));
  if (p->job->nregions <= FEW) print_links(to, p, set);
  print_faults(to, p);
  int64_t minutes = (int64_t)(p->slurm_s / 60);
  fputc('\n', to);
  gt_print_wrapped(
      to, 2,
      "time limit for Slurm: %" PRId64 ":%02" PRId64
      ":00 (start, high figure with evaluation, checkpoints and drain, slurm.signal_before)",
      minutes / 60, minutes % 60);
  for (size_t i = 0; i < p->nnotes; i++) gt_print_wrapped(to, 2, "%s", p->notes[i]);
  if (any_assumed(p)) fprintf(to, "* includes rates that their catalogue marks as assumed\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Returns null for NaN: json_real returns NULL for it, which makes the enclosing object NULL
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
  json_object_set_new(out, "store_usd", number_or_null(known, cost->store_usd));
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

static json_t *traffic_of(const gt_region_traffic *t) {
  return json_pack("{s:I,s:I,s:I,s:I}", "messages", (json_int_t)t->messages, "bytes_sent",
                   (json_int_t)t->bytes_sent, "bytes_received", (json_int_t)t->bytes_received,
                   "bytes_other", (json_int_t)t->bytes_other);
}

static void add_links(json_t *to, const gt_planner *p, const gt_planner_set *set) {
  gt_told *told = links_told(p, set);
  gt_table *links = links_of(p, set, told);
  const size_t left_out = gt_told_left_out(told);
  json_t *regions = json_object_get(to, "regions");
  json_object_set_new(to, "links", gt_table_json(links));
  gt_table_close(links);
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

/* Returns one value per axis; null if it does not apply. */
static json_t *values_of(const gt_planner_candidate *c) {
  json_t *out = json_object();
  for (const gt_planner_axis *axis = gt_planner_axes; axis->key; axis++) {
    const char *value = gt_planner_value(c, axis->key);
    json_t *said = value && axis->number ? json_integer(strtoll(value, NULL, 10))
                   : value               ? json_string(value)
                                         : json_null();
    json_object_set_new(out, axis->name, said);
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

static json_t *faults(const gt_planner *p) {
  const gt_planner_faults *f = &p->faults;
  if (!f->known) return json_null();
  return json_pack("{s:o,s:o,s:o,s:o,s:o,s:i,s:I,s:I}", "wall_s", number(f->wall_s),
                   "undisturbed_s", number(f->undisturbed_s), "usd",
                   number_or_null(p->prices.known, f->cost.usd), "machine_hours",
                   number(f->cost.machine_hours), "goodput", number(f->found.goodput), "code",
                   (int)f->code, "losses", (json_int_t)f->found.losses, "not_trained",
                   (json_int_t)f->found.not_trained);
}

gt_status gt_planner_json(FILE *to, const gt_planner *p) {
  const gt_job *job = p->job;
  json_t *candidates = json_array();
  bool all = true;
  for (size_t i = 0; i < p->ncandidates; i++)
    all &= json_array_append_new(candidates, candidate(p, &p->candidates[i])) == 0;
  json_t *root = json_pack(
      "{s:s,s:s,s:I,s:o,s:o,s:o,s:o,s:o,s:b,s:b,s:o,s:o,s:I,s:I,s:I,s:o,s:o,s:o}", "job", job->name,
      "model", gt_model_names[job->model.name], "parameters", (json_int_t)p->shape.parameters,
      "margin", number(p->options.margin), "deadline_s",
      number_or_null(job->plan.deadline_s > 0, job->plan.deadline_s), "budget_usd",
      number_or_null(job->plan.budget > 0, job->plan.budget), "start_s", number(job->plan.start_s),
      "billing_s", number(job->plan.billing_s), "priced", (int)p->prices.known, "samples_assumed",
      (int)p->shape.assumed, "missing_prices", texts(p->prices.missing, p->prices.nmissing),
      "candidates", candidates, "cheapest", (json_int_t)p->cheapest, "fastest",
      (json_int_t)p->fastest, "choice", (json_int_t)p->choice, "slurm_time_s", number(p->slurm_s),
      "faults", faults(p), "notes", texts(p->notes, p->nnotes));
  char *text = root && all ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
  json_decref(root);
  if (!text) return GT_FAIL(GT_ERR_FAULT, "the plan of %s is not a JSON object", job->name);
  fprintf(to, "%s\n", text);
  free(text);
  return GT_OK;
}
