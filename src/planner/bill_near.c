/* Searches for better sets near the best: solutions of the problem for other times, and sets one or
   two moves from the best ones.  They are simulated in the order of the problem's prediction,
   scaled by the best set's simulation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bill.h"

#define TIMES        32  /* number of deadlines between the fastest and the slowest set */
#define STEPS_MOST   12  /* number of ends of billing steps used as deadlines */
#define PAIRED       192 /* number of moves that are combined in pairs */
#define EVENTS_GUESS 8   /* work of one prediction per region, in events */
#define NEVER_S      1e12
#define DEAR         1e15
#define NONE         SIZE_MAX

/* ---- prediction ------------------------------------------------------------------------------ */

static double problem_s(const gt_plan_problem *problem, const int64_t *counts) {
  gt_plan_answer answer = {.counts = (int64_t *)counts};
  gt_plan_value(problem, &answer);
  return answer.time_s;
}

/* The workers whose steps decide what the region sends: its own; all, if it only aggregates. */
static double workers_of(const gt_planner_bill *b, size_t r, const int64_t *counts) {
  double sum = 0;
  for (size_t i = 0; i < b->p->job->nregions; i++)
    if (i == r || !gt_job_trains(b->p->job, r))
      sum += (double)gt_planner_ranks(b->p, i, counts) - 1;
  return sum;
}

/* With `local: sync` more workers make fewer steps and send less. */
static double egress_of(const gt_planner_bill *b, const int64_t *counts) {
  double usd = 0;
  bool sync = b->problem->local_sync;
  for (size_t r = 0; r < b->p->job->nregions; r++)
    usd +=
        b->seen.egress_usd[r] * (sync ? workers_of(b, r, b->kept) / workers_of(b, r, counts) : 1);
  return usd;
}

static gt_planner_verdict guess(const gt_planner_bill *b, const int64_t *counts) {
  const gt_job *job = b->p->job;
  double time_s = problem_s(b->problem, counts) * b->seen.slower, high_s = time_s * b->seen.high,
         egress = egress_of(b, counts);
  double cost = gt_planner_bill_machines(b, counts, time_s) + egress;
  bool fastest = gt_planner_bill_by_time(b);
  gt_planner_verdict v = {.over = time_s / b->judged_s,
                          .first = fastest ? time_s : cost,
                          .second = fastest ? cost : time_s};
  if (job->plan.deadline_s > 0) v.over = fmax(v.over, high_s / fmax(gt_planner_allowed(job), 1e-3));
  if (job->plan.budget > 0)
    v.over =
        fmax(v.over, (gt_planner_bill_machines(b, counts, high_s) + egress) / job->plan.budget);
  v.fits = v.over <= 1;
  return v;
}

/* ---- sets in order --------------------------------------------------------------------------- */

typedef struct {
  gt_planner_verdict verdict;
  size_t at; /* index in its list */
} entry;

static int compare(double a, double b) {
  return (a > b) - (a < b);
}

static int by_verdict(const void *x, const void *y) {
  const entry *a = x, *b = y;
  int order = (int)b->verdict.fits - (int)a->verdict.fits;
  if (order == 0 && !a->verdict.fits) order = compare(a->verdict.over, b->verdict.over);
  if (order == 0) order = compare(a->verdict.first, b->verdict.first);
  if (order == 0) order = compare(a->verdict.second, b->verdict.second);
  return order != 0 ? order : (a->at > b->at) - (a->at < b->at);
}

/* Sorted by prediction; the caller frees it. */
static entry *in_order(const gt_planner_bill *b, const gt_planner_list *list) {
  entry *entries = GT_NEW_ARRAY(entry, list->n + 1);
  for (size_t i = 0; i < list->n; i++)
    entries[i] = (entry){guess(b, gt_planner_list_at(list, i)), i};
  qsort(entries, list->n, sizeof *entries, by_verdict);
  return entries;
}

static bool promises(const gt_planner_verdict *v, const gt_planner_verdict *best, double loose) {
  if (!v->fits || !best->fits) return v->fits || v->over <= best->over * loose;
  return v->first <= best->first * loose;
}

/* Simulates until one is better than the best, or until no other is predicted to be within `loose`
   times the best. */
static gt_status try_list(gt_planner_bill *b, const gt_planner_list *list, double loose,
                          bool *better) {
  gt_planner_verdict before = gt_planner_bill_best(b), after = before;
  gt_status status = GT_OK;
  entry *entries = in_order(b, list);
  for (size_t i = 0;
       i < list->n && b->work > 0 && status == GT_OK && !gt_planner_bill_better(&after, &before);
       i++) {
    if (!promises(&entries[i].verdict, &before, loose)) break;
    status = gt_planner_bill_try(b, gt_planner_list_at(list, entries[i].at));
    after = gt_planner_bill_best(b);
  }
  gt_free(entries);
  *better = gt_planner_bill_better(&after, &before);
  return status;
}

static void add(const gt_planner_bill *b, gt_planner_list *list, const int64_t *counts) {
  if (gt_planner_bill_may_be(b, counts) && !gt_planner_list_has(&b->tried, counts))
    gt_planner_list_add(list, counts);
}

/* ---- moves ----------------------------------------------------------------------------------- */

/* Removes one device of a type, or all of them, and adds as many of another type (NONE: of no
   type), in one region or for the same types in all regions. */
typedef struct {
  size_t first, last, from, to; /* regions; types within them */
  bool all;
} move;

static int64_t least_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static void apply_in(const gt_planner_bill *b, size_t r, const move *m, int64_t *counts) {
  const gt_planner_pool *pool = &b->p->pools[r];
  const gt_plan_device *devices = b->problem->regions[r].devices;
  int64_t n = m->all ? INT64_MAX : 1;
  counts += pool->first;
  if (m->from < pool->n && m->all) n = counts[m->from];
  if (m->from < pool->n) counts[m->from] -= n;
  if (m->to < pool->n)
    counts[m->to] += m->all ? least_of(n, devices[m->to].count - counts[m->to]) : n;
}

static void apply(const gt_planner_bill *b, const move *m, int64_t *counts) {
  for (size_t r = m->first; r <= m->last; r++)
    if (!b->p->pools[r].fixed) apply_in(b, r, m, counts);
}

static size_t add_moves(move *moves, size_t first, size_t last, size_t types) {
  size_t n = 0;
  for (size_t from = 0; from <= types; from++)
    for (size_t to = 0; to <= types; to++)
      for (int all = 0; all < 2 && from != to; all++)
        moves[n++] = (move){first, last, from < types ? from : NONE, to < types ? to : NONE, all};
  return n;
}

/* The caller frees them. */
static move *all_moves(const gt_planner_bill *b, size_t *n) {
  size_t nregions = b->p->job->nregions, room = 0, most = 0;
  for (size_t r = 0; r < nregions; r++) {
    room += 2 * b->p->pools[r].n * (b->p->pools[r].n + 1);
    if (b->p->pools[r].n > most) most = b->p->pools[r].n;
  }
  move *moves = GT_NEW_ARRAY(move, room + 2 * most * (most + 1));
  *n = nregions > 1 ? add_moves(moves, 0, nregions - 1, most) : 0;
  for (size_t r = 0; r < nregions; r++)
    if (!b->p->pools[r].fixed) *n += add_moves(moves + *n, r, r, b->p->pools[r].n);
  return moves;
}

static void set_next(gt_planner_bill *b, const int64_t *from, const move *m) {
  memcpy(b->next, from, b->p->ncounts * sizeof *b->next);
  apply(b, m, b->next);
}

/* If there are more moves than can be paired, the best single moves come first. */
static void sort_moves(gt_planner_bill *b, const int64_t *from, move *moves, size_t n) {
  entry *entries = GT_NEW_ARRAY(entry, n);
  move *sorted = GT_NEW_ARRAY(move, n);
  for (size_t i = 0; i < n; i++) {
    set_next(b, from, &moves[i]);
    entries[i] =
        (entry){gt_planner_bill_may_be(b, b->next) ? guess(b, b->next)
                                                   : (gt_planner_verdict){.over = INFINITY},
                i};
  }
  qsort(entries, n, sizeof *entries, by_verdict);
  for (size_t i = 0; i < n; i++) sorted[i] = moves[entries[i].at];
  memcpy(moves, sorted, n * sizeof *moves);
  gt_free(sorted);
  gt_free(entries);
}

/* Adds the sets that are one move from `from`, or (pairs) two moves. */
static void add_near(gt_planner_bill *b, gt_planner_list *list, const int64_t *from, bool pairs) {
  size_t n;
  move *moves = all_moves(b, &n);
  if (n > PAIRED) sort_moves(b, from, moves, n);
  for (size_t i = 0; i < n; i++) {
    set_next(b, from, &moves[i]);
    add(b, list, b->next);
    for (size_t k = i; k < n && k < PAIRED && pairs; k++) {
      set_next(b, from, &moves[i]);
      apply(b, &moves[k], b->next);
      add(b, list, b->next);
    }
  }
  gt_free(moves);
}

/* Adds the sets of a descent from `from`, which repeats the best predicted move. */
static void add_descent(gt_planner_bill *b, gt_planner_list *list, const int64_t *from) {
  size_t n, best;
  move *moves = all_moves(b, &n);
  int64_t *at = GT_NEW_ARRAY(int64_t, b->p->ncounts);
  memcpy(at, from, b->p->ncounts * sizeof *at);
  gt_planner_verdict least = guess(b, at);
  do {
    best = n;
    for (size_t i = 0; i < n; i++) {
      set_next(b, at, &moves[i]);
      if (!gt_planner_bill_may_be(b, b->next)) continue;
      gt_planner_verdict v = guess(b, b->next);
      if (!gt_planner_bill_better(&v, &least)) continue;
      least = v;
      best = i;
    }
    b->work -= EVENTS_GUESS * (int64_t)(n * b->p->job->nregions);
    if (best < n) apply(b, &moves[best], at);
    if (best < n) add(b, list, at);
  } while (best < n && b->work > 0);
  gt_free(at);
  gt_free(moves);
}

/* ---- solutions of the problem for other times ------------------------------------------------ */

/* Adds the cheapest set within the deadline, and the one with the lowest cost per hour.  Returns
   the time of the last solution. */
static double add_solved(gt_planner_bill *b, gt_planner_list *list, const gt_plan_problem *from,
                         double deadline_s, double budget) {
  gt_plan_problem problem = *from;
  gt_plan_answer answer = {.counts = b->next};
  double time_s = 0;
  problem.deadline_s = deadline_s;
  problem.budget = budget;
  for (int k = 0; k < 2; k++) {
    if (gt_plan_elastic(&problem, &answer) != GT_OK) return time_s;
    add(b, list, b->next);
    time_s = answer.time_s;
    if (budget > 0) break;
    problem.start_s = NEVER_S;
  }
  return time_s;
}

/* Adds the cheapest sets for shorter and shorter times, and those that end just before a billing
   step does, by the expected or by the high time. */
static void add_front(gt_planner_bill *b, gt_planner_list *list, const gt_plan_problem *problem,
                      double slower) {
  const gt_job *job = b->p->job;
  double fast_s = add_solved(b, list, problem, 0, DEAR),
         slow_s = add_solved(b, list, problem, NEVER_S, 0);
  if (!(fast_s > 0) || !(slow_s > fast_s)) return;
  for (int k = 0; k < TIMES; k++)
    add_solved(b, list, problem, fast_s * pow(slow_s / fast_s, (k + 0.5) / TIMES), 0);
  double first = ceil((fast_s * slower + job->plan.start_s) / job->plan.billing_s);
  for (int k = 0; k < STEPS_MOST; k++) {
    double end_s = ((first + k) * job->plan.billing_s - job->plan.start_s) / slower;
    if (end_s > slow_s * (1 + b->p->options.margin)) break;
    add_solved(b, list, problem, end_s * 0.995, 0);
    add_solved(b, list, problem, end_s * 0.995 / b->seen.high, 0);
  }
}

/* ---- the climb ------------------------------------------------------------------------------- */

/* Tries the problem's sets and those one move from the best one; then two moves from it; then two
   moves from each of the next best.  Stops when one is better. */
static gt_status climb_once(gt_planner_bill *b, const gt_planner_list *front, double loose,
                            bool *better) {
  gt_status status = GT_OK;
  *better = false;
  for (size_t k = 0; k <= b->nkept && status == GT_OK && !*better; k++) {
    gt_planner_list list;
    gt_planner_list_open(&list, b->p->ncounts);
    for (size_t i = 0; i < front->n && k == 0; i++) add(b, &list, gt_planner_list_at(front, i));
    if (k == 0) add_descent(b, &list, b->kept);
    add_near(b, &list, b->kept + (k > 0 ? k - 1 : 0) * b->p->ncounts, k > 0);
    status = try_list(b, &list, loose, better);
    gt_planner_list_close(&list);
  }
  return status;
}

/* Starts with sets that are predicted to be good, ends with all. */
gt_status gt_planner_bill_climb(gt_planner_bill *b) {
  static const double loose[] = {1.02, 1.2, INFINITY};
  gt_planner_list front;
  gt_planner_list_open(&front, b->p->ncounts);
  if (b->p->ncounts <= GT_PLANNER_BILL_LARGE) {
    add_front(b, &front, b->problem, b->seen.slower);
    add_front(b, &front, &b->least, 1);
  }
  gt_status status = GT_OK;
  for (size_t i = 0; i < sizeof loose / sizeof *loose && b->work > 0 && status == GT_OK;) {
    bool better;
    status = climb_once(b, &front, loose[i], &better);
    i = better ? 0 : i + 1;
  }
  gt_planner_list_close(&front);
  return status;
}
