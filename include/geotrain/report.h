/* report: one page about one or more runs, read from their directories.  Layer 10.  Local; no MPI.
   The output depends only on those files: the same files give the same bytes. */
#pragma once

#include <stdio.h>

#include "geotrain/base.h"

typedef struct gt_report gt_report;

/* Reads the job, the records and, if the run has ended, the summary of each run directory; of a
   simulation only its summary.
   GT_ERR_JOB: a directory is not that of a run, or there are more than GT_REPORT_RUNS. */
#define GT_REPORT_RUNS ((size_t)12)
gt_status gt_report_open(gt_report **out, char *const *run_dirs, size_t n);
void gt_report_close(gt_report *report);

/* For gt_file_compose; report: a gt_report. */
/* Writes a self-contained HTML page: tables, and figures as inline SVG; no scripts. */
void gt_report_html(FILE *to, const void *report);
/* Writes every point of every figure: figure, run, series, x, y, in seconds, bytes, bit/s and
   percent; x of a bar is its region.  JSON: an object with the lists `figures` and `tables`. */
void gt_report_csv(FILE *to, const void *report);
void gt_report_json(FILE *to, const void *report);
/* Writes each figure to FOLDER/<figure>.svg; creates FOLDER. */
gt_status gt_report_svg(const char *folder, const gt_report *report);
