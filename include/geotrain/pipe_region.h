/* pipe_region: runs the stages of a pipeline that one region has, as a state machine: the region's
   parameter server gives it events, and it answers with orders to workers and packets to other
   regions.  Layer 5.  Numbers only: no MPI, no clock, no data: the host moves bytes.  The same
   events give the same answers, in the order of the workers.  Nothing is allocated after create.

   A worker makes one step after the other: a training step runs the schedule's passes; an
   evaluation runs F of a number of micro-batches.  Steps are numbered one after the other,
   evaluations among them, alike in all regions.

   A pass reads its input from buffers, into its slot, while it runs; it writes its output to an out
   buffer.  Workers of one region read each other's out buffers.  What goes to another region leaves
   as packets, one from each worker to each that has samples in common, and is put into landing
   buffers there. */
#ifndef GEOTRAIN_PIPE_REGION_H
#define GEOTRAIN_PIPE_REGION_H

#include "geotrain/pipe_layout.h"

typedef struct gt_pipe_region gt_pipe_region;

/* ---- orders ---------------------------------------------------------------------------------- */

#define GT_PIPE_NONE SIZE_MAX

/* A part of a pass's input. */
typedef struct {
  bool landed;   /* in a landing buffer of this worker; else in an out buffer of `worker` */
  size_t worker; /* of this region; it may be this one */
  size_t buffer;
  size_t at;           /* first sample, from the buffer's begin */
  size_t first, count; /* the samples in this worker's share */
} gt_pipe_input;

/* A pass.  W has neither input nor output. */
typedef struct {
  gt_pass_kind kind;
  uint32_t span, micro;
  size_t chunk;
  int64_t step;
  bool forward_only; /* of an evaluation */
  size_t slot;       /* of the worker: the one that F of this span and micro-batch has taken */
  bool first;        /* W or BW: the first of this span in this step */
  bool last;         /* of the worker's step */
  /* The whole input, in order of samples; borrowed for the call.  0: the first span's F reads data,
     the last span's B begins at the loss. */
  const gt_pipe_input *pieces;
  size_t npieces;
  size_t out; /* buffer of the output; GT_PIPE_NONE: there is none */
} gt_pipe_order;

/* ---- packets --------------------------------------------------------------------------------- */

/* What one worker sends to one of another region.  A receiving host fills in all but buffer and at.
   In an evaluation `gradient` is not one: it is empty (bytes 0) and says that the receiver has read
   the output, so that the sender may reuse its buffer. */
typedef struct {
  bool gradient, forward_only;
  uint32_t span, micro; /* span: the receiver's */
  int64_t step;
  size_t from_stage, from_worker, to_stage, to_worker; /* workers, within their regions */
  size_t first, count;                                 /* samples, of the micro-batch */
  size_t bytes;
  /* Sender: the out buffer.  Receiver: the landing buffer.  The samples begin at `at` in it.  An
     empty packet has GT_PIPE_NONE. */
  size_t buffer, at;
} gt_pipe_packet;

/* ---- host ------------------------------------------------------------------------------------ */

/* Called within the functions below; none of these may be called from here. */
typedef struct {
  void *ctx;
  /* The worker, which is idle, begins this pass; gt_pipe_region_done follows. */
  void (*pass)(void *ctx, size_t worker, const gt_pipe_order *order);
  /* To another region, in any order of arrival; gt_pipe_region_departed follows once for each
     packet with a buffer. */
  void (*send)(void *ctx, size_t region, const gt_pipe_packet *packet);
  /* The packet that has arrived is sound: its bytes go to its landing buffer now. */
  void (*land)(void *ctx, const gt_pipe_packet *packet);
  /* All passes of the worker's step have ended, and in an evaluation its outputs have been read. */
  void (*ended)(void *ctx, size_t worker);
} gt_pipe_region_host;

/* ---- the region ------------------------------------------------------------------------------ */

typedef struct {
  const gt_pipe_layout *layout; /* borrowed */
  size_t region;
  int64_t first_step;           /* number of the first step, 0 or more */
  size_t forward_micro_batches; /* the most micro-batches of an evaluation */
  /* The numbers of micro-batches of a step are so many, or as many as there are if that is more
     (gt_pipe_region_number); the same in all regions, and in all state machines of a region. */
  size_t stride;
  gt_pipe_region_host host;
} gt_pipe_region_spec;

/* Creates the state machine of a region.  GT_ERR_JOB: as gt_pipe_layout_check; GT_ERR_FAULT: there
   is no such region.  *out is then NULL. A region may have workers without a stage, and no stage at
   all. */
gt_status gt_pipe_region_create(gt_pipe_region **out, const gt_pipe_region_spec *spec);
void gt_pipe_region_close(gt_pipe_region *region);

/* ---- events ---------------------------------------------------------------------------------- */

/* All of them: GT_ERR_FAULT: it cannot be so; one sentence says why, and nothing has changed. */

/* Call when the worker has what it needs for its next step, which is `step`.
   forward_micro_batches: 0: a training step; else an evaluation of so many micro-batches, the same
   in all regions. */
gt_status gt_pipe_region_step(gt_pipe_region *region, size_t worker, int64_t step,
                              size_t forward_micro_batches);
/* Makes training steps that begin from now on run this schedule (borrowed), which is sound.  No
   worker is in a step. */
gt_status gt_pipe_region_reorder(gt_pipe_region *region, const gt_pipe_schedule *schedule);
/* Skips a step where several state machines of a region, with layouts of the same stages, take
   turns: the next step of all workers is `step`; others have made those before it.  No worker is in
   a step.  What has come of this step stays. */
gt_status gt_pipe_region_skip(gt_pipe_region *region, int64_t step);
/* Call when something has come of a step that has not begun. */
bool gt_pipe_region_early(const gt_pipe_region *region);
/* Call when the worker's pass has ended: its input has been read and its output written. */
gt_status gt_pipe_region_done(gt_pipe_region *region, size_t worker);
/* Call when a packet for this region has arrived, whole.  Writes its buffer and at. */
gt_status gt_pipe_region_message(gt_pipe_region *region, gt_pipe_packet *packet);
/* Call when a packet from this out buffer has left: the host needs its bytes no more.  Buffers
   suffice if this is said before what the packet causes in other regions is heard of; if it is said
   later, passes may wait for it. */
gt_status gt_pipe_region_departed(gt_pipe_region *region, size_t worker, size_t buffer);

/* ---- for the host ---------------------------------------------------------------------------- */

/* Returns the number of a packet's micro-batch on the wire: step x n + micro, n: the stride, the
   micro-batches of a step or of the longest evaluation, whichever is more; and back. */
uint64_t gt_pipe_region_number(const gt_pipe_region *region, int64_t step, uint32_t micro);
void gt_pipe_region_of_number(const gt_pipe_region *region, uint64_t number, int64_t *step,
                              uint32_t *micro);
/* Returns what the worker does or waits for, as text: "stage 2 waits for the activation of
   micro-batch 5 from stage 1".  Returns text. */
char *gt_pipe_region_text(const gt_pipe_region *region, size_t worker, char *text, size_t size);
/* Passes so far that had to wait for an out buffer; 0 if packets depart in time. */
size_t gt_pipe_region_stalls(const gt_pipe_region *region);

#endif
