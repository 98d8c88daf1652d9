/* What the files of pipe share: facts of a kind of schedule, the routes of messages, the run in
   simulated time, the choice of the best.  Each file calls only those before it: schedule, run,
   evaluate, the kinds, list. */
#ifndef GEOTRAIN_PIPE_INTERNAL_H
#define GEOTRAIN_PIPE_INTERNAL_H

#include "geotrain/pipe.h"

/* ---- kinds ----------------------------------------------------------------------------------- */

/* What schedules are compared by: the aim, then the makespan. */
typedef struct {
  gt_ns aim, makespan;
} gt_pipe_worth;

/* The best schedule so far for a problem. */
typedef struct {
  const gt_pipe_problem *problem;
  gt_pipe_search search;
  gt_pipe_schedule *schedule; /* owned; NULL: none yet */
  gt_pipe_worth worth;
  /* What has been offered: a search makes the same schedules again and again. */
  struct {
    uint64_t mark;
    gt_pipe_worth worth;
  } * offered;
  size_t noffered, capacity;
} gt_pipe_best;

typedef struct {
  const char *name;
  size_t chunks; /* 0: any number */
  /* Writes its passes to the empty schedule; NULL: it searches. */
  void (*order)(gt_pipe_schedule *schedule);
  /* Offers schedules to `best`, which holds the best of the other kinds. */
  void (*search)(gt_pipe_best *best);
} gt_pipe_ops;

/* The first 64 bits of the schedule's hash. */
uint64_t gt_pipe_mark(const gt_pipe_schedule *schedule);
bool gt_pipe_better(const gt_pipe_worth *a, const gt_pipe_worth *b);
/* Takes the schedule, and keeps it if it is better than the best.  Returns what it is worth. */
gt_pipe_worth gt_pipe_offer(gt_pipe_best *best, gt_pipe_schedule *schedule);

/* ---- times ----------------------------------------------------------------------------------- */

/* A message's route. */
typedef struct {
  size_t from, to; /* stages */
  double bytes;
  double local_s; /* its hop; 0 within a stage */
  /* Between regions: the link; NULL: there is none. */
  const gt_link_spec *link;
  size_t from_region, to_region;
} gt_pipe_route;
gt_pipe_route gt_pipe_route_of(const gt_pipe_problem *problem, const gt_pipe_message *message);

/* ---- the run --------------------------------------------------------------------------------- */

typedef struct gt_pipe_run gt_pipe_run;

/* May add to the stage's list the pass that it begins now; called while the stage is idle. */
typedef void gt_pipe_chooser(gt_pipe_run *run, size_t stage, gt_ns now);

/* Schedule, problem and context are borrowed; the schedule is sound, or a chooser makes it. */
typedef struct {
  const gt_pipe_problem *problem;
  const gt_pipe_schedule *schedule;
  gt_pipe_chooser *choose; /* NULL: the schedule is complete */
  void *context;
  size_t steps;
  gt_pipe_result *result; /* times of its stages are written; NULL: not */
} gt_pipe_run_spec;

typedef struct {
  bool whole;     /* false: the stages wait for each other for ever */
  gt_ns makespan; /* as in gt_pipe_result */
  gt_ns cost, period;
} gt_pipe_run_times;

gt_pipe_run_times gt_pipe_run_steps(const gt_pipe_run_spec *spec);

/* For choosers. */
void *gt_pipe_run_context(const gt_pipe_run *run);
/* When a message will be there: now or before, or later; GT_NEVER: unknown.  On a link it is an
   estimate until the message has reached the link. */
gt_ns gt_pipe_run_due(const gt_pipe_run *run, const gt_pipe_message *message, gt_ns now);
/* The stage is asked again at `at`, if nothing happens before. */
void gt_pipe_run_wake(gt_pipe_run *run, size_t stage, gt_ns at);

/* ---- checks ---------------------------------------------------------------------------------- */

/* Names of the kinds of passes. */
extern const char *const gt_pass_names[];
/* Every pass once, in an order that cannot deadlock: what gt_pipe_check says of the schedule
   alone. */
gt_status gt_pipe_check_order(const gt_pipe_schedule *schedule);
/* The problem's numbers, without which nothing can be computed. */
gt_status gt_pipe_check_problem(const gt_pipe_problem *problem);
/* Memory of stage s that all micro-batches may hold, with room for rounding; infinity: no limit. */
double gt_pipe_limit(const gt_pipe_problem *problem, size_t stage);

#endif
