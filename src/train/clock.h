/* The clock of a run: how time advances, how long each kind of work takes, and in which order a PS
   handles its events. gt_train chooses it once; no other code asks which clock is in use. */
#ifndef GEOTRAIN_TRAIN_CLOCK_H
#define GEOTRAIN_TRAIN_CLOCK_H

#include "geotrain/ps.h"
#include "geotrain/record.h"

typedef struct gt_server gt_server;

typedef struct {
  const char *name; /* in records and summaries */
  bool measures;    /* records have what processes really use; else equal runs have equal records */

  /* ---- on a PS ---- */

  /* The clock's state for its server, s->clock_state.  Opened before the gateway and the PS, closed
     last. close takes NULL. */
  void *(*open)(const gt_server *s);
  void (*close)(void *state);
  /* The current time of the PS. */
  gt_ns (*now)(const gt_server *s);
  /* The time at which the PS handles what the gateway reports for time `at`.  Links work in
     parallel with the PS. */
  gt_ns (*attended)(const gt_server *s, gt_ns at);
  /* A time by the clock of a peer's PS, by this one's; GT_NEVER: not known. */
  gt_ns (*here)(const gt_server *s, size_t peer, gt_ns theirs);
  /* Interval of the PS's own keepalive timer for waiting workers; very long if the clock's loop
     sends the keepalives. */
  gt_ns (*keepalive)(const gt_server *s);
  /* A worker has received an order. */
  void (*ordered)(gt_server *s, size_t worker, const gt_ps_order *order);
  /* A worker has received an order of a pass of a pipeline, or of what ends a step; cost: its time
     as given by the job. */
  void (*passing)(gt_server *s, size_t worker, gt_ns cost);
  /* The PS has just done this work, or a part of it. */
  void (*worked)(gt_server *s, gt_ps_work work, double part);
  /* A checkpoint of this many bytes is being written. */
  void (*writing)(gt_server *s, double bytes);
  /* One step of waiting for something that is not an event of the loop.  False: the clock does not
     block here; the loop continues and the caller is asked again. */
  bool (*wait)(gt_server *s);
  /* Runs until the end of the run.  Returns 0, 75 or 6. */
  gt_status (*loop)(gt_server *s);
  /* CPU seconds of this process, for the result. */
  double (*cpu_s)(void);
  /* Fills in wall_s and virtual_s. */
  void (*summarise)(const gt_server *s, gt_summary *summary);

  /* ---- on a worker ---- */

  /* Work that began at `from` is done. cost: its time as given by the job, 0: none given; slowdown:
     factor by which the measured time is stretched. progress(ctx) lets messages progress. */
  void (*computed)(gt_ns from, gt_ns cost, double slowdown, void (*progress)(void *ctx), void *ctx);
} gt_clock_ops;

/* Wall time. */
extern const gt_clock_ops gt_clock_real;
/* Time as modelled by the job: the same in every run. */
extern const gt_clock_ops gt_clock_virtual;

#endif
