/* Private to ps: its state, and the functions that its files offer one another.  The PS is one
   event loop over one state.  Each file calls only files before it in this list: batches, buffers,
   look, advance, agree, changes, adapt, passes, eval, rounds, drain, local, state, ps. ps.c has the
   events, and ends each by doing what the event has made possible, so no other file calls the loop.
   Lower layers call the PS through tables (gt_exchange_events, gt_sync_host). */
#ifndef GEOTRAIN_PS_INTERNAL_H
#define GEOTRAIN_PS_INTERNAL_H

#include "geotrain/pipe_adapt.h"
#include "geotrain/ps_passes.h"
#include "geotrain/ps_state.h"

typedef enum { W_ABSENT, W_WAITING, W_COMPUTING, W_PENDING, W_EVALUATING } ps_worker_state;

typedef struct {
  ps_worker_state state;
  bool has_batch; /* a number was handed to it and its gradient has not been used yet */
  int64_t batch;
  gt_ns since;     /* the state's start */
  gt_ns held_mark; /* held time of the PS when the wait began */
  gt_ps_push push; /* PENDING */
  float *grads;
  size_t chunk;      /* EVALUATING */
  bool has_snapshot; /* of the evaluation under way */
} ps_worker;

/* What is known of another region. */
typedef struct {
  /* rejected: a message that a strategy with a barrier cannot do without was not finite; nothing
     behind it is taken */
  bool done, rejected;
  bool joined;      /* its JOINED; told likewise when joined_seq is applied */
  bool joined_done; /* its DONE follows */
  bool joined_late; /* it was done, and may make steps again */
  int64_t joined_rounds, joined_seq;
  int64_t done_steps, done_seq; /* its DONE; told to the strategy when done_seq is applied */
  bool done_told;
  int64_t *done_counts; /* of every range: its gt_exchange_count then */
  size_t dones;         /* ranges that are done there */
  int64_t written;      /* newest round durable there */
  int64_t unsound;      /* newest round that it would not go on from */
  int64_t round;        /* newest round that it has taken, as it told */
  bool late;            /* something came from it that waits for the own checkpoint of its round: */
  int64_t late_ack;     /* an acknowledgement; 0: none */
  int64_t samples;      /* that it has seen, as its last heartbeat said */
  uint32_t advance;     /* the number that its last heartbeat carried (advance.c) */
  int64_t still_pings;  /* heartbeats of it since any region's number changed */
} ps_peer;

/* How exchanges have changed the region's buffers since workers were given them: keep times the old
   ones, plus `add`. */
typedef struct {
  bool any;
  float keep;
  gt_vec add;
} ps_moved;

/* Some of the regions, this one too. */
typedef struct {
  size_t n, self;  /* self: its number in the group */
  size_t *regions; /* n */
  size_t *of;      /* nregions: their numbers; PS_NONE: it is not of the group */
} ps_group;
#define PS_NONE SIZE_MAX

/* Floats that one stage has, or the same two stages (later: PS_NONE or the second one). */
typedef struct {
  size_t stage, later, offset, count;
} ps_run;

/* Of a region with stages. */
typedef struct {
  ps_run *params, *buffers;
  size_t nparams, nbuffers;
  size_t *of;  /* nworkers: the stage of each */
  float *sums; /* a block for each worker of a stage; NULL: no two stages have the same floats */
  /* The step's gradient is there, and is announced to the stage group.  committed: all its
     regions have applied the step, or dropped it because of the region `nonfinite`. */
  bool given, committed;
  size_t nonfinite;
  /* A round that another region has opened after `steps` steps, of which this one is still to make
     the last; 0: none.  steps -1: another replica's region has opened it, and it is taken after the
     step that this replica makes. */
  struct {
    int64_t round, steps;
    gt_status code;
  } deferred;
  size_t micro_batches; /* micro-batches of a step, as they are now */
} ps_stages;

/* A region of the own replica of a pipeline, the region itself too. */
typedef struct {
  int64_t told;        /* the newest step of which it has told */
  bool nonfinite[2];   /* its gradient of step s was not finite: [s % 2], for the last two steps */
  size_t tensors, got; /* got: of the step or round after `squared` */
  int64_t squared;     /* the newest one whose squares are all here; -1: not heard since a resume */
  double *squares[2];  /* tensors, of the last two: [number % 2] */
} ps_member;

/* What the stage group agrees on. */
typedef struct {
  ps_member *members;
  int64_t committed; /* steps, applied or dropped */
  size_t *owners;    /* spec.nowners: among the stage group */
  size_t *counts;    /* of each member: tensors whose squares have been added */
  bool of_means; /* means of several replicas are clipped; else gradients, if there are owners */
  int64_t taken; /* rounds of means whose norm the strategy has */
} ps_agree;

/* The result of a chunk of the test set. */
typedef struct {
  double loss_sum;
  int64_t correct, samples;
} ps_chunk;

typedef struct {
  bool active, due;
  size_t chunks, given, back; /* of the test set; that went out, that came back */
  gt_vec params, buffers;     /* that are evaluated */
  ps_chunk *found;            /* chunks of them */
  float *scores;              /* numbers of all test samples, if there is a ranking; else NULL */
  uint32_t *scratch;          /* likewise */
  int64_t number;             /* evaluations that should have been made when it began */
  int64_t steps, samples;     /* of the region then */
  gt_ns began, took;          /* took: the last one, while training */
  void (*done)(void *ctx, const gt_ps_score *score);
  void *ctx;
} ps_eval;

/* Counted from the start of training, over all resumes; all are int64, so that they are saved as
   they are. */
typedef struct {
  int64_t steps, samples, batches, next_batch, nonfinite, evals;
  int64_t compute, wait, wan_wait, drain, idle, update, encode;
  int64_t phase;
} ps_totals;
#define PS_TOTALS (sizeof(ps_totals) / sizeof(int64_t))

struct gt_ps {
  gt_ps_spec spec;
  gt_sync *sync;
  const gt_sync_ops *between; /* what data is exchanged by */
  ps_group stage_group;       /* of a pipeline: those that make steps together */
  ps_group replicas;          /* regions of `sync` and the exchange */
  size_t *next;               /* spec.next among the replicas; NULL: there is none */
  gt_outbox *outbox;
  gt_exchange *exchange;
  double *at_once; /* of gt_outbox_use */
  bool *forwards;
  bool apart;      /* several replicas of a pipeline, each takes a round at its own step */
  bool per_worker; /* the strategy gets every worker's gradient */
  gt_ns now;
  const struct ps_plane *plane;
  ps_worker *workers;
  int64_t step;        /* sync: number of the step that was last begun, whatever became of it */
  size_t step_workers; /* that take part in it */
  struct {
    const float **grads, **buffers;
    int64_t *samples;
    size_t n, bad;
  } parts;         /* of it: what its workers gave; bad: not finite, and left out */
  ps_moved *moved; /* async: of each worker; sync: of all of the step */
  size_t nmoved;
  ps_stages stages;
  ps_agree agree;
  struct ps_adapt *adapt;      /* NULL: the order of passes stays */
  gt_ps_passes *passes;        /* NULL: the host makes a step of one order */
  size_t *arrivals, narrivals; /* async: workers with a PENDING gradient, in order of arrival */
  ps_peer *peers;
  size_t told;    /* peers that the strategy knows are done */
  size_t durable; /* the first so many peers have the round that is under way */
  ps_totals totals;
  gt_ps_phase phase;
  int64_t *reissue; /* numbers to hand out again, ascending */
  size_t nreissue;
  int64_t *unreturned; /* for saving: those, and what workers hold */
  size_t unreturned_capacity;
  double loss_sum;
  int64_t loss_samples;
  gt_ps_score last_eval;
  struct {
    uint64_t seen;   /* what host.advance returned last */
    uint32_t number; /* goes out with heartbeats */
    int64_t beats;   /* heartbeats of this region since any region's number changed */
  } advance;
  unsigned holders; /* what holds the workers: bits, PS_HOLDER_* */
  bool held;
  gt_ns held_since, held_total;
  gt_ns timer_at[GT_SYNC_TIMERS];
  gt_ns phase_since, heartbeat_at, keepalive_at, encode_from;
  ps_eval eval;
  /* rounds */
  int64_t round, whole_round, own_written;
  int64_t unsound; /* the newest round that this region would not go on from */
  int64_t steps_at_round, samples_at_round;
  gt_ns round_at;
  bool want_round;
  gt_status want_stop, stop_code;
  bool resumed;
  bool came_back; /* it was done before the resume, and may make steps again */
};

/* The local plane: how gradients of workers become steps. */
typedef struct ps_plane {
  const char *name;
  /* Every worker has a part in each batch, and in an evaluation, which all begin together. */
  bool whole;
  /* Regions make steps together: they take a round between the same two steps. */
  bool together;
  /* NULL: there is nothing to open or to close. */
  void (*open)(gt_ps *ps);
  void (*close)(gt_ps *ps);
  /* uses what has arrived, gives work to who waits; called after every event */
  void (*pump)(gt_ps *ps);
  /* The model that workers read in an evaluation: unchanged, or a copy of it. */
  void (*lend)(gt_ps *ps, gt_vec *params, gt_vec *buffers);
  /* The worker's answers in an evaluation count.  NULL: those of all do. */
  bool (*judges)(const gt_ps *ps, size_t worker);
  /* A message of kind STRATEGY; check: GT_ERR_FAULT: it cannot be right.  NULL: there are none. */
  gt_status (*check)(const gt_ps *ps, size_t from, const gt_frame_header *head);
  void (*message)(gt_ps *ps, size_t from, const gt_frame_header *head, const void *body);
} ps_plane;
/* That of the spec (local.c). */
const ps_plane *gt_ps_plane_of(const gt_ps_spec *spec);

/* batches.c */
int64_t gt_ps_total_batches(const gt_ps *ps);
bool gt_ps_may_issue(const gt_ps *ps);
int64_t gt_ps_take_number(gt_ps *ps);

/* buffers.c */
void gt_ps_buffers_open(gt_ps *ps);
void gt_ps_buffers_close(gt_ps *ps);
void gt_ps_buffers_ordered(gt_ps *ps, size_t worker); /* it is given them as they are */
/* `moved` of a gt_sync_host. */
void gt_ps_buffers_moved(void *ps, float keep, float share, gt_vec other);
/* The region's buffers become those that the worker pushed, or the mean of ps->parts.  Changes that
   exchanges made since then are applied again. */
void gt_ps_buffers_take(gt_ps *ps, size_t worker);
void gt_ps_buffers_mean(gt_ps *ps);
/* With stages: to floats of them that have just become what workers pushed, the changes are applied
   again. */
void gt_ps_buffers_again(gt_ps *ps, size_t offset, size_t count);

/* view.c */
gt_ns gt_ps_held_total(const gt_ps *ps);
bool gt_ps_outstanding(const gt_ps *ps); /* a worker holds a batch */
bool gt_ps_whole_sound(const gt_ps *ps);

/* adapt.c; without an adapter they do nothing, and check and note are not called. */
void gt_ps_adapt_open(gt_ps *ps);
void gt_ps_adapt_close(gt_ps *ps);
void gt_ps_adapt_begin(gt_ps *ps); /* a step begins here */
void gt_ps_adapt_tell(gt_ps *ps);  /* before its gradient is announced */
/* The step is committed, and counted; true: another order is in force from the next one on. */
bool gt_ps_adapt_committed(gt_ps *ps);
/* A message with this header, an activation or a gradient of one, is posted, of so many bytes on
   the wire, which count under wan_bytes_limit; has come from a peer.  Also without an adapter. */
void gt_ps_posted(gt_ps *ps, size_t peer, const gt_frame_header *head, double bytes, gt_ns now);
void gt_ps_landed(gt_ps *ps, size_t peer, const gt_frame_header *head, gt_ns now);
/* The schedule in force; NULL: without an adapter. */
const gt_pipe_schedule *gt_ps_schedule(const gt_ps *ps);
/* A message of kind STRATEGY with a negative value; GT_ERR_FAULT: it cannot be right. */
gt_status gt_ps_adapt_check(const gt_ps *ps, size_t from, const gt_frame_header *head);
void gt_ps_adapt_note(gt_ps *ps, size_t from, const gt_frame_header *head);
void gt_ps_adapt_save(gt_ps *ps, gt_state *state);
gt_status gt_ps_adapt_load(gt_ps *ps, const gt_state *state);

/* passes.c */
#define PS_PASSES_COOKIE ((uint64_t)1 << 62) /* of packets: this and more */
typedef struct {
  const gt_pipe_job *job; /* borrowed */
  size_t region;
  size_t test_samples;    /* of an evaluation */
  const gt_ps_host *host; /* borrowed */
  gt_ps *ps;              /* that posts packets and holds workers; NULL: none does */
} ps_passes_spec;
/* Errors as gt_pipe_region_create; *out is then NULL. */
gt_status gt_ps_passes_open(gt_ps_passes **out, const ps_passes_spec *spec);
void gt_ps_passes_close(gt_ps_passes *passes); /* takes NULL */
/* GT_ERR_FAULT: it cannot be so; one sentence says why, and nothing has changed.  The order's
   vectors are borrowed until the order ends.  sent: when the sender queued the message, by this
   PS's clock (head->clock is by the sender's); GT_NEVER: not known.  payload: for host.land. */
gt_status gt_ps_passes_order(gt_ps_passes *passes, size_t worker, const gt_ps_order *order);
gt_status gt_ps_passes_done(gt_ps_passes *passes, size_t worker, gt_ns compute, gt_ns wait);
gt_status gt_ps_passes_message(gt_ps_passes *passes, const gt_frame_header *head,
                               const void *payload, gt_ns sent);
gt_status gt_ps_passes_departed(gt_ps_passes *passes, uint64_t cookie);
/* Steps from now on run this schedule (gt_pipe_region_reorder), in its number of micro-batches. */
gt_status gt_ps_passes_reorder(gt_ps_passes *passes, const gt_pipe_schedule *schedule);
/* The push that ends the worker's order: adds the times of the order's passes to it. */
void gt_ps_passes_timed(gt_ps_passes *passes, size_t worker, gt_ps_push *push);
/* After every event: the phases of workers begin with training and end with it. */
void gt_ps_passes_account(gt_ps_passes *passes, bool training);
void gt_ps_passes_begin(gt_ps *ps); /* opens those of the spec; nothing if it has none */
/* Gives the worker an order: as passes, or whole. */
void gt_ps_order_worker(gt_ps *ps, size_t worker, const gt_ps_order *order);
void gt_ps_packet_left(gt_ps *ps, uint64_t cookie);
/* Passes follow the schedule in force. */
void gt_ps_reorder(gt_ps *ps);

/* advance.c */
void gt_ps_advance_beat(gt_ps *ps); /* once for each heartbeat of this region */
void gt_ps_advance_ping(gt_ps *ps, size_t from, uint32_t number);

/* agree.c; state does nothing unless it is open. */
enum { PS_HOLDER_SYNC = 1, PS_HOLDER_AGREE = 2 };
/* The workers are held as long as one of the holders does so. */
void gt_ps_hold(gt_ps *ps, unsigned holder, bool holds);
/* A message of kind STRATEGY without numbers. */
void gt_ps_tell_member(gt_ps *ps, size_t peer, gt_frame_header head);
void gt_ps_agree_open(gt_ps *ps);
void gt_ps_agree_close(gt_ps *ps);
/* The step's gradient is there (spec.grads), or it is not finite: tells the stage group, and holds
   the workers until all have told. */
void gt_ps_agree_tell(gt_ps *ps, bool nonfinite);
/* `tell_squares` and `norm` of a gt_sync_host. */
void gt_ps_agree_mean(void *ps, gt_vec mean);
bool gt_ps_agree_norm(void *ps, double *norm);
void gt_ps_agree_again(gt_ps *ps); /* after a resume: tells of means again */
/* A message of kind STRATEGY; GT_ERR_FAULT: it cannot be right. */
bool gt_ps_agree_has_numbers(const gt_frame_header *head);
gt_status gt_ps_agree_check(const gt_ps *ps, size_t from, const gt_frame_header *head);
void gt_ps_agree_message(gt_ps *ps, size_t from, const gt_frame_header *head, const void *body);
gt_status gt_ps_agree_state(gt_ps *ps, gt_state_direction direction);

/* eval.c */
void gt_ps_eval_open(gt_ps *ps);
void gt_ps_eval_close(gt_ps *ps);
/* begins the evaluation that is due; false: none is, or one is under way */
bool gt_ps_eval_begin(gt_ps *ps);
void gt_ps_eval_give(gt_ps *ps);          /* chunks to the workers that wait */
void gt_ps_eval_check(gt_ps *ps);         /* is one due? */
void gt_ps_eval_skip(gt_ps *ps);          /* what is due is left to the evaluation at the end */
int64_t gt_ps_evals_due(const gt_ps *ps); /* evaluations that should have been made by now */
/* With stages, after a resume: regions may have been saved before and after the evaluation of the
   same step, so all make it again. */
void gt_ps_eval_again(gt_ps *ps);
/* A chunk's answer. */
void gt_ps_eval_take(gt_ps *ps, size_t worker, const gt_ps_push *push);

/* rounds.c */
void gt_ps_round_check(gt_ps *ps); /* an interval is over or a stop is wanted */
void gt_ps_round_take(gt_ps *ps, int64_t round, gt_status stop_code);
void gt_ps_round_message(gt_ps *ps, size_t from, const gt_frame_header *head);
void gt_ps_round_written(gt_ps *ps, int64_t round); /* here */
void gt_ps_round_whole(gt_ps *ps);

/* drain.c */
void gt_ps_drain(gt_ps *ps); /* no more steps are made: the strategies send what there is */
/* that the peer resumed or is done, when everything that it sent before has been applied */
void gt_ps_tell_strategy(gt_ps *ps, size_t peer);
/* moves TRAINING -> DRAINING -> FOLLOWING -> COMPLETE as far as it can */
void gt_ps_end_check(gt_ps *ps);
/* sends JOINED to every peer, and DONE where it is so */
void gt_ps_tell_joined(gt_ps *ps);

/* local.c */
void gt_ps_worker_waits(gt_ps *ps, size_t worker); /* from now on */
void gt_ps_take_gradient(gt_ps *ps, size_t worker, const gt_ps_push *push, float *grads);

/* check.c.  GT_ERR_FAULT: the peer's message cannot be correct; the text says what was found and
   what is needed. */
gt_status gt_ps_check(const gt_ps *ps, size_t from, const gt_frame_header *head);

/* DONE messages of a region: one for every range, and one if there is none. */
static inline size_t gt_ps_dones(const gt_ps *ps) {
  const size_t ranges = gt_exchange_ranges(ps->exchange);
  return ranges ? ranges : 1;
}
static inline gt_ns gt_ps_clock(const gt_ps *ps) {
  return ps->spec.host.clock ? ps->spec.host.clock(ps->spec.host.ctx) : 0;
}
/* An event begins. */
static inline void gt_ps_at(gt_ps *ps, gt_ns now) {
  ps->now = now;
  gt_outbox_at(ps->outbox, now);
}
/* Reports that this part of the work is done; returns the clock after it. */
static inline gt_ns gt_ps_worked(const gt_ps *ps, gt_ps_work work, double part) {
  if (ps->spec.host.work) ps->spec.host.work(ps->spec.host.ctx, work, part);
  return gt_ps_clock(ps);
}
/* Copies of a pipeline: the peer has taken a round that this region has not, or the other way
   round.  Else false. */
static inline bool gt_ps_ahead(const gt_ps *ps, size_t peer) {
  return ps->apart && ps->peers[peer].round > ps->round;
}
static inline bool gt_ps_behind(const gt_ps *ps, size_t peer) {
  return ps->apart && ps->peers[peer].round < ps->round;
}
/* The run is to stop, or what waits for bytes never gets them. */
static inline bool gt_ps_wants_stop(gt_ps *ps) {
  if (gt_outbox_exhausted(ps->outbox)) ps->want_stop = GT_ERR_LIMIT;
  return ps->want_stop != GT_OK;
}
static inline bool gt_ps_frozen(const gt_ps *ps) {
  return ps->stop_code != GT_OK || ps->phase == GT_PS_STOPPED;
}

#endif
