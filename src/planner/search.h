/* Shared by the files of the search for a candidate's set: the problem of elastic scheduling as
   simulations correct it, verdicts on sets, and lower bounds for all sets. */
#ifndef GEOTRAIN_PLANNER_SEARCH_H
#define GEOTRAIN_PLANNER_SEARCH_H

#include "internal.h"

#define GT_PLANNER_KEPT  4    /* number of best sets that are kept */
#define GT_PLANNER_EQUAL 1e-9 /* values that differ by less than this share are the same */
/* with more types in all regions the rule is applied only rarely */
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
/* False: it is in the list already. */
bool gt_planner_list_add(gt_planner_list *list, const int64_t *counts);
static inline const int64_t *gt_planner_list_at(const gt_planner_list *list, size_t i) {
  return list->counts + i * list->width;
}

/* ---- the search ------------------------------------------------------------------------------ */

typedef struct {
  bool fits;
  double over;          /* the factor by which it exceeds a limit; not compared if it fits */
  double first, second; /* first: the quantity to minimise; second: decides between equal ones */
} gt_planner_verdict;

/* The best set's simulation relative to the problem's prediction. */
typedef struct {
  double slower;      /* its time over the predicted time */
  double high;        /* its high time over its expected time */
  double *egress_usd; /* nregions */
} gt_planner_seen;

typedef struct {
  const gt_planner *p; /* simulates as finely as for the plan's figures */
  gt_planner coarse;   /* the same planner, simulating as finely as for comparing sets */
  bool fine;           /* `coarse` is as fine as `p` */
  gt_planner_candidate *c;
  gt_plan_problem problem; /* as corrected by simulations */
  gt_plan_region *regions; /* of the problem */
  gt_plan_device *devices;
  double *power; /* ncounts: of one device, before correction by simulations */
  /* nregions: the share of that power reached in a run (server, local plane, short batches) */
  double *pace;
  /* nregions: a pace at which the region, with all its devices, still keeps up with the slowest */
  double *floor;
  double whole_s; /* T(everything everywhere) of the problem */
  /* lower bound for the time of any set: computing alone, at full power or more */
  gt_plan_problem least;
  double wan_s;      /* lower bound for the time of every run, from WAN traffic */
  double egress_usd; /* lower bound for the egress cost of every set */
  double limit_s;    /* limit for the expected time of the run; INFINITY: none */
  bool belied;       /* a set was better than its lower bound */
  double judged_s;   /* limit_s for forecasts as coarse as those that compare sets */
  gt_planner_list tried;
  int64_t *kept; /* nkept x ncounts, best first; as the last one the best set that is safe */
  gt_planner_verdict verdicts[GT_PLANNER_KEPT];
  size_t nkept;
  gt_planner_verdict safe; /* of the best set far from its limits; over 0: there is none */
  gt_planner_seen seen;    /* for the best set */
  int64_t *next;           /* ncounts, scratch */
  int64_t work, last;      /* events left; events of the last set */
} gt_planner_set_search;

/* search_bounds.c */

/* Whether the fastest set is wanted rather than the cheapest. */
bool gt_planner_by_time(const gt_planner *p);
bool gt_planner_better(const gt_planner_verdict *a, const gt_planner_verdict *b);
/* The best verdict so far; an empty one if no set was simulated. */
gt_planner_verdict gt_planner_best(const gt_planner_set_search *s);
/* Whether a set with this lower bound can be better than the best. */
bool gt_planner_can_be_better(const gt_planner_set_search *s, double least);
/* The cost of machines for wall_s plus start: USD, or hours if no price is known. */
double gt_planner_machines(const gt_planner_set_search *s, const int64_t *counts, double wall_s);
/* Sets least, egress_usd and wan_s. */
gt_status gt_planner_bounds_open(gt_planner_set_search *s);
void gt_planner_bounds_close(gt_planner_set_search *s);
/* A lower bound for the quantity to minimise; INFINITY: the set exceeds a limit. */
double gt_planner_least(const gt_planner_set_search *s, const int64_t *counts);
/* Whether the simulation of a whole run is below the set's lower bound; then nothing is proven. */
bool gt_planner_belies(const gt_planner_set_search *s, const gt_planner_set *set);
/* A lower bound for the quantity to minimise over all sets; 0: unknown. */
double gt_planner_least_of_all(const gt_planner_set_search *s);

/* search_try.c */

/* Takes in a set that is already simulated, unless this was done before. */
void gt_planner_take_known(gt_planner_set_search *s, const gt_planner_set *set);
/* Simulates a set as finely as p does, judges it, and keeps it if it is among
   the best. */
gt_status gt_planner_look_at(gt_planner_set_search *s, const gt_planner *p, gt_planner_set *set,
                             gt_planner_verdict *verdict);
/* Simulates a set that was not tried yet, if there is work left and its lower bound does not rule
   it out. */
gt_status gt_planner_try(gt_planner_set_search *s, const int64_t *counts);

/* search_climb.c */

/* Writes the rule's set that is predicted to be best, of those not tried yet, and its prediction.
   False: there is none. */
bool gt_planner_by_rule(gt_planner_set_search *s, int64_t *counts, gt_planner_verdict *predicted);
/* The number of sets, including those that are not feasible. */
double gt_planner_number_of_sets(const gt_planner_set_search *s);
/* If the remaining work allows it, simulates all sets that can be better than the best, until the
   others are ruled out. *least: no set is better than that (INFINITY: none meets the limits); if
   sets are compared coarsely, it is the lower bound of all sets. */
gt_status gt_planner_try_all(gt_planner_set_search *s, double *least);
/* From the rule's sets and neighbors of the best sets to better ones, until there are none or the
   work is used up. */
gt_status gt_planner_climb(gt_planner_set_search *s);

#endif
