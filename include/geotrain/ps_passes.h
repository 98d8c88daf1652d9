/* ps_passes: the passes of a region's workers in a pipeline, on the PS's side.  The PS's orders to
   train and to evaluate become steps of the region's state machine (pipe_region.h); the passes that
   it orders get their times, and its packets their headers.  Numbers only, no MPI and no clock: a
   run and a simulation use the same code.  Local. */
#ifndef GEOTRAIN_PS_PASSES_H
#define GEOTRAIN_PS_PASSES_H

#include "geotrain/pipe_job.h"
#include "geotrain/pipe_region.h"
#include "geotrain/ps.h"
#include "geotrain/ps_pass_times.h"

/* Cookies of packets: these and more, below those of the end of a run. */
#define GT_PASSES_COOKIE ((uint64_t)1 << 62)

typedef struct gt_ps_passes gt_ps_passes;

/* Called within the functions below; none of these may be called from here. */
typedef struct {
  void *ctx;
  /* The worker, which is idle, begins this pass of the PS's order; `begins`: it is the first one of
     the order.  cost: its time by the job, 0: none is given.  gt_ps_passes_done follows. */
  void (*pass)(void *ctx, size_t worker, const gt_ps_order *order, const gt_pipe_order *pass,
               bool begins, gt_ns cost);
  /* All passes of the order are made: the worker gives its gradient or scores, which takes no time.
     gt_ps_passes_timed follows. */
  void (*end)(void *ctx, size_t worker, const gt_ps_order *order);
  /* A packet for another region.  cookie: 0, or gt_ps_passes_departed follows. */
  void (*send)(void *ctx, size_t region, const gt_frame_header *head, const gt_pipe_packet *packet,
               uint64_t cookie);
  /* The packet that has arrived goes to its landing buffer now, of this shape; its bytes are not
     0. */
  void (*land)(void *ctx, size_t shape, const gt_pipe_packet *packet);
  /* The PS's time; and how long the PS has held a worker since its last push (gt_ps_held). */
  gt_ns (*clock)(void *ctx);
  gt_ns (*held)(void *ctx, size_t worker);
} gt_ps_passes_host;

typedef struct {
  const gt_pipe_job *job; /* borrowed */
  size_t region;
  size_t test_samples; /* of an evaluation */
  gt_ps_passes_host host;
} gt_ps_passes_spec;

/* Opens the passes.  Errors as gt_pipe_region_create; *out is then NULL. */
gt_status gt_ps_passes_open(gt_ps_passes **out, const gt_ps_passes_spec *spec);
/* Takes NULL. */
void gt_ps_passes_close(gt_ps_passes *passes);

/* Events.  GT_ERR_FAULT: it cannot be so; one sentence says why, and nothing has changed. */

/* Call when the PS orders a worker to train or to evaluate; its vectors are borrowed until the
   order ends. */
gt_status gt_ps_passes_order(gt_ps_passes *passes, size_t worker, const gt_ps_order *order);
/* Call when a worker has made its pass: time of the work, and of the wait before it. */
gt_status gt_ps_passes_done(gt_ps_passes *passes, size_t worker, gt_ns compute, gt_ns wait);
/* Call when a message of kind ACTIVATION or ACT_GRADIENT has arrived.  sent: when its sender queued
   it, by this PS's clock (head->sequence is by the sender's); GT_NEVER: not known. */
gt_status gt_ps_passes_message(gt_ps_passes *passes, const gt_frame_header *head, gt_ns sent);
gt_status gt_ps_passes_departed(gt_ps_passes *passes, uint64_t cookie);
/* Makes steps from now on run this schedule (gt_pipe_region_reorder), in its number of
   micro-batches. */
gt_status gt_ps_passes_reorder(gt_ps_passes *passes, const gt_pipe_schedule *schedule);
/* Call when the run ends: no more passes are ordered, and what still comes is ignored. */
void gt_ps_passes_end(gt_ps_passes *passes);

/* Call when the worker's push that ends the order has come: adds the times of the order's passes to
   it. */
void gt_ps_passes_timed(gt_ps_passes *passes, size_t worker, gt_ns *compute, gt_ns *wait);

/* Counts phases; called after every event of the PS: the phases of workers begin with training and
   end with it. */
void gt_ps_passes_account(gt_ps_passes *passes, bool training);
/* Returns the phases of a worker up to now; and what a checkpoint has of them is added. */
gt_phase_times gt_ps_passes_phases(const gt_ps_passes *passes, size_t worker);
void gt_ps_passes_had(gt_ps_passes *passes, size_t worker, const gt_phase_times *earlier);
/* Writes their means over the region's workers, in seconds. */
void gt_ps_passes_means(const gt_ps_passes *passes, double phase_s[GT_NPHASES]);
/* Workers of the region. */
size_t gt_ps_passes_workers(const gt_ps_passes *passes);
/* Returns the stage of a worker; its samples of a micro-batch as they are now, and of a step. */
size_t gt_ps_passes_stage(const gt_ps_passes *passes, size_t worker);
size_t gt_ps_passes_share(const gt_ps_passes *passes, size_t worker);
size_t gt_ps_passes_samples(const gt_ps_passes *passes, size_t worker);
/* Returns the shape of the micro-batches (gt_pipe_job_shape) of steps that begin now. */
size_t gt_ps_passes_shape(const gt_ps_passes *passes);
/* Returns what the worker does or waits for (gt_pipe_region_text). */
char *gt_ps_passes_text(const gt_ps_passes *passes, size_t worker, char *text, size_t size);
/* Returns how long a pass of a worker (from 0, of its region) takes by the job, with micro-batches
   of its shape; 0: no time is given. */
gt_ns gt_ps_pass_time(const gt_pipe_job *job, size_t worker, size_t span, gt_pass_kind kind);

#endif
