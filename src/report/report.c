/* A report, and its outputs. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "internal.h"

gt_status gt_report_open(gt_report **out, char *const *run_dirs, size_t n) {
  if (n == 0 || n > GT_REPORT_RUNS)
    return GT_FAIL(GT_ERR_JOB, "report: %zu run directories are given; expected 1 to %zu", n,
                   GT_REPORT_RUNS);
  gt_report *p = GT_NEW(gt_report);
  gt_status status = GT_OK;
  p->runs = GT_NEW_ARRAY(report_run, n);
  while (status == GT_OK && p->n < n) {
    status = gt_report_run_open(&p->runs[p->n], run_dirs[p->n]);
    p->n++;
  }
  if (status == GT_OK) {
    gt_report_label(p->runs, n, run_dirs);
    gt_report_tables(p);
    gt_report_figures(p);
    *out = p;
  } else
    gt_report_close(p);
  return status;
}

void gt_report_close(gt_report *p) {
  for (size_t i = 0; i < p->n; i++) gt_report_run_close(&p->runs[i]);
  gt_report_tables_close(p);
  gt_report_figures_close(p);
  gt_free(p->runs);
  gt_free(p);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void csv_text(FILE *to, const char *text) {
  gt_csv_text(to, text);
  fputc(',', to);
}

void gt_report_csv(FILE *to, const void *report) {
  const gt_report *p = report;
  fputs("figure,run,series,x,y\n", to);
  for (size_t i = 0; i < p->nfigures; i++) {
    const report_figure *f = &p->figures[i];
    for (size_t k = 0; k < f->n; k++)
      for (size_t j = 0; j < f->series[k].n; j++) {
        const report_point *at = &f->series[k].points[j];
        csv_text(to, f->id);
        csv_text(to, p->runs[f->series[k].run].label);
        csv_text(to, f->series[k].name);
        if (f->parts > 0)
          csv_text(to, f->bars[(size_t)at->x].region);
        else
          fprintf(to, "%.10g,", at->x);
        fprintf(to, "%.10g\n", at->y);
      }
  }
}

static json_t *series_json(const gt_report *p, const report_figure *f, const report_series *s) {
  json_t *one = json_object(), *points = json_array();
  json_object_set_new(one, "name", json_string(s->name));
  json_object_set_new(one, "run", json_string(p->runs[s->run].label));
  for (size_t j = 0; j < s->n; j++) {
    json_t *point = json_array();
    json_array_append_new(point, f->parts > 0 ? json_string(f->bars[(size_t)s->points[j].x].region)
                                              : json_real(s->points[j].x));
    json_array_append_new(point, json_real(s->points[j].y));
    json_array_append_new(points, point);
  }
  json_object_set_new(one, "points", points);
  return one;
}

static json_t *figure_json(const gt_report *p, const report_figure *f) {
  json_t *one = json_object(), *series = json_array();
  json_object_set_new(one, "figure", json_string(f->id));
  json_object_set_new(one, "title", json_string(f->title));
  for (size_t k = 0; k < f->n; k++) json_array_append_new(series, series_json(p, f, &f->series[k]));
  json_object_set_new(one, "series", series);
  return one;
}

static void copy_member(json_t *to, const json_t *from, const char *key) {
  json_t *value = json_object_get(from, key);
  json_object_set_new(to, key, value ? json_incref(value) : json_null());
}

static json_t *table_json(const gt_report *p, const report_table *t) {
  json_t *one = json_object(), *rows = json_array();
  json_object_set_new(one, "table", json_string(t->name));
  if (t->run != REPORT_ALL) json_object_set_new(one, "run", json_string(p->runs[t->run].label));
  for (size_t i = 0; i < json_array_size(t->rows); i++) {
    const json_t *from = json_array_get(t->rows, i);
    json_t *row = json_object();
    for (size_t c = 0; c < t->ncolumns; c++) {
      const char *unit = t->columns[c].unit;
      copy_member(row, from, t->columns[c].key);
      if (unit && *unit == '@') copy_member(row, from, unit + 1);
    }
    json_array_append_new(rows, row);
  }
  json_object_set_new(one, "rows", rows);
  return one;
}

void gt_report_json(FILE *to, const void *report) {
  const gt_report *p = report;
  json_t *all = json_object(), *figures = json_array(), *tables = json_array();
  for (size_t i = 0; i < p->nfigures; i++)
    json_array_append_new(figures, figure_json(p, &p->figures[i]));
  for (size_t i = 0; i < p->ntables; i++)
    json_array_append_new(tables, table_json(p, &p->tables[i]));
  json_object_set_new(all, "figures", figures);
  json_object_set_new(all, "tables", tables);
  json_dumpf(all, to, JSON_INDENT(1) | JSON_REAL_PRECISION(10));
  fputc('\n', to);
  json_decref(all);
}

/* ---- single figures -------------------------------------------------------------------------- */

static void draw_alone(FILE *to, const void *figure) {
  gt_report_draw(to, figure, true);
}

gt_status gt_report_svg(const char *folder, const gt_report *p) {
  char path[PATH_MAX];
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return GT_FAIL(GT_ERR_JOB, "report: the folder %s cannot be created: %s", folder,
                   strerror(errno));
  for (size_t i = 0; i < p->nfigures; i++) {
    snprintf(path, sizeof path, "%s/%s.svg", folder, p->figures[i].id);
    if (!gt_file_compose(path, draw_alone, &p->figures[i]))
      return GT_FAIL(GT_ERR_JOB, "report: %s cannot be written: %s", path, strerror(errno));
  }
  return GT_OK;
}
