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
  gt_ns wan_wait; /* time of the wait before this order in which the strategy held the worker */
  /* to send along; data NULL and n 0: the worker has them from an earlier order */
  gt_vec params, buffers;
  /* TRAIN, local plane `sync`: the step's number (from 1, never repeated), and its workers, 0 to
     workers - 1.  `async`: 0 and 0. */
  int64_t step;
  size_t workers;
  bool common; /* all orders of this step with this flag have the same parameters */
} gt_ps_order;

typedef struct {
  int64_t samples, correct;
  double loss_sum;
  /* Of an evaluation with a ranking: a number for each of its samples, borrowed for the call.
     NULL: no ranking. */
  const float *scores;
  gt_ns compute, wait;
  bool nonfinite;
  /* Of a gradient: the worker's buffers after its batch, as many as the PS has, borrowed like the
     gradient; NULL: none.  The region's buffers become their mean by samples (`sync`), or those of
     the worker whose gradient was applied last (`async`: each is an exponential mean of recent
     batches, and remains one).  The PS also applies changes that exchanges made to the region's
     buffers since the worker's order. */
  const float *buffers;
} gt_ps_push;

/* The result of an evaluation over all its samples. */
typedef struct {
  double loss, accuracy;  /* means; the loss of two classes is the log loss */
  double auc;             /* NaN: labels are not two, or all test samples have the same one */
  double recall20, mrr20; /* of a recommender (gt_ranks); else NaN */
  double perplexity;      /* of a text: e^loss; 0: not of texts */
} gt_ps_score;

/* ---- host ------------------------------------------------------------------------------------ */

/* a step, an arrived message, a message to send */
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
  gt_outbox_gateway gateway; /* gt_ps_departed follows each data message */
  /* Returns the sent bytes of the training's traffic, over all resumes, including parts of dropped
     messages.  NULL: those of the messages that were sent. */
  double (*left)(void *ctx);
  /* Returns a number that changes while this region's workers or disk work or its bytes travel;
     called for each heartbeat.  NULL: gt_ps_still is 0. */
  uint64_t (*advance)(void *ctx);
  /* The local plane: sends an order, whose vectors are borrowed for the call; `taken`: the worker's
     gradient buffer is free. */
  void (*order)(void *ctx, size_t worker, const gt_ps_order *order);
  void (*taken)(void *ctx, size_t worker);
  /* Local plane `sync`, when all gradients of the step are present and finite: returns their
     gt_vec_mean by samples if the workers have computed it, borrowed until the next order; else
     NULL, and the PS calls gt_vec_mean itself.  NULL host function: never. */
  const float *(*reduced)(void *ctx);
  /* Takes the region's checkpoint of this round now (with gt_ps_save); gt_ps_written follows. */
  void (*checkpoint)(void *ctx, int64_t round);
  /* The round is complete in every region: older rounds can be removed, if whole_sound of the view
     is set. */
  void (*whole)(void *ctx, int64_t round);
  /* Records an event; a and b by kind.  EVAL: steps and samples of the region at its start; its
     result is last_eval of the view.  NONFINITE: number, worker (-1 - p: a message of region p, or
     with stages, where a step counts once, a gradient of region p).  PEER_DONE: peer, its steps.
     DONE: steps, 0.  ROUND: round, stop code. */
  void (*note)(void *ctx, gt_ps_note note, double a, double b);
  /* Records a decision of the strategy (gt_sync_host.decided).  NULL: decisions are not
     recorded. */
  void (*decided)(void *ctx, const char *what, const char *choice, const char *why);
  /* With `passes`, instead of `order` for a step or an evaluation: an idle worker begins this pass
     of the order; `begins`: the first one.  cost: its time by the job; 0: none.  gt_ps_pass_done
     follows. */
  void (*pass)(void *ctx, size_t worker, const gt_ps_order *order, const gt_pipe_order *pass,
               bool begins, gt_ns cost);
  /* All passes of the order are done: the worker gives its gradient or scores, which takes no
     time. */
  void (*end)(void *ctx, size_t worker, const gt_ps_order *order);
  /* Sends a packet to another region.  cookie: 0, or gt_ps_departed follows. */
  void (*packet)(void *ctx, size_t region, const gt_frame_header *head,
                 const gt_pipe_packet *packet, uint64_t cookie);
  /* Copies an arrived packet into its landing buffer, of this shape; it has at least 1 byte. */
  void (*land)(void *ctx, size_t shape, const gt_pipe_packet *packet, const void *payload);
  /* Converts a time of the peer's clock to this PS's clock.  NULL: they share one clock. */
  gt_ns (*here)(void *ctx, size_t peer, gt_ns theirs);
  /* Ends the run because of an error of workers or other regions; does not return. */
  void (*fault)(void *ctx, gt_status status);
  /* Returns a time, for durations of the PS's own work (update, encode); NULL: they count as 0. */
  gt_ns (*clock)(void *ctx);
  /* The PS has just done this part (1: all) of this work: a virtual `clock` advances by its cost.
     NULL: the clock advances by itself. */
  void (*work)(void *ctx, gt_ps_work work, double part);
} gt_ps_host;

/* ---- the spec of a PS ------------------------------------------------------------------------ */

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
   Their gradients and buffers have the layout of the flat arrays; only the stage's ranges are read.
   Parameters shared by two stages get the sum of both gradients: if the stages have as many
   workers, worker by worker before the mean, and worker i of both has the same samples.  At most
   two stages share parameters; none share buffers. */
typedef struct {
  size_t first_worker, workers;
  const gt_ps_range *params, *buffers; /* borrowed like the rest of the spec */
  size_t nparams, nbuffers;
  bool counts; /* the samples of its workers are the region's samples (the first stage) */
  bool judges; /* its pushes have the loss and the correct predictions (the last stage) */
} gt_ps_stage;

/* A region of one of several replicas of a pipeline.  Its stage group, the regions of its replica,
   makes steps in lockstep.  Its replicas, the regions with the same stages, keep their parameters
   equal by a strategy, which gets the gradient of every step of the stage group, and can hold the
   region before the next one.  Everything is borrowed. */
typedef struct {
  const size_t *stage_group; /* regions of the replica, ascending, including this one */
  size_t nstage_group;
  const size_t *replicas; /* regions with the same stages, including this one; 0: one pipeline */
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
  /* The stages of this region, if the regions hold the stages of one pipeline; every region has
     workers, and every worker is of one stage.  0: every worker computes the gradient of all
     parameters.  With stages
     - the strategy is gt_ps_lockstep, the local plane `sync`, and `ranking` NULL;
     - a step takes one batch number, the same for all workers of all regions; TRAIN begins the
       worker's passes of the step, and carries all parameters and buffers of the region;
     - until, eval_every and checkpoint_every (or minutes) are given in steps, the same in all
       regions (gt_ps_set_stages);
     - a step that is not finite in one region is dropped in all, and counts;
     - an evaluation is one order to every worker of every region, of all test samples: a forward
       pass of the pipeline.  Only the answers of workers of stages that judge are used, each for
       its share of the samples.  A region without such a stage has no score. */
  const gt_ps_stage *stages;
  size_t nstages;
  gt_ps_groups groups; /* all 0: the regions hold one replica */
  /* Micro-batches of a step of stages.  Workers push sums over them.  The step takes the mean after
     all sums are added, so the bits do not depend on the place of a tied head.  0: 1. */
  size_t micro_batches;
  /* With stages, and gradients that are clipped by the norm of all stages: as in gt_sync_env. */
  const size_t *owners;
  size_t nowners;
  /* With stages: the pipeline whose passes the PS orders (host.pass).  NULL: the host makes a step
     of one order. */
  const gt_pipe_job *passes;
  /* With stages: the order of passes adapts to the network, starting with the plan of this
     pipeline.  NULL: it stays. */
  const gt_pipe_job *adapts;
  gt_topology topology;
  const size_t *next; /* as in gt_exchange_spec; of a pipeline, among the replicas of each region */
  const size_t *workers;   /* likewise */
  size_t piece;            /* likewise; 0: a frame */
  gt_exchange_codec codec; /* kind GT_CODEC_NONE: float32 */
  const double *weights;   /* nregions */
  gt_sync_options options;
  /* The most messages per link that are pending; the most that are in flight. */
  size_t outbox, window;
  gt_vec params, grads, buffers;
  gt_optim *optim;
  gt_order order;
  gt_ps_interval until, eval_every, checkpoint_every;
  /* 0 test samples: no evaluation; a chunk is one order, 0: gt_ps_eval_chunk */
  size_t test_samples, eval_chunk;
  /* Evaluations find these figures from one number per sample, and the labels; NULL: none, and the
     labels are not read. */
  const gt_ranking *ranking;
  const int32_t *test_labels;
  /* Of a model of texts: the ids predicted by a sample, for the accuracy; 0: one label. */
  size_t predictions;
  /* As large as params and buffers: a copy of the model for evaluations, while training
     continues. */
  gt_vec snapshot, snapshot_buffers;
  int nonfinite_limit;
  /* of all regions together; 0: none.  With stages activations count too, and the run ends after
     the step that exceeds it */
  double wan_bytes_limit;
  gt_ns heartbeat, keepalive;
  int64_t round; /* the newest checkpoint round that any region has taken; 0: none */
  gt_ps_host host;
} gt_ps_spec;

/* The strategy of regions with the stages of one pipeline, if it has one replica; no job names it.
   The regions commit every step together, or drop it together. */
extern const gt_sync_ops gt_ps_lockstep;

/* Creates a PS.  The struct spec is copied; everything it points to is borrowed. */
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
/* Call when a message has arrived (not REPORT, MODEL, HELLO, BYE); an activation or its gradient
   only with `passes`.  GT_ERR_FAULT: the job does not allow the message (kind, codec, range,
   length, numbers); the text has the values found and expected, and the message had no effect. */
gt_status gt_ps_message(gt_ps *ps, size_t peer, const gt_frame_header *head, const void *payload,
                        gt_ns now);
void gt_ps_departed(gt_ps *ps, size_t peer, uint64_t cookie, gt_ns now);
/* Writes the changes of the schedule so far, in words: "the order of passes changed 2 times; 8
   micro-batches, from step 31 on 16", with several replicas after the replica's name.  Empty
   without `adapts`, and in regions without the first stage.  Returns text. */
char *gt_ps_changes_text(const gt_ps *ps, char *text, size_t size);
/* Reports within host.checkpoint that the state of this round is not sound, that is, not worth
   resuming from, and informs the other regions. */
void gt_ps_round_unsound(gt_ps *ps);
/* Call when this region's file of the round is durable. */
void gt_ps_written(gt_ps *ps, int64_t round, gt_ns now);
/* Call when time passes: heartbeats, timers, intervals by minutes. */
void gt_ps_tick(gt_ps *ps, gt_ns now);
/* Call when the run ends: the PS orders no more passes, and ignores the results of earlier ones. */
void gt_ps_end(gt_ps *ps);
gt_ns gt_ps_next(const gt_ps *ps);
/* Asks for a stop with a checkpoint; the run ends with `code` (75, 6). */
void gt_ps_stop(gt_ps *ps, gt_status code, gt_ns now);
/* Opens a last round; the lead calls it when everything is settled.  With stages, in the middle of
   a step: as soon as the step is committed. */
void gt_ps_last_round(gt_ps *ps, gt_ns now);
/* Evaluates a model (params, buffers borrowed for the call) on all workers; `done` is called with
   its score (borrowed).  Never during an evaluation. */
void gt_ps_evaluate(gt_ps *ps, gt_vec params, gt_vec buffers,
                    void (*done)(void *ctx, const gt_ps_score *score), void *ctx, gt_ns now);

#endif
