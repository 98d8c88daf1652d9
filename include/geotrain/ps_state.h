/* ps_state: the progress of a PS, and its state in a checkpoint.  Local. */
#pragma once

#include "geotrain/ps.h"
#include "geotrain/record.h"

typedef enum {
  GT_PS_TRAINING,
  GT_PS_DRAINING,  /* no more batches; sends the accumulated updates */
  GT_PS_FOLLOWING, /* done; applies messages until all are done */
  GT_PS_COMPLETE,  /* all are done, everything is acknowledged and settled */
  GT_PS_STOPPED    /* the stop round is whole */
} gt_ps_phase;

/* Messages that the codec has encoded, or decoded; int64, as in a checkpoint. */
typedef struct {
  int64_t messages, raw_bytes, wire_bytes;
  gt_ns took;
} gt_ps_coded;

typedef struct {
  gt_ps_phase phase;
  gt_status stop_code; /* of STOPPED */
  int64_t steps, samples, batches, nonfinite, round, whole_round;
  /* excluded: contributions that a guard has left out; missed: rounds of a quorum that ended
     without this region */
  int64_t excluded, missed;
  int64_t parts;   /* batches, each once for every worker with a part in it */
  double loss_sum; /* over loss_samples, since gt_ps_loss_reset */
  int64_t loss_samples;
  gt_ps_score last_eval; /* while training; NaN: none yet */
  gt_ns last_eval_took;
  /* sums over workers */
  gt_ns compute, wait, wan_wait;
  /* times of the region: from its last step until all its messages are acknowledged; from then
     until all regions are done; applying updates and means; copying payloads */
  gt_ns drain, idle, update, encode;
  bool held;
  bool evaluating; /* an evaluation is in progress or due */
  bool validating; /* a round is not judged yet */
  /* With validation: the newest round that was judged, the best one and the last one of the run, 0:
     none or not known; loss of the best one; loss and accuracy of the one judged. */
  int64_t judged, best_round, last_round;
  double best_loss, judged_loss, judged_accuracy;
  bool gave_up;  /* the patience is over */
  double done;   /* completed share of the training */
  int64_t epoch; /* number of the membership epoch; its number of members */
  size_t members;
  bool entering; /* it has not entered the epoch with all its members, or lacks their state */
  bool outside;  /* it has returned, and has not been taken in yet */
  /* Samples between its checkpoint and its position when it was taken in; below 0: it went back. */
  int64_t moved_samples;
  /* A run must not resume from its state: it is entering an epoch, has not contributed since it has
     returned, or is a minority or out. */
  bool unfit;
  /* minority: no majority is left with this region; out: the others continue without it.  Both: it
     can only stop. */
  bool minority, out;
} gt_ps_view;
/* ps/epoch/unfit of a checkpoint: 1: unfit; this: it also lacks the state of the group, so that no
   other region can return to it. */
#define GT_PS_UNFIT_ALWAYS 2
/* True if the region is a member. */
bool gt_ps_is_member(const gt_ps *ps, size_t region);
/* True if the regions hold a majority of the weight of all, or half of it with the region `tie`. */
bool gt_ps_is_majority(const gt_ps *ps, const bool *set);
/* True if the regions hold such a majority of these weights. */
bool gt_ps_majority(const double *weights, size_t nregions, size_t tie, const bool *set);

/* The event that ends a wait for other regions. */
typedef enum {
  GT_WAIT_ROUND,    /* the peer's checkpoint of round `want`; its newest is `have` */
  GT_WAIT_ACK,      /* the peer's acknowledgement of `want` messages */
  GT_WAIT_MESSAGES, /* the peer's messages up to number `want`; `have` have arrived */
  GT_WAIT_DONE,     /* the peer's DONE */
  GT_WAIT_EXCHANGE  /* an event of the strategy, from any region */
} gt_ps_wait_kind;
typedef struct {
  gt_ps_wait_kind kind;
  size_t peer; /* the number of regions: not known */
  int64_t have, want;
} gt_ps_wait;

/* Writes the codec of a region's result; empty without one. */
void gt_ps_coded_result(const gt_ps *ps, gt_region_result *result);
/* True if encoding has taken longer than the saved bytes take at this rate, of the slowest link;
   text says so. */
bool gt_ps_coded_slow(const gt_ps *ps, double bps, char *text, size_t size);

void gt_ps_get_view(const gt_ps *ps, gt_ns now, gt_ps_view *view);
/* Returns the part of view->wait that is not for the WAN.  That of a batch is in wan_wait since it
   was ordered, and in wait since its gradient came. */
static inline gt_ns gt_ps_local_wait(const gt_ps_view *view) {
  return view->wait > view->wan_wait ? view->wait - view->wan_wait : 0;
}
/* Returns gt_exchange_residual of the PS's exchange. */
double gt_ps_residual(const gt_ps *ps);
/* Returns the time for which no region has made progress, by the heartbeats of all regions; 0 if a
   region is silent. */
gt_ns gt_ps_still(const gt_ps *ps);
gt_ps_wait gt_ps_waits_for(const gt_ps *ps);
void gt_ps_loss_reset(gt_ps *ps);
/* Returns the part of the waits of waiting workers, summed over them, that counts as WAN wait and
   is not in wan_wait yet. */
gt_ns gt_ps_held_now(const gt_ps *ps, gt_ns now);
/* True if the files of whole_round are sound in all regions. */
bool gt_ps_whole_sound(const gt_ps *ps);

/* Returns the completed share of the training, 0 to 1. */
double gt_ps_share_done(const gt_ps *ps);
/* Returns the number of steps that the region will still make by the job; 0 when it is done. */
int64_t gt_ps_steps_left(const gt_ps *ps);

typedef struct {
  double bandwidth_bps, latency_s;         /* measured; 0: not yet */
  double staleness_s, staleness_s_longest; /* as in gt_outbox_view */
  size_t queued, unacknowledged;
  int64_t samples; /* samples that the peer reported with its last heartbeat */
  bool done;
  /* Time by which the peer's clock is ahead of this region's clock, from the quickest recent
     answer, if both directions take the same time.  compared: the peer has answered. */
  gt_ns ahead;
  bool compared;
} gt_ps_link;
void gt_ps_get_link(const gt_ps *ps, size_t peer, gt_ps_link *link);
/* Returns the part of the time since the worker's last push in which other regions held the
   worker. */
gt_ns gt_ps_held(const gt_ps *ps, size_t worker);
/* True if the worker has not reported that it is ready. */
bool gt_ps_absent(const gt_ps *ps, size_t worker);
/* Writes the worker's current batch and the time at which the worker began to compute this batch.
   False: the worker is not computing. */
bool gt_ps_computing(const gt_ps *ps, size_t worker, gt_ns *since, int64_t *batch);

/* Saves the state under the names "ps/...", "sync/...", "optim/...", "outbox/...".  Together with
   model/params and model/buffers, which the caller saves, it is the region's whole state. */
void gt_ps_save(gt_ps *ps, gt_state *state);
/* Loads the state.  Call before gt_ps_start.  The number of workers and the limits can differ from
   the saved ones. */
gt_status gt_ps_load(gt_ps *ps, gt_ns now, const gt_state *state);
