/* Data parallelism over the regions of a job whose pipeline is searched: each region has a copy of
   the model, its workers share the batch, and the regions exchange by a strategy. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline_search.h"

#define STEPS  128 /* of a simulation */
#define TEXT   ((size_t)96)
#define PERIOD 8

static const gt_planner_way known[] = {
    {.strategy = "ssgd"},
    {.strategy = "sma", .period = PERIOD},
    {.strategy = "asgd-ga", .period = PERIOD},
};

gt_status gt_planner_search_load(gt_job **out, const gt_planner_search *s, const char *const *more,
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

/* compute.step is the time of train.batch samples, which are fewer here. */
static void fit_step(gt_job_compute *c, const gt_planner_search *s) {
  c->step_s *= (double)s->batch / s->asked->train.batch;
}

/* Samples are no more than what the steps need: of data that regions might have. */
static gt_status load_way(gt_job **out, const gt_planner_search *s, const gt_planner_way *way) {
  const size_t n = s->asked->nregions;
  char strategy[TEXT], period[TEXT], batch[TEXT], steps[TEXT];
  char(*samples)[TEXT] = gt_alloc(n, TEXT);
  const char **sets = GT_NEW_ARRAY(const char *, n + 16);
  size_t nsets = 0;
  snprintf(strategy, TEXT, "sync.strategy=%s", way->strategy);
  snprintf(period, TEXT, "sync.period=%lld", (long long)way->period);
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
  if (way->period > 0) sets[nsets++] = period;
  for (size_t r = 0; r < n; r++) {
    snprintf(samples[r], TEXT, "regions.%zu.samples=1000000000", r);
    sets[nsets++] = samples[r];
  }
  const gt_status status = gt_planner_search_load(out, s, sets, nsets);
  if (status == GT_OK) {
    fit_step(&(*out)->compute, s);
    for (size_t r = 0; r < n; r++) fit_step(&(*out)->regions[r].compute, s);
  }
  gt_free(sets);
  gt_free(samples);
  return status;
}

/* ---- what it takes --------------------------------------------------------------------------- */

static void take(gt_planner_way *way, const gt_planner_search *s, const gt_sim_forecast *f) {
  double bytes = 0;
  for (size_t i = 0; i < f->nregions * f->nregions; i++) bytes += f->links[i].bytes_sent;
  way->samples_per_s = (double)f->totals.samples / f->train_s;
  way->batch_bytes = bytes * s->asked->train.batch / (double)f->totals.samples;
}

static gt_status simulate(gt_planner_way *way, const gt_planner_search *s, const gt_job *job) {
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
  if (status == GT_OK) take(way, s, &forecast);
  gt_sim_forecast_close(&forecast);
  gt_links_close(links);
  gt_free(samples);
  return status;
}

/* Bytes of a worker with the whole model. */
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

static gt_status check_memory(gt_planner_way *way, const gt_planner_search *s) {
  double bytes = 0;
  char have[32], need[32];
  way->possible = true;
  if (s->asked->pipeline.memory_bytes <= 0) return GT_OK;
  GT_TRY(whole_bytes(s, &bytes));
  way->possible = bytes <= s->asked->pipeline.memory_bytes;
  if (!way->possible)
    snprintf(way->why, sizeof way->why, "a worker with the whole model needs %s, and %s are there",
             gt_format_size(need, sizeof need, bytes),
             gt_format_size(have, sizeof have, s->asked->pipeline.memory_bytes));
  return GT_OK;
}

/* A data set of the whole job can be shared out, unless shares say otherwise. */
static bool may_have_data(const gt_job *job, size_t region) {
  if (gt_job_reads(job, region)) return true;
  for (size_t r = 0; r < job->nregions; r++)
    if (job->regions[r].data_path) return false;
  return job->data.path && job->data.partition.nshares == 0;
}

static void check_data(gt_planner_way *way, const gt_planner_search *s) {
  for (size_t r = 0; r < s->asked->nregions && way->possible; r++) {
    if (may_have_data(s->asked, r)) continue;
    way->possible = false;
    snprintf(way->why, sizeof way->why, "region %s has no data", s->asked->regions[r].name);
  }
}

static gt_status find_way(gt_planner_search *s, gt_planner_way *way) {
  gt_job *job = NULL;
  GT_TRY(check_memory(way, s));
  check_data(way, s);
  if (!way->possible) return GT_OK;
  gt_status status = load_way(&job, s, way);
  if (status == GT_OK) status = simulate(way, s, job);
  gt_job_close(job);
  if (status != GT_OK) {
    way->possible = false;
    snprintf(way->why, sizeof way->why, "%s", gt_error_text());
  }
  return GT_OK;
}

gt_status gt_planner_find_ways(gt_planner_search *s) {
  const double share = (double)s->asked->train.batch / (double)workers_of(s->asked);
  if (s->asked->nregions < 2) return GT_OK;
  s->batch = share < 1 ? 1 : (int)round(share);
  s->nways = sizeof known / sizeof *known;
  s->ways = GT_NEW_ARRAY(gt_planner_way, s->nways);
  for (size_t i = 0; i < s->nways; i++) {
    s->ways[i] = known[i];
    GT_TRY(find_way(s, &s->ways[i]));
  }
  return GT_OK;
}

const gt_planner_way *gt_planner_faster_way(const gt_planner_search *s) {
  const gt_planner_way *best = NULL;
  double fastest = gt_planner_pipeline_rate(s->pipeline);
  for (size_t i = 0; i < s->nways; i++) {
    if (!s->ways[i].possible || s->ways[i].samples_per_s <= fastest) continue;
    best = &s->ways[i];
    fastest = best->samples_per_s;
  }
  return best;
}
