/* The useful sets of devices of one region. */
#include "elastic_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* the share 1/LEFT_SHARE of the remaining nodes may be used for one option */
#define LEFT_SHARE  32
#define NODES_LEAST 64

static void add(gt_plan_options *o, size_t ndevices, const gt_plan_option *option,
                const int64_t *counts) {
  size_t room = o->capacity;
  if (o->n == room) o->counts = gt_grown(o->counts, &room, 16, ndevices * sizeof *o->counts);
  GT_GROW(o->options, o->n, o->capacity, 16);
  o->options[o->n] = *option;
  memcpy(o->counts + o->n++ * ndevices, counts, ndevices * sizeof *counts);
}

/* The cheapest devices for shorter and shorter times.  Sets whose steps differ by a smaller share
   than `apart` are merged.  False: there are more than `most`. */
static bool add_async(gt_plan_options *o, gt_plan_cover *cover, const gt_plan_site *site,
                      double apart, size_t most, int64_t work, int64_t *counts) {
  gt_plan_option option;
  double lower, limit_s = INFINITY;
  o->n = 0;
  for (int64_t end = gt_plan_cover_work(cover) + work;;) {
    int64_t left = (end - gt_plan_cover_work(cover)) / LEFT_SHARE;
    gt_plan_cover_limit(cover, left > NODES_LEAST ? left : NODES_LEAST);
    if (!gt_plan_cheapest(cover, site, limit_s, counts, &option.pace, &lower)) return true;
    if (o->n > most) return false;
    option.least = option.pace;
    option.least.rate = lower;
    limit_s = nextafter(option.pace.own_s, 0);
    if (apart > 0 && option.pace.steps > 0) {
      double steps = (double)option.pace.steps,
             exchanges_s = option.pace.own_s - steps * option.pace.step_s;
      option.least.step_s = option.pace.step_s * (1 - apart);
      limit_s = exchanges_s + steps * option.least.step_s;
      option.least.step_s *= 1 - GT_PLAN_EQUAL;
      option.least.own_s = limit_s * (1 - GT_PLAN_EQUAL);
    }
    add(o, site->region->ndevices, &option, counts);
    if (limit_s <= 0) return true;
  }
}

/* With types down to `power`: increases the number of the cheapest ranks until there is one step
   less, or by the share `apart`. */
static void add_sync(gt_plan_options *o, gt_plan_cover *cover, const gt_plan_site *site,
                     double power, double apart, int64_t *counts) {
  int64_t most = gt_plan_as_fast(site, power);
  for (int64_t ranks = site->least; ranks <= most;) {
    gt_plan_option option;
    gt_plan_cheapest_ranks(cover, site, power, ranks, counts, &option.pace);
    option.least = option.pace;
    int64_t steps = option.pace.steps, next = most + 1;
    if (steps > 1) next = site->batches / (steps - 1) + (site->batches % (steps - 1) != 0);
    if (next < (int64_t)((double)ranks * (1 + apart)))
      next = (int64_t)((double)ranks * (1 + apart));
    if (next > most + 1) next = most + 1;
    option.least.steps = gt_plan_steps(site, next - 1);
    option.least.own_s = gt_plan_pace_at(site, next - 1, option.least.step_s).own_s;
    add(o, site->region->ndevices, &option, counts);
    ranks = next;
  }
}

static bool worse(const gt_plan_option *a, const gt_plan_option *b) {
  return a->least.rate >= b->pace.rate && a->least.steps >= b->pace.steps &&
         a->least.step_s >= b->pace.step_s;
}

typedef struct {
  gt_plan_option option;
  size_t at;
} place;

static int by_rate(const void *a, const void *b) {
  const gt_plan_tempo *x = &((const place *)a)->option.pace, *y = &((const place *)b)->option.pace;
  if (x->rate != y->rate) return x->rate < y->rate ? -1 : 1;
  return (x->own_s > y->own_s) - (x->own_s < y->own_s);
}

/* Sorts by rate, and removes options that are worse than another in all respects. */
static void sift(gt_plan_options *o, size_t ndevices) {
  place *places = GT_NEW_ARRAY(place, o->n);
  int64_t *counts = GT_NEW_ARRAY(int64_t, o->n * ndevices);
  for (size_t i = 0; i < o->n; i++) places[i] = (place){o->options[i], i};
  qsort(places, o->n, sizeof *places, by_rate);
  size_t kept = 0;
  for (size_t i = 0; i < o->n; i++) {
    bool left_out = false;
    for (size_t j = 0; j < kept && !left_out; j++)
      left_out = worse(&places[i].option, &o->options[j]);
    if (left_out) continue;
    o->options[kept] = places[i].option;
    memcpy(counts + kept++ * ndevices, o->counts + places[i].at * ndevices,
           ndevices * sizeof *counts);
  }
  o->n = kept;
  gt_free(o->counts);
  o->counts = counts;
  o->capacity = kept;
  gt_free(places);
}

void gt_plan_options_open(gt_plan_options *o, gt_plan_cover *cover, const gt_plan_site *site,
                          size_t most, int64_t work) {
  const gt_plan_region *region = site->region;
  *o = (gt_plan_options){0};
  int64_t *counts = GT_NEW_ARRAY(int64_t, region->ndevices);
  if (!site->problem->local_sync) {
    if (!add_async(o, cover, site, 0, most, work, counts)) {
      double slow_s = o->options[0].pace.step_s;
      gt_plan_tempo fast;
      gt_plan_fastest(site, counts, &fast);
      (void)add_async(o, cover, site, log(slow_s / fast.step_s) / (double)most, SIZE_MAX, work,
                      counts);
    }
  } else {
    double apart = (double)region->ndevices * log((double)site->most + 1) / (double)most;
    if (site->most * (int64_t)region->ndevices <= (int64_t)most) apart = 0;
    for (size_t t = 0; t < region->ndevices; t++)
      if (region->devices[t].count > 0)
        add_sync(o, cover, site, region->devices[t].power, apart, counts);
    sift(o, region->ndevices);
  }
  gt_free(counts);
}

void gt_plan_options_close(gt_plan_options *o) {
  gt_free(o->options);
  gt_free(o->counts);
  *o = (gt_plan_options){0};
}
