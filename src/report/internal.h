/* Shared by the files of report.  Each file calls only those before it: run, figures, draw, page,
   report. */
#pragma once

#include <jansson.h>

#include "geotrain/job.h"
#include "geotrain/report.h"

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct {
  const char *name; /* borrowed from the job */
  json_t *lines;    /* array: the record without work that a resume has repeated */
} report_region;

typedef struct {
  char *label; /* the last part of the directory's path */
  gt_job *job;
  json_t *summary; /* NULL: the run has not ended */
  report_region *regions;
  size_t n;
} report_run;

gt_status gt_report_run_open(report_run *run, const char *dir);
void gt_report_run_close(report_run *run);
/* Return a member of a JSON object: NaN, or "", if there is none. */
double gt_report_number(const json_t *object, const char *key);
const char *gt_report_text(const json_t *object, const char *key);
bool gt_report_is(const json_t *line, const char *event);
/* Returns the last progress line of a region; NULL: none. */
const json_t *gt_report_last(const report_region *region);

/* The result of an evaluation that a model has: the first one of this list. */
typedef struct {
  const char *in_record, *in_summary, *name, *unit;
  double scale;
} report_metric;
const report_metric *gt_report_metric(const report_run *run);

/* ---- figures --------------------------------------------------------------------------------- */

typedef struct {
  double x, y;
} report_point;

/* A line; or, of bars, one part of all bars, with x the number of the bar. */
typedef struct {
  char name[160];
  size_t run;
  report_point *points;
  size_t n, room;
  double limit; /* of a line: a horizontal limit in y; NaN: none */
} report_series;

typedef struct {
  char id[32], title[96], x_label[48], y_label[48];
  const char *note;        /* one sentence below the figure; NULL: none */
  bool bars, steps;        /* stacked bars; lines that are constant from one point to the next */
  double x_scale, y_scale; /* points times this are in the units of the labels */
  report_series *series;
  size_t n, room;
  char (*names)[96]; /* of bars */
  size_t nnames;
} report_figure;

struct gt_report {
  report_run *runs;
  size_t n;
  report_figure *figures;
  size_t nfigures, room;
};

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
