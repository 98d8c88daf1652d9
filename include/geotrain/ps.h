/* ps: the parameter server of a region as the body of an event loop: batch numbers, gradients,
   outboxes, rounds, drain.  Layer 7.  No MPI, no files, no clock: a run over MPI, a test and a
   simulation drive the same code by events, each with its time, and implement its host table. */
#ifndef GEOTRAIN_PS_H
#define GEOTRAIN_PS_H

#include "geotrain/data.h"
#include "geotrain/pipe_job.h"
#include "geotrain/pipe_region.h"
#include "geotrain/sync.h"

typedef struct gt_ps gt_ps;

/* ---- orders and pushes ----------------------------------------------------------------------- */

typedef enum { GT_PS_TRAIN = 1, GT_PS_EVAL, GT_PS_KEEPALIVE } gt_ps_order_kind;
typedef struct {
  gt_ps_order_kind kind;
  int64_t first;  /* TRAIN: batch number; EVAL: first sample */
  int64_t count;  /* EVAL: samples */
  gt_ns wan_wait; /* of the wait before this order: time held by the strategy */
  /* to be sent along; data NULL and n 0: none, the worker has them from an earlier order */
  gt_vec params, buffers;
  /* TRAIN, local plane `sync`: the number of the step (1 and up, never again the same), and how
     many workers take part in it: 0 to workers - 1. `async`: 0 and 0. */
  int64_t step;
  size_t workers;
  bool common; /* the parameters are the same in all orders of this step that say so */
} gt_ps_order;

typedef struct {
  int64_t samples, correct;
  double loss_sum;
  /* Of an evaluation with a ranking: the numbers that it has of its samples; borrowed for the call.
     NULL: there is none. */
  const float *scores;
  gt_ns compute, wait;
  bool nonfinite;
  /* Of a gradient: the worker's buffers after its batch, as many as the PS has, borrowed like the
     gradient; NULL: there are none.  The region's buffers become their mean by samples (`sync`), or
     those of the worker whose gradient was applied last (`async`: each is an exponential mean of
     recent batches, and remains one).  Changes that exchanges made to the region's buffers since
     the worker's order are applied to them too. */
  const float *buffers;
} gt_ps_push;

/* What an evaluation found, of all its samples. */
typedef struct {
  double loss, accuracy;  /* means; the loss of two classes is the log loss */
  double auc;             /* NaN: labels are not two, or all test samples have the same one */
  double recall20, mrr20; /* of a recommender (gt_ranks); else NaN */
  double perplexity;      /* of a text: e^loss; 0: not of texts */
} gt_ps_score;

/* ---- host ------------------------------------------------------------------------------------ */

/* a step, a message that arrived, a message to send */
typedef enum { GT_WORK_UPDATE, GT_WORK_APPLY, GT_WORK_COPY } gt_ps_work;
typedef enum {
  GT_NOTE_EVAL,
  GT_NOTE_NONFINITE,
  GT_NOTE_DONE,
  GT_NOTE_PEER_DONE,
  GT_NOTE_ROUND,
  GT_NOTE_COMPLETE
} gt_ps_note;

typedef struct {
  void *ctx;
  gt_outbox_gateway gateway; /* gt_ps_departed follows what it is sent of data */
  /* Bytes of the training's traffic that have left, over all resumes, including parts of messages
     that were cut off.  NULL: those of the messages that have left. */
  double (*left)(void *ctx);
  /* A number that changes while this region's workers or disk work or its bytes travel; asked for
     with each heartbeat.  NULL: gt_ps_still is 0. */
  uint64_t (*advance)(void *ctx);
  /* The local plane: the order's vectors are borrowed for the call; `taken`: the worker's gradient
     buffer is free. */
  void (*order)(void *ctx, size_t worker, const gt_ps_order *order);
  void (*taken)(void *ctx, size_t worker);
  /* Local plane `sync`, when the gradients of all workers of the step are there and finite: their
     gt_vec_mean by samples, if workers have already formed it; else NULL, and the PS calls
     gt_vec_mean itself.  Borrowed until the next order.  NULL host function: never. */
  const float *(*reduced)(void *ctx);
  /* Take the region's checkpoint of this round now (gt_ps_save among the rest); gt_ps_written
     follows. */
  void (*checkpoint)(void *ctx, int64_t round);
  /* The round is whole in every region: older rounds may be removed, if whole_sound of the view
     says so. */
  void (*whole)(void *ctx, int64_t round);
  /* Something for the record; a and b by kind. EVAL: steps and samples of the region when it began;
     the view's last_eval has it.  NONFINITE: how many, worker (-1 - p: it was a message of region
     p, or with stages, where a step counts once, a gradient of region p).  PEER_DONE: peer, its
     steps.  DONE: steps, 0.  ROUND: round, stop code. */
  void (*note)(void *ctx, gt_ps_note note, double a, double b);
  /* The strategy's decision, for the record (gt_sync_host.decided).  NULL: it is not recorded. */
  void (*decided)(void *ctx, const char *what, const char *choice, const char *why);
  /* With `passes`, in place of `order` for a step or an evaluation: the worker, which is idle,
     begins this pass of the order; `begins`: it is the first one.  cost: its time by the job, 0:
     none is given.  gt_ps_pass_done follows. */
  void (*pass)(void *ctx, size_t worker, const gt_ps_order *order, const gt_pipe_order *pass,
               bool begins, gt_ns cost);
  /* All passes of the order are made: the worker gives its gradient or scores, which takes no
     time. */
  void (*end)(void *ctx, size_t worker, const gt_ps_order *order);
  /* Sends a packet to another region.  cookie: 0, or gt_ps_departed follows. */
  void (*packet)(void *ctx, size_t region, const gt_frame_header *head,
                 const gt_pipe_packet *packet, uint64_t cookie);
  /* Puts a packet that has arrived into its landing buffer, of this shape; its bytes are not 0. */
  void (*land)(void *ctx, size_t shape, const gt_pipe_packet *packet, const void *payload);
  /* Returns a time of the peer's clock by this PS's clock.  NULL: there is one clock. */
  gt_ns (*here)(void *ctx, size_t peer, gt_ns theirs);
  /* Ends the run because of what workers or other regions did; does not return. */
  void (*fault)(void *ctx, gt_status status);
  /* A clock for durations of the PS's own work (update, encode); NULL: they count as zero. */
  gt_ns (*clock)(void *ctx);
  /* The PS has just done this part (1: all) of this work; under a virtual clock, `clock` advances
     by its cost.  NULL: the clock advances by itself. */
  void (*work)(void *ctx, gt_ps_work work, double part);
} gt_ps_host;

/* ---- what a PS is made of -------------------------------------------------------------------- */

/* Exactly one is > 0; epochs of the region's own part.  With stages: steps, or minutes. */
typedef struct {
  double epochs;
  int64_t steps, samples;
  double minutes;
} gt_ps_interval;

typedef struct {
  size_t offset, count;
} gt_ps_range;

/* A stage of a pipeline that this region holds.  Workers [first_worker, first_worker + workers)
   compute the gradient of the same ranges of the flat arrays, each over its share of the samples.
   Their gradients and buffers lie where they lie in the flat arrays; nothing but the stage's ranges
   is read of them.  Parameters that two stages have get the sum of the gradients of both: where the
   stages have as many workers, worker by worker before the mean, and worker i of both has the same
   samples.  No three stages have the same parameters, no two the same buffers. */
typedef struct {
  size_t first_worker, workers;
  const gt_ps_range *params, *buffers; /* borrowed like the rest of the spec */
  size_t nparams, nbuffers;
  bool counts; /* the samples of its workers are the region's samples (the first stage) */
  bool judges; /* its pushes have the loss and the correct predictions (the last stage) */
} gt_ps_stage;

/* A region of one of several replicas of a pipeline.  The regions of its replica, its stage group,
   make steps in lockstep; those that hold the same stages, its replicas, keep their parameters
   equal by a strategy, which gets the gradient of every step of the stage group, and may hold the
   region before the next one.  Everything is borrowed. */
typedef struct {
  const size_t *stage_group; /* regions of the replica, ascending, the region itself too */
  size_t nstage_group;
  const size_t *replicas; /* with the same stages, the region itself too; 0: one pipeline */
  size_t nreplicas;
  const double *weights; /* nreplicas, sum 1 */
  const gt_sync_ops *strategy;
  gt_sync_options options;
} gt_ps_groups;

typedef struct {
  /* nworkers 0: the region only aggregates; it makes no steps, its weight and order.n are 0 */
  size_t nregions, self, nworkers;
  bool local_async;
  const gt_sync_ops *strategy;
  /* The regions hold the stages of one pipeline, these here; every region has workers, and every
     worker is of one stage.  0: every worker computes the gradient of all parameters.  With stages
     - the strategy is gt_ps_lockstep, the local plane `sync`, and `ranking` NULL;
     - a step takes one batch number, the same for all workers of all regions; TRAIN begins the
       worker's passes of the step, and carries all parameters and buffers of the region;
     - until, eval_every and checkpoint_every (or minutes) are given in steps, the same in all
       regions (gt_ps_set_stages);
     - a step that is not finite in one region is dropped in all, and counts;
     - an evaluation is one order to every worker of every region, of all test samples: a forward
       pass of the pipeline.  The workers of stages that judge answer for their share of the
       samples, what the others answer is not used.  A region without such a stage has no score. */
  const gt_ps_stage *stages;
  size_t nstages;
  gt_ps_groups groups; /* all 0: the regions hold one replica */
  /* Micro-batches of a step of stages.  Workers push sums over them, of which the step takes the
     mean, once all sums are added: so the bits do not depend on where a tied head is.  0: 1. */
  size_t micro_batches;
  /* With stages, and gradients that are clipped by the norm of all stages: as in gt_sync_env. */
  const size_t *owners;
  size_t nowners;
  /* With stages: the pipeline whose passes the PS orders (host.pass).  NULL: the host makes a step
     of one order. */
  const gt_pipe_job *passes;
  /* With stages: the order of passes follows the network, beginning with the plan of this pipeline.
     NULL: it stays. */
  const gt_pipe_job *adapts;
  gt_topology topology;
  const size_t *next; /* as in gt_exchange_spec; of a pipeline, among the replicas of each region */
  const size_t *workers; /* likewise */
  size_t piece;          /* likewise; 0: a frame */
  const double *weights; /* nregions */
  gt_sync_options options;
  /* Most messages that may wait to leave on a link; that may have left and not be acknowledged. */
  size_t outbox, window;
  gt_vec params, grads, buffers;
  gt_optim *optim;
  gt_order order;
  gt_ps_interval until, eval_every, checkpoint_every;
  /* 0 test samples: no evaluation; a chunk is one order, 0: gt_ps_eval_chunk */
  size_t test_samples, eval_chunk;
  /* What evaluations find from one number for every sample, and the labels for it; NULL: nothing,
     and the labels are not needed. */
  const gt_ranking *ranking;
  const int32_t *test_labels;
  /* Of a model of texts: the ids that a sample predicts, which accuracy counts; 0: one label. */
  size_t predictions;
  gt_vec snapshot,
      /* as large as params and buffers, for evaluations alone: there the model lies that workers
         score while the live one continues */
      snapshot_buffers;
  int nonfinite_limit;
  double wan_bytes_limit; /* of all regions together; 0: none.  With stages:
                             activations count, too, and the run ends after the step that goes
                             beyond it */
  gt_ns heartbeat, keepalive;
  int64_t round; /* the checkpoint round that was last taken anywhere; 0: none */
  gt_ps_host host;
} gt_ps_spec;

/* The strategy of regions that hold the stages of one pipeline, if there is one replica of it; no
   job names it.  The regions make every step together, or together drop it. */
extern const gt_sync_ops gt_ps_lockstep;

/* Creates a PS.  Everything in spec is borrowed but the struct itself, which is copied. */
gt_ps *gt_ps_create(const gt_ps_spec *spec);
void gt_ps_close(gt_ps *ps);
const gt_ps_spec *gt_ps_made_of(const gt_ps *ps);

/* ---- events ---------------------------------------------------------------------------------- */

/* Call when training starts or continues; a worker gets work when it is ready. */
void gt_ps_start(gt_ps *ps, gt_ns now);
void gt_ps_ready(gt_ps *ps, size_t worker, gt_ns now);
/* Takes a worker's gradient of its batch; grads are borrowed until host.taken(worker). */
void gt_ps_gradient(gt_ps *ps, size_t worker, const gt_ps_push *push, float *grads, gt_ns now);
/* Call when a worker has made a pass, with the time of its work and of the wait before it. */
void gt_ps_pass_done(gt_ps *ps, size_t worker, gt_ns compute, gt_ns wait);
/* Takes a worker's answer to an EVAL order. */
void gt_ps_evaluated(gt_ps *ps, size_t worker, const gt_ps_push *push, gt_ns now);
/* Call when a message has arrived (not REPORT, MODEL, HELLO, BYE); an activation or a gradient of
   one only with `passes`.  GT_ERR_FAULT: the job does not allow it (kind, codec, range, length,
   numbers); the text says what was found and expected, and the message had no effect. */
gt_status gt_ps_message(gt_ps *ps, size_t peer, const gt_frame_header *head, const void *payload,
                        gt_ns now);
void gt_ps_departed(gt_ps *ps, size_t peer, uint64_t cookie, gt_ns now);
/* Returns how it has changed so far, in words: "the order of passes changed 2 times; 8
   micro-batches, from step 31 on 16", of one of several replicas behind its name.  Empty without
   `adapts`, and in regions that do not hold the first stage.  Returns text. */
char *gt_ps_changes_text(const gt_ps *ps, char *text, size_t size);
/* Reports within host.checkpoint that the state of this round is not sound, that is, not worth
   resuming from; the other regions are told. */
void gt_ps_round_unsound(gt_ps *ps);
/* Call when this region's file of the round is durable. */
void gt_ps_written(gt_ps *ps, int64_t round, gt_ns now);
/* Call when time passes: heartbeats, timers, intervals by minutes. */
void gt_ps_tick(gt_ps *ps, gt_ns now);
/* Call when the run ends: no more passes are ordered, and what still comes of them is ignored. */
void gt_ps_end(gt_ps *ps);
gt_ns gt_ps_next(const gt_ps *ps);
/* Asks for a stop with a checkpoint: `code` is what the run ends with (75, 6). */
void gt_ps_stop(gt_ps *ps, gt_status code, gt_ns now);
/* Opens a last round; the lead calls it when everything is settled.  With stages, in the middle of
   a step: as soon as the step is made. */
void gt_ps_last_round(gt_ps *ps, gt_ns now);
/* Evaluates a model (params, buffers borrowed for the call) on all workers; `done` is called with
   its score (borrowed).  Not while an evaluation is under way. */
void gt_ps_evaluate(gt_ps *ps, gt_vec params, gt_vec buffers,
                    void (*done)(void *ctx, const gt_ps_score *score), void *ctx, gt_ns now);

#endif
