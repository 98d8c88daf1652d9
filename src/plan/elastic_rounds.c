/* Search with a barrier among regions that make different numbers of steps.  The others wait for a
   region only in the rounds that it takes part in, so no single time applies to all.  Every region
   chooses from its options.  Heuristics come first: they equalise the time of a step, the time of a
   whole region, or a mixture, and each result is improved region by region.  Then branch and bound
   over boxes of options, lowest bound first.  With many regions only the heuristics run. */
#include <math.h>
#include <string.h>

#include "elastic_options.h"

#define OPTIONS_WORK 2000000 /* nodes of the searches for options, in total */
#define POLISH_WORK  1000000 /* nodes for making the final plan cheaper */
#define OPTIONS_MOST 16384   /* for all regions together */
/* per region with `sync`: more are easily found, but slow down the search */
#define OPTIONS_SYNC  1024
#define OPTIONS_LEAST 32 /* per region, minimum */
#define REGIONS_MOST  32 /* largest number of regions for the search over boxes */
/* look-ups of options, and regions in computations of a plan's time */
#define WORK_MOST     30000000
#define GUESSES       24
#define GUESS_WEIGHTS 5

typedef struct {
  const gt_plan_site *sites;
  size_t n;
  const gt_plan_goal *goal;
  gt_plan_found *found;
  gt_plan_options *options; /* by region */
  size_t *chosen, *kept;    /* by region; kept: for the best plan */
  gt_plan_tempo *paces;     /* scratch, by region */
  gt_plan_shift *shifts;    /* scratch */
  int64_t work;
} rounds;

/* The first and the last option of every region. */
typedef struct {
  double bound;
  size_t *low, *high;
} box;

/* ---- values ---------------------------------------------------------------------------------- */

static double value_of_paces(rounds *w, double *time_s, double *rate) {
  *rate = 0;
  for (size_t r = 0; r < w->n; r++) *rate += w->paces[r].rate;
  *time_s = gt_plan_time(w->sites[0].problem, w->paces, w->n, w->shifts);
  w->work += (int64_t)w->n;
  return gt_plan_goal_value(w->goal, *time_s, *rate);
}

/* The value of the current choice; kept if it is the best. */
static double try_chosen(rounds *w) {
  double time_s, rate;
  for (size_t r = 0; r < w->n; r++) w->paces[r] = w->options[r].options[w->chosen[r]].pace;
  double value = value_of_paces(w, &time_s, &rate);
  if (value >= w->found->value) return value;
  w->found->value = value;
  memcpy(w->kept, w->chosen, w->n * sizeof *w->kept);
  for (size_t r = 0; r < w->n; r++) {
    size_t ndevices = w->sites[r].region->ndevices;
    memcpy(w->found->counts + w->sites[r].first, w->options[r].counts + w->chosen[r] * ndevices,
           ndevices * sizeof *w->found->counts);
  }
  return value;
}

/* The minimum of all that options low to high represent. */
static gt_plan_tempo least_of(rounds *w, size_t r, size_t low, size_t high) {
  const gt_plan_option *options = w->options[r].options;
  gt_plan_tempo least = options[low].least;
  for (size_t i = low + 1; i <= high; i++) {
    const gt_plan_tempo *pace = &options[i].least;
    if (pace->steps < least.steps) least.steps = pace->steps;
    least.step_s = fmin(least.step_s, pace->step_s);
    least.own_s = fmin(least.own_s, pace->own_s);
    least.rate = fmin(least.rate, pace->rate);
  }
  w->work += (int64_t)(high - low + 1);
  return least;
}

static double good_enough(const rounds *w) {
  return w->found->value * (1 - GT_PLAN_EQUAL);
}

/* ---- heuristics ------------------------------------------------------------------------------ */

static double measure(const gt_plan_tempo *pace, double weight) {
  return pow(pace->own_s, weight) * pow(pace->step_s, 1 - weight);
}

/* Every region takes its cheapest option whose measure is at most `limit`, or else its fastest.
   measures: of all options of all regions. */
static void choose_within(rounds *w, const double *measures, double limit) {
  for (size_t r = 0; r < w->n; measures += w->options[r++].n) {
    double least = INFINITY;
    for (size_t i = 0; i < w->options[r].n && least > limit; i++) {
      if (measures[i] >= least) continue;
      least = measures[i];
      w->chosen[r] = i;
    }
  }
}

/* The longest step among all regions that make at least as many rounds as one with this number of
   steps.  Call after gt_plan_time, which sorts w->shifts. */
static double slowest_in_last(const rounds *w, int64_t steps) {
  int64_t full = steps / w->sites[0].problem->period;
  size_t low = 0, high = w->n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (w->shifts[middle].full < full)
      low = middle + 1;
    else
      high = middle;
  }
  return w->shifts[low].most_s;
}

/* From the current choice, every region takes the cheapest option that does not delay the others in
   any round: its step is no longer than the slowest step in its last round. */
static void choose_slack(rounds *w) {
  for (size_t r = 0; r < w->n; r++) w->paces[r] = w->options[r].options[w->chosen[r]].pace;
  (void)gt_plan_time(w->sites[0].problem, w->paces, w->n, w->shifts);
  for (size_t r = 0; r < w->n; r++) {
    double slowest_s = slowest_in_last(w, w->paces[r].steps);
    for (size_t i = 0; i < w->chosen[r]; i++) {
      const gt_plan_tempo *pace = &w->options[r].options[i].pace;
      if (pace->steps <= w->paces[r].steps && pace->step_s <= slowest_s) w->chosen[r] = i;
    }
  }
}

static void guess_weighted(rounds *w, double weight, double *measures) {
  double least = INFINITY, most = 0;
  double *next = measures;
  for (size_t r = 0; r < w->n; r++)
    for (size_t i = 0; i < w->options[r].n; i++) {
      double here = *next++ = measure(&w->options[r].options[i].pace, weight);
      least = fmin(least, here);
      most = fmax(most, here);
    }
  for (int i = 0; i <= GUESSES; i++) {
    choose_within(w, measures,
                  least > 0 ? least * pow(most / least, (double)i / GUESSES) * (1 + GT_PLAN_EQUAL)
                            : most * i / GUESSES);
    (void)try_chosen(w);
    choose_slack(w);
    (void)try_chosen(w);
  }
}

static void guess(rounds *w) {
  size_t all = 0;
  for (size_t r = 0; r < w->n; r++) all += w->options[r].n;
  double *measures = GT_NEW_ARRAY(double, all);
  for (int k = 0; k < GUESS_WEIGHTS; k++)
    guess_weighted(w, (double)k / (GUESS_WEIGHTS - 1), measures);
  gt_free(measures);
}

/* Makes found->counts cheaper in the same way, but with the cheapest possible devices instead of
   options only. */
static void polish(rounds *w, gt_plan_cover *cover, int64_t *counts) {
  const gt_plan_problem *p = w->sites[0].problem;
  double time_s, rate, lower;
  for (size_t r = 0; r < w->n; r++)
    w->paces[r] = gt_plan_pace_of(&w->sites[r], counts + w->sites[r].first);
  (void)gt_plan_time(p, w->paces, w->n, w->shifts);
  for (size_t r = 0; r < w->n && !p->local_sync; r++) {
    gt_plan_tempo *pace = &w->paces[r];
    double slowest_s = slowest_in_last(w, pace->steps),
           exchanges_s = pace->own_s - (double)pace->steps * pace->step_s;
    (void)gt_plan_cheapest(cover, &w->sites[r], (double)pace->steps * slowest_s + exchanges_s,
                           counts + w->sites[r].first, pace, &lower);
  }
  double value = value_of_paces(w, &time_s, &rate);
  if (value >= w->found->value) return;
  w->found->value = value;
  for (size_t r = 0; r < w->n; r++) {
    size_t first = w->sites[r].first;
    memcpy(w->found->counts + first, counts + first, w->sites[r].region->ndevices * sizeof *counts);
  }
}

/* Changes one region after another to its best option, given the options of the others. */
static void improve(rounds *w) {
  memcpy(w->chosen, w->kept, w->n * sizeof *w->chosen);
  for (double before = INFINITY; w->found->value < before && w->work < WORK_MOST / 4;) {
    before = w->found->value;
    for (size_t r = 0; r < w->n; r++) {
      size_t best = w->chosen[r];
      for (size_t i = 0; i < w->options[r].n; i++) {
        double least = w->found->value;
        w->chosen[r] = i;
        if (try_chosen(w) < least) best = i;
      }
      w->chosen[r] = best;
    }
  }
}

/* ---- boxes ----------------------------------------------------------------------------------- */

static box box_of(size_t n) {
  box b = {.low = GT_NEW_ARRAY(size_t, 2 * n)};
  b.high = b.low + n;
  return b;
}

static double bound_of(rounds *w) {
  double time_s, rate;
  return value_of_paces(w, &time_s, &rate);
}

/* Sets w->paces to the minimum of every region, and the bound. */
static void bound_box(rounds *w, box *b) {
  for (size_t r = 0; r < w->n; r++) w->paces[r] = least_of(w, r, b->low[r], b->high[r]);
  b->bound = bound_of(w);
}

/* Removes options at both ends of a region's range that cannot be in a better plan.  False: nothing
   is left. */
static bool trim(rounds *w, box *b) {
  bound_box(w, b);
  for (size_t r = 0; r < w->n && b->bound < good_enough(w); r++) {
    gt_plan_tempo all = w->paces[r];
    const gt_plan_option *options = w->options[r].options;
    bool gone = true;
    for (; b->low[r] < b->high[r] && gone; b->low[r] += gone) {
      w->paces[r] = options[b->low[r]].least;
      gone = bound_of(w) >= good_enough(w);
    }
    for (gone = true; b->low[r] < b->high[r] && gone; b->high[r] -= gone) {
      w->paces[r] = options[b->high[r]].least;
      gone = bound_of(w) >= good_enough(w);
    }
    w->paces[r] = all;
  }
  if (b->bound < good_enough(w)) bound_box(w, b);
  return b->bound < good_enough(w);
}

/* The region whose options differ most in time and rate; w->n: every region has only one option. */
static size_t widest(const rounds *w, const box *b) {
  size_t at = w->n;
  double most = -1, rate = 0, time_s = 0;
  for (size_t r = 0; r < w->n; r++) {
    rate += w->options[r].options[b->low[r]].pace.rate;
    time_s = fmax(time_s, w->options[r].options[b->low[r]].pace.own_s);
  }
  for (size_t r = 0; r < w->n; r++) {
    if (b->low[r] == b->high[r]) continue;
    const gt_plan_tempo *cheap = &w->options[r].options[b->low[r]].pace,
                        *dear = &w->options[r].options[b->high[r]].pace;
    double wide = (dear->rate - cheap->rate) / fmax(rate, 1e-300) +
                  fabs(cheap->own_s - dear->own_s) / fmax(time_s, 1e-300);
    if (wide <= most) continue;
    most = wide;
    at = r;
  }
  return at;
}

typedef struct {
  box *boxes;
  size_t n, capacity;
} heap;

static void heap_push(heap *h, box b) {
  GT_GROW(h->boxes, h->n, h->capacity, 64);
  size_t i = h->n++;
  for (; i > 0 && b.bound < h->boxes[(i - 1) / 2].bound; i = (i - 1) / 2)
    h->boxes[i] = h->boxes[(i - 1) / 2];
  h->boxes[i] = b;
}

static box heap_pop(heap *h) {
  box top = h->boxes[0], last = h->boxes[--h->n];
  size_t i = 0;
  for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
    if (child + 1 < h->n && h->boxes[child + 1].bound < h->boxes[child].bound) child++;
    if (last.bound <= h->boxes[child].bound) break;
    h->boxes[i] = h->boxes[child];
  }
  h->boxes[i] = last;
  return top;
}

/* Keeps the part of a box with options low to high of region r if it may contain a better plan; a
   box with only one plan is evaluated. */
static void keep_part(rounds *w, heap *h, const box *whole, size_t r, size_t low, size_t high,
                      double *floor) {
  box b = box_of(w->n);
  memcpy(b.low, whole->low, 2 * w->n * sizeof *b.low);
  b.low[r] = low;
  b.high[r] = high;
  bool keep = trim(w, &b);
  if (keep && widest(w, &b) < w->n) {
    heap_push(h, b);
    return;
  }
  if (keep) {
    memcpy(w->chosen, b.low, w->n * sizeof *b.low);
    (void)try_chosen(w);
    /* below the plan's value if its options represent several sets */
    *floor = fmin(*floor, b.bound);
  }
  gt_free(b.low);
}

static double search(rounds *w) {
  heap h = {0};
  double floor = INFINITY;
  box all = box_of(w->n);
  for (size_t r = 0; r < w->n; r++) all.high[r] = w->options[r].n - 1;
  keep_part(w, &h, &all, 0, 0, all.high[0], &floor);
  gt_free(all.low);
  while (h.n > 0 && h.boxes[0].bound < good_enough(w) && w->work < WORK_MOST) {
    box b = heap_pop(&h);
    size_t r = widest(w, &b), middle = b.low[r] + (b.high[r] - b.low[r]) / 2;
    keep_part(w, &h, &b, r, b.low[r], middle, &floor);
    keep_part(w, &h, &b, r, middle + 1, b.high[r], &floor);
    gt_free(b.low);
  }
  double bound = fmin(floor, w->found->value);
  if (h.n > 0) bound = fmin(bound, h.boxes[0].bound);
  for (size_t i = 0; i < h.n; i++) gt_free(h.boxes[i].low);
  gt_free(h.boxes);
  return bound;
}

/* ---- entry point ----------------------------------------------------------------------------- */

void gt_plan_rounds(const gt_plan_site *sites, size_t n, const gt_plan_goal *goal,
                    gt_plan_found *found) {
  rounds w = {.sites = sites, .n = n, .goal = goal, .found = found};
  w.options = GT_NEW_ARRAY(gt_plan_options, n);
  w.chosen = GT_NEW_ARRAY(size_t, 2 * n);
  w.kept = w.chosen + n;
  w.paces = GT_NEW_ARRAY(gt_plan_tempo, n);
  w.shifts = GT_NEW_ARRAY(gt_plan_shift, n);
  size_t most = 1, each = OPTIONS_MOST / n, ncounts = gt_plan_counts(sites[0].problem);
  for (size_t r = 0; r < n; r++)
    if (sites[r].region->ndevices > most) most = sites[r].region->ndevices;
  if (sites[0].problem->local_sync) each = each < OPTIONS_SYNC ? 4 * each : OPTIONS_SYNC;
  if (each < OPTIONS_LEAST) each = OPTIONS_LEAST;
  gt_plan_cover *cover = gt_plan_cover_open(most);
  for (size_t r = 0; r < n; r++)
    gt_plan_options_open(&w.options[r], cover, &sites[r], each, OPTIONS_WORK / (int64_t)n);
  guess(&w);
  if (n <= REGIONS_MOST) improve(&w);
  gt_plan_cover_limit(cover, POLISH_WORK / (int64_t)n);
  int64_t *counts = GT_NEW_ARRAY(int64_t, ncounts);
  gt_plan_everything(sites[0].problem, counts);
  polish(&w, cover, counts);
  memcpy(counts, found->counts, ncounts * sizeof *counts);
  if (found->value < INFINITY) polish(&w, cover, counts);
  if (n <= REGIONS_MOST) found->bound = fmax(found->bound, search(&w));
  gt_free(counts);
  gt_plan_cover_close(cover);
  for (size_t r = 0; r < n; r++) gt_plan_options_close(&w.options[r]);
  gt_free(w.shifts);
  gt_free(w.paces);
  gt_free(w.chosen);
  gt_free(w.options);
}
