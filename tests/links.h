/* The links of a job. */
#pragma once

#include "geotrain/job.h"

/* Returns the link from region a to region b; NULL: unlimited. */
static inline const gt_job_link *link_between(const gt_job *job, size_t a, size_t b) {
  const gt_job_link **table = gt_job_link_table(job), *link = table[a * job->nregions + b];
  gt_free(table);
  return link;
}
