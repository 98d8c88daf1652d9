/* The clock of a run: what time is, what takes how long, and in which order a PS handles its
   events.  Chosen once, by gt_train; nobody else asks which it is. */
#ifndef GEOTRAIN_TRAIN_CLOCK_H
#define GEOTRAIN_TRAIN_CLOCK_H

#include "geotrain/ps.h"
#include "geotrain/record.h"

typedef struct gt_server gt_server;

typedef struct {
  const char *name; /* in records and summaries */

  /* ---- of a PS ---- */

  /* What the clock knows of its server, s->clock_state: made first, before there is a gateway or a
     PS, and closed last.  close takes NULL. */
  void *(*open)(const gt_server *s);
  void (*close)(void *state);
  /* Time, by which the PS does one thing after another. */
  gt_ns (*now)(const gt_server *s);
  /* When the PS comes to what the gateway tells of `at`: a link works while the PS does. */
  gt_ns (*attended)(const gt_server *s, gt_ns at);
  /* The PS's timer by which it keeps workers that wait alive; long, where the loop does. */
  gt_ns (*keepalive)(const gt_server *s);
  /* A worker has its order. */
  void (*ordered)(gt_server *s, size_t worker, const gt_ps_order *order);
  /* The PS has just done this. */
  void (*worked)(gt_server *s, gt_ps_work work, double part);
  /* A checkpoint of so many bytes is being written. */
  void (*writing)(gt_server *s, double bytes);
  /* One turn of a wait for what no event of the loop tells of.  False: the loop turns by itself,
     and the caller is asked again. */
  bool (*wait)(gt_server *s);
  /* Until the run ends: 0, 75 or 6. */
  gt_status (*loop)(gt_server *s);
  /* CPU seconds of this process, as a result shows them. */
  double (*cpu_s)(void);
  /* Fills in wall_s and virtual_s. */
  void (*summarise)(const gt_server *s, gt_summary *summary);

  /* ---- of a worker ---- */

  /* Work that began at `from` is done.  cost: what the job says that it takes, 0: nothing;
     slowdown: how many times as long as here it shall take.  progress(ctx) moves messages on. */
  void (*computed)(gt_ns from, gt_ns cost, double slowdown, void (*progress)(void *ctx), void *ctx);
} gt_clock_ops;

/* Wall time. */
extern const gt_clock_ops gt_clock_real;
/* What the job says: the same in every run. */
extern const gt_clock_ops gt_clock_virtual;

#endif
