/* ps: the parameter server of a region as one event loop body: batch numbers, gradients, outboxes, rounds, drain.  Layer 5.  No MPI, no files, no clock:
   a run over MPI, a test and a simulation drive the same code through events, each with its time, and serve its host table. */
#ifndef GEOTRAIN_PS_H
#define GEOTRAIN_PS_H

#include "geotrain/data.h"
#include "geotrain/sync.h"

typedef struct gt_ps gt_ps;

/* ---- orders and pushes ---------------------------------------------------------------------------------------------- */

typedef enum { GT_PS_TRAIN = 1, GT_PS_EVAL, GT_PS_KEEPALIVE } gt_ps_order_kind;
typedef struct {
  gt_ps_order_kind kind;
  int64_t first;          /* TRAIN: batch number; EVAL: first sample */
  int64_t count;          /* EVAL: samples */
  gt_ns wan_wait;         /* of the wait that this order ends, spent held by the strategy */
  gt_vec params, buffers; /* to be sent along; data NULL and n 0: none, the worker has them from an earlier order */
  /* TRAIN, local plane `sync`: the number of the step (1 and up, never again the same), and how many workers take part in it: 0 to workers - 1.
     `async`: 0 and 0. */
  int64_t step;
  size_t workers;
  bool common; /* the parameters are the same in all orders of this step that say so */
} gt_ps_order;

typedef struct {
  int64_t samples, correct;
  double loss_sum;
  const float *scores; /* of an evaluation of two classes: what gt_auc ranks its samples by; borrowed for the call.  NULL: labels are not two */
  gt_ns compute, wait;
  bool nonfinite;
  /* Of a gradient: the worker's buffers after its batch, as many as the PS has, borrowed like the gradient; NULL: there are none.  The region's become their
     mean by samples (`sync`), or those of the worker whose gradient was applied last (`async`: each is an exponential mean of recent batches, and stays one);
     what exchanges did to the region's since the worker's order is done to them, too. */
  const float *buffers;
} gt_ps_push;

/* What an evaluation found, of all its samples. */
typedef struct {
  double loss, accuracy; /* means; the loss of two classes is the log loss */
  double auc;            /* NaN: labels are not two, or all test samples have the same one */
} gt_ps_score;

/* ---- host ------------------------------------------------------------------------------------------------------------ */

typedef enum { GT_WORK_UPDATE, GT_WORK_APPLY, GT_WORK_COPY } gt_ps_work; /* a step, a message that arrived, a message to send */
typedef enum { GT_NOTE_EVAL, GT_NOTE_NONFINITE, GT_NOTE_DONE, GT_NOTE_PEER_DONE, GT_NOTE_ROUND, GT_NOTE_COMPLETE } gt_ps_note;

typedef struct {
  void *ctx;
  /* The gateway (see wan.h: payload borrowed until gt_ps_departed for data; cookie names it). */
  void (*send)(void *ctx, size_t peer, const gt_frame_header *head, const void *payload, size_t bytes, uint64_t cookie);
  bool (*replace)(void *ctx, size_t peer, uint64_t cookie, const gt_frame_header *head, const void *payload, uint64_t new_cookie);
  /* Bytes of strategy traffic that have left, over every resume: more than the messages that have,
     where one was cut off.  NULL: these. */
  double (*left)(void *ctx);
  /* The local plane: the order's vectors are borrowed for the call; `taken`: the worker's gradient buffer is free. */
  void (*order)(void *ctx, size_t worker, const gt_ps_order *order);
  void (*taken)(void *ctx, size_t worker);
  /* Local plane `sync`, when the gradient of every worker of the step is in and finite: their gt_vec_mean by samples, if it has been formed already while
     workers computed; else NULL, and the PS calls gt_vec_mean itself.  Borrowed until the next order.  NULL host function: never. */
  const float *(*reduced)(void *ctx);
  /* Take the region's checkpoint of this round now (gt_ps_save among the rest); gt_ps_written follows. */
  void (*checkpoint)(void *ctx, int64_t round);
  /* The round is whole in every region: older ones may go, if the view's whole_sound says so. */
  void (*whole)(void *ctx, int64_t round);
  /* Something for the record; a and b by kind. EVAL: steps and samples of the region when it began; the view's last_eval has it.  NONFINITE: how many, worker (-1 - p: it was a message of region p).  PEER_DONE: peer, its steps.  DONE: steps, 0.  ROUND: round, stop code. */
  void (*note)(void *ctx, gt_ps_note note, double a, double b);
  /* A clock for durations of the PS's own work (update, encode); NULL: they count as zero. */
  gt_ns (*clock)(void *ctx);
  /* The PS has just done this work; under a virtual clock `clock` goes on by what it costs.  NULL: the clock goes on by itself. */
  void (*work)(void *ctx, gt_ps_work work);
} gt_ps_host;

/* ---- what a PS is made of ------------------------------------------------------------------------------------------- */

/* Exactly one is > 0; epochs of the region's own part. */
typedef struct {
  double epochs;
  int64_t steps, samples;
  double minutes;
} gt_ps_interval;

typedef struct {
  size_t nregions, self, nworkers;
  bool local_async;
  const gt_sync_ops *strategy;
  const double *weights; /* nregions */
  int64_t period;
  double scale; /* and average: as in gt_sync_env */
  bool average;
  size_t outbox, window; /* messages that may wait to leave on a link, and that may have left without being acknowledged */
  gt_vec params, grads, buffers;
  gt_optim *optim;
  gt_order order;
  gt_ps_interval until, eval_every, checkpoint_every;
  size_t test_samples, eval_chunk; /* 0 test samples: no evaluation; a chunk is one order, 0: gt_ps_eval_chunk */
  const int32_t *test_labels;      /* where they are two: evaluations give the AUC.  NULL: they do not */
  gt_vec snapshot,
      snapshot_buffers; /* as large as params and buffers, for evaluations alone: there the model lies that workers score while the live one goes on */
  int nonfinite_limit;
  double wan_bytes_limit; /* of all regions together; 0: none */
  gt_ns heartbeat, keepalive;
  int64_t round; /* the checkpoint round that was last taken anywhere; 0: none */
  gt_ps_host host;
} gt_ps_spec;

/* Everything in spec is borrowed but the struct itself, which is copied. */
gt_ps *gt_ps_create(const gt_ps_spec *spec);
void gt_ps_close(gt_ps *ps);
const gt_ps_spec *gt_ps_made_of(const gt_ps *ps);

/* ---- events ----------------------------------------------------------------------------------------------------------- */

/* Training starts or goes on: the workers in turn are given work when they are ready. */
void gt_ps_start(gt_ps *ps, gt_ns now);
void gt_ps_ready(gt_ps *ps, size_t worker, gt_ns now);
/* A worker's gradient of its batch; grads are borrowed until host.taken(worker). */
void gt_ps_gradient(gt_ps *ps, size_t worker, const gt_ps_push *push, float *grads, gt_ns now);
/* A worker's answer to an EVAL order. */
void gt_ps_evaluated(gt_ps *ps, size_t worker, const gt_ps_push *push, gt_ns now);
/* A message of data or control kind arrived (not REPORT, MODEL, HELLO, BYE).  GT_ERR_FAULT: it is none
   that the job allows (kind, codec, range, length, numbers); the text says what was found and what is
   needed, and nothing was done with it. */
gt_status gt_ps_message(gt_ps *ps, size_t peer, const gt_frame_header *head, const void *payload, gt_ns now);
void gt_ps_departed(gt_ps *ps, size_t peer, uint64_t cookie, gt_ns now);
/* Within host.checkpoint: nobody would go on from the state of this round; the others learn of
   it. */
void gt_ps_round_unsound(gt_ps *ps);
/* This region's file of the round is durable. */
void gt_ps_written(gt_ps *ps, int64_t round, gt_ns now);
/* Time passes: heartbeats, timers, intervals by minutes. */
void gt_ps_tick(gt_ps *ps, gt_ns now);
gt_ns gt_ps_next(const gt_ps *ps);
/* Ask for a stop with a checkpoint: `code` is what the run ends with (75, 6). */
void gt_ps_stop(gt_ps *ps, gt_status code, gt_ns now);
/* Opens a last round (the lead does, once everything is settled). */
void gt_ps_last_round(gt_ps *ps, gt_ns now);
/* Evaluates a model (params, buffers borrowed for the call) on all workers; `done` is called with its score (borrowed).  Not while an evaluation is under way. */
void gt_ps_evaluate(gt_ps *ps, gt_vec params, gt_vec buffers, void (*done)(void *ctx, const gt_ps_score *score), void *ctx, gt_ns now);

/* ---- the end of a run ------------------------------------------------------------------------------------------------- */

/* What a region does once its PS is COMPLETE: it evaluates its model, sends it and then its result to the lead, and waits for a good-bye.  The lead waits for those of
   all and its own checkpoints, opens one last round, evaluates the mean when the round is whole, and concludes. */
typedef struct {
  bool (*evaluate)(void *ctx, bool mean); /* begins, of the region's own model or of the mean; false: there is no test set */
  void (*send_model)(void *ctx, uint64_t cookie);
  void (*send_report)(void *ctx, uint64_t cookie);
  void (*conclude)(void *ctx); /* the lead: the mean is evaluated; says good-bye to all */
} gt_ending_hooks;

#define GT_ENDING_COOKIE ((uint64_t)1 << 63) /* the end's cookies are this and more, the PS's less */

typedef struct {
  const gt_ending_hooks *hooks;
  void *ctx;
  gt_ps *ps;
  bool lead, bye, evaluated;
  int stage;
  size_t others, nmodels, nreports; /* regions but this one, and what has come from them */
  int64_t last_round;
} gt_ending;
/* Nothing is owned, nothing to close. */
void gt_ending_open(gt_ending *ending, const gt_ending_hooks *hooks, void *ctx, gt_ps *ps, bool lead, size_t others);
void gt_ending_evaluated(gt_ending *ending);
void gt_ending_departed(gt_ending *ending, uint64_t cookie);
/* A MODEL, REPORT or BYE has come. */
void gt_ending_message(gt_ending *ending, unsigned kind);
/* Moves on what can; true when the run is over. */
bool gt_ending_step(gt_ending *ending, gt_ns now);

/* ---- where it stands -------------------------------------------------------------------------------------------------- */

typedef enum {
  GT_PS_TRAINING,
  GT_PS_DRAINING,  /* no more batches; what is accumulated is being sent */
  GT_PS_FOLLOWING, /* done; applies messages until all are done */
  GT_PS_COMPLETE,  /* all are done, everything is acknowledged and settled */
  GT_PS_STOPPED    /* the stop round is whole */
} gt_ps_phase;

typedef struct {
  gt_ps_phase phase;
  gt_status stop_code; /* of STOPPED */
  int64_t steps, samples, batches, nonfinite, round, whole_round;
  double loss_sum; /* over loss_samples, since gt_ps_loss_reset */
  int64_t loss_samples;
  gt_ps_score last_eval; /* while training; NaN: none yet */
  gt_ns last_eval_took;
  /* sums over workers */
  gt_ns compute, wait, wan_wait;
  gt_ns held_now; /* of workers that wait: what of that is already the WAN's, and will be wan_wait when it is over */
  /* of the region: after its last step, until drained and acknowledged; from then until all are done; applying updates and means; copying payloads */
  gt_ns drain, idle, update, encode;
  bool held;
  bool evaluating;  /* an evaluation is under way or due */
  int64_t chunks;   /* of it that are made */
  bool whole_sound; /* no region said that it would not go on from whole_round */
  double done;      /* share of the training done */
} gt_ps_view;

/* The share of the training that is done, 0 to 1. */
double gt_ps_share_done(const gt_ps *ps);
/* Steps that the region will still make, as the job says; 0 when it is done. */
int64_t gt_ps_steps_left(const gt_ps *ps);

void gt_ps_look(const gt_ps *ps, gt_ns now, gt_ps_view *view);

/* For simulations, which leave out time that goes as what they have seen. How often what was
   counted between two looks may come again before the region makes its last steps or, if
   evaluations count, its next evaluation; INFINITY: as often as one likes, for it makes no
   steps. */
double gt_ps_repeats(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to, bool evaluations);
/* Whether an evaluation that is under way goes on evenly enough between two looks for its chunks
   to come again too. */
bool gt_ps_chunks_repeat(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to);
/* Evaluations that the region will still make while it trains, about. */
double gt_ps_evaluations_left(const gt_ps *ps);
/* Evaluations that are due when what was counted between two looks, the second of which is now,
   has come again n times. */
double gt_ps_evaluations_at(const gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to, double n);
/* It has come again n times, in `gone` of time that the PS's clock does not show: counts go on
   by it; messages, orders and timers stay as they are, and the next checkpoint as far ahead as
   it was. */
void gt_ps_skip(gt_ps *ps, const gt_ps_view *from, const gt_ps_view *to, int64_t n, gt_ns gone);

void gt_ps_loss_reset(gt_ps *ps);
typedef struct {
  double bandwidth_bps, latency_s; /* measured; 0: not yet */
  size_t queued, unacknowledged;
  int64_t samples; /* that the peer's last heartbeat told of */
  bool done;
} gt_ps_link;
void gt_ps_look_link(const gt_ps *ps, size_t peer, gt_ps_link *link);
/* Since when the worker has been computing what it was told to, and which batch; false: it is not. */
/* The worker has not said yet that it is ready. */
bool gt_ps_absent(const gt_ps *ps, size_t worker);
bool gt_ps_computing(const gt_ps *ps, size_t worker, gt_ns *since, int64_t *batch);

/* Names "ps/...", "sync/...", "optim/...", "outbox/...": with model/params and model/buffers, which the caller saves, the region's whole state. */
void gt_ps_save(gt_ps *ps, gt_ns now, gt_state *state);
/* Before gt_ps_start; number of workers and limits may differ from those that saved. */
gt_status gt_ps_load(gt_ps *ps, gt_ns now, const gt_state *state);

/* ---- the parts of a mini-batch ---------------------------------------------------------------------------------------------- */

/* What held the region's workers back, mean over them, and the training's time (docs/time-split.md); saved with a checkpoint. */
typedef struct {
  gt_ns upload, download, training;
} gt_time_use;

typedef enum { GT_HELD_NOT, GT_HELD_UPLOAD, GT_HELD_DOWNLOAD } gt_held_by;
typedef struct {
  gt_time_use use;
  gt_held_by held_by; /* since `since` */
  double held_share;  /* of the workers */
  gt_ns since;
} gt_time_split;

/* Books the time up to now under what kept the region; after every event.  receiving: a message of the peer has begun to arrive. */
void gt_time_split_account(gt_time_split *split, const gt_ps *ps, const gt_ps_spec *spec, bool (*receiving)(const void *ctx, size_t peer),
                           const void *ctx, gt_ns now);
/* Seconds of a worker's average mini-batch; aggregate: the rest. */
typedef struct {
  double train, upload, aggregate, download;
} gt_time_split_parts;
void gt_time_split_batch(const gt_time_split *split, const gt_ps_view *view, size_t nworkers, gt_time_split_parts *parts);

/* ---- from a job ---------------------------------------------------------------------------------------------------------- */

/* Samples an EVAL order asks for: 1,024, and more of a large test set, up to 8,192, so that an order's
   way there and back is small beside its work. By the test set alone: what is added chunk by chunk
   must not depend on who scores it. */
size_t gt_ps_eval_chunk(size_t test_samples);

/* What the job says of the PS of region order->region; the caller puts in weights, vectors, optim, test_samples, keepalive, round and host.
   links: gt_links_from of the region; parameters: of the model. */
gt_ps_spec gt_ps_spec_of(const gt_job *job, const gt_order *order, const gt_link_spec *links, size_t parameters);
/* Shares of the regions in means, sum 1; samples: of every region.  The caller frees them. */
double *gt_ps_weights_of(const gt_job *job, const int64_t *samples);
/* The optimizer of a region; its rate ends with the region's steps, in lockstep with the longest region's. */
gt_optim_spec gt_ps_optim_of(const gt_job *job, size_t region, const int64_t *samples);

/* By the job's compute section; order: of the region; c: gt_job_compute_of. */
gt_ns gt_cost_step(const gt_job *job, const gt_order *order, const gt_job_compute *c, size_t worker, int64_t batch);
gt_ns gt_cost_eval(const gt_job *job, const gt_order *order, const gt_job_compute *c, size_t worker, int64_t samples);
/* How many times as long as it would this worker takes (compute.speed). */
double gt_cost_slowdown(const gt_job *job, size_t region, size_t worker);
/* GT_ERR_JOB names a region of which compute says nothing; why: "under --clock virtual". */
gt_status gt_cost_check(const gt_job *job, const char *why);

/* ---- virtual time ---------------------------------------------------------------------------------------------------------- */

/* At equal times in this order; workers by number. */
typedef enum { GT_EVENT_FRAME, GT_EVENT_LINK, GT_EVENT_PUSH, GT_EVENT_WRITTEN, GT_EVENT_TICK } gt_event_kind;
typedef struct {
  gt_ns at;
  gt_event_kind kind;
  size_t worker; /* PUSH */
} gt_event;

/* After a wait this long caches and clock are cold: each of so many steps takes compute.resume longer.  Not with compute.emulate, where workers sleep what is left of a step. */
#define GT_RESUME_WAIT  ((gt_ns)5000000)
#define GT_RESUME_STEPS 8

/* When a region's workers push, its PS is free and its checkpoint is durable, by the job's costs: the order of events of a run under the virtual clock and of a simulation.
   Times begin at 0.  The job outlives it. */
typedef struct gt_timeline gt_timeline;
gt_timeline *gt_timeline_create(const gt_job *job, const gt_order *order, size_t nworkers);
void gt_timeline_close(gt_timeline *timeline);
/* The PS's clock: it does one thing at a time, so that this may be later than the event that it handles. */
gt_ns gt_timeline_now(const gt_timeline *timeline);
/* The event that is handled, or was last: its time. */
gt_ns gt_timeline_at(const gt_timeline *timeline);
void gt_timeline_work(gt_timeline *timeline, gt_ps_work work);
/* A checkpoint of so many bytes is being written. */
void gt_timeline_writing(gt_timeline *timeline, double bytes);
void gt_timeline_ordered(gt_timeline *timeline, size_t worker, const gt_ps_order *order);
/* When the worker pushes; GT_NEVER: it has nothing to do. */
gt_ns gt_timeline_due(const gt_timeline *timeline, size_t worker);
/* What comes next: a frame that arrives, a link that wants to be looked at, a tick of the PS, or what the timeline knows of itself. */
gt_event gt_timeline_next(const gt_timeline *timeline, gt_ns frame, gt_ns link, gt_ns tick);
void gt_timeline_begin(gt_timeline *timeline, const gt_event *event);
/* Of a PUSH: what it cost, and how long the worker had waited for its order. */
void gt_timeline_pushed(gt_timeline *timeline, size_t worker, gt_ns *compute, gt_ns *wait);
/* What the worker has under way is due sooner by so much: a simulation has left out so much
   time. */
void gt_timeline_sooner(gt_timeline *timeline, size_t worker, gt_ns by);
/* Events before `at` have happened, outside the timeline. */
void gt_timeline_forward(gt_timeline *timeline, gt_ns at);

#endif
