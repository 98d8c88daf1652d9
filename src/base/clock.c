/* Clock: monotonic nanoseconds since the process started its clock, and precise sleeps. */
#include "geotrain/base.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>

#define TIMER_SLACK_NS 1000UL

static int64_t monotonic(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * GT_SECOND + (int64_t)t.tv_nsec;
}

gt_ns gt_now(void) {
  static atomic_int_least64_t start = -1;
  int64_t now = monotonic(), first = atomic_load_explicit(&start, memory_order_relaxed);
  if (first >= 0) return now - first;
  /* The first caller starts the clock.  A thread that loses the race uses the winner's start, which
     can be slightly later than its own `now`. */
  if (atomic_compare_exchange_strong(&start, &first, now)) return 0;
  return now > first ? now - first : 0;
}

/* The kernel's default timer slack of 50 us is longer than the first waits of a backoff. */
void gt_sleep(gt_ns ns) {
  static _Thread_local bool slack_is_set;
  if (!slack_is_set) {
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0UL, 0UL, 0UL);
    slack_is_set = true;
  }
  if (ns <= 0) return;
  struct timespec left = {.tv_sec = (time_t)(ns / GT_SECOND), .tv_nsec = (long)(ns % GT_SECOND)};
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) continue;
}
