/* Tries all sets in the order of their lower bounds; the first set that could not be simulated
   bounds all remaining ones. */
#include <math.h>
#include <stdlib.h>

#include "bill.h"

/* ---- sets ------------------------------------------------------------------------------------ */

static bool enough(const gt_planner_bill *b, size_t r, const int64_t *counts) {
  const gt_planner_pool *pool = &b->p->pools[r];
  const gt_plan_region *region = &b->problem->regions[r];
  int64_t sum = 0;
  for (size_t d = 0; d < pool->n; d++) {
    int64_t count = counts[pool->first + d];
    if (count < 0 || count > region->devices[d].count) return false;
    sum += count;
  }
  return sum >= 1 && sum >= region->ranks_min &&
         (region->ranks_max <= 0 || sum <= region->ranks_max);
}

bool gt_planner_bill_may_be(const gt_planner_bill *b, const int64_t *counts) {
  for (size_t r = 0; r < b->p->job->nregions; r++)
    if (!b->p->pools[r].fixed && !enough(b, r, counts)) return false;
  return true;
}

double gt_planner_bill_number_of_sets(const gt_planner_bill *b) {
  double sets = 1;
  for (size_t r = 0; r < b->p->job->nregions; r++)
    for (size_t d = 0; d < b->p->pools[r].n && !b->p->pools[r].fixed; d++)
      sets *= (double)b->problem->regions[r].devices[d].count + 1;
  return sets;
}

/* The set with this number, from 0 on; it need not be an allowed set. */
static void set_of(const gt_planner_bill *b, size_t number, int64_t *counts) {
  for (size_t r = 0; r < b->p->job->nregions; r++) {
    const gt_planner_pool *pool = &b->p->pools[r];
    for (size_t d = 0; d < pool->n; d++) {
      size_t n = (size_t)b->problem->regions[r].devices[d].count;
      counts[pool->first + d] = (int64_t)(pool->fixed ? n : number % (n + 1));
      if (!pool->fixed) number /= n + 1;
    }
  }
}

typedef struct {
  double least;
  size_t number;
} numbered;

static int by_least(const void *x, const void *y) {
  const numbered *a = x, *b = y;
  int order = (a->least > b->least) - (a->least < b->least);
  return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

/* The sets that may be better than the best, sorted by lower bound; the caller frees them. */
static numbered *sets_by_least(gt_planner_bill *b, size_t *n) {
  size_t all = (size_t)gt_planner_bill_number_of_sets(b);
  numbered *sets = GT_NEW_ARRAY(numbered, all);
  *n = 0;
  for (size_t i = 0; i < all; i++) {
    set_of(b, i, b->next);
    if (!gt_planner_bill_may_be(b, b->next)) continue;
    double least = gt_planner_bill_least(b, b->next);
    if (least < INFINITY && gt_planner_bill_may_be_better(b, least))
      sets[(*n)++] = (numbered){least, i};
  }
  qsort(sets, *n, sizeof *sets, by_least);
  return sets;
}

gt_status gt_planner_bill_all(gt_planner_bill *b, double *least) {
  size_t n;
  numbered *sets = sets_by_least(b, &n);
  gt_status status = GT_OK;
  double first = n > 0 ? sets[0].least : INFINITY;
  /* a part of them would prove nothing */
  bool all = (double)n * (double)b->last <= (double)b->work;
  *least = INFINITY;
  for (size_t i = 0; i < n && status == GT_OK && gt_planner_bill_may_be_better(b, sets[i].least);
       i++) {
    set_of(b, sets[i].number, b->next);
    if ((!all || b->work <= 0) && !gt_planner_list_has(&b->tried, b->next)) {
      *least = sets[i].least;
      break;
    }
    status = gt_planner_bill_try(b, b->next);
  }
  if (!b->fine) *least = first;
  if (gt_planner_bill_best(b).fits) *least = fmin(*least, gt_planner_bill_best(b).first);
  gt_free(sets);
  return status;
}
