/* Checks that a job can begin, as far as this machine can tell: `geotrain info --check`. */
#ifndef GEOTRAIN_CLI_CHECK_JOB_H
#define GEOTRAIN_CLI_CHECK_JOB_H

#include <stdio.h>

#include "geotrain/job.h"

/* Makes `train`'s checks before it begins, without ranks. Prints a line for each region to `to`,
   then a verdict unless there is an error. here: files that cannot be read here can be on other
   machines, whatever the hosts of their region, and a plan can still set the ranks. GT_ERR_JOB,
   GT_ERR_DATA, GT_ERR_CKPT (train.init): the first error. Local. */
gt_status gt_cli_check_job(const gt_job *job, bool here, FILE *to);

#endif
