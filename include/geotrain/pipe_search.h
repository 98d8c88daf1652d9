/* pipe: the search for a job's pipeline: cuts, workers of stages, regions' order, micro-batches.
   Layer 5.  Numbers only: no MPI, no files, no clock.  Everything is local; the same problem gives
   the same result.  SpanTrain searches by a performance model and gives no equation: model and
   search are geotrain's (docs/pipeline-search.md). */
#ifndef GEOTRAIN_PIPE_SEARCH_H
#define GEOTRAIN_PIPE_SEARCH_H

#include "geotrain/pipe_job.h"

/* ---- the problem ----------------------------------------------------------------------------- */

/* Times are those of one sample on a device of power 1. */
typedef struct {
  double forward_s, input_s, weight_s; /* forward, backward-input, backward-weight */
  double parameter_bytes;
  double activation_bytes; /* of a sample, held from forward to the end of backward-input */
  double kept_bytes;       /* of a sample, held for backward-weight */
  double cut_bytes;        /* of a sample, sent to this operation if a stage begins here */
} gt_pipe_operation;

/* Operations between two neighbouring places where the model can be cut.  Of `work`, times and
   bytes are those of a sample on a worker of power 1, and kept_bytes counts with
   activation_bytes. */
typedef struct {
  gt_pipe_operation work;
  bool samples;      /* reads the samples: the first span must have it */
  bool alone;        /* a stage that has it has one worker */
  size_t owner;      /* a piece whose weights it uses, so both are in one region; SIZE_MAX: none */
  double tied_bytes; /* memory for these weights, if the owner is on another stage */
} gt_pipe_piece;

typedef struct {
  size_t workers;      /* each has a number, and stages take them in this order; 0: left out */
  const double *power; /* of each worker, > 0 */
  double memory_bytes; /* of a worker; INFINITY: any */
  /* From a stage's last pass to its next step: local_s, and its share of the parameters times
     update_s. */
  double local_s, update_s;
  double fixed_s; /* of each pass, beside the time of its samples */
  bool starts;    /* it may have the first stage, which reads the data */
} gt_pipe_site;

/* All borrowed. */
typedef struct {
  const gt_pipe_piece *pieces;
  size_t npieces;
  const gt_pipe_site *sites; /* regions */
  size_t nsites;
  /* nsites regions; `region` is not read. */
  const gt_pipe_wan *wan;
  size_t batch;         /* samples of a step */
  size_t micro_batches; /* micro-batches of a step; 0: any number that divides the batch */
  gt_pipe_kind kind;    /* GT_PIPE_AUTO: the best of all, in pipelines of one and of two chunks */
  bool labels_stay;     /* the last span is in the first stage's region */
  bool idle;            /* the last workers of regions may stay unused */
  /* Memory of a worker: copies of its parameters, scratch_bytes for each sample of its share of a
     micro-batch, and of each such sample in flight activation_bytes and kept_bytes. */
  double copies, scratch_bytes;
  uint64_t seed; /* of schedules */
  double effort; /* so many times the usual number of simulated passes; 0: 1 */
} gt_pipe_search_problem;

/* ---- the result ------------------------------------------------------------------------------ */

typedef struct {
  size_t stages, chunks, micro_batches;
  gt_pipe_place *places; /* of each stage */
  size_t *ends;          /* stages x chunks: the span ends before this piece */
  double bound_s;        /* no schedule has a lower period */
  double period_s;       /* of its schedule, in simulated time */
} gt_pipe_found;

typedef struct {
  gt_pipe_found *found; /* the best first; 1 or more */
  size_t n;
  /* Pipelines that were looked at, different ones of them that may be and fit into memory, and
     simulations. */
  size_t looked, fitting, simulated;
} gt_pipe_search_result;

/* So many of the candidates with the lowest bounds are simulated. */
#define GT_PIPE_SIMULATED ((size_t)50)
/* The most pipelines of a result. */
#define GT_PIPE_FOUND ((size_t)8)

/* Searches for a pipeline.  GT_ERR_JOB: one sentence names the number that is invalid, or says why
   there is no pipeline; *out is then empty.  The caller closes *out. */
gt_status gt_pipe_search_run(gt_pipe_search_result *out, const gt_pipe_search_problem *problem);
void gt_pipe_search_close(gt_pipe_search_result *result);

/* Returns the period of a pipeline (places, ends and counts are given), with the best of `variants`
   variants where the kind is auto; INFINITY: no schedule fits into memory. */
double gt_pipe_search_period(const gt_pipe_search_problem *problem, const gt_pipe_found *found,
                             size_t variants);

/* ---- of a job -------------------------------------------------------------------------------- */

/* The problem of a job whose pipeline.stages is auto; `problem` points into the rest.  Times are
   those of pipe_job.h; if the job's profile has a fleet with the times of operations, its times,
   powers and memory. */
typedef struct {
  gt_pipe_search_problem problem;
  const gt_job *job; /* borrowed */
  gt_graph *graph;   /* the model, sizes only */
  gt_span *spans;    /* of each piece, its operations */
  gt_pipe_piece *pieces;
  gt_pipe_site *sites;
  double **power; /* of each site */
  gt_pipe_job_wan wan;
  bool by_fleet;       /* times are the fleet's */
  double memory_bytes; /* the least of the fleet's workers, if the job has no limit; else 0 */
} gt_pipe_job_search;

/* Opens a search.  model: as for gt_pipe_job_open.  The caller closes *out; after an error it is
   NULL.  GT_ERR_JOB: compute says nothing of a region; ranks are auto; the fleet is not that of the
   job and its model. */
gt_status gt_pipe_job_search_open(gt_pipe_job_search **out, const gt_job *job,
                                  const gt_graph_spec *model);
void gt_pipe_job_search_close(gt_pipe_job_search *search);
/* What is to be given for a pipeline that was found, in the form of --set: pipeline.stages,
   micro_batches, schedule, and memory if it is the fleet's.  Returns their number; the caller frees
   each. */
#define GT_PIPE_SETS ((size_t)4)
size_t gt_pipe_job_search_sets(const gt_pipe_job_search *search, const gt_pipe_found *found,
                               char *sets[GT_PIPE_SETS]);

#endif
