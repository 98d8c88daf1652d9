/* Shared by the files of the search for a candidate's set: the problem of elastic scheduling with
   the corrections of simulations, verdicts on sets, and lower bounds for all sets. */
#pragma once

#include "internal.h"

#define GT_PLANNER_KEPT  4    /* number of best sets that are kept */
#define GT_PLANNER_EQUAL 1e-9 /* relative difference below which values are equal */
/* the rule is rarely applied with more types in all regions */
#define GT_PLANNER_LARGE  64
#define GT_PLANNER_EVENTS 5000 /* cost of a simulation in addition to its events */

/* ---- search_try.c: lists of distinct sets of devices ----------------------------------------- */

typedef struct {
  size_t width, n, capacity;
  int64_t *counts;   /* n x width */
  uint32_t *buckets; /* nbuckets, a power of two: index of the set + 1, or 0 for empty */
  size_t nbuckets;
} gt_planner_list;

void gt_planner_list_open(gt_planner_list *list, size_t width);
void gt_planner_list_close(gt_planner_list *list);
bool gt_planner_list_has(const gt_planner_list *list, const int64_t *counts);
/* Adds the set.  False: the list has it already. */
bool gt_planner_list_add(gt_planner_list *list, const int64_t *counts);
static inline const int64_t *gt_planner_list_at(const gt_planner_list *list, size_t i) {
  return list->counts + i * list->width;
}

/* ---- the search ------------------------------------------------------------------------------ */

typedef struct {
  bool fits;
  double over;          /* the factor by which the set exceeds a limit; not compared if it fits */
  double first, second; /* first: the quantity to minimise; second: breaks ties */
} gt_planner_verdict;

/* The best set's simulation relative to the problem's prediction. */
typedef struct {
  double slower;      /* its time over the predicted time */
  double high;        /* its high time over its expected time */
  double *egress_usd; /* nregions */
} gt_planner_seen;

typedef struct {
  const gt_planner *p; /* simulates with the plan's precision */
  gt_planner coarse;   /* the same planner with the precision for comparing sets */
  bool fine;           /* `coarse` is as fine as `p` */
  gt_planner_candidate *c;
  gt_plan_problem problem; /* as corrected by simulations */
  gt_plan_region *regions; /* of the problem */
  gt_plan_device *devices;
  double *power; /* ncounts: of one device, before correction by simulations */
  /* nregions: share of that power that a run reaches (server, local plane, short batches) */
  double *pace;
  /* nregions: pace with which the region, with all its devices, keeps up with the slowest */
  double *floor;
  double whole_s; /* T(everything everywhere) of the problem */
  /* lower bound for the time of any set: computing only, at full power or more */
  gt_plan_problem least;
  double wan_s;      /* lower bound for the time of every run, from WAN traffic */
  double egress_usd; /* lower bound for the egress cost of every set */
  double limit_s;    /* limit for the expected time of the run; INFINITY: none */
  bool belied;       /* a set was better than its lower bound */
  double judged_s;   /* limit_s for forecasts with the precision for comparing sets */
  gt_planner_list tried;
  int64_t *kept; /* nkept x ncounts, best first; the last one is the best safe set */
  gt_planner_verdict verdicts[GT_PLANNER_KEPT];
  size_t nkept;
  gt_planner_verdict safe; /* of the best set far from its limits; over 0: none */
  gt_planner_seen seen;    /* for the best set */
  int64_t *next;           /* ncounts, scratch */
  int64_t work, last;      /* events left; events of the last set */
} gt_planner_set_search;

/* search_bounds.c */

/* True if the plan minimises time, not cost. */
bool gt_planner_by_time(const gt_planner *p);
bool gt_planner_better(const gt_planner_verdict *a, const gt_planner_verdict *b);
/* Returns the best verdict so far, an empty one before the first simulation. */
gt_planner_verdict gt_planner_best(const gt_planner_set_search *s);
/* True if a set with this lower bound can be better than the best. */
bool gt_planner_can_be_better(const gt_planner_set_search *s, double least);
/* Returns the cost of machines for wall_s and the start: USD, or hours if no price is known. */
double gt_planner_machines(const gt_planner_set_search *s, const int64_t *counts, double wall_s);
/* Sets least, egress_usd and wan_s. */
gt_status gt_planner_bounds_open(gt_planner_set_search *s);
void gt_planner_bounds_close(gt_planner_set_search *s);
/* Returns a lower bound for the quantity to minimise; INFINITY: the set exceeds a limit. */
double gt_planner_least(const gt_planner_set_search *s, const int64_t *counts);
/* True if a simulation of a whole run is below the set's lower bound; then nothing is proven. */
bool gt_planner_belies(const gt_planner_set_search *s, const gt_planner_set *set);
/* Returns a lower bound for the quantity to minimise over all sets; 0: unknown. */
double gt_planner_least_of_all(const gt_planner_set_search *s);

/* search_try.c */

/* Takes in a simulated set, unless this was done before. */
void gt_planner_take_known(gt_planner_set_search *s, const gt_planner_set *set);
/* Simulates a set with the precision of p, judges it, and keeps it if it is among the best. */
gt_status gt_planner_look_at(gt_planner_set_search *s, const gt_planner *p, gt_planner_set *set,
                             gt_planner_verdict *verdict);
/* Simulates a new set, if work is left and its lower bound does not rule it out. */
gt_status gt_planner_try(gt_planner_set_search *s, const int64_t *counts);

/* search_climb.c */

/* Writes the rule's untried set with the best prediction, and the prediction.  False: none. */
bool gt_planner_by_rule(gt_planner_set_search *s, int64_t *counts, gt_planner_verdict *predicted);
/* Returns the number of sets, including infeasible ones. */
double gt_planner_number_of_sets(const gt_planner_set_search *s);
/* Simulates all sets that can be better than the best, if the remaining work allows it, until the
   others are ruled out.  *least: no set is better (INFINITY: none meets the limits); if sets are
   compared coarsely, the lower bound of all sets. */
gt_status gt_planner_try_all(gt_planner_set_search *s, double *least);
/* Moves from the rule's sets and neighbors of the best sets to better ones, until none is better or
   the work is used up. */
gt_status gt_planner_climb(gt_planner_set_search *s);
