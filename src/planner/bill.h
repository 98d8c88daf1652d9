/* Shared by the files of the search by the simulated bill: sets of devices, verdicts on them, and
   lower bounds for all sets. */
#ifndef GEOTRAIN_PLANNER_BILL_H
#define GEOTRAIN_PLANNER_BILL_H

#include "internal.h"

#define GT_PLANNER_BILL_KEPT  4    /* number of best sets that are kept */
#define GT_PLANNER_BILL_EQUAL 1e-9 /* values that differ by less than this share are the same */
/* with more types in all regions the problem is solved only rarely */
#define GT_PLANNER_BILL_LARGE  64
#define GT_PLANNER_BILL_EVENTS 5000 /* cost of a simulation in addition to its events */

/* ---- list.c: lists of distinct sets of devices ----------------------------------------------- */

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

/* ---- verdicts on sets ------------------------------------------------------------------------ */

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
  const gt_plan_problem *problem; /* as corrected by simulations */
  const double *power;            /* of each device, before the correction */
  /* lower bound for the time of any set: computing alone, at full power or more */
  gt_plan_problem least;
  double wan_s;      /* lower bound for the time of every run, from WAN traffic */
  double egress_usd; /* lower bound for the egress cost of every set */
  double limit_s;    /* limit for the expected time of the run */
  bool belied;       /* a set was better than its lower bound */
  double judged_s;   /* limit_s for forecasts as coarse as those that compare sets */
  gt_planner_list tried;
  int64_t *kept; /* nkept x ncounts, best first */
  gt_planner_verdict verdicts[GT_PLANNER_BILL_KEPT];
  size_t nkept;
  gt_planner_seen seen; /* for the best set */
  int64_t *next;        /* ncounts, scratch */
  int64_t work, last;   /* events left; events of the last set */
} gt_planner_bill;

/* bill_verdict.c */

/* Whether the fastest set is wanted rather than the cheapest. */
bool gt_planner_bill_by_time(const gt_planner_bill *b);
bool gt_planner_bill_better(const gt_planner_verdict *a, const gt_planner_verdict *b);
/* The best verdict so far; an empty one if no set was simulated. */
gt_planner_verdict gt_planner_bill_best(const gt_planner_bill *b);
/* Whether a set with this lower bound can be better than the best. */
bool gt_planner_bill_may_be_better(const gt_planner_bill *b, double least);
/* The cost of machines for wall_s plus start: USD, or hours if no price is known. */
double gt_planner_bill_machines(const gt_planner_bill *b, const int64_t *counts, double wall_s);

/* bill_least.c */

/* Sets least, egress_usd and wan_s. */
gt_status gt_planner_bill_least_open(gt_planner_bill *b);
void gt_planner_bill_least_close(gt_planner_bill *b);
/* A lower bound for the quantity to minimise; INFINITY: the set exceeds a limit. */
double gt_planner_bill_least(const gt_planner_bill *b, const int64_t *counts);
/* Whether the simulation of a whole run is below the set's lower bound; then nothing is proven. */
bool gt_planner_bill_belies(const gt_planner_bill *b, const gt_planner_set *set);
/* A lower bound for the quantity to minimise over all sets; 0: unknown. */
double gt_planner_bill_least_of_all(const gt_planner_bill *b);

/* bill_try.c */

/* Takes in a set that is already simulated, unless this was done before. */
void gt_planner_bill_take_known(gt_planner_bill *b, const gt_planner_set *set);
/* Simulates a set as finely as p does. */
gt_status gt_planner_bill_simulate(gt_planner_bill *b, const gt_planner *p, const int64_t *counts);
/* Simulates a set that was not tried yet, if there is work left and its lower bound does not rule
   it out. */
gt_status gt_planner_bill_try(gt_planner_bill *b, const int64_t *counts);

/* bill_all.c */

/* Whether regions have these devices and may use them. */
bool gt_planner_bill_may_be(const gt_planner_bill *b, const int64_t *counts);
/* The number of sets, including those that are not allowed. */
double gt_planner_bill_number_of_sets(const gt_planner_bill *b);
/* If the remaining work allows it, simulates all sets that may be better than the best, until the
   others are ruled out. *least: no set is better than that (INFINITY: none meets the limits); if
   sets are compared coarsely, it is the lower bound of all sets. */
gt_status gt_planner_bill_all(gt_planner_bill *b, double *least);

/* bill_near.c: from the problem's sets and neighbours of the best sets to better ones, until there
   are none or the work is used up. */
gt_status gt_planner_bill_climb(gt_planner_bill *b);

#endif
