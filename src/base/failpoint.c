/* Fail points for tests: the process dies as after a power failure, or a thread hangs as if its
   disk did not answer. */
#include "geotrain/base.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void hang(void) {
  for (;;) gt_sleep(3600 * GT_SECOND);
}

/* A run names at most one point, so one counter is enough. */
void gt_failpoint(const char *name) {
  static atomic_long passed;
  const char *armed = getenv("GEOTRAIN_FAILPOINT");
  if (!armed) return;
  size_t length = strlen(name);
  if (strncmp(armed, name, length) != 0 || (armed[length] != '\0' && armed[length] != ':')) return;
  long at = armed[length] == ':' ? strtol(armed + length + 1, NULL, 10) : 1;
  if (atomic_fetch_add(&passed, 1) + 1 != at) return;
  const char *how = strrchr(armed, ':');
  if (how && strcmp(how, ":hang") == 0) hang();
  raise(SIGKILL);
}
