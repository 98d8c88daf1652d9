/* Private to `geotrain watch`: which runs there are, and what Slurm says of their jobs. */
#ifndef GEOTRAIN_CLI_WATCH_H
#define GEOTRAIN_CLI_WATCH_H

#include "geotrain/record.h"

/* ---- watch_queue.c: squeue, asked for all jobs at once, at most every 5 s, without waiting for its answer ---- */

typedef struct gt_squeue gt_squeue;
/* Without `squeue` in PATH nothing is ever known. */
gt_squeue *gt_squeue_create(void);
void gt_squeue_close(gt_squeue *queue);
bool gt_squeue_exists(const gt_squeue *queue);
/* jobs: what squeue shall be asked for, "12,15_3".  Asks when it is time to, takes in what was answered; a question that stays unanswered for 30 s is given up. */
void gt_squeue_poll(gt_squeue *queue, const char *jobs);
/* Answers so far; a job that is gone in one answer and in the next one is gone. */
int64_t gt_squeue_answers(const gt_squeue *queue);
/* Seconds since the question was asked that was answered last. */
double gt_squeue_age(const gt_squeue *queue);
/* Whether the last question was not answered, or has not been for 8 s: the controller is down or busy. */
bool gt_squeue_is_mute(const gt_squeue *queue);
/* Nothing is to be asked, or the first question has been answered or given up: what is known now is what can be known. */
bool gt_squeue_is_settled(const gt_squeue *queue);

typedef enum { GT_SQUEUE_UNKNOWN, GT_SQUEUE_GONE, GT_SQUEUE_PENDING, GT_SQUEUE_RUNNING } gt_squeue_state;
typedef struct {
  gt_squeue_state state;
  char job[40], word[32], reason[64], start[40]; /* Slurm's own words; "" where there are none */
} gt_squeue_job;
/* The job "12" (any of its components or array elements), or "15_3"; UNKNOWN: it was not in the last question that was answered. */
void gt_squeue_find(const gt_squeue *queue, const char *job, gt_squeue_job *out);

/* ---- watch_runs.c: the directories ---- */

typedef struct {
  char **paths; /* of runs, in the order given; the runs of a sweep by name */
  size_t n, room;
} gt_watch_paths;

/* Adds the runs in `path` that are not in the list yet: the directory itself, or its subdirectories that are runs and, of a sweep whose jobs stand in
   the directory alone, behind them the directory, of which nothing but its jobs is known.  *again: more may come there.  GT_ERR_JOB: there is no such
   directory, and no submission beside it that could make it. */
gt_status gt_watch_find(gt_watch_paths *runs, const char *path, bool *again);
void gt_watch_paths_close(gt_watch_paths *runs);
/* The Slurm jobs that were submitted for a run, "12" or "15_3", newest last; of an element of a sweep those of the directory above.  At most `most`. */
size_t gt_watch_jobs(const char *path, char jobs[][40], size_t most);

/* ---- watch_verdict.c: what is said of a run ---- */

#define GT_WATCH_JOBS ((size_t)32)  /* submissions of a run that are asked for */
#define GT_WATCH_RUNS ((size_t)256) /* runs that are watched at a time */

typedef struct {
  char *path;
  gt_follow *follow;
  bool is_sweep; /* the directory of other runs that are watched */
  bool hasty;    /* one answer of squeue counts: there will be no second look */
  char text[448];
  gt_board_line line; /* over, phase, every_s are the run's; its text has the run's name, too */
  gt_status code;     /* of a run that is over */
  int64_t gone_at;    /* the answer of squeue that had its job no more; 0: none */
  bool gone;          /* another one after it had it no more either */
} gt_watched;

/* Looks at the run's files and at what the queue has answered; writes all from text on (of at most width - 1 columns where it is the live line). */
void gt_watch_judge(gt_watched *run, const gt_squeue *queue, size_t width);

#endif
