/* What the files of the search by the simulated bill share: sets, what is thought of them, and what
   no set can be better than. */
#ifndef GEOTRAIN_PLANNER_BILL_H
#define GEOTRAIN_PLANNER_BILL_H

#include "internal.h"

#define GT_PLANNER_BILL_KEPT   4    /* the best sets that are kept */
#define GT_PLANNER_BILL_EQUAL  1e-9 /* values that differ by less than this share are the same */
#define GT_PLANNER_BILL_LARGE  64   /* with more types in all regions the problem is not solved often */
#define GT_PLANNER_BILL_EVENTS 5000 /* what a simulation costs beside its events */

/* ---- list.c: sets of devices, each once ------------------------------------------------------ */

typedef struct {
  size_t width, n, capacity;
  int64_t *counts;   /* n x width */
  uint32_t *buckets; /* nbuckets, a power of two: the set's number + 1, 0 where there is none */
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

/* ---- what is thought of a set ---------------------------------------------------------------- */

typedef struct {
  bool fits;
  double over;          /* it misses what is asked for by this factor; not compared where it fits */
  double first, second; /* what is wanted least; of equals, least of this */
} gt_planner_verdict;

/* How the best set did beside what the problem says of it. */
typedef struct {
  double slower;      /* its time over the problem's */
  double high;        /* its high time over the expected one */
  double *egress_usd; /* nregions */
} gt_planner_seen;

typedef struct {
  const gt_planner *p; /* simulates as finely as the plan's figures are made */
  gt_planner coarse;   /* the same, as finely as sets are compared */
  bool fine;           /* no less finely than that */
  gt_planner_candidate *c;
  const gt_plan_problem *problem; /* as simulations have corrected it */
  const double *power;            /* of each device, before that */
  gt_plan_problem least;          /* computing alone, at full power or more: no set takes less */
  double wan_s;                   /* every run takes that long, for what crosses the WAN */
  double egress_usd;              /* every set pays that */
  double limit_s;                 /* the run may take so long, as expected */
  bool belied;                    /* a set did better than it can */
  double judged_s;                /* and so long by forecasts as coarse as sets are compared by */
  gt_planner_list tried;
  int64_t *kept; /* nkept x ncounts, the best first */
  gt_planner_verdict verdicts[GT_PLANNER_BILL_KEPT];
  size_t nkept;
  gt_planner_seen seen; /* of the best */
  int64_t *next;        /* ncounts, scratch */
  int64_t work, last;   /* events left, and those of the last set */
} gt_planner_bill;

/* bill_verdict.c */

/* Whether the fastest set is wanted and not the cheapest. */
bool gt_planner_bill_by_time(const gt_planner_bill *b);
bool gt_planner_bill_better(const gt_planner_verdict *a, const gt_planner_verdict *b);
/* The best verdict so far; of nothing where no set was simulated. */
gt_planner_verdict gt_planner_bill_best(const gt_planner_bill *b);
/* Whether a set of which that is known can be better than the best. */
bool gt_planner_bill_may_be_better(const gt_planner_bill *b, double least);
/* What machines cost in wall_s, start included: USD, or hours where no price is known. */
double gt_planner_bill_machines(const gt_planner_bill *b, const int64_t *counts, double wall_s);

/* bill_least.c */

/* Opens least, egress_usd and wan_s. */
gt_status gt_planner_bill_least_open(gt_planner_bill *b);
void gt_planner_bill_least_close(gt_planner_bill *b);
/* No less than that is what is wanted least; INFINITY: the set misses. */
double gt_planner_bill_least(const gt_planner_bill *b, const int64_t *counts);
/* A simulation of a whole run takes or costs less than it can: then nothing is proven. */
bool gt_planner_bill_belies(const gt_planner_bill *b, const gt_planner_set *set);
/* No less than that is what is wanted least in any set; 0: not known. */
double gt_planner_bill_least_of_all(const gt_planner_bill *b);

/* bill_try.c */

/* Takes a set that is simulated already, unless it was taken. */
void gt_planner_bill_take_known(gt_planner_bill *b, const gt_planner_set *set);
/* Simulates a set as finely as p says. */
gt_status gt_planner_bill_simulate(gt_planner_bill *b, const gt_planner *p, const int64_t *counts);
/* Simulates a set that was not yet, if there is work left and it is not known to be no better. */
gt_status gt_planner_bill_try(gt_planner_bill *b, const int64_t *counts);

/* bill_all.c */

/* Regions have so many devices, and may take them. */
bool gt_planner_bill_may_be(const gt_planner_bill *b, const int64_t *counts);
/* Sets that there are, those that may not be included. */
double gt_planner_bill_number_of_sets(const gt_planner_bill *b);
/* Simulates sets, where there is work enough for all that may be better, until the others are no
   better.  *least: no set is better than that (INFINITY: none holds what is asked for); where sets
   are compared coarsely that is what all of them are worth at most. */
gt_status gt_planner_bill_all(gt_planner_bill *b, double *least);

/* bill_near.c: from the problem's sets and those near the best ones to better ones, until none
   is or the work is done. */
gt_status gt_planner_bill_climb(gt_planner_bill *b);

#endif
