/* Jobs from texts, and their links. */
#pragma once

#include "geotrain/job.h"
#include "tests.h"

/* Returns the job of a text, made as by printf; errors name it "job.yaml". */
__attribute__((format(printf, 1, 2))) static inline gt_job *job_as(const char *format, ...) {
  static char text[65536];
  gt_job *job = NULL;
  va_list args;
  va_start(args, format);
  const int size = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  assert_true(size >= 0 && (size_t)size < sizeof text);
  must(gt_job_parse(&job, "job.yaml", text));
  return job;
}

/* Returns the link from region a to region b; NULL: unlimited. */
static inline const gt_job_link *link_between(const gt_job *job, size_t a, size_t b) {
  const gt_job_link **table = gt_job_link_table(job), *link = table[a * job->nregions + b];
  gt_free(table);
  return link;
}
