/* What the files of the adapter share: adapt_costs.c knows the links, adapt_search.c the orders,
   adapt_past.c what they take, adapt.c decides, adapt_state.c saves. */
#ifndef GEOTRAIN_PIPE_ADAPT_INTERNAL_H
#define GEOTRAIN_PIPE_ADAPT_INTERNAL_H

#include "geotrain/pipe_adapt.h"
#include "internal.h"

/* The orders that are known: the plan of the start; the one that was found last; one that is better
   than the plan over all links that there have been, and as planned, and takes its place. */
typedef enum { ADAPT_START, ADAPT_FOUND, ADAPT_BETTER, ADAPT_ORDERS } adapt_order;

/* As they are saved. */
typedef struct {
  int64_t rested; /* steps since the last switch */
  int64_t off;    /* steps in a row in which a link was beyond the ratio */
  int64_t seen;   /* steps of which there are costs */
  int64_t force;  /* adapt_order */
} adapt_counts;
#define ADAPT_COUNTS (sizeof(adapt_counts) / sizeof(int64_t))

/* In steps, because links change with time and not with steps: what counts is how many steps an
   order would have made in the time that the steps have taken. */
typedef struct {
  double start;  /* that the order of comparison would have made */
  double behind; /* fewer than that; negative: more */
} adapt_progress;
#define ADAPT_PROGRESS (sizeof(adapt_progress) / sizeof(double))

#define ADAPT_WHY 9 /* numbers of a reason */

struct gt_pipe_adapt {
  /* As planned, for each number of micro-batches; the first one is that of the start. */
  gt_pipe_problem *problems;
  size_t nproblems;
  gt_pipe_search search;
  gt_pipe_wan wan; /* the same with measured links */
  gt_link_spec *links;
  size_t n;      /* regions */
  double *bytes; /* n x n: of the largest message on the link; 0: it is not used */
  /* Of each link: cost that the order was judged with and weighted cost, as logarithms; as planned,
     of the last step, and of the last GT_PIPE_ADAPT_PAST steps in turn. */
  double *reference, *weighted;
  gt_pipe_cost *planned, *last, *recent;
  adapt_counts counts;
  /* Against the plan of the start; against the better one, since it took its place. */
  adapt_progress progress, since;
  int64_t looked; /* steps that had been seen when a better order was looked for */
  /* NULL: there is none. */
  gt_pipe_schedule *orders[ADAPT_ORDERS];
  /* The best order as planned, which may become the better one (NULL: not looked for); the order
     that waits (NULL: none), which may be any of these. */
  gt_pipe_schedule *best, *next;
  /* Of the known orders, by the costs of each of these steps; of the order in force. */
  double periods[ADAPT_ORDERS][GT_PIPE_ADAPT_PAST], took[GT_PIPE_ADAPT_PAST];
  gt_pipe_adapt_reason why, next_why;
  double saved_why[ADAPT_WHY];
  char hash[GT_SHA256_HEX]; /* of the plan of the start */
  /* Orders as numbers, for saving: found, next, better. */
  int64_t *codes[3];
};

/* The problem with so many micro-batches; NULL: there is none. */
static inline const gt_pipe_problem *gt_pipe_adapt_problem(const gt_pipe_adapt *a, size_t micros) {
  for (size_t i = 0; i < a->nproblems; i++)
    if (a->problems[i].micros == micros) return &a->problems[i];
  return NULL;
}

/* The adapter does not know it yet. */
static inline bool gt_pipe_adapt_is_fresh(const gt_pipe_adapt *a, const gt_pipe_schedule *order) {
  bool known = order == a->best;
  for (size_t i = 0; i < ADAPT_ORDERS; i++) known = known || order == a->orders[i];
  return !known;
}

/* ---- adapt_costs.c --------------------------------------------------------------------------- */

gt_pipe_cost gt_pipe_adapt_planned(const gt_pipe_wan *wan, size_t from, size_t to);
/* The costs of a step have come.  What was not measured is as before. */
void gt_pipe_adapt_measure(gt_pipe_adapt *adapt, const gt_pipe_cost *measured);
/* Costs to choose by, n x n: the medians of the last steps, because the weighted cost is still on
   its way from the old one. */
void gt_pipe_adapt_costs(const gt_pipe_adapt *adapt, gt_pipe_cost *costs);
/* The order is judged with these costs from now on. */
void gt_pipe_adapt_refer(gt_pipe_adapt *adapt, const gt_pipe_cost *costs);

/* Of one of the last GT_PIPE_ADAPT_PAST steps, counted from the first. */
static inline gt_pipe_cost *gt_pipe_adapt_recent(const gt_pipe_adapt *a, int64_t step) {
  return &a->recent[(size_t)(step % GT_PIPE_ADAPT_PAST) * a->n * a->n];
}

/* ---- adapt_search.c -------------------------------------------------------------------------- */

/* Seconds from step to step, in a long run. */
double gt_pipe_adapt_period(gt_pipe_adapt *adapt, const gt_pipe_schedule *schedule,
                            const gt_pipe_cost *costs);
/* The best order by these costs; the caller's. */
gt_pipe_schedule *gt_pipe_adapt_best(gt_pipe_adapt *adapt, const gt_pipe_cost *costs);

/* ---- adapt_past.c ---------------------------------------------------------------------------- */

static inline gt_pipe_schedule *adapt_current(const gt_pipe_adapt *a) {
  return a->orders[a->counts.force];
}

/* The period of an order that is known, by the costs of one of the last steps. */
static inline double *adapt_at(gt_pipe_adapt *a, int64_t which, int64_t step) {
  return &a->periods[which][step % GT_PIPE_ADAPT_PAST];
}

/* By those of the last step. */
static inline double adapt_now(gt_pipe_adapt *a, int64_t which) {
  return *adapt_at(a, which, a->counts.seen - 1);
}

/* Finds the periods of recent steps of an order that is known. */
void gt_pipe_adapt_look_back(gt_pipe_adapt *adapt, adapt_order which);
/* A step was made: compares the order in force with the plan of the start and the better one. */
void gt_pipe_adapt_account(gt_pipe_adapt *adapt);

/* Steps that the plan of the start, and the better one, gain while an order makes one; better is 0
   if there is none. */
typedef struct {
  double start, better;
} adapt_loss;

adapt_loss gt_pipe_loss_larger(adapt_loss x, adapt_loss y);
/* Of an order with this period over the links of a recent step. */
adapt_loss gt_pipe_loss_at(gt_pipe_adapt *adapt, double period_s, int64_t step);
/* Over the links as planned. */
adapt_loss gt_pipe_loss_planned(gt_pipe_adapt *adapt, const gt_pipe_schedule *order);
/* The run would not be too far behind if an order were left that loses so much a step. */
bool gt_pipe_affords(const gt_pipe_adapt *adapt, adapt_loss lost);

/* What an order would have done in the time of the recent steps. */
typedef struct {
  double steps;     /* that it would have made */
  adapt_loss worst; /* the largest of a step */
} adapt_past;
adapt_past gt_pipe_past_of(gt_pipe_adapt *adapt, const gt_pipe_schedule *order);

#endif
