/* The adapter's state: adapt.c decides, adapt_state.c saves and loads. */
#pragma once

#include "geotrain/pipe_adapt.h"
#include "internal.h"

/* The known orders: the initial plan; the last order found; an order that replaces the plan because
   it is better over all recent links and the planned ones. */
typedef enum { ADAPT_START, ADAPT_FOUND, ADAPT_BETTER, ADAPT_ORDERS } adapt_order;

/* In the form of checkpoints. */
typedef struct {
  int64_t rested; /* steps since the last switch */
  int64_t off;    /* steps in succession with a link beyond the ratio */
  int64_t seen;   /* steps with known costs */
  int64_t force;  /* the current adapt_order */
} adapt_counts;
#define ADAPT_COUNTS (sizeof(adapt_counts) / sizeof(int64_t))

/* Counts of steps that an order would have made in the time of the actual steps, because links
   change with time and not with steps. */
typedef struct {
  double start;  /* of the order of comparison */
  double behind; /* by which the run is behind; negative: ahead */
} adapt_progress;
#define ADAPT_PROGRESS (sizeof(adapt_progress) / sizeof(double))

#define ADAPT_WHY 9 /* numbers of a reason */

struct gt_pipe_adapt {
  /* As planned, for each number of micro-batches; the first is that of the initial plan. */
  gt_pipe_problem *problems;
  size_t nproblems;
  gt_pipe_search search;
  bool decides;
  gt_pipe_wan wan; /* the same with measured links */
  gt_link_spec *links;
  size_t n;      /* regions */
  double *bytes; /* n x n: bytes of the largest message on the link; 0: not used */
  /* Of each link, as logarithms: the cost by which the order was judged, and the weighted cost.
     Then its costs: planned, of the last step, and of the last GT_PIPE_ADAPT_PAST steps (a
     ring). */
  double *reference, *weighted;
  gt_pipe_cost *planned, *last, *recent;
  adapt_counts counts;
  /* Compared with the initial plan; with the better order since it replaced the plan. */
  adapt_progress progress, since;
  int64_t looked; /* value of counts.seen at the last search for a better order */
  /* NULL: none. */
  gt_pipe_schedule *orders[ADAPT_ORDERS];
  gt_pipe_schedule *next; /* pending order, which can be one of these; NULL: none */
  /* Of the known orders, by the costs of each recent step; of the current order. */
  double periods[ADAPT_ORDERS][GT_PIPE_ADAPT_PAST], took[GT_PIPE_ADAPT_PAST];
  gt_pipe_adapt_reason why, next_why;
  double saved_why[ADAPT_WHY];
  char hash[GT_SHA256_HEX]; /* of the initial plan */
  int64_t version;          /* of the saved state */
  /* Orders as numbers: found, next and better, for saving; the one to send. */
  int64_t *codes[4];
};

/* Returns the problem with this number of micro-batches, or NULL. */
static inline const gt_pipe_problem *gt_pipe_adapt_problem(const gt_pipe_adapt *a,
                                                           size_t micro_batches) {
  for (size_t i = 0; i < a->nproblems; i++)
    if (a->problems[i].micro_batches == micro_batches) return &a->problems[i];
  return NULL;
}

/* Computes the periods of a known order over recent steps, in the deciding region. */
void gt_pipe_adapt_look_back(gt_pipe_adapt *adapt, adapt_order which);
