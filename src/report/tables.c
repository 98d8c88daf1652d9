/* The tables of a report: results, differences, and per run regions, phases, links, plan, cost and
   events. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define COLUMNS(list) list, sizeof list / sizeof *list

/* The table owns title and note from gt_strdup or gt_report_join. */
static report_table *add_table(gt_report *p, const char *name, char *title, size_t run,
                               const report_column *columns, size_t ncolumns) {
  GT_GROW(p->tables, p->ntables, p->tables_room, 16);
  report_table *t = &p->tables[p->ntables++];
  *t = (report_table){.name = name,
                      .title = title,
                      .note = gt_strdup(""),
                      .run = run,
                      .columns = columns,
                      .ncolumns = ncolumns,
                      .rows = json_array()};
  return t;
}

static json_t *add_row(report_table *t) {
  json_t *row = json_object();
  json_array_append_new(t->rows, row);
  return row;
}

static void add_note(report_table *t, const char *text) {
  char *note = gt_report_join(t->note, *t->note ? " " : "", text);
  gt_free(t->note);
  t->note = note;
}

static void set_number(json_t *row, const char *key, double value) {
  if (isfinite(value)) json_object_set_new(row, key, json_real(value));
}

static void set_text(json_t *row, const char *key, const char *text) {
  json_object_set_new(row, key, json_string(text));
}

/* ---- results --------------------------------------------------------------------------------- */

static double sum_of(const json_t *list, const char *part, const char *key) {
  double sum = 0;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    const double value = gt_report_number(part ? json_object_get(one, part) : one, key);
    if (isfinite(value)) sum += value;
  }
  return sum;
}

static double time_of(const report_run *run) {
  const double virtual_s = gt_report_number(run->summary, "virtual_s");
  return isfinite(virtual_s) ? virtual_s : gt_report_number(run->summary, "wall_s");
}

static double samples_of(const report_run *run) {
  return gt_report_number(run->summary, "samples");
}

static double speed_of(const report_run *run) {
  return samples_of(run) / time_of(run);
}

/* With many regions, the list of links is not complete. */
static double bytes_of(const report_run *run) {
  const bool all = !json_object_get(run->summary, "links_left_out");
  const json_t *list = json_object_get(run->summary, all ? "links" : "regions");
  const char *part = all ? NULL : "traffic";
  return sum_of(list, part, "bytes_sent") + sum_of(list, part, "bytes_other");
}

/* Returns the mean share of the time in which workers waited for the WAN, over the regions that
   trained and whose times are known. */
static double waiting_of(const report_run *run) {
  const json_t *regions = json_object_get(run->summary, "regions");
  double sum = 0, n = 0;
  for (size_t r = 0; r < json_array_size(regions); r++) {
    const json_t *one = json_array_get(regions, r);
    const double share = gt_report_number(one, "wan_wait_s") / gt_report_number(one, "wall_s");
    if (!isfinite(share) || !(gt_report_number(one, "workers") > 0)) continue;
    sum += share;
    n++;
  }
  return 100 * sum / n;
}

static double loss_of(const report_run *run) {
  return gt_report_number(run->summary, "test_loss");
}

static double metric_of(const report_run *run) {
  const report_metric *metric = gt_report_metric(run);
  return metric ? metric->scale * gt_report_number(run->summary, metric->in_summary) : NAN;
}

static double cost_of(const report_run *run) {
  return gt_report_number(json_object_get(run->summary, "cost"), "usd");
}

static const struct {
  const char *key;
  double (*of)(const report_run *run);
  bool is_share; /* runs are compared by the difference, not by the ratio */
} results[] = {{"time_s", time_of, false},
               {"samples", samples_of, false},
               {"samples_per_s", speed_of, false},
               {"wan_bytes", bytes_of, false},
               {"wan_wait_percent", waiting_of, true},
               {"test_loss", loss_of, true},
               {"test_metric", metric_of, true},
               {"cost_usd", cost_of, false}};
#define RESULTS (sizeof results / sizeof *results)

static const char *state_of(const report_run *run) {
  bool complete = false, stopped = false;
  for (size_t r = 0; r < run->n; r++) {
    const json_t *lines = run->regions[r].lines;
    const json_t *last = json_array_get(lines, json_array_size(lines) - 1);
    complete |= gt_report_is(last, "complete");
    stopped |= gt_report_is(last, "stopped");
  }
  return !run->job    ? "simulated"
         : run->ended ? "ended"
         : stopped    ? "stopped, can be resumed"
         : complete   ? "ending"
                      : "runs, or was killed";
}

static void results_table(gt_report *p) {
  static const report_column columns[] = {
      {"run", "run", NULL},
      {"job", "job", NULL},
      {"model", "model", NULL},
      {"strategy", "strategy", NULL},
      {"clock", "clock", NULL},
      {"regions", "regions", NULL},
      {"state", "state", NULL},
      {"time_s", "time", "s"},
      {"samples", "samples", NULL},
      {"samples_per_s", "samples/s", NULL},
      {"wan_bytes", "WAN bytes", "B"},
      {"wan_wait_percent", "WAN wait", "%"},
      {"test_loss", "test loss", NULL},
      {"test_metric", "test metric", "@test_metric_unit"},
      {"cost_usd", "cost", "USD"},
  };
  static const char *const same[] = {"job", "model", "strategy", "clock"};
  report_table *t = add_table(p, "results", gt_strdup("Runs"), REPORT_ALL, COLUMNS(columns));
  bool ended = true;
  for (size_t i = 0; i < p->n; i++) {
    const report_run *run = &p->runs[i];
    const report_metric *metric = gt_report_metric(run);
    json_t *row = add_row(t);
    set_text(row, "run", run->label);
    for (size_t k = 0; k < sizeof same / sizeof *same; k++)
      set_text(row, same[k], gt_report_text(run->summary, same[k]));
    json_object_set_new(row, "regions", json_integer((json_int_t)run->n));
    set_text(row, "state", state_of(run));
    for (size_t k = 0; k < RESULTS; k++) set_number(row, results[k].key, results[k].of(run));
    if (metric) {
      char *unit = gt_report_join(metric->unit, *metric->unit ? " " : "", metric->name);
      set_text(row, "test_metric_unit", unit);
      gt_free(unit);
    }
    ended &= run->ended;
  }
  if (!ended)
    add_note(t, "Until a run ends, its loss and metric are those of the last evaluation of the "
                "first region that has one.");
}

/* Of each run but the first. */
static void differences_table(gt_report *p) {
  static const report_column columns[] = {
      {"run", "run", NULL},
      {"time_s", "time", "times"},
      {"samples", "samples", "times"},
      {"samples_per_s", "samples/s", "times"},
      {"wan_bytes", "WAN bytes", "times"},
      {"wan_wait_percent", "WAN wait", "+"},
      {"test_loss", "test loss", "+"},
      {"test_metric", "test metric", "+"},
      {"cost_usd", "cost", "times"},
  };
  if (p->n < 2) return;
  report_table *t =
      add_table(p, "differences", gt_report_join("Differences from ", p->runs[0].label, ""),
                REPORT_ALL, COLUMNS(columns));
  for (size_t i = 1; i < p->n; i++) {
    json_t *row = add_row(t);
    set_text(row, "run", p->runs[i].label);
    for (size_t k = 0; k < RESULTS; k++) {
      const double own = results[k].of(&p->runs[i]), first = results[k].of(&p->runs[0]);
      if (results[k].of == metric_of &&
          gt_report_metric(&p->runs[i]) != gt_report_metric(&p->runs[0]))
        continue;
      set_number(row, results[k].key, results[k].is_share ? own - first : own / first);
    }
  }
  add_note(t, "Time, samples, bytes and cost: divided by those of the first run. Waits, loss and "
              "metric: difference; metrics of two kinds are not compared.");
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* The lead does not know the times of a region that was lost, or never came. */
static void regions_table(gt_report *p, size_t i) {
  static const report_column columns[] = {
      {"name", "region", NULL},        {"workers", "workers", NULL},
      {"steps", "steps", NULL},        {"samples", "samples", NULL},
      {"wall_s", "time", "s"},         {"compute_s", "compute", "s"},
      {"wan_wait_s", "WAN wait", "s"}, {"local_wait_s", "PS wait", "s"},
      {"idle_s", "idle", "s"},         {"test_loss", "test loss", NULL},
      {"lost_s", "lost work", "s"},    {"nonfinite", "nonfinite", NULL},
      {"excluded", "excluded", NULL},  {"missed", "missed", NULL},
      {"warning", "", NULL},
  };
  static const char *const known[] = {"name", "workers", "samples", "warning"};
  const json_t *regions = json_object_get(p->runs[i].summary, "regions");
  report_table *t = add_table(p, "regions", gt_strdup("Regions"), i, COLUMNS(columns));
  for (size_t r = 0; r < json_array_size(regions); r++) {
    json_t *one = json_array_get(regions, r);
    const char *warning = gt_report_text(one, "warning");
    if (gt_report_number(one, "wall_s") > 0)
      json_array_append(t->rows, one);
    else {
      json_t *row = add_row(t);
      for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (json_object_get(one, known[k]))
          json_object_set(row, known[k], json_object_get(one, known[k]));
    }
    if (!*warning) continue;
    char *text = gt_report_join(gt_report_text(one, "name"), ": ", warning),
         *sentence = gt_report_join(text, ".", "");
    add_note(t, sentence);
    gt_free(text);
    gt_free(sentence);
  }
}

static void phases_table(gt_report *p, size_t i) {
  static const report_column columns[] = {{"name", "region", NULL},
                                          {"forward_s", "forward", "s"},
                                          {"backward_s", "backward", "s"},
                                          {"backward_input_s", "backward: inputs", "s"},
                                          {"backward_weight_s", "backward: weights", "s"},
                                          {"bubble_s", "bubble", "s"},
                                          {"transfer_s", "transfer", "s"},
                                          {"step_end_s", "step end", "s"},
                                          {"update_s", "update", "s"},
                                          {"evaluation_s", "evaluation", "s"}};
  const json_t *regions = json_object_get(p->runs[i].summary, "regions");
  report_table *t = NULL;
  for (size_t r = 0; r < json_array_size(regions); r++) {
    json_t *phases = json_object_get(json_array_get(regions, r), "phases");
    if (!phases) continue;
    if (!t) t = add_table(p, "phases", gt_strdup("Phases of the pipeline"), i, COLUMNS(columns));
    json_t *row = add_row(t);
    set_text(row, "name", gt_report_text(json_array_get(regions, r), "name"));
    json_object_update(row, phases);
  }
}

static void links_table(gt_report *p, size_t i) {
  static const report_column columns[] = {{"from", "from", NULL},
                                          {"to", "to", NULL},
                                          {"bytes_sent", "sent", "B"},
                                          {"messages", "messages", NULL},
                                          {"bytes_other", "other", "B"},
                                          {"mean_bps", "mean rate", "bit/s"},
                                          {"limit_bps", "limit", "bit/s"},
                                          {"limit_percent", "share of limit", "%"},
                                          {"bandwidth_bps_measured", "measured rate", "bit/s"},
                                          {"latency_s_measured", "latency", "s"},
                                          {"staleness_s", "staleness", "s"},
                                          {"staleness_s_longest", "longest", "s"}};
  const report_run *run = &p->runs[i];
  const json_t *links = json_object_get(run->summary, "links");
  const double left_out = gt_report_number(run->summary, "links_left_out");
  if (json_array_size(links) == 0) return;
  report_table *t = add_table(p, "links", gt_strdup("Links"), i, COLUMNS(columns));
  for (size_t k = 0; k < json_array_size(links); k++) {
    const json_t *link = json_array_get(links, k);
    const double other = gt_report_number(link, "bytes_other"),
                 all = gt_report_number(link, "bytes_sent") + (isfinite(other) ? other : 0),
                 rate = 8 * all / time_of(run),
                 limit =
                     gt_report_limit(run, gt_report_region_of(run, gt_report_text(link, "from")),
                                     gt_report_region_of(run, gt_report_text(link, "to")));
    json_t *row = add_row(t);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
      if (json_object_get(link, columns[c].key))
        json_object_set(row, columns[c].key, json_object_get(link, columns[c].key));
    set_number(row, "mean_bps", rate);
    set_number(row, "limit_bps", limit);
    set_number(row, "limit_percent", 100 * rate / limit);
  }
  if (!isfinite(left_out)) return;
  char note[96];
  snprintf(note, sizeof note, "%.0f other links with less traffic are not listed.", left_out);
  add_note(t, note);
}

static void plan_table(gt_report *p, size_t i) {
  static const report_column columns[] = {
      {"quantity", "quantity", NULL},     {"predicted", "predicted", "@unit"},
      {"measured", "measured", "@unit"},  {"error_percent", "error", "%"},
      {"low", "predicted at least", "s"}, {"high", "at most", "s"},
      {"within", "within", NULL}};
  static const struct {
    const char *key, *name, *unit;
  } rows[] = {{"wall", "time", "s"},
              {"step", "time per step", "s"},
              {"samples_per_s", "samples/s", ""},
              {"wan_bytes", "WAN bytes", "B"},
              {"waiting", "share of time waiting", ""},
              {"cost", "cost", "USD"}};
  json_t *plan = json_object_get(p->runs[i].summary, "plan");
  if (!plan) return;
  report_table *t =
      add_table(p, "plan", gt_strdup("Predicted by the plan, and measured"), i, COLUMNS(columns));
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    json_t *quantity = json_object_get(plan, rows[k].key);
    if (!quantity) continue;
    json_t *row = add_row(t);
    set_text(row, "quantity", rows[k].name);
    set_text(row, "unit", rows[k].unit);
    json_object_update(row, quantity);
  }
}

static void cost_table(gt_report *p, size_t i) {
  static const report_column columns[] = {
      {"name", "region", NULL},        {"worker_usd", "workers", "USD"}, {"ps_usd", "PS", "USD"},
      {"egress_usd", "egress", "USD"}, {"store_usd", "requests", "USD"}, {"usd", "sum", "USD"}};
  json_t *cost = json_object_get(p->runs[i].summary, "cost");
  const json_t *missing = json_object_get(cost, "missing");
  if (!cost) return;
  report_table *t = add_table(p, "cost", gt_strdup("Cost"), i, COLUMNS(columns));
  json_array_extend(t->rows, json_object_get(cost, "regions"));
  json_t *all = add_row(t);
  set_text(all, "name", "all");
  for (size_t c = 1; c < sizeof columns / sizeof *columns; c++)
    set_number(all, columns[c].key, gt_report_number(cost, columns[c].key));
  add_note(t, "Use times rates; not a bill.");
  if (json_is_true(json_object_get(cost, "assumed"))) add_note(t, "Rates are partly assumed.");
  if (json_array_size(missing) > 0) add_note(t, "Without a known price, and not included:");
  for (size_t k = 0; k < json_array_size(missing); k++) {
    const char *name = json_string_value(json_array_get(missing, k));
    char *item =
        gt_report_join("", name ? name : "-", k + 1 < json_array_size(missing) ? "," : ".");
    add_note(t, item);
    gt_free(item);
  }
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_listed(const json_t *line) {
  static const char *const left_out[] = {"progress", "phases", "eval", "memory", "validation"};
  for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
    if (gt_report_is(line, left_out[i])) return false;
  return true;
}

/* Returns the fields of an event that people read, in the order of the record. */
static json_t *details_of(const json_t *line) {
  static const char *const of_starts[] = {"job",       "region",      "lead",      "every_s",
                                          "precision", "kernels",     "blas_core", "clock",
                                          "workers",   "wan_bytes_to"};
  json_t *details = json_copy((json_t *)(uintptr_t)line);
  const bool starts = gt_report_is(line, "start") || gt_report_is(line, "resumed");
  for (size_t i = 0; starts && i < sizeof of_starts / sizeof *of_starts; i++)
    json_object_del(details, of_starts[i]);
  json_object_del(details, "t");
  json_object_del(details, "event");
  return details;
}

typedef struct {
  double t;
  size_t region, order;
  const json_t *line;
} event;

static int by_time(const void *a, const void *b) {
  const event *x = a, *y = b;
  if (x->t != y->t) return x->t < y->t ? -1 : 1;
  if (x->region != y->region) return x->region < y->region ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

static void events_table(gt_report *p, size_t i) {
  static const report_column columns[] = {{"t", "time", "s"},
                                          {"region", "region", NULL},
                                          {"event", "event", NULL},
                                          {"details", "details", NULL}};
  const report_run *run = &p->runs[i];
  size_t n = 0, most = 0;
  for (size_t r = 0; r < run->n; r++) most += json_array_size(run->regions[r].lines);
  event *list = GT_NEW_ARRAY(event, most + 1);
  for (size_t r = 0; r < run->n; r++)
    for (size_t k = 0; k < json_array_size(run->regions[r].lines); k++) {
      const json_t *line = json_array_get(run->regions[r].lines, k);
      if (is_listed(line)) list[n++] = (event){gt_report_number(line, "t"), r, k, line};
    }
  qsort(list, n, sizeof *list, by_time);
  char title[96];
  snprintf(title, sizeof title, "%zu events: starts, decisions, checkpoints, losses, warnings", n);
  report_table *t = add_table(p, "events", gt_strdup(title), i, COLUMNS(columns));
  t->folded = true;
  for (size_t k = 0; k < n; k++) {
    json_t *row = add_row(t);
    set_number(row, "t", list[k].t);
    set_text(row, "region", run->regions[list[k].region].name);
    set_text(row, "event", gt_report_text(list[k].line, "event"));
    json_object_set_new(row, "details", details_of(list[k].line));
  }
  gt_free(list);
}

/* ---- all ------------------------------------------------------------------------------------- */

void gt_report_tables(gt_report *p) {
  results_table(p);
  differences_table(p);
  for (size_t i = 0; i < p->n; i++) {
    regions_table(p, i);
    phases_table(p, i);
    links_table(p, i);
    plan_table(p, i);
    cost_table(p, i);
    events_table(p, i);
  }
}

void gt_report_tables_close(gt_report *p) {
  for (size_t i = 0; i < p->ntables; i++) {
    gt_free(p->tables[i].title);
    gt_free(p->tables[i].note);
    json_decref(p->tables[i].rows);
  }
  gt_free(p->tables);
}
