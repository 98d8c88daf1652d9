/* sim: simulates a run under the virtual clock, with or without its arithmetic.  All regions run in
   one process with the PS, strategies, pipelines, outboxes and link model of a real run; without
   arithmetic, vectors have no data.  Layer 8.  No MPI.  Local. */
#pragma once

#include "geotrain/exchange.h"
#include "geotrain/job.h"
#include "geotrain/link.h"
#include "geotrain/pipe_job.h"
#include "geotrain/ps_of_job.h"
#include "geotrain/record.h"

/* The arithmetic of a simulation that also trains: the data of all regions and a model for each
   worker. */
typedef struct gt_sim_arithmetic gt_sim_arithmetic;

typedef struct {
  const gt_job *job;
  const gt_links *links;      /* of the job */
  size_t parameters, buffers; /* of the model, in floats */
  const gt_view *tensors;     /* of the parameters, for the codec; NULL: no codec */
  size_t ntensors;
  const int64_t *samples;   /* nregions: training samples of each region, 1 or more */
  const int64_t *held;      /* nregions: held back for validation; NULL: none */
  const gt_ps_tests *tests; /* nregions; NULL: no region has a test set */
  const gt_pipe_job *pipe;  /* the pipeline, or its first replica; NULL: no pipeline */
  /* all replicas of the pipeline (gt_job_replicas entries); NULL: at most one */
  gt_pipe_job **pipes;
  const gt_routes *routes; /* of exchanges; NULL: those of the job (gt_routes_of) */
  /* NULL: nothing is computed.  Used by one simulation at a time. */
  gt_sim_arithmetic *arithmetic;
  /* Called for each decision of a region's strategy, as gt_ps_host.decided, with the number of the
     region's steps so far.  NULL: decisions are not reported. */
  void (*decided)(const gt_job *job, size_t region, int64_t step, const char *what,
                  const char *choice, const char *why);
} gt_sim_spec;

typedef struct gt_sim gt_sim;

/* Simulates the job from its first step to its end.  Times, messages and bytes are those of
   `geotrain train --clock virtual` on the same job, to the nanosecond, except for the length of the
   regions' results at the end, which contain accuracies (docs/virtual-clock.md).  Everything in
   spec is borrowed until gt_sim_close. *out is written on success.  GT_ERR_JOB: compute has no
   times for a region; a pair of regions has no latency; a pipeline sends labels, or has too few
   samples for a step.  GT_ERR_LIMIT: no message can arrive any more (an outage without end). */
gt_status gt_sim_run(gt_sim **out, const gt_sim_spec *spec);
void gt_sim_close(gt_sim *sim);

typedef struct {
  /* time of the whole run, until the lead ends, with evaluations and the last checkpoint */
  double virtual_s;
  double train_s; /* until every region has finished its training and all messages are applied */
  /* GT_OK; GT_ERR_LIMIT: limits.wan_bytes stopped it; GT_ERR_LOST, GT_STOPPED: it has ended after a
     loss, and cannot be resumed because a region does not return (all regions; a minority) */
  gt_status code;
  int64_t samples, steps;
  int64_t messages, bytes_sent, bytes_other; /* sums over all links, as in gt_link_result */
  int64_t events;                            /* number of simulated events */
} gt_sim_totals;
void gt_sim_get_totals(const gt_sim *sim, gt_sim_totals *totals);

/* The final model of a simulation with arithmetic, as the summary of a run has it. */
typedef struct {
  gt_ps_score score; /* over all test sets; NaN: none, or each region keeps its own model */
  char params_sha256[GT_SHA256_HEX];
  size_t bad; /* the first region whose own model is not finite; nregions: none */
} gt_sim_model;
/* Returns it; owned by the simulation. */
const gt_sim_model *gt_sim_model_of(const gt_sim *sim);

/* Returns the figures of the run's faults, except goodput and not_trained; all 0 without faults. */
gt_fault_result gt_sim_faults_of(const gt_sim *sim);
/* Simulates the job with and without its faults.  Writes all figures of the faults, and the totals
   of the undisturbed run.  Errors: as gt_sim_run. */
gt_status gt_sim_run_faults(gt_sim **out, gt_fault_result *faults, gt_sim_totals *undisturbed,
                            const gt_sim_spec *spec);
/* Returns the result as in summary.json; accuracies are NaN. */
void gt_sim_region(const gt_sim *sim, size_t region, gt_region_result *result);
void gt_sim_link(const gt_sim *sim, size_t from, size_t to, gt_link_result *result);
/* Returns the bytes sent on each link (nregions x nregions, row: sender); the caller frees them. */
double *gt_sim_link_bytes(const gt_sim *sim);

/* ---- forecasts ------------------------------------------------------------------------------- */

/* Traffic of a link in a whole run. */
typedef struct {
  /* as in gt_link_result; whole numbers if the whole run was simulated */
  double messages, bytes_sent, bytes_other;
} gt_sim_traffic;

/* The reason why the error of a forecast can exceed a twentieth of its time.  GT_SIM_KNOWN: it
   cannot, the error is known to be smaller. */
typedef enum {
  GT_SIM_KNOWN,
  GT_SIM_TRACES,      /* links follow traces */
  GT_SIM_OUTAGES,     /* links have outages */
  GT_SIM_EVALUATIONS, /* regions evaluate while they train */
  GT_SIM_SAMPLE       /* few exchanges were simulated, or they differ */
} gt_sim_doubt;

typedef struct {
  double virtual_s; /* of the whole run, as in gt_sim_totals */
  double train_s;   /* as in gt_sim_totals */
  /* possible error of virtual_s, because only a part of the run was simulated; 0: all was */
  double error_s;
  double part;      /* the longest share of the training that was simulated; 1: all */
  gt_sim_doubt why; /* GT_SIM_KNOWN: error_s is a twentieth of virtual_s or less */
  gt_sim_totals totals;
  gt_region_result *regions; /* nregions, of the whole run; owned */
  gt_sim_traffic *links;     /* nregions x nregions, row: sender; owned */
  size_t nregions;
} gt_sim_forecast;

/* Predicts the figures of the whole run.  If a full simulation would take more than about
   max_events events (0: no limit), simulates shares of the training, of which the longest takes
   most of these events, and extrapolates from the differences between them.  Parts of a
   mini-batch's time are those of the longest share.  A job with limits.wan_bytes or a pipeline is
   simulated in full, and every job without its faults.  The caller closes *out.  Errors: as
   gt_sim_run. */
gt_status gt_sim_predict(gt_sim_forecast *out, const gt_sim_spec *spec, int64_t max_events);
/* Returns a clause that gives the reason; "" for GT_SIM_KNOWN. */
const char *gt_sim_doubt_text(gt_sim_doubt why);
void gt_sim_forecast_close(gt_sim_forecast *forecast);
