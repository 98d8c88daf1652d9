/* Predicts a job's pipeline: its schedule in simulated time, the other schedules, the run. */
#include "pipeline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "geotrain/ps_work_time.h"
#include "geotrain/sim.h"
#include "geotrain/sim_choose.h"

#define SVG_PX   1200
#define FIRST    8  /* minimum number of steps before the measured ones */
#define MEASURED 24 /* minimum number of measured steps */

/* ---- schedules ------------------------------------------------------------------------------- */

static void look(gt_planner_schedule *s, const gt_planner_pipeline *p,
                 const gt_pipe_schedule *schedule, const gt_pipe_result *result) {
  const gt_pipe_job *pipe = p->pipe;
  s->fits = true;
  s->makespan = result->makespan;
  s->period = result->period;
  s->bubble = result->bubble;
  s->period_bubble = result->period_bubble;
  for (size_t i = 0; i < pipe->layout.stages; i++) {
    const gt_pipe_need need = gt_pipe_job_need(pipe, schedule, i);
    if (need.slots > s->slots) s->slots = need.slots;
    if (need.all > s->memory) s->memory = need.all;
  }
}

/* Keeps the error's text without the name of the job, with which it begins. */
static void keep_reason(gt_planner_schedule *s, const gt_job *job) {
  const char *text = gt_error_text();
  const size_t name = strlen(job->name);
  const bool named = strncmp(text, job->name, name) == 0 && strncmp(text + name, ": ", 2) == 0;
  snprintf(s->why, sizeof s->why, "%s", named ? text + name + 2 : text);
}

static gt_status try_kind(gt_planner_schedule *s, const gt_planner_pipeline *p) {
  gt_pipe_schedule *schedule = NULL;
  gt_pipe_result result;
  if (gt_pipe_job_schedule(&schedule, p->pipe, s->kind) != GT_OK) {
    keep_reason(s, p->job);
    return GT_OK;
  }
  const gt_status status = gt_pipe_evaluate(&result, schedule, &p->pipe->problem, GT_PIPE_STEADY);
  if (status == GT_OK) look(s, p, schedule, &result);
  gt_pipe_result_close(&result);
  gt_pipe_schedule_close(schedule);
  return status;
}

static gt_status compare(gt_planner_pipeline *p) {
  p->schedules = GT_NEW_ARRAY(gt_planner_schedule, p->nschedules);
  for (size_t i = 0; i < p->nschedules; i++) {
    gt_planner_schedule *s = &p->schedules[i];
    s->kind = (gt_pipe_kind)i;
    if (s->kind == p->job->pipeline.schedule)
      look(s, p, p->pipe->layout.schedule, &p->result);
    else
      GT_TRY(try_kind(s, p));
  }
  return GT_OK;
}

/* ---- replicas -------------------------------------------------------------------------------- */

static gt_status look_at_replica(gt_planner_pipeline *p, size_t replica) {
  gt_planner_replica *of = &p->replicas[replica];
  p->pipe = of->pipe = p->pipes[replica];
  p->result = (gt_pipe_result){0};
  p->schedules = NULL;
  gt_status status =
      gt_pipe_evaluate(&p->result, p->pipe->layout.schedule, &p->pipe->problem, GT_PIPE_STEADY);
  if (status == GT_OK) status = compare(p);
  of->result = p->result;
  of->schedules = p->schedules;
  of->period_s = gt_seconds(p->result.period);
  return status;
}

gt_planner_pipeline gt_planner_pipeline_replica(const gt_planner_pipeline *p, size_t replica) {
  gt_planner_pipeline one = *p;
  one.pipe = p->replicas[replica].pipe;
  one.result = p->replicas[replica].result;
  one.schedules = p->replicas[replica].schedules;
  return one;
}

static gt_status look_at_replicas(gt_planner_pipeline *p) {
  while (gt_pipe_names[p->nschedules]) p->nschedules++;
  p->nreplicas = gt_job_replicas(p->job);
  p->replicas = GT_NEW_ARRAY(gt_planner_replica, p->nreplicas);
  for (size_t c = 0; c < p->nreplicas; c++) GT_TRY(look_at_replica(p, c));
  *p = gt_planner_pipeline_replica(p, 0);
  return GT_OK;
}

/* ---- exchange between replicas --------------------------------------------------------------- */

/* With several replicas, the exchange is simulated twice, with the job's first steps in different
   numbers.  The differences of time and bytes belong to the additional steps, without the start and
   the end of a run. */

/* Results of a simulation of these steps of every replica. */
typedef struct {
  gt_sim *sim;
  double train_s;
} run;

/* Returns a copy of the job without evaluations, checkpoints and limits, in which replicas keep
   their initial plans.  It borrows everything. */
static gt_job short_job(const gt_planner_pipeline *p, int64_t steps) {
  gt_job job = *p->job;
  job.train.until = (gt_job_interval){.steps = steps};
  job.train.eval_every = (gt_job_interval){0};
  job.checkpoint.every = (gt_job_interval){0};
  job.limits.wan_bytes = 0;
  job.pipeline.adapt = GT_ADAPT_NOTHING;
  return job;
}

static gt_status simulate(run *out, const gt_planner_pipeline *p, const gt_links *links,
                          const gt_job *job) {
  gt_sim_totals totals;
  const gt_sim_spec spec = {.job = job,
                            .links = links,
                            .parameters = p->shape.parameters,
                            .buffers = p->shape.buffers,
                            .samples = p->shape.samples,
                            .pipe = p->pipes[0],
                            .pipes = p->pipes,
                            .routes = &p->routes};
  GT_TRY(gt_sim_run(&out->sim, &spec));
  gt_sim_get_totals(out->sim, &totals);
  out->train_s = totals.train_s;
  return GT_OK;
}

/* Returns the time when the replica finished its steps. */
static double end_of(const run *of, const gt_job *job, size_t replica) {
  gt_region_result r;
  gt_sim_region(of->sim, gt_job_stage_region(job, replica, 0), &r);
  return of->train_s - r.idle_s;
}

static double sent(const run *of, size_t from, size_t to) {
  gt_link_result link;
  gt_sim_link(of->sim, from, to, &link);
  return (double)link.bytes_sent;
}

static void compare_runs(gt_planner_pipeline *p, const run *first, const run *second,
                         int64_t steps) {
  const size_t n = p->job->nregions;
  for (size_t c = 0; c < p->nreplicas; c++)
    p->replicas[c].period_s =
        (end_of(second, p->job, c) - end_of(first, p->job, c)) / (double)steps;
  for (size_t i = 0; i < n * n; i++)
    if (i / n != i % n)
      p->step_bytes[i] = (sent(second, i / n, i % n) - sent(first, i / n, i % n)) / (double)steps;
}

/* Returns the steps between exchanges; 1 if they are too far apart to be simulated. */
static int64_t period_of(const gt_job *job) {
  const bool has = gt_job_key_used("sync.period", gt_strategy_names[job->sync.strategy]);
  return has && job->sync.period <= GT_PLANNER_PERIOD_MAX ? job->sync.period : 1;
}

static int64_t whole_exchanges(const gt_job *job, int64_t steps) {
  const int64_t each = period_of(job);
  return (steps + each - 1) / each * each;
}

static gt_status exchange(gt_planner_pipeline *p) {
  const int64_t first = whole_exchanges(p->job, FIRST), more = whole_exchanges(p->job, MEASURED);
  const gt_job before = short_job(p, first), after = short_job(p, first + more);
  gt_links *links = NULL;
  run a = {0}, b = {0};
  GT_TRY(gt_links_create(&links, p->job));
  gt_status status = simulate(&a, p, links, &before);
  if (status == GT_OK) status = simulate(&b, p, links, &after);
  if (status == GT_OK) compare_runs(p, &a, &b, more);
  gt_sim_close(a.sim);
  gt_sim_close(b.sim);
  gt_links_close(links);
  p->measured_from = first;
  p->measured_to = first + more;
  return status;
}

/* ---- the run --------------------------------------------------------------------------------- */

static gt_status find_step(gt_planner_pipeline *p) {
  const size_t n = p->job->nregions;
  p->step_bytes = GT_NEW_ARRAY(double, n *n);
  p->bytes = GT_NEW_ARRAY(double, n *n);
  if (p->nreplicas > 1) return exchange(p);
  for (size_t i = 0; i < n * n; i++)
    p->step_bytes[i] = (double)gt_pipe_job_bytes(p->pipe, i / n, i % n);
  return GT_OK;
}

static void find_run(gt_planner_pipeline *p) {
  const size_t n = p->job->nregions;
  for (size_t c = 0; c < p->nreplicas; c++) {
    gt_planner_replica *of = &p->replicas[c];
    of->steps = gt_ps_stages_steps(p->job, p->shape.samples[gt_job_stage_region(p->job, c, 0)]);
    if (of->steps > p->steps) p->steps = of->steps;
    p->wall_s = fmax(p->wall_s, (double)of->steps * of->period_s);
  }
  const bool lockstep = gt_sync_of(p->job->sync.strategy)->lockstep;
  for (size_t i = 0; i < n * n; i++) {
    const size_t from = gt_job_replica_of(p->job, i / n), to = gt_job_replica_of(p->job, i % n);
    const bool all = lockstep && from != to;
    p->bytes[i] = p->step_bytes[i] * (double)(all ? p->steps : p->replicas[from].steps);
  }
  gt_plan_job_cost(&p->cost, p->job, &p->prices, p->wall_s, p->bytes, NULL);
}

double gt_planner_pipeline_period_s(const gt_planner_pipeline *p) {
  double most = 0;
  for (size_t c = 0; c < p->nreplicas; c++) most = fmax(most, p->replicas[c].period_s);
  return most;
}

double gt_planner_pipeline_rate(const gt_planner_pipeline *p) {
  double sum = 0;
  for (size_t c = 0; c < p->nreplicas; c++) sum += p->job->train.batch / p->replicas[c].period_s;
  return sum;
}

double gt_planner_pipeline_step_bytes(const gt_planner_pipeline *p) {
  double sum = 0;
  for (size_t i = 0; i < p->job->nregions * p->job->nregions; i++) sum += p->step_bytes[i];
  return sum;
}

/* ---- open and close -------------------------------------------------------------------------- */

static gt_status make(gt_planner_pipeline *p) {
  GT_TRY(gt_cost_check(p->job, "to plan"));
  GT_TRY(gt_job_prices_of(&p->prices, p->job));
  GT_TRY(gt_sim_shape_of(&p->shape, p->job));
  GT_TRY(gt_sim_shape_pipes(&p->pipes, p->job, &p->shape));
  GT_TRY(look_at_replicas(p));
  if (p->nreplicas > 1)
    GT_TRY(gt_routes_of(
        &p->routes, p->job, p->pipe->wan.links,
        &(gt_model_sizes){.parameters = p->shape.parameters, .buffers = p->shape.buffers}));
  GT_TRY(find_step(p));
  find_run(p);
  return GT_OK;
}

gt_status gt_planner_pipeline_make(gt_planner_pipeline **out, const gt_job *job) {
  gt_planner_pipeline *p = GT_NEW(gt_planner_pipeline);
  *p = (gt_planner_pipeline){.job = job};
  const gt_status status = make(p);
  *out = status == GT_OK ? p : NULL;
  if (status != GT_OK) gt_planner_pipeline_close(p);
  return status;
}

void gt_planner_pipeline_close(gt_planner_pipeline *p) {
  if (!p) return;
  gt_plan_job_cost_close(&p->cost);
  gt_job_prices_close(&p->prices);
  for (size_t c = 0; c < p->nreplicas; c++) {
    gt_pipe_result_close(&p->replicas[c].result);
    gt_free(p->replicas[c].schedules);
  }
  gt_free(p->replicas);
  gt_routes_close(&p->routes);
  gt_sim_pipes_close(p->pipes, p->job);
  gt_sim_shape_close(&p->shape);
  gt_free(p->step_bytes);
  gt_free(p->bytes);
  gt_free(p);
}

/* ---- the picture ----------------------------------------------------------------------------- */

gt_status gt_planner_pipeline_svg(const gt_planner_pipeline *p, const char *path) {
  char *text = gt_pipe_svg(p->pipe->layout.schedule, &p->pipe->problem, &p->result, SVG_PX);
  FILE *to = fopen(path, "we");
  bool written = to && fputs(text, to) >= 0;
  int why = errno;
  if (to && fclose(to) != 0 && written) written = false, why = errno;
  gt_free(text);
  if (written) return GT_OK;
  return GT_FAIL(GT_ERR_JOB, "%s: %s; expected a file that can be written", path, strerror(why));
}
