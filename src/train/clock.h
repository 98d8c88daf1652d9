/* The clock of a run: how time advances, how long each kind of work takes, and in which order a PS
   handles its events. gt_train selects it once; no other code depends on which clock is in use. */
#pragma once

#include "geotrain/ps.h"
#include "geotrain/record.h"

typedef struct gt_server gt_server;

typedef struct {
  const char *name; /* in records and summaries */
  bool measures;    /* records contain measured resource use; else equal runs have equal records */

  /* ---- on a PS ---- */

  /* Creates the clock's state for its server, s->clock_state.  Opened before the gateway and the
     PS, closed last.  close takes NULL. */
  void *(*open)(const gt_server *s);
  void (*close)(void *state);
  /* Returns the current time of the PS. */
  gt_ns (*now)(const gt_server *s);
  /* Returns the time at which the PS handles an event that the gateway reports for time `at`.
     Links work in parallel with the PS. */
  gt_ns (*attended)(const gt_server *s, gt_ns at);
  /* Converts a time of a peer's PS clock to this one's; GT_NEVER: unknown. */
  gt_ns (*here)(const gt_server *s, size_t peer, gt_ns theirs);
  /* Returns the interval of the PS's own keepalive timer for waiting workers; very long if the
     clock's loop sends the keepalives. */
  gt_ns (*keepalive)(const gt_server *s);
  /* Called when a worker has received an order. */
  void (*ordered)(gt_server *s, size_t worker, const gt_ps_order *order);
  /* Called when a worker has received the order of a pipeline pass, or of the end of a step; cost:
     its time as given by the job. */
  void (*passing)(gt_server *s, size_t worker, gt_ns cost);
  /* Called after the PS has done this work, or a part of it. */
  void (*worked)(gt_server *s, gt_ps_work work, double part);
  /* Called when the writing of a checkpoint of this many bytes begins. */
  void (*writing)(gt_server *s, double bytes);
  /* Makes one step of waiting for something that is not an event of the loop.  False: the clock
     does not block here; the loop continues and the caller is called again. */
  bool (*wait)(gt_server *s);
  /* Runs until the end of the run.  Returns 0, 75 or 6. */
  gt_status (*loop)(gt_server *s);
  /* Returns the CPU seconds of this process, for the result. */
  double (*cpu_s)(void);
  /* Fills in wall_s and virtual_s. */
  void (*summarise)(const gt_server *s, gt_summary *summary);

  /* ---- on a worker ---- */

  /* Called when work that began at `from` is done. cost: its time as given by the job, 0: none
     given; slowdown: factor by which the measured time is stretched. progress(ctx) lets messages
     make progress. */
  void (*computed)(gt_ns from, gt_ns cost, double slowdown, void (*progress)(void *ctx), void *ctx);
} gt_clock_ops;

/* Wall time. */
extern const gt_clock_ops gt_clock_real;
/* Time as modelled by the job: the same in every run. */
extern const gt_clock_ops gt_clock_virtual;
