/* Waits that sleep between tests, each with a name and a deadline; and panic. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

/* ---- panic: MPI failed, a deadline passed or an invariant is broken -------------------------- */

#define ABORT_LIMIT_S 30

static bool mpi_is_up(void) {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  if (begun) MPI_Finalized(&ended);
  return begun && !ended;
}

static struct {
  void (*tell)(void *context, gt_status code);
  void *context;
} panic;

void gt_on_panic(void (*tell)(void *context, gt_status code), void *context) {
  panic.tell = tell;
  panic.context = context;
}

void gt_panic(gt_status code, const char *format, ...) {
  char text[GT_ERROR_TEXT_MAX];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  gt_log(GT_LOG_ERROR, "%s", text);
  void (*tell)(void *, gt_status) = panic.tell;
  panic.tell = NULL;
  if (tell) tell(panic.context, code);
  if (mpi_is_up()) {
    signal(SIGALRM, SIG_DFL);
    alarm(ABORT_LIMIT_S);     /* MPI_Abort itself can block if the launcher has died */
    gt_sleep(GT_SECOND / 10); /* MPICH's launcher drops output that it has not read by then */
    MPI_Abort(MPI_COMM_WORLD, (int)code);
  }
  _exit((int)code);
}

void gt_mpi_check(int error, const char *call) {
  if (error == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS)
    snprintf(text, sizeof text, "MPI error %d", error);
  gt_panic(GT_ERR_LOST, "%s failed: %s", call, text);
}

/* ---- waits ----------------------------------------------------------------------------------- */

#define FIRST_SLEEP ((gt_ns)20000)
#define AT_ONCE     ((gt_ns)2000000)  /* an idle PS answers within this time */
#define LIKELY      ((gt_ns)50000000) /* after this, 1 ms more does not matter */
/* between two tests; any longer time means that the process was stopped */
#define LONGEST_ROUND GT_SECOND

/* for a rank that has waited for a second: the wake-ups of many such ranks would add up */
#define LONG_NAP ((gt_ns)4000000)

void gt_backoff_reset(gt_backoff *b) {
  *b = (gt_backoff){0};
}

gt_ns gt_backoff_next(gt_backoff *b, gt_ns cap, gt_ns until) {
  gt_ns nap = b->slept / 256 < LONG_NAP ? b->slept / 256 : LONG_NAP;
  if (cap == GT_BACKOFF_IDLE && nap > cap) cap = nap;
  b->sleep = b->sleep ? 2 * b->sleep : FIRST_SLEEP;
  if (b->sleep > cap) b->sleep = cap;
  gt_ns ns = b->sleep;
  if (until != GT_NEVER) {
    gt_ns left = until - gt_now();
    if (left < ns) ns = left;
  }
  b->slept += ns > 0 ? ns : 0;
  return ns;
}

void gt_backoff_sleep(gt_backoff *b, gt_ns cap, gt_ns until) {
  gt_sleep(gt_backoff_next(b, cap, until));
}

void gt_patience_start(gt_patience *p, double limit_s) {
  *p = (gt_patience){.limit = gt_from_seconds(limit_s), .seen = gt_now()};
}

bool gt_patience_over(gt_patience *p) {
  gt_ns now = gt_now(), passed = now - p->seen;
  p->seen = now;
  p->waited += passed < LONGEST_ROUND ? passed : LONGEST_ROUND;
  return p->waited > p->limit;
}

gt_ns gt_patience_cap(const gt_patience *p) {
  if (p->waited < AT_ONCE) return FIRST_SLEEP;
  return p->waited < LIKELY ? GT_BACKOFF_BUSY : GT_BACKOFF_IDLE;
}

void gt_wait_requests(MPI_Request *requests, int n, const gt_peers_wait *wait) {
  gt_backoff backoff = {0};
  gt_patience patience;
  gt_patience_start(&patience, wait->limit_s);
  for (;;) {
    int done = 0;
    GT_MPI(MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE));
    if (done) return;
    if (gt_patience_over(&patience))
      gt_panic(GT_ERR_LOST, "waited %.0f s for %s", gt_seconds(patience.waited), wait->what);
    if (wait->progress) wait->progress(wait->context);
    if (!wait->sleeps) gt_backoff_sleep(&backoff, gt_patience_cap(&patience), GT_NEVER);
  }
}

void gt_wait_all(MPI_Request *requests, int n, const char *what, double limit_s,
                 void (*progress)(void *), void *context) {
  gt_wait_requests(requests, n, &(gt_peers_wait){what, limit_s, progress, context, false});
}
