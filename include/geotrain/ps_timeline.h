/* ps_timeline: virtual time in a region: when its workers push, and when its PS is free.  Local. */
#pragma once

#include "geotrain/ps.h"

/* At equal times in this order; workers by number. */
typedef enum {
  GT_EVENT_FRAME,
  GT_EVENT_LINK,
  GT_EVENT_PUSH,
  GT_EVENT_WRITTEN,
  GT_EVENT_TICK
} gt_event_kind;
typedef struct {
  gt_ns at;
  gt_event_kind kind;
  size_t worker; /* PUSH */
} gt_event;

/* After a wait of this length caches are cold and the clock frequency is low: each of this number
   of steps takes compute.resume longer.  Not with compute.emulate, where workers sleep for the rest
   of a step. */
#define GT_RESUME_WAIT  ((gt_ns)5000000)
#define GT_RESUME_STEPS 8

/* The times at which a region's workers push, its PS is free and its checkpoint is durable, by the
   job's costs: the order of events of a run under the virtual clock and of a simulation.  Times
   begin at 0.  The job outlives it.  update_share: the region's share of the parameters, by which
   compute.update is multiplied (gt_pipe_job_update_share); 1 without a pipeline. */
typedef struct gt_timeline gt_timeline;
gt_timeline *gt_timeline_create(const gt_job *job, const gt_order *order, size_t nworkers,
                                double update_share);
void gt_timeline_close(gt_timeline *timeline);
/* Call when the region has started again at this time: forgets all work. */
void gt_timeline_restart(gt_timeline *timeline, gt_ns at);
/* Returns the PS's clock.  The PS does one thing at a time, so its clock can be later than the
   event that it handles. */
gt_ns gt_timeline_now(const gt_timeline *timeline);
/* Returns the time of the current or last event. */
gt_ns gt_timeline_at(const gt_timeline *timeline);
void gt_timeline_work(gt_timeline *timeline, gt_ps_work work, double part);
/* Call when the region begins to write a checkpoint of this size. */
void gt_timeline_writing(gt_timeline *timeline, double bytes);
void gt_timeline_ordered(gt_timeline *timeline, size_t worker, const gt_ps_order *order);
/* Call when the worker gets an order to make a pass of a pipeline, which takes this long. */
void gt_timeline_passing(gt_timeline *timeline, size_t worker, gt_ns cost);
/* Returns when the worker pushes; GT_NEVER: it has nothing to do. */
gt_ns gt_timeline_due(const gt_timeline *timeline, size_t worker);
/* Returns the next event: a frame that arrives, a link that needs to be polled, a tick of the PS,
   or an event of the timeline itself. */
gt_event gt_timeline_next(const gt_timeline *timeline, gt_ns frame, gt_ns link, gt_ns tick);
void gt_timeline_begin(gt_timeline *timeline, const gt_event *event);
/* Counts a PUSH: writes the cost of the work, and the worker's wait for its order. */
void gt_timeline_pushed(gt_timeline *timeline, size_t worker, gt_ns *compute, gt_ns *wait);
/* Call when events before `at` have happened outside the timeline. */
void gt_timeline_forward(gt_timeline *timeline, gt_ns at);
