/* sync: strategies by which regions keep their models together.  Layer 5.  Local: a strategy is a state machine.
   It never calls MPI, waits, reads a clock or does I/O; everything it needs comes with an event, everything it wants goes to its host.
   R regions, w parameters, f period, i the sending region. */
#ifndef GEOTRAIN_SYNC_H
#define GEOTRAIN_SYNC_H

#include "geotrain/base_families.h"
#include "geotrain/link.h"
#include "geotrain/nn.h"

/* ---- what the PS does for a strategy ------------------------------------------------------------------------------ */

/* A message body: vec has params.n floats for GT_MSG_UPDATE, params.n + buffers.n for GT_MSG_STATE (parameters first).
   Owned by the host; given back when the last peer has acknowledged it. */
typedef struct gt_payload {
  gt_vec vec;
  int refs;
} gt_payload;

typedef struct {
  size_t queued;    /* messages that have not left yet */
  double rate_bps;  /* measured; 0: not yet */
  double latency_s; /* measured one way; 0: not yet */
} gt_link_view;

typedef struct {
  void *ctx;
  /* A payload to fill and post, of params.n (+ buffers.n when `state`) floats, contents undefined.  There is always one when every peer it is posted to
     has room or is posted to with replace. */
  gt_payload *(*payload)(void *ctx, bool state);
  /* The peer's outbox can take one more message. */
  bool (*room)(void *ctx, size_t peer);
  /* Queues the payload for every other region.  value: the sender's step or round number.  detail: samples behind it.
     With `replace`, a peer whose outbox is full gets it in place of the newest message that has not begun to leave. */
  void (*post)(void *ctx, gt_payload *payload, gt_msg_kind kind, uint64_t value, uint64_t detail, bool replace);
  /* After hold, no gradient is given to the strategy and workers wait, until release.  Both may be called in any event; repeating changes nothing. */
  void (*hold)(void *ctx);
  void (*release)(void *ctx);
  /* Asks for on_timer at `at`. */
  void (*timer)(void *ctx, gt_ns at);
  gt_link_view (*link)(void *ctx, size_t peer);
  /* The region's buffers were b and are now keep b + share other (borrowed for the call): what a
     worker computes from b does not undo it.  NULL: nobody computes meanwhile. */
  void (*moved)(void *ctx, float keep, float share, gt_vec other);
  /* limits.wan_bytes leaves one more message to every other region; `room` says so, too.  False:
     on_sent follows when it does, or the run ends.  NULL: always. */
  bool (*afford)(void *ctx);
} gt_sync_host;

/* What a strategy works on; everything is borrowed and outlives it. */
typedef struct {
  size_t nregions, self;
  const double *weights; /* nregions, sum 1: equal or by samples */
  int64_t period;        /* f, 1 or more */
  double scale;          /* a remote additive update counts this much: 1 (sum) or 1/R (mean) */
  /* Additive updates count by the weight of their region among those that make steps: in all regions, in their own from when they are sent.  scale is 1. */
  bool average;
  size_t inflight; /* most messages that can be under way on one link (outbox and unacknowledged) */
  gt_vec params, buffers;
  gt_optim *optim;
  gt_sync_host host;
} gt_sync_env;

/* ---- strategies ---------------------------------------------------------------------------------------------------- */

typedef enum { GT_PEER_JOINED, GT_PEER_LEFT, GT_PEER_DONE } gt_peer_event;

typedef struct gt_sync gt_sync;

typedef struct gt_sync_ops {
  const char *name;                        /* "asgd-ga" */
  const char *source;                      /* paper */
  gt_msg_kind sends;                       /* GT_MSG_UPDATE (additive), GT_MSG_STATE, or 0: nothing */
  bool barrier;                            /* no region goes on without every message of the others */
  bool periodic;                           /* speaks each sync.period steps; else the period says nothing */
  bool lockstep;                           /* every region applies every region's every step, as one optimizer would: learning rates must not part */
  size_t size;                             /* of the strategy's own struct, whose first member is gt_sync; zeroed by gt_sync_create */
  void (*open)(gt_sync *s);                /* allocates its vectors; may be NULL */
  void (*close)(gt_sync *s);               /* frees them; may be NULL */
  void (*on_start)(gt_sync *s, gt_ns now); /* also after a resume; may be NULL */
  /* A local step's gradient (mean over `samples` samples), borrowed.  Never while held. */
  void (*on_gradient)(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples);
  /* A message was received in order, once; payload borrowed.  It is acknowledged when this returns. */
  void (*on_message)(gt_sync *s, gt_ns now, size_t peer, const gt_frame_header *head, gt_vec payload);
  void (*on_sent)(gt_sync *s, gt_ns now, size_t peer); /* a place in the peer's outbox became free; may be NULL */
  void (*on_timer)(gt_sync *s, gt_ns now);             /* may be NULL */
  /* DONE: value is the number of steps the peer made; every message it ever sent has been received.  It stays and applies messages, sends no more, and counts zero in means of
     later rounds.  JOINED: after a resume (never in a fresh start) once for every peer, which may make steps again though it was done; value: its rounds();
     every message that it sent before the resume has been received. */
  void (*on_peer)(gt_sync *s, gt_ns now, size_t peer, gt_peer_event event, int64_t value);
  /* This region makes no more steps: sends what is accumulated (as soon as there is room).  After a resume again, unless it makes steps again. */
  void (*on_drain)(gt_sync *s, gt_ns now);
  /* True when nothing is left to send. */
  bool (*drained)(const gt_sync *s);
  /* True when, beyond that, no received message waits for another. */
  bool (*settled)(const gt_sync *s);
  int64_t (*rounds)(const gt_sync *s);       /* rounds applied, in which all took part who made steps; may be NULL: 0 */
  void (*save)(gt_sync *s, gt_state *state); /* names "sync/..." */
  gt_status (*load)(gt_sync *s, const gt_state *state);
} gt_sync_ops;

struct gt_sync {
  const gt_sync_ops *ops;
  gt_sync_env env;
  bool *done; /* nregions: the peer makes no more steps */
};

const gt_sync_ops *gt_sync_of(gt_strategy strategy);
/* The one with this name (gt_strategy_names), or NULL. */
const gt_sync_ops *gt_sync_find(const char *name);
gt_sync *gt_sync_create(const gt_sync_ops *ops, const gt_sync_env *env);
void gt_sync_close(gt_sync *s);

/* Dispatch: calls the slot unless it is NULL. */
void gt_sync_on_start(gt_sync *s, gt_ns now);
void gt_sync_on_gradient(gt_sync *s, gt_ns now, gt_vec grads, uint64_t samples);
void gt_sync_on_message(gt_sync *s, gt_ns now, size_t peer, const gt_frame_header *head, gt_vec payload);
void gt_sync_on_sent(gt_sync *s, gt_ns now, size_t peer);
void gt_sync_on_timer(gt_sync *s, gt_ns now);
void gt_sync_on_peer(gt_sync *s, gt_ns now, size_t peer, gt_peer_event event, int64_t value);
void gt_sync_on_drain(gt_sync *s, gt_ns now);
bool gt_sync_drained(const gt_sync *s);
bool gt_sync_settled(const gt_sync *s);
int64_t gt_sync_rounds(const gt_sync *s);
void gt_sync_save(gt_sync *s, gt_state *state);
gt_status gt_sync_load(gt_sync *s, const gt_state *state);

#endif
