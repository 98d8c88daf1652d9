/* The number of random cases of a test: all with GEOTRAIN_TESTS=full, as `tests/run.sh --full` sets
   it, else as many as the quick run has time for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline bool all_cases(void) {
  const char *tests = getenv("GEOTRAIN_TESTS");
  return tests && strcmp(tests, "full") == 0;
}

static inline size_t cases(size_t all, size_t quick) {
  return all_cases() ? all : quick;
}

/* Returns the distance of the events at which a test stops or crashes a world.  A test of several
   worlds begins at event `number of the world % stride(quick)`, so that the quick run tries every
   offset. */
static inline int64_t stride(int64_t quick) {
  return all_cases() ? 1 : quick;
}
