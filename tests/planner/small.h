/* A job of one region, the least that a plan can have. */
#pragma once

#include "jobs.h"
#include "tests.h"

/* more: further regions as YAML lines, then other sections. */
static inline gt_job *small_job(const char *more) {
  return job_as("name: test\nmodel: {name: dummy}\ndata: {path: d.h5}\ntrain: {until: {epochs: 1}, "
                "optimizer: {lr: 0.02}}\nregions:\n  - {name: east, ranks: 2}\n%s",
                more);
}

static inline void near(double found, double needed) {
  if (!(fabs(found - needed) <= 1e-12 * fabs(needed)))
    fail_msg("%.17g instead of %.17g", found, needed);
}
