/* pipe_region: runs the stages of a region's pipeline as a state machine: its input are events from
   the region's parameter server, its output orders to workers and packets to other regions.
   Layer 5.  No MPI, clock or data: the host moves bytes.  The same events give the same answers, in
   the order of the workers.  Allocates memory only in create.

   A worker makes steps in succession: a training step runs the passes of the schedule; an
   evaluation runs F of a number of micro-batches.  Training steps and evaluations share one
   sequence of numbers, the same in all regions.

   A pass reads its input from buffers into its slot and writes its output to an out buffer.
   Workers of one region read each other's out buffers.  Output for another region is sent in
   packets, one from each worker to each worker that shares samples, and lands in its landing
   buffers. */
#pragma once

#include "geotrain/pipe_layout.h"

typedef struct gt_pipe_region gt_pipe_region;

/* ---- orders ---------------------------------------------------------------------------------- */

#define GT_PIPE_NONE SIZE_MAX

/* A part of a pass's input. */
typedef struct {
  bool landed;   /* in a landing buffer of this worker; otherwise in an out buffer of `worker` */
  size_t worker; /* of this region; can be this worker itself */
  size_t buffer;
  size_t at;           /* first sample, from the start of the buffer */
  size_t first, count; /* samples in this worker's share */
} gt_pipe_input;

/* A pass.  W has neither input nor output. */
typedef struct {
  gt_pass_kind kind;
  uint32_t span, micro;
  size_t chunk;
  int64_t step;
  bool forward_only; /* of an evaluation */
  size_t slot;       /* of the worker: the slot that F of this span and micro-batch took */
  bool first;        /* W or BW: the first of this span in this step */
  bool last;         /* of the worker's step */
  /* The whole input, in order of samples; borrowed for the call. 0: F of the first span reads data,
     B of the last span starts at the loss. */
  const gt_pipe_input *pieces;
  size_t npieces;
  size_t out; /* buffer of the output; GT_PIPE_NONE: no output */
} gt_pipe_order;

/* ---- packets --------------------------------------------------------------------------------- */

/* A message from one worker to a worker of another region.  The receiving host sets all fields
   except buffer and at.  In an evaluation, a packet with `gradient` is empty (bytes 0): it confirms
   that the receiver has read the output, so that the sender can reuse its buffer. */
typedef struct {
  bool gradient, forward_only;
  uint32_t span, micro; /* span: the receiver's */
  int64_t step;
  size_t from_stage, from_worker, to_stage, to_worker; /* workers, within their regions */
  size_t first, count;                                 /* samples, of the micro-batch */
  size_t bytes;
  /* Sender: the out buffer.  Receiver: the landing buffer.  The samples start at `at` in it.  An
     empty packet has GT_PIPE_NONE. */
  size_t buffer, at;
} gt_pipe_packet;

/* ---- host ------------------------------------------------------------------------------------ */

/* Callbacks from the functions below, which callbacks must not call. */
typedef struct {
  void *ctx;
  /* The idle worker starts this pass; gt_pipe_region_done follows. */
  void (*pass)(void *ctx, size_t worker, const gt_pipe_order *order);
  /* To another region; packets can arrive in any order. gt_pipe_region_departed follows once for
     each packet with a buffer. */
  void (*send)(void *ctx, size_t region, const gt_pipe_packet *packet);
  /* The received packet is sound: copy its bytes to its landing buffer now. */
  void (*land)(void *ctx, const gt_pipe_packet *packet);
  /* The worker's step has ended: all passes have ended, and in an evaluation all its outputs have
     been read. */
  void (*ended)(void *ctx, size_t worker);
} gt_pipe_region_host;

/* ---- the region ------------------------------------------------------------------------------ */

typedef struct {
  const gt_pipe_layout *layout; /* borrowed */
  size_t region;
  int64_t first_step;           /* number of the first step, 0 or more */
  size_t forward_micro_batches; /* maximum number of micro-batches of an evaluation */
  /* Each step reserves this number of micro-batch numbers, or the number of its micro-batches if
     that is greater (gt_pipe_region_number).  The same in all regions, and in all state machines of
     a region. */
  size_t stride;
  gt_pipe_region_host host;
} gt_pipe_region_spec;

/* Creates the state machine of a region.  GT_ERR_JOB: as gt_pipe_layout_check.  GT_ERR_FAULT: no
   such region.  *out is then NULL.  A region can have workers without a stage, and no stage at
   all. */
gt_status gt_pipe_region_create(gt_pipe_region **out, const gt_pipe_region_spec *spec);
void gt_pipe_region_close(gt_pipe_region *region);

/* ---- events ---------------------------------------------------------------------------------- */

/* All events return GT_ERR_FAULT if the event is impossible in the present state.  The text is one
   sentence with the reason; the state is unchanged. */

/* Call when the worker is ready for its next step, which is `step`. forward_micro_batches: 0: a
   training step; otherwise an evaluation of this number of micro-batches, the same in all
   regions. */
gt_status gt_pipe_region_step(gt_pipe_region *region, size_t worker, int64_t step,
                              size_t forward_micro_batches);
/* Sets the schedule (borrowed, sound) of training steps that start from now on.  No worker is in a
   step. */
gt_status gt_pipe_region_reorder(gt_pipe_region *region, const gt_pipe_schedule *schedule);
/* Skips steps, if several state machines of a region, with layouts of the same stages, take turns:
   the next step of all workers is `step`; others have made the steps before.  No worker is in a
   step.  Packets that have arrived for this step stay. */
gt_status gt_pipe_region_skip(gt_pipe_region *region, int64_t step);
/* True if a packet has arrived for a step that has not started. */
bool gt_pipe_region_early(const gt_pipe_region *region);
/* Call when the worker's pass has ended: it has read its input and written its output. */
gt_status gt_pipe_region_done(gt_pipe_region *region, size_t worker);
/* Call when a whole packet for this region has arrived.  Sets its buffer and at. */
gt_status gt_pipe_region_message(gt_pipe_region *region, gt_pipe_packet *packet);
/* Call when a packet from this out buffer has left and the host no longer reads its bytes.  Buffers
   always suffice if this call comes before the call about any effect of the packet in other
   regions; otherwise passes can wait for it. */
gt_status gt_pipe_region_departed(gt_pipe_region *region, size_t worker, size_t buffer);

/* ---- for the host ---------------------------------------------------------------------------- */

/* Returns the number of a packet's micro-batch on the wire: step x n + micro, where n is the
   maximum of the stride, the micro-batches of a step and those of the longest evaluation. */
uint64_t gt_pipe_region_number(const gt_pipe_region *region, int64_t step, uint32_t micro);
void gt_pipe_region_of_number(const gt_pipe_region *region, uint64_t number, int64_t *step,
                              uint32_t *micro);
/* Writes the activity of a worker: "stage 2 waits for the activation of micro-batch 5 from stage
   1".  Returns text. */
char *gt_pipe_region_text(const gt_pipe_region *region, size_t worker, char *text, size_t size);
/* Returns the number of passes so far that waited for an out buffer; 0 if packets depart in
   time. */
size_t gt_pipe_region_stalls(const gt_pipe_region *region);
