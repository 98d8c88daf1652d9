/* The state of a watched run, from its own record and from the state of its jobs in Slurm. */
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the queue: a process of its own asks squeue, and is abandoned if it does not answer ----- */

#define EVERY (5 * GT_SECOND)
/* the query is then abandoned; squeue itself waits long for a controller that is down */
#define PATIENCE (30 * GT_SECOND)
#define SLOW     (8 * GT_SECOND)   /* the caller then learns that there is no answer */
#define ROOM     ((size_t)1 << 18) /* bytes of an answer */

extern char **environ;

typedef enum { SQUEUE_UNKNOWN, SQUEUE_GONE, SQUEUE_PENDING, SQUEUE_RUNNING } squeue_state;
typedef struct {
  squeue_state state;
  char job[40], word[32], reason[64], start[40]; /* as given by Slurm; "" if missing */
} squeue_job;

struct gt_squeue {
  bool exists, mute, idle; /* idle: no job to query */
  pid_t child;             /* process of the current query; 0: none */
  int from_child;
  gt_ns asked_at, answer_of; /* answer_of: start of the last answered query */
  char *asking, *asked;      /* ",12,15_3,": of the current query, of the last answer */
  char *coming, *answer;
  size_t filled;
  int64_t answers;
};

static bool is_in_path(const char *program) {
  const char *path = getenv("PATH");
  char file[4096];
  for (const char *at = path ? path : ""; *at;) {
    size_t n = strcspn(at, ":");
    int length = snprintf(file, sizeof file, "%.*s/%s", (int)n, at, program);
    if (n > 0 && length > 0 && (size_t)length < sizeof file && access(file, X_OK) == 0) return true;
    at += n + (at[n] == ':');
  }
  return false;
}

gt_squeue *gt_squeue_create(void) {
  gt_squeue *q = GT_NEW(gt_squeue);
  q->exists = is_in_path("squeue");
  q->coming = GT_NEW_ARRAY(char, ROOM);
  q->answer = GT_NEW_ARRAY(char, ROOM);
  q->asked_at = gt_now() - EVERY;
  return q;
}

static void give_up(gt_squeue *q) {
  if (q->child == 0) return;
  kill(q->child, SIGKILL);
  waitpid(q->child, NULL, 0);
  close(q->from_child);
  q->child = 0;
}

void gt_squeue_close(gt_squeue *q) {
  if (!q) return;
  give_up(q);
  gt_free(q->asking);
  gt_free(q->asked);
  gt_free(q->coming);
  gt_free(q->answer);
  gt_free(q);
}

static bool exists(const gt_squeue *q) {
  return q->exists;
}

/* Returns the number of answers so far; a job missing from two answers in a row has left the
   queue. */
static int64_t answers(const gt_squeue *q) {
  return q->answers;
}

/* Returns the seconds since the start of the last answered query. */
static double age(const gt_squeue *q) {
  return gt_seconds(gt_now() - q->answer_of);
}

/* True if the last query had no answer, or the current one has had none for 8 s: the controller is
   down or busy. */
static bool is_mute(const gt_squeue *q) {
  return q->mute || (q->child != 0 && gt_now() - q->asked_at > SLOW);
}

bool gt_squeue_is_settled(const gt_squeue *q) {
  return !q->exists || q->idle || q->answers > 0 || is_mute(q);
}

/* ---- query and answer ---- */

/* Starts a query.  The output has one line per component or array element; error messages use the
   same pipe. */
static void ask(gt_squeue *q, const char *jobs) {
  char *words[] = {"squeue", "-h", "-r", "-o", "%i|%T|%r|%S", "-j", (char *)jobs, NULL};
  int ends[2];
  size_t n = strlen(jobs) + 3;
  q->asked_at = gt_now();
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  int failed = posix_spawnp(&q->child, words[0], &actions, NULL, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed) {
    close(ends[0]);
    q->child = 0;
    q->mute = true;
    return;
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  q->from_child = ends[0];
  q->filled = 0;
  gt_free(q->asking);
  q->asking = GT_NEW_ARRAY(char, n);
  snprintf(q->asking, n, ",%s,", jobs);
}

/* True for an answer, including one in the form of an error: squeue reports a single job that the
   controller no longer knows as invalid. */
static bool is_answer(int status, const char *text) {
  return (WIFEXITED(status) && WEXITSTATUS(status) == 0) || strstr(text, "Invalid job id") != NULL;
}

static void end_question(gt_squeue *q) {
  int status = 0;
  waitpid(q->child, &status, 0);
  close(q->from_child);
  q->child = 0;
  q->coming[q->filled] = '\0';
  q->mute = !is_answer(status, q->coming);
  if (q->mute) return;
  char *text = q->answer;
  q->answer = q->coming;
  q->coming = text;
  gt_free(q->asked);
  q->asked = q->asking;
  q->asking = NULL;
  q->answers++;
  q->answer_of = q->asked_at;
}

/* Reads the answer; any excess over the buffer is dropped. */
static void take_in(gt_squeue *q) {
  for (;;) {
    char beyond[512];
    bool room = q->filled + 1 < ROOM;
    ssize_t n = room ? read(q->from_child, q->coming + q->filled, ROOM - 1 - q->filled)
                     : read(q->from_child, beyond, sizeof beyond);
    if (n > 0 && room) q->filled += (size_t)n;
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n == 0) {
      end_question(q);
      return;
    }
    break;
  }
  if (gt_now() - q->asked_at < PATIENCE) return;
  give_up(q);
  q->mute = true;
}

void gt_squeue_poll(gt_squeue *q, const char *jobs) {
  if (!q->exists) return;
  q->idle = !*jobs;
  if (q->child != 0)
    take_in(q);
  else if (*jobs && gt_now() - q->asked_at >= EVERY)
    ask(q, jobs);
}

/* ---- parsing ---- */

static bool is_one_of(const char *word, const char *const *words) {
  for (; *words; words++)
    if (strcmp(word, *words) == 0) return true;
  return false;
}

/* Returns the state.  A job whose dependency can no longer be satisfied stays pending forever: it
   counts as gone. */
static squeue_state state_of(const char *word, const char *reason) {
  static const char *const gone[] = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE",
                                     "FAILED",    "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY",
                                     "REVOKED",   "TIMEOUT",   NULL};
  static const char *const pending[] = {
      "PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD", NULL};
  if (is_one_of(word, gone) || strcmp(reason, "DependencyNeverSatisfied") == 0) return SQUEUE_GONE;
  return is_one_of(word, pending) ? SQUEUE_PENDING : SQUEUE_RUNNING;
}

/* True if `id` is the job or a part of it: "12" matches "12", "12_3" and "12+1"; "12_3" matches
   only itself. */
static bool names(const char *id, const char *job) {
  size_t n = strlen(job);
  if (strncmp(id, job, n) != 0) return false;
  return id[n] == '\0' || ((id[n] == '_' || id[n] == '+') && !strchr(job, '_'));
}

static void take_field(char *to, size_t size, char **from) {
  char *field = strsep(from, "|");
  snprintf(to, size, "%s", field && strcmp(field, "N/A") != 0 ? field : "");
}

/* Takes one line.  Of several components or elements, the one with the most advanced state counts;
   of pending ones the first. */
static void take_line(char *line, const char *job, squeue_job *out) {
  squeue_job found = {0};
  take_field(found.job, sizeof found.job, &line);
  if (!line || !names(found.job, job)) return;
  take_field(found.word, sizeof found.word, &line);
  take_field(found.reason, sizeof found.reason, &line);
  take_field(found.start, sizeof found.start, &line);
  found.state = state_of(found.word, found.reason);
  if (found.state > out->state || !out->word[0]) *out = found;
}

/* Finds the job "12" (any of its components or array elements), or "15_3"; UNKNOWN: it was not part
   of the last answered query. */
static void find(const gt_squeue *q, const char *job, squeue_job *out) {
  char key[48];
  *out = (squeue_job){.state = SQUEUE_UNKNOWN};
  snprintf(out->job, sizeof out->job, "%s", job);
  snprintf(key, sizeof key, ",%s,", job);
  if (!q->asked || !strstr(q->asked, key)) return;
  out->state = SQUEUE_GONE;
  char *copy = gt_strdup(q->answer), *rest = copy;
  for (char *line; (line = strsep(&rest, "\n"));) take_line(line, job, out);
  gt_free(copy);
}

/* ---- the state of a run ---------------------------------------------------------------------- */

/* Finds a running job, else a pending one, else the newest. */
static void find_job(const gt_squeue *queue, const char *path, squeue_job *best, bool *submitted) {
  char jobs[GT_WATCH_JOBS][40];
  size_t n = gt_watch_jobs(path, jobs, GT_WATCH_JOBS);
  *best = (squeue_job){.state = SQUEUE_UNKNOWN};
  *submitted = n > 0;
  for (size_t i = n; i-- > 0;) {
    squeue_job job;
    find(queue, jobs[i], &job);
    if (i == n - 1 || job.state > best->state ||
        (job.state == best->state && job.state == SQUEUE_PENDING))
      *best = job;
  }
}

/* A job is gone if two answers in a row do not have it: that leaves time for the run's last output
   to become visible in the file system. */
static void notice_gone(gt_watched *w, const gt_squeue *queue, const squeue_job *job) {
  if (job->state != SQUEUE_GONE)
    w->gone_at = 0;
  else if (w->gone_at == 0)
    w->gone_at = answers(queue);
  w->gone = w->gone_at > 0 && (w->hasty || answers(queue) > w->gone_at);
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
static void put_job(char *text, size_t size, const squeue_job *job) {
  char reason[80] = "", start[64] = "";
  if (job->reason[0] && strcmp(job->reason, "None") != 0 && job->state != SQUEUE_RUNNING)
    snprintf(reason, sizeof reason, " (%s)", job->reason);
  if (job->start[0] && job->state == SQUEUE_PENDING && !is_past(job->start))
    snprintf(start, sizeof start, ", may start at %s", job->start);
  snprintf(text, size, "job %s %s%s%s", job->job, job->word, reason, start);
}

/* Writes the record, then a semicolon and the state in Slurm. */
static void put_both(gt_watched *w, const char *between, const squeue_job *job, size_t width) {
  char words[256];
  gt_follow_text(w->follow, w->text, sizeof w->text, width);
  put_job(words, sizeof words, job);
  size_t used = strlen(w->text);
  snprintf(w->text + used, sizeof w->text - used, "; %s%s", between, words);
}

static void judge_lost(gt_watched *w, const gt_run_view *v, const squeue_job *job, size_t width) {
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
static void judge_pending(gt_watched *w, const gt_run_view *v, const squeue_job *job,
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
                          const squeue_job *job, bool submitted) {
  const char *why = !exists(queue)   ? "; there is no squeue here to ask"
                    : is_mute(queue) ? "; squeue does not answer"
                                     : "";
  size_t used = strlen(w->text);
  if (v->state == GT_RUN_NOTHING && submitted && !gt_squeue_is_settled(queue))
    w->text[0] = '\0';
  else if (v->state == GT_RUN_NOTHING && submitted)
    snprintf(w->text, sizeof w->text, "job %s was submitted, nothing from it yet%s", job->job, why);
  else if (v->state == GT_RUN_STOPPED && job->state == SQUEUE_UNKNOWN)
    snprintf(w->text + used, sizeof w->text - used, "; waits to be resumed%s",
             submitted ? why : "");
}

static bool is_alive(const gt_run_view *v) {
  return v->state == GT_RUN_RUNNING || v->state == GT_RUN_ENDING;
}

/* Judges a run that is not finished according to its files: the state from squeue takes
   precedence. */
static void judge_by_queue(gt_watched *w, const gt_run_view *v, const gt_squeue *queue,
                           const squeue_job *job, bool submitted, size_t width) {
  bool alive = is_alive(v);
  /* a run with heartbeats was started by hand */
  if (w->gone && (!alive || v->quiet_s > fmax(10, 2 * v->every_s)))
    judge_lost(w, v, job, width);
  else if (job->state == SQUEUE_PENDING)
    judge_pending(w, v, job, width);
  else if (alive)
    return;
  else if (job->state != SQUEUE_RUNNING)
    judge_unasked(w, v, queue, job, submitted);
  else if (v->state == GT_RUN_STOPPED)
    put_both(w, "", job, width);
  else
    snprintf(w->text, sizeof w->text, "job %s %s, nothing from it yet", job->job, job->word);
}

static void judge_run(gt_watched *w, const gt_squeue *queue, size_t width) {
  const gt_run_view *v = gt_follow_poll(w->follow);
  squeue_job job;
  bool submitted;
  find_job(queue, w->path, &job, &submitted);
  notice_gone(w, queue, &job);
  w->line.every_s = is_alive(v) && !v->silent ? v->every_s : 60;
  gt_follow_text(w->follow, w->text, sizeof w->text, width);
  if (v->state == GT_RUN_DONE || (v->state == GT_RUN_STOPPED && v->code != (int)GT_STOPPED)) {
    w->line.over = true;
    w->code = v->state == GT_RUN_DONE ? GT_OK : (gt_status)v->code;
  } else if (!is_alive(v) || v->quiet_s >= age(queue)) /* no output since the query */
    judge_by_queue(w, v, queue, &job, submitted, width);
  w->line.phase = 1 + 8 * (int)v->state + 64 * (int)job.state + 512 * w->line.over +
                  1024 * v->silent + 2048 * v->has_progress + 4096 * (int)v->starts;
}

/* Judges the directory of a sweep by its jobs only: elements that have not begun. */
static void judge_sweep(gt_watched *w, const gt_squeue *queue) {
  squeue_job job;
  bool submitted;
  find_job(queue, w->path, &job, &submitted);
  w->line.over = job.state != SQUEUE_PENDING && gt_squeue_is_settled(queue);
  w->code = GT_OK;
  w->line.every_s = 60;
  w->line.phase = (int)job.state;
  w->text[0] = '\0';
  if (job.state != SQUEUE_PENDING) return;
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
