/* The state of a watched run, from its own record and from the state of its jobs in Slurm. */
#include "watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Finds a running job, else a pending one, else the newest. */
static void find_job(const gt_squeue *queue, const char *path, gt_squeue_job *best,
                     bool *submitted) {
  char jobs[GT_WATCH_JOBS][40];
  size_t n = gt_watch_jobs(path, jobs, GT_WATCH_JOBS);
  *best = (gt_squeue_job){.state = GT_SQUEUE_UNKNOWN};
  *submitted = n > 0;
  for (size_t i = n; i-- > 0;) {
    gt_squeue_job job;
    gt_squeue_find(queue, jobs[i], &job);
    if (i == n - 1 || job.state > best->state ||
        (job.state == best->state && job.state == GT_SQUEUE_PENDING))
      *best = job;
  }
}

/* A job is gone if two answers in a row do not have it: that leaves time for the run's last output
   to become visible in the file system. */
static void notice_gone(gt_watched *w, const gt_squeue *queue, const gt_squeue_job *job) {
  if (job->state != GT_SQUEUE_GONE)
    w->gone_at = 0;
  else if (w->gone_at == 0)
    w->gone_at = gt_squeue_answers(queue);
  w->gone = w->gone_at > 0 && (w->hasty || gt_squeue_answers(queue) > w->gone_at);
}

/* True if the time is in the past, compared in Slurm's format: such a start time is from before the
   job was requeued. */
static bool is_past(const char *start) {
  char now[40];
  struct tm local;
  time_t t = time(NULL);
  return strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%S", localtime_r(&t, &local)) > 0 &&
         strcmp(start, now) < 0;
}

/* Writes "job 12 PENDING (Resources), may start at 2026-11-21T22:00:00". */
static void put_job(char *text, size_t size, const gt_squeue_job *job) {
  char reason[80] = "", start[64] = "";
  if (job->reason[0] && strcmp(job->reason, "None") != 0 && job->state != GT_SQUEUE_RUNNING)
    snprintf(reason, sizeof reason, " (%s)", job->reason);
  if (job->start[0] && job->state == GT_SQUEUE_PENDING && !is_past(job->start))
    snprintf(start, sizeof start, ", may start at %s", job->start);
  snprintf(text, size, "job %s %s%s%s", job->job, job->word, reason, start);
}

/* Writes the record, then a semicolon and the state in Slurm. */
static void put_both(gt_watched *w, const char *between, const gt_squeue_job *job, size_t width) {
  char words[256];
  gt_follow_text(w->follow, w->text, sizeof w->text, width);
  put_job(words, sizeof words, job);
  size_t used = strlen(w->text);
  snprintf(w->text + used, sizeof w->text - used, "; %s%s", between, words);
}

static void judge_lost(gt_watched *w, const gt_run_view *v, const gt_squeue_job *job,
                       size_t width) {
  char word[40] = "";
  if (job->word[0]) snprintf(word, sizeof word, " (%s)", job->word);
  w->line.over = true;
  if (v->state == GT_RUN_STOPPED) {
    w->code = GT_STOPPED;
    gt_follow_text(w->follow, w->text, sizeof w->text, width);
    size_t used = strlen(w->text);
    snprintf(w->text + used, sizeof w->text - used,
             "; job %s has left the queue%s: submit it again to continue", job->job, word);
    return;
  }
  w->code = GT_ERR_LOST;
  if (v->has_progress)
    snprintf(w->text, sizeof w->text,
             "job %s has left the queue%s without a summary, after step %lld; see slurm.log in the "
             "run directory",
             job->job, word, (long long)v->progress.step);
  else
    snprintf(w->text, sizeof w->text,
             "job %s has left the queue%s without a summary; see slurm.log in the run directory",
             job->job, word);
}

/* Judges a run with a pending job, requeued or the next of a chain: it waits to begin, or to be
   resumed. */
static void judge_pending(gt_watched *w, const gt_run_view *v, const gt_squeue_job *job,
                          size_t width) {
  char words[256];
  put_job(words, sizeof words, job);
  if (v->state == GT_RUN_NOTHING)
    snprintf(w->text, sizeof w->text, "waits in the queue: %s", words);
  else if (v->state == GT_RUN_STOPPED)
    put_both(w, "waits to be resumed: ", job, width);
  else
    snprintf(w->text, sizeof w->text, "interrupted after step %lld; waits to be resumed: %s",
             (long long)v->progress.step, words);
}

/* Judges a run without heartbeats whose job is unknown to squeue. */
static void judge_unasked(gt_watched *w, const gt_run_view *v, const gt_squeue *queue,
                          const gt_squeue_job *job, bool submitted) {
  const char *why = !gt_squeue_exists(queue)   ? "; there is no squeue here to ask"
                    : gt_squeue_is_mute(queue) ? "; squeue does not answer"
                                               : "";
  size_t used = strlen(w->text);
  if (v->state == GT_RUN_NOTHING && submitted && !gt_squeue_is_settled(queue))
    w->text[0] = '\0';
  else if (v->state == GT_RUN_NOTHING && submitted)
    snprintf(w->text, sizeof w->text, "job %s was submitted, nothing from it yet%s", job->job, why);
  else if (v->state == GT_RUN_STOPPED && job->state == GT_SQUEUE_UNKNOWN)
    snprintf(w->text + used, sizeof w->text - used, "; waits to be resumed%s",
             submitted ? why : "");
}

static bool is_alive(const gt_run_view *v) {
  return v->state == GT_RUN_RUNNING || v->state == GT_RUN_ENDING;
}

/* Judges a run that is not finished according to its files: the state from squeue takes
   precedence. */
static void judge_by_queue(gt_watched *w, const gt_run_view *v, const gt_squeue *queue,
                           const gt_squeue_job *job, bool submitted, size_t width) {
  bool alive = is_alive(v);
  /* a run with heartbeats was started by hand */
  if (w->gone && (!alive || v->quiet_s > fmax(10, 2 * v->every_s)))
    judge_lost(w, v, job, width);
  else if (job->state == GT_SQUEUE_PENDING)
    judge_pending(w, v, job, width);
  else if (alive)
    return;
  else if (job->state != GT_SQUEUE_RUNNING)
    judge_unasked(w, v, queue, job, submitted);
  else if (v->state == GT_RUN_STOPPED)
    put_both(w, "", job, width);
  else
    snprintf(w->text, sizeof w->text, "job %s %s, nothing from it yet", job->job, job->word);
}

static void judge_run(gt_watched *w, const gt_squeue *queue, size_t width) {
  const gt_run_view *v = gt_follow_poll(w->follow);
  gt_squeue_job job;
  bool submitted;
  find_job(queue, w->path, &job, &submitted);
  notice_gone(w, queue, &job);
  w->line.every_s = is_alive(v) && !v->silent ? v->every_s : 60;
  gt_follow_text(w->follow, w->text, sizeof w->text, width);
  if (v->state == GT_RUN_DONE || (v->state == GT_RUN_STOPPED && v->code != (int)GT_STOPPED)) {
    w->line.over = true;
    w->code = v->state == GT_RUN_DONE ? GT_OK : (gt_status)v->code;
  } else if (!is_alive(v) || v->quiet_s >= gt_squeue_age(queue)) /* no output since the query */
    judge_by_queue(w, v, queue, &job, submitted, width);
  w->line.phase = 1 + 8 * (int)v->state + 64 * (int)job.state + 512 * w->line.over +
                  1024 * v->silent + 2048 * v->has_progress + 4096 * (int)v->starts;
}

/* Judges the directory of a sweep by its jobs only: elements that have not begun. */
static void judge_sweep(gt_watched *w, const gt_squeue *queue) {
  gt_squeue_job job;
  bool submitted;
  find_job(queue, w->path, &job, &submitted);
  w->line.over = job.state != GT_SQUEUE_PENDING && gt_squeue_is_settled(queue);
  w->code = GT_OK;
  w->line.every_s = 60;
  w->line.phase = (int)job.state;
  w->text[0] = '\0';
  if (job.state != GT_SQUEUE_PENDING) return;
  int n = snprintf(w->text, sizeof w->text, "more wait in the queue: ");
  put_job(w->text + n, sizeof w->text - (size_t)n, &job);
}

void gt_watch_judge(gt_watched *w, const gt_squeue *queue, size_t width) {
  w->line.over = false;
  w->code = GT_OK;
  if (w->is_sweep)
    judge_sweep(w, queue);
  else
    judge_run(w, queue, width);
}
