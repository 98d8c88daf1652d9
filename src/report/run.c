/* Reads a run from its directory: job.yaml, a record per region, and summary.json
   (docs/record-format.md). */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/link.h"
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

char *gt_report_join(const char *a, const char *between, const char *b) {
  const size_t size = strlen(a) + strlen(between) + strlen(b) + 1;
  char *text = gt_alloc(size, 1);
  snprintf(text, size, "%s%s%s", a, between, b);
  return text;
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

/* Returns the last line of an event, or of another one; NULL: none. */
static json_t *last_line(const report_region *region, const char *event, const char *other) {
  for (size_t i = json_array_size(region->lines); i-- > 0;) {
    json_t *line = json_array_get(region->lines, i);
    if (gt_report_is(line, event) || gt_report_is(line, other)) return line;
  }
  return NULL;
}

/* ---- a run that has not ended ---------------------------------------------------------------- */

static const report_metric metrics[] = {
    {"recall20", "test_recall20", "recall@20", "%", 100},
    {"auc", "test_auc", "AUC", "", 1},
    {"perplexity", "test_perplexity", "perplexity", "", 1},
    {"accuracy", "test_accuracy", "accuracy", "%", 100},
};
#define METRICS (sizeof metrics / sizeof *metrics)

/* NaN and NULL: the object has no such member. */
static void set_number(json_t *object, const char *key, double value) {
  if (isfinite(value)) json_object_set_new(object, key, json_real(value));
}

static void set_value(json_t *object, const char *key, json_t *value) {
  if (value) json_object_set(object, key, value);
}

/* Returns the phases of a pipeline's workers: means, as in a summary; NULL: none. */
static json_t *phases_so_far(const report_region *region) {
  const json_t *workers = json_object_get(last_line(region, "phases", "phases"), "workers");
  const size_t n = json_array_size(workers);
  json_t *phases = n > 0 ? json_object() : NULL;
  for (void *at = json_object_iter(json_array_get(workers, 0)); at;
       at = json_object_iter_next(json_array_get(workers, 0), at)) {
    const char *key = json_object_iter_key(at);
    double sum = 0;
    for (size_t w = 0; w < n; w++) sum += gt_report_number(json_array_get(workers, w), key);
    if (strcmp(key, "stage") != 0) set_number(phases, key, sum / (double)n);
  }
  return phases;
}

static void set_evaluation(json_t *object, const json_t *eval) {
  set_value(object, "test_loss", json_object_get(eval, "loss"));
  for (size_t m = 0; m < METRICS; m++)
    set_value(object, metrics[m].in_summary, json_object_get(eval, metrics[m].in_record));
}

/* The record has sums over the workers, with the waits for the WAN in its waits; a pipeline's waits
   for links are only in its phases. */
static json_t *region_so_far(const report_run *run, size_t r) {
  const report_region *region = &run->regions[r];
  const json_t *last = last_line(region, "progress", "progress");
  const double workers = (double)gt_job_workers(run->job, r), share = fmax(1, workers);
  json_t *one = json_object(), *phases = phases_so_far(region);
  const double transfer_s = phases ? gt_report_number(phases, "transfer_s") : 0,
               wan_s = gt_report_number(last, "wan_wait_s") / share + transfer_s;
  json_object_set_new(one, "name", json_string(region->name));
  set_number(one, "workers", workers);
  set_value(one, "steps", json_object_get(last, "step"));
  set_value(one, "samples", json_object_get(last, "samples"));
  set_number(one, "compute_s", gt_report_number(last, "compute_s") / share);
  set_number(one, "wan_wait_s", wan_s);
  set_number(one, "local_wait_s", fmax(0, gt_report_number(last, "wait_s") / share - wan_s));
  set_number(one, "wall_s", last ? gt_report_number(last, "t") : 0);
  set_evaluation(one, last_line(region, "eval", "eval"));
  set_value(one, "phases", phases);
  json_decref(phases);
  return one;
}

static void links_so_far(json_t *links, const report_run *run, size_t r) {
  const json_t *to =
      json_object_get(last_line(&run->regions[r], "progress", "progress"), "wan_bytes_to");
  for (size_t b = 0; b < json_array_size(to) && b < run->n; b++)
    if (json_number_value(json_array_get(to, b)) > 0)
      json_array_append_new(links,
                            json_pack("{s:s, s:s, s:O}", "from", run->regions[r].name, "to",
                                      run->regions[b].name, "bytes_sent", json_array_get(to, b)));
}

/* Returns what the records say in the form of a summary.  Its evaluation is the last one of the
   first region that has one. */
static json_t *so_far(const report_run *run) {
  json_t *all = json_object(), *regions = json_array(), *links = json_array();
  const json_t *eval = NULL;
  double samples = 0, wall_s = 0;
  json_object_set_new(all, "job", json_string(run->job->name));
  json_object_set_new(all, "model", json_string(gt_model_names[run->job->model.name]));
  json_object_set_new(all, "strategy", json_string(gt_strategy_names[run->job->sync.strategy]));
  for (size_t r = 0; r < run->n; r++) {
    json_t *one = region_so_far(run, r);
    const double n = gt_report_number(one, "samples");
    json_array_append_new(regions, one);
    links_so_far(links, run, r);
    if (isfinite(n)) samples += n;
    wall_s = fmax(wall_s, gt_report_number(one, "wall_s"));
    if (!eval) eval = last_line(&run->regions[r], "eval", "eval");
    set_value(all, "clock",
              json_object_get(last_line(&run->regions[r], "start", "resumed"), "clock"));
  }
  set_evaluation(all, eval);
  set_number(all, "samples", samples);
  set_number(all, "wall_s", wall_s > 0 ? wall_s : NAN);
  json_object_set_new(all, "regions", regions);
  json_object_set_new(all, "links", links);
  return all;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Returns the path up to its last character that is no '/', in valid UTF-8. */
static char *path_of(const char *dir) {
  size_t n = strlen(dir);
  while (n > 1 && dir[n - 1] == '/') n--;
  char *path = gt_strdup(dir);
  path[n] = '\0';
  json_t *valid = json_string(path);
  for (char *at = path; *at; at++)
    if ((!valid && (unsigned char)*at > 127) || (unsigned char)*at < ' ') *at = '?';
  json_decref(valid);
  return path;
}

/* Returns the path's last part: where it is "." or "..", that of the folder's own path. */
static char *label_of(const char *dir) {
  char whole[PATH_MAX], *path = path_of(dir);
  const char *last = strrchr(path, '/');
  last = last && last[1] ? last + 1 : path;
  if ((strcmp(last, ".") == 0 || strcmp(last, "..") == 0) && realpath(dir, whole)) {
    gt_free(path);
    return label_of(whole);
  }
  char *label = gt_strdup(last);
  gt_free(path);
  return label;
}

void gt_report_label(report_run *runs, size_t n, char *const *dirs) {
  for (size_t i = 0; i < n; i++) runs[i].label = label_of(dirs[i]);
  for (size_t i = 0; i < n; i++) {
    bool again = false;
    for (size_t k = 0; k < n; k++) {
      char *other = label_of(dirs[k]);
      again |= k != i && strcmp(runs[i].label, other) == 0;
      gt_free(other);
    }
    if (!again) continue;
    gt_free(runs[i].label);
    runs[i].label = path_of(dirs[i]);
  }
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* A summary of an earlier start does not count: its number of resumes differs from the record's.  A
   region that has returned had starts that the others do not share: its own earlier starts
   count. */
static bool is_current(const report_run *run) {
  for (size_t r = 0; r < run->n; r++) {
    const json_t *line = last_line(&run->regions[r], "start", "resumed"),
                 *result = json_array_get(json_object_get(run->summary, "regions"), r);
    if (!line) continue;
    const double resumes = gt_report_number(line, "resumes"),
                 earlier = gt_report_number(result, "earlier_starts"); /* absent: 0 */
    return resumes == gt_report_number(run->summary, "resumes") ||
           resumes == (isnan(earlier) ? 0 : earlier);
  }
  return true;
}

/* Returns the rates in bit/s from row to column: the lowest of the link's and of both ends'
   accesses, of a store those of upload and download.  NaN: none is given, or it changes over
   time. */
static double *limits_of(const gt_job *job) {
  const size_t n = job->nregions;
  const bool stored = job->wan.transport == GT_WAN_STORE;
  const gt_job_link **links = gt_job_link_table(job);
  double *limits = GT_NEW_ARRAY(double, n *n);
  for (size_t i = 0; i < n * n; i++) {
    const size_t from = i / n, to = i % n;
    const double link = links[i] && !links[i]->trace ? links[i]->bandwidth_bps : 0,
                 up = stored ? gt_job_store_of(job, from).upload_bps : link,
                 down = stored ? gt_job_store_of(job, to).download_bps : link,
                 access = gt_rate_lower(job->regions[from].access_bps, job->regions[to].access_bps),
                 least = gt_rate_lower(access, gt_rate_lower(up, down));
    limits[i] = least > 0 ? least : NAN;
  }
  gt_free(links);
  return limits;
}

static gt_status read_job(report_run *run, const char *dir) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/job.yaml", dir);
  FILE *file = fopen(path, "re");
  if (!file && !run->summary)
    return GT_FAIL(
        GT_ERR_JOB,
        "report: %s cannot be read: %s; expected the --run-dir of a run, as in `geotrain "
        "report runs/first`",
        path, strerror(errno));
  if (!file) return GT_OK;
  fclose(file);
  GT_TRY(gt_job_load(&run->job, path, NULL, 0));
  run->limits = limits_of(run->job);
  return GT_OK;
}

gt_status gt_report_run_open(report_run *run, const char *dir) {
  char path[PATH_MAX];
  size_t lines = 0;
  snprintf(path, sizeof path, "%s/summary.json", dir);
  run->summary = json_load_file(path, 0, NULL);
  GT_TRY(read_job(run, dir));
  const json_t *results = json_object_get(run->summary, "regions");
  run->n = run->job ? run->job->nregions : json_array_size(results);
  run->regions = GT_NEW_ARRAY(report_region, run->n);
  for (size_t r = 0; r < run->n; r++) {
    run->regions[r].name =
        run->job ? run->job->regions[r].name : gt_report_text(json_array_get(results, r), "name");
    snprintf(path, sizeof path, "%s/%s.jsonl", dir, run->regions[r].name);
    run->regions[r].lines = read_record(path);
    lines += json_array_size(run->regions[r].lines);
  }
  run->ended = run->summary && is_current(run);
  if (lines == 0 && !run->ended)
    return GT_FAIL(GT_ERR_JOB,
                   "report: %s has neither a record nor a summary; the run has not begun to train",
                   dir);
  if (run->ended) return GT_OK;
  json_decref(run->summary);
  run->summary = so_far(run);
  return GT_OK;
}

void gt_report_run_close(report_run *run) {
  for (size_t r = 0; r < run->n; r++) json_decref(run->regions[r].lines);
  gt_free(run->regions);
  gt_free(run->limits);
  gt_free(run->label);
  json_decref(run->summary);
  gt_job_close(run->job);
}

size_t gt_report_region_of(const report_run *run, const char *name) {
  size_t r = 0;
  while (r < run->n && strcmp(run->regions[r].name, name) != 0) r++;
  return r;
}

double gt_report_limit(const report_run *run, size_t from, size_t to) {
  return run->limits && from < run->n && to < run->n ? run->limits[from * run->n + to] : NAN;
}

/* ---- its metric ------------------------------------------------------------------------------ */

const report_metric *gt_report_metric(const report_run *run) {
  for (size_t m = 0; m < METRICS; m++) {
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
