/* Finds the pipeline of a job, checks it as a run would, and writes the job with it.  Compares it
   with pipelines of fewer workers and with data parallelism over the regions. */
#include "pipeline_search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/record_table.h"

#define GAIN   1.05 /* of fewer workers: a smaller gain is not worth a change of the job */
#define EFFORT 0.2  /* of a search with fewer workers */
#define MOST   32   /* workers; with more, these searches take too long */
#define STEPS  128  /* of a simulation of data parallelism */
#define TEXT   ((size_t)96)
#define PERIOD 8
#define DIGITS .format = GT_COLUMN_DIGITS, .digits = 4

/* ---- fewer workers --------------------------------------------------------------------------- */

/* The best pipeline so far, and the one being tried. */
typedef struct {
  gt_pipe_search_problem problem; /* excluded regions have no workers */
  gt_pipe_site *sites;            /* of the problem */
  size_t *best;                   /* workers of each region */
  double best_s;
} fewer;

static bool try_it(fewer *f) {
  gt_pipe_search_result result;
  if (gt_pipe_search_run(&result, &f->problem) != GT_OK) return false;
  const gt_pipe_found *found = &result.found[0];
  const bool better = found->period_s < f->best_s;
  if (better) {
    f->best_s = found->period_s;
    memset(f->best, 0, f->problem.nsites * sizeof *f->best);
    for (size_t i = 0; i < found->stages; i++)
      f->best[found->places[i].region] += found->places[i].workers;
  }
  gt_pipe_search_close(&result);
  return better;
}

/* Excludes the region without which the pipeline is fastest.  False: it is faster with every
   region. */
static bool leave_one(fewer *f) {
  const size_t n = f->problem.nsites;
  size_t worst = n;
  for (size_t r = 0; r < n; r++) {
    const size_t workers = f->sites[r].workers;
    if (workers == 0) continue;
    f->sites[r].workers = 0;
    if (try_it(f)) worst = r;
    f->sites[r].workers = workers;
  }
  if (worst < n) f->sites[worst].workers = 0;
  return worst < n;
}

/* Tries each region alone: excluding two regions can help where excluding either does not. */
static void try_alone(fewer *f, const gt_pipe_site *sites) {
  for (size_t r = 0; r < f->problem.nsites; r++) {
    for (size_t i = 0; i < f->problem.nsites; i++)
      f->sites[i].workers = i == r ? sites[i].workers : 0;
    if (sites[r].starts) try_it(f);
  }
}

void gt_planner_find_fewer(gt_planner_search *s, const gt_pipe_search_problem *problem,
                           double period_s) {
  const size_t n = problem->nsites;
  size_t all = 0;
  for (size_t r = 0; r < n; r++) all += problem->sites[r].workers;
  if (all > MOST) return;
  fewer f = {*problem, GT_NEW_ARRAY(gt_pipe_site, n), GT_NEW_ARRAY(size_t, n), INFINITY};
  memcpy(f.sites, problem->sites, n * sizeof *f.sites);
  f.problem.sites = f.sites;
  f.problem.idle = true;
  f.problem.effort = EFFORT;
  try_it(&f);
  for (size_t left = n; left > 1 && leave_one(&f);) left--;
  try_alone(&f, problem->sites);
  gt_free(f.sites);
  s->fewer = f.best;
  s->fewer_per_s = f.best_s * GAIN < period_s ? s->asked->train.batch / f.best_s : 0;
}

/* ---- data parallelism ------------------------------------------------------------------------ */

/* Each region has a replica of the model, its workers share the batch, and the regions exchange by
   a strategy. */
static const gt_planner_alternative known[] = {
    {.strategy = "ssgd"},
    {.strategy = "sma", .period = PERIOD},
    {.strategy = "asgd-ga", .period = PERIOD},
};

/* Loads the user's job with these overrides; the caller closes it. */
static gt_status load(gt_job **out, const gt_planner_search *s, const char *const *more,
                      size_t nmore) {
  const gt_planner_options *o = &s->options;
  const char **sets = GT_NEW_ARRAY(const char *, o->nsets + nmore);
  for (size_t i = 0; i < o->nsets; i++) sets[i] = o->sets[i];
  for (size_t i = 0; i < nmore; i++) sets[o->nsets + i] = more[i];
  const gt_status status =
      gt_job_load_regions(out, o->job_path, sets, o->nsets + nmore, o->regions_csv);
  gt_free(sets);
  return status;
}

/* ---- its job --------------------------------------------------------------------------------- */

static size_t workers_of(const gt_job *job) {
  size_t n = 0;
  for (size_t r = 0; r < job->nregions; r++) n += gt_job_workers(job, r);
  return n;
}

/* Scales compute.step, which is the time of train.batch samples: the alternative's batch is
   smaller. */
static void fit_step(gt_job_compute *c, const gt_planner_search *s) {
  c->step_s *= (double)s->batch / s->asked->train.batch;
}

/* Assumes that every region has enough samples for the steps. */
static gt_status load_alternative(gt_job **out, const gt_planner_search *s,
                                  const gt_planner_alternative *alternative) {
  const size_t n = s->asked->nregions;
  char strategy[TEXT], period[TEXT], batch[TEXT], steps[TEXT];
  char(*samples)[TEXT] = gt_alloc(n, TEXT);
  const char **sets = GT_NEW_ARRAY(const char *, n + 16);
  size_t nsets = 0;
  snprintf(strategy, TEXT, "sync.strategy=%s", alternative->strategy);
  snprintf(period, TEXT, "sync.period=%lld", (long long)alternative->period);
  snprintf(batch, TEXT, "train.batch=%d", s->batch);
  snprintf(steps, TEXT, "train.until={steps: %d}", STEPS);
  const char *const fixed[] = {"pipeline=null",
                               strategy,
                               batch,
                               steps,
                               "plan=null",
                               "data.partition=null",
                               "limits.wan_bytes=null",
                               "checkpoint.every={epochs: 0}",
                               "train.eval_every={epochs: 0}"};
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) sets[nsets++] = fixed[i];
  if (alternative->period > 0) sets[nsets++] = period;
  for (size_t r = 0; r < n; r++) {
    snprintf(samples[r], TEXT, "regions.%zu.samples=1000000000", r);
    sets[nsets++] = samples[r];
  }
  const gt_status status = load(out, s, sets, nsets);
  if (status == GT_OK) {
    fit_step(&(*out)->compute, s);
    for (size_t r = 0; r < n; r++) fit_step(&(*out)->regions[r].compute, s);
  }
  gt_free(sets);
  gt_free(samples);
  return status;
}

/* ---- prediction ------------------------------------------------------------------------------ */

static void take(gt_planner_alternative *alternative, const gt_planner_search *s,
                 const gt_sim_forecast *f) {
  double bytes = 0;
  for (size_t i = 0; i < f->nregions * f->nregions; i++) bytes += f->links[i].bytes_sent;
  alternative->samples_per_s = (double)f->totals.samples / f->train_s;
  alternative->batch_bytes = bytes * s->asked->train.batch / (double)f->totals.samples;
}

static gt_status simulate(gt_planner_alternative *alternative, const gt_planner_search *s,
                          const gt_job *job) {
  gt_links *links = NULL;
  gt_sim_forecast forecast = {0};
  int64_t *samples = GT_NEW_ARRAY(int64_t, job->nregions);
  for (size_t r = 0; r < job->nregions; r++) samples[r] = job->regions[r].samples;
  gt_status status = gt_links_create(&links, job);
  const gt_sim_spec spec = {.job = job,
                            .links = links,
                            .parameters = s->shape.parameters,
                            .buffers = s->shape.buffers,
                            .samples = samples};
  if (status == GT_OK) status = gt_sim_predict(&forecast, &spec, 0);
  if (status == GT_OK) take(alternative, s, &forecast);
  gt_sim_forecast_close(&forecast);
  gt_links_close(links);
  gt_free(samples);
  return status;
}

/* Computes the bytes of a worker with the whole model. */
static gt_status whole_bytes(const gt_planner_search *s, double *bytes) {
  gt_graph *graph = NULL;
  gt_graph_spec spec = gt_sim_shape_spec(&s->shape, s->asked);
  spec.sizes_only = true;
  spec.batch_max = (size_t)s->batch;
  GT_TRY(gt_graph_create(&graph, &spec));
  const gt_arrays *a = gt_graph_arrays(graph);
  *bytes =
      (double)gt_graph_bytes(graph) + (double)(sizeof(float) * (2 * a->params.n + a->buffers.n));
  gt_graph_close(graph);
  return GT_OK;
}

static gt_status check_memory(gt_planner_alternative *alternative, const gt_planner_search *s) {
  double bytes = 0;
  char have[32], need[32];
  alternative->possible = true;
  if (s->asked->pipeline.memory_bytes <= 0) return GT_OK;
  GT_TRY(whole_bytes(s, &bytes));
  alternative->possible = bytes <= s->asked->pipeline.memory_bytes;
  if (!alternative->possible)
    snprintf(alternative->why, sizeof alternative->why,
             "a worker with the whole model needs %s; pipeline.memory is %s",
             gt_format_size(need, sizeof need, bytes),
             gt_format_size(have, sizeof have, s->asked->pipeline.memory_bytes));
  return GT_OK;
}

/* True if the region has data or can get a share of the job's data set. */
static bool may_have_data(const gt_job *job, size_t region) {
  if (gt_job_reads(job, region)) return true;
  for (size_t r = 0; r < job->nregions; r++)
    if (job->regions[r].data_path) return false;
  return job->data.path && job->data.partition.nshares == 0;
}

static void check_data(gt_planner_alternative *alternative, const gt_planner_search *s) {
  for (size_t r = 0; r < s->asked->nregions && alternative->possible; r++) {
    if (may_have_data(s->asked, r)) continue;
    alternative->possible = false;
    snprintf(alternative->why, sizeof alternative->why, "region %s has no data",
             s->asked->regions[r].name);
  }
}

static gt_status find_alternative(gt_planner_search *s, gt_planner_alternative *alternative) {
  gt_job *job = NULL;
  GT_TRY(check_memory(alternative, s));
  check_data(alternative, s);
  if (!alternative->possible) return GT_OK;
  gt_status status = load_alternative(&job, s, alternative);
  if (status == GT_OK) status = simulate(alternative, s, job);
  gt_job_close(job);
  if (status != GT_OK) {
    alternative->possible = false;
    snprintf(alternative->why, sizeof alternative->why, "%s", gt_error_text());
  }
  return GT_OK;
}

/* Fills s->alternatives for a job of several regions.  Requires job, shape and pipeline. */
static gt_status find_alternatives(gt_planner_search *s) {
  const double share = (double)s->asked->train.batch / (double)workers_of(s->asked);
  if (s->asked->nregions < 2) return GT_OK;
  s->batch = share < 1 ? 1 : (int)round(share);
  s->nalternatives = sizeof known / sizeof *known;
  s->alternatives = GT_NEW_ARRAY(gt_planner_alternative, s->nalternatives);
  for (size_t i = 0; i < s->nalternatives; i++) {
    s->alternatives[i] = known[i];
    GT_TRY(find_alternative(s, &s->alternatives[i]));
  }
  return GT_OK;
}

/* Returns the fastest alternative that is faster than the pipeline; NULL: none. */
static const gt_planner_alternative *faster_alternative(const gt_planner_search *s) {
  const gt_planner_alternative *best = NULL;
  double fastest = gt_planner_pipeline_rate(s->pipeline);
  for (size_t i = 0; i < s->nalternatives; i++) {
    if (!s->alternatives[i].possible || s->alternatives[i].samples_per_s <= fastest) continue;
    best = &s->alternatives[i];
    fastest = best->samples_per_s;
  }
  return best;
}

/* ---- the pipeline ---------------------------------------------------------------------------- */

/* Loads the job with this pipeline and plans it; after an error, both are NULL. */
static gt_status try_found(gt_planner_search *s, const gt_pipe_job_search *problem,
                           const gt_pipe_found *found) {
  char *sets[GT_PIPE_SETS];
  const size_t n = gt_pipe_job_search_sets(problem, found, sets);
  gt_status status = load(&s->job, s, (const char *const *)sets, n);
  for (size_t i = 0; i < n; i++) gt_free(sets[i]);
  if (status == GT_OK) status = gt_planner_pipeline_make(&s->pipeline, s->job);
  if (status == GT_OK) return GT_OK;
  gt_job_close(s->job);
  s->job = NULL;
  return status;
}

/* Takes the first pipeline that fits exactly: the search only estimates memory. */
static gt_status take_first(gt_planner_search *s, const gt_pipe_job_search *problem,
                            const gt_pipe_search_result *result) {
  gt_status status = GT_OK;
  s->looked = result->looked;
  s->fitting = result->fitting;
  s->simulated = result->simulated;
  s->by_fleet = problem->by_fleet;
  for (size_t i = 0; i < result->n; i++) {
    status = try_found(s, problem, &result->found[i]);
    if (status == GT_OK) return GT_OK;
  }
  return status;
}

/* Adds the job's name, which the search does not know. */
static gt_status named(const gt_job *job, gt_status status) {
  return GT_FAIL(status, "%s: pipeline.stages: %s", job->name, gt_error_text());
}

static gt_status search(gt_planner_search *s) {
  const gt_graph_spec model = gt_sim_shape_spec(&s->shape, s->asked);
  gt_pipe_job_search *problem = NULL;
  gt_pipe_search_result result = {0};
  GT_TRY(gt_pipe_job_search_open(&problem, s->asked, &model));
  gt_status status = gt_pipe_search_run(&result, &problem->problem);
  if (status != GT_OK) status = named(s->asked, status);
  if (status == GT_OK) status = take_first(s, problem, &result);
  if (status == GT_OK) gt_planner_find_fewer(s, &problem->problem, result.found[0].period_s);
  gt_pipe_search_close(&result);
  gt_pipe_job_search_close(problem);
  return status;
}

/* ---- open and close -------------------------------------------------------------------------- */

static gt_status make(gt_planner_search *s) {
  const gt_planner_options *o = &s->options;
  GT_TRY(gt_job_load_regions(&s->asked, o->job_path, o->sets, o->nsets, o->regions_csv));
  if (!s->asked->pipeline.search) gt_bug("job %s has no stages to be found", s->asked->name);
  GT_TRY(gt_sim_shape_of(&s->shape, s->asked));
  GT_TRY(search(s));
  return find_alternatives(s);
}

gt_status gt_planner_search_make(gt_planner_search **out, const gt_planner_options *options) {
  gt_planner_search *s = GT_NEW(gt_planner_search);
  *s = (gt_planner_search){.options = *options};
  const gt_status status = make(s);
  *out = status == GT_OK ? s : NULL;
  if (status != GT_OK) gt_planner_search_close(s);
  return status;
}

void gt_planner_search_close(gt_planner_search *search) {
  if (!search) return;
  gt_planner_pipeline_close(search->pipeline);
  gt_job_close(search->job);
  gt_sim_shape_close(&search->shape);
  gt_job_close(search->asked);
  gt_free(search->alternatives);
  gt_free(search->fewer);
  gt_free(search);
}

const gt_planner_pipeline *gt_planner_search_pipeline(const gt_planner_search *search) {
  return search->pipeline;
}

gt_status gt_planner_search_write(const gt_planner_search *search, const char *path) {
  char *text = gt_job_resolved(search->job);
  const gt_status status = gt_planner_put(path, text);
  gt_free(text);
  return status;
}

/* ---- the section of the job ------------------------------------------------------------------ */

static void print_stage(FILE *to, const gt_job_stage *stage) {
  const bool several = stage->nlast > 1;
  char last[512] = "";
  for (size_t i = 0, at = 0; i < stage->nlast && at < sizeof last; i++)
    at += (size_t)snprintf(last + at, sizeof last - at, "%s%s", i ? ", " : "", stage->last[i]);
  gt_print_wrapped(to, 7, "    - {region: %s, workers: %d%s%s%s%s}", stage->region, stage->workers,
                   *last ? ", last: " : "", several ? "[" : "", last, several ? "]" : "");
}

/* Prints a unit if the text reads back to the same number. */
static void print_memory(FILE *to, double bytes) {
  char text[32];
  double back = 0;
  gt_format_size(text, sizeof text, bytes);
  if (gt_parse_size_bytes(text, &back) != GT_OK || back != bytes)
    snprintf(text, sizeof text, "%.0f B", bytes);
  fprintf(to, "  memory: %s\n", text);
}

static void print_section(FILE *to, const gt_job *job) {
  fprintf(to, "pipeline:\n  stages:\n");
  for (size_t i = 0; i < job->pipeline.nstages; i++) print_stage(to, &job->pipeline.stages[i]);
  fprintf(to, "  micro_batches: %d\n  schedule: %s\n", job->pipeline.micro_batches,
          gt_pipe_names[job->pipeline.schedule]);
  if (job->pipeline.labels != GT_LABELS_KEEP)
    fprintf(to, "  labels: %s\n", gt_labels_names[job->pipeline.labels]);
  if (job->pipeline.memory_bytes > 0) print_memory(to, job->pipeline.memory_bytes);
  fprintf(to, "\n");
}

/* ---- data parallelism ------------------------------------------------------------------------ */

static const char *label_of(char text[TEXT], const gt_planner_alternative *alternative) {
  if (alternative->period > 0)
    snprintf(text, TEXT, "data parallel, %s, period %lld", alternative->strategy,
             (long long)alternative->period);
  else
    snprintf(text, TEXT, "data parallel, %s", alternative->strategy);
  return text;
}

static gt_table *alternatives_of(const gt_planner_search *s) {
  static const gt_column columns[] = {
      {.title = "candidate"},
      {.key = "strategy"},
      {.key = "period"},
      {.key = "possible"},
      {.key = "why"},
      {.key = "samples_per_s", .title = "samples/s", DIGITS},
      {.key = "batch_bytes", .title = "a batch", .unit = "MB", DIGITS}};
  gt_table *t = gt_table_create(GT_ARRAY(columns));
  char label[TEXT];
  for (size_t i = 0; i < s->nalternatives; i++) {
    const gt_planner_alternative *alternative = &s->alternatives[i];
    gt_table_add(
        t, GT_ROW(gt_cell_text(label_of(label, alternative)), gt_cell_text(alternative->strategy),
                  alternative->period > 0 ? gt_cell_whole(alternative->period) : gt_cell_text(NULL),
                  gt_cell_flag(alternative->possible),
                  gt_cell_text(alternative->possible ? NULL : alternative->why),
                  gt_cell_number(alternative->possible ? alternative->samples_per_s : NAN),
                  gt_cell_number(alternative->possible ? alternative->batch_bytes : NAN)));
    if (!alternative->possible) gt_table_note(t, "not feasible: %s", alternative->why);
  }
  return t;
}

/* Prints the options that train the job by this alternative. compute.step is the time of
   train.batch samples. */
static void print_sets(FILE *to, const gt_planner_search *s,
                       const gt_planner_alternative *alternative) {
  const double scale = (double)s->batch / s->asked->train.batch;
  char time[32];
  fprintf(to, "    --set pipeline=null --set sync.strategy=%s --set train.batch=%d",
          alternative->strategy, s->batch);
  if (alternative->period > 0)
    fprintf(to, " \\\n    --set sync.period=%lld", (long long)alternative->period);
  if (s->asked->compute.step_s > 0)
    fprintf(to, " \\\n    --set 'compute.step=%s'",
            gt_format_time(time, sizeof time, scale * s->asked->compute.step_s));
  for (size_t r = 0; r < s->asked->nregions; r++)
    if (s->asked->regions[r].compute.step_s > 0)
      fprintf(to, " \\\n    --set 'regions.%zu.compute.step=%s'", r,
              gt_format_time(time, sizeof time, scale * s->asked->regions[r].compute.step_s));
  fprintf(to, "\n\n");
}

static void print_alternatives(FILE *to, const gt_planner_search *s) {
  const gt_planner_alternative *alternative = faster_alternative(s);
  const double rate = gt_planner_pipeline_rate(s->pipeline);
  char label[TEXT];
  if (s->nalternatives == 0) return;
  gt_table *t = alternatives_of(s);
  gt_table_add(t, GT_ROW(gt_cell_text("the pipeline"), {0}, {0}, {0}, {0}, gt_cell_number(rate),
                         gt_cell_number(gt_planner_pipeline_step_bytes(s->pipeline))));
  gt_table_finish(to, t);
  gt_print_wrapped(to, 2,
                   "data parallel: a worker has the whole model and batches of %d; a batch: %d "
                   "samples, bytes on all links",
                   s->batch, s->asked->train.batch);
  if (!alternative) {
    fprintf(to, "the pipeline is the fastest of these\n\n");
    return;
  }
  gt_print_wrapped(to, 2, "%s, is faster than the pipeline: %.2f times its rate; to use it:",
                   label_of(label, alternative), alternative->samples_per_s / rate);
  print_sets(to, s, alternative);
}

/* Only recommended: the job's regions and ranks are fixed. */
static void print_fewer(FILE *to, const gt_planner_search *s) {
  char list[512] = "";
  if (s->fewer_per_s <= 0) return;
  for (size_t r = 0, at = 0; r < s->asked->nregions && at < sizeof list; r++)
    if (s->fewer[r] > 0)
      at += (size_t)snprintf(list + at, sizeof list - at, "%s%zu in %s", at ? ", " : "",
                             s->fewer[r], s->asked->regions[r].name);
  gt_print_wrapped(to, 2,
                   "a pipeline with fewer workers would be faster: %.4g samples/s with %s; to use "
                   "it, change the job's regions\n",
                   s->fewer_per_s, list);
}

void gt_planner_search_print(FILE *to, const gt_planner_search *search, size_t columns) {
  gt_print_wrapped(to, 2, "%s: %zu candidates, %zu feasible, %zu simulated; best:\n",
                   search->asked->name, search->looked, search->fitting, search->simulated);
  print_section(to, search->job);
  if (search->by_fleet)
    gt_print_wrapped(to, 2,
                     "found with times and powers of the profile's fleet; the figures below use "
                     "those of compute\n");
  print_fewer(to, search);
  print_alternatives(to, search);
  gt_planner_pipeline_print(to, search->pipeline, columns);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *stage_object(const gt_job_stage *stage) {
  json_t *last = json_array();
  for (size_t i = 0; i < stage->nlast; i++)
    json_array_append_new(last, json_string(stage->last[i]));
  return json_pack("{s:s,s:i,s:o}", "region", stage->region, "workers", stage->workers, "last",
                   last);
}

static json_t *fewer_object(const gt_planner_search *s) {
  json_t *workers = json_object();
  for (size_t r = 0; r < s->asked->nregions; r++)
    json_object_set_new(workers, s->asked->regions[r].name, json_integer((json_int_t)s->fewer[r]));
  return json_pack("{s:f,s:o}", "samples_per_s", s->fewer_per_s, "workers", workers);
}

static json_t *search_object(const gt_planner_search *s) {
  const gt_planner_alternative *faster = faster_alternative(s);
  json_t *stages = json_array();
  gt_table *alternatives = alternatives_of(s);
  for (size_t i = 0; i < s->job->pipeline.nstages; i++)
    json_array_append_new(stages, stage_object(&s->job->pipeline.stages[i]));
  json_t *out =
      json_pack("{s:I,s:I,s:I,s:o,s:i,s:s,s:o,s:o,s:i,s:o}", "pipelines", (json_int_t)s->looked,
                "fitting", (json_int_t)s->fitting, "simulated", (json_int_t)s->simulated, "stages",
                stages, "micro_batches", s->job->pipeline.micro_batches, "schedule",
                gt_pipe_names[s->job->pipeline.schedule], "fewer",
                s->fewer_per_s > 0 ? fewer_object(s) : json_null(), "data_parallel",
                gt_table_json(alternatives), "data_parallel_batch", s->batch, "faster",
                faster ? json_string(faster->strategy) : json_null());
  gt_table_close(alternatives);
  return out;
}

gt_status gt_planner_search_json(FILE *to, const gt_planner_search *search) {
  json_t *root = gt_planner_pipeline_object(search->pipeline);
  if (root) json_object_set_new(root, "search", search_object(search));
  return gt_planner_pipeline_dump(to, root, search->asked->name);
}
