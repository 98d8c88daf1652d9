/* Start and end of a rank: initialisation, finalisation, and the watchdog for calls that block. */
#include "internal.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- watchdog ---- */

#define TICK_S 1.0

static struct {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  bool running, done;
  char name[96];
  double limit_s;
  gt_status code;
} watch;

/* Waits until the watched call ends, one tick at most. */
static void wait_tick(double tick_s) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  gt_ns ns = until.tv_nsec + gt_from_seconds(tick_s);
  until.tv_sec += (time_t)(ns / GT_SECOND);
  until.tv_nsec = (long)(ns % GT_SECOND);
  pthread_cond_timedwait(&watch.wake, &watch.lock, &until);
}

/* Counts ticks instead of comparing times: time in which the process was stopped must not count. */
static void *watch_main(void *unused) {
  (void)unused;
  pthread_mutex_lock(&watch.lock);
  double left_s = watch.limit_s;
  while (!watch.done && left_s > 0.0) {
    double tick_s = left_s < TICK_S ? left_s : TICK_S;
    gt_ns before = gt_now();
    wait_tick(tick_s);
    double passed_s = gt_seconds(gt_now() - before);
    left_s -= passed_s < tick_s ? passed_s : tick_s;
  }
  if (!watch.done) {
    gt_log(GT_LOG_ERROR, "waited %g s in %s", watch.limit_s, watch.name);
    _exit((int)watch.code);
  }
  pthread_mutex_unlock(&watch.lock);
  return NULL;
}

void gt_watch_begin(const char *name, double limit_s, gt_status code) {
  gt_watch_end();
  snprintf(watch.name, sizeof watch.name, "%s", name);
  watch.limit_s = limit_s;
  watch.code = code;
  watch.done = false;
  pthread_mutex_init(&watch.lock, NULL);
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&watch.wake, &attr);
  pthread_condattr_destroy(&attr);
  /* Signals are for the main thread. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&watch.thread, NULL, watch_main, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error)
    gt_panic(GT_ERR_FAULT, "the watchdog thread for %s could not be started: %s", name,
             strerror(error));
  watch.running = true;
}

void gt_watch_end(void) {
  if (!watch.running) return;
  pthread_mutex_lock(&watch.lock);
  watch.done = true;
  pthread_cond_signal(&watch.wake);
  pthread_mutex_unlock(&watch.lock);
  pthread_join(watch.thread, NULL);
  pthread_cond_destroy(&watch.wake);
  pthread_mutex_destroy(&watch.lock);
  watch.running = false;
}

/* ---- start and end ---- */

static void end_for_bug(const char *text) {
  gt_panic(GT_ERR_FAULT, "broken invariant: %s", text);
}

/* Over TCP, Open MPI asks the receiver before it sends a message larger than 64 KiB.  Between
   regions that costs a round trip per frame; frames sent together also end together, so the link is
   then idle for that time.  The higher limit sends a frame of the gateway (1 MiB and its header) at
   once.  Values set by the user are kept. */
static void prefer_eager_frames(void) {
  (void)setenv("OMPI_MCA_btl_tcp_eager_limit", "1114112", 0);
  /* number of such buffers allocated at a time */
  (void)setenv("OMPI_MCA_btl_tcp_free_list_inc", "4", 0);
}

void gt_net_start(double limit_s) {
  gt_on_bug(end_for_bug);
  gt_launch_follow();
  /* Writing to a connection closed by a lost peer must return an error with a message, not end the
     process. */
  (void)signal(SIGPIPE, SIG_IGN);
  prefer_eager_frames();
  gt_watch_begin("MPI_Init", limit_s, GT_ERR_LOST);
  int provided = MPI_THREAD_SINGLE;
  int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  gt_watch_end();
  gt_mpi_check(error, "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED)
    gt_panic(GT_ERR_JOB, "this MPI gives thread level %d; MPI_THREAD_FUNNELED (%d) is needed",
             provided, MPI_THREAD_FUNNELED);
  GT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  GT_MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
}

/* MPI_Finalize waits for all ranks and may spin: they first meet in a barrier that sleeps. */
void gt_net_finalize(double limit_s) {
  MPI_Request request;
  GT_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request));
  gt_wait_all(&request, 1, "the end of the other ranks", limit_s, NULL, NULL);
  gt_watch_begin("MPI_Finalize", limit_s, GT_ERR_LOST);
  GT_MPI(MPI_Finalize());
  gt_watch_end();
}
