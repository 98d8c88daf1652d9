/* The figures of a report, from the records and summaries of its runs.  With several runs, a line
   is the first region of a run with a record; with one run, there is a line per region. */
#include <math.h>
#include <string.h>

#include "internal.h"

#define POINTS_MAX 600 /* of a line; more are thinned out */

/* ---- building -------------------------------------------------------------------------------- */

static report_figure *add_figure(gt_report *p, const char *id, const char *title) {
  GT_GROW(p->figures, p->nfigures, p->room, 16);
  report_figure *f = &p->figures[p->nfigures++];
  *f = (report_figure){.x_scale = 1, .y_scale = 1};
  snprintf(f->id, sizeof f->id, "%s", id);
  snprintf(f->title, sizeof f->title, "%s", title);
  return f;
}

static report_series *add_series(report_figure *f, size_t run, const char *name) {
  GT_GROW(f->series, f->n, f->room, 8);
  report_series *s = &f->series[f->n++];
  *s = (report_series){.run = run, .limit = NAN};
  snprintf(s->name, sizeof s->name, "%s", name);
  return s;
}

static void add_point(report_series *s, double x, double y) {
  if (!isfinite(x) || !isfinite(y)) return;
  GT_GROW(s->points, s->n, s->room, 64);
  s->points[s->n++] = (report_point){x, y};
}

static void close_figure(report_figure *f) {
  for (size_t i = 0; i < f->n; i++) gt_free(f->series[i].points);
  gt_free(f->series);
  gt_free(f->names);
}

/* Keeps every k-th point and the last one. */
static void thin_out(report_series *s) {
  const size_t each = (s->n + POINTS_MAX - 1) / POINTS_MAX;
  size_t kept = 0;
  if (each < 2) return;
  for (size_t i = 0; i < s->n; i++)
    if (i % each == 0 || i + 1 == s->n) s->points[kept++] = s->points[i];
  s->n = kept;
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
  thin_out(s);
}

/* True if the region has a line of its own: of several runs, only the first one with a record. */
static bool is_drawn(const gt_report *p, const report_run *run, size_t region) {
  bool first = true;
  for (size_t r = 0; r < region; r++) first = first && json_array_size(run->regions[r].lines) == 0;
  return p->n == 1 || (first && json_array_size(run->regions[region].lines) > 0);
}

static void name_line(char name[160], const gt_report *p, const report_run *run, size_t region) {
  snprintf(name, 160, "%s", p->n > 1 ? run->label : run->regions[region].name);
}

/* Drops the figure that was added last if it has no line of two points. */
static void keep_if_any(gt_report *p) {
  report_figure *f = &p->figures[p->nfigures - 1];
  size_t kept = 0;
  for (size_t i = 0; i < f->n; i++) {
    if (f->series[i].n > 1)
      f->series[kept++] = f->series[i];
    else
      gt_free(f->series[i].points);
  }
  f->n = kept;
  if (kept > 0) return;
  close_figure(f);
  p->nfigures--;
}

static void course(gt_report *p, const axis *x, const char *event, const char *key,
                   const char *what, const char *y_label, double scale) {
  char id[32], title[96], name[160];
  const char *of = strcmp(event, "eval") == 0 ? key : event[0] == 'p' ? "training" : event;
  snprintf(id, sizeof id, "%s-%s", of, x->id);
  snprintf(title, sizeof title, "%s over %s", what, x->name);
  report_figure *f = add_figure(p, id, title);
  for (size_t i = 0; i < p->n; i++)
    for (size_t r = 0; r < p->runs[i].n; r++) {
      if (!is_drawn(p, &p->runs[i], r)) continue;
      name_line(name, p, &p->runs[i], r);
      add_values(add_series(f, i, name), &p->runs[i].regions[r], event, key, x, scale);
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

typedef struct {
  const char *name, *in_summary, *in_record;
} part;

/* Of a worker, as in the table at the end of a run.  Until a run ends, the record has sums over the
   region's workers, and waits for the WAN are part of its waits. */
static const part parts[] = {{"compute", "compute_s", "compute_s"},
                             {"wait for the WAN", "wan_wait_s", "wan_wait_s"},
                             {"wait for the region's PS", "local_wait_s", "wait_s"},
                             {"idle after its training", "idle_s", ""}};
#define PARTS (sizeof parts / sizeof *parts)

static const json_t *result_of(const report_run *run, size_t region) {
  return json_array_get(json_object_get(run->summary, "regions"), region);
}

static bool times_of(const report_run *run, size_t r, double seconds[PARTS + 1]) {
  const json_t *result = result_of(run, r), *last = gt_report_last(&run->regions[r]);
  const double workers = (double)gt_job_workers(run->job, r);
  double sum = 0, wall = result ? gt_report_number(result, "wall_s") : gt_report_number(last, "t");
  if (workers < 1 || !isfinite(wall)) return false;
  for (size_t i = 0; i < PARTS; i++) {
    double s = result ? gt_report_number(result, parts[i].in_summary)
                      : gt_report_number(last, parts[i].in_record) / workers;
    if (!result && i == 2) s -= seconds[1];
    seconds[i] = isfinite(s) ? fmax(0, s) : 0;
    sum += seconds[i];
  }
  seconds[PARTS] = fmax(0, wall - sum);
  return true;
}

static void times(gt_report *p) {
  report_figure *f = add_figure(p, "time", "Where the time of a worker went");
  double seconds[PARTS + 1];
  for (size_t i = 0; i <= PARTS; i++)
    add_series(f, 0, i < PARTS ? parts[i].name : "evaluations, checkpoints, other");
  size_t rows = 0;
  for (size_t i = 0; i < p->n; i++) rows += p->runs[i].n;
  f->names = gt_alloc(rows, sizeof *f->names);
  for (size_t i = 0; i < p->n; i++)
    for (size_t r = 0; r < p->runs[i].n; r++) {
      if (!times_of(&p->runs[i], r, seconds)) continue;
      snprintf(f->names[f->nnames], sizeof *f->names, "%s%s%s", p->n > 1 ? p->runs[i].label : "",
               p->n > 1 ? ": " : "", p->runs[i].regions[r].name);
      for (size_t k = 0; k <= PARTS; k++) add_point(&f->series[k], (double)f->nnames, seconds[k]);
      f->nnames++;
    }
  f->bars = true;
  set_axis(f, false, "mean over the region's workers", time_units);
  keep_if_any(p);
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Returns the rate of the job's link, or of the access of one of its regions if that is lower. */
static double limit_of(const gt_job *job, size_t from, size_t to) {
  double least = INFINITY;
  for (size_t i = 0; i < job->wan.nlinks; i++) {
    const gt_job_link *l = &job->wan.links[i];
    const bool there = l->ia == from && l->ib == to, back = l->ia == to && l->ib == from;
    if ((there || (back && !l->from)) && l->bandwidth_bps > 0) least = l->bandwidth_bps;
  }
  const size_t ends[] = {from, to};
  for (size_t i = 0; i < 2; i++)
    if (job->regions[ends[i]].access_bps > 0) least = fmin(least, job->regions[ends[i]].access_bps);
  return isfinite(least) ? least : NAN;
}

static void add_rates(report_series *s, const report_region *region, size_t to) {
  double before = NAN, since = NAN;
  for (size_t i = 0; i < json_array_size(region->lines); i++) {
    const json_t *line = json_array_get(region->lines, i);
    const json_t *bytes = json_array_get(json_object_get(line, "wan_bytes_to"), to);
    const double t = gt_report_number(line, "t"), now = json_number_value(bytes);
    if (!bytes) continue;
    if (isfinite(before) && t > since) add_point(s, since, 8 * (now - before) / (t - since));
    if (isfinite(before) && t > since && i + 1 == json_array_size(region->lines))
      add_point(s, t, 0);
    if (!isfinite(since) || t > since) before = now, since = t;
  }
  thin_out(s);
}

static void links_of(gt_report *p, size_t i) {
  const report_run *run = &p->runs[i];
  char id[32], title[96], name[160];
  snprintf(id, sizeof id, p->n > 1 ? "links-%zu" : "links", i + 1);
  snprintf(title, sizeof title, "Traffic of the links%s%.60s", p->n > 1 ? ", " : "",
           p->n > 1 ? run->label : "");
  report_figure *f = add_figure(p, id, title);
  for (size_t a = 0; a < run->n; a++)
    for (size_t b = 0; b < run->n; b++) {
      if (a == b) continue;
      snprintf(name, sizeof name, "%.70s to %.70s", run->regions[a].name, run->regions[b].name);
      report_series *s = add_series(f, i, name);
      add_rates(s, &run->regions[a], b);
      s->limit = limit_of(run->job, a, b);
    }
  f->steps = true;
  f->note =
      "Mean rate between two lines of the record; horizontal lines: rates of the job's links.";
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
  char name[160];
  report_figure *f = add_figure(p, "members", "Members of the run");
  for (size_t i = 0; i < p->n; i++)
    for (size_t r = 0; r < p->runs[i].n; r++) {
      if (!is_drawn(p, &p->runs[i], r)) continue;
      name_line(name, p, &p->runs[i], r);
      add_members(add_series(f, i, name), &p->runs[i], r);
    }
  f->steps = true;
  f->note = "A region that is lost is no member until the others take it in again.";
  snprintf(f->y_label, sizeof f->y_label, "regions");
  set_axis(f, true, "time", time_units);
  keep_if_any(p);
}

void gt_report_figures(gt_report *p) {
  courses(p);
  times(p);
  members(p);
  for (size_t i = 0; i < p->n; i++)
    if (p->runs[i].n <= 8) links_of(p, i);
}

void gt_report_figures_close(gt_report *p) {
  for (size_t i = 0; i < p->nfigures; i++) close_figure(&p->figures[i]);
  gt_free(p->figures);
}
