/* Several copies of a pipeline: each copy's own plan, and what exchanging adds to it.  That is
   simulated: the job's first steps, twice, with different numbers of steps.  What the second
   simulation takes and sends more than the first is that of the steps between, without the begin and
   the end of a run. */
#include <math.h>
#include <stdio.h>

#include "geotrain/sim.h"
#include "pipeline.h"

#define MB         1e-6
#define FIRST      8    /* steps before those that are measured, at least */
#define MEASURED   24   /* at least */
#define PERIOD_MAX 1000 /* exchanges that are further apart are not in the plan */

/* ---- simulations ----------------------------------------------------------------------------- */

/* What a simulation of so many steps of every copy found. */
typedef struct {
  gt_sim *sim;
  double train_s;
} look;

/* The job without evaluations, checkpoints and limits, whose copies keep the plans of their start;
   it borrows everything. */
static gt_job short_job(const gt_planner_pipeline *p, int64_t steps) {
  gt_job job = *p->job;
  job.train.until = (gt_job_interval){.steps = steps};
  job.train.eval_every = (gt_job_interval){0};
  job.checkpoint.every = (gt_job_interval){0};
  job.limits.wan_bytes = 0;
  job.pipeline.adapt = GT_ADAPT_NOTHING;
  return job;
}

static gt_status simulate(look *out, const gt_planner_pipeline *p, const gt_links *links,
                          const gt_job *job) {
  gt_sim_totals totals;
  const gt_sim_spec spec = {.job = job,
                            .links = links,
                            .parameters = p->shape.parameters,
                            .buffers = p->shape.buffers,
                            .samples = p->shape.samples,
                            .pipe = p->pipes[0],
                            .pipes = p->pipes,
                            .wiring = &p->wiring};
  GT_TRY(gt_sim_run(&out->sim, &spec));
  gt_sim_look(out->sim, &totals);
  out->train_s = totals.train_s;
  return GT_OK;
}

/* When the copy had made its steps. */
static double end_of(const look *of, const gt_job *job, size_t copy) {
  gt_region_result r;
  gt_sim_region(of->sim, gt_job_stage_region(job, copy, 0), &r);
  return of->train_s - r.idle_s;
}

static double sent(const look *of, size_t from, size_t to) {
  gt_link_result link;
  gt_sim_link(of->sim, from, to, &link);
  return (double)link.bytes_sent;
}

static void compare(gt_planner_pipeline *p, const look *first, const look *second, int64_t steps) {
  const size_t n = p->job->nregions;
  for (size_t c = 0; c < p->ncopies; c++)
    p->copies[c].period_s = (end_of(second, p->job, c) - end_of(first, p->job, c)) / (double)steps;
  for (size_t i = 0; i < n * n; i++)
    if (i / n != i % n)
      p->step_bytes[i] = (sent(second, i / n, i % n) - sent(first, i / n, i % n)) / (double)steps;
}

/* Steps from exchange to exchange; 1 if they are too far apart to be simulated. */
static int64_t exchange_of(const gt_job *job) {
  const bool has = gt_job_key_used("sync.period", gt_strategy_names[job->sync.strategy]);
  return has && job->sync.period <= PERIOD_MAX ? job->sync.period : 1;
}

static int64_t whole_exchanges(const gt_job *job, int64_t steps) {
  const int64_t each = exchange_of(job);
  return (steps + each - 1) / each * each;
}

gt_status gt_planner_pipeline_exchange(gt_planner_pipeline *p) {
  const int64_t first = whole_exchanges(p->job, FIRST), more = whole_exchanges(p->job, MEASURED);
  const gt_job before = short_job(p, first), after = short_job(p, first + more);
  gt_links *links = NULL;
  look a = {0}, b = {0};
  GT_TRY(gt_links_create(&links, p->job));
  gt_status status = simulate(&a, p, links, &before);
  if (status == GT_OK) status = simulate(&b, p, links, &after);
  if (status == GT_OK) compare(p, &a, &b, more);
  gt_sim_close(a.sim);
  gt_sim_close(b.sim);
  gt_links_close(links);
  p->measured_from = first;
  p->measured_to = first + more;
  return status;
}

/* ---- tables ---------------------------------------------------------------------------------- */

gt_planner_pipeline gt_planner_pipeline_copy(const gt_planner_pipeline *p, size_t copy) {
  gt_planner_pipeline one = *p;
  one.pipe = p->copies[copy].pipe;
  one.result = p->copies[copy].result;
  one.schedules = p->copies[copy].schedules;
  return one;
}

static void print_regions(FILE *to, const gt_planner_pipeline *p, size_t copy) {
  const char *before = "";
  for (size_t r = 0; r < p->job->nregions; r++) {
    if (gt_job_copy_of(p->job, r) != copy) continue;
    fprintf(to, "%s%s", before, p->job->regions[r].name);
    before = ", ";
  }
}

void gt_planner_pipeline_print_copy(FILE *to, const gt_planner_pipeline *p, size_t copy) {
  fprintf(to, "copy %zu: ", copy + 1);
  print_regions(to, p, copy);
  fprintf(to, "\n\n");
}

void gt_planner_pipeline_print_copies(FILE *to, const gt_planner_pipeline *p) {
  const char *strategy = gt_strategy_names[p->job->sync.strategy];
  fprintf(to, "%4s %9s %9s %11s %8s  %s\n", "copy", "alone s", "period s", "samples/s", "steps",
          "regions");
  for (size_t c = 0; c < p->ncopies; c++) {
    const gt_planner_copy *of = &p->copies[c];
    fprintf(to, "%4zu %9.4g %9.4g %11.4g %8lld  ", c + 1, gt_seconds(of->result.period),
            of->period_s, p->job->train.batch / of->period_s, (long long)of->steps);
    print_regions(to, p, c);
    fprintf(to, "\n");
  }
  fprintf(to,
          "period: from step to step with what copies exchange (%s), simulated, mean of steps %lld "
          "to %lld;\nalone: without it\n",
          strategy, (long long)p->measured_from + 1, (long long)p->measured_to);
  if (gt_job_key_used("sync.period", strategy) && p->job->sync.period > PERIOD_MAX)
    fprintf(to, "exchanges every %lld steps are not in it\n", (long long)p->job->sync.period);
  if (p->job->pipeline.adapt != GT_ADAPT_NOTHING)
    fprintf(to,
            "pipeline.adapt is %s: each copy follows its own links; these are the plans of the "
            "start\n",
            gt_adapt_names[p->job->pipeline.adapt]);
  fprintf(to, "\n");
}
