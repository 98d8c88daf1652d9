/* How a job divides its training samples over regions. */
#include <string.h>

#include "geotrain/data.h"

gt_partition gt_partition_of(const gt_job *job) {
  const char *by = job->data.partition.by;
  gt_part_kind kind = strcmp(by, "label") == 0       ? GT_PART_LABEL
                      : strcmp(by, "dirichlet") == 0 ? GT_PART_DIRICHLET
                      : strcmp(by, "file") == 0      ? GT_PART_FILE
                                                     : GT_PART_SHARES;
  return (gt_partition){kind, job->nregions, job->data.partition.shares, job->data.partition.alpha, job->seed};
}
