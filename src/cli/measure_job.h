/* Choices of methods for a job's products, measured on this machine. */
#ifndef GEOTRAIN_CLI_MEASURE_JOB_H
#define GEOTRAIN_CLI_MEASURE_JOB_H

#include "geotrain/job.h"

/* Times each method of computing the products of every region's batch, and writes the choices to
   the file `out`, or prints them if it is NULL.  GT_ERR_JOB, GT_ERR_DATA: the job, its data, or the
   file. */
gt_status gt_cli_measure_job(const gt_job *job, const char *out);

#endif
