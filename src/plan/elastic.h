/* Private to elastic scheduling: a region as the searches see it, its pace with given devices, and the two searches. */
#ifndef GEOTRAIN_PLAN_ELASTIC_H
#define GEOTRAIN_PLAN_ELASTIC_H

#include "geotrain/plan.h"

#define GT_PLAN_EQUAL 1e-12 /* times and costs nearer than this share are one and the same */

/* A region with what follows from the problem. */
typedef struct {
  const gt_plan_problem *problem;
  const gt_plan_region *region;
  int64_t batches, least, most; /* batches to go (until steps: 0); ranks, from 1 on and within what there is */
  double unit;                  /* all prices are multiples of it; 0: of nothing worth while */
  size_t first;                 /* of its devices among all */
} gt_plan_site;

/* A region's pace with some devices. */
typedef struct {
  int64_t ranks, steps;
  double step_s, rate; /* rate: USD an hour, its PS rank included */
  double own_s;        /* its steps and exchanges, if it waits for nobody */
  bool wan_bound;
} gt_plan_tempo;

/* A region's rounds of a whole period, and the steps of its last one. */
typedef struct {
  int64_t full, rest;
  double step_s, most_s; /* most_s: the longest step of this region and of all with as many rounds or more */
} gt_plan_shift;

/* What is wanted: least cost within limit_s, or (fastest) least time within budget. */
typedef struct {
  bool fastest;
  double limit_s, budget; /* INFINITY: none */
  double start_s;         /* paid for beside the time */
} gt_plan_goal;

/* What the searches have found; counts is the caller's. */
typedef struct {
  int64_t *counts;
  double value;        /* of the goal; INFINITY: nothing found */
  double time_s, rate; /* of counts */
  double bound;        /* no plan has a lower value */
} gt_plan_found;

/* ---- pace ------------------------------------------------------------------------------------------------------------ */

gt_plan_site gt_plan_site_of(const gt_plan_problem *problem, size_t r, size_t first);
int64_t gt_plan_steps(const gt_plan_site *site, int64_t ranks);
/* Of `ranks` devices whose step takes step_s; rate and wan_bound are left 0. */
gt_plan_tempo gt_plan_pace_at(const gt_plan_site *site, int64_t ranks, double device_step_s);
gt_plan_tempo gt_plan_pace_of(const gt_plan_site *site, const int64_t *counts);
/* All devices; where ranks_max forbids that, the most powerful. */
void gt_plan_all_of(const gt_plan_site *site, int64_t *counts);
/* T(x); shifts: scratch of n. */
double gt_plan_time(const gt_plan_problem *problem, const gt_plan_tempo *paces, size_t n, gt_plan_shift *shifts);
/* The goal's value of a plan, INFINITY where it is not feasible.  Of lower bounds of time and rate: a lower bound. */
double gt_plan_goal_value(const gt_plan_goal *goal, double time_s, double rate);

/* ---- one region's cheapest devices ------------------------------------------------------------------------------------ */

typedef struct gt_plan_cover gt_plan_cover;
gt_plan_cover *gt_plan_cover_open(size_t most_devices);
/* A search ends after so many nodes with the best it has found and a bound; 0 at first. */
void gt_plan_cover_limit(gt_plan_cover *cover, int64_t nodes);
void gt_plan_cover_close(gt_plan_cover *cover);
/* The cheapest devices with own_s <= limit_s: counts and their pace; *lower: no such devices have a lower rate (rate itself where that is proven).
   False: there are none. */
bool gt_plan_cheapest(gt_plan_cover *cover, const gt_plan_site *site, double limit_s, int64_t *counts, gt_plan_tempo *pace, double *lower);
/* The devices with the least own_s. */
void gt_plan_fastest(const gt_plan_site *site, int64_t *counts, gt_plan_tempo *pace);
/* `sync`: how many devices are no slower than `power`, as far as ranks_max lets them; the cheapest `ranks` of these. */
int64_t gt_plan_as_fast(const gt_plan_site *site, double power);
void gt_plan_cheapest_ranks(gt_plan_cover *cover, const gt_plan_site *site, double power, int64_t ranks, int64_t *counts, gt_plan_tempo *pace);
/* Nodes that all searches through this cover have visited. */
int64_t gt_plan_cover_work(const gt_plan_cover *cover);

/* ---- all regions ------------------------------------------------------------------------------------------------------ */

/* Every region waits for the one with the greatest own_s: exact for that (elastic_sweep.c). */
void gt_plan_sweep(const gt_plan_site *sites, size_t n, const gt_plan_goal *goal, gt_plan_found *found);
/* Rounds in which regions with different numbers of steps drop out one after another (elastic_rounds.c); begins with what is found, bound included. */
void gt_plan_rounds(const gt_plan_site *sites, size_t n, const gt_plan_goal *goal, gt_plan_found *found);

#endif
