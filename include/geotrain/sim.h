/* sim: simulates a run under the virtual clock without its arithmetic: the same PS, strategies,
   pipelines, outboxes and link model for all regions, in one process; vectors have no data.  Layer
   8.  No MPI, no files.  Local. */
#ifndef GEOTRAIN_SIM_H
#define GEOTRAIN_SIM_H

#include "geotrain/exchange.h"
#include "geotrain/job.h"
#include "geotrain/link.h"
#include "geotrain/pipe_job.h"
#include "geotrain/ps_of_job.h"
#include "geotrain/record.h"

typedef struct {
  const gt_job *job;
  const gt_links *links;      /* of the job */
  size_t parameters, buffers; /* of the model, in floats */
  const gt_view *tensors;     /* of the parameters, for the codec; NULL: it is not used */
  size_t ntensors;
  const int64_t *samples;   /* nregions: training samples of each region, 1 or more */
  const gt_ps_tests *tests; /* nregions; NULL: no region has a test set */
  const gt_pipe_job *pipe;  /* of a job with a pipeline, its first replica; else NULL */
  gt_pipe_job **pipes;      /* of all its replicas (gt_job_replicas); NULL: one replica */
  const gt_routes *routes;  /* of exchanges; NULL: by the job (gt_routes_of) */
  /* Reports a decision of a region at run time, as gt_ps_host.decided does for its record, with the
     number of its steps.  NULL: decisions are not reported. */
  void (*decided)(const gt_job *job, size_t region, int64_t step, const char *what,
                  const char *choice, const char *why);
} gt_sim_spec;

typedef struct gt_sim gt_sim;

/* Simulates the job from its first step to its end.  Times, messages and bytes are those of
   `geotrain train --clock virtual` on the same job, to the nanosecond, except for the length of the
   regions' results at the end, which contain accuracies (docs/virtual-clock.md).  Everything in
   spec is borrowed until gt_sim_close.  GT_ERR_JOB: compute has no times for a region, a pair of
   regions has no latency, or a pipeline sends labels or lacks samples for a step; GT_ERR_LIMIT:
   nothing moves any more (an outage without end).  *out is written on success. */
gt_status gt_sim_run(gt_sim **out, const gt_sim_spec *spec);
void gt_sim_close(gt_sim *sim);

typedef struct {
  /* Of the whole run: until the lead has ended, with evaluations and the last checkpoint. */
  double virtual_s;
  double train_s; /* until every region has finished its training and all messages are applied */
  gt_status code; /* GT_OK, or GT_ERR_LIMIT: limits.wan_bytes stopped it */
  int64_t samples, steps;
  int64_t messages, bytes_sent, bytes_other; /* of all links, as in gt_link_result */
  int64_t events;                            /* handled by the simulation */
} gt_sim_totals;
void gt_sim_get_totals(const gt_sim *sim, gt_sim_totals *totals);
/* Returns the result as in summary.json; accuracies are NaN. */
void gt_sim_region(const gt_sim *sim, size_t region, gt_region_result *result);
void gt_sim_link(const gt_sim *sim, size_t from, size_t to, gt_link_result *result);

/* ---- forecasts ------------------------------------------------------------------------------- */

/* Traffic of a link in a whole run. */
typedef struct {
  /* As in gt_link_result; whole numbers if all of the run was simulated. */
  double messages, bytes_sent, bytes_other;
} gt_sim_traffic;

/* Reasons why the error of a forecast can exceed a twentieth of its time. */
typedef enum {
  GT_SIM_KNOWN,
  GT_SIM_TRACES,      /* links follow traces that are longer than the simulated stretches */
  GT_SIM_OUTAGES,     /* too many outages to simulate each */
  GT_SIM_EVALUATIONS, /* too many evaluations to simulate each */
  GT_SIM_SAMPLE       /* few exchanges were simulated, or they differ */
} gt_sim_doubt;

typedef struct {
  double virtual_s; /* of the whole run, as in gt_sim_totals */
  double train_s;   /* as in gt_sim_totals */
  /* possible error of virtual_s, because time was skipped; 0: no time was skipped */
  double error_s;
  double part;      /* share of the training that was simulated; 1: all */
  gt_sim_doubt why; /* GT_SIM_KNOWN: error_s is a twentieth of virtual_s or less */
  gt_sim_totals totals;
  gt_region_result *regions; /* nregions, of the whole run; owned */
  gt_sim_traffic *links;     /* nregions x nregions, row: sender; owned */
  size_t nregions;
} gt_sim_forecast;

/* Predicts the figures of the whole run.  If a full simulation would take more than about
   max_events events (0: no limit), only stretches of a few exchanges are simulated, and after each
   a number of similar exchanges is skipped.  Stretches are spread over the whole run, so that all
   slow changes (traces) have their share.  Rare events (an outage begins or ends, a region
   evaluates or makes its last steps) are always simulated, with their effect on the regions
   afterwards.  error_s follows from the differences between successive simulated stretches.  A job
   with limits.wan_bytes or a pipeline is simulated in full.  The caller closes *out; errors as
   gt_sim_run. */
gt_status gt_sim_predict(gt_sim_forecast *out, const gt_sim_spec *spec, int64_t max_events);
/* Returns "" for GT_SIM_KNOWN; else a clause that gives the reason. */
const char *gt_sim_doubt_text(gt_sim_doubt why);
void gt_sim_forecast_close(gt_sim_forecast *forecast);

#endif
