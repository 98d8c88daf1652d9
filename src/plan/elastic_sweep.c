/* Finds the best time for all regions together if every region waits for the slowest.  At a time T
   in [fastest, limit] every region takes its cheapest devices that are fast enough.  Their total
   rate C(T) falls as T grows, so no plan in [a, b) has a lower value than (a, C(b)): branch and
   bound over intervals, lowest bound first.  A region whose devices cost the same at both ends of
   an interval keeps them inside it. */
#include "elastic.h"

#include <math.h>
#include <string.h>

#define PASSES 3
/* search nodes and look-ups per pass: all passes together take a second or less */
#define PASS_WORK   2000000
#define SYNC_WORK   4000000  /* for `sync`, which has one pass only: every look-up is exact */
#define NODES_LEAST 64       /* per region and time, in the first pass */
#define NODES_MORE  16       /* growth factor from pass to pass */
#define CACHE_MOST  20000000 /* largest number of regions x intervals that are stored */

/* The choices of all regions for one T. */
typedef struct {
  /* requested T, actual T, total rate, and a lower bound for the rate */
  double limit_s, time_s, rate, lower;
  int users;
  double *own_s, *rates, *lowers; /* by region */
  /* by region: T for which its devices were found, and the node limit of that search */
  double *solved_s, *nodes;
} sheet;

typedef struct {
  double bound;
  sheet *from, *to; /* covers plans with from->limit_s < T < to->time_s */
  int depth;
} interval;

typedef struct {
  const gt_plan_site *sites;
  size_t n;
  const gt_plan_goal *goal;
  gt_plan_cover *cover;
  interval *heap;
  size_t nheap, capacity;
  double value, rate;  /* of the best plan */
  double *solved_s;    /* of the best plan, followed by its node limits */
  double floor;        /* lower bound of values on evaluated sheets */
  int64_t work, nodes; /* nodes: limit for all regions at one T */
} sweep;

/* ---- sheets ---------------------------------------------------------------------------------- */

static sheet *sheet_open(size_t n) {
  sheet *s = GT_NEW(sheet);
  s->users = 1;
  s->own_s = GT_NEW_ARRAY(double, 5 * n);
  s->rates = s->own_s + n;
  s->lowers = s->rates + n;
  s->solved_s = s->lowers + n;
  s->nodes = s->solved_s + n;
  return s;
}

static void sheet_close(sheet *s) {
  if (--s->users > 0) return;
  gt_free(s->own_s);
  gt_free(s);
}

static void look_up(sweep *w, sheet *s, size_t r, const sheet *from, const sheet *to, int64_t nodes,
                    int64_t *counts) {
  w->work++;
  if (from && to && from->rates[r] <= to->lowers[r]) {
    s->own_s[r] = from->own_s[r];
    s->rates[r] = from->rates[r];
    s->lowers[r] = to->lowers[r];
    s->solved_s[r] = from->solved_s[r];
    s->nodes[r] = from->nodes[r];
    return;
  }
  gt_plan_tempo pace;
  s->nodes[r] = (double)(nodes > NODES_LEAST ? nodes : NODES_LEAST);
  gt_plan_cover_limit(w->cover, (int64_t)s->nodes[r]);
  if (!gt_plan_cheapest(w->cover, &w->sites[r], s->limit_s, counts, &pace, &s->lowers[r]))
    gt_bug("plan: region %zu has no devices for %g s", r, s->limit_s);
  s->own_s[r] = pace.own_s;
  s->rates[r] = pace.rate;
  s->solved_s[r] = s->limit_s;
}

/* Evaluates limit_s, which lies between two sheets or (NULL) is one of the first.  The caller owns
   the result. */
static sheet *evaluate(sweep *w, double limit_s, const sheet *from, const sheet *to,
                       int64_t *counts) {
  sheet *s = sheet_open(w->n);
  s->limit_s = limit_s;
  int64_t before = gt_plan_cover_work(w->cover);
  for (size_t r = 0; r < w->n; r++) {
    int64_t left = w->nodes - (gt_plan_cover_work(w->cover) - before);
    look_up(w, s, r, from, to, left / (int64_t)(w->n - r), counts);
    s->time_s = fmax(s->time_s, s->own_s[r]);
    s->rate += s->rates[r];
    s->lower += s->lowers[r];
  }
  w->work += gt_plan_cover_work(w->cover) - before;
  double value = gt_plan_goal_value(w->goal, s->time_s, s->rate);
  w->floor = fmin(w->floor, gt_plan_goal_value(w->goal, s->time_s, s->lower));
  if (value < w->value) {
    w->value = value;
    w->rate = s->rate;
    memcpy(w->solved_s, s->solved_s, 2 * w->n * sizeof *w->solved_s);
  }
  return s;
}

/* ---- intervals ------------------------------------------------------------------------------- */

static void heap_push(sweep *w, interval it) {
  GT_GROW(w->heap, w->nheap, w->capacity, 64);
  size_t i = w->nheap++;
  for (; i > 0 && it.bound < w->heap[(i - 1) / 2].bound; i = (i - 1) / 2)
    w->heap[i] = w->heap[(i - 1) / 2];
  w->heap[i] = it;
}

static interval heap_pop(sweep *w) {
  interval top = w->heap[0], last = w->heap[--w->nheap];
  size_t i = 0;
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= w->nheap) break;
    if (child + 1 < w->nheap && w->heap[child + 1].bound < w->heap[child].bound) child++;
    if (last.bound <= w->heap[child].bound) break;
    w->heap[i] = w->heap[child];
    i = child;
  }
  w->heap[i] = last;
  return top;
}

/* A bound at least this good ends the search.  Splitting cannot improve on w->floor, the
   uncertainty of the sheets themselves. */
static double good_enough(const sweep *w) {
  return fmin(w->value, w->floor) * (1 - GT_PLAN_EQUAL);
}

static void consider(sweep *w, sheet *from, sheet *to, int depth) {
  if (to->time_s <= from->limit_s) return;
  interval it = {.bound = gt_plan_goal_value(w->goal, from->limit_s, to->lower),
                 .from = from,
                 .to = to,
                 .depth = depth};
  if (it.bound == INFINITY || it.bound >= good_enough(w)) return;
  from->users++;
  to->users++;
  heap_push(w, it);
}

/* Splits in half or, every other time, just below the upper end, at the next step of C. */
static void split(sweep *w, interval it, int64_t *counts) {
  double below = nextafter(it.to->time_s, 0),
         middle = it.depth % 2 ? below : sqrt(it.from->limit_s * it.to->time_s);
  if (middle <= it.from->limit_s || middle > below) middle = below;
  if (middle > it.from->limit_s) {
    sheet *s = evaluate(w, middle, it.from, it.to, counts);
    consider(w, it.from, s, it.depth + 1);
    consider(w, s, it.to, it.depth + 1);
    sheet_close(s);
  }
  sheet_close(it.from);
  sheet_close(it.to);
}

/* ---- the search ------------------------------------------------------------------------------ */

static double fastest_time(const sweep *w, int64_t *counts) {
  double time_s = 0;
  for (size_t r = 0; r < w->n; r++) {
    gt_plan_tempo pace;
    gt_plan_fastest(&w->sites[r], counts, &pace);
    time_s = fmax(time_s, pace.own_s);
  }
  return time_s;
}

/* One pass over all times up to the limit; returns a lower bound for the value of a plan. */
static double search(sweep *w, double first_s, double last_s, int64_t *counts) {
  int64_t end = w->work + (w->sites[0].problem->local_sync ? SYNC_WORK : PASS_WORK);
  w->floor = INFINITY;
  sheet *to = evaluate(w, last_s, NULL, NULL, counts);
  if (to->time_s > first_s) {
    sheet *from = evaluate(w, first_s, NULL, NULL, counts);
    consider(w, from, to, 0);
    sheet_close(from);
  }
  sheet_close(to);
  while (w->nheap > 0 && w->heap[0].bound < good_enough(w) && w->work < end &&
         w->nheap * w->n < CACHE_MOST)
    split(w, heap_pop(w), counts);
  double bound = fmin(w->floor, w->value);
  if (w->nheap > 0) bound = fmin(bound, w->heap[0].bound);
  while (w->nheap > 0) {
    interval it = heap_pop(w);
    sheet_close(it.from);
    sheet_close(it.to);
  }
  return bound;
}

/* Repeats the searches of the best plan to get its devices. */
static void write_best(sweep *w, int64_t *counts) {
  for (size_t r = 0; r < w->n; r++) {
    gt_plan_tempo pace;
    double lower;
    gt_plan_cover_limit(w->cover, (int64_t)w->solved_s[w->n + r]);
    (void)gt_plan_cheapest(w->cover, &w->sites[r], w->solved_s[r], counts + w->sites[r].first,
                           &pace, &lower);
  }
}

void gt_plan_sweep(const gt_plan_site *sites, size_t n, const gt_plan_goal *goal,
                   gt_plan_found *found) {
  size_t most = 1;
  for (size_t r = 0; r < n; r++)
    if (sites[r].region->ndevices > most) most = sites[r].region->ndevices;
  sweep w = {
      .sites = sites, .n = n, .goal = goal, .value = INFINITY, .cover = gt_plan_cover_open(most)};
  w.solved_s = GT_NEW_ARRAY(double, 2 * n);
  int64_t *counts = GT_NEW_ARRAY(int64_t, most);
  double first_s = fastest_time(&w, counts), last_s = goal->limit_s * (1 + GT_PLAN_EQUAL);
  found->bound = first_s > last_s ? INFINITY : 0;
  int64_t nodes = NODES_LEAST * (int64_t)n;
  for (int pass = 0; pass < (sites[0].problem->local_sync ? 1 : PASSES) &&
                     found->bound < w.value * (1 - GT_PLAN_EQUAL);
       pass++, nodes *= NODES_MORE) {
    w.nodes = nodes < PASS_WORK ? nodes : PASS_WORK;
    found->bound = fmax(found->bound, search(&w, first_s, last_s, counts));
  }
  found->value = w.value;
  if (w.value < INFINITY) write_best(&w, found->counts);
  gt_free(counts);
  gt_free(w.solved_s);
  gt_free(w.heap);
  gt_plan_cover_close(w.cover);
}
