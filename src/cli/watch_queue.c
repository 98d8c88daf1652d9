/* Queries the state of jobs with squeue.  The query runs in its own process and is abandoned after
   a while, so that a controller that does not answer never blocks the caller. */
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVERY (5 * GT_SECOND)
/* the query is then abandoned; squeue itself waits long for a controller that is down */
#define PATIENCE (30 * GT_SECOND)
#define SLOW     (8 * GT_SECOND)   /* the caller then learns that there is no answer */
#define ROOM     ((size_t)1 << 18) /* bytes of an answer */

extern char **environ;

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

bool gt_squeue_exists(const gt_squeue *q) {
  return q->exists;
}

int64_t gt_squeue_answers(const gt_squeue *q) {
  return q->answers;
}

double gt_squeue_age(const gt_squeue *q) {
  return gt_seconds(gt_now() - q->answer_of);
}

bool gt_squeue_is_mute(const gt_squeue *q) {
  return q->mute || (q->child != 0 && gt_now() - q->asked_at > SLOW);
}

bool gt_squeue_is_settled(const gt_squeue *q) {
  return !q->exists || q->idle || q->answers > 0 || gt_squeue_is_mute(q);
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
static gt_squeue_state state_of(const char *word, const char *reason) {
  static const char *const gone[] = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE",
                                     "FAILED",    "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY",
                                     "REVOKED",   "TIMEOUT",   NULL};
  static const char *const pending[] = {
      "PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD", NULL};
  if (is_one_of(word, gone) || strcmp(reason, "DependencyNeverSatisfied") == 0)
    return GT_SQUEUE_GONE;
  return is_one_of(word, pending) ? GT_SQUEUE_PENDING : GT_SQUEUE_RUNNING;
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
static void take_line(char *line, const char *job, gt_squeue_job *out) {
  gt_squeue_job found = {0};
  take_field(found.job, sizeof found.job, &line);
  if (!line || !names(found.job, job)) return;
  take_field(found.word, sizeof found.word, &line);
  take_field(found.reason, sizeof found.reason, &line);
  take_field(found.start, sizeof found.start, &line);
  found.state = state_of(found.word, found.reason);
  if (found.state > out->state || !out->word[0]) *out = found;
}

void gt_squeue_find(const gt_squeue *q, const char *job, gt_squeue_job *out) {
  char key[48];
  *out = (gt_squeue_job){.state = GT_SQUEUE_UNKNOWN};
  snprintf(out->job, sizeof out->job, "%s", job);
  snprintf(key, sizeof key, ",%s,", job);
  if (!q->asked || !strstr(q->asked, key)) return;
  out->state = GT_SQUEUE_GONE;
  char *copy = gt_strdup(q->answer), *rest = copy;
  for (char *line; (line = strsep(&rest, "\n"));) take_line(line, job, out);
  gt_free(copy);
}
