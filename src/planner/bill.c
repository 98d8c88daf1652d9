/* Chooses by the simulated bill.  The problem of elastic scheduling ignores billing steps, minimum
   times and egress that depends on the set.  So sets are simulated and judged by their real cost:
   those near the best one, all of them if possible, and never those that cannot be better.  The
   lower bound over all sets says how far from the best the plan can be. */
#include <math.h>
#include <string.h>

#include "bill.h"

/* budget for the search for a candidate, in simulations of max_events each */
#define WORK       5
#define COARSE     16    /* for longer runs sets are compared with this many times fewer events */
#define COARSE_MIN 50000 /* but with at least this many events */

/* ---- the search ------------------------------------------------------------------------------ */

/* Simulates the best sets again, as finely as for the plan's figures: takes the first that fits,
   unless a known one is better. */
static gt_status confirm(gt_planner_bill *b) {
  size_t n = b->nkept, width = b->p->ncounts;
  int64_t *kept = b->kept;
  gt_status status = GT_OK;
  b->kept = GT_NEW_ARRAY(int64_t, (GT_PLANNER_BILL_KEPT + 1) * width);
  b->nkept = 0;
  b->judged_s = b->limit_s;
  gt_planner_list_close(&b->tried);
  gt_planner_list_open(&b->tried, width);
  gt_planner_bill_take_known(b, &b->c->everything);
  gt_planner_bill_take_known(b, &b->c->set);
  bool known = false;
  for (size_t k = 0; k < n && !known && status == GT_OK; k++) {
    if (gt_planner_list_add(&b->tried, kept + k * width))
      status = gt_planner_bill_simulate(b, b->p, kept + k * width);
    known = gt_planner_bill_best(b).fits;
  }
  gt_free(kept);
  return status;
}

static void set_gap(gt_planner_bill *b, double least) {
  gt_planner_candidate *c = b->c;
  gt_planner_verdict best = gt_planner_bill_best(b);
  c->gap = NAN;
  c->exact = false;
  if (b->belied) return;
  if (!best.fits)
    c->exact = least == INFINITY; /* none meets the limits */
  else if (least > 0 && best.first > 0)
    c->gap = fmax(0, 1 - least / best.first);
  if (best.fits) c->exact = c->gap <= 10 * GT_PLANNER_BILL_EQUAL;
  if (c->exact) c->gap = 0;
}

/* If nothing is asked for, the limit is the time of everything everywhere.  Coarse times are
   compared with its coarse time. */
static gt_status try_everything(gt_planner_bill *b) {
  GT_TRY(gt_planner_bill_try(b, b->c->everything.counts));
  if (!gt_planner_asked(b->p))
    b->judged_s *=
        gt_planner_bill_best(b).second / b->c->everything.at[GT_PLANNER_EXPECTED].figures.wall_s;
  return GT_OK;
}

static gt_status search_all(gt_planner_bill *b) {
  double least = 0;
  if (b->fine) {
    gt_planner_bill_take_known(b, &b->c->everything);
    gt_planner_bill_take_known(b, &b->c->set);
  } else {
    GT_TRY(try_everything(b));
    if (b->c->set.counts) GT_TRY(gt_planner_bill_try(b, b->c->set.counts));
  }
  GT_TRY(gt_planner_bill_climb(b));
  if (gt_planner_bill_number_of_sets(b) <= b->p->sets_most)
    GT_TRY(gt_planner_bill_all(b, &least));
  else
    least = gt_planner_bill_least_of_all(b);
  if (!b->fine) GT_TRY(confirm(b));
  set_gap(b, least);
  return GT_OK;
}

/* Makes the best set the candidate's set. */
static void settle(const gt_planner_bill *b) {
  gt_planner_candidate *c = b->c;
  size_t bytes = b->p->ncounts * sizeof *b->kept;
  c->whole = memcmp(b->kept, c->everything.counts, bytes) == 0;
  if (c->set.counts && !c->whole && memcmp(b->kept, c->set.counts, bytes) == 0) return;
  gt_planner_set_close(&c->set);
  if (c->whole) return;
  c->set.counts = GT_NEW_ARRAY(int64_t, b->p->ncounts);
  memcpy(c->set.counts, b->kept, bytes);
}

static gt_status open_bill(gt_planner_bill *b) {
  const gt_planner *p = b->p;
  const gt_planner_set *all = &b->c->everything;
  b->coarse = *p;
  b->coarse.max_events = p->max_events / COARSE;
  if (b->coarse.max_events < COARSE_MIN)
    b->coarse.max_events = p->max_events < COARSE_MIN ? p->max_events : COARSE_MIN;
  b->fine =
      all->at[GT_PLANNER_EXPECTED].part >= 1 && all->forecast.totals.events <= b->coarse.max_events;
  if (b->fine) b->coarse.max_events = p->max_events;
  b->work = WORK * p->max_events;
  b->last = GT_PLANNER_BILL_EVENTS;
  b->judged_s = b->limit_s;
  b->kept = GT_NEW_ARRAY(int64_t, (GT_PLANNER_BILL_KEPT + 1) * p->ncounts);
  b->next = GT_NEW_ARRAY(int64_t, p->ncounts);
  b->seen.egress_usd = GT_NEW_ARRAY(double, p->job->nregions);
  gt_planner_list_open(&b->tried, p->ncounts);
  return gt_planner_bill_least_open(b);
}

static void close_bill(gt_planner_bill *b) {
  gt_planner_bill_least_close(b);
  gt_planner_list_close(&b->tried);
  gt_free(b->seen.egress_usd);
  gt_free(b->next);
  gt_free(b->kept);
}

gt_status gt_planner_bill_decide(const gt_planner *p, gt_planner_candidate *c,
                                 const gt_plan_problem *problem, const double *power,
                                 double limit_s) {
  gt_planner_bill b = {.p = p, .c = c, .problem = problem, .power = power, .limit_s = limit_s};
  gt_status status = open_bill(&b);
  if (status == GT_OK) status = search_all(&b);
  if (status == GT_OK) settle(&b);
  close_bill(&b);
  return status;
}
