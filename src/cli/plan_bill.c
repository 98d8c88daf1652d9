/* The bill decides: the problem of elastic scheduling knows neither billing steps, minimum times
   nor egress that depends on the set, so sets are simulated and judged by what they would really
   cost: those near the best one, all where that can be, and never those that cannot be better.
   What no set can be better than says how far from the best the plan can be. */
#include <math.h>
#include <string.h>

#include "plan_bill.h"

#define WORK       5     /* simulations of max_events each: the search for a candidate */
#define EVENTS_ONE 5000  /* what a simulation costs beside its events */
#define COARSE     16    /* in longer runs sets are compared by so many times fewer */
#define COARSE_MIN 50000 /* but not of fewer events than that */

/* ---- judging --------------------------------------------------------------------------------- */

bool gt_bill_by_time(const bill *b) {
  return b->p->job->plan.budget > 0 && b->p->job->plan.deadline_s <= 0;
}

bool gt_bill_better(const bill_verdict *a, const bill_verdict *b) {
  if (a->fits != b->fits) return a->fits;
  if (!a->fits) return a->over < b->over * (1 - BILL_EQUAL);
  if (fabs(a->first - b->first) > BILL_EQUAL * b->first) return a->first < b->first;
  return a->second < b->second * (1 - BILL_EQUAL);
}

bill_verdict gt_bill_best(const bill *b) {
  return b->nkept > 0 ? b->verdicts[0] : (bill_verdict){.over = INFINITY, .first = INFINITY, .second = INFINITY};
}

/* Whether what is asked for holds is judged by the high figure; without it only the goal is. */
static bill_verdict judge(const bill *b, const planner_set *set) {
  const planner_outcome *expected = &set->at[PLANNER_EXPECTED];
  double time_s = expected->figures.wall_s, cost = gt_planner_cost(b->p, expected);
  bool fastest = gt_bill_by_time(b);
  double over = fmax(time_s / b->judged_s, set->at[PLANNER_HIGH].known ? gt_planner_over(b->p, set) : 0);
  return (bill_verdict){.fits = over <= 1, .over = over, .first = fastest ? time_s : cost, .second = fastest ? cost : time_s};
}

double gt_bill_machines(const bill *b, const int64_t *counts, double wall_s) {
  double cost = 0;
  for (size_t r = 0; r < b->problem->nregions; r++) {
    const gt_plan_region *region = &b->problem->regions[r];
    gt_plan_billing billing = {b->p->job->plan.billing_s, b->p->prices.regions[r].min_s};
    double rate = region->ps_price;
    for (size_t d = 0; d < region->ndevices; d++) rate += (double)counts[b->p->pools[r].first + d] * region->devices[d].price;
    cost += rate * gt_plan_billed(b->p->job->plan.start_s + wall_s, &billing) / 3600;
  }
  return cost;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static void note_best(bill *b, const planner_set *set) {
  const planner_outcome *expected = &set->at[PLANNER_EXPECTED], *high = &set->at[PLANNER_HIGH];
  gt_plan_answer answer = {.counts = b->kept};
  gt_plan_value(b->problem, &answer);
  b->seen.slower = expected->figures.wall_s / answer.time_s;
  b->seen.high = high->known ? fmax(1, high->figures.wall_s / expected->figures.wall_s) : 1;
  for (size_t r = 0; r < b->p->job->nregions; r++) b->seen.egress_usd[r] = expected->cost.regions[r].egress_usd;
}

static void keep(bill *b, const bill_verdict *v, const planner_set *set) {
  size_t n = b->p->ncounts, at = b->nkept;
  while (at > 0 && gt_bill_better(v, &b->verdicts[at - 1])) at--;
  if (at == BILL_KEPT) return;
  if (b->nkept < BILL_KEPT) b->nkept++;
  size_t behind = b->nkept - at - 1;
  memmove(b->verdicts + at + 1, b->verdicts + at, behind * sizeof *b->verdicts);
  memmove(b->kept + (at + 1) * n, b->kept + at * n, behind * n * sizeof *b->kept);
  b->verdicts[at] = *v;
  memcpy(b->kept + at * n, set->counts, n * sizeof *b->kept);
  if (at == 0) note_best(b, set);
}

/* A set that is simulated already. */
static void take_known(bill *b, const planner_set *set) {
  if (!set->counts || !set->at[PLANNER_EXPECTED].known || !gt_bill_list_add(&b->tried, set->counts)) return;
  bill_verdict v = judge(b, set);
  b->belied |= gt_bill_belies(b, set);
  keep(b, &v, set);
  b->c->sets++;
}

/* ---- simulating ------------------------------------------------------------------------------ */

static gt_status look(bill *b, const planner *p, planner_set *set, planner_case which) {
  GT_TRY(gt_planner_simulate(p, b->c, set, which));
  if (which == PLANNER_EXPECTED) {
    int64_t events = set->at[which].part < 1 ? p->max_events : set->forecast.totals.events;
    b->last = EVENTS_ONE + (events < p->max_events ? events : p->max_events);
  }
  b->work -= b->last;
  return GT_OK;
}

/* The high figure of what is no better as expected need not be known. */
static gt_status look_at(bill *b, const planner *p, planner_set *set) {
  GT_TRY(look(b, p, set, PLANNER_EXPECTED));
  b->belied |= gt_bill_belies(b, set);
  bill_verdict v = judge(b, set), best = gt_bill_best(b);
  if (gt_planner_limited(p) && (!best.fits || gt_bill_better(&v, &best))) {
    GT_TRY(look(b, p, set, PLANNER_HIGH));
    v = judge(b, set);
  }
  keep(b, &v, set);
  b->c->sets++;
  return GT_OK;
}

static gt_status simulate(bill *b, const planner *p, const int64_t *counts) {
  planner_set set = {.counts = GT_NEW_ARRAY(int64_t, p->ncounts)};
  memcpy(set.counts, counts, p->ncounts * sizeof *counts);
  gt_status status = look_at(b, p, &set);
  gt_planner_set_close(&set);
  return status;
}

bool gt_bill_may_be_better(const bill *b, double least) {
  bill_verdict best = gt_bill_best(b);
  return !best.fits || least <= best.first * (1 + BILL_EQUAL);
}

gt_status gt_bill_try(bill *b, const int64_t *counts) {
  if (b->work <= 0 || !gt_bill_list_add(&b->tried, counts) || !gt_bill_may_be_better(b, gt_bill_least(b, counts))) return GT_OK;
  return simulate(b, &b->coarse, counts);
}

/* ---- the search ------------------------------------------------------------------------------ */

/* The best sets again, as finely as the plan's figures are made: the first that holds, unless one
   that is known is better. */
static gt_status confirm(bill *b) {
  size_t n = b->nkept, width = b->p->ncounts;
  int64_t *kept = b->kept;
  gt_status status = GT_OK;
  b->kept = GT_NEW_ARRAY(int64_t, (BILL_KEPT + 1) * width);
  b->nkept = 0;
  b->judged_s = b->limit_s;
  gt_bill_list_close(&b->tried);
  gt_bill_list_open(&b->tried, width);
  take_known(b, &b->c->everything);
  take_known(b, &b->c->set);
  bool known = false;
  for (size_t k = 0; k < n && !known && status == GT_OK; k++) {
    if (gt_bill_list_add(&b->tried, kept + k * width)) status = simulate(b, b->p, kept + k * width);
    known = gt_bill_best(b).fits;
  }
  gt_free(kept);
  return status;
}

static void set_gap(bill *b, double least) {
  planner_candidate *c = b->c;
  bill_verdict best = gt_bill_best(b);
  c->gap = NAN;
  c->exact = false;
  if (b->belied) return;
  if (!best.fits)
    c->exact = least == INFINITY; /* none holds what is asked for */
  else if (least > 0 && best.first > 0)
    c->gap = fmax(0, 1 - least / best.first);
  if (best.fits) c->exact = c->gap <= 10 * BILL_EQUAL;
  if (c->exact) c->gap = 0;
}

/* Where nothing is asked for, the limit is the time of everything everywhere: coarse times are held
   to its coarse one. */
static gt_status try_everything(bill *b) {
  GT_TRY(gt_bill_try(b, b->c->everything.counts));
  if (!gt_planner_asked(b->p)) b->judged_s *= gt_bill_best(b).second / b->c->everything.at[PLANNER_EXPECTED].figures.wall_s;
  return GT_OK;
}

static gt_status search_all(bill *b) {
  double least = 0;
  if (b->fine) {
    take_known(b, &b->c->everything);
    take_known(b, &b->c->set);
  } else {
    GT_TRY(try_everything(b));
    if (b->c->set.counts) GT_TRY(gt_bill_try(b, b->c->set.counts));
  }
  GT_TRY(gt_bill_climb(b));
  if (gt_bill_number_of_sets(b) <= b->p->sets_most)
    GT_TRY(gt_bill_all(b, &least));
  else
    least = gt_bill_least_of_all(b);
  if (!b->fine) GT_TRY(confirm(b));
  set_gap(b, least);
  return GT_OK;
}

/* What is best becomes the candidate's set. */
static void settle(const bill *b) {
  planner_candidate *c = b->c;
  size_t bytes = b->p->ncounts * sizeof *b->kept;
  c->whole = memcmp(b->kept, c->everything.counts, bytes) == 0;
  if (c->set.counts && !c->whole && memcmp(b->kept, c->set.counts, bytes) == 0) return;
  gt_planner_set_close(&c->set);
  if (c->whole) return;
  c->set.counts = GT_NEW_ARRAY(int64_t, b->p->ncounts);
  memcpy(c->set.counts, b->kept, bytes);
}

static gt_status open_bill(bill *b) {
  const planner *p = b->p;
  const planner_set *all = &b->c->everything;
  b->coarse = *p;
  b->coarse.max_events = p->max_events / COARSE;
  if (b->coarse.max_events < COARSE_MIN) b->coarse.max_events = p->max_events < COARSE_MIN ? p->max_events : COARSE_MIN;
  b->fine = all->at[PLANNER_EXPECTED].part >= 1 && all->forecast.totals.events <= b->coarse.max_events;
  if (b->fine) b->coarse.max_events = p->max_events;
  b->work = WORK * p->max_events;
  b->last = EVENTS_ONE;
  b->judged_s = b->limit_s;
  b->kept = GT_NEW_ARRAY(int64_t, (BILL_KEPT + 1) * p->ncounts);
  b->next = GT_NEW_ARRAY(int64_t, p->ncounts);
  b->seen.egress_usd = GT_NEW_ARRAY(double, p->job->nregions);
  gt_bill_list_open(&b->tried, p->ncounts);
  return gt_bill_least_open(b);
}

static void close_bill(bill *b) {
  gt_bill_least_close(b);
  gt_bill_list_close(&b->tried);
  gt_free(b->seen.egress_usd);
  gt_free(b->next);
  gt_free(b->kept);
}

gt_status gt_planner_bill(const planner *p, planner_candidate *c, const gt_plan_problem *problem, const double *power, double limit_s) {
  bill b = {.p = p, .c = c, .problem = problem, .power = power, .limit_s = limit_s};
  gt_status status = open_bill(&b);
  if (status == GT_OK) status = search_all(&b);
  if (status == GT_OK) settle(&b);
  close_bill(&b);
  return status;
}
