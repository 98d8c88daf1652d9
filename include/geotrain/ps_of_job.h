/* ps_of_job: derives the spec of a PS from a job.  Local. */
#pragma once

#include "geotrain/ps.h"

/* Returns the samples of one EVAL order: 1,024, or up to 8,192 for a large test set, so that
   sending an order and its answer is short compared with its work.  It depends only on the size of
   the test set, because sums over chunks must not depend on the region that scores them. */
size_t gt_ps_eval_chunk(size_t test_samples);

/* Returns the samples that a worker computes at a time, at most: a batch, or more in an evaluation.
   The sums of an evaluation depend on it. */
size_t gt_ps_batch_max(const gt_job *job);

/* Returns the key of the random numbers of dropout in this batch of the region. */
uint64_t gt_ps_dropout_key(const gt_job *job, size_t region, int64_t batch);

/* Checks the last batch of an epoch of the region's samples, described by `data`.  GT_ERR_JOB: it
   has fewer than `least` (gt_graph_least): a normalisation would have one value per channel, at
   which PyTorch raises an error in the middle of an epoch. */
gt_status gt_ps_check_batches(const gt_job *job, size_t region, size_t samples,
                              const gt_dataset_info *data, size_t least);

/* The test set of a region. */
typedef struct {
  size_t samples; /* 0: it has none */
  bool scores;    /* the region scores the mean model at the end of the run */
  size_t first;   /* the first region with the same set */
} gt_ps_tests;
/* Writes tests[nregions].  infos: of every region's data, all 0 for a region without data.  The
   mean model is scored once on every different test set, by the first region with this set.  With a
   strategy that sends nothing, only on the first test set.  In a pipeline no region scores here,
   because the last stage does. */
void gt_ps_tests_of(const gt_job *job, const gt_dataset_info *infos, gt_ps_tests *tests);

/* Returns the score of the mean model over all test sets: means weighted by test samples, also for
   the AUC. scores[r] is read if region r scores.  With one test set, returns its score, bit for
   bit; with none, NaN and perplexity 0. */
gt_ps_score gt_ps_scores_total(const gt_ps_score *scores, const gt_ps_tests *tests,
                               size_t nregions);

/* The inputs of a PS's spec; all is borrowed. */
typedef struct {
  const gt_job *job;
  const gt_order *order;  /* of the region; in a pipeline, with the samples of its first stage */
  const int64_t *samples; /* of every region; NULL: no round is planned */
  const gt_links *links;
  const gt_routes *routes;
  const double *weights;  /* gt_ps_weights_of */
  const size_t *workers;  /* gt_ps_workers_of */
  size_t parameters;      /* of the model, or of the region's part of it */
  const gt_view *tensors; /* of the parameters, for the codec; NULL: no codec */
  size_t ntensors;
  size_t test_samples, validation; /* the region's test samples, and those held back */
  const gt_ps_members *members;    /* tie is not read; NULL: members do not change */
  /* of the region's replica; NULL: no pipeline, and the members below are not read */
  const gt_pipe_job *pipe;
  const gt_ps_stage *stages;
  size_t nstages;
  gt_ps_groups groups;
} gt_ps_basis;
/* Returns the spec of the PS of region order->region.  The caller sets vectors, optim, ranking and
   labels, predictions, keepalive, round and host.  In a pipeline, converts intervals to steps, the
   same in all regions. */
gt_ps_spec gt_ps_spec_of(const gt_ps_basis *basis);
/* True if a run can begin with these regions, by sync.min_regions, which is given. */
bool gt_ps_may_begin(const gt_job *job, const bool *there);
/* Returns the job's codec for messages of these tensors, which are borrowed; kind GT_CODEC_NONE
   without one. */
gt_exchange_codec gt_ps_codec_of(const gt_job *job, const gt_view *tensors, size_t ntensors);
/* Returns a stage of the layout, without ranges. */
gt_ps_stage gt_ps_stage_of(const gt_pipe_layout *layout, size_t stage);
/* Checks the number of tensors of the model.  GT_ERR_JOB: sync.fragments is larger. */
gt_status gt_ps_check_fragments(const gt_job *job, size_t ntensors);
/* Checks the data of a pipeline.  GT_ERR_JOB: the region with the data of a pipeline, or of one of
   its replicas, has too few samples for a step.  samples: of every region. */
gt_status gt_ps_check_stages(const gt_job *job, const int64_t *samples);
/* Returns the groups of a region of one of several replicas of a pipeline; all 0 if it has one
   replica.  samples: of every region.  The caller closes the groups. */
gt_ps_groups gt_ps_groups_of(const gt_job *job, size_t region, const int64_t *samples);
void gt_ps_groups_close(gt_ps_groups *groups);
/* Returns the shares of the regions in means, sum 1; samples: of every region.  The caller frees
   them. */
double *gt_ps_weights_of(const gt_job *job, const int64_t *samples);
/* Returns the optimizer of a region.  Its learning-rate schedule ends with the region's steps; in
   lockstep, with those of the region with the most. */
gt_optim_spec gt_ps_optim_of(const gt_job *job, size_t region, const int64_t *samples);
/* Returns the steps of a replica of a pipeline whose first region has so many samples. */
int64_t gt_ps_stages_steps(const gt_job *job, int64_t samples);
/* Returns the optimizer of a region of a pipeline: the schedule ends with the pipeline's steps; of
   replicas in lockstep, with those of the replica with the most (samples: of every region).  clip
   is of the norm of the gradient of all regions of the pipeline (gt_optim_step_of). */
gt_optim_spec gt_ps_stages_optim_of(const gt_job *job, const gt_order *first,
                                    const int64_t *samples);

/* Returns the number of floats of a region's optimizer: the model's parameters, or 0 if another
   region's optimizer makes the steps. */
size_t gt_ps_optim_floats(const gt_job *job, size_t region, size_t parameters);

/* Checks strategy and topology.  GT_ERR_JOB: the job's strategy does not work with its topology. */
gt_status gt_ps_check_routes(const gt_job *job);
/* Returns the routes of the exchange by gt_topology_place; gt_routes_of also chooses routes for
   auto and tree.  With several replicas of a pipeline, these are routes among the replicas for each
   stage.  parameters: of the whole model.  The caller closes the routes. */
gt_routes gt_ps_routes_of(const gt_job *job, const gt_links *links, size_t parameters);
/* Writes the next hop of each of n members, as its index among them (gt_ps_host.place).  A tree is
   the star of gt_topology_place; a hub that is no member is replaced. */
void gt_ps_place_members(const gt_job *job, const gt_links *links, gt_topology topology,
                         size_t parameters, const size_t *members, size_t n, size_t *next);
/* Returns gt_routes_sound; with several replicas of a pipeline, true if the routes of every stage
   are sound. */
bool gt_ps_routes_sound(const gt_job *job, const gt_routes *routes);
/* Returns `workers` of the exchange; NULL without sync.central.  The caller frees it. */
size_t *gt_ps_workers_of(const gt_job *job);
