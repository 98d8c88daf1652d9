/* scratch: traces from files. */
#pragma once

#include "geotrain/link.h"
#include "tests.h"

#define MS (GT_SECOND / 1000)

static inline gt_link_trace *trace_of(const char *name, const char *text) {
  gt_link_trace *trace;
  must(gt_link_trace_read(&trace, file_with(name, text)));
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
