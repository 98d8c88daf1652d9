/* sync: strategies: when a region sends what, and how it uses what it receives.  Layer 6.  Local: a
   strategy is a state machine.  It never calls MPI, waits, reads a clock or does I/O.  Its input
   comes with events; its requests go to its host and, for other regions, into collectives of the
   exchange.  It knows neither topology nor codec.
   R regions, w parameters, f period, i the sending region. */
#ifndef GEOTRAIN_SYNC_H
#define GEOTRAIN_SYNC_H

#include "geotrain/base_families.h"
#include "geotrain/exchange.h"
#include "geotrain/nn.h"

/* ---- what the PS does for a strategy --------------------------------------------------------- */

/* Timers that a strategy may have at a time. */
#define GT_SYNC_TIMERS 4

/* A link as it was recently: a sample of t seconds ago has the weight exp(-t / 30). */
typedef struct {
  size_t queued;    /* messages that have not left yet */
  double rate_bps;  /* of messages, until their acknowledgements; 0: not measured yet */
  double latency_s; /* half the shortest round trip; 0: not measured yet */
} gt_link_view;

typedef struct {
  void *ctx;
  /* After hold, no gradient is given to the strategy and workers wait, until release.  Both may be
     called in any event; repeating changes nothing. */
  void (*hold)(void *ctx);
  void (*release)(void *ctx);
  /* Asks for on_timer of this timer, below GT_SYNC_TIMERS, at `at`; GT_NEVER: no more.  Replaces
     what was asked for before.  Timers are not saved. */
  void (*timer)(void *ctx, size_t id, gt_ns at);
  /* Records a decision: `what` is `choice` from now on, because of `why`.  Borrowed texts. */
  void (*decided)(void *ctx, const char *what, const char *choice, const char *why);
  gt_link_view (*link)(void *ctx, size_t peer);
  /* The region's buffers were b and are now keep * b + share * other (borrowed for the call).
     Buffers that a worker computes from the old b must not undo this.  NULL: no worker computes
     meanwhile. */
  void (*moved)(void *ctx, float keep, float share, gt_vec other);
  /* Copies of a pipeline, and a mean gradient that is clipped by the norm of all its stages.  What
     the strategy is about to apply is this region's part of it, of which the regions with the other
     parts are told; it is told once, before `norm` gives its norm.  False: not all parts are known
     yet; when they may be, the strategy's collective is `changed`.  Both NULL: the norm is that of
     the region's own gradient, or what gt_optim_norm says. */
  void (*tell_squares)(void *ctx, gt_vec mean);
  bool (*norm)(void *ctx, double *norm);
} gt_sync_host;

/* Options of strategies.  Each strategy uses those that the job's keys give it. */
typedef struct {
  int64_t period; /* f, in this region's steps; 1 or more */
  double scale;   /* a remote additive update counts this much: 1 (sum) or 1/R (mean) */
  /* Additive updates count by the weight of their region, relative to the regions that still make
     steps: in other regions when they arrive, in their own from the moment they are sent.  scale is
     1, gradients false. */
  bool average;
  /* What is sent of a step is its gradient g, and a receiver takes -lr g with its own learning rate
     lr at that time, without momentum or decay; otherwise what is sent is the update that the
     sender's optimizer added to its parameters. */
  bool gradients;
  bool halves; /* ama: a received model counts one half; otherwise its region's weight */
  /* sma: the anchor is the model that all regions agreed on in the last round.  Regions send
     d_i = anchor - model; this optimizer takes G = sum w_i d_i / sum w_i as the gradient of the
     anchor (DiLoCo, arXiv 2311.08105, Alg. 1).  GT_OUTER_NONE: regions send models, and the mean is
     the next model. */
  gt_outer outer;
  double outer_lr, outer_momentum;
} gt_sync_options;

/* What a strategy works on; everything is borrowed and outlives it. */
typedef struct {
  size_t nregions, self;
  const double *weights; /* nregions, sum 1: equal or by samples */
  gt_sync_options options;
  /* on_part tells each worker's gradient before on_gradient, whose gradient has no data then. */
  bool per_worker;
  gt_vec params, buffers;
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
  bool needs_all;      /* a lost message (not finite) cannot be compensated: the run ends */
  bool between_steps;  /* parameters change between steps only, never while workers compute */
  bool lockstep;       /* all regions apply all steps: learning rates must be equal */
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
  /* This region makes no more steps: sends what is accumulated, as soon as there is room.  Called
     again after a resume, unless the region makes steps again. */
  void (*on_drain)(gt_sync *s, gt_ns now);
  /* Nothing is left to post; NULL: it never holds back anything. */
  bool (*drained)(const gt_sync *s);
  gt_status (*state)(
      gt_sync *s, gt_state_direction
                      direction); /* Saves or loads; names "sync/...".  NULL: it keeps nothing. */
} gt_sync_ops;

struct gt_sync {
  const gt_sync_ops *ops;
  gt_sync_env env;
  bool *done; /* nregions: the peer makes no more steps */
};

const gt_sync_ops *gt_sync_of(gt_strategy strategy);
/* Returns the arrays as large as the parameters that a strategy keeps with these options, and of
   these the most that a checkpoint has. */
size_t gt_sync_keeps(const gt_sync_ops *ops, const gt_sync_options *options);
size_t gt_sync_saves(const gt_sync_ops *ops, const gt_sync_options *options);
gt_sync *gt_sync_create(const gt_sync_ops *ops, const gt_sync_env *env);
void gt_sync_close(gt_sync *s);

/* Call when the region makes no more steps, or after a resume may make some again. */
void gt_sync_on_peer(gt_sync *s, size_t peer, gt_peer_event event);
/* Calls the slot unless it is NULL. */
void gt_sync_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples);
/* Calls the slot; only with env.per_worker. */
void gt_sync_on_part(gt_sync *s, size_t rank, gt_vec grads, uint64_t samples);
void gt_sync_on_timer(gt_sync *s, gt_ns now, size_t id);
void gt_sync_on_drain(gt_sync *s, gt_ns now);
bool gt_sync_drained(const gt_sync *s);
gt_status gt_sync_state(gt_sync *s, gt_state_direction direction);

#endif
