/* Writes the job with the plan filled in, ready for training. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#define ROOM_BYTES 1.2 /* limit of the run's bytes, relative to the expected ones */

/* ---- the filled-in job ----------------------------------------------------------------------- */

static double most_bytes(const gt_planner_set *set) {
  double most = 0;
  for (gt_planner_case k = GT_PLANNER_LOW; k < GT_PLANNER_CASES; k++)
    most = fmax(most, set->at[k].figures.wan_bytes);
  return most;
}

/* Sets numbers only.  Texts are set as overrides when the job is loaded, because a job owns its
   strings. */
static void fill_numbers(gt_job *job, const gt_planner *p, const gt_planner_set *set) {
  const gt_figures *o = &set->at[GT_PLANNER_EXPECTED].figures;
  double bytes = ceil(ROOM_BYTES * most_bytes(set));
  bool own_limit = job->limits.wan_bytes > 0 && !p->job->plan.predicted.strategy;
  const bool limitable = job->sync.on_loss != GT_ON_LOSS_CONTINUE;
  job->nfaults = 0; /* geotrain train has none */
  if (!own_limit && bytes > 0 && limitable) job->limits.wan_bytes = bytes;
  job->slurm.time_s = p->slurm_s;
  job->plan.predicted.wall_s = o->wall_s;
  job->plan.predicted.wall_low_s = set->at[GT_PLANNER_LOW].figures.wall_s;
  job->plan.predicted.wall_high_s = set->at[GT_PLANNER_HIGH].figures.wall_s;
  job->plan.predicted.step_s = o->step_s;
  job->plan.predicted.samples_per_s = o->samples_per_s;
  job->plan.predicted.wan_bytes = o->wan_bytes;
  job->plan.predicted.waiting = fmin(fmax(o->waiting, 0), 1);
  job->plan.predicted.cost = p->prices.known ? o->cost : -1;
}

/* Writes the resolved job as text; the caller frees it. */
static gt_status text_of(char **text, const gt_planner *p) {
  const gt_planner_candidate *c = &p->candidates[p->choice];
  const gt_planner_set *set = gt_planner_proposed(c);
  gt_job *job = NULL;
  char made[96], strategy[96], when[32];
  time_t now = time(NULL);
  struct tm utc;
  strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
  snprintf(made, sizeof made, "plan.predicted.made=geotrain %s, %s", GT_VERSION, when);
  snprintf(strategy, sizeof strategy, "plan.predicted.strategy=%s", gt_strategy_names[c->strategy]);
  const char *const said[] = {made, strategy};
  GT_TRY(gt_planner_load(&job, p, c, said, sizeof said / sizeof *said));
  gt_planner_fit(job, p, c, set->counts);
  fill_numbers(job, p, set);
  *text = gt_job_resolved(job);
  gt_job_close(job);
  return GT_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

gt_status gt_planner_put(const char *path, const char *text) {
  gt_job *again = NULL;
  /* the file is replaced only if the new text loads */
  GT_TRY(gt_job_parse(&again, path, text));
  gt_job_close(again);
  return gt_file_replace(path, text, strlen(text))
             ? GT_OK
             : GT_FAIL(GT_ERR_JOB, "plan: %s could not be written: %s", path, strerror(errno));
}

gt_status gt_planner_write(const gt_planner *p, const char *path) {
  char *text = NULL;
  GT_TRY(text_of(&text, p));
  const gt_status status = gt_planner_put(path, text);
  gt_free(text);
  return status;
}
