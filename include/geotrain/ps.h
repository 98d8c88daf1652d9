/* ps: the parameter server of a region as the body of an event loop: batch numbers, gradients,
   outboxes, checkpoint rounds, drain.  Layer 7.  It never calls MPI, reads a clock or does I/O.  A
   run over MPI, a test and a simulation drive the same code: they pass events, each with its time,
   and implement the host table. */
#pragma once

#include "geotrain/data.h"
#include "geotrain/pipe_job.h"
#include "geotrain/pipe_region.h"
#include "geotrain/sync.h"

typedef struct gt_ps gt_ps;

/* ---- orders and pushes ----------------------------------------------------------------------- */

typedef enum { GT_PS_TRAIN = 1, GT_PS_EVAL, GT_PS_KEEPALIVE, GT_PS_VALIDATE } gt_ps_order_kind;
typedef struct {
  gt_ps_order_kind kind;
  int64_t first; /* TRAIN: batch number; else first sample, of the test or the held-back ones */
  int64_t count; /* EVAL, VALIDATE: samples */
  /* the part of the worker's wait before this order in which the strategy held it */
  gt_ns wan_wait;
  /* to send with the order; data NULL and n 0: the worker has them from an earlier order */
  gt_vec params, buffers;
  /* TRAIN, local plane `sync`: number of the step (from 1, never repeated); number of its workers,
     which are 0 to workers - 1.  `async`: both are 0. */
  int64_t step;
  size_t workers;
  bool common; /* true in several orders of a step: these have the same parameters */
} gt_ps_order;

typedef struct {
  int64_t samples, correct;
  double loss_sum;
  /* Of an evaluation with a ranking: a score of each sample, borrowed for the call.  NULL: no
     ranking. */
  const float *scores;
  gt_ns compute, wait;
  bool nonfinite;
  /* Of a gradient: the worker's buffers after its batch, as many as the PS has, borrowed like the
     gradient; NULL: none.  Local plane `sync`: the region's buffers become the mean of all workers'
     buffers, weighted by samples.  `async`: the region's buffers become those of this worker; each
     is an exponential mean of recent batches, and remains one.  Then the PS applies the changes
     that exchanges have made to the region's buffers since the worker's order. */
  const float *buffers;
} gt_ps_push;

/* The result of an evaluation over all its samples. */
typedef struct {
  double loss, accuracy;  /* means; the loss of two classes is the log loss */
  double auc;             /* NaN: labels are not two, or all test samples have the same one */
  double recall20, mrr20; /* of a recommender (gt_ranks); else NaN */
  double perplexity;      /* of a text: e^loss; 0: not of texts */
} gt_ps_score;
extern const gt_ps_score gt_ps_no_score; /* NaN, perplexity 0 */

/* ---- host ------------------------------------------------------------------------------------ */

/* Kinds of the PS's own work: a step; applying an arrived message; copying a message to send;
   encoding a message, decoding one. */
typedef enum {
  GT_WORK_UPDATE,
  GT_WORK_APPLY,
  GT_WORK_COPY,
  GT_WORK_ENCODE,
  GT_WORK_DECODE
} gt_ps_work;
typedef enum {
  GT_NOTE_EVAL,
  GT_NOTE_NONFINITE,
  GT_NOTE_DONE,
  GT_NOTE_PEER_DONE,
  GT_NOTE_ROUND,
  GT_NOTE_EXCLUDED,
  GT_NOTE_COMPLETE,
  GT_NOTE_LOST,
  GT_NOTE_EPOCH,
  GT_NOTE_JUDGED
} gt_ps_note;

typedef struct {
  void *ctx;
  gt_outbox_gateway gateway; /* gt_ps_departed follows each data message */
  /* Returns the bytes sent of the training's traffic, before and after all resumes, including parts
     of dropped messages.  NULL: the PS counts the bytes of whole messages. */
  double (*left)(void *ctx);
  /* Returns a number that changes while the region's workers or disk work, or its bytes travel.
     Called for each heartbeat.  NULL: gt_ps_still returns 0. */
  uint64_t (*advance)(void *ctx);
  /* The local plane.  order: sends an order; its vectors are borrowed for the call.  taken: reports
     that the worker's gradient buffer is free. */
  void (*order)(void *ctx, size_t worker, const gt_ps_order *order);
  void (*taken)(void *ctx, size_t worker);
  /* Local plane `sync`.  Called when all gradients of the step are present and finite.  Returns
     their gt_vec_mean, weighted by samples, if the workers have computed it; borrowed until the
     next order.  Otherwise returns NULL, and the PS calls gt_vec_mean.  A NULL slot: the PS always
     calls gt_vec_mean. */
  const float *(*reduced)(void *ctx);
  /* Takes the region's checkpoint of this round now (with gt_ps_save); gt_ps_written follows. */
  void (*checkpoint)(void *ctx, int64_t round);
  /* Called when the round is complete in every region.  If gt_ps_whole_sound, older rounds can be
     removed. */
  void (*whole)(void *ctx, int64_t round);
  /* Records an event with two values a, b.
     EVAL: steps and samples of the region at the start of the evaluation; the result is last_eval
     of the view.
     NONFINITE: count so far; worker, or -1 - p for a message of region p.  With stages -1 - p is
     for a gradient of region p, and a step counts once.
     PEER_DONE: peer; its steps.
     DONE: steps; 0.
     ROUND: round; stop code.
     EXCLUDED: as gt_sync_host.excluded.
     COMPLETE: steps; gt_ps_residual.  After an epoch, DONE and COMPLETE can come again.
     LOST: the region; 0.
     EPOCH: its number; its members.
     JUDGED: the round; the best one so far, or 0. */
  void (*note)(void *ctx, gt_ps_note note, double a, double b);
  /* Records a decision of the strategy (gt_sync_host.decided).  NULL: decisions are not
     recorded. */
  void (*decided)(void *ctx, const char *what, const char *choice, const char *why);
  /* With `passes`, called instead of `order` for a step or an evaluation: an idle worker begins
     this pass of the order.  begins: it is the worker's first pass of the order.  cost: time of the
     pass by the job; 0: not given. gt_ps_pass_done follows. */
  void (*pass)(void *ctx, size_t worker, const gt_ps_order *order, const gt_pipe_order *pass,
               bool begins, gt_ns cost);
  /* Called when all passes of the order are done: the worker answers with its gradient or scores,
     which takes no time. */
  void (*end)(void *ctx, size_t worker, const gt_ps_order *order);
  /* Sends a packet to another region.  cookie: 0, or gt_ps_departed follows. */
  void (*packet)(void *ctx, size_t region, const gt_frame_header *head,
                 const gt_pipe_packet *packet, uint64_t cookie);
  /* Copies an arrived packet of at least 1 byte into its landing buffer of this shape. */
  void (*land)(void *ctx, size_t shape, const gt_pipe_packet *packet, const void *payload);
  /* Converts a time of the peer's clock to this PS's clock.  NULL: they share one clock. */
  gt_ns (*here)(void *ctx, size_t peer, gt_ns theirs);
  /* If members change.  epoch: makes durable, before it returns, that this region has decided this
     epoch, or, with members NULL, that it accepts no other epoch of this number or a lower one.
     place: writes the next hop of each of these n regions, as its index among them; the same in all
     regions.  NULL over a mesh. */
  void (*epoch)(void *ctx, int64_t number, const bool *members);
  void (*place)(void *ctx, const size_t *regions, size_t n, size_t *next);
  /* Ends the run because of an error of workers or other regions; does not return. */
  void (*fault)(void *ctx, gt_status status);
  /* Returns the time, to measure the PS's own work (update, encode).  NULL: its durations are 0. */
  gt_ns (*clock)(void *ctx);
  /* Called when the PS has done this part (1: all; ENCODE, DECODE: bytes of float32) of this work,
     so that a virtual `clock` advances by its cost.  NULL: the clock advances by itself. */
  void (*work)(void *ctx, gt_ps_work work, double part);
} gt_ps_host;

/* ---- the spec of a PS ------------------------------------------------------------------------ */

/* An interval or length of training; exactly one member is > 0.  epochs: of the region's own
   samples.  With stages: steps or minutes. */
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
   Parameters shared by two stages get the sum of both gradients.  If both stages have the same
   number of workers, worker i of both has the same samples, and the gradients of the two workers i
   are added before the mean.  At most two stages share parameters; no stages share buffers. */
typedef struct {
  size_t first_worker, workers;
  const gt_ps_range *params, *buffers; /* borrowed like the rest of the spec */
  size_t nparams, nbuffers;
  bool counts; /* the samples of its workers are the region's samples (the first stage) */
  bool judges; /* its pushes have the loss and the correct predictions (the last stage) */
} gt_ps_stage;

/* The groups of a region if a pipeline has several replicas.  Stage group: the regions of its
   replica, which make every step together.  Replicas: the regions with the same stages, which keep
   their parameters equal by a strategy.  The strategy gets the gradient of every step of the stage
   group, and can hold the region before the next step.  Everything is borrowed. */
typedef struct {
  const size_t *stage_group; /* regions of the replica, ascending, including this one */
  size_t nstage_group;
  const size_t *replicas; /* regions with the same stages, including this one; 0: one pipeline */
  size_t nreplicas;
  const double *weights; /* nreplicas, sum 1 */
  const gt_sync_ops *strategy;
  gt_sync_options options;
} gt_ps_groups;

/* Members that change (docs/membership.md); not with stages, a central region or wan_bytes_limit.
   tie: the region that continues if exactly half of the weight is left; nregions: none.
   incarnation: of this start, another one than any earlier start of this region.  returns: the
   others continue without this region, which asks them to take it in again.  promised: the newest
   number that host.epoch has made durable; 0: none. */
typedef struct {
  bool change;
  size_t tie;
  uint64_t incarnation;
  bool returns;
  int64_t promised;
} gt_ps_members;

/* The spec of a PS.  With stages:
   - the strategy is gt_ps_lockstep, the local plane `sync`, and `ranking` NULL;
   - every region has workers, and every worker belongs to one stage;
   - a step takes one batch number, the same for all workers of all regions; TRAIN begins the
     worker's passes of the step, and has all parameters and buffers of the region;
   - until, eval_every and checkpoint_every are given in steps or minutes; steps are the same in all
     regions;
   - a step that is non-finite in one region is dropped in all regions, and counts as a step;
   - an evaluation is a forward pass of the pipeline over all test samples, and one order to every
     worker of every region.  Only workers of stages that judge answer with results, each for its
     share of the samples.  A region without such a stage has no score. */
typedef struct {
  /* nworkers 0: an aggregating region, which makes no steps; its weight and order.n are 0 */
  size_t nregions, self, nworkers;
  bool local_async;
  bool objects; /* messages are objects of a store (gt_outbox_spec.carries) */
  const gt_sync_ops *strategy;
  /* The stages of this region, if the regions hold the stages of one pipeline. nstages 0: no
     pipeline; every worker computes the gradient of all parameters. */
  const gt_ps_stage *stages;
  size_t nstages;
  gt_ps_groups groups; /* all 0: the regions hold one replica */
  gt_ps_members members;
  /* With stages: number of micro-batches of a step; 0: 1.  Workers push sums over micro-batches.
     The PS divides by the number after it has added all sums, so the bits do not depend on the
     stage of a tied head. */
  size_t micro_batches;
  /* With stages, if gradients are clipped by the norm over all stages: the region that holds each
     tensor of the model (nowners tensors). */
  const size_t *owners;
  size_t nowners;
  /* With stages: the pipeline whose passes the PS orders (host.pass).  NULL: the host computes a
     step from one order. */
  const gt_pipe_job *passes;
  /* With stages: the order of passes adapts to the network, starting with the plan of this
     pipeline.  NULL: the order of passes is fixed. */
  const gt_pipe_job *adapts;
  gt_topology topology;
  const size_t *next;      /* as in gt_exchange_spec; with stages, indices of replicas */
  const size_t *workers;   /* likewise */
  size_t piece;            /* likewise; 0: a frame */
  gt_exchange_codec codec; /* kind GT_CODEC_NONE: float32 */
  const double *weights;   /* nregions */
  gt_sync_options options;
  /* Maximum number of messages per link that are pending; maximum number in flight. */
  size_t outbox, window;
  gt_vec params, grads, buffers;
  gt_optim *optim;
  gt_order order;
  gt_ps_interval until, eval_every, checkpoint_every;
  /* test_samples 0: no evaluation.  eval_chunk: samples per order; 0: gt_ps_eval_chunk */
  size_t test_samples, eval_chunk;
  /* Every checkpoint round is judged by the loss of its models on samples that the regions hold
     back, `validation` of them here; not with stages, nor if members change (ps/validate.c).
     patience: training ends after so many rounds that are not better than an earlier one; 0: it
     continues. */
  bool validates;
  size_t validation;
  int patience;
  /* Evaluations compute this ranking from one score per sample and the labels.  NULL: no ranking,
     and the labels are not read. */
  const gt_ranking *ranking;
  const int32_t *test_labels;
  /* Of a model of texts: number of tokens that a sample predicts, for the accuracy; 0: one
     label. */
  size_t predictions;
  /* As large as params and buffers: a copy of the model for evaluations, while training
     continues. */
  gt_vec snapshot, snapshot_buffers;
  int nonfinite_limit;
  /* limit of the bytes of all regions together; 0: no limit.  With stages activations also count,
     and the run ends after the step that exceeds the limit */
  double wan_bytes_limit;
  gt_ns heartbeat, keepalive;
  int64_t round; /* the newest checkpoint round that any region has taken; 0: none */
  gt_ps_host host;
} gt_ps_spec;

/* The strategy of regions that hold the stages of one pipeline with one replica.  No job names it.
   All regions commit a step, or all drop it. */
extern const gt_sync_ops gt_ps_lockstep;

/* Creates a PS.  The struct spec is copied; everything it points to is borrowed. */
gt_ps *gt_ps_create(const gt_ps_spec *spec);
/* Takes NULL. */
void gt_ps_close(gt_ps *ps);
/* Returns the PS's copy of its spec; borrowed. */
const gt_ps_spec *gt_ps_made_of(const gt_ps *ps);

/* ---- events ---------------------------------------------------------------------------------- */

/* Call start when training starts or resumes, and ready when a worker can take orders. */
void gt_ps_start(gt_ps *ps, gt_ns now);
void gt_ps_ready(gt_ps *ps, size_t worker, gt_ns now);
/* Takes the gradient of a worker's batch; grads are borrowed until host.taken(worker). */
void gt_ps_gradient(gt_ps *ps, size_t worker, const gt_ps_push *push, float *grads, gt_ns now);
/* Call when a worker has computed a pass, with the time of the computation and of the wait before
   it. */
void gt_ps_pass_done(gt_ps *ps, size_t worker, gt_ns compute, gt_ns wait);
/* Takes a worker's answer to an EVAL or VALIDATE order. */
void gt_ps_evaluated(gt_ps *ps, size_t worker, const gt_ps_push *push, gt_ns now);
/* Call when a message has arrived, except REPORT, MODEL, HELLO and BYE.  An activation or its
   gradient requires `passes`.  GT_ERR_FAULT: the job does not allow the message (kind, codec,
   range, length, numbers).  The text has the values found and expected; the message has no
   effect. */
gt_status gt_ps_message(gt_ps *ps, size_t peer, const gt_frame_header *head, const void *payload,
                        gt_ns now);
/* Call when a message of the gateway or a packet with this cookie has been sent. */
void gt_ps_departed(gt_ps *ps, size_t peer, uint64_t cookie, gt_ns now);
/* Writes the changes of the schedule so far: "the order of passes changed 2 times; 8 micro-batches,
   from step 31 on 16"; with several replicas, the name of the replica comes first.  Writes ""
   without `adapts`, and in regions without the first stage.  Returns text. */
char *gt_ps_changes_text(const gt_ps *ps, char *text, size_t size);
/* Reports to all regions that the state of this round is not sound: a run should not resume from
   it.  Call within host.checkpoint. */
void gt_ps_round_unsound(gt_ps *ps);
/* Call when this region's file of the round is durable. */
void gt_ps_written(gt_ps *ps, int64_t round, gt_ns now);
/* Call when a region is lost, if members change.  No message to it is sent, and no body of one
   read, from then on, until it has started again. */
void gt_ps_lost(gt_ps *ps, size_t region, gt_ns now);
/* Call at the time that gt_ps_next returned: sends heartbeats, runs timers, and checks intervals in
   minutes. */
void gt_ps_tick(gt_ps *ps, gt_ns now);
/* Call when the run ends.  Then the PS orders no more passes, and ignores results of earlier
   passes. */
void gt_ps_end(gt_ps *ps);
/* Returns the time of the next gt_ps_tick. */
gt_ns gt_ps_next(const gt_ps *ps);
/* Requests that the run stop with a checkpoint; it then ends with `code` (75, 6). */
void gt_ps_stop(gt_ps *ps, gt_status code, gt_ns now);
/* Does the same for this region alone, if members change: the others continue without it. */
void gt_ps_leave(gt_ps *ps, gt_status code, gt_ns now);
/* Opens the last checkpoint round.  The lead calls it when all regions are complete.  With stages,
   in the middle of a step: the round opens when the step is committed. */
void gt_ps_last_round(gt_ps *ps, gt_ns now);
/* Evaluates a model on all workers, then calls `done` with the score (borrowed). params and buffers
   are borrowed for the call.  Must not be called during an evaluation. */
void gt_ps_evaluate(gt_ps *ps, gt_vec params, gt_vec buffers,
                    void (*done)(void *ctx, const gt_ps_score *score), void *ctx, gt_ns now);
