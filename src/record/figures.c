/* Planned and measured figures and the cost of a run: computes them, converts those of a plan to
   JSON and back, prints lines of the final table. */
#include "internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "geotrain/record_table.h"

/* ---- figures --------------------------------------------------------------------------------- */

gt_figures gt_figures_of(double wall_s, const gt_region_result *regions, size_t nregions,
                         double samples, double wan_bytes, double cost) {
  gt_figures f = {wall_s, NAN, wall_s > 0 ? samples / wall_s : NAN, wan_bytes, NAN, cost};
  double waiting = 0;
  size_t training_regions = 0;
  for (size_t r = 0; r < nregions; r++) {
    if (regions[r].workers == 0) continue; /* it only aggregates */
    training_regions++;
    waiting += regions[r].wall_s > 0 ? regions[r].wan_wait_s / regions[r].wall_s : 0;
    double training = regions[r].compute_s + regions[r].wan_wait_s + regions[r].local_wait_s;
    if (regions[r].steps > 0) f.step_s = fmax(f.step_s, training / (double)regions[r].steps);
  }
  if (training_regions > 0) f.waiting = waiting / (double)training_regions;
  return f;
}

typedef enum { TIME, RATE, BYTES, SHARE, USD } unit;

/* Keys as in plan.predicted. */
static const struct {
  const char *key, *shown;
  size_t offset;
  unit unit;
} quantities[] = {
    {"wall", "time", offsetof(gt_figures, wall_s), TIME},
    {"step", "step", offsetof(gt_figures, step_s), TIME},
    {"samples_per_s", "samples/s", offsetof(gt_figures, samples_per_s), RATE},
    {"wan_bytes", "WAN traffic", offsetof(gt_figures, wan_bytes), BYTES},
    {"waiting", "waiting", offsetof(gt_figures, waiting), SHARE},
    {"cost", "cost", offsetof(gt_figures, cost), USD},
};
#define QUANTITIES (sizeof quantities / sizeof *quantities)

static double figure(const gt_figures *f, size_t quantity) {
  return *(const double *)(const void *)((const char *)f + quantities[quantity].offset);
}

static void set_figure(gt_figures *f, size_t quantity, double value) {
  *(double *)(void *)((char *)f + quantities[quantity].offset) = value;
}

/* Returns the error; above 0 if the prediction was too high, NaN if one of both is unknown. */
static double error_percent(double predicted, double measured) {
  if (predicted == measured) return 0;
  return measured != 0 ? 100 * (predicted - measured) / measured : NAN;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *range_of(const gt_plan_result *plan) {
  double wall = plan->measured.wall_s;
  bool low = isfinite(plan->low_s), high = isfinite(plan->high_s);
  if (!isfinite(wall) || (!low && !high)) return json_null();
  return json_boolean((!low || wall >= plan->low_s) && (!high || wall <= plan->high_s));
}

json_t *gt_json_plan(const gt_plan_result *plan) {
  json_t *root = json_object();
  json_object_set_new(root, "strategy", gt_json_text(plan->strategy));
  json_object_set_new(root, "made", gt_json_text(plan->made));
  for (size_t i = 0; i < QUANTITIES; i++) {
    double predicted = figure(&plan->predicted, i), measured = figure(&plan->measured, i);
    json_t *quantity = json_object();
    json_object_set_new(quantity, "predicted", gt_json_number(predicted));
    json_object_set_new(quantity, "measured", gt_json_number(measured));
    json_object_set_new(quantity, "error_percent",
                        gt_json_number(error_percent(predicted, measured)));
    json_object_set_new(root, quantities[i].key, quantity);
  }
  json_t *wall = json_object_get(root, "wall");
  json_object_set_new(wall, "low", gt_json_number(plan->low_s));
  json_object_set_new(wall, "high", gt_json_number(plan->high_s));
  json_object_set_new(wall, "within", range_of(plan));
  return root;
}

void gt_json_take_plan(const json_t *from, gt_plan_result *plan) {
  const json_t *wall = json_object_get(from, "wall");
  *plan = (gt_plan_result){.strategy = json_string_value(json_object_get(from, "strategy")),
                           .made = json_string_value(json_object_get(from, "made")),
                           .low_s = gt_json_number_of(wall, "low"),
                           .high_s = gt_json_number_of(wall, "high")};
  for (size_t i = 0; i < QUANTITIES; i++) {
    const json_t *quantity = json_object_get(from, quantities[i].key);
    set_figure(&plan->predicted, i, gt_json_number_of(quantity, "predicted"));
    set_figure(&plan->measured, i, gt_json_number_of(quantity, "measured"));
  }
}

/* ---- the table ------------------------------------------------------------------------------- */

#define SHOWN_MISSING ((size_t)3)

static char *put_figure(char *out, size_t size, unit of, double value) {
  char number[32];
  if (!isfinite(value))
    snprintf(out, size, "-");
  else if (of == TIME && value < 0.1)
    snprintf(out, size, "%.3f ms", 1e3 * value);
  else if (of == TIME)
    snprintf(out, size, value < 100 ? "%.3f s" : "%.1f s", value);
  else if (of == RATE)
    snprintf(out, size, "%s", gt_format_count(number, sizeof number, value));
  else if (of == BYTES)
    snprintf(out, size, "%.2f MB", 1e-6 * value);
  else if (of == SHARE)
    snprintf(out, size, "%.1f %%", 100 * value);
  else
    snprintf(out, size, value < 1 ? "%.6f USD" : "%.2f USD", value);
  return out;
}

void gt_print_cost(FILE *to, const gt_cost_result *c) {
  char usd[32], machines[32], egress[32], store[64] = "", missing[128] = "";
  if (c->store_usd > 0)
    snprintf(store, sizeof store, ", requests %s", put_figure(usd, sizeof usd, USD, c->store_usd));
  gt_print_wrapped(to, 15, "cost           %s  (machines %s, egress %s%s%s)",
                   put_figure(usd, sizeof usd, USD, c->usd),
                   put_figure(machines, sizeof machines, USD, c->worker_usd + c->ps_usd),
                   put_figure(egress, sizeof egress, USD, c->egress_usd), store,
                   c->assumed ? "; rates partly assumed" : "");
  if (c->nmissing == 0) return;
  for (size_t i = 0, at = 0; i < c->nmissing && i < SHOWN_MISSING; i++)
    at += (size_t)snprintf(missing + at, sizeof missing - at, "%s %.24s", i ? "," : "",
                           c->missing[i]);
  if (c->nmissing > SHOWN_MISSING)
    gt_print_wrapped(to, 15, "               without%s and %zu more: no price is known", missing,
                     c->nmissing - SHOWN_MISSING);
  else
    gt_print_wrapped(to, 15, "               without%s: no price is known", missing);
}

void gt_print_terms(FILE *to, const gt_cost_result *c) {
  static const gt_column columns[] = {
      {.title = "terms of the study"},
      {.title = "equations", .unit = "USD", .format = GT_COLUMN_FIXED, .digits = 6},
      {.title = "counted", .unit = "USD", .format = GT_COLUMN_FIXED, .digits = 6}};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  for (size_t i = 0; i < GT_COST_TERMS; i++)
    gt_table_add(t, GT_ROW(gt_cell_text(c->terms[i].name), gt_cell_number(c->terms[i].equations),
                           gt_cell_number(c->terms[i].counted)));
  fputc('\n', to);
  gt_table_finish(to, t);
}

json_t *gt_json_terms(const gt_cost_result *c) {
  json_t *all = json_array();
  for (size_t i = 0; i < GT_COST_TERMS; i++)
    json_array_append_new(all, json_pack("{s:s, s:o, s:o}", "term", c->terms[i].name, "equations",
                                         gt_json_number(c->terms[i].equations), "counted",
                                         gt_json_number(c->terms[i].counted)));
  return all;
}

/* "9.00 s to 11.0 s: within", or "". */
static const char *range_text(char *out, size_t size, const gt_plan_result *p) {
  char low[32], high[32];
  json_t *within = range_of(p);
  *out = '\0';
  if (!json_is_null(within))
    snprintf(out, size, "%s to %s: %s", put_figure(low, sizeof low, TIME, p->low_s),
             put_figure(high, sizeof high, TIME, p->high_s),
             json_is_true(within) ? "within" : "not within");
  json_decref(within);
  return out;
}

/* Exact agreement is printed differently. */
static const char *error_text(char *out, size_t size, double error) {
  if (!isfinite(error))
    return "-";
  else if (error == 0)
    return "0 %";
  snprintf(out, size, "%+.2f %%", fabs(error) < 0.005 ? 0.0 : error);
  return out;
}

void gt_print_plan(FILE *to, const gt_plan_result *p) {
  static const gt_column columns[] = {{.title = "plan"},
                                      {.title = "predicted", .format = GT_COLUMN_FIXED},
                                      {.title = "measured", .format = GT_COLUMN_FIXED},
                                      {.title = "error", .format = GT_COLUMN_FIXED},
                                      {.title = "predicted range"}};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  const bool range = isfinite(p->low_s) || isfinite(p->high_s);
  for (size_t i = 0; i < QUANTITIES; i++) {
    double predicted = figure(&p->predicted, i), measured = figure(&p->measured, i);
    char one[32], two[32], percent[32], within[80];
    if (!isfinite(predicted) && !(i == 0 && range)) continue;
    gt_table_add(
        t, GT_ROW(gt_cell_text(quantities[i].shown),
                  gt_cell_text(put_figure(one, sizeof one, quantities[i].unit, predicted)),
                  gt_cell_text(put_figure(two, sizeof two, quantities[i].unit, measured)),
                  gt_cell_text(
                      error_text(percent, sizeof percent, error_percent(predicted, measured))),
                  gt_cell_text(i == 0 && range ? range_text(within, sizeof within, p) : NULL)));
  }
  fputc('\n', to);
  if (p->made) gt_print_wrapped(to, 2, "plan (%s), predicted and measured:", p->made);
  gt_table_finish(to, t);
}

void gt_print_faults(FILE *to, const gt_fault_result *f) {
  const struct {
    int64_t n;
    const char *text;
  } parts[] = {{f->returned, "returned"},
               {f->resumed, "resumed with all others"},
               {f->again, "lost again before"},
               {f->refused, "refused"},
               {f->away, "not back at the end"}};
  char text[256] = "", ended[48] = "";
  for (size_t i = 0, at = 0; i < sizeof parts / sizeof *parts; i++)
    if (parts[i].n > 0)
      at += (size_t)snprintf(text + at, sizeof text - at, "%s %" PRId64 " %s", at ? "," : "",
                             parts[i].n, parts[i].text);
  if (f->ended > 0) snprintf(ended, sizeof ended, "; %" PRId64 " ended with 75", f->ended);
  gt_print_wrapped(to, 15,
                   "goodput        %.3f of an undisturbed run of this time; %" PRId64
                   " samples not trained, %" PRId64 " trained again",
                   f->goodput, f->not_trained, f->repeated);
  gt_print_wrapped(to, 15,
                   "losses         %" PRId64 "%s%s%s; %" PRId64 " cuts, %" PRId64
                   " resumes, %" PRId64 " epochs",
                   f->losses, f->losses ? ":" : "", text, ended, f->cuts, f->resumes, f->epochs);
}
