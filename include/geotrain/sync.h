/* sync: strategies: when a region sends what, and how it uses what it receives.  Layer 6.  Local: a
   strategy is a state machine.  It never calls MPI, waits, reads a clock or does I/O.  Its input
   comes with events; its requests go to its host and, for other regions, into collectives of the
   exchange.  It knows neither topology nor codec.
   R regions, w parameters, f period, i the sending region. */
#pragma once

#include "geotrain/base_families.h"
#include "geotrain/exchange.h"
#include "geotrain/nn.h"

/* ---- what the PS does for a strategy --------------------------------------------------------- */

/* Timers that a strategy may have at a time. */
#define GT_SYNC_TIMERS 4

/* Recent measurements of a link.  A sample that is t seconds old has the weight exp(-t / 30). */
typedef struct {
  size_t queued;    /* messages that wait to be sent */
  double rate_bps;  /* goodput from sending to acknowledgement; 0: not measured yet */
  double latency_s; /* half the shortest round trip; 0: not measured yet */
} gt_link_view;

typedef struct {
  void *ctx;
  /* Stop the workers and on_gradient until release.  Both may be called in any event; a second call
     has no effect. */
  void (*hold)(void *ctx);
  void (*release)(void *ctx);
  /* Sets timer `id` (below GT_SYNC_TIMERS) to call on_timer at `at`; GT_NEVER cancels it.  A new
     time replaces the old one.  Checkpoints do not save timers. */
  void (*timer)(void *ctx, size_t id, gt_ns at);
  /* Records that `what` has the value `choice` from now on, with the reason `why`.  The strings are
     borrowed. */
  void (*decided)(void *ctx, const char *what, const char *choice, const char *why);
  /* Records that the region's contribution, with this norm (NaN: it is not finite), was the
     count'th that is in no mean. */
  void (*excluded)(void *ctx, int64_t count, double norm);
  /* Returns the recent measurements of the link to `peer`. */
  gt_link_view (*link)(void *ctx, size_t peer);
  /* Call after changing the buffers from b to keep * b + share * other (borrowed).  A worker may be
     computing new buffers from the old b; the PS makes the same change to these when they arrive.
     NULL if no worker computes during an event. */
  void (*moved)(void *ctx, float keep, float share, gt_vec other);
  /* For a clipped gradient that is divided over several regions (stages of a replica).  Both NULL
     otherwise: the norm is that of the region's own gradient, or the one set by gt_optim_norm.
     tell_squares sends the sum of squares of the region's part of the mean to the regions with the
     other parts, once per mean.  norm writes the norm of the whole mean; false: a sum is still
     missing, and the collective's `changed` is called when it arrives. */
  void (*tell_squares)(void *ctx, gt_vec mean);
  bool (*norm)(void *ctx, double *norm);
} gt_sync_host;

/* A region judges its contribution to a mean before it is encoded: one that is not finite, or an
   outlier, takes part with weight 0 and without a payload. */
typedef struct {
  double clip;    /* largest norm of the mean of differences; 0: unlimited */
  double outlier; /* deviations of the norm from its mean so far (guard.c); 0: any is accepted */
  int64_t warmup; /* contributions before the first can be an outlier */
} gt_guard_options;

/* Options of strategies.  Each strategy uses those that the job's keys give it. */
typedef struct {
  int64_t period; /* f, in this region's steps; 1 or more */
  double scale;   /* weight of an update from another region: 1 (sum) or 1/R (mean) */
  /* Scale each update by w_i / (sum of the active regions' weights): in other regions when it
     arrives, in its own when it is sent.  Requires scale 1 and gradients false. */
  bool average;
  /* True: messages are gradients g; the receiver subtracts lr g with its own current learning rate,
     without momentum or decay.  False: messages are the updates of the sender's optimizer. */
  bool gradients;
  bool halves; /* ama: a received model counts one half; otherwise its region's weight */
  /* sma: the anchor is the model that all regions agreed on in the last round.  Regions send
     d_i = anchor - model; this optimizer takes G = sum w_i d_i / sum w_i as the gradient of the
     anchor (DiLoCo, arXiv 2311.08105, Alg. 1).  GT_OUTER_NONE: regions send models, and the mean is
     the next model. */
  gt_outer outer;
  double outer_lr, outer_momentum;
  /* Above 0: over the last quarter of outer_rounds the rate falls along a cosine to this rate. */
  double outer_lr_min;
  int64_t outer_rounds;
  /* Messages are encoded with a loss: sma sends d_i also without an outer optimizer, and the anchor
     moves by -G. */
  bool lossy;
  /* sma: fragments of the model with rounds of their own (0: 1; they divide the period); steps from
     a contribution to the mean, less than the period; what then becomes of the steps in between,
     and the weight of the region's own parameters for GT_LATE_BLEND. */
  int64_t fragments, delay;
  gt_late late;
  double local_weight;
  /* sma, over a hub: above 0, a round ends `grace` after contributions with this share of the
     weight have arrived (gt_collective_spec); regions then send d_i. */
  double quorum;
  gt_ns grace;
  /* sma: with a clip or an outlier above 0 contributions are judged; regions then send d_i. */
  gt_guard_options guard;
  /* Members can change: sma keeps the model of the last round for members that lack it. */
  bool regroups;
  /* `scale` is 1 / (number of regions that train), also after a change of members. */
  bool mean;
} gt_sync_options;

/* What a strategy works on; everything is borrowed and outlives it. */
typedef struct {
  size_t nregions, self;
  const double *weights; /* nregions, sum 1: equal or by samples */
  gt_sync_options options;
  /* True: on_part receives each worker's gradient; the following on_gradient has no data. */
  bool per_worker;
  gt_vec params, buffers;
  const gt_view *tensors; /* ntensors, of params; needed for fragments */
  size_t ntensors;
  gt_optim *optim;
  gt_exchange *exchange;
  gt_sync_host host;
} gt_sync_env;

/* ---- strategies ------------------------------------------------------------------------------ */

typedef struct gt_sync gt_sync;

typedef struct gt_sync_ops {
  const char *name;    /* "asgd-ga" */
  const char *source;  /* paper */
  gt_msg_kind sends;   /* GT_MSG_UPDATE (additive), GT_MSG_STATE, or 0: nothing */
  bool waits;          /* regions wait for the messages of all others */
  bool needs_all;      /* a non-finite message ends the run */
  bool between_steps;  /* parameters change between steps only, never while workers compute */
  bool lockstep;       /* all regions apply all steps: learning rates must be equal */
  bool identical;      /* after a run all regions hold the same parameters, bit for bit */
  size_t keeps, saves; /* as gt_sync_keeps, without an outer optimizer */
  /* of the strategy's own struct, whose first member is gt_sync; zeroed by gt_sync_create */
  size_t size;
  void (*open)(gt_sync *s);  /* allocates its vectors, opens its collectives; may be NULL */
  void (*close)(gt_sync *s); /* frees them; may be NULL */
  /* A local step's gradient (mean over `samples` samples), borrowed.  Never while held. */
  void (*on_gradient)(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples);
  /* The gradient of one worker (rank in the region, from 1) for the next on_gradient, borrowed;
     NULL: the mean of the region is enough. */
  void (*on_part)(gt_sync *s, size_t rank, gt_vec grads, uint64_t samples);
  void (*on_timer)(gt_sync *s, gt_ns now, size_t id); /* may be NULL */
  /* A worker's gradient was not finite and was dropped; may be NULL. */
  void (*on_nonfinite)(gt_sync *s);
  /* This region has finished its steps: sends accumulated updates when the outbox has room.  Called
     again after a resume, unless the region makes steps again. */
  void (*on_drain)(gt_sync *s, gt_ns now);
  /* True if nothing is left to send.  NULL: always true. */
  bool (*drained)(const gt_sync *s);
  /* Saves or loads; names "sync/...".  NULL: it keeps nothing. */
  gt_status (*state)(gt_sync *s, gt_state_direction direction);
  /* Saves the state of the range that all members have in common after its last round, or makes
     the member's own state follow from such a state, which another member has saved. */
  gt_status (*common)(gt_sync *s, size_t range, gt_state_direction direction);
  /* Returns the place in the period, which a returning member takes from another one.  NULL:
     there is none. */
  int64_t *(*place)(gt_sync *s);
} gt_sync_ops;

struct gt_sync {
  const gt_sync_ops *ops;
  gt_sync_env env;
  bool *done;       /* nregions: the peer makes no more steps */
  int64_t excluded; /* contributions that were in no mean */
  int64_t missed;   /* rounds that have ended without this region, while it trained */
};

/* Returns the table of a strategy. */
const gt_sync_ops *gt_sync_of(gt_strategy strategy);
/* Returns the number of arrays of the size of the parameters that a strategy with these options
   needs: in memory (keeps), and at most in a checkpoint (saves). */
size_t gt_sync_keeps(const gt_sync_ops *ops, const gt_sync_options *options);
size_t gt_sync_saves(const gt_sync_ops *ops, const gt_sync_options *options);
/* True if all regions hold the same model, parameters and `buffers` buffers, after a run that its
   limits did not end. */
bool gt_sync_identical(const gt_sync_ops *ops, size_t buffers);
/* Creates a strategy of a region and opens its collectives on env->exchange; the caller closes it,
   which accepts NULL. */
gt_sync *gt_sync_create(const gt_sync_ops *ops, const gt_sync_env *env);
void gt_sync_close(gt_sync *s);

/* Tells the strategy that `peer` has finished its steps, or may continue after a resume. */
void gt_sync_on_peer(gt_sync *s, size_t peer, gt_peer_event event);
/* Calls the slot unless it is NULL. */
void gt_sync_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples);
/* Calls the slot; only with env.per_worker. */
void gt_sync_on_part(gt_sync *s, size_t rank, gt_vec grads, uint64_t samples);
void gt_sync_on_nonfinite(gt_sync *s);
void gt_sync_on_timer(gt_sync *s, gt_ns now, size_t id);
void gt_sync_on_drain(gt_sync *s, gt_ns now);
bool gt_sync_drained(const gt_sync *s);
gt_status gt_sync_state(gt_sync *s, gt_state_direction direction);

/* Continues among new members, with the meaning of gt_sync_env; call before gt_exchange_regroup.
   trains: of the members, those with workers. */
void gt_sync_regroup(gt_sync *s, size_t nregions, size_t self, const double *weights,
                     size_t trains);
/* Calls the slot. */
gt_status gt_sync_common(gt_sync *s, size_t range, gt_state_direction direction);
/* Returns the number of steps from one contribution to the next, over all ranges; 0: it varies, or
   there are no rounds. */
int64_t gt_sync_stride(const gt_sync *s);
/* Returns the place in the period; 0: there is none.  set: sets it first. */
int64_t gt_sync_place(gt_sync *s, bool set, int64_t place);
