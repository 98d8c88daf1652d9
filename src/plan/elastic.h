/* Private to elastic scheduling: a region as the searches see it, its pace with given devices, and
   the two searches. */
#ifndef GEOTRAIN_PLAN_ELASTIC_H
#define GEOTRAIN_PLAN_ELASTIC_H

#include "geotrain/plan.h"

#define GT_PLAN_EQUAL 1e-12 /* times and costs with a smaller relative difference count as equal */

/* A region and values derived from the problem. */
typedef struct {
  const gt_plan_problem *problem;
  const gt_plan_region *region;
  /* batches left (until steps: 0); ranks: at least 1, at most those available */
  int64_t batches, least, most;
  double unit;  /* all prices are multiples of it; 0: there is no useful unit */
  size_t first; /* index of its first device among all */
} gt_plan_site;

/* A region's pace with some devices. */
typedef struct {
  int64_t ranks, steps;
  double step_s, rate; /* rate: USD per hour, including its PS rank */
  double own_s;        /* time of its steps and exchanges if it never waits */
  bool wan_bound;
} gt_plan_tempo;

/* The number of a region's full periods, and of the steps of its last, shorter round. */
typedef struct {
  int64_t full, rest;
  /* most_s: the longest step of this region and of all regions with at least as many rounds */
  double step_s, most_s;
} gt_plan_shift;

/* The goal: least cost within limit_s, or (fastest) least time within budget. */
typedef struct {
  bool fastest;
  double limit_s, budget; /* INFINITY: none */
  double start_s;         /* paid in addition to the time */
} gt_plan_goal;

/* The result of the searches; counts is owned by the caller. */
typedef struct {
  int64_t *counts;
  double value;        /* of the goal; INFINITY: no plan found */
  double time_s, rate; /* of counts */
  double bound;        /* no plan has a lower value */
} gt_plan_found;

/* ---- pace ------------------------------------------------------------------------------------ */

gt_plan_site gt_plan_site_of(const gt_plan_problem *problem, size_t r, size_t first);
int64_t gt_plan_steps(const gt_plan_site *site, int64_t ranks);
/* The pace of `ranks` devices whose step takes device_step_s; rate and wan_bound are left 0. */
gt_plan_tempo gt_plan_pace_at(const gt_plan_site *site, int64_t ranks, double device_step_s);
gt_plan_tempo gt_plan_pace_of(const gt_plan_site *site, const int64_t *counts);
/* All devices; if ranks_max forbids that, the most powerful ones. */
void gt_plan_all_of(const gt_plan_site *site, int64_t *counts);
/* T(x); shifts: scratch of n. */
double gt_plan_time(const gt_plan_problem *problem, const gt_plan_tempo *paces, size_t n,
                    gt_plan_shift *shifts);
/* The goal's value of a plan, INFINITY if it is not feasible.  With lower bounds of time and rate:
   a lower bound. */
double gt_plan_goal_value(const gt_plan_goal *goal, double time_s, double rate);

/* ---- one region's cheapest devices ----------------------------------------------------------- */

typedef struct gt_plan_cover gt_plan_cover;
gt_plan_cover *gt_plan_cover_open(size_t most_devices);
/* A search ends after this many nodes, with its best result and a bound; initially 0. */
void gt_plan_cover_limit(gt_plan_cover *cover, int64_t nodes);
void gt_plan_cover_close(gt_plan_cover *cover);
/* The cheapest devices with own_s <= limit_s: their counts and pace; *lower: lower bound for their
   rate (equal to the rate if proven).  False: there are none. */
bool gt_plan_cheapest(gt_plan_cover *cover, const gt_plan_site *site, double limit_s,
                      int64_t *counts, gt_plan_tempo *pace, double *lower);
/* The devices with the least own_s. */
void gt_plan_fastest(const gt_plan_site *site, int64_t *counts, gt_plan_tempo *pace);
/* `sync`: the number of devices at least as fast as `power`, limited by ranks_max; then the
   cheapest `ranks` of these. */
int64_t gt_plan_as_fast(const gt_plan_site *site, double power);
void gt_plan_cheapest_ranks(gt_plan_cover *cover, const gt_plan_site *site, double power,
                            int64_t ranks, int64_t *counts, gt_plan_tempo *pace);
/* The number of nodes that all searches with this cover have visited. */
int64_t gt_plan_cover_work(const gt_plan_cover *cover);

/* ---- all regions ----------------------------------------------------------------------------- */

/* For problems where every region waits for the one with the greatest own_s: exact for these
   (elastic_sweep.c). */
void gt_plan_sweep(const gt_plan_site *sites, size_t n, const gt_plan_goal *goal,
                   gt_plan_found *found);
/* For rounds in which regions with different numbers of steps drop out one after another
   (elastic_rounds.c); starts from *found, including its bound. */
void gt_plan_rounds(const gt_plan_site *sites, size_t n, const gt_plan_goal *goal,
                    gt_plan_found *found);

#endif
