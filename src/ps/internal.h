/* Private to ps: its state, and the functions that its files share.  The PS is one event loop over
   one state.  Each file calls only files before it in this list: batches, buffers, view, advance,
   agree, adapt, passes, validate, eval, rounds, drain, epoch, recover, members, local, state, ps.
   ps.c has the events, and ends each by doing all work that has become possible, so no other file
   calls the loop. Lower layers call the PS through tables (gt_exchange_events, gt_sync_host). */
#pragma once

#include "geotrain/pipe_adapt.h"
#include "geotrain/ps_passes.h"
#include "geotrain/ps_state.h"
#include "members.h"

typedef enum { W_ABSENT, W_WAITING, W_COMPUTING, W_PENDING, W_EVALUATING } ps_worker_state;

typedef struct {
  ps_worker_state state;
  bool has_batch; /* the worker has a batch number, and its gradient is not used yet */
  int64_t batch;
  gt_ns since;     /* start of the state */
  gt_ns held_mark; /* held time of the PS at the start of the wait */
  gt_ps_push push; /* PENDING */
  float *grads;
  size_t chunk;      /* EVALUATING */
  bool has_snapshot; /* of the evaluation in progress */
} ps_worker;

/* The known state of another region. */
typedef struct {
  /* rejected: a message that a strategy with a barrier needs was not finite; later messages are
     ignored */
  bool done, rejected;
  bool joined;      /* has sent JOINED; the strategy is informed when joined_seq is applied */
  bool joined_done; /* its DONE follows */
  bool joined_late; /* it was done, and can make steps again */
  int64_t *joined_counts, joined_seq; /* of every range: its gt_exchange_rounds then */
  size_t joins;                       /* ranges of which it has told */
  int64_t done_steps, done_seq; /* of its DONE; the strategy is informed when done_seq is applied */
  bool done_told;
  int64_t *done_counts; /* of every range: its gt_exchange_count then */
  size_t dones;         /* ranges that are done there */
  int64_t written;      /* newest round durable there */
  int64_t unsound;      /* newest round that it would not resume from */
  int64_t round;        /* newest round that it reports as taken */
  bool late; /* a message or acknowledgement of it waits for the own checkpoint of its round: */
  int64_t late_ack;    /* an acknowledgement; 0: none */
  int64_t samples;     /* its samples, by its last heartbeat */
  uint32_t advance;    /* the number in its last heartbeat (advance.c) */
  int64_t still_pings; /* its heartbeats since any region's number changed */
} ps_peer;

/* Changes of the region's buffers by exchanges since workers got them: keep times the old ones,
   plus `add`. */
typedef struct {
  bool any;
  float keep;
  gt_vec add;
} ps_moved;

/* Some of the regions, including this one. */
typedef struct {
  size_t n, self;  /* self: its number in the group */
  size_t *regions; /* n */
  size_t *of;      /* nregions: their numbers; PS_NONE: outside the group */
} ps_group;
#define PS_NONE SIZE_MAX

/* Floats of one stage, or shared by two (later: PS_NONE or the second one). */
typedef struct {
  size_t stage, later, offset, count;
} ps_run;

/* Of a region with stages. */
typedef struct {
  ps_run *params, *buffers;
  size_t nparams, nbuffers;
  size_t *of;  /* nworkers: the stage of each */
  float *sums; /* a block for each worker of a stage; NULL: no stages share floats */
  /* The step's gradient is complete, and is announced to the stage group.  committed: all its
     regions have applied the step, or dropped it because of the region `nonfinite`. */
  bool given, committed;
  size_t nonfinite;
  /* A round that another region has opened after `steps` steps, the last of which this region has
     not made yet; 0: none.  steps -1: a region of another replica has opened it, and this region
     takes it after its replica's step. */
  struct {
    int64_t round, steps;
    gt_status code;
  } deferred;
  size_t micro_batches; /* current number of micro-batches of a step */
} ps_stages;

/* A region of the own replica of a pipeline, or the region itself. */
typedef struct {
  int64_t told;        /* the newest step that it has announced */
  bool nonfinite[2];   /* its gradient of step s was not finite: [s % 2], for the last two steps */
  size_t tensors, got; /* got: tensors of the step or round after `squared` */
  int64_t squared;     /* the newest one with all squares here; -1: none since a resume */
  double *squares[2];  /* tensors, of the last two: [number % 2] */
} ps_member;

/* The agreement of the stage group. */
typedef struct {
  ps_member *members;
  int64_t committed; /* steps, applied or dropped */
  size_t *owners;    /* spec.nowners: numbers in the stage group */
  size_t *counts;    /* of each member: tensors with added squares */
  bool of_means;     /* clip means of several replicas; else gradients, if owners are given */
  int64_t taken;     /* rounds of means with a norm that the strategy has */
} ps_agree;

/* The result of a chunk of the test set. */
typedef struct {
  double loss_sum;
  int64_t correct, samples;
} ps_chunk;

typedef struct {
  bool active, due;
  gt_ps_order_kind kind;      /* of the one in progress: EVAL or VALIDATE */
  size_t all, each;           /* samples of its set, of a chunk of it */
  size_t chunks, given, back; /* of its set; sent to workers; answered */
  gt_vec params, buffers;     /* the evaluated model */
  ps_chunk *found;            /* results of chunks */
  float *scores;              /* numbers of all test samples, with a ranking; else NULL */
  uint32_t *scratch;          /* likewise */
  int64_t number;             /* number of evaluations due at its start */
  int64_t steps, samples;     /* of the region at its start */
  gt_ns began, took;          /* took: duration of the last one during training */
  void (*done)(void *ctx, const gt_ps_score *score);
  void *ctx;
} ps_eval;

/* A region's sums over the samples that it has held back, as the payload of a SCORE.  steps: that
   it had made; stopped: 1: the round stopped the run, so that there are no sums, 0: it did not;
   last: the last round of the run, 0: not known. */
typedef struct {
  double loss_sum, samples, correct, steps, stopped, last;
} ps_sums;

/* The judgement of rounds by their loss (validate.c); int64 as in a checkpoint. */
typedef struct {
  int64_t round;                    /* the newest round to judge; 0: none */
  bool due;                         /* its evaluation has not begun */
  int64_t judged;                   /* the newest round that has been judged */
  int64_t best, since;              /* the best one so far, 0: none; rounds counted since */
  int64_t steps;                    /* of all regions, at the round that was judged */
  int64_t saved;                    /* the round of the checkpoint; negative: it stopped the run */
  int64_t last;                     /* the last round of the run; 0: not known */
  double best_loss, loss, accuracy; /* of the best one; of the newest one */
  gt_vec params, buffers;           /* the model to evaluate; owned */
  ps_sums *sums;                    /* nregions: of the region's newest evaluation, */
  int64_t *told;                    /* which was of this round */
} ps_validation;

/* Counted from the start of training, over all resumes; all are int64, so that a checkpoint has
   their exact values. */
typedef struct {
  int64_t steps, samples, batches, next_batch, nonfinite, evals;
  int64_t compute, wait, wan_wait, drain, idle, update, encode;
  int64_t phase;
} ps_totals;
#define PS_TOTALS (sizeof(ps_totals) / sizeof(int64_t))

struct gt_ps {
  gt_ps_spec spec;
  gt_sync *sync;
  const gt_sync_ops *between; /* the strategy that exchanges data */
  ps_group stage_group;       /* of a pipeline: the regions that make steps together */
  ps_group replicas;          /* regions of `sync` and the exchange */
  size_t *next;               /* spec.next among the replicas; NULL: none */
  gt_outbox *outbox;
  gt_exchange *exchange;
  bool apart;      /* several replicas of a pipeline, each takes a round at its own step */
  bool per_worker; /* the strategy gets every worker's gradient */
  gt_ns now;
  const struct ps_plane *plane;
  ps_worker *workers;
  int64_t step;        /* sync: number of the step that was last begun, committed or not */
  size_t step_workers; /* workers in that step */
  struct {
    const float **grads, **buffers;
    int64_t *samples;
    size_t n, bad;
  } parts; /* of that step: gradients and buffers of its workers; bad: not finite, and left out */
  ps_moved *moved; /* async: of each worker; sync: of all of the step */
  size_t nmoved;
  ps_stages stages;
  ps_agree agree;
  struct ps_adapt *adapt;      /* NULL: the order of passes does not change */
  gt_ps_passes *passes;        /* NULL: the host makes a step of one order */
  size_t *arrivals, narrivals; /* async: workers with a PENDING gradient, in order of arrival */
  ps_peer *peers;
  size_t told;    /* peers whose DONE the strategy has */
  size_t durable; /* the first peers with a durable file of the round in progress */
  ps_totals totals;
  gt_ps_coded coded[GT_CODINGS]; /* over all resumes, like totals */
  gt_ps_phase phase;
  int64_t *reissue; /* numbers to issue again, ascending */
  size_t nreissue;
  int64_t *unreturned; /* for saving: those, and the numbers that workers have */
  size_t unreturned_capacity;
  double loss_sum;
  int64_t loss_samples;
  gt_ps_score last_eval;
  struct {
    uint64_t seen;   /* last result of host.advance */
    uint32_t number; /* sent with heartbeats */
    int64_t beats;   /* heartbeats of this region since any region's number changed */
  } advance;
  unsigned holders; /* reasons to hold the workers: bits, PS_HOLDER_* */
  bool held;
  gt_ns held_since, held_total;
  gt_ns timer_at[GT_SYNC_TIMERS];
  gt_ns phase_since, heartbeat_at, keepalive_at, encode_from, coding_from;
  ps_eval eval;
  ps_validation validation;
  /* rounds */
  int64_t round, whole_round, own_written;
  int64_t unsound; /* the newest round that this region would not resume from */
  int64_t steps_at_round, samples_at_round; /* where the interval of checkpoints began */
  int64_t moved_samples;                    /* by gt_ps_position_take */
  gt_ns round_at;
  bool want_round;
  gt_status want_stop, stop_code;
  ps_epoch epoch;
  bool resumed;
  bool came_back; /* it was done before the resume, and can make steps again */
};

/* The local plane: turns gradients of workers into steps. */
typedef struct ps_plane {
  const char *name;
  /* Every worker has a part in each batch, and in an evaluation; all begin it together. */
  bool whole;
  /* Regions make steps together: they take a round between the same two steps. */
  bool together;
  /* NULL: nothing to open or close. */
  void (*open)(gt_ps *ps);
  void (*close)(gt_ps *ps);
  /* uses arrived gradients, gives work to waiting workers; called after every event */
  void (*pump)(gt_ps *ps);
  /* Returns the model that workers read in an evaluation: the live one, or a copy. */
  void (*lend)(gt_ps *ps, gt_vec *params, gt_vec *buffers);
  /* True if the worker's answers in an evaluation count.  NULL: always true. */
  bool (*judges)(const gt_ps *ps, size_t worker);
  /* Handles a message of kind STRATEGY; check: GT_ERR_FAULT if it cannot be correct.  NULL: no such
     messages. */
  gt_status (*check)(const gt_ps *ps, size_t from, const gt_frame_header *head);
  void (*message)(gt_ps *ps, size_t from, const gt_frame_header *head, const void *body);
} ps_plane;
/* Returns the plane of the spec (local.c). */
const ps_plane *gt_ps_plane_of(const gt_ps_spec *spec);

/* batches.c */
int64_t gt_ps_total_batches(const gt_ps *ps);
bool gt_ps_may_issue(const gt_ps *ps);
int64_t gt_ps_take_number(gt_ps *ps);

/* buffers.c */
void gt_ps_buffers_open(gt_ps *ps);
void gt_ps_buffers_close(gt_ps *ps);
void gt_ps_buffers_ordered(gt_ps *ps, size_t worker); /* it gets the current buffers */
/* `moved` of a gt_sync_host. */
void gt_ps_buffers_moved(void *ps, float keep, float share, gt_vec other);
/* Replace the region's buffers by the worker's pushed ones, or by the mean of ps->parts, and apply
   the later changes of exchanges again. */
void gt_ps_buffers_take(gt_ps *ps, size_t worker);
void gt_ps_buffers_mean(gt_ps *ps);
/* With stages: applies the changes again to floats that were just replaced by pushed ones. */
void gt_ps_buffers_again(gt_ps *ps, size_t offset, size_t count);

/* coded.c: the codec's time and bytes.  Events of the exchange; */
void gt_ps_coding(void *ps);
void gt_ps_coded_message(void *ps, gt_coding direction, size_t raw, size_t wire);
/* "ps/coded"; without a codec nothing. */
gt_status gt_ps_coded_state(gt_ps *ps, gt_state_direction direction);

/* view.c */
gt_ns gt_ps_held_total(const gt_ps *ps);
bool gt_ps_outstanding(const gt_ps *ps); /* a worker holds a batch */

/* adapt.c; without an adapter they do nothing, and check and note are not called. */
void gt_ps_adapt_open(gt_ps *ps);
void gt_ps_adapt_close(gt_ps *ps);
void gt_ps_adapt_begin(gt_ps *ps); /* at the start of a step */
void gt_ps_adapt_tell(gt_ps *ps);  /* before its gradient is announced */
/* Counts a committed step; true: a different order applies from the next one on. */
bool gt_ps_adapt_committed(gt_ps *ps);
/* Call when a message with this header, an activation or its gradient, is posted, of `bytes` bytes
   on the wire, which count for wan_bytes_limit; or has arrived from a peer.  Also without an
   adapter. */
void gt_ps_posted(gt_ps *ps, size_t peer, const gt_frame_header *head, double bytes, gt_ns now);
void gt_ps_landed(gt_ps *ps, size_t peer, const gt_frame_header *head, gt_ns now);
/* Returns the schedule in force; NULL: without an adapter. */
const gt_pipe_schedule *gt_ps_schedule(const gt_ps *ps);
/* Handles a message of kind STRATEGY with a negative value; GT_ERR_FAULT: it cannot be correct. */
gt_status gt_ps_adapt_check(const gt_ps *ps, size_t from, const gt_frame_header *head);
void gt_ps_adapt_note(gt_ps *ps, size_t from, const gt_frame_header *head);
void gt_ps_adapt_save(gt_ps *ps, gt_state *state);
gt_status gt_ps_adapt_load(gt_ps *ps, const gt_state *state);

/* passes.c */
#define PS_PASSES_COOKIE ((uint64_t)1 << 62) /* the least cookie of packets */
typedef struct {
  const gt_pipe_job *job; /* borrowed */
  size_t region;
  size_t test_samples;    /* of an evaluation */
  const gt_ps_host *host; /* borrowed */
  gt_ps *ps;              /* posts packets and holds workers; NULL: none */
} ps_passes_spec;
/* Errors as gt_pipe_region_create; *out is then NULL. */
gt_status gt_ps_passes_open(gt_ps_passes **out, const ps_passes_spec *spec);
void gt_ps_passes_close(gt_ps_passes *passes); /* takes NULL */
/* GT_ERR_FAULT: the event is impossible; the text has the reason, and the state is unchanged.  The
   order's vectors are borrowed until the order ends.  sent: when the sender queued the message, by
   this PS's clock (head->clock is by the sender's); GT_NEVER: not known.  payload: for
   host.land. */
gt_status gt_ps_passes_order(gt_ps_passes *passes, size_t worker, const gt_ps_order *order);
gt_status gt_ps_passes_done(gt_ps_passes *passes, size_t worker, gt_ns compute, gt_ns wait);
gt_status gt_ps_passes_message(gt_ps_passes *passes, const gt_frame_header *head,
                               const void *payload, gt_ns sent);
gt_status gt_ps_passes_departed(gt_ps_passes *passes, uint64_t cookie);
/* Makes later steps follow this schedule (gt_pipe_region_reorder), in its number of
   micro-batches. */
gt_status gt_ps_passes_reorder(gt_ps_passes *passes, const gt_pipe_schedule *schedule);
/* Adds the times of the order's passes to the push that ends the worker's order. */
void gt_ps_passes_timed(gt_ps_passes *passes, size_t worker, gt_ps_push *push);
/* Call after every event: the phases of workers begin with training and end with it. */
void gt_ps_passes_account(gt_ps_passes *passes, bool training);
void gt_ps_passes_begin(gt_ps *ps); /* opens those of the spec; no effect if it has none */
/* Gives the worker an order, as passes or whole. */
void gt_ps_order_worker(gt_ps *ps, size_t worker, const gt_ps_order *order);
void gt_ps_packet_left(gt_ps *ps, uint64_t cookie);
/* Makes passes follow the schedule in force. */
void gt_ps_reorder(gt_ps *ps);

/* advance.c */
void gt_ps_advance_beat(gt_ps *ps); /* once for each heartbeat of this region */
void gt_ps_advance_ping(gt_ps *ps, size_t from, uint32_t number);

/* agree.c; state does nothing unless it is open. */
enum { PS_HOLDER_SYNC = 1, PS_HOLDER_AGREE = 2, PS_HOLDER_EPOCH = 4 };
/* Holds the workers as long as one of the holders does. */
void gt_ps_hold(gt_ps *ps, unsigned holder, bool holds);
/* Sends a message of kind STRATEGY without numbers. */
void gt_ps_tell_member(gt_ps *ps, size_t peer, gt_frame_header head);
void gt_ps_agree_open(gt_ps *ps);
void gt_ps_agree_close(gt_ps *ps);
/* Announces the step's gradient (spec.grads), or that it is not finite, to the stage group, and
   holds the workers until all have announced theirs. */
void gt_ps_agree_tell(gt_ps *ps, bool nonfinite);
/* `tell_squares` and `norm` of a gt_sync_host. */
void gt_ps_agree_mean(void *ps, gt_vec mean);
bool gt_ps_agree_norm(void *ps, double *norm);
void gt_ps_agree_again(gt_ps *ps); /* after a resume: announces means again */
/* Handles a message of kind STRATEGY; GT_ERR_FAULT: it cannot be correct. */
bool gt_ps_agree_has_numbers(const gt_frame_header *head);
gt_status gt_ps_agree_check(const gt_ps *ps, size_t from, const gt_frame_header *head);
void gt_ps_agree_message(gt_ps *ps, size_t from, const gt_frame_header *head, const void *body);
gt_status gt_ps_agree_state(gt_ps *ps, gt_state_direction direction);

/* eval.c */
void gt_ps_eval_open(gt_ps *ps);
void gt_ps_eval_close(gt_ps *ps);
/* begins an evaluation that is due; false: none is due, or one is in progress */
bool gt_ps_eval_begin(gt_ps *ps);
void gt_ps_eval_give(gt_ps *ps);  /* gives chunks to waiting workers */
void gt_ps_eval_check(gt_ps *ps); /* checks if an evaluation is due */
void gt_ps_eval_skip(gt_ps *ps);  /* leaves evaluations that are due to the one at the end */
int64_t gt_ps_evals_due(const gt_ps *ps); /* number of evaluations due by now */
/* With stages, after a resume: the regions' checkpoints can be from before and after the evaluation
   of the same step, so all repeat it. */
void gt_ps_eval_again(gt_ps *ps);
/* Begins the evaluation of a checkpoint's model, if one is due; local plane sync: between steps. */
void gt_ps_eval_validate(gt_ps *ps);
/* Takes the answer for a chunk. */
void gt_ps_eval_take(gt_ps *ps, size_t worker, const gt_ps_push *push);

/* validate.c; without validation they do nothing. */
void gt_ps_validation_open(gt_ps *ps);
void gt_ps_validation_close(gt_ps *ps);
/* True if every round so far that is to be judged has been. */
bool gt_ps_is_judged(const gt_ps *ps);
/* True if spec.patience is over: the region makes no more steps. */
bool gt_ps_gave_up(const gt_ps *ps);
/* Call when the region has taken its checkpoint of the round. */
void gt_ps_validation_take(gt_ps *ps, int64_t round);
/* True if an evaluation is due and can begin: it is then no longer due. */
bool gt_ps_validation_begins(gt_ps *ps);
/* Takes the sums of the evaluation. */
void gt_ps_validated(gt_ps *ps, const ps_chunk *own);
/* Handles a SCORE; GT_ERR_FAULT: it cannot be correct. */
gt_status gt_ps_validation_check(const gt_frame_header *head, const void *body);
void gt_ps_validation_message(gt_ps *ps, size_t from, const gt_frame_header *head,
                              const void *body);
gt_status gt_ps_validation_state(gt_ps *ps, gt_state_direction direction);
void gt_ps_validation_start(gt_ps *ps); /* after a resume */

/* rounds.c */
void gt_ps_round_check(gt_ps *ps); /* an interval is over or a stop is wanted */
void gt_ps_round_take(gt_ps *ps, int64_t round, gt_status stop_code);
void gt_ps_round_message(gt_ps *ps, size_t from, const gt_frame_header *head);
void gt_ps_round_written(gt_ps *ps, int64_t round); /* here */
void gt_ps_round_whole(gt_ps *ps);
/* A region without a majority, or without the others, that is to stop takes its last round. */
void gt_ps_round_alone(gt_ps *ps);

/* drain.c */
void gt_ps_drain(gt_ps *ps); /* the region makes no more steps: the strategies send the rest */
/* reports a peer's resume or end, after all its earlier messages are applied */
void gt_ps_tell_strategy(gt_ps *ps, size_t peer);
/* moves TRAINING -> DRAINING -> FOLLOWING -> COMPLETE as far as possible */
void gt_ps_end_check(gt_ps *ps);
/* sends JOINED to every peer, and DONE if this region is done */
void gt_ps_tell_joined(gt_ps *ps);

/* epoch.c.  regions: n of them; n 0: all. */
void gt_ps_group_open(ps_group *g, const gt_ps *ps, const size_t *regions, size_t n);
void gt_ps_group_close(ps_group *g);

/* local.c */
void gt_ps_worker_waits(gt_ps *ps, size_t worker);
void gt_ps_take_gradient(gt_ps *ps, size_t worker, const gt_ps_push *push, float *grads);

/* check.c.  GT_ERR_FAULT: the peer's message cannot be correct; the text has the values found and
   expected. */
gt_status gt_ps_check(const gt_ps *ps, size_t from, const gt_frame_header *head, const void *body);

/* Returns the number of DONE messages of a region, and of JOINED messages: one for every range, at
   least one. */
static inline size_t gt_ps_dones(const gt_ps *ps) {
  const size_t ranges = gt_exchange_ranges(ps->exchange);
  return ranges ? ranges : 1;
}
static inline gt_ns gt_ps_clock(const gt_ps *ps) {
  return ps->spec.host.clock ? ps->spec.host.clock(ps->spec.host.ctx) : 0;
}
/* Begins an event. */
static inline void gt_ps_at(gt_ps *ps, gt_ns now) {
  ps->now = now;
  gt_outbox_at(ps->outbox, now);
}
/* Reports that this part of the work is done; returns the clock after it. */
static inline gt_ns gt_ps_worked(const gt_ps *ps, gt_ps_work work, double part) {
  if (ps->spec.host.work) ps->spec.host.work(ps->spec.host.ctx, work, part);
  return gt_ps_clock(ps);
}
/* True if the region is another member. */
static inline bool gt_ps_is_other(const gt_ps *ps, size_t region) {
  return region != ps->spec.self && ps->epoch.member[region];
}
/* Replicas of a pipeline: true if the peer has taken a round that this region has not, or the
   reverse.  Else false. */
static inline bool gt_ps_ahead(const gt_ps *ps, size_t peer) {
  return ps->apart && ps->peers[peer].round > ps->round;
}
static inline bool gt_ps_behind(const gt_ps *ps, size_t peer) {
  return ps->apart && ps->peers[peer].round < ps->round;
}
/* True if the run is to stop, or messages wait for bytes that the cap never allows. */
static inline bool gt_ps_wants_stop(gt_ps *ps) {
  if (gt_outbox_exhausted(ps->outbox)) ps->want_stop = GT_ERR_LIMIT;
  return ps->want_stop != GT_OK;
}
/* The region can only stop, and no other one takes part. */
static inline bool gt_ps_is_alone(const gt_ps *ps) {
  return ps->epoch.minority || ps->epoch.out;
}
/* Its last round is in progress: members that it is still connected with do not take it, and it
   enters no epoch any more. */
static inline bool gt_ps_ends_alone(const gt_ps *ps) {
  return gt_ps_is_alone(ps) && ps->stop_code != GT_OK;
}
/* True if a run must not resume from the region's state (gt_ps_view.unfit). */
static inline bool gt_ps_is_unfit(const gt_ps *ps) {
  const ps_epoch *e = &ps->epoch;
  return e->changes && (e->minority || e->out || (ps->holders & PS_HOLDER_EPOCH) != 0 ||
                        (e->number > 0 && gt_exchange_is_late(ps->exchange)));
}
static inline bool gt_ps_frozen(const gt_ps *ps) {
  return ps->stop_code != GT_OK || ps->phase == GT_PS_STOPPED;
}
