/* Searches for better sets near the best: solutions of the problem for other times, and sets one or
   two moves from the best ones.  They are simulated in the order of the problem's prediction,
   scaled by the best set's simulation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search.h"

#define TIMES        96  /* number of deadlines between the fastest and the slowest set */
#define LIMITS       8   /* `sync`: number of limits of a device's power */
#define STEPS_MOST   12  /* number of ends of billing steps used as deadlines */
#define PAIRED       192 /* number of moves that are combined in pairs */
#define EVENTS_GUESS 8   /* work of one prediction per region, in events */
#define NEVER_S      1e12
#define NONE         SIZE_MAX

/* ---- sets ---- */

static bool enough(const gt_planner_set_search *s, size_t r, const int64_t *counts) {
  const gt_planner_pool *pool = &s->p->pools[r];
  const gt_plan_region *region = &s->problem.regions[r];
  int64_t sum = 0;
  for (size_t d = 0; d < pool->n; d++) {
    int64_t count = counts[pool->first + d];
    if (count < 0 || count > region->devices[d].count) return false;
    sum += count;
  }
  return sum >= 1 && sum >= region->ranks_min &&
         (region->ranks_max <= 0 || sum <= region->ranks_max);
}

static bool feasible(const gt_planner_set_search *s, const int64_t *counts) {
  for (size_t r = 0; r < s->p->job->nregions; r++)
    if (!s->p->pools[r].fixed && !enough(s, r, counts)) return false;
  return true;
}

double gt_planner_number_of_sets(const gt_planner_set_search *s) {
  double sets = 1;
  for (size_t r = 0; r < s->p->job->nregions; r++)
    for (size_t d = 0; d < s->p->pools[r].n && !s->p->pools[r].fixed; d++)
      sets *= (double)s->problem.regions[r].devices[d].count + 1;
  return sets;
}

/* Writes the set with this number, from 0 on; the set can be infeasible. */
static void set_of(const gt_planner_set_search *s, size_t number, int64_t *counts) {
  for (size_t r = 0; r < s->p->job->nregions; r++) {
    const gt_planner_pool *pool = &s->p->pools[r];
    for (size_t d = 0; d < pool->n; d++) {
      size_t n = (size_t)s->problem.regions[r].devices[d].count;
      counts[pool->first + d] = (int64_t)(pool->fixed ? n : number % (n + 1));
      if (!pool->fixed) number /= n + 1;
    }
  }
}

/* ---- prediction ------------------------------------------------------------------------------ */

/* Returns the number of workers whose steps decide what the region sends: its own, or all if it
   only aggregates. */
static double workers_of(const gt_planner_set_search *s, size_t r, const int64_t *counts) {
  double sum = 0;
  for (size_t i = 0; i < s->p->job->nregions; i++)
    if (i == r || !gt_job_trains(s->p->job, r))
      sum += (double)gt_planner_ranks(s->p, i, counts) - 1;
  return sum;
}

/* Returns the egress cost.  With `local: sync` more workers make fewer steps and send less. */
static double egress_of(const gt_planner_set_search *s, const int64_t *counts) {
  double usd = 0;
  bool sync = s->problem.local_sync;
  for (size_t r = 0; r < s->p->job->nregions; r++)
    usd +=
        s->seen.egress_usd[r] * (sync ? workers_of(s, r, s->kept) / workers_of(s, r, counts) : 1);
  return usd;
}

static gt_planner_verdict guess(const gt_planner_set_search *s, const int64_t *counts) {
  const gt_job *job = s->p->job;
  double time_s = gt_plan_time(&s->problem, counts) * s->seen.slower,
         high_s = time_s * s->seen.high, egress = egress_of(s, counts);
  double cost = gt_planner_machines(s, counts, time_s) + egress;
  bool fastest = gt_planner_by_time(s->p);
  gt_planner_verdict v = {.over = time_s / s->judged_s,
                          .first = fastest ? time_s : cost,
                          .second = fastest ? cost : time_s};
  if (job->plan.deadline_s > 0) v.over = fmax(v.over, high_s / fmax(gt_planner_allowed(job), 1e-3));
  if (job->plan.budget > 0)
    v.over = fmax(v.over, (gt_planner_machines(s, counts, high_s) + egress) / job->plan.budget);
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

/* Returns the entries sorted by prediction; the caller frees them. */
static entry *in_order(const gt_planner_set_search *s, const gt_planner_list *list) {
  entry *entries = GT_NEW_ARRAY(entry, list->n + 1);
  for (size_t i = 0; i < list->n; i++)
    entries[i] = (entry){guess(s, gt_planner_list_at(list, i)), i};
  qsort(entries, list->n, sizeof *entries, by_verdict);
  return entries;
}

static bool promises(const gt_planner_verdict *v, const gt_planner_verdict *best, double loose) {
  if (!v->fits || !best->fits) return v->fits || v->over <= best->over * loose;
  return v->first <= best->first * loose;
}

/* Simulates until a set is better than the best, or until the remaining predictions exceed `loose`
   times the best. */
static gt_status try_list(gt_planner_set_search *s, const gt_planner_list *list, double loose,
                          bool *better) {
  gt_planner_verdict before = gt_planner_best(s), after = before;
  gt_status status = GT_OK;
  entry *entries = in_order(s, list);
  for (size_t i = 0;
       i < list->n && s->work > 0 && status == GT_OK && !gt_planner_better(&after, &before); i++) {
    if (!promises(&entries[i].verdict, &before, loose)) break;
    status = gt_planner_try(s, gt_planner_list_at(list, entries[i].at));
    after = gt_planner_best(s);
  }
  gt_free(entries);
  *better = gt_planner_better(&after, &before);
  return status;
}

static void add(const gt_planner_set_search *s, gt_planner_list *list, const int64_t *counts) {
  if (feasible(s, counts) && !gt_planner_list_has(&s->tried, counts))
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

static void apply_in(const gt_planner_set_search *s, size_t r, const move *m, int64_t *counts) {
  const gt_planner_pool *pool = &s->p->pools[r];
  const gt_plan_device *devices = s->problem.regions[r].devices;
  int64_t n = m->all ? INT64_MAX : 1;
  counts += pool->first;
  if (m->from < pool->n && m->all) n = counts[m->from];
  if (m->from < pool->n) counts[m->from] -= n;
  if (m->to < pool->n)
    counts[m->to] += m->all ? least_of(n, devices[m->to].count - counts[m->to]) : n;
}

static void apply(const gt_planner_set_search *s, const move *m, int64_t *counts) {
  for (size_t r = m->first; r <= m->last; r++)
    if (!s->p->pools[r].fixed) apply_in(s, r, m, counts);
}

static size_t add_moves(move *moves, size_t first, size_t last, size_t types) {
  size_t n = 0;
  for (size_t from = 0; from <= types; from++)
    for (size_t to = 0; to <= types; to++)
      for (int all = 0; all < 2 && from != to; all++)
        moves[n++] = (move){first, last, from < types ? from : NONE, to < types ? to : NONE, all};
  return n;
}

/* Returns all moves; the caller frees them. */
static move *all_moves(const gt_planner_set_search *s, size_t *n) {
  size_t nregions = s->p->job->nregions, room = 0, most = 0;
  for (size_t r = 0; r < nregions; r++) {
    room += 2 * s->p->pools[r].n * (s->p->pools[r].n + 1);
    if (s->p->pools[r].n > most) most = s->p->pools[r].n;
  }
  move *moves = GT_NEW_ARRAY(move, room + 2 * most * (most + 1));
  *n = nregions > 1 ? add_moves(moves, 0, nregions - 1, most) : 0;
  for (size_t r = 0; r < nregions; r++)
    if (!s->p->pools[r].fixed) *n += add_moves(moves + *n, r, r, s->p->pools[r].n);
  return moves;
}

static void set_next(gt_planner_set_search *s, const int64_t *from, const move *m) {
  memcpy(s->next, from, s->p->ncounts * sizeof *s->next);
  apply(s, m, s->next);
}

/* Sorts the best single moves first, if not all moves can be paired. */
static void sort_moves(gt_planner_set_search *s, const int64_t *from, move *moves, size_t n) {
  entry *entries = GT_NEW_ARRAY(entry, n);
  move *sorted = GT_NEW_ARRAY(move, n);
  for (size_t i = 0; i < n; i++) {
    set_next(s, from, &moves[i]);
    entries[i] = (entry){
        feasible(s, s->next) ? guess(s, s->next) : (gt_planner_verdict){.over = INFINITY}, i};
  }
  qsort(entries, n, sizeof *entries, by_verdict);
  for (size_t i = 0; i < n; i++) sorted[i] = moves[entries[i].at];
  memcpy(moves, sorted, n * sizeof *moves);
  gt_free(sorted);
  gt_free(entries);
}

/* Adds the sets that are one move from `from`, or (pairs) two moves. */
static void add_near(gt_planner_set_search *s, gt_planner_list *list, const int64_t *from,
                     bool pairs) {
  size_t n;
  move *moves = all_moves(s, &n);
  if (n > PAIRED) sort_moves(s, from, moves, n);
  for (size_t i = 0; i < n; i++) {
    set_next(s, from, &moves[i]);
    add(s, list, s->next);
    for (size_t k = i; k < n && k < PAIRED && pairs; k++) {
      set_next(s, from, &moves[i]);
      apply(s, &moves[k], s->next);
      add(s, list, s->next);
    }
  }
  gt_free(moves);
}

/* Adds the sets of a descent from `from`, which repeats the best predicted move. */
static void add_descent(gt_planner_set_search *s, gt_planner_list *list, const int64_t *from) {
  size_t n, best;
  move *moves = all_moves(s, &n);
  int64_t *at = GT_NEW_ARRAY(int64_t, s->p->ncounts);
  memcpy(at, from, s->p->ncounts * sizeof *at);
  gt_planner_verdict least = guess(s, at);
  do {
    best = n;
    for (size_t i = 0; i < n; i++) {
      set_next(s, at, &moves[i]);
      if (!feasible(s, s->next)) continue;
      gt_planner_verdict v = guess(s, s->next);
      if (!gt_planner_better(&v, &least)) continue;
      least = v;
      best = i;
    }
    s->work -= EVENTS_GUESS * (int64_t)(n * s->p->job->nregions);
    if (best < n) apply(s, &moves[best], at);
    if (best < n) add(s, list, at);
  } while (best < n && s->work > 0);
  gt_free(at);
  gt_free(moves);
}

/* ---- the rule's sets ---- */

static void add_rule(gt_planner_set_search *s, gt_planner_list *list,
                     const gt_plan_problem *problem, double limit_s) {
  double rate;
  if (gt_plan_elastic(problem, limit_s, s->next, &rate)) add(s, list, s->next);
}

/* Adds the sets for times between those of the fastest and the cheapest set.  Returns the
   latter. */
static double add_times(gt_planner_set_search *s, gt_planner_list *list,
                        const gt_plan_problem *problem, int times) {
  double rate, fast_s = gt_plan_fastest(problem, s->next);
  if (fast_s == INFINITY) return 0;
  add(s, list, s->next);
  if (!gt_plan_elastic(problem, NEVER_S, s->next, &rate)) return 0;
  add(s, list, s->next);
  double slow_s = gt_plan_time(problem, s->next);
  for (int k = 0; k < times && fast_s > 0; k++)
    add_rule(s, list, problem, fast_s * pow(slow_s / fast_s, (k + 0.5) / times));
  return slow_s;
}

/* `sync`: adds the sets without devices below a power limit, for several limits.  All workers wait
   for the slowest one in every step, and with a barrier all regions in every round. */
static void add_faster(gt_planner_set_search *s, gt_planner_list *list,
                       const gt_plan_problem *problem) {
  size_t n = problem->nregions;
  gt_plan_region *regions = GT_NEW_ARRAY(gt_plan_region, n);
  gt_plan_device *devices = GT_NEW_ARRAY(gt_plan_device, s->p->ncounts);
  gt_plan_problem faster = *problem;
  double least = INFINITY, most = 0;
  faster.regions = regions;
  memcpy(regions, problem->regions, n * sizeof *regions);
  for (size_t r = 0; r < n; r++) {
    regions[r].devices = devices + s->p->pools[r].first;
    for (size_t d = 0; d < regions[r].ndevices; d++) {
      least = fmin(least, problem->regions[r].devices[d].power);
      most = fmax(most, problem->regions[r].devices[d].power);
    }
  }
  for (int k = 1; k < LIMITS; k++) {
    double limit = least * pow(most / least, (double)k / LIMITS);
    for (size_t r = 0; r < n; r++)
      for (size_t d = 0; d < regions[r].ndevices; d++) {
        gt_plan_device *device = &devices[s->p->pools[r].first + d];
        *device = problem->regions[r].devices[d];
        if (device->power < limit && !s->p->pools[r].fixed) device->count = 0;
      }
    add_times(s, list, &faster, TIMES / 8);
  }
  gt_free(devices);
  gt_free(regions);
}

/* Adds the rule's sets for the limits of the run, for other times, and for times just before a
   billing step ends, by the expected and by the high time.  With a barrier a region can be slower
   than others in rounds, but not in steps: also adds the sets for equal steps. */
static void add_front(gt_planner_set_search *s, gt_planner_list *list,
                      const gt_plan_problem *problem, double slower) {
  const gt_job *job = s->p->job;
  const bool many = s->p->ncounts > GT_PLANNER_LARGE;
  double slow_s = add_times(s, list, problem, many ? 1 : TIMES) * (1 + s->p->options.margin);
  add_rule(s, list, problem, fmin(s->judged_s, gt_planner_allowed(job) / s->seen.high) / slower);
  if (many) return;
  double first =
      ceil((gt_plan_fastest(problem, s->next) * slower + job->plan.start_s) / job->plan.billing_s);
  for (int k = 0; k < STEPS_MOST; k++) {
    double end_s = ((first + k) * job->plan.billing_s - job->plan.start_s) / slower;
    if (end_s > slow_s) break;
    add_rule(s, list, problem, end_s * 0.995);
    add_rule(s, list, problem, end_s * 0.995 / s->seen.high);
  }
  if (!problem->barrier) return;
  gt_plan_problem by_step = *problem;
  by_step.barrier = false;
  by_step.epochs = 0;
  by_step.samples = 0;
  by_step.steps = 1;
  by_step.together = 0;
  if (problem->local_sync)
    add_faster(s, list, problem);
  else if (problem->steps == 0)
    add_times(s, list, &by_step, TIMES);
}

bool gt_planner_by_rule(gt_planner_set_search *s, int64_t *counts, gt_planner_verdict *predicted) {
  gt_planner_list list;
  gt_planner_list_open(&list, s->p->ncounts);
  add_front(s, &list, &s->problem, s->seen.slower);
  entry *entries = in_order(s, &list);
  bool any = list.n > 0;
  if (any) {
    *predicted = entries[0].verdict;
    memcpy(counts, gt_planner_list_at(&list, entries[0].at), s->p->ncounts * sizeof *counts);
  }
  gt_free(entries);
  gt_planner_list_close(&list);
  return any;
}

/* ---- the climb ------------------------------------------------------------------------------- */

/* Tries the problem's sets and those one move from the best one; then two moves from it; then two
   moves from each of the next best.  Stops at a better one. */
static gt_status climb_once(gt_planner_set_search *s, const gt_planner_list *front, double loose,
                            bool *better) {
  gt_status status = GT_OK;
  *better = false;
  for (size_t k = 0; k <= s->nkept && status == GT_OK && !*better; k++) {
    gt_planner_list list;
    gt_planner_list_open(&list, s->p->ncounts);
    for (size_t i = 0; i < front->n && k == 0; i++) add(s, &list, gt_planner_list_at(front, i));
    if (k == 0) add_descent(s, &list, s->kept);
    add_near(s, &list, s->kept + (k > 0 ? k - 1 : 0) * s->p->ncounts, k > 0);
    status = try_list(s, &list, loose, better);
    gt_planner_list_close(&list);
  }
  return status;
}

/* Starts with the best predictions, ends with all sets. */
gt_status gt_planner_climb(gt_planner_set_search *s) {
  static const double loose[] = {1.02, 1.2, INFINITY};
  gt_planner_list front;
  gt_planner_list_open(&front, s->p->ncounts);
  if (s->p->ncounts <= GT_PLANNER_LARGE) {
    add_front(s, &front, &s->problem, s->seen.slower);
    add_front(s, &front, &s->least, 1);
  }
  gt_status status = GT_OK;
  for (size_t i = 0; i < sizeof loose / sizeof *loose && s->work > 0 && status == GT_OK;) {
    bool better;
    status = climb_once(s, &front, loose[i], &better);
    i = better ? 0 : i + 1;
  }
  gt_planner_list_close(&front);
  return status;
}

/* ---- all sets ---- */

typedef struct {
  double least;
  size_t number;
} numbered;

static int by_least(const void *x, const void *y) {
  const numbered *a = x, *b = y;
  int order = (a->least > b->least) - (a->least < b->least);
  return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

/* Returns the sets that can be better than the best, sorted by lower bound; the caller frees
   them. */
static numbered *sets_by_least(gt_planner_set_search *s, size_t *n) {
  size_t all = (size_t)gt_planner_number_of_sets(s);
  numbered *sets = GT_NEW_ARRAY(numbered, all);
  *n = 0;
  for (size_t i = 0; i < all; i++) {
    set_of(s, i, s->next);
    if (!feasible(s, s->next)) continue;
    double least = gt_planner_least(s, s->next);
    if (least < INFINITY && gt_planner_can_be_better(s, least)) sets[(*n)++] = (numbered){least, i};
  }
  qsort(sets, *n, sizeof *sets, by_least);
  return sets;
}

gt_status gt_planner_try_all(gt_planner_set_search *s, double *least) {
  size_t n;
  numbered *sets = sets_by_least(s, &n);
  gt_status status = GT_OK;
  double first = n > 0 ? sets[0].least : INFINITY;
  /* simulating a part of them proves nothing */
  bool all = (double)n * (double)s->last <= (double)s->work;
  *least = INFINITY;
  for (size_t i = 0; i < n && status == GT_OK && gt_planner_can_be_better(s, sets[i].least); i++) {
    set_of(s, sets[i].number, s->next);
    if ((!all || s->work <= 0) && !gt_planner_list_has(&s->tried, s->next)) {
      *least = sets[i].least;
      break;
    }
    status = gt_planner_try(s, s->next);
  }
  if (!s->fine) *least = first;
  if (gt_planner_best(s).fits) *least = fmin(*least, gt_planner_best(s).first);
  gt_free(sets);
  return status;
}
