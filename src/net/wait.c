/* Waits: they sleep between tests, and each has a name and a deadline. */
#include "internal.h"

#define FIRST_SLEEP ((gt_ns)20000)
#define AT_ONCE     ((gt_ns)2000000)  /* an idle PS answers within this */
#define LIKELY      ((gt_ns)50000000) /* if an answer takes longer, 1 ms more does not matter */
/* between two tests; the process was stopped for any time beyond it */
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

void gt_wait_all(MPI_Request *requests, int n, const char *what, double limit_s,
                 void (*progress)(void *), void *context) {
  gt_backoff backoff = {0};
  gt_patience patience;
  gt_patience_start(&patience, limit_s);
  for (;;) {
    int done = 0;
    GT_MPI(MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE));
    if (done) return;
    if (gt_patience_over(&patience))
      gt_panic(GT_ERR_LOST, "waited %.0f s for %s", gt_seconds(patience.waited), what);
    if (progress) progress(context);
    gt_backoff_sleep(&backoff, gt_patience_cap(&patience), GT_NEVER);
  }
}
