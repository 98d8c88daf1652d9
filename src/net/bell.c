/* Bells: a rank wakes a sleeping rank on its node at once, instead of when its sleep ends. */
#include "internal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(gt_bell) == 64, "a line of its own");

void gt_bell_ring(gt_bell *bell) {
  if (!bell) return;
  atomic_fetch_add_explicit(&bell->rings, 1, memory_order_release);
  syscall(SYS_futex, &bell->rings, FUTEX_WAKE, 1, NULL, NULL, 0);
}

uint32_t gt_bell_heard(gt_bell *bell) {
  return bell ? atomic_load_explicit(&bell->rings, memory_order_acquire) : 0;
}

/* Ends early after a ring since `heard`, after a signal, or on a system without futexes: the caller
   tests again in any case. */
void gt_bell_sleep(gt_bell *bell, uint32_t heard, gt_ns ns) {
  if (!bell) {
    gt_sleep(ns);
    return;
  }
  if (ns <= 0) return;
  struct timespec left = {.tv_sec = (time_t)(ns / GT_SECOND), .tv_nsec = (long)(ns % GT_SECOND)};
  syscall(SYS_futex, &bell->rings, FUTEX_WAIT, heard, &left, NULL, 0);
}
