/* The figures of a report, from the records and summaries of its runs.  With several runs, a line
   is the first region of a run whose record has the values; with one run, there is a line per
   region. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define LINKS_MAX ((size_t)32) /* of a figure: lines that colours and dashes tell apart */

/* ---- building -------------------------------------------------------------------------------- */

/* The figure owns the title, and a series its name. */
static report_figure *add_figure(gt_report *p, const char *id, char *title) {
  GT_GROW(p->figures, p->nfigures, p->room, 16);
  report_figure *f = &p->figures[p->nfigures++];
  *f = (report_figure){.title = title, .x_scale = 1, .y_scale = 1};
  snprintf(f->id, sizeof f->id, "%s", id);
  return f;
}

static report_series *add_series(report_figure *f, size_t run, char *name) {
  GT_GROW(f->series, f->n, f->room, 8);
  report_series *s = &f->series[f->n++];
  *s = (report_series){.name = name, .run = run, .limit = NAN};
  return s;
}

static void add_point(report_series *s, double x, double y) {
  if (!isfinite(x) || !isfinite(y)) return;
  GT_GROW(s->points, s->n, s->room, 64);
  s->points[s->n++] = (report_point){x, y};
}

static void close_series(report_series *s) {
  gt_free(s->name);
  gt_free(s->points);
}

static void close_figure(report_figure *f) {
  for (size_t i = 0; i < f->n; i++) close_series(&f->series[i]);
  for (size_t i = 0; i < f->nbars; i++) gt_free(f->bars[i].name);
  gt_free(f->series);
  gt_free(f->bars);
  gt_free(f->title);
}

static double largest(const report_figure *f, bool of_x) {
  double most = 0;
  for (size_t i = 0; i < f->n; i++)
    for (size_t k = 0; k < f->series[i].n; k++)
      most = fmax(most, of_x ? f->series[i].points[k].x : f->series[i].points[k].y);
  return most;
}

typedef struct {
  double from, scale;
  const char *name;
} unit;

static const unit time_units[] = {{7200, 1.0 / 3600, "h"}, {300, 1.0 / 60, "min"}, {0, 1, "s"}};
static const unit byte_units[] = {{2e9, 1e-9, "GB"}, {2e6, 1e-6, "MB"}, {0, 1e-3, "kB"}};
static const unit count_units[] = {{2e6, 1e-6, "million"}, {2e4, 1e-3, "thousand"}, {0, 1, ""}};
static const unit rate_units[] = {
    {2e9, 1e-9, "Gbit/s"}, {2e6, 1e-6, "Mbit/s"}, {0, 1e-3, "kbit/s"}};

/* Names an axis, with the unit for its largest value, and sets its scale. */
static void set_axis(report_figure *f, bool of_x, const char *name, const unit *units) {
  const double most = largest(f, of_x);
  while (most < units->from) units++;
  snprintf(of_x ? f->x_label : f->y_label, sizeof f->x_label, "%s%s%s%s", name,
           *units->name ? " (" : "", units->name, *units->name ? ")" : "");
  *(of_x ? &f->x_scale : &f->y_scale) = units->scale;
}

/* ---- lines over the course of training ------------------------------------------------------- */

/* key NULL: the bytes sent, which evaluations do not have. */
typedef struct {
  const char *id, *name, *key;
  const unit *units;
} axis;

static const axis axes[] = {
    {"samples", "samples of the region", "samples", count_units},
    {"time", "time", "t", time_units},
    {"bytes", "bytes sent by the region", NULL, byte_units},
};

static bool has_bytes(const json_t *lines, size_t i) {
  return json_object_get(json_array_get(lines, i), "wan_bytes") != NULL;
}

/* Returns the bytes sent until line i: between two lines with bytes, in proportion to the time. */
static double bytes_at(const json_t *lines, size_t i) {
  const size_t n = json_array_size(lines);
  size_t before = i, after = i;
  while (before > 0 && !has_bytes(lines, before)) before--;
  while (after + 1 < n && !has_bytes(lines, after)) after++;
  const json_t *a = json_array_get(lines, before), *b = json_array_get(lines, after);
  const double from = gt_report_number(a, "wan_bytes"), to = gt_report_number(b, "wan_bytes"),
               since = gt_report_number(a, "t"), until = gt_report_number(b, "t"),
               now = gt_report_number(json_array_get(lines, i), "t");
  return until > since && isfinite(to) ? from + (to - from) * (now - since) / (until - since)
                                       : from;
}

static void add_values(report_series *s, const report_region *region, const char *event,
                       const char *key, const axis *x, double scale) {
  for (size_t i = 0; i < json_array_size(region->lines); i++) {
    const json_t *line = json_array_get(region->lines, i);
    if (!gt_report_is(line, event)) continue;
    add_point(s, x->key ? gt_report_number(line, x->key) : bytes_at(region->lines, i),
              scale * gt_report_number(line, key));
  }
}

static char *name_of_line(const gt_report *p, const report_run *run, size_t region) {
  return gt_strdup(p->n > 1 ? run->label : run->regions[region].name);
}

/* Drops the lines of less than two points, and the figure that was added last if it is empty. */
static void keep_if_any(gt_report *p) {
  report_figure *f = &p->figures[p->nfigures - 1];
  size_t kept = 0;
  for (size_t i = 0; i < f->n; i++) {
    if (f->parts > 0 || f->series[i].n > 1)
      f->series[kept++] = f->series[i];
    else
      close_series(&f->series[i]);
  }
  f->n = kept;
  if (f->parts > 0 ? f->nbars > 0 : kept > 0) return;
  close_figure(f);
  p->nfigures--;
}

static void course(gt_report *p, const axis *x, const char *event, const char *key,
                   const char *what, const char *y_label, double scale) {
  char id[32];
  const char *of = strcmp(event, "eval") == 0 ? key : event[0] == 'p' ? "training" : event;
  snprintf(id, sizeof id, "%s-%s", of, x->id);
  report_figure *f = add_figure(p, id, gt_report_join(what, " over ", x->name));
  for (size_t i = 0; i < p->n; i++) {
    size_t points = 0;
    for (size_t r = 0; r < p->runs[i].n && (p->n == 1 || points < 2); r++) {
      report_series *s = add_series(f, i, name_of_line(p, &p->runs[i], r));
      add_values(s, &p->runs[i].regions[r], event, key, x, scale);
      points = s->n;
    }
  }
  snprintf(f->y_label, sizeof f->y_label, "%s", y_label);
  set_axis(f, true, x->name, x->units);
  keep_if_any(p);
}

static void courses(gt_report *p) {
  const report_metric *metric = NULL;
  for (size_t i = 0; i < p->n && !metric; i++) metric = gt_report_metric(&p->runs[i]);
  for (size_t a = 0; a < sizeof axes / sizeof *axes; a++) {
    course(p, &axes[a], "progress", "loss", "Training loss", "training loss", 1);
    course(p, &axes[a], "validation", "loss", "Validation loss", "validation loss", 1);
    course(p, &axes[a], "eval", "loss", "Test loss", "test loss", 1);
    if (!metric) continue;
    char what[48], y[48];
    snprintf(what, sizeof what, "Test %s", metric->name);
    snprintf(y, sizeof y, "test %s%s%s%s", metric->name, *metric->unit ? " (" : "", metric->unit,
             *metric->unit ? ")" : "");
    course(p, &axes[a], "eval", metric->in_record, what, y, metric->scale);
  }
}

/* ---- where the time went --------------------------------------------------------------------- */

/* A part of a bar: the sum of these members of an object. */
typedef struct {
  const char *name, *keys[3];
} part;

static const part times[] = {{"compute", {"compute_s"}},
                             {"wait for the WAN", {"wan_wait_s"}},
                             {"wait for the region's PS", {"local_wait_s"}},
                             {"idle after its training", {"idle_s"}},
                             {"evaluations, checkpoints, other", {NULL}}}; /* the rest */

static const part phases[] = {{"forward", {"forward_s"}},
                              {"backward", {"backward_s", "backward_input_s", "backward_weight_s"}},
                              {"bubble", {"bubble_s"}},
                              {"transfer", {"transfer_s"}},
                              {"step end", {"step_end_s"}},
                              {"update", {"update_s"}},
                              {"evaluation", {"evaluation_s"}}};

static double seconds_of(const json_t *object, const part *of) {
  double sum = 0;
  for (size_t k = 0; k < 3 && of->keys[k]; k++) {
    const double s = gt_report_number(object, of->keys[k]);
    if (isfinite(s)) sum += fmax(0, s);
  }
  return sum;
}

/* all_s: the length of the bar; its last part is the rest; NaN: the sum of the parts. */
static void add_bar(report_figure *f, size_t first, const json_t *object, const part *parts,
                    double all_s) {
  double sum = 0;
  for (size_t k = 0; k < f->parts; k++) {
    double s = seconds_of(object, &parts[k]);
    sum += s;
    if (isfinite(all_s) && k + 1 == f->parts) s = fmax(0, all_s - sum);
    add_point(&f->series[first + k], (double)f->nbars, s);
  }
}

/* A bar per region with workers whose times are known; member NULL: of all its time, else of that
   object in it. */
static void bars(gt_report *p, const char *id, const char *title, const part *parts, size_t n,
                 const char *member) {
  report_figure *f = add_figure(p, id, gt_strdup(title));
  size_t regions = 0;
  for (size_t i = 0; i < p->n; i++) regions += p->runs[i].n;
  f->bars = GT_NEW_ARRAY(report_bar, regions + 1);
  f->parts = n;
  for (size_t i = 0; i < p->n; i++) {
    const json_t *results = json_object_get(p->runs[i].summary, "regions");
    const size_t first = f->n;
    for (size_t k = 0; k < n; k++) add_series(f, i, gt_strdup(parts[k].name));
    for (size_t r = 0; r < p->runs[i].n; r++) {
      const json_t *result = json_array_get(results, r);
      const double wall_s = gt_report_number(result, "wall_s");
      if (member) result = json_object_get(result, member);
      if (!result || !(wall_s > 0)) continue;
      if (!member && !(gt_report_number(result, "workers") > 0)) continue;
      add_bar(f, first, result, parts, member ? NAN : wall_s);
      const char *region = p->runs[i].regions[r].name;
      f->bars[f->nbars++] = (report_bar){
          gt_report_join(p->n > 1 ? p->runs[i].label : "", p->n > 1 ? ": " : "", region), region};
    }
  }
  set_axis(f, false, "mean over the region's workers", time_units);
  keep_if_any(p);
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Adds the mean rate between two lines at each of them, and 0 at the end.  Bytes of lines at the
   same time count before it, at the beginning after it: the rates add up to the bytes of the
   record. */
static void add_rates(report_series *s, const report_region *region, size_t to) {
  for (size_t i = 0; i < json_array_size(region->lines); i++) {
    const json_t *line = json_array_get(region->lines, i);
    const json_t *bytes = json_array_get(json_object_get(line, "wan_bytes_to"), to);
    const double t = gt_report_number(line, "t"), now = json_number_value(bytes);
    if (!bytes) continue;
    if (s->n == 0 || t > s->points[s->n - 1].x)
      add_point(s, t, now);
    else if (s->n > 1)
      s->points[s->n - 1].y = now;
  }
  if (!s->points) return;
  for (report_point *at = s->points; at + 1 < s->points + s->n; at++)
    at->y = 8 * (at[1].y - at->y) / (at[1].x - at->x);
  s->points[s->n - 1].y = 0;
}

typedef struct {
  double bytes;
  size_t from, to;
} link_use;

static int by_ends(const void *a, const void *b) {
  const link_use *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

/* Most bytes first. */
static int by_bytes(const void *a, const void *b) {
  const link_use *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return by_ends(a, b);
}

static double bytes_sent(const report_region *region, size_t to) {
  for (size_t i = json_array_size(region->lines); i-- > 0;) {
    const json_t *list = json_object_get(json_array_get(region->lines, i), "wan_bytes_to");
    if (list) return json_number_value(json_array_get(list, to));
  }
  return 0;
}

static void links_of(gt_report *p, size_t i) {
  const report_run *run = &p->runs[i];
  char id[32];
  const size_t all = run->n * (run->n - 1), n = all < LINKS_MAX ? all : LINKS_MAX;
  link_use *links = GT_NEW_ARRAY(link_use, all + 1);
  for (size_t a = 0, k = 0; a < run->n; a++)
    for (size_t b = 0; b < run->n; b++)
      if (a != b) links[k++] = (link_use){bytes_sent(&run->regions[a], b), a, b};
  qsort(links, all, sizeof *links, by_bytes);
  qsort(links, n, sizeof *links, by_ends);
  snprintf(id, sizeof id, p->n > 1 ? "links-%zu" : "links", i + 1);
  report_figure *f = add_figure(
      p, id,
      gt_report_join("Traffic of the links", p->n > 1 ? ", " : "", p->n > 1 ? run->label : ""));
  for (size_t k = 0; k < n; k++) {
    const size_t from = links[k].from, to = links[k].to;
    report_series *s =
        add_series(f, i, gt_report_join(run->regions[from].name, " to ", run->regions[to].name));
    add_rates(s, &run->regions[from], to);
    s->limit = gt_report_limit(run, from, to);
  }
  gt_free(links);
  f->steps = true;
  int used = snprintf(
      f->note, sizeof f->note,
      "Mean rate between two lines of the record; horizontal lines: rates of the job's links.");
  if (n < all)
    snprintf(f->note + used, sizeof f->note - (size_t)used, " The %zu busiest of %zu links.", n,
             all);
  set_axis(f, true, "time", time_units);
  set_axis(f, false, "rate", rate_units);
  keep_if_any(p);
}

/* ---- members --------------------------------------------------------------------------------- */

static double count_names(const char *list) {
  double n = *list ? 1 : 0;
  for (; *list; list++) n += *list == ',';
  return n;
}

/* As the region has seen it; no points if its members have not changed. */
static void add_members(report_series *s, const report_run *run, size_t region) {
  const json_t *lines = run->regions[region].lines;
  double n = (double)run->n, last = 0;
  for (size_t i = 0; i < json_array_size(lines); i++) {
    const json_t *line = json_array_get(lines, i);
    last = gt_report_number(line, "t");
    if (!gt_report_is(line, "members")) continue;
    if (s->n == 0) add_point(s, 0, n);
    n = count_names(gt_report_text(line, "members"));
    add_point(s, last, n);
  }
  if (s->n > 0) add_point(s, last, n);
}

static void members(gt_report *p) {
  report_figure *f = add_figure(p, "members", gt_strdup("Members of the run"));
  for (size_t i = 0; i < p->n; i++) {
    size_t points = 0;
    for (size_t r = 0; r < p->runs[i].n && (p->n == 1 || points < 2); r++) {
      report_series *s = add_series(f, i, name_of_line(p, &p->runs[i], r));
      add_members(s, &p->runs[i], r);
      points = s->n;
    }
  }
  f->steps = true;
  snprintf(f->note, sizeof f->note,
           "A region that is lost is no member until the others take it in again.");
  snprintf(f->y_label, sizeof f->y_label, "regions");
  set_axis(f, true, "time", time_units);
  keep_if_any(p);
}

void gt_report_figures(gt_report *p) {
  courses(p);
  bars(p, "time", "Where the time of a worker went", times, sizeof times / sizeof *times, NULL);
  bars(p, "phases", "Phases of a pipeline's workers", phases, sizeof phases / sizeof *phases,
       "phases");
  members(p);
  for (size_t i = 0; i < p->n; i++)
    if (p->runs[i].n > 0) links_of(p, i);
}

void gt_report_figures_close(gt_report *p) {
  for (size_t i = 0; i < p->nfigures; i++) close_figure(&p->figures[i]);
  gt_free(p->figures);
}
