/* sim: a run under the virtual clock without its arithmetic: the same PS, strategies, outboxes and link model for all regions, in one process, with vectors that have no data.
   Floor 6.  No MPI, no files.  Local. */
#ifndef GEOTRAIN_SIM_H
#define GEOTRAIN_SIM_H

#include "geotrain/job.h"
#include "geotrain/link.h"
#include "geotrain/record.h"

typedef struct {
  const gt_job *job;
  const gt_links *links;      /* of it */
  size_t parameters, buffers; /* of the model, in floats */
  const int64_t *samples;     /* nregions: training samples that each holds, 1 or more */
  size_t test_samples;        /* that worker 0 of each region evaluates on; 0: no evaluation */
} gt_sim_spec;

typedef struct gt_sim gt_sim;

/* Simulates the job from its first step to its end.  Times, messages and bytes are those of `geotrain train --clock virtual` on the same job, to the nanosecond, but for the length of the
   regions' results at the end, which holds accuracies (docs/virtual-clock.md).  Everything in spec is borrowed until gt_sim_close.  GT_ERR_JOB: a region whose compute says nothing, a pair without
   latency; GT_ERR_LIMIT: nothing moves any more (an outage without end).  *out is written on success. */
gt_status gt_sim_run(gt_sim **out, const gt_sim_spec *spec);
void gt_sim_close(gt_sim *sim);

typedef struct {
  double virtual_s; /* of the whole run: the last region's end, evaluation and last checkpoint included */
  gt_status code;   /* GT_OK, or GT_ERR_LIMIT: limits.wan_bytes stopped it */
  int64_t samples, steps;
  int64_t messages, bytes_sent, bytes_other; /* of all links, as in gt_link_result */
  int64_t events;                            /* that the simulation handled */
} gt_sim_totals;
void gt_sim_look(const gt_sim *sim, gt_sim_totals *totals);
/* As it stands in summary.json, accuracies NaN. */
void gt_sim_region(const gt_sim *sim, size_t region, gt_region_result *result);
void gt_sim_link(const gt_sim *sim, size_t from, size_t to, gt_link_result *result);

#endif
