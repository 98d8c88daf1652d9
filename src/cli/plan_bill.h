/* What the files of the search by the simulated bill share: sets, what is thought of them, and what
   no set can be better than. */
#ifndef GEOTRAIN_CLI_PLAN_BILL_H
#define GEOTRAIN_CLI_PLAN_BILL_H

#include "plan_inside.h"

#define BILL_KEPT  4    /* the best sets that are kept */
#define BILL_EQUAL 1e-9 /* values that differ by less than this share are the same */
#define BILL_LARGE 64   /* with more types in all regions the problem is not solved often */

/* ---- plan_bill_list.c: sets of devices, each once -------------------------------------------- */

typedef struct {
  size_t width, n, capacity;
  int64_t *counts;   /* n x width */
  uint32_t *buckets; /* nbuckets, a power of two: the set's number + 1, 0 where there is none */
  size_t nbuckets;
} bill_list;

void gt_bill_list_open(bill_list *list, size_t width);
void gt_bill_list_close(bill_list *list);
bool gt_bill_list_has(const bill_list *list, const int64_t *counts);
/* False: it is in the list already. */
bool gt_bill_list_add(bill_list *list, const int64_t *counts);
static inline const int64_t *gt_bill_list_at(const bill_list *list, size_t i) {
  return list->counts + i * list->width;
}

/* ---- what is thought of a set ---------------------------------------------------------------- */

typedef struct {
  bool fits;
  double over;          /* it misses what is asked for by this factor; not compared where it fits */
  double first, second; /* what is wanted least; of equals, least of this */
} bill_verdict;

/* How the best set did beside what the problem says of it. */
typedef struct {
  double slower;      /* its time over the problem's */
  double high;        /* its high time over the expected one */
  double *egress_usd; /* nregions */
} bill_seen;

typedef struct {
  const planner *p; /* simulates as finely as the plan's figures are made */
  planner coarse;   /* the same, as finely as sets are compared */
  bool fine;        /* no less finely than that */
  planner_candidate *c;
  const gt_plan_problem *problem; /* as simulations have corrected it */
  const double *power;            /* of each device, before that */
  gt_plan_problem least;          /* computing alone, at full power or more: no set takes less */
  double wan_s;                   /* every run takes that long, for what crosses the WAN */
  double egress_usd;              /* every set pays that */
  double limit_s;                 /* the run may take so long, as expected */
  bool belied;                    /* a set did better than it can */
  double judged_s;                /* and so long by forecasts as coarse as sets are compared by */
  bill_list tried;
  int64_t *kept; /* nkept x ncounts, the best first */
  bill_verdict verdicts[BILL_KEPT];
  size_t nkept;
  bill_seen seen;     /* of the best */
  int64_t *next;      /* ncounts, scratch */
  int64_t work, last; /* events left, and those of the last set */
} bill;

/* plan_bill.c */

/* Whether the fastest set is wanted and not the cheapest. */
bool gt_bill_by_time(const bill *b);
bool gt_bill_better(const bill_verdict *a, const bill_verdict *b);
/* The best verdict so far; of nothing where no set was simulated. */
bill_verdict gt_bill_best(const bill *b);
/* Whether a set of which that is known can be better than the best. */
bool gt_bill_may_be_better(const bill *b, double least);
/* Simulates a set that was not yet, if there is work left and it is not known to be no better. */
gt_status gt_bill_try(bill *b, const int64_t *counts);
/* What machines cost in wall_s, start included: USD, or hours where no price is known. */
double gt_bill_machines(const bill *b, const int64_t *counts, double wall_s);

/* plan_bill_least.c */

/* Opens least, egress_usd and wan_s. */
gt_status gt_bill_least_open(bill *b);
void gt_bill_least_close(bill *b);
/* No less than that is what is wanted least; INFINITY: the set misses. */
double gt_bill_least(const bill *b, const int64_t *counts);
/* A simulation of a whole run takes or costs less than it can: then nothing is proven. */
bool gt_bill_belies(const bill *b, const planner_set *set);
/* No less than that is what is wanted least in any set; 0: not known. */
double gt_bill_least_of_all(const bill *b);

/* plan_bill_all.c */

/* Regions have so many devices, and may take them. */
bool gt_bill_may_be(const bill *b, const int64_t *counts);
/* Sets that there are, those that may not be included. */
double gt_bill_number_of_sets(const bill *b);
/* Simulates sets, where there is work enough for all that may be better, until the others are no
   better.  *least: no set is better than that (INFINITY: none holds what is asked for); where sets
   are compared coarsely that is what all of them are worth at most. */
gt_status gt_bill_all(bill *b, double *least);

/* plan_bill_near.c: from the problem's sets and those near the best ones to better ones, until none
   is or the work is done. */
gt_status gt_bill_climb(bill *b);

#endif
