/* Private to `geotrain watch`: the list of runs, and the states of their jobs in Slurm. */
#pragma once

#include "geotrain/record.h"

/* ---- watch_verdict.c: asks squeue for all jobs at once, at most every 5 s, without waiting --- */

typedef struct gt_squeue gt_squeue;
/* Creates the queue.  Without `squeue` in PATH all jobs stay unknown. */
gt_squeue *gt_squeue_create(void);
void gt_squeue_close(gt_squeue *queue);
/* Starts a query if one is due, and reads the answer; a query without an answer for 30 s is
   abandoned.  jobs: the list for squeue, "12,15_3". */
void gt_squeue_poll(gt_squeue *queue, const char *jobs);
/* True if there is nothing to query, or the first query has been answered or abandoned: waiting
   longer would not give more information. */
bool gt_squeue_is_settled(const gt_squeue *queue);

/* ---- watch_runs.c: the directories ---- */

typedef struct {
  char **paths; /* of runs, in the given order; the runs of a sweep sorted by name */
  size_t n, room;
} gt_watch_paths;

/* Adds the runs in `path` that are not in the list yet: the directory itself, or its subdirectories
   that are runs.  The directory of a sweep follows its runs if only it has the list of jobs; for it
   nothing but its jobs is known. *again: more runs can appear there.  GT_ERR_JOB: there is no such
   directory, and no submission next to it that could create it. */
gt_status gt_watch_find(gt_watch_paths *runs, const char *path, bool *again);
void gt_watch_paths_close(gt_watch_paths *runs);
/* Writes the Slurm jobs that were submitted for a run, "12" or "15_3", newest last; for an element
   of a sweep those of the parent directory.  At most `most`. */
size_t gt_watch_jobs(const char *path, char jobs[][40], size_t most);

/* ---- watch_verdict.c: the state of a run ---- */

#define GT_WATCH_JOBS ((size_t)32)  /* number of submissions per run that are queried */
#define GT_WATCH_RUNS ((size_t)256) /* number of runs that are watched at a time */

typedef struct {
  char *path;
  gt_follow *follow;
  bool is_sweep; /* the parent directory of other runs that are watched */
  bool hasty;    /* one answer of squeue is enough, because there is no second poll */
  char text[448];
  /* over, phase and every_s are the run's; its text also contains the run's name */
  gt_board_line line;
  gt_status code;         /* of a run that is over */
  int64_t gone_at;        /* number of the first squeue answer without its job; 0: none */
  bool gone;              /* a later answer did not have the job either */
  gt_board_line *regions; /* nregions, shown below the line of a run in training */
  size_t nregions;
} gt_watched;

/* Reads the run's files and the queue's answers; writes all fields from text on (text has at most
   width - 1 columns if it is the live line). */
void gt_watch_judge(gt_watched *run, const gt_squeue *queue, size_t width);
