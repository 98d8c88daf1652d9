/* Elastic scheduling: the time of a plan, and geotrain's rule of load power, which gives every
   region its cheapest devices that are fast enough.

   `async`: a bounded covering knapsack, the least price with enough power and a number of ranks
   between two limits.  Depth-first search over the types, in the order of price per power.  The
   bound is the fractional relaxation with a Lagrange multiplier for the binding limit on ranks.
   `sync`: the step time depends only on the slowest type and on the number of ranks.  For each
   slowest type: the cheapest ranks that are at least as fast. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "geotrain/plan.h"

#define EQUAL 1e-12 /* times and costs with a smaller relative difference count as equal */
#define NODES 20000 /* of the search for the devices of a region */

/* A region with values derived from the problem. */
typedef struct {
  const gt_plan_problem *problem;
  const gt_plan_region *region;
  /* batches left (until steps: 0); ranks: at least 1, at most those available */
  int64_t batches, least, most;
} site;

/* The steps of a region with some devices, and their time if it never waits. */
typedef struct {
  int64_t steps;
  double step_s, own_s;
} tempo;

/* ---- a region -------------------------------------------------------------------------------- */

/* Counted as in gt_ps: the last batch of an epoch may be short. */
static int64_t batches_to_go(const gt_plan_problem *p, const gt_plan_region *region) {
  double batch = (double)p->batch;
  if (p->epochs > 0) return (int64_t)ceil(p->epochs * ceil(region->samples / batch) - 1e-9);
  return p->samples / p->batch + (p->samples % p->batch != 0);
}

static site site_of(const gt_plan_problem *problem, size_t r) {
  const gt_plan_region *region = &problem->regions[r];
  site s = {.problem = problem, .region = region};
  int64_t all = 0;
  for (size_t t = 0; t < region->ndevices; t++) all += region->devices[t].count;
  s.batches = problem->steps > 0 ? 0 : batches_to_go(problem, region);
  s.least = region->ranks_min > 1 ? region->ranks_min : 1;
  s.most = region->ranks_max > 0 && region->ranks_max < all ? region->ranks_max : all;
  return s;
}

static int64_t steps_of(const site *s, int64_t ranks) {
  const gt_plan_problem *p = s->problem;
  if (p->steps > 0) return p->steps;
  if (!p->local_sync) return s->batches;
  return ranks > 0 ? s->batches / ranks + (s->batches % ranks != 0) : 0;
}

static tempo tempo_with(const site *s, int64_t steps, double device_step_s) {
  const gt_plan_problem *p = s->problem;
  tempo t = {.steps = steps, .step_s = fmax(device_step_s, s->region->wan_step_s)};
  t.own_s = (double)t.steps * t.step_s;
  const int64_t exchanges = p->barrier ? (steps + p->period - 1) / p->period : 0;
  t.own_s += (double)exchanges * p->exchange_s;
  return t;
}

/* Returns the tempo of `ranks` devices whose step takes device_step_s. */
static tempo tempo_at(const site *s, int64_t ranks, double device_step_s) {
  return tempo_with(s, steps_of(s, ranks), device_step_s);
}

static tempo tempo_of(const site *s, const int64_t *counts) {
  const gt_plan_region *region = s->region;
  double power = 0, slowest = INFINITY;
  int64_t ranks = 0;
  for (size_t t = 0; t < region->ndevices; t++) {
    if (counts[t] <= 0) continue;
    ranks += counts[t];
    power += (double)counts[t] * region->devices[t].power;
    slowest = fmin(slowest, region->devices[t].power);
  }
  return tempo_at(s, ranks, (double)s->problem->batch / (s->problem->local_sync ? slowest : power));
}

static double rate_of(const gt_plan_region *region, const int64_t *counts) {
  double rate = region->ps_price;
  for (size_t t = 0; t < region->ndevices; t++)
    rate += (double)counts[t] * region->devices[t].price;
  return rate;
}

/* Order of removal: the least powerful device first; of equal ones the more expensive. */
static bool goes_first(const gt_plan_device *a, const gt_plan_device *b) {
  return a->power < b->power || (a->power == b->power && a->price > b->price);
}

static void all_of(const site *s, int64_t *counts) {
  const gt_plan_region *region = s->region;
  int64_t over = -s->most;
  for (size_t t = 0; t < region->ndevices; t++) over += counts[t] = region->devices[t].count;
  while (over > 0) {
    size_t least = region->ndevices;
    for (size_t t = 0; t < region->ndevices; t++)
      if (counts[t] > 0 &&
          (least == region->ndevices || goes_first(&region->devices[t], &region->devices[least])))
        least = t;
    int64_t gone = counts[least] < over ? counts[least] : over;
    counts[least] -= gone;
    over -= gone;
  }
}

void gt_plan_everything(const gt_plan_problem *problem, int64_t *counts) {
  for (size_t r = 0; r < problem->nregions; counts += problem->regions[r++].ndevices) {
    site s = site_of(problem, r);
    all_of(&s, counts);
  }
}

/* ---- the time of all regions ----------------------------------------------------------------- */

/* The number of a region's full periods, and of the steps of its last, shorter round. */
typedef struct {
  int64_t full, rest;
  /* most_s: the longest step of this region and of all regions with at least as many rounds */
  double step_s, most_s;
} shift;

static int by_full(const void *a, const void *b) {
  const shift *x = a, *y = b;
  return (x->full > y->full) - (x->full < y->full);
}

/* Returns the time of the rounds, in groups between which no region finishes. */
static double rounds_time(const gt_plan_problem *p, shift *s, size_t n) {
  qsort(s, n, sizeof *s, by_full);
  for (size_t i = n; i-- > 0;)
    s[i].most_s = i + 1 < n ? fmax(s[i].step_s, s[i + 1].most_s) : s[i].step_s;
  double time_s = 0, period = (double)p->period;
  int64_t done = 0;
  for (size_t i = 0;;) {
    double last_s = 0;
    bool any = false;
    for (; i < n && s[i].full == done; i++) {
      any = any || s[i].rest > 0;
      last_s = fmax(last_s, (double)s[i].rest * s[i].step_s);
    }
    if (any) {
      time_s += fmax(last_s, i < n ? period * s[i].most_s : 0) + p->exchange_s;
      done++;
    } else if (i < n) {
      time_s += (double)(s[i].full - done) * (period * s[i].most_s + p->exchange_s);
      done = s[i].full;
    } else {
      return time_s;
    }
  }
}

/* `sync` until steps: returns the number of steps that all regions make. */
static int64_t steps_together(const gt_plan_problem *problem, const int64_t *counts) {
  int64_t batches = batches_to_go(problem, problem->regions) * problem->together, ranks = 0;
  for (size_t r = 0; r < problem->nregions; counts += problem->regions[r++].ndevices)
    for (size_t t = 0; t < problem->regions[r].ndevices; t++)
      if (counts[t] > 0 && problem->regions[r].samples > 0) ranks += counts[t];
  return ranks > 0 ? batches / ranks + (batches % ranks != 0) : 0;
}

double gt_plan_time(const gt_plan_problem *problem, const int64_t *counts) {
  const size_t n = problem->nregions;
  shift *shifts = GT_NEW_ARRAY(shift, n);
  int64_t same = problem->together > 0 ? steps_together(problem, counts) : 0;
  double time_s = 0;
  for (size_t r = 0; r < n; counts += problem->regions[r++].ndevices) {
    site s = site_of(problem, r);
    tempo t = tempo_of(&s, counts);
    if (same > 0) t = tempo_with(&s, same, t.step_s);
    if (problem->barrier)
      shifts[r] = (shift){t.steps / problem->period, t.steps % problem->period, t.step_s, 0};
    time_s = fmax(time_s, t.own_s);
  }
  if (problem->barrier) time_s = rounds_time(problem, shifts, n);
  gt_free(shifts);
  return time_s;
}

/* ---- the cheapest devices of a region, async ------------------------------------------------- */

/* A type, in the order of the search. */
typedef struct {
  size_t t;
  int64_t count;
  double power, price, reduced; /* reduced: price plus the multiplier */
  double power_left;            /* for this type and the following ones */
  int64_t count_left;
} item;

typedef struct {
  const site *site;
  double limit_s;
  item *items;
  size_t n;
  double offset; /* constant that the multiplier subtracts from every bound */
  int64_t *x;    /* by item */
  int64_t *counts;
  int64_t *best; /* by type */
  double best_price;
  int64_t nodes;
} cover;

/* Orders types with negative reduced price first, then by reduced price per power.  Of equal types
   the better one comes first, so that a dominated type follows the one that dominates it. */
static bool before(const item *a, const item *b) {
  bool pays_a = a->reduced < 0, pays_b = b->reduced < 0;
  if (pays_a != pays_b) return pays_a;
  double x = pays_a ? a->price : a->reduced * b->power,
         y = pays_a ? b->price : b->reduced * a->power;
  if (x != y) return x < y;
  return a->power > b->power || (a->power == b->power && a->price < b->price);
}

static void order_items(cover *c, double multiplier) {
  for (size_t i = 0; i < c->n; i++) c->items[i].reduced = c->items[i].price + multiplier;
  for (size_t i = 1; i < c->n; i++) {
    item it = c->items[i];
    size_t j = i;
    for (; j > 0 && before(&it, &c->items[j - 1]); j--) c->items[j] = c->items[j - 1];
    c->items[j] = it;
  }
}

/* Returns the least reduced price of items from i on with `need` power, fractions allowed, or
   INFINITY if they do not suffice.  *ranks: their number. */
static double relaxed(const cover *c, size_t i, double need, double *ranks) {
  double price = 0;
  *ranks = 0;
  for (; i < c->n && (c->items[i].reduced < 0 || need > 0); i++) {
    const item *it = &c->items[i];
    double count = (double)it->count,
           part = it->reduced < 0 ? count : fmin(count, need / it->power);
    price += part * it->reduced;
    need -= part * it->power;
    *ranks += part;
    if (part < count && it->reduced >= 0) return price;
  }
  return need > 0 ? INFINITY : price;
}

/* Finds the multiplier with which the relaxation keeps the limit on ranks. */
static void choose_multiplier(cover *c, double need) {
  double ranks, low = 0, high = 0, least = (double)c->site->least, most = (double)c->site->most;
  c->offset = 0;
  order_items(c, 0);
  (void)relaxed(c, 0, need, &ranks);
  bool many = ranks > most;
  if (!many && ranks >= least) return;
  for (size_t i = 0; i < c->n; i++) high = fmax(high, c->items[i].price);
  if (many) {
    high = fmax(high, 1e-9);
    for (int i = 0; i < 40 && ranks > most; i++) {
      order_items(c, high *= 2);
      (void)relaxed(c, 0, need, &ranks);
    }
  } else {
    low = -2 * high;
    high = 0;
  }
  for (int i = 0; i < 40; i++) {
    double middle = (low + high) / 2;
    order_items(c, middle);
    (void)relaxed(c, 0, need, &ranks);
    if (ranks > (many ? most : least))
      low = middle;
    else
      high = middle;
  }
  /* the end of the interval with few devices of negative reduced price: the search starts with
     fewer */
  order_items(c, high);
  c->offset = high * (many ? most : least);
}

static double bound_of(const cover *c, size_t i, double need, double reduced) {
  double ranks;
  return reduced + relaxed(c, i, need, &ranks) - c->offset;
}

static void leaf(cover *c, double price) {
  if (price >= c->best_price) return;
  for (size_t i = 0; i < c->n; i++) c->counts[c->items[i].t] = c->x[i];
  if (tempo_of(c->site, c->counts).own_s > c->limit_s) return;
  c->best_price = price;
  memcpy(c->best, c->counts, c->n * sizeof *c->best);
}

static void descend(cover *c, size_t i, double need, int64_t slots, int64_t least, double reduced,
                    double price);

/* Takes x of item i; false if the bound rules it out. */
static bool take(cover *c, size_t i, int64_t x, double need, int64_t slots, int64_t least,
                 double reduced, double price) {
  const item *it = &c->items[i];
  double rest = need - (double)x * it->power, so_far = reduced + (double)x * it->reduced;
  if (bound_of(c, i + 1, rest, so_far) >= c->best_price * (1 - EQUAL)) return false;
  c->x[i] = x;
  descend(c, i + 1, rest, slots - x, least - x, so_far, price + (double)x * it->price);
  return true;
}

/* Tries counts of item i from the minimum upwards, then downwards, each until the bound rules out
   the rest.  The bound is convex in the count. */
static void descend(cover *c, size_t i, double need, int64_t slots, int64_t least, double reduced,
                    double price) {
  if (++c->nodes > NODES) return;
  if (i == c->n) {
    if (need <= 0 && least <= 0) leaf(c, price);
    return;
  }
  const item *it = &c->items[i];
  if (least > it->count_left || need > it->power_left) return;
  int64_t most = it->count < slots ? it->count : slots, from = most;
  if (it->reduced >= 0) {
    double wanted = need > 0 ? ceil(need / it->power) : 0;
    from = wanted < (double)most ? (int64_t)wanted : most;
  }
  for (int64_t x = from; x <= most; x++)
    if (!take(c, i, x, need, slots, least, reduced, price)) break;
  for (int64_t x = from - 1; x >= 0; x--)
    if (!take(c, i, x, need, slots, least, reduced, price)) break;
}

/* Returns the power that the limit requires, rounded down slightly: leaf() checks exactly. */
static double power_needed(const site *s, double limit_s) {
  tempo none = tempo_at(s, 1, 0); /* devices that take no time */
  if (limit_s == INFINITY || none.steps == 0) return 0;
  double exchanges_s = none.own_s - (double)none.steps * none.step_s,
         step_s = (limit_s - exchanges_s) / (double)none.steps;
  return (double)s->problem->batch / step_s * (1 - EQUAL);
}

/* Returns a lower bound for the price; exact unless the search ended early. */
static double cheapest_async(cover *c) {
  const site *s = c->site;
  double need = power_needed(s, c->limit_s), power = 0;
  int64_t count = 0;
  for (size_t t = 0; t < c->n; t++) {
    const gt_plan_device *d = &s->region->devices[t];
    c->items[t] = (item){.t = t, .count = d->count, .power = d->power, .price = d->price};
  }
  choose_multiplier(c, need);
  for (size_t i = c->n; i-- > 0;) {
    c->items[i].power_left = power += (double)c->items[i].count * c->items[i].power;
    c->items[i].count_left = count += c->items[i].count;
  }
  double root = bound_of(c, 0, need, 0);
  descend(c, 0, need, s->most, s->least, 0, 0);
  return c->nodes > NODES ? fmin(fmax(root, 0), c->best_price) : c->best_price;
}

/* ---- the cheapest devices of a region, sync -------------------------------------------------- */

/* Returns the number of ranks at least as fast as `power`, at most the allowed number. */
static int64_t as_fast(const site *s, double power) {
  int64_t n = 0;
  for (size_t t = 0; t < s->region->ndevices; t++)
    if (s->region->devices[t].power >= power) n += s->region->devices[t].count;
  return n < s->most ? n : s->most;
}

/* Returns the least number of ranks in [least, most] that meets the limit with this step, or 0. */
static int64_t ranks_needed(const site *s, double limit_s, double step_s, int64_t most) {
  int64_t low = s->least, high = most;
  if (low > high || tempo_at(s, high, step_s).own_s > limit_s) return 0;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (tempo_at(s, middle, step_s).own_s <= limit_s)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* Takes the cheapest `ranks` devices at least as fast as `power`; returns their price. */
static double take_cheapest(cover *c, double power, int64_t ranks) {
  double price = 0;
  for (size_t i = 0; i < c->n; i++) {
    const item *it = &c->items[i];
    int64_t x = it->power < power ? 0 : it->count < ranks ? it->count : ranks;
    c->counts[it->t] = x;
    ranks -= x;
    price += (double)x * it->price;
  }
  return price;
}

static double cheapest_sync(cover *c) {
  const site *s = c->site;
  for (size_t t = 0; t < c->n; t++) /* ordered by price */
    c->items[t] = (item){.t = t, .power = 1, .price = s->region->devices[t].price};
  order_items(c, 0);
  for (size_t i = 0; i < c->n; i++) {
    c->items[i].power = s->region->devices[c->items[i].t].power;
    c->items[i].count = s->region->devices[c->items[i].t].count;
  }
  for (size_t i = 0; i < c->n; i++) {
    double power = c->items[i].power;
    int64_t ranks =
        ranks_needed(s, c->limit_s, (double)s->problem->batch / power, as_fast(s, power));
    double price = ranks > 0 ? take_cheapest(c, power, ranks) : INFINITY;
    if (price >= c->best_price) continue;
    c->best_price = price;
    memcpy(c->best, c->counts, c->n * sizeof *c->best);
  }
  return c->best_price;
}

/* ---- the rule -------------------------------------------------------------------------------- */

/* Finds the devices with the least own_s and returns it; INFINITY: too few devices.  `sync`: tries
   each type as the slowest. */
static double fastest(const site *s, int64_t *counts) {
  const gt_plan_region *region = s->region;
  double best = 0, least_s = INFINITY;
  if (s->most < s->least) return INFINITY;
  for (size_t t = 0; t < region->ndevices && s->problem->local_sync; t++) {
    double power = region->devices[t].power;
    int64_t ranks = region->devices[t].count > 0 ? as_fast(s, power) : 0;
    double own_s = tempo_at(s, ranks, (double)s->problem->batch / power).own_s;
    if (ranks < s->least || own_s >= least_s) continue;
    least_s = own_s;
    best = power;
  }
  all_of(s, counts);
  for (size_t t = 0; t < region->ndevices; t++)
    if (region->devices[t].power < best) counts[t] = 0;
  return tempo_of(s, counts).own_s;
}

/* Finds the cheapest devices with own_s <= limit_s and a lower bound for their rate.  False:
   none. */
static bool cheapest(const site *s, double limit_s, int64_t *counts, double *rate) {
  const size_t n = s->region->ndevices;
  double lower;
  if (fastest(s, counts) > limit_s) return false;
  cover c = {.site = s, .limit_s = limit_s, .n = n, .best = counts, .best_price = INFINITY};
  c.items = GT_NEW_ARRAY(item, n);
  c.x = GT_NEW_ARRAY(int64_t, 2 * n);
  c.counts = c.x + n;
  lower = s->problem->local_sync ? cheapest_sync(&c) : cheapest_async(&c);
  gt_free(c.x);
  gt_free(c.items);
  *rate = lower < c.best_price ? s->region->ps_price + lower : rate_of(s->region, counts);
  return true;
}

double gt_plan_fastest(const gt_plan_problem *problem, int64_t *counts) {
  double time_s = 0;
  for (size_t r = 0; r < problem->nregions; counts += problem->regions[r++].ndevices) {
    site s = site_of(problem, r);
    time_s = fmax(time_s, fastest(&s, counts));
  }
  return time_s;
}

bool gt_plan_elastic(const gt_plan_problem *problem, double limit_s, int64_t *counts,
                     double *rate) {
  *rate = 0;
  for (size_t r = 0; r < problem->nregions; counts += problem->regions[r++].ndevices) {
    site s = site_of(problem, r);
    double own;
    if (!cheapest(&s, limit_s * (1 + EQUAL), counts, &own)) return false;
    *rate += own;
  }
  return true;
}
