/* Reads a run from its directory: job.yaml, a record per region, and summary.json
   (docs/record-format.md). */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

double gt_report_number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *gt_report_text(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

bool gt_report_is(const json_t *line, const char *event) {
  return strcmp(gt_report_text(line, "event"), event) == 0;
}

/* ---- a record -------------------------------------------------------------------------------- */

/* Removes the lines after this time: a resume repeats the work. */
static void forget_after(json_t *lines, double t_s) {
  size_t n = json_array_size(lines);
  while (n > 0 && gt_report_number(json_array_get(lines, n - 1), "t") > t_s)
    json_array_remove(lines, --n);
}

static void take_line(json_t *lines, json_t *line) {
  if (gt_report_is(line, "start")) json_array_clear(lines);
  if (gt_report_is(line, "resumed")) forget_after(lines, gt_report_number(line, "t"));
  json_array_append(lines, line);
}

/* Reads the whole lines of a record; without a file there are none. */
static json_t *read_record(const char *path) {
  json_t *lines = json_array();
  char *text = NULL;
  size_t size = 0;
  FILE *file = fopen(path, "re");
  for (ssize_t n; file && (n = getline(&text, &size, file)) > 0 && text[n - 1] == '\n';) {
    json_t *line = json_loadb(text, (size_t)n, 0, NULL);
    if (json_is_object(line) && isfinite(gt_report_number(line, "t"))) take_line(lines, line);
    json_decref(line);
  }
  if (file) fclose(file);
  free(text);
  return lines;
}

const json_t *gt_report_last(const report_region *region) {
  for (size_t i = json_array_size(region->lines); i-- > 0;) {
    const json_t *line = json_array_get(region->lines, i);
    if (gt_report_is(line, "progress")) return line;
  }
  return NULL;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static char *label_of(const char *dir) {
  size_t to = strlen(dir), from;
  while (to > 1 && dir[to - 1] == '/') to--;
  for (from = to; from > 0 && dir[from - 1] != '/';) from--;
  char *label = gt_strdup(dir + from);
  label[to - from] = '\0';
  return label;
}

/* A summary of an earlier start does not count: its number of resumes differs from the record's.  A
   region that has returned had starts that the others do not share: its own earlier starts
   count. */
static json_t *read_summary(const report_run *run, const char *dir) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/summary.json", dir);
  json_t *summary = json_load_file(path, 0, NULL);
  for (size_t r = 0; r < run->n; r++)
    for (size_t i = json_array_size(run->regions[r].lines); i-- > 0;) {
      const json_t *line = json_array_get(run->regions[r].lines, i);
      const json_t *result = json_array_get(json_object_get(summary, "regions"), r);
      if (!gt_report_is(line, "start") && !gt_report_is(line, "resumed")) continue;
      const double resumes = gt_report_number(line, "resumes"),
                   earlier = gt_report_number(result, "earlier_starts"); /* absent: 0 */
      if (resumes == gt_report_number(summary, "resumes") ||
          resumes == (isnan(earlier) ? 0 : earlier))
        return summary;
      json_decref(summary);
      return NULL;
    }
  return summary;
}

gt_status gt_report_run_open(report_run *run, const char *dir) {
  char path[PATH_MAX];
  size_t lines = 0;
  snprintf(path, sizeof path, "%s/job.yaml", dir);
  FILE *file = fopen(path, "re");
  if (!file)
    return GT_FAIL(
        GT_ERR_JOB,
        "report: %s cannot be read: %s; expected the --run-dir of a run, as in `geotrain "
        "report runs/first`",
        path, strerror(errno));
  fclose(file);
  GT_TRY(gt_job_load(&run->job, path, NULL, 0));
  run->label = label_of(dir);
  run->n = run->job->nregions;
  run->regions = GT_NEW_ARRAY(report_region, run->n);
  for (size_t r = 0; r < run->n; r++) {
    run->regions[r].name = run->job->regions[r].name;
    snprintf(path, sizeof path, "%s/%s.jsonl", dir, run->regions[r].name);
    run->regions[r].lines = read_record(path);
    lines += json_array_size(run->regions[r].lines);
  }
  run->summary = read_summary(run, dir);
  if (lines == 0 && !run->summary)
    return GT_FAIL(GT_ERR_JOB,
                   "report: %s has neither a record nor a summary; the run has not begun to train",
                   dir);
  return GT_OK;
}

void gt_report_run_close(report_run *run) {
  for (size_t r = 0; r < run->n; r++) json_decref(run->regions[r].lines);
  gt_free(run->regions);
  gt_free(run->label);
  json_decref(run->summary);
  gt_job_close(run->job);
}

/* ---- its metric ------------------------------------------------------------------------------ */

const report_metric *gt_report_metric(const report_run *run) {
  static const report_metric metrics[] = {
      {"recall20", "test_recall20", "recall@20", "%", 100},
      {"auc", "test_auc", "AUC", "", 1},
      {"perplexity", "test_perplexity", "perplexity", "", 1},
      {"accuracy", "test_accuracy", "accuracy", "%", 100},
  };
  for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
    if (isfinite(gt_report_number(run->summary, metrics[m].in_summary))) return &metrics[m];
    for (size_t r = 0; r < run->n; r++)
      for (size_t i = 0; i < json_array_size(run->regions[r].lines); i++) {
        const json_t *line = json_array_get(run->regions[r].lines, i);
        if (gt_report_is(line, "eval") && isfinite(gt_report_number(line, metrics[m].in_record)))
          return &metrics[m];
      }
  }
  return NULL;
}
