/* The cheapest devices of one region that are fast enough.  `async`: a bounded covering knapsack:
   least price with enough power and a number of ranks between two limits.  Depth-first search over
   the types, in the order of price per power.  The bound is the fractional relaxation with a
   Lagrange multiplier for the binding limit on ranks.  `sync`: the step time depends only on the
   number of ranks and on their slowest type.  For each slowest type: the cheapest ranks that are at
   least as fast. */
#include "elastic.h"

#include <math.h>
#include <string.h>

/* A type, in the order of the search. */
typedef struct {
  size_t t;
  int64_t count;
  double power, price, reduced;   /* reduced: price plus the multiplier */
  double power_left, price_least; /* for this type and the following ones */
  int64_t count_left;
} item;

struct gt_plan_cover {
  const gt_plan_site *site;
  double limit_s;
  item *items;
  size_t n;
  double offset; /* constant that the multiplier subtracts from every bound */
  int64_t *x;    /* by item */
  size_t *by_power;
  int64_t *counts;
  int64_t *best; /* by type */
  double best_price;
  int64_t nodes, nodes_most, work;
};

gt_plan_cover *gt_plan_cover_open(size_t most_devices) {
  gt_plan_cover *c = GT_NEW(gt_plan_cover);
  c->items = GT_NEW_ARRAY(item, most_devices);
  c->x = GT_NEW_ARRAY(int64_t, most_devices);
  c->by_power = GT_NEW_ARRAY(size_t, most_devices);
  c->counts = GT_NEW_ARRAY(int64_t, most_devices);
  return c;
}

void gt_plan_cover_close(gt_plan_cover *c) {
  if (!c) return;
  gt_free(c->counts);
  gt_free(c->by_power);
  gt_free(c->x);
  gt_free(c->items);
  gt_free(c);
}

void gt_plan_cover_limit(gt_plan_cover *c, int64_t nodes) {
  c->nodes_most = nodes;
}

int64_t gt_plan_cover_work(const gt_plan_cover *c) {
  return c->work;
}

/* ---- async: relaxation ----------------------------------------------------------------------- */

/* Types with negative reduced price come first, then by reduced price per power.  Of equal ones the
   better comes first, so that a dominated type follows the one that dominates it. */
static bool before(const item *a, const item *b) {
  bool pays_a = a->reduced < 0, pays_b = b->reduced < 0;
  if (pays_a != pays_b) return pays_a;
  double x = pays_a ? a->price : a->reduced * b->power,
         y = pays_a ? b->price : b->reduced * a->power;
  if (x != y) return x < y;
  return a->power > b->power || (a->power == b->power && a->price < b->price);
}

static void order_items(gt_plan_cover *c, double multiplier) {
  for (size_t i = 0; i < c->n; i++) c->items[i].reduced = c->items[i].price + multiplier;
  for (size_t i = 1; i < c->n; i++) {
    item it = c->items[i];
    size_t j = i;
    for (; j > 0 && before(&it, &c->items[j - 1]); j--) c->items[j] = c->items[j - 1];
    c->items[j] = it;
  }
}

/* The least reduced price of items from i on with `need` power, fractions allowed; INFINITY if they
   do not suffice. *ranks: their number. */
static double relaxed(const gt_plan_cover *c, size_t i, double need, double *ranks) {
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

/* Finds the multiplier with which the relaxation keeps the limit on ranks that it would violate
   without one. */
static void choose_multiplier(gt_plan_cover *c, double need) {
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
  /* the end of the interval where few devices have a negative reduced price: the search starts with
     fewer */
  order_items(c, high);
  c->offset = high * (many ? most : least);
}

/* ---- async: search --------------------------------------------------------------------------- */

static double bound_of(const gt_plan_cover *c, size_t i, double need, double reduced) {
  double ranks, bound = reduced + relaxed(c, i, need, &ranks) - c->offset;
  double unit = c->site->unit;
  return unit > 0 && bound < INFINITY ? unit * ceil(bound / unit - 1e-6) : bound;
}

static void leaf(gt_plan_cover *c, double price) {
  if (price >= c->best_price) return;
  for (size_t i = 0; i < c->n; i++) c->counts[c->items[i].t] = c->x[i];
  gt_plan_tempo pace = gt_plan_pace_of(c->site, c->counts);
  if (pace.own_s > c->limit_s || pace.ranks < c->site->least || pace.ranks > c->site->most) return;
  c->best_price = price;
  memcpy(c->best, c->counts, c->n * sizeof *c->best);
}

/* The greatest power of `slots` devices of items from i on. */
static double most_power(const gt_plan_cover *c, size_t i, int64_t slots) {
  if (slots >= c->items[i].count_left) return c->items[i].power_left;
  double power = 0;
  for (size_t k = 0; k < c->n && slots > 0; k++) {
    if (c->by_power[k] < i) continue;
    const item *it = &c->items[c->by_power[k]];
    int64_t part = it->count < slots ? it->count : slots;
    power += (double)part * it->power;
    slots -= part;
  }
  return power;
}

/* If an earlier type with at least the power and at most the price is not used up, item i need not
   be used. */
static bool dominated(const gt_plan_cover *c, size_t i) {
  const item *it = &c->items[i];
  for (size_t j = 0; j < i; j++) {
    const item *other = &c->items[j];
    if (other->power >= it->power && other->price <= it->price && c->x[j] < other->count)
      return true;
  }
  return false;
}

static void descend(gt_plan_cover *c, size_t i, double need, int64_t slots, int64_t least,
                    double reduced, double price);

/* Takes x of item i; false if the bound rules it out. */
static bool take(gt_plan_cover *c, size_t i, int64_t x, double need, int64_t slots, int64_t least,
                 double reduced, double price) {
  const item *it = &c->items[i];
  double rest = need - (double)x * it->power, so_far = reduced + (double)x * it->reduced;
  if (bound_of(c, i + 1, rest, so_far) >= c->best_price * (1 - GT_PLAN_EQUAL)) return false;
  c->x[i] = x;
  descend(c, i + 1, rest, slots - x, least - x, so_far, price + (double)x * it->price);
  return true;
}

/* The bound is convex in the count of an item: starts at the minimum, goes up, then down, each
   until the bound rules out more. */
static void descend(gt_plan_cover *c, size_t i, double need, int64_t slots, int64_t least,
                    double reduced, double price) {
  if (++c->nodes > c->nodes_most) return;
  if (i == c->n) {
    if (need <= 0 && least <= 0) leaf(c, price);
    return;
  }
  const item *it = &c->items[i];
  if (least > it->count_left || need > most_power(c, i, slots)) return;
  if (price + (double)(least > 0 ? least : 0) * it->price_least >=
      c->best_price * (1 - GT_PLAN_EQUAL))
    return;
  int64_t most = dominated(c, i) ? 0 : it->count < slots ? it->count : slots;
  int64_t from = most;
  if (it->reduced >= 0) {
    double wanted = need > 0 ? ceil(need / it->power) : 0;
    from = wanted < (double)most ? (int64_t)wanted : most;
  }
  for (int64_t x = from; x <= most; x++)
    if (!take(c, i, x, need, slots, least, reduced, price)) break;
  for (int64_t x = from - 1; x >= 0; x--)
    if (!take(c, i, x, need, slots, least, reduced, price)) break;
}

/* The power needed for the limit, rounded down slightly: leaf() checks exactly.  INFINITY: no power
   suffices. */
static double power_needed(const gt_plan_site *site, double limit_s) {
  gt_plan_tempo none = gt_plan_pace_at(site, 1, 0); /* devices that take no time */
  if (none.own_s > limit_s) return INFINITY;
  if (limit_s == INFINITY || none.steps == 0) return 0;
  double exchanges_s = none.own_s - (double)none.steps * none.step_s,
         step_s = (limit_s - exchanges_s) / (double)none.steps;
  return (double)site->problem->batch / step_s * (1 - GT_PLAN_EQUAL);
}

static bool cheapest_async(gt_plan_cover *c, double *lower) {
  const gt_plan_site *site = c->site;
  double need = power_needed(site, c->limit_s);
  if (need == INFINITY) return false;
  c->n = site->region->ndevices;
  for (size_t t = 0; t < c->n; t++) {
    const gt_plan_device *d = &site->region->devices[t];
    c->items[t] = (item){.t = t, .count = d->count, .power = d->power, .price = d->price};
  }
  choose_multiplier(c, need);
  double power = 0, cheapest = INFINITY;
  int64_t count = 0;
  for (size_t i = c->n; i-- > 0;) {
    item *it = &c->items[i];
    it->power_left = power += (double)it->count * it->power;
    it->count_left = count += it->count;
    it->price_least = cheapest = fmin(cheapest, it->price);
  }
  for (size_t i = 0; i < c->n; i++) {
    size_t j = i;
    for (; j > 0 && c->items[i].power > c->items[c->by_power[j - 1]].power; j--)
      c->by_power[j] = c->by_power[j - 1];
    c->by_power[j] = i;
  }
  c->best_price = INFINITY;
  c->nodes = 0;
  double root = bound_of(c, 0, need, 0);
  descend(c, 0, need, site->most, site->least, 0, 0);
  c->work += c->nodes;
  *lower = c->nodes > c->nodes_most ? fmin(fmax(root, 0), c->best_price) : c->best_price;
  return c->best_price < INFINITY;
}

/* ---- sync ------------------------------------------------------------------------------------ */

/* The least number of ranks in [least, most] that meets the limit with this step; 0: none does. */
static int64_t ranks_needed(const gt_plan_site *site, double limit_s, double step_s, int64_t most) {
  int64_t low = site->least, high = most;
  if (low > high || gt_plan_pace_at(site, high, step_s).own_s > limit_s) return 0;
  /* exact unless exchanges or the WAN limit the pace */
  double guess = ceil((double)site->batches / floor(limit_s / step_s));
  if (guess > (double)low && guess <= (double)high) {
    int64_t ranks = (int64_t)guess;
    if (gt_plan_pace_at(site, ranks, step_s).own_s <= limit_s &&
        gt_plan_pace_at(site, ranks - 1, step_s).own_s > limit_s)
      return ranks;
  }
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (gt_plan_pace_at(site, middle, step_s).own_s <= limit_s)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

int64_t gt_plan_as_fast(const gt_plan_site *site, double power) {
  int64_t n = 0;
  for (size_t t = 0; t < site->region->ndevices; t++)
    if (site->region->devices[t].power >= power) n += site->region->devices[t].count;
  return n < site->most ? n : site->most;
}

/* Takes the cheapest `ranks` devices at least as fast as `power`; returns their price. order: types
   by price. */
static double take_cheapest(const gt_plan_site *site, const item *order, double power,
                            int64_t ranks, int64_t *counts) {
  double price = 0;
  for (size_t i = 0; i < site->region->ndevices; i++) {
    const item *it = &order[i];
    int64_t x = it->power < power ? 0 : it->count < ranks ? it->count : ranks;
    counts[it->t] = x;
    ranks -= x;
    price += (double)x * it->price;
  }
  return price;
}

static void order_by_price(gt_plan_cover *c, const gt_plan_site *site) {
  c->n = site->region->ndevices;
  for (size_t t = 0; t < c->n; t++) {
    const gt_plan_device *d = &site->region->devices[t];
    c->items[t] = (item){.t = t, .count = d->count, .power = 1, .price = d->price};
  }
  order_items(c, 0);
  for (size_t i = 0; i < c->n; i++) c->items[i].power = site->region->devices[c->items[i].t].power;
}

void gt_plan_cheapest_ranks(gt_plan_cover *c, const gt_plan_site *site, double power, int64_t ranks,
                            int64_t *counts, gt_plan_tempo *pace) {
  order_by_price(c, site);
  (void)take_cheapest(site, c->items, power, ranks, counts);
  *pace = gt_plan_pace_of(site, counts);
}

static bool cheapest_sync(gt_plan_cover *c, double *lower) {
  const gt_plan_site *site = c->site;
  order_by_price(c, site);
  c->best_price = INFINITY;
  for (size_t i = 0; i < c->n; i++) {
    double power = c->items[i].power;
    c->work++;
    int64_t ranks = ranks_needed(site, c->limit_s, (double)site->problem->batch / power,
                                 gt_plan_as_fast(site, power));
    if (ranks == 0) continue;
    double price = take_cheapest(site, c->items, power, ranks, c->counts);
    if (price >= c->best_price) continue;
    c->best_price = price;
    memcpy(c->best, c->counts, c->n * sizeof *c->best);
  }
  *lower = c->best_price;
  return c->best_price < INFINITY;
}

/* The least own_s: tries each type as the slowest, with as many ranks as allowed. */
static void fastest_sync(const gt_plan_site *site, int64_t *counts, gt_plan_tempo *pace) {
  const gt_plan_region *region = site->region;
  double best = 0;
  pace->own_s = INFINITY;
  for (size_t t = 0; t < region->ndevices; t++) {
    double power = region->devices[t].power;
    int64_t ranks = region->devices[t].count > 0 ? gt_plan_as_fast(site, power) : 0;
    if (ranks < site->least) continue;
    gt_plan_tempo here = gt_plan_pace_at(site, ranks, (double)site->problem->batch / power);
    if (here.own_s >= pace->own_s) continue;
    *pace = here;
    best = power;
  }
  gt_plan_all_of(site, counts);
  for (size_t t = 0; t < region->ndevices; t++)
    if (region->devices[t].power < best) counts[t] = 0;
}

/* ---- both modes ------------------------------------------------------------------------------ */

void gt_plan_fastest(const gt_plan_site *site, int64_t *counts, gt_plan_tempo *pace) {
  if (site->problem->local_sync)
    fastest_sync(site, counts, pace);
  else
    gt_plan_all_of(site, counts);
  *pace = gt_plan_pace_of(site, counts);
}

bool gt_plan_cheapest(gt_plan_cover *c, const gt_plan_site *site, double limit_s, int64_t *counts,
                      gt_plan_tempo *pace, double *lower) {
  c->site = site;
  c->limit_s = limit_s;
  c->best = counts;
  double lower_price = 0;
  gt_plan_fastest(site, counts, pace);
  if (pace->own_s > limit_s) return false;
  if (!(site->problem->local_sync ? cheapest_sync(c, &lower_price)
                                  : cheapest_async(c, &lower_price)))
    c->best_price = INFINITY; /* the search ended before it found a set: returns the fastest one */
  *pace = gt_plan_pace_of(site, counts);
  *lower = lower_price < c->best_price ? site->region->ps_price + lower_price : pace->rate;
  return true;
}
