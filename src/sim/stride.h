/* What the files of the stride share: a run that is simulated with few events. */
#ifndef GEOTRAIN_SIM_STRIDE_H
#define GEOTRAIN_SIM_STRIDE_H

#include "internal.h"

#define SETTLE      8    /* exchanges of every region after the start, and after a region's end */
#define SETTLE_EVAL 4    /* likewise after an evaluation */
#define CYCLES_MIN  12.0 /* fewer evaluations are always simulated one by one */

/* An outage begins or ends. */
typedef struct {
  gt_ns at;
  double for_s;
  bool begins;
} outage_end;

/* How much stretches that come again and again may be off. */
typedef struct {
  double time_s, work; /* of the stretch before; time 0: there is none */
  double var_s2;       /* of the time left out, where a stretch had one before it */
  double alone_s2;     /* squares of times that were left out where it had none */
  double relative2;    /* sum of squared relative differences, of `pairs` */
  size_t pairs;
} spread;

/* How often a stretch comes again; below 0: not known yet; 0: never. */
typedef struct {
  double often, carry, phase;
  double sum_s, n; /* of those so far */
} turns;

typedef struct {
  gt_sim *sim;
  int64_t budget;
  outage_end *bounds; /* nbounds, ascending */
  size_t nbounds, bound;
  double short_s; /* outages shorter than that are not waited for */
  size_t ref;     /* the region that will be the last */
  gt_ns at;       /* of the last event */
  /* a beat: an exchange of ref's */
  int64_t beat_steps, beat_events;
  double per_beat; /* events */
  double beat_s;   /* 0: not known yet */
  size_t ntraining;
  int64_t struck;      /* since the last beat an outage began or ended, felt so many beats later; 0: none */
  bool turned;         /* likewise an evaluation */
  bool settling, open; /* open: a slice has begun */
  int64_t settle_events, settle_beats, *settle_steps;
  double settle_done; /* of ref's training, when all had settled */
  gt_ns settle_at;
  sim_mark from, to;
  sim_stretch stretch;
  int64_t slice_events;
  turns slices_turn;
  bool traces, hurry, cycles; /* cycles: whole cycles between evaluations are left out too */
  /* cycles */
  bool *evaluating; /* nregions */
  size_t cycle_ref; /* whose evaluations they are */
  bool cycle_open;
  sim_mark cycle_from, cycle_to;
  turns cycles_turn;
  /* how far off it may be */
  spread slices, of_cycles;
  double gone_s, grain_s;
} stride;

/* spread.c: a stretch of this time and work comes again n times. pace_s: of a unit of work, in
   the mean of the run. What is compared is the work in a time: where nothing moves for a while
   there is none. */
void gt_sim_spread_add(spread *x, double time_s, double work, double n, double pace_s);
/* The next stretch is not compared with the one before. */
void gt_sim_spread_forget(spread *x);
double gt_sim_spread_variance_s2(const spread *x);
/* How often the next stretch comes again: a whole number, in the mean as often as is to be;
   INFINITY: as often as can be. Where links change the same time is left out after every
   stretch, whatever it brought: else a pause that one meets would count more than one that none
   does; and unevenly, lest the same part of a trace is met again and again. */
double gt_sim_turns_next(turns *t, bool links_change, double time_s);

/* plan.c: outages, in the order of time. */
void gt_sim_bounds_find(stride *s);
/* The next one that is waited for; GT_NEVER: there is none. */
gt_ns gt_sim_bound_next(const stride *s);
/* Exchanges until an outage that begins or ends is felt everywhere. */
int64_t gt_sim_bound_settle(const stride *s, bool begins);
/* How often slices come again, how long they are, which outages are waited for, and whether
   evaluations are: from what is known after the first slice, or without one. So many events took
   so much time and made this share of the training. */
void gt_sim_plan(stride *s, double events, double time_s, double share);

#endif
