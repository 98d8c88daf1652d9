/* pipe: the search for a job's pipeline: cuts, workers of stages, order of regions, micro-batches.
   Layer 5.  Computes with numbers only, without MPI, files or clock.  All functions are local; the
   same problem gives the same result.  SpanTrain searches by a performance model but gives no
   equation: model and search are geotrain's (docs/pipeline-search.md). */
#pragma once

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

/* Operations between two neighboring cuts of the model.  In `work`, times and bytes are those of a
   sample on a worker of power 1; a sample in flight uses activation_bytes + kept_bytes. */
typedef struct {
  gt_pipe_operation work;
  bool samples;      /* reads the samples: belongs to the first span */
  bool alone;        /* its stage has one worker */
  size_t owner;      /* a piece whose weights it uses, and whose region it shares; SIZE_MAX: none */
  double tied_bytes; /* memory for these weights if the owner is in another stage */
} gt_pipe_piece;

typedef struct {
  size_t workers;      /* numbered; stages take them in this order; 0: the region is excluded */
  const double *power; /* of each worker, > 0 */
  double memory_bytes; /* of a worker; INFINITY: no limit */
  /* From a stage's last pass to its next step: local_s + update_s x (its share of the
     parameters). */
  double local_s, update_s;
  double fixed_s; /* constant time of each pass */
  bool starts;    /* can have the first stage, which reads the data */
} gt_pipe_site;

/* All borrowed. */
typedef struct {
  const gt_pipe_piece *pieces;
  size_t npieces;
  const gt_pipe_site *sites; /* regions */
  size_t nsites;
  /* nsites regions; ignores `region`. */
  const gt_pipe_wan *wan;
  size_t batch;         /* samples of a step */
  size_t micro_batches; /* micro-batches of a step; 0: any number that divides the batch */
  gt_pipe_kind kind;    /* GT_PIPE_AUTO: the best of all, in pipelines of one and of two chunks */
  bool labels_stay;     /* the last span is in the first stage's region */
  bool idle;            /* the last workers of regions can remain unused */
  /* Memory of a worker: `copies` times its parameters, scratch_bytes per sample of its share of a
     micro-batch, and for each such sample in flight activation_bytes and kept_bytes. */
  double copies, scratch_bytes;
  uint64_t seed; /* of schedules */
  double effort; /* factor on the number of simulated passes; 0: 1 */
} gt_pipe_search_problem;

/* ---- the result ------------------------------------------------------------------------------ */

typedef struct {
  size_t stages, chunks, micro_batches;
  gt_pipe_place *places; /* of each stage */
  size_t *ends;          /* stages x chunks: first piece after the span */
  double bound_s;        /* lower bound for the period of any schedule */
  double period_s;       /* of its schedule, in simulated time */
} gt_pipe_found;

typedef struct {
  gt_pipe_found *found; /* best first; at least one */
  size_t n;
  /* Number of candidates, of distinct feasible ones that fit into memory, and of simulations. */
  size_t looked, fitting, simulated;
} gt_pipe_search_result;

/* Number of candidates with the lowest bounds that are simulated. */
#define GT_PIPE_SIMULATED ((size_t)50)
/* Maximum number of pipelines in a result. */
#define GT_PIPE_FOUND ((size_t)8)

/* Searches for a pipeline.  GT_ERR_JOB: one sentence names an invalid number, or the reason why no
   pipeline is feasible; *out is then empty.  The caller closes *out. */
gt_status gt_pipe_search_run(gt_pipe_search_result *out, const gt_pipe_search_problem *problem);
void gt_pipe_search_close(gt_pipe_search_result *result);

/* Returns the period of a pipeline with given places, ends and counts, with the best of `variants`
   variants if the kind is auto; INFINITY: no schedule fits into memory. */
double gt_pipe_search_period(const gt_pipe_search_problem *problem, const gt_pipe_found *found,
                             size_t variants);

/* ---- of a job -------------------------------------------------------------------------------- */

/* The problem of a job with pipeline.stages: auto.  `problem` points to the other members.  Times
   are those of pipe_job.h; if the job's profile has a fleet with times of operations, times, powers
   and memory are the fleet's. */
typedef struct {
  gt_pipe_search_problem problem;
  const gt_job *job; /* borrowed */
  gt_graph *graph;   /* the model, sizes only */
  gt_span *spans;    /* operations of each piece */
  gt_pipe_piece *pieces;
  gt_pipe_site *sites;
  double **power; /* of each site */
  gt_pipe_job_wan wan;
  bool by_fleet;       /* times are the fleet's */
  double memory_bytes; /* minimum over the fleet's workers, if the job has no limit; otherwise 0 */
} gt_pipe_job_search;

/* Opens a search. model: as for gt_pipe_job_open.  The caller closes *out; after an error it is
   NULL.  GT_ERR_JOB: compute does not describe a region, ranks are auto, or the fleet does not
   match the job and its model. */
gt_status gt_pipe_job_search_open(gt_pipe_job_search **out, const gt_job *job,
                                  const gt_graph_spec *model);
void gt_pipe_job_search_close(gt_pipe_job_search *search);
/* Writes the settings of a pipeline, in the form of --set: pipeline.stages, micro_batches,
   schedule, and memory if it is the fleet's.  Returns their number; the caller frees each. */
#define GT_PIPE_SETS ((size_t)4)
size_t gt_pipe_job_search_sets(const gt_pipe_job_search *search, const gt_pipe_found *found,
                               char *sets[GT_PIPE_SETS]);
