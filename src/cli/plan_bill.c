/* The bill decides: the problem of elastic scheduling knows neither billing steps, minimum times nor egress that depends on the set, so sets around its answer are
   simulated and judged by what they would really cost.  Where all sets can be simulated, the best of them is proven. */
#include <math.h>
#include <string.h>

#include "plan_inside.h"

#define WORK       8    /* simulations of max_events events each: so much is searched for a candidate */
#define EVENTS_ONE 5000 /* what a simulation costs beside its events */
#define SWEEP      16   /* deadlines between the fastest plan and the slowest */
#define STEPS_MOST 12   /* ends of billing steps that are aimed at */
#define LARGE      64   /* with more types of devices in all regions the problem takes too long to be solved that often */
#define NEVER_S    1e12
#define DEAR       1e15

/* How good a set is. */
typedef struct {
  bool fits;
  double over;          /* it misses what is asked for by this factor; where it fits it does not count */
  double first, second; /* what is wanted least; of equals, least of this */
} verdict;

typedef struct {
  const planner *p;
  planner_candidate *c;
  const gt_plan_problem *problem;
  double limit_s;
  int64_t *seen; /* nseen x ncounts: what was judged */
  size_t nseen, capacity;
  int64_t *best, *next; /* ncounts; next: scratch */
  verdict verdict;      /* of best */
  int64_t work, last;   /* events left, and those of the last set */
} bill;

/* ---- judging ------------------------------------------------------------------------------------------------------------------ */

static bool by_time(const gt_job *job) {
  return job->plan.budget > 0 && job->plan.deadline_s <= 0;
}

static bool is_better(const verdict *a, const verdict *b) {
  if (a->fits != b->fits) return a->fits;
  if (!a->fits) return a->over < b->over * (1 - 1e-9);
  if (fabs(a->first - b->first) > 1e-9 * b->first) return a->first < b->first;
  return a->second < b->second * (1 - 1e-9);
}

/* Whether what is asked for holds is judged by the high figure; without it only the goal is. */
static verdict judge(const bill *b, const planner_set *set) {
  const planner_outcome *expected = &set->at[PLANNER_EXPECTED];
  double time_s = expected->figures.wall_s, cost = gt_planner_cost(b->p, expected);
  bool fastest = by_time(b->p->job);
  double over = fmax(time_s / b->limit_s, set->at[PLANNER_HIGH].known ? gt_planner_over(b->p, set) : 0);
  return (verdict){.fits = over <= 1, .over = over, .first = fastest ? time_s : cost, .second = fastest ? cost : time_s};
}

static bool is_seen(const bill *b, const int64_t *counts) {
  size_t n = b->p->ncounts;
  for (size_t i = 0; i < b->nseen; i++)
    if (memcmp(b->seen + i * n, counts, n * sizeof *counts) == 0) return true;
  return false;
}

static void remember(bill *b, const int64_t *counts) {
  size_t n = b->p->ncounts;
  if (b->nseen == b->capacity) {
    b->capacity = b->capacity ? 2 * b->capacity : 64;
    int64_t *grown = GT_NEW_ARRAY(int64_t, b->capacity * n);
    if (b->nseen) memcpy(grown, b->seen, b->nseen * n * sizeof *grown);
    gt_free(b->seen);
    b->seen = grown;
  }
  memcpy(b->seen + b->nseen++ * n, counts, n * sizeof *counts);
}

static void take_better(bill *b, const verdict *v, const int64_t *counts) {
  if (!is_better(v, &b->verdict)) return;
  b->verdict = *v;
  memcpy(b->best, counts, b->p->ncounts * sizeof *counts);
}

/* A set that is simulated already. */
static void take_known(bill *b, const planner_set *set) {
  if (!set->counts || !set->at[PLANNER_EXPECTED].known || is_seen(b, set->counts)) return;
  remember(b, set->counts);
  verdict v = judge(b, set);
  take_better(b, &v, set->counts);
}

static gt_status look(bill *b, planner_set *set, planner_case which) {
  GT_TRY(gt_planner_simulate(b->p, b->c, set, which));
  if (which == PLANNER_EXPECTED) {
    int64_t events = set->forecast.totals.events;
    b->last = EVENTS_ONE + (events < b->p->max_events ? events : b->p->max_events);
  }
  b->work -= b->last;
  return GT_OK;
}

/* The high figure of what is no better as expected need not be known. */
static gt_status look_at(bill *b, planner_set *set) {
  GT_TRY(look(b, set, PLANNER_EXPECTED));
  verdict v = judge(b, set);
  if (b->verdict.fits && !is_better(&v, &b->verdict)) return GT_OK;
  if (gt_planner_limited(b->p)) GT_TRY(look(b, set, PLANNER_HIGH));
  v = judge(b, set);
  take_better(b, &v, set->counts);
  return GT_OK;
}

static gt_status try_counts(bill *b, const int64_t *counts) {
  if (b->work <= 0 || is_seen(b, counts)) return GT_OK;
  remember(b, counts);
  planner_set set = {.counts = GT_NEW_ARRAY(int64_t, b->p->ncounts)};
  memcpy(set.counts, counts, b->p->ncounts * sizeof *counts);
  gt_status status = look_at(b, &set);
  gt_planner_set_close(&set);
  return status;
}

/* ---- sets ------------------------------------------------------------------------------------------------------------------------ */

static bool may_be(const bill *b, size_t r, const int64_t *counts) {
  const planner_pool *pool = &b->p->pools[r];
  const gt_plan_region *region = &b->problem->regions[r];
  int64_t sum = 0;
  for (size_t d = 0; d < pool->n; d++) {
    int64_t count = counts[pool->first + d];
    if (count < 0 || count > region->devices[d].count) return false;
    sum += count;
  }
  return sum >= 1 && sum >= region->ranks_min && (region->ranks_max <= 0 || sum <= region->ranks_max);
}

static bool all_may_be(const bill *b, const int64_t *counts) {
  for (size_t r = 0; r < b->p->job->nregions; r++)
    if (!b->p->pools[r].fixed && !may_be(b, r, counts)) return false;
  return true;
}

/* The best set with one device of `from` less and one of `to` more (the number of types: none) in regions first to last. */
static gt_status try_move(bill *b, size_t first, size_t last, size_t from, size_t to) {
  memcpy(b->next, b->best, b->p->ncounts * sizeof *b->next);
  for (size_t r = first; r <= last; r++) {
    const planner_pool *pool = &b->p->pools[r];
    if (pool->fixed) continue;
    if (from < pool->n) b->next[pool->first + from]--;
    if (to < pool->n) b->next[pool->first + to]++;
  }
  return all_may_be(b, b->next) ? try_counts(b, b->next) : GT_OK;
}

static gt_status try_moves(bill *b, size_t first, size_t last) {
  size_t n = b->p->pools[first].n;
  for (size_t from = 0; from <= n; from++)
    for (size_t to = 0; to <= n; to++)
      if (from != to) GT_TRY(try_move(b, first, last, from, to));
  return GT_OK;
}

/* From the best set to a better one beside it, in one region or in all at once, until none beside it is. */
static gt_status climb(bill *b) {
  verdict before;
  size_t n = b->p->job->nregions;
  do {
    before = b->verdict;
    if (n > 1) GT_TRY(try_moves(b, 0, n - 1));
    for (size_t r = 0; r < n && b->work > 0; r++)
      if (!b->p->pools[r].fixed) GT_TRY(try_moves(b, r, r));
  } while (b->work > 0 && is_better(&b->verdict, &before));
  return GT_OK;
}

/* ---- what the problem has to say of other times ------------------------------------------------------------------------------- */

static gt_status try_deadline(bill *b, double deadline_s, double budget, double *time_s) {
  gt_plan_problem problem = *b->problem;
  gt_plan_answer answer = {.counts = b->next};
  problem.deadline_s = deadline_s;
  problem.budget = budget;
  if (gt_plan_elastic(&problem, &answer) != GT_OK) return GT_OK;
  *time_s = answer.time_s;
  return try_counts(b, b->next);
}

/* Cheapest sets in less and less time, and those that end just before a billing step does, by the expected figure or by the high one. */
static gt_status sweep(bill *b) {
  const gt_job *job = b->p->job;
  double fast_s = 0, slow_s = 0, time_s, step_s = job->plan.billing_s;
  GT_TRY(try_deadline(b, 0, DEAR, &fast_s));
  GT_TRY(try_deadline(b, NEVER_S, 0, &slow_s));
  if (!(fast_s > 0) || !(slow_s > fast_s)) return GT_OK;
  for (int k = 0; k < SWEEP && b->work > 0; k++) GT_TRY(try_deadline(b, fast_s * pow(slow_s / fast_s, (k + 0.5) / SWEEP), 0, &time_s));
  double first = ceil((fast_s + job->plan.start_s) / step_s);
  for (int k = 0; k < STEPS_MOST && b->work > 0; k++) {
    double end_s = (first + k) * step_s - job->plan.start_s;
    if (end_s > slow_s * (1 + b->p->options->margin)) break;
    GT_TRY(try_deadline(b, end_s * 0.995, 0, &time_s));
    GT_TRY(try_deadline(b, end_s * 0.995 * (1 - b->p->options->margin), 0, &time_s));
  }
  return GT_OK;
}

/* ---- all of them ------------------------------------------------------------------------------------------------------------------ */

/* Sets that can be. */
static double number_of_sets(const bill *b) {
  double sets = 1;
  for (size_t r = 0; r < b->p->job->nregions; r++)
    for (size_t d = 0; d < b->p->pools[r].n && !b->p->pools[r].fixed; d++) sets *= (double)b->problem->regions[r].devices[d].count + 1;
  return sets;
}

/* The next in order after `counts`; false: it was the last. */
static bool step_on(const bill *b, int64_t *counts) {
  for (size_t r = 0; r < b->p->job->nregions; r++) {
    const planner_pool *pool = &b->p->pools[r];
    for (size_t d = 0; d < pool->n && !pool->fixed; d++) {
      if (counts[pool->first + d]++ < b->problem->regions[r].devices[d].count) return true;
      counts[pool->first + d] = 0;
    }
  }
  return false;
}

/* Goes through all sets where the work that is left is enough for that. */
static gt_status try_all(bill *b) {
  const gt_job *job = b->p->job;
  double sets = number_of_sets(b);
  b->c->exact = false;
  if (sets > 1 && (sets > b->p->sets_most || sets * (double)b->last * (gt_planner_limited(b->p) ? 2 : 1) > (double)b->work)) return GT_OK;
  memcpy(b->next, b->best, b->p->ncounts * sizeof *b->next);
  for (size_t r = 0; r < job->nregions; r++)
    if (!b->p->pools[r].fixed) memset(b->next + b->p->pools[r].first, 0, b->p->pools[r].n * sizeof *b->next);
  do {
    if (all_may_be(b, b->next)) GT_TRY(try_counts(b, b->next));
  } while (step_on(b, b->next));
  b->c->exact = b->work > 0 || sets <= 1;
  return GT_OK;
}

static gt_status search_all(bill *b) {
  b->verdict = (verdict){.over = INFINITY};
  take_known(b, &b->c->set);
  take_known(b, &b->c->everything);
  if (b->p->ncounts <= LARGE) GT_TRY(sweep(b));
  GT_TRY(climb(b));
  return try_all(b);
}

/* What is best becomes the candidate's set. */
static void settle(const bill *b) {
  planner_candidate *c = b->c;
  size_t bytes = b->p->ncounts * sizeof *b->best;
  c->sets = (int64_t)b->nseen;
  c->whole = memcmp(b->best, c->everything.counts, bytes) == 0;
  if (c->set.counts && !c->whole && memcmp(b->best, c->set.counts, bytes) == 0) return;
  gt_planner_set_close(&c->set);
  if (c->whole) return;
  c->set.counts = GT_NEW_ARRAY(int64_t, b->p->ncounts);
  memcpy(c->set.counts, b->best, bytes);
}

gt_status gt_planner_bill(const planner *p, planner_candidate *c, const gt_plan_problem *problem, double limit_s) {
  bill b = {.p = p, .c = c, .problem = problem, .limit_s = limit_s, .work = WORK * p->max_events, .last = EVENTS_ONE};
  b.best = GT_NEW_ARRAY(int64_t, p->ncounts);
  b.next = GT_NEW_ARRAY(int64_t, p->ncounts);
  gt_status status = search_all(&b);
  if (status == GT_OK) settle(&b);
  gt_free(b.seen);
  gt_free(b.best);
  gt_free(b.next);
  return status;
}
