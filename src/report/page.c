/* The page: what was run, its results, figures, decisions, and predicted and measured figures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char page_style[] =
    "body{margin:2rem auto;max-width:76rem;padding:0 1rem;font:15px/1.5 sans-serif;"
    "color:var(--ink);background:var(--paper)}\n"
    "h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid "
    "var(--soft)}\n"
    "h3{font-size:1rem;margin:1.2rem 0 .3rem}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;display:block;overflow-x:"
    "auto}\n"
    "th,td{padding:.2rem .7rem .2rem 0;text-align:right;vertical-align:top;white-space:nowrap}\n"
    "th{font-weight:600}td:first-child,th:first-child,.text td,.text th{text-align:left}\n"
    ".text td:last-child{white-space:normal}\n"
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(28rem,100%),1fr));"
    "gap:0 1.5rem}\n"
    "figure{margin:1rem 0;break-inside:avoid}figcaption{font-size:.85rem}\n"
    "pre{overflow-x:auto;font-size:.8rem}\n";

/* ---- cells ----------------------------------------------------------------------------------- */

static void cell(FILE *to, const char *tag, const char *text) {
  fprintf(to, "<%s>", tag);
  gt_report_escape(to, text);
  fprintf(to, "</%s>", tag);
}

/* unit NULL: a number without one; "s", "B", "bit/s": with the unit that suits its size. */
static void number_cell(FILE *to, double value, const char *unit) {
  char text[48];
  if (!isfinite(value))
    snprintf(text, sizeof text, "-");
  else if (unit && strcmp(unit, "s") == 0)
    gt_format_time(text, sizeof text, value);
  else if (unit && strcmp(unit, "B") == 0)
    snprintf(text, sizeof text, value >= 2e9 ? "%.2f GB" : "%.3f MB",
             value / (value >= 2e9 ? 1e9 : 1e6));
  else if (unit && strcmp(unit, "bit/s") == 0)
    gt_format_rate(text, sizeof text, value);
  else {
    char number[32];
    snprintf(text, sizeof text, "%s%s%s", gt_report_short(number, value), unit ? " " : "",
             unit ? unit : "");
  }
  cell(to, "td", text);
}

static void head(FILE *to, const char *const *titles, size_t n, const char *class) {
  fprintf(to, "<table%s>\n<tr>", class);
  for (size_t i = 0; i < n; i++) cell(to, "th", titles[i]);
  fputs("</tr>\n", to);
}

/* ---- what was run ---------------------------------------------------------------------------- */

static double sum_of(const json_t *list, const char *key) {
  double sum = 0;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const double value = gt_report_number(json_array_get(list, i), key);
    if (isfinite(value)) sum += value;
  }
  return sum;
}

static double time_of(const report_run *run) {
  const double virtual_s = gt_report_number(run->summary, "virtual_s");
  if (isfinite(virtual_s)) return virtual_s;
  if (run->summary) return gt_report_number(run->summary, "wall_s");
  double last = NAN;
  for (size_t r = 0; r < run->n; r++)
    last = fmax(last, gt_report_number(gt_report_last(&run->regions[r]), "t"));
  return last;
}

static double samples_of(const report_run *run) {
  double sum = 0;
  if (run->summary) return gt_report_number(run->summary, "samples");
  for (size_t r = 0; r < run->n; r++) {
    const double n = gt_report_number(gt_report_last(&run->regions[r]), "samples");
    if (isfinite(n)) sum += n;
  }
  return sum;
}

static double bytes_of(const report_run *run) {
  const json_t *links = json_object_get(run->summary, "links");
  if (links) return sum_of(links, "bytes_sent") + sum_of(links, "bytes_other");
  double sum = 0;
  for (size_t r = 0; r < run->n; r++) {
    const double n = gt_report_number(gt_report_last(&run->regions[r]), "wan_bytes");
    if (isfinite(n)) sum += n;
  }
  return sum;
}

/* Returns the mean share of the regions' time in which their workers waited for the WAN. */
static double waiting_of(const report_run *run) {
  const json_t *regions = json_object_get(run->summary, "regions");
  double sum = 0;
  for (size_t r = 0; r < json_array_size(regions); r++) {
    const json_t *one = json_array_get(regions, r);
    sum += gt_report_number(one, "wan_wait_s") / gt_report_number(one, "wall_s");
  }
  return regions ? 100 * sum / (double)json_array_size(regions) : NAN;
}

static double metric_of(const report_run *run) {
  const report_metric *metric = gt_report_metric(run);
  return metric ? metric->scale * gt_report_number(run->summary, metric->in_summary) : NAN;
}

static double loss_of(const report_run *run) {
  return gt_report_number(run->summary, "test_loss");
}

static double cost_of(const report_run *run) {
  return gt_report_number(json_object_get(run->summary, "cost"), "usd");
}

static double speed_of(const report_run *run) {
  return samples_of(run) / time_of(run);
}

static const struct {
  const char *name, *unit;
  double (*of)(const report_run *run);
} results[] = {{"time", "s", time_of},         {"samples", NULL, samples_of},
               {"samples/s", NULL, speed_of},  {"WAN bytes", "B", bytes_of},
               {"WAN wait", "%", waiting_of},  {"test loss", NULL, loss_of},
               {"test metric", "", metric_of}, {"cost", "USD", cost_of}};

static const char *state_of(const report_run *run) {
  bool complete = false, stopped = false;
  for (size_t r = 0; r < run->n && !run->summary; r++) {
    const json_t *lines = run->regions[r].lines;
    const json_t *last = json_array_get(lines, json_array_size(lines) - 1);
    complete |= gt_report_is(last, "complete");
    stopped |= gt_report_is(last, "stopped");
  }
  return run->summary ? "ended"
         : stopped    ? "stopped, can be resumed"
         : complete   ? "ending"
                      : "runs, or was killed";
}

static void overview(FILE *to, const gt_report *p) {
  static const char *const titles[] = {
      "run",     "job",       "model",     "strategy", "clock",     "regions",     "state", "time",
      "samples", "samples/s", "WAN bytes", "WAN wait", "test loss", "test metric", "cost"};
  fputs("<h2>Runs</h2>\n", to);
  head(to, titles, sizeof titles / sizeof *titles, "");
  for (size_t i = 0; i < p->n; i++) {
    const report_run *run = &p->runs[i];
    const report_metric *metric = gt_report_metric(run);
    fputs("<tr>", to);
    cell(to, "td", run->label);
    cell(to, "td", run->job->name);
    cell(to, "td", gt_model_names[run->job->model.name]);
    cell(to, "td", gt_strategy_names[run->job->sync.strategy]);
    cell(to, "td", run->summary ? gt_report_text(run->summary, "clock") : "-");
    number_cell(to, (double)run->n, NULL);
    cell(to, "td", state_of(run));
    for (size_t k = 0; k < sizeof results / sizeof *results; k++) {
      char unit[32];
      if (results[k].of == metric_of && metric) {
        snprintf(unit, sizeof unit, "%s%s%s", metric->unit, *metric->unit ? " " : "", metric->name);
        number_cell(to, metric_of(run), unit);
      } else
        number_cell(to, results[k].of(run), results[k].unit);
    }
    fputs("</tr>\n", to);
  }
  fputs("</table>\n", to);
}

/* Results of each run relative to those of the first. */
static void differences(FILE *to, const gt_report *p) {
  if (p->n < 2) return;
  fprintf(to, "<h2>Differences from ");
  gt_report_escape(to, p->runs[0].label);
  fputs("</h2>\n<table>\n<tr><th>run</th>", to);
  for (size_t k = 0; k < sizeof results / sizeof *results; k++) cell(to, "th", results[k].name);
  fputs("</tr>\n", to);
  for (size_t i = 1; i < p->n; i++) {
    fputs("<tr>", to);
    cell(to, "td", p->runs[i].label);
    for (size_t k = 0; k < sizeof results / sizeof *results; k++) {
      const double own = results[k].of(&p->runs[i]), first = results[k].of(&p->runs[0]);
      char text[48] = "-", number[32];
      const bool is_share =
          results[k].of == waiting_of || results[k].of == metric_of || results[k].of == loss_of;
      if (isfinite(own - first) && is_share)
        snprintf(text, sizeof text, "%s%s", own >= first ? "+" : "",
                 gt_report_short(number, own - first));
      else if (isfinite(own / first))
        snprintf(text, sizeof text, "%s times", gt_report_short(number, own / first));
      cell(to, "td", text);
    }
    fputs("</tr>\n", to);
  }
  fputs(
      "</table>\n<p>Time, samples, bytes and cost: divided by those of the first run. Waits, loss "
      "and metric: difference.</p>\n",
      to);
}

/* ---- the jobs -------------------------------------------------------------------------------- */

static char *flat_of(const gt_job *job) {
  char *text = NULL;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  if (!to) return gt_strdup("");
  gt_job_flat(job, to);
  fclose(to);
  return text;
}

/* Returns the value of a key in the text of gt_job_flat, *n characters; NULL: not given. */
static const char *value_in(const char *flat, const char *key, size_t length, size_t *n) {
  for (const char *line = flat; *line;) {
    const size_t size = strcspn(line, "\n");
    if (size > length && strncmp(line, key, length) == 0 && line[length] == '=') {
      *n = size - length - 1;
      return line + length + 1;
    }
    line += size + (line[size] == '\n');
  }
  return NULL;
}

static bool is_equal(char *const *flats, size_t n, const char *key, size_t length) {
  size_t size = 0, other = 0;
  const char *first = value_in(flats[0], key, length, &size);
  for (size_t i = 1; i < n; i++) {
    const char *value = value_in(flats[i], key, length, &other);
    if (!first != !value || (first && (size != other || strncmp(first, value, size) != 0)))
      return false;
  }
  return true;
}

static void differing_row(FILE *to, char *const *flats, size_t n, const char *key, size_t length) {
  fprintf(to, "<tr><td>%.*s</td>", (int)length, key);
  for (size_t i = 0; i < n; i++) {
    size_t size = 0;
    const char *value = value_in(flats[i], key, length, &size);
    char *copy = gt_alloc(size + 1, 1);
    if (value) memcpy(copy, value, size);
    cell(to, "td", value ? copy : "-");
    gt_free(copy);
  }
  fputs("</tr>\n", to);
}

/* A row per key whose values differ; keys in the order of the first run that has them. */
static void settings(FILE *to, const gt_report *p) {
  char *flats[GT_REPORT_RUNS];
  for (size_t i = 0; i < p->n; i++) flats[i] = flat_of(p->runs[i].job);
  if (p->n == 1) {
    fputs("<details><summary>The job, with defaults</summary>\n<pre>", to);
    gt_report_escape(to, flats[0]);
    fputs("</pre></details>\n", to);
  } else {
    fputs("<h2>Settings that differ</h2>\n<table class=\"text\">\n<tr><th>key</th>", to);
    for (size_t i = 0; i < p->n; i++) cell(to, "th", p->runs[i].label);
    fputs("</tr>\n", to);
    for (size_t i = 0; i < p->n; i++)
      for (const char *line = flats[i]; *line;) {
        const size_t size = strcspn(line, "\n"), length = strcspn(line, "=");
        size_t unused = 0;
        bool told = length >= size;
        for (size_t k = 0; k < i && !told; k++)
          told = value_in(flats[k], line, length, &unused) != NULL;
        if (!told && !is_equal(flats, p->n, line, length))
          differing_row(to, flats, p->n, line, length);
        line += size + (line[size] == '\n');
      }
    fputs("</table>\n", to);
  }
  for (size_t i = 0; i < p->n; i++) free(flats[i]);
}

/* ---- a run: regions, links, plan, cost ------------------------------------------------------- */

static void regions_table(FILE *to, const report_run *run) {
  static const char *const titles[] = {"region",    "workers",   "steps",    "samples", "time",
                                       "compute",   "WAN wait",  "PS wait",  "idle",    "test loss",
                                       "lost work", "nonfinite", "excluded", "missed"};
  static const struct {
    const char *key, *unit;
  } columns[] = {{"workers", NULL},     {"steps", NULL},     {"samples", NULL},
                 {"wall_s", "s"},       {"compute_s", "s"},  {"wan_wait_s", "s"},
                 {"local_wait_s", "s"}, {"idle_s", "s"},     {"test_loss", NULL},
                 {"lost_s", "s"},       {"nonfinite", NULL}, {"excluded", NULL},
                 {"missed", NULL}};
  const json_t *regions = json_object_get(run->summary, "regions");
  if (!regions) return;
  fputs("<h3>Regions</h3>\n", to);
  head(to, titles, sizeof titles / sizeof *titles, "");
  for (size_t r = 0; r < json_array_size(regions); r++) {
    const json_t *one = json_array_get(regions, r);
    fputs("<tr>", to);
    cell(to, "td", gt_report_text(one, "name"));
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
      number_cell(to, gt_report_number(one, columns[k].key), columns[k].unit);
    fputs("</tr>\n", to);
  }
  fputs("</table>\n", to);
}

static void links_table(FILE *to, const report_run *run) {
  static const char *const titles[] = {"link",          "sent",    "messages", "other",
                                       "measured rate", "latency", "mean rate"};
  const json_t *links = json_object_get(run->summary, "links");
  const double time_s = time_of(run);
  if (json_array_size(links) == 0) return;
  fputs("<h3>Links</h3>\n", to);
  head(to, titles, sizeof titles / sizeof *titles, "");
  for (size_t i = 0; i < json_array_size(links); i++) {
    const json_t *l = json_array_get(links, i);
    char name[160];
    snprintf(name, sizeof name, "%.70s to %.70s", gt_report_text(l, "from"),
             gt_report_text(l, "to"));
    const double all = gt_report_number(l, "bytes_sent") + gt_report_number(l, "bytes_other");
    fputs("<tr>", to);
    cell(to, "td", name);
    number_cell(to, gt_report_number(l, "bytes_sent"), "B");
    number_cell(to, gt_report_number(l, "messages"), NULL);
    number_cell(to, gt_report_number(l, "bytes_other"), "B");
    number_cell(to, gt_report_number(l, "bandwidth_bps_measured"), "bit/s");
    number_cell(to, gt_report_number(l, "latency_s_measured"), "s");
    number_cell(to, 8 * all / time_s, "bit/s");
    fputs("</tr>\n", to);
  }
  fputs("</table>\n", to);
}

static void plan_table(FILE *to, const report_run *run) {
  static const char *const titles[] = {"quantity", "predicted", "measured", "error"};
  static const struct {
    const char *key, *name, *unit;
  } rows[] = {{"wall", "time", "s"},
              {"step", "time per step", "s"},
              {"samples_per_s", "samples/s", NULL},
              {"wan_bytes", "WAN bytes", "B"},
              {"waiting", "share of time waiting", NULL},
              {"cost", "cost", "USD"}};
  const json_t *plan = json_object_get(run->summary, "plan");
  if (!plan) return;
  fputs("<h3>Predicted by the plan, and measured</h3>\n", to);
  head(to, titles, sizeof titles / sizeof *titles, "");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const json_t *q = json_object_get(plan, rows[i].key);
    if (!q) continue;
    fputs("<tr>", to);
    cell(to, "td", rows[i].name);
    number_cell(to, gt_report_number(q, "predicted"), rows[i].unit);
    number_cell(to, gt_report_number(q, "measured"), rows[i].unit);
    number_cell(to, gt_report_number(q, "error_percent"), "%");
    fputs("</tr>\n", to);
  }
  fputs("</table>\n", to);
}

static void cost_table(FILE *to, const report_run *run) {
  static const char *const titles[] = {"region", "workers", "PS", "egress", "sum"};
  static const char *const keys[] = {"worker_usd", "ps_usd", "egress_usd", "usd"};
  const json_t *cost = json_object_get(run->summary, "cost");
  const json_t *regions = json_object_get(cost, "regions"),
               *missing = json_object_get(cost, "missing");
  if (!cost) return;
  fputs("<h3>Cost</h3>\n", to);
  head(to, titles, sizeof titles / sizeof *titles, "");
  for (size_t r = 0; r <= json_array_size(regions); r++) {
    const json_t *row = r < json_array_size(regions) ? json_array_get(regions, r) : cost;
    fputs("<tr>", to);
    cell(to, "td", row == cost ? "all" : gt_report_text(row, "name"));
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
      number_cell(to, gt_report_number(row, keys[k]), "USD");
    fputs("</tr>\n", to);
  }
  fputs("</table>\n<p>Measured use times rates; not a bill.", to);
  for (size_t i = 0; i < json_array_size(missing); i++) {
    fputs(i == 0 ? " Without a known price, and not included: " : ", ", to);
    gt_report_escape(to, json_string_value(json_array_get(missing, i)));
  }
  fputs(json_array_size(missing) ? ".</p>\n" : "</p>\n", to);
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_told(const json_t *line) {
  static const char *const left_out[] = {"progress", "phases", "eval", "memory", "validation"};
  for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
    if (gt_report_is(line, left_out[i])) return false;
  return true;
}

/* Writes the fields of an event that people read, in the order of the record. */
static void fields(FILE *to, const json_t *line) {
  static const char *const left_out[] = {"t",         "event",        "job",       "region",
                                         "lead",      "every_s",      "precision", "kernels",
                                         "blas_core", "wan_bytes_to", "clock",     "workers"};
  const char *key;
  const json_t *value;
  void *at = json_object_iter((json_t *)(uintptr_t)line);
  for (const char *comma = ""; at; at = json_object_iter_next((json_t *)(uintptr_t)line, at)) {
    bool skip = false;
    key = json_object_iter_key(at);
    value = json_object_iter_value(at);
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
      skip |= strcmp(key, left_out[i]) == 0 && !gt_report_is(line, "peer_done");
    skip |= strcmp(key, "t") == 0 || strcmp(key, "event") == 0 || json_is_null(value);
    if (skip) continue;
    char *text =
        json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    fprintf(to, "%s%s ", comma, key);
    gt_report_escape(to, text ? text : json_is_string(value) ? json_string_value(value) : "");
    free(text);
    comma = ", ";
  }
}

typedef struct {
  double t;
  size_t region, order;
  const json_t *line;
} told;

static int by_time(const void *a, const void *b) {
  const told *x = a, *y = b;
  if (x->t != y->t) return x->t < y->t ? -1 : 1;
  if (x->region != y->region) return x->region < y->region ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

static void events(FILE *to, const report_run *run) {
  static const char *const titles[] = {"time", "region", "event", "details"};
  size_t n = 0, most = 0;
  for (size_t r = 0; r < run->n; r++) most += json_array_size(run->regions[r].lines);
  told *list = GT_NEW_ARRAY(told, most);
  for (size_t r = 0; r < run->n; r++)
    for (size_t i = 0; i < json_array_size(run->regions[r].lines); i++) {
      const json_t *line = json_array_get(run->regions[r].lines, i);
      if (is_told(line)) list[n++] = (told){gt_report_number(line, "t"), r, i, line};
    }
  qsort(list, n, sizeof *list, by_time);
  fprintf(to,
          "<details%s><summary>%zu events: starts, decisions, checkpoints, losses, "
          "warnings</summary>\n",
          n <= 40 ? " open" : "", n);
  head(to, titles, sizeof titles / sizeof *titles, " class=\"text\"");
  for (size_t i = 0; i < n; i++) {
    fputs("<tr>", to);
    number_cell(to, list[i].t, "s");
    cell(to, "td", run->regions[list[i].region].name);
    cell(to, "td", gt_report_text(list[i].line, "event"));
    fputs("<td>", to);
    fields(to, list[i].line);
    fputs("</td></tr>\n", to);
  }
  fputs("</table></details>\n", to);
  gt_free(list);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void figures(FILE *to, const gt_report *p) {
  fputs("<h2>Figures</h2>\n", to);
  if (p->n > 1)
    fputs("<p>A line of loss, accuracy, bytes or members is the first region of a run with a "
          "record.</p>\n",
          to);
  fputs("<div class=\"figures\">\n", to);
  for (size_t i = 0; i < p->nfigures; i++) {
    const report_figure *f = &p->figures[i];
    fprintf(to, "<figure id=\"%s\">\n<h3>", f->id);
    gt_report_escape(to, f->title);
    fputs("</h3>\n", to);
    gt_report_draw(to, f, false);
    if (f->note) {
      fputs("<figcaption>", to);
      gt_report_escape(to, f->note);
      fputs("</figcaption>\n", to);
    }
    fputs("</figure>\n", to);
  }
  fputs("</div>\n", to);
}

void gt_report_html(FILE *to, const void *report) {
  const gt_report *p = report;
  fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
        to);
  for (size_t i = 0; i < p->n; i++) {
    fputs(i ? ", " : "", to);
    gt_report_escape(to, p->runs[i].label);
  }
  fprintf(to, " - geotrain report</title>\n<style>\n%s%s</style>\n</head>\n<body>\n",
          gt_report_style, page_style);
  fprintf(to, "<h1>%s</h1>\n", p->n == 1 ? "Report of a run" : "Report of several runs");
  overview(to, p);
  differences(to, p);
  settings(to, p);
  figures(to, p);
  for (size_t i = 0; i < p->n; i++) {
    fputs("<h2>", to);
    gt_report_escape(to, p->runs[i].label);
    fputs("</h2>\n", to);
    regions_table(to, &p->runs[i]);
    links_table(to, &p->runs[i]);
    plan_table(to, &p->runs[i]);
    cost_table(to, &p->runs[i]);
    events(to, &p->runs[i]);
  }
  fputs("</body>\n</html>\n", to);
}
