/* Shared by the files of pipe: facts of a kind of schedule, routes of messages, the run in
   simulated time, the choice of the best.  Each file calls only those before it: schedule, run,
   evaluate, the kinds, list. */
#pragma once

#include "geotrain/pipe.h"

/* ---- kinds ----------------------------------------------------------------------------------- */

/* The criteria for comparing schedules: the aim, then the makespan. */
typedef struct {
  gt_ns aim, makespan;
} gt_pipe_worth;

/* The best schedule so far for a problem. */
typedef struct {
  const gt_pipe_problem *problem;
  gt_pipe_search search;
  gt_pipe_schedule *schedule; /* owned; NULL: none yet */
  gt_pipe_worth worth;
  /* Schedules offered so far: a search makes the same ones repeatedly. */
  struct {
    uint64_t mark;
    gt_pipe_worth worth;
  } * offered;
  size_t noffered, capacity;
} gt_pipe_best;

typedef struct {
  const char *name;
  size_t chunks; /* 0: any number */
  /* Adds its passes to the empty schedule; NULL: the kind searches. */
  void (*order)(gt_pipe_schedule *schedule);
  /* Offers schedules to `best`, which initially has the best of the other kinds. */
  void (*search)(gt_pipe_best *best);
} gt_pipe_ops;

/* Returns the first 64 bits of the schedule's hash. */
uint64_t gt_pipe_mark(const gt_pipe_schedule *schedule);
bool gt_pipe_better(const gt_pipe_worth *a, const gt_pipe_worth *b);
/* Takes ownership of the schedule, and keeps it if it is better than the best.  Returns its
   worth. */
gt_pipe_worth gt_pipe_offer(gt_pipe_best *best, gt_pipe_schedule *schedule);

/* ---- times ----------------------------------------------------------------------------------- */

/* A message's route. */
typedef struct {
  size_t from, to; /* stages */
  double bytes;
  double local_s; /* time of its hop; 0 within a stage */
  /* The link between regions; NULL: none. */
  const gt_link_spec *link;
  size_t from_region, to_region;
} gt_pipe_route;
gt_pipe_route gt_pipe_route_of(const gt_pipe_problem *problem, const gt_pipe_message *message);

/* ---- the run --------------------------------------------------------------------------------- */

typedef struct gt_pipe_run gt_pipe_run;

/* May add to the stage's list the pass that it starts now.  Called while the stage is idle. */
typedef void gt_pipe_chooser(gt_pipe_run *run, size_t stage, gt_ns now);

/* Schedule, problem and context are borrowed.  The schedule is sound, or a chooser makes it. */
typedef struct {
  const gt_pipe_problem *problem;
  const gt_pipe_schedule *schedule;
  gt_pipe_chooser *choose; /* NULL: the schedule is complete */
  void *context;
  size_t steps;
  gt_pipe_result *result; /* its stages' times are written; NULL: not */
} gt_pipe_run_spec;

typedef struct {
  bool whole;     /* false: a deadlock */
  gt_ns makespan; /* as in gt_pipe_result */
  gt_ns cost, period;
} gt_pipe_run_times;

gt_pipe_run_times gt_pipe_run_steps(const gt_pipe_run_spec *spec);

/* Returns the context, for choosers. */
void *gt_pipe_run_context(const gt_pipe_run *run);
/* Returns the arrival time of a message, past or future; GT_NEVER: unknown.  Until the message has
   reached its link, the time is an estimate. */
gt_ns gt_pipe_run_due(const gt_pipe_run *run, const gt_pipe_message *message, gt_ns now);
/* Asks the stage again at `at`, or earlier if an event occurs. */
void gt_pipe_run_wake(gt_pipe_run *run, size_t stage, gt_ns at);

/* ---- checks ---------------------------------------------------------------------------------- */

/* Names of the kinds of passes. */
extern const char *const gt_pass_names[];
/* Checks that the order has every pass once and cannot deadlock, without a problem. */
gt_status gt_pipe_check_order(const gt_pipe_schedule *schedule);
/* Checks the problem's numbers. */
gt_status gt_pipe_check_problem(const gt_pipe_problem *problem);
/* Returns the memory of stage s for all its micro-batches, with a margin for rounding; INFINITY: no
   limit. */
double gt_pipe_limit(const gt_pipe_problem *problem, size_t stage);
