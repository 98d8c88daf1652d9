/* The lock of a run directory, which at most one run can use at a time.  RUN_DIR/<region>.lock
   names the process that holds it; a thread of that process increments a counter in it.  Created
   with link(2), which is atomic on every file system, including those without locks. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The holder increments the counter every BEAT_S seconds; on other hosts, a lock whose counter has
   stood still for STALE_S is stale. */
#define BEAT_S  5
#define STALE_S (4 * BEAT_S)

/* The holder of a run directory. */
typedef struct {
  char host[64], boot[40], space[40]; /* space: of process ids */
  long pid;
  unsigned long long began; /* of the process, in clock ticks since the boot */
  char job[80];             /* Slurm's cluster and job; "-": none */
  long restart;             /* of that job */
  char since[24];
} holder;

struct gt_ckpt_lock {
  char path[PATH_MAX];
  holder own;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t closing;
  bool ends, lost; /* under the mutex */
};

/* ---- this process ---------------------------------------------------------------------------- */

static void first_line(char *text, size_t size, const char *path) {
  FILE *file = fopen(path, "re");
  text[0] = '\0';
  if (file && !fgets(text, (int)size, file)) text[0] = '\0';
  if (file) fclose(file);
  text[strcspn(text, "\n")] = '\0';
  if (!text[0]) snprintf(text, size, "-");
}

/* Reads the process's start time (field 22 of /proc/PID/stat) and state (field 3), counted after
   the name, which can contain any character.  False: no such process, or /proc hides it. */
static bool look_at(long pid, unsigned long long *began, char *state) {
  char path[64], line[1024];
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  first_line(line, sizeof line, path);
  char *at = strrchr(line, ')');
  if (!at || at[1] != ' ') return false;
  *state = at[2];
  for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
  if (at) *began = strtoull(at + 1, NULL, 10);
  return at != NULL;
}

static void name_word(char *text, size_t size, const char *value) {
  snprintf(text, size, "%s", value && *value ? value : "-");
  for (char *c = text; *c; c++)
    if (*c <= ' ' || *c == 0x7f) *c = '_';
}

static holder this_process(void) {
  holder h = {.pid = (long)getpid()};
  char host[256] = "", job[160] = "";
  const char *id = getenv("SLURM_JOB_ID"), *cluster = getenv("SLURM_CLUSTER_NAME"),
             *restart = getenv("SLURM_RESTART_COUNT");
  const time_t now = time(NULL);
  struct tm local;
  gethostname(host, sizeof host - 1);
  name_word(h.host, sizeof h.host, host);
  first_line(h.boot, sizeof h.boot, "/proc/sys/kernel/random/boot_id");
  const ssize_t length = readlink("/proc/self/ns/pid", h.space, sizeof h.space - 1);
  if (length <= 0) snprintf(h.space, sizeof h.space, "-");
  char state;
  if (!look_at(h.pid, &h.began, &state)) h.began = 0;
  if (id) snprintf(job, sizeof job, "%.60s/%.60s", cluster ? cluster : "", id);
  name_word(h.job, sizeof h.job, job);
  h.restart = restart ? strtol(restart, NULL, 10) : 0;
  strftime(h.since, sizeof h.since, "%Y-%m-%dT%H:%M:%S", localtime_r(&now, &local));
  return h;
}

/* ---- the file -------------------------------------------------------------------------------- */

#define FORMAT                                                                                     \
  "beat %020lld host %s boot %s space %s pid %ld began %llu job %s restart %ld since %s\n"
#define BEAT_AT 5 /* offset of the counter */

static bool parse(const char *text, holder *h, long long *beat) {
  return sscanf(text,
                "beat %lld host %63s boot %39s space %39s pid %ld began %llu job %79s restart %ld "
                "since %23s",
                beat, h->host, h->boot, h->space, &h->pid, &h->began, h->job, &h->restart,
                h->since) == 9;
}

typedef enum { FREE, HELD, UNREADABLE } reading;

static reading read_lock(const char *path, holder *h, long long *beat) {
  char text[512];
  if (access(path, F_OK) != 0) return FREE;
  first_line(text, sizeof text, path);
  return parse(text, h, beat) ? HELD : UNREADABLE;
}

static bool same_process(const holder *a, const holder *b) {
  return a->pid == b->pid && a->began == b->began && strcmp(a->boot, b->boot) == 0 &&
         strcmp(a->space, b->space) == 0;
}

static gt_status failed(const char *path, const char *what) {
  return GT_FAIL(GT_ERR_CKPT, "%s: the lock of the run directory cannot be %s: %s", path, what,
                 strerror(errno));
}

/* Writes this process's lock under another name. */
static gt_status write_own(const gt_ckpt_lock *l, char *other, size_t size) {
  char text[512];
  int length = snprintf(other, size, "%s.XXXXXX", l->path);
  if (length < 0 || (size_t)length >= size) return failed(l->path, "named");
  const int fd = mkstemp(other);
  if (fd < 0) return failed(other, "written");
  length = snprintf(text, sizeof text, FORMAT, 0LL, l->own.host, l->own.boot, l->own.space,
                    l->own.pid, l->own.began, l->own.job, l->own.restart, l->own.since);
  const bool whole = write(fd, text, (size_t)length) == length && fchmod(fd, 0644) == 0;
  close(fd);
  if (whole) return GT_OK;
  unlink(other);
  return failed(other, "written");
}

/* ---- taking ---------------------------------------------------------------------------------- */

typedef enum { RUNS, ENDED, UNSEEN } sight;

/* Finds out what this host can tell about the holder's process. */
static sight see(const holder *h, const holder *own) {
  unsigned long long began;
  char state;
  if (strcmp(h->boot, own->boot) != 0 || strcmp(h->space, own->space) != 0) return UNSEEN;
  if (look_at(h->pid, &began, &state))
    return began == h->began && state != 'Z' && state != 'X' ? RUNS : ENDED;
  return kill((pid_t)h->pid, 0) != 0 && errno == ESRCH ? ENDED : UNSEEN;
}

/* True if the holder is an earlier start of this requeued job: Slurm has ended its processes. */
static bool own_job(const holder *h, const holder *own) {
  return strcmp(h->job, "-") != 0 && strcmp(h->job, own->job) == 0 && own->restart > h->restart;
}

/* True if the holder still runs: at once if its process is visible from here, else if its counter
   changes within STALE_S by this host's clock. */
static bool lives(const gt_ckpt_lock *l, const holder *h, long long beat) {
  if (own_job(h, &l->own)) return false;
  const sight seen = see(h, &l->own);
  if (seen != UNSEEN) return seen == RUNS;
  for (int s = 0; s < STALE_S; s++) {
    holder now;
    long long later;
    gt_sleep(GT_SECOND);
    const reading r = read_lock(l->path, &now, &later);
    if (r == FREE) return false;
    if (r == HELD && (later != beat || !same_process(&now, h))) return true;
  }
  return false;
}

static gt_status in_use(const char *run_dir, const holder *h) {
  return GT_FAIL(
      GT_ERR_JOB,
      "run directory %s is in use by process %ld on %s since %s%s%s; wait for it to end, "
      "or use another --run-dir",
      run_dir, h->pid, h->host, h->since, strcmp(h->job, "-") ? ", job " : "",
      strcmp(h->job, "-") ? h->job : "");
}

/* Replaces a stale lock by `other`.  If two processes do this at the same time, the later one gets
   the lock. */
static gt_status replace(const gt_ckpt_lock *l, const char *other, const char *run_dir) {
  holder now;
  long long beat;
  if (rename(other, l->path) != 0) return failed(l->path, "taken over");
  gt_sleep(GT_SECOND / 5);
  if (read_lock(l->path, &now, &beat) == HELD && !same_process(&now, &l->own))
    return in_use(run_dir, &now);
  return GT_OK;
}

static gt_status take(const gt_ckpt_lock *l, const char *other, const char *run_dir) {
  holder h;
  long long beat;
  if (link(other, l->path) == 0) {
    unlink(other);
    return GT_OK;
  }
  if (errno != EEXIST && errno != EPERM && errno != ENOTSUP && errno != ENOSYS)
    return failed(l->path, "made");
  if (read_lock(l->path, &h, &beat) == HELD && lives(l, &h, beat)) return in_use(run_dir, &h);
  return replace(l, other, run_dir);
}

/* ---- holding --------------------------------------------------------------------------------- */

/* Increments the counter; false: another process has taken the lock.  A disk error does not end the
   run. */
static bool count(const gt_ckpt_lock *l, long long beat) {
  holder now;
  long long old;
  char number[24];
  const reading r = read_lock(l->path, &now, &old);
  if (r == HELD && !same_process(&now, &l->own)) return false;
  const int fd = r == HELD ? open(l->path, O_WRONLY | O_CLOEXEC) : -1;
  snprintf(number, sizeof number, "%020lld", beat);
  if (fd >= 0 && pwrite(fd, number, 20, BEAT_AT) != 20)
    gt_log(GT_LOG_WARN, "%s cannot be written: %s", l->path, strerror(errno));
  if (fd >= 0) close(fd);
  return true;
}

static void *hold(void *context) {
  gt_ckpt_lock *l = context;
  pthread_mutex_lock(&l->mutex);
  for (long long beat = 1; !l->ends && !l->lost; beat++) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += BEAT_S;
    if (pthread_cond_timedwait(&l->closing, &l->mutex, &until) != ETIMEDOUT) continue;
    pthread_mutex_unlock(&l->mutex);
    const bool own = count(l, beat);
    pthread_mutex_lock(&l->mutex);
    l->lost = !own;
  }
  pthread_mutex_unlock(&l->mutex);
  return NULL;
}

static int start_thread(gt_ckpt_lock *l) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  const int error = pthread_create(&l->thread, NULL, hold, l);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

gt_status gt_ckpt_lock_take(gt_ckpt_lock **out, const char *run_dir, const char *region) {
  char other[PATH_MAX];
  *out = NULL;
  gt_ckpt_lock *l = GT_NEW(gt_ckpt_lock);
  l->own = this_process();
  const int length = snprintf(l->path, sizeof l->path, "%s/%s.lock", run_dir, region);
  gt_status status = length > 0 && (size_t)length < sizeof l->path
                         ? write_own(l, other, sizeof other)
                         : failed(run_dir, "named");
  if (status == GT_OK && (status = take(l, other, run_dir)) != GT_OK) unlink(other);
  if (status == GT_OK) {
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->closing, NULL);
    const int error = start_thread(l);
    if (error != 0)
      status =
          GT_FAIL(GT_ERR_FAULT, "the thread of the lock cannot be started: %s", strerror(error));
  }
  if (status == GT_OK)
    *out = l;
  else
    gt_free(l);
  return status;
}

bool gt_ckpt_lock_lost(gt_ckpt_lock *lock) {
  pthread_mutex_lock(&lock->mutex);
  const bool lost = lock->lost;
  pthread_mutex_unlock(&lock->mutex);
  return lost;
}

void gt_ckpt_lock_release(gt_ckpt_lock *lock) {
  if (!lock) return;
  holder now;
  long long beat;
  pthread_mutex_lock(&lock->mutex);
  lock->ends = true;
  pthread_cond_signal(&lock->closing);
  pthread_mutex_unlock(&lock->mutex);
  pthread_join(lock->thread, NULL);
  if (read_lock(lock->path, &now, &beat) == HELD && same_process(&now, &lock->own))
    unlink(lock->path);
  pthread_mutex_destroy(&lock->mutex);
  pthread_cond_destroy(&lock->closing);
  gt_free(lock);
}
