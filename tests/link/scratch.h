/* scratch: trace files for one test program, in a folder that is removed at its end. */
#pragma once

#include "geotrain/link.h"
#include "tests.h"

#include <unistd.h>

#define MS (GT_SECOND / 1000)

static char scratch_folder[] = "/tmp/geotrain-link-XXXXXX";

static inline int scratch_make(void **state) {
  (void)state;
  return mkdtemp(scratch_folder) ? 0 : -1;
}

static inline int scratch_remove(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -r '%s'", scratch_folder);
  return system(command);
}

/* Writes a file and returns its path, which the next call overwrites. */
static inline const char *scratch_file(const char *name, const void *data, size_t size) {
  static char path[64];
  snprintf(path, sizeof path, "%s/%s", scratch_folder, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
  return path;
}

static inline gt_link_trace *trace_of(const char *name, const char *text) {
  gt_link_trace *trace;
  if (gt_link_trace_read(&trace, scratch_file(name, text, strlen(text))) != GT_OK)
    fail_msg("%s", gt_error_text());
  return trace;
}

/* Creates a CSV trace of n random intervals; in some of them nothing passes. */
static inline gt_link_trace *random_trace(gt_rng *rng, size_t n, bool latency) {
  char text[8192] = "";
  double t = 0;
  for (size_t i = 0; i <= n; i++) {
    double rate = gt_rng_below(rng, 4) ? 1e5 * (double)(1 + gt_rng_below(rng, 500)) : 0;
    if (i == 0) rate = 1e7; /* something passes */
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%.9g,%.9g,", t, rate);
    used = strlen(text);
    if (latency && gt_rng_below(rng, 2))
      snprintf(text + used, sizeof text - used, "%g ms\n", 1.0 + (double)gt_rng_below(rng, 80));
    else
      snprintf(text + used, sizeof text - used, "\n");
    t += 0.001 * (double)(1 + gt_rng_below(rng, 700));
  }
  return trace_of("random.csv", text);
}
