/* pipe: cuts a model into pipeline stages and gives them devices.  Layer 5.  Numbers only: no MPI,
   no files.  Everything is local.  SpanTrain chooses its stages by a performance model and gives no
   equation: model and search are geotrain's (docs/pipeline-search.md). */
#ifndef GEOTRAIN_PIPE_STAGES_H
#define GEOTRAIN_PIPE_STAGES_H

#include "geotrain/pipe_groups.h"

/* ---- the problem --------------------------------------------------------------------------------

   A stage is (operations a..e, d devices of a group).  With b samples in a micro-batch, m
   micro-batches in a step and k stages behind it (between it and the loss):

     n       samples of one device: ceil(b / d), as samples are whole; b / d where d divides b
     F       n sum forward_s / power; B and W likewise with input_s and weight_s
     P       sum parameter_bytes
     sync    2 c(d P), once a step: each of the d workers pushes its gradient to the PS and gets the
             parameters back, over the links inside its group; c is gt_pipe_transfer_s
     busy    F + B + W + sync / m
     memory  copies P + min(in_flight[k], m) n sum (activation_bytes + kept_bytes), on each device
     hop     to the next stage, which begins at operation e + 1: x = b cut_bytes[e + 1] forward, and
             a gradient of the same size back; busy: gt_pipe_occupied_s(x) of the slower direction;
             its latency only delays

   slowest = max of busy over stages and hops; pass = sum of F + B over stages and of both c(x) over
   hops.  A solution has the least slowest, and of these the least pass.

   Devices of a group are taken in order: a group may have several stages, which follow each other,
   and groups of one region follow each other.  Devices and groups may stay unused. */

/* Times are those of one sample on a device of power 1. */
typedef struct {
  double forward_s, input_s, weight_s; /* forward, backward-input, backward-weight */
  double parameter_bytes;
  double activation_bytes; /* of a sample, held from forward to the end of backward-input */
  double kept_bytes;       /* of a sample, held for backward-weight */
  double cut_bytes;        /* of a sample, sent to this operation if a stage begins here */
} gt_pipe_operation;

/* All borrowed. */
typedef struct {
  const gt_pipe_operation *operations;
  size_t noperations;
  const gt_pipe_group *groups;
  size_t ngroups;
  const gt_pipe_link *between; /* [from * ngroups + to]; the diagonal: inside the group */
  int64_t micro_batch, micro_batches;
  double copies; /* of a parameter byte: parameters, gradients, images, optimizer state */
  /* noperations: micro-batches of which a stage holds activations, by the number of stages behind
     it; the schedule's bound */
  const int64_t *in_flight;
  size_t stages_min, stages_max; /* 0: no limit */
  /* ngroups: whether the group may have the first stage, which reads the data; NULL: each may */
  const bool *may_start;
} gt_pipe_stages_problem;

/* ---- the solution ---------------------------------------------------------------------------- */

typedef struct {
  size_t group, first, last; /* operations first..last */
  int64_t devices;
  double forward_s, input_s, weight_s; /* of a micro-batch: F, B, W */
  double sync_s;                       /* of a step */
  double busy_s;                       /* of a micro-batch, with its part of sync_s */
  double memory_bytes;
  double send_s, back_s; /* c(x) to the next stage and of the gradient back; the last stage: 0 */
  double hop_busy_s;
} gt_pipe_stage;

/* Owned by the caller: gt_pipe_stages_close. */
typedef struct {
  gt_pipe_stage *stages; /* in the order of the operations */
  size_t nstages;
  double slowest_s, pass_s;
  /* The mean time of a micro-batch in a step is not below this in any schedule that keeps to
     in_flight: max of slowest_s and, over stages, of the time from a micro-batch's forward there to
     its backward-input there, divided by min(in_flight, m) */
  double bound_s;
  bool exact; /* all orders of the groups were tried */
} gt_pipe_stages;

/* Up to this number of groups all their orders are tried, otherwise nearest neighbours. */
#define GT_PIPE_ORDERS 8

/* Solves the problem by dynamic programming.  With G groups, N operations, P the least of
   stages_max, N and the number of devices: memory about 8 G 2^(G-1) N P bytes up to GT_PIPE_ORDERS
   groups, 8 G N P beyond.  The same problem gives the same solution.  GT_ERR_JOB: one sentence
   names the number that is invalid, or says why there is no solution; *out is then empty. */
gt_status gt_pipe_stages_solve(gt_pipe_stages *out, const gt_pipe_stages_problem *problem);
void gt_pipe_stages_close(gt_pipe_stages *stages);

#endif
