/* The adapter's state: adapt.c decides, adapt_state.c saves and loads. */
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
  bool decides;
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
  gt_pipe_schedule *next; /* the order that waits, which may be any of these; NULL: none */
  /* Of the known orders, by the costs of each of these steps; of the order in force. */
  double periods[ADAPT_ORDERS][GT_PIPE_ADAPT_PAST], took[GT_PIPE_ADAPT_PAST];
  gt_pipe_adapt_reason why, next_why;
  double saved_why[ADAPT_WHY];
  char hash[GT_SHA256_HEX]; /* of the plan of the start */
  int64_t version;          /* of the saved state */
  /* Orders as numbers: found, next and better, for saving; the one that is told. */
  int64_t *codes[4];
};

/* The problem with so many micro-batches; NULL: there is none. */
static inline const gt_pipe_problem *gt_pipe_adapt_problem(const gt_pipe_adapt *a,
                                                           size_t micro_batches) {
  for (size_t i = 0; i < a->nproblems; i++)
    if (a->problems[i].micro_batches == micro_batches) return &a->problems[i];
  return NULL;
}

/* Finds the periods of recent steps of an order that is known, where the region decides. */
void gt_pipe_adapt_look_back(gt_pipe_adapt *adapt, adapt_order which);

#endif
