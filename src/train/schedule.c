/* The learning rate of a run that resumes with another number of workers or another end: its number
   of steps differs from that of the original schedule. */
#include <math.h>

#include "geotrain/ps_of_job.h"
#include "internal.h"

int64_t gt_server_planned_steps(const gt_server *s, const char *job_yaml) {
  gt_job *job = NULL;
  size_t n = s->run->job->nregions;
  if (gt_job_parse(&job, "job.yaml of the checkpoint", job_yaml) != GT_OK) return -1;
  int64_t *samples = GT_NEW_ARRAY(int64_t, n), steps = -1;
  for (size_t r = 0; r < n; r++) samples[r] = s->hellos[r].samples;
  if (job->nregions == n && s->run->pipe)
    steps = gt_ps_stages_optim_of(job, &s->run->order, samples).schedule.total_steps;
  else if (job->nregions == n)
    steps = gt_ps_optim_of(job, s->run->roles.region_id, samples).schedule.total_steps;
  gt_free(samples);
  gt_job_close(job);
  return steps;
}

/* Agrees on the values of all regions.  If every region applies every step (lockstep), all must
   change their rates at the same step and end at the same step.  One can be a step ahead of
   another, so the largest values are used. *planned: negative if unknown to a region. */
static void agree_on_steps(const gt_server *s, int64_t *step, int64_t *end, int64_t *planned) {
  int64_t all[3] = {*step, *end, -*planned};
  MPI_Request request;
  if (!gt_sync_of(s->run->job->sync.strategy)->lockstep) return;
  GT_MPI(MPI_Iallreduce(MPI_IN_PLACE, all, 3, MPI_INT64_T, MPI_MAX, s->run->roles.ps, &request));
  gt_wait_all(&request, 1, "the steps that other regions have left", s->run->start_limit_s, NULL,
              NULL);
  *step = all[0];
  *end = all[1];
  *planned = -all[2];
}

/* Logs the change.  A schedule that had ended would leave no rate to train with: it moves back to
   the position of a run of this length. */
static void say(const gt_server *s, int64_t planned, const gt_lr_part *part, bool ended,
                double before) {
  double rate = gt_lr_at(gt_optim_schedule(s->optim), part->step);
  int64_t left = part->end - part->step;
  if (ended)
    gt_log(GT_LOG_WARN,
           "the learning rate schedule had ended (%lld steps), and the training is longer now: the "
           "rate rises from %.4g to %.4g, as in a run of which %.1f %% is done, and the schedule "
           "ends %lld steps from here",
           (long long)planned, before, rate, 100 * part->share, (long long)left);
  else
    gt_log(GT_LOG_INFO,
           "the learning rate schedule was for %lld steps: it continues at %.1f %%, "
           "rate %.4g, over the remaining %lld steps",
           (long long)planned, 100 * part->share, rate, (long long)left);
  gt_status status = gt_record_line(s->record, s->elapsed_s, "schedule", "step", 'i', part->step,
                                    "share", 'f', part->share, "left", 'i', left, "lr_before", 'f',
                                    before, "lr", 'f', rate, NULL);
  if (status != GT_OK) gt_panic(status, "%s", gt_error_text());
}

void gt_server_spread(gt_server *s) {
  gt_lr_schedule *schedule = gt_optim_schedule(s->optim);
  int64_t planned = s->planned_before, step = gt_optim_steps(s->optim),
          end = step + gt_ps_steps_left(s->ps);
  if (schedule->kind != GT_LR_COSINE) return;
  agree_on_steps(s, &step, &end, &planned);
  if (planned < 0)
    gt_log(GT_LOG_WARN, "the job in the checkpoint cannot be read: the learning rate follows the "
                        "steps of this job alone");
  if (planned < 0 || planned == s->planned || step >= end) return;
  schedule->total_steps = planned;
  gt_lr_part part = {step, end, gt_lr_share(schedule, step)};
  double before = gt_lr_at(schedule, step);
  bool ended = part.share >= 1;
  if (ended) part.share = (double)step / (double)end;
  gt_lr_spread(schedule, &part);
  say(s, planned, &part, ended, before);
}
