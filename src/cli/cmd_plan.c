/* geotrain plan JOB.yaml: plans ranks, strategy, time and cost of a job before it is submitted; or
   shows how its pipeline will run. */
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "geotrain/planner.h"
#include "geotrain/planner_pipeline.h"
#include "geotrain/planner_search.h"
#include "geotrain/record.h"
#include "options.h"

#define MARGIN 0.1

typedef struct {
  const char *regions_csv, *write, *svg;
  double margin; /* negative: not given */
  bool json;
} plan_options;

enum { REGIONS_CSV = GT_OPTION_SET + 1, WRITE, JSON, MARGIN_OF, SVG };
const struct option gt_options_plan[] = {{"set", required_argument, NULL, GT_OPTION_SET},
                                         {"regions-csv", required_argument, NULL, REGIONS_CSV},
                                         {"write", required_argument, NULL, WRITE},
                                         {"json", no_argument, NULL, JSON},
                                         {"margin", required_argument, NULL, MARGIN_OF},
                                         {"svg", required_argument, NULL, SVG},
                                         {NULL, 0, NULL, 0}};

static gt_status read_margin(double *out, const char *text) {
  char *end;
  double x = strtod(text, &end);
  if (end == text || *end || !(x >= 0 && x < 1))
    return GT_FAIL(GT_ERR_JOB,
                   "plan: --margin is \"%.80s\"; expected a share from 0 to below 1, as in 0.1",
                   text);
  *out = x;
  return GT_OK;
}

static gt_status take(void *ctx, int option, const char *argument) {
  plan_options *o = ctx;
  if (option == MARGIN_OF) return read_margin(&o->margin, argument);
  if (option == REGIONS_CSV) o->regions_csv = argument;
  if (option == WRITE) o->write = argument;
  if (option == JSON) o->json = true;
  if (option == SVG) o->svg = argument;
  return GT_OK;
}

/* True if the job says how the site's Slurm is to be used. */
static bool on_slurm(const gt_job *job, size_t region) {
  const gt_job_region *r = &job->regions[region];
  return job->slurm.partition || job->slurm.account || job->slurm.qos || job->slurm.constraint ||
         job->slurm.reservation || r->slurm.partition || r->slurm.constraint ||
         r->slurm.nodes > 0 || r->slurm.noptions > 0;
}

/* Of regions joined by TCP each can be started by itself. */
static void say_sites(const gt_job *job, const char *path) {
  printf("as one MPI job for each region, with %s at every site:\n", path);
  for (size_t r = 0; r < job->nregions; r++) {
    const gt_job_region *region = &job->regions[r];
    if (on_slurm(job, r))
      printf("  slurm/submit %s --region %s\n", path, region->name);
    else
      printf("  mpirun -n %d geotrain train %s --region %s --run-dir runs/%s\n", region->ranks,
             path, region->name, job->name);
  }
}

/* The last line: what to do with the file that was written, or to write. */
static gt_status say_written(const plan_options *o, const char *path) {
  gt_job *job = NULL;
  if (o->json) return GT_OK;
  if (!o->write) {
    printf("\n");
    gt_print_wrapped(stdout, 2, "to train it: geotrain plan %s --write OUT.yaml", path);
    return GT_OK;
  }
  GT_TRY(gt_job_load(&job, o->write, NULL, 0));
  printf("\n");
  gt_print_wrapped(stdout, 2, "wrote %s; it is for %d ranks: mpirun -n %d geotrain train %s",
                   o->write, gt_job_ranks(job), gt_job_ranks(job), o->write);
  if (job->wan.transport != GT_WAN_MPI && job->nregions > 1) say_sites(job, o->write);
  gt_job_close(job);
  return GT_OK;
}

static gt_status show(const gt_planner *p, const plan_options *o, const char *path) {
  if (o->write) GT_TRY(gt_planner_write(p, o->write));
  if (o->json) return gt_planner_json(stdout, p);
  gt_planner_print(stdout, p);
  return say_written(o, path);
}

static gt_status plan_ranks(const gt_job_words *words, const plan_options *o) {
  gt_planner *p = NULL;
  const gt_planner_options asked = {.job_path = words->path,
                                    .sets = words->sets,
                                    .nsets = words->nsets,
                                    .regions_csv = o->regions_csv,
                                    .margin = o->margin < 0 ? MARGIN : o->margin};
  if (o->svg)
    return GT_FAIL(GT_ERR_JOB, "plan: --svg draws a pipeline; expected a job with pipeline.stages");
  gt_status status = gt_planner_make(&p, &asked);
  if (status == GT_OK) status = show(p, o, words->path);
  gt_planner_close(p);
  return status;
}

/* A pipeline has one set of ranks: there is nothing to choose by time or cost. */
static gt_status refuse_goals(const gt_job *job) {
  if (job->plan.deadline_s <= 0 && job->plan.budget <= 0) return GT_OK;
  return GT_FAIL(GT_ERR_JOB,
                 "plan: %s is for jobs whose ranks are planned, and %s has a pipeline; plan it "
                 "without (--set %s=null)",
                 job->plan.deadline_s > 0 ? "plan.deadline" : "plan.budget", job->name,
                 job->plan.deadline_s > 0 ? "plan.deadline" : "plan.budget");
}

/* Plans a pipeline whose ranks and schedule are in the job. */
static gt_status plan_pipeline(const gt_job *job, const plan_options *o) {
  gt_planner_pipeline *p = NULL;
  if (o->write || o->margin >= 0)
    return GT_FAIL(GT_ERR_JOB,
                   "plan: %s is for jobs whose ranks are planned, and %s has a pipeline; plan it "
                   "without",
                   o->write ? "--write" : "--margin", job->name);
  GT_TRY(gt_planner_pipeline_make(&p, job));
  gt_status status = o->svg ? gt_planner_pipeline_svg(p, o->svg) : GT_OK;
  if (status == GT_OK && o->json) status = gt_planner_pipeline_json(stdout, p);
  if (status == GT_OK && !o->json) gt_planner_pipeline_print(stdout, p, gt_terminal_width(stdout));
  gt_planner_pipeline_close(p);
  return status;
}

static gt_status show_search(const gt_planner_search *s, const plan_options *o, const char *path) {
  if (o->write) GT_TRY(gt_planner_search_write(s, o->write));
  if (o->svg) GT_TRY(gt_planner_pipeline_svg(gt_planner_search_pipeline(s), o->svg));
  if (o->json) return gt_planner_search_json(stdout, s);
  gt_planner_search_print(stdout, s, gt_terminal_width(stdout));
  return say_written(o, path);
}

/* Plans a pipeline whose stages are to be found. */
static gt_status search_pipeline(const gt_job_words *words, const plan_options *o) {
  gt_planner_search *s = NULL;
  const gt_planner_options asked = {.job_path = words->path,
                                    .sets = words->sets,
                                    .nsets = words->nsets,
                                    .regions_csv = o->regions_csv};
  if (o->margin >= 0)
    return GT_FAIL(GT_ERR_JOB, "plan: --margin is for jobs whose ranks are planned, and "
                               "pipeline.stages is auto; plan it without");
  GT_TRY(gt_planner_search_make(&s, &asked));
  const gt_status status = show_search(s, o, words->path);
  gt_planner_search_close(s);
  return status;
}

static gt_status plan(const gt_job_words *words, const plan_options *o) {
  gt_job *job = NULL;
  if (o->write) GT_TRY(gt_output_may_replace(o->write, words->path, NULL, NULL));
  if (o->svg) GT_TRY(gt_output_may_replace(o->svg, words->path, NULL, NULL));
  GT_TRY(gt_job_load_regions(&job, words->path, words->sets, words->nsets, o->regions_csv));
  const bool piped = job->pipeline.nstages > 0, search = job->pipeline.search;
  gt_status status = piped || search ? refuse_goals(job) : GT_OK;
  if (status == GT_OK)
    status = piped    ? plan_pipeline(job, o)
             : search ? search_pipeline(words, o)
                      : plan_ranks(words, o);
  status = gt_job_blame(job, status);
  gt_job_close(job);
  return status;
}

gt_status gt_cmd_plan(int argc, char **argv) {
  plan_options o = {.margin = -1};
  gt_job_words words;
  gt_status status = gt_job_words_read(&words, argc, argv, gt_options_plan, take, &o);
  gt_progress_begin("plan");
  if (status == GT_OK) status = plan(&words, &o);
  gt_free(words.sets);
  return status;
}
