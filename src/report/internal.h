/* Shared by the files of report.  Each file calls only those before it: run, tables,
   figures, draw, page, report. */
#pragma once

#include <jansson.h>

#include "geotrain/job.h"
#include "geotrain/report.h"

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct {
  const char *name; /* borrowed from the job; without a job, from the summary */
  json_t *lines;    /* array: the record without work that a resume has repeated */
} report_region;

typedef struct {
  char *label; /* the last part of the directory's path, or the path; valid UTF-8 */
  gt_job *job; /* NULL: the directory has only a summary, of a simulation */
  bool ended;
  json_t *summary; /* of a run that has not ended: its records in the form of a summary */
  report_region *regions;
  size_t n;
  double *limits; /* of gt_report_limit */
} report_run;

gt_status gt_report_run_open(report_run *run, const char *dir);
void gt_report_run_close(report_run *run);
/* Labels the runs: those whose paths have the same last part, with their whole paths. */
void gt_report_label(report_run *runs, size_t n, char *const *dirs);
/* Returns the number of a region; run->n: there is no such region. */
size_t gt_report_region_of(const report_run *run, const char *name);
/* Returns the highest constant rate in bit/s between two regions; NaN: not known. */
double gt_report_limit(const report_run *run, size_t from, size_t to);
/* Return a member of a JSON object: NaN, or "", if there is none. */
double gt_report_number(const json_t *object, const char *key);
const char *gt_report_text(const json_t *object, const char *key);
bool gt_report_is(const json_t *line, const char *event);
/* Returns the three texts in one; the caller frees it. */
char *gt_report_join(const char *a, const char *between, const char *b);

/* The result of an evaluation that a model has: the first one of this list. */
typedef struct {
  const char *in_record, *in_summary, *name, *unit;
  double scale;
} report_metric;
const report_metric *gt_report_metric(const report_run *run);

/* ---- tables ---------------------------------------------------------------------------------- */

/* key: of the rows.  title "": not on the page.  unit NULL: none; "s", "B", "bit/s": that which
   suits the value; "+": a difference; "@KEY": the row's member KEY is the unit. */
typedef struct {
  const char *key, *title, *unit;
} report_column;

typedef struct {
  const char *name;   /* in the JSON */
  char *title, *note; /* on the page: above and below; "": none */
  size_t run;         /* REPORT_ALL: of all runs */
  bool folded;        /* the page shows the title, and on request the table */
  const report_column *columns;
  size_t ncolumns;
  json_t *rows; /* array of objects: numbers, texts, booleans; details of an event: an object */
} report_table;
#define REPORT_ALL SIZE_MAX

/* ---- figures --------------------------------------------------------------------------------- */

typedef struct {
  double x, y;
} report_point;

/* A line; or, of bars, one part of a run's bars, with x the number of the bar. */
typedef struct {
  char *name;
  size_t run;
  report_point *points;
  size_t n, room;
  double limit; /* of a line: a horizontal limit in y; NaN: none */
} report_series;

typedef struct {
  char *name;         /* with several runs, it begins with the run */
  const char *region; /* borrowed from the run */
} report_bar;

typedef struct {
  char id[32], x_label[64], y_label[64], *title;
  char note[192];          /* below the figure; "": none */
  size_t parts;            /* of stacked bars: the series of each run; 0: lines */
  bool steps;              /* lines that are constant from one point to the next */
  double x_scale, y_scale; /* points times this are in the units of the labels */
  report_series *series;
  size_t n, room;
  report_bar *bars;
  size_t nbars;
} report_figure;

struct gt_report {
  report_run *runs;
  size_t n;
  report_table *tables;
  size_t ntables, tables_room;
  report_figure *figures;
  size_t nfigures, room;
};

/* Adds the tables that the runs have values for. */
void gt_report_tables(gt_report *report);
void gt_report_tables_close(gt_report *report);
/* Adds the figures that the runs have values for. */
void gt_report_figures(gt_report *report);
void gt_report_figures_close(gt_report *report);

/* ---- drawing --------------------------------------------------------------------------------- */

/* Writes text with the characters escaped that HTML and SVG reserve. */
void gt_report_escape(FILE *to, const char *text);
/* Writes a number with at most 4 significant digits and no exponent for common sizes. */
const char *gt_report_short(char buf[32], double value);
/* Colours and line styles of series, for the page or for a single SVG. */
extern const char gt_report_style[];
/* Writes the figure as an SVG element.  alone: with xmlns and its own style. */
void gt_report_draw(FILE *to, const report_figure *figure, bool alone);
