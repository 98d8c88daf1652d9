/* What the files of the stride share: the simulation of a run with few events. */
#ifndef GEOTRAIN_SIM_STRIDE_H
#define GEOTRAIN_SIM_STRIDE_H

#include "internal.h"

#define SETTLE      8    /* exchanges of every region after the start and a region's end */
#define SETTLE_EVAL 4    /* likewise after an evaluation */
#define CYCLES_MIN  12.0 /* fewer evaluations are always simulated one by one */

/* The beginning or the end of an outage. */
typedef struct {
  gt_ns at;
  double for_s;
  bool begins;
} outage_end;

/* The possible error of repeated stretches. */
typedef struct {
  double time_s, work; /* of the stretch before; time 0: there is none */
  double var_s2;       /* of the skipped time, for stretches with one before them */
  double alone_s2;     /* squared skipped times, for stretches without one before them */
  double relative2;    /* sum of squared relative differences, over `pairs` */
  size_t pairs;
} spread;

/* How often a stretch is repeated; below 0: not known yet; 0: never. */
typedef struct {
  double often, carry, phase;
  double sum_s, n; /* time and number of stretches so far */
} turns;

typedef struct {
  gt_sim *sim;
  int64_t budget;
  outage_end *bounds; /* nbounds, ascending */
  size_t nbounds, bound;
  double short_s; /* shorter outages are not waited for */
  size_t ref;     /* the region that is expected to end last */
  gt_ns at;       /* time of the last event */
  /* a beat: an exchange of ref */
  int64_t beat_steps, beat_events;
  double per_beat; /* events */
  double beat_s;   /* 0: not known yet */
  size_t ntraining;
  /* Since the last beat an outage began or ended, which takes effect within so many beats; 0:
     none. */
  int64_t struck;
  bool turned;         /* since the last beat an evaluation began or ended */
  bool settling, open; /* open: a slice has begun */
  int64_t settle_events, settle_beats, *settle_steps;
  double settle_done; /* share of ref's training done when all had settled */
  gt_ns settle_at;
  sim_mark from, to;
  sim_stretch stretch;
  int64_t slice_events;
  turns slices_turn;
  bool traces, hurry, cycles; /* cycles: whole cycles between evaluations are skipped too */
  /* cycles */
  bool *evaluating; /* nregions */
  size_t cycle_ref; /* the region whose evaluations delimit cycles */
  bool cycle_open;
  sim_mark cycle_from, cycle_to;
  turns cycles_turn;
  /* the possible error */
  spread slices, of_cycles;
  double gone_s, grain_s;
} stride;

/* spread.c: a stretch of this time and work is repeated n times.  pace_s: seconds per unit of work,
   the mean of the run.  Stretches are compared by their work in equal times, because a stretch in
   which nothing moves has no work. */
void gt_sim_spread_add(spread *x, double time_s, double work, double n, double pace_s);
/* The next stretch is not compared with the one before. */
void gt_sim_spread_forget(spread *x);
double gt_sim_spread_variance_s2(const spread *x);
/* How often the next stretch is repeated: a whole number, `often` on average; INFINITY: as often as
   possible.  If links change (traces), the same time is skipped after every stretch, whatever it
   contained: otherwise a pause within a stretch would count more than a pause between stretches.
   The skipped times vary, so that stretches do not always meet the same part of a trace. */
double gt_sim_turns_next(turns *t, bool links_change, double time_s);

/* plan.c: finds all outages, in the order of time. */
void gt_sim_bounds_find(stride *s);
/* The next beginning or end of an outage that is waited for; GT_NEVER: there is none. */
gt_ns gt_sim_bound_next(const stride *s);
/* Exchanges until the beginning or end of an outage has taken effect everywhere. */
int64_t gt_sim_bound_settle(const stride *s, bool begins);
/* Decides how often slices are repeated, how long they are, which outages are waited for, and
   whether evaluations are.  events, time_s, share: events, seconds and share of the training of
   what has been simulated: the first slice, or all so far if there was none. */
void gt_sim_plan(stride *s, double events, double time_s, double share);

#endif
