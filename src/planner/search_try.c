/* Simulates a set, judges it, and keeps it if it is among the best; lists of distinct sets. */
#include <math.h>
#include <string.h>

#include "search.h"

#define FIRST 64   /* initial room, in sets */
#define SAFE  0.97 /* share of its limits that a coarsely simulated set must not exceed */

/* ---- lists ---- */

/* FNV-1a */
static size_t bucket_of(const gt_planner_list *list, const int64_t *counts) {
  uint64_t hash = 14695981039346656037U;
  for (size_t i = 0; i < list->width; i++) hash = (hash ^ (uint64_t)counts[i]) * 1099511628211U;
  return (size_t)(hash ^ hash >> 32) & (list->nbuckets - 1);
}

/* Returns the bucket of the set, or the free one for it. */
static size_t find(const gt_planner_list *list, const int64_t *counts) {
  size_t at = bucket_of(list, counts), bytes = list->width * sizeof *counts;
  while (list->buckets[at] &&
         memcmp(gt_planner_list_at(list, list->buckets[at] - 1), counts, bytes) != 0)
    at = (at + 1) & (list->nbuckets - 1);
  return at;
}

/* Doubles the room and rebuilds the buckets. */
static void grow(gt_planner_list *list) {
  list->counts = gt_grown(list->counts, &list->capacity, FIRST, list->width * sizeof *list->counts);
  gt_free(list->buckets);
  list->nbuckets = 2 * list->capacity;
  list->buckets = GT_NEW_ARRAY(uint32_t, list->nbuckets);
  for (size_t i = 0; i < list->n; i++)
    list->buckets[find(list, gt_planner_list_at(list, i))] = (uint32_t)i + 1;
}

void gt_planner_list_open(gt_planner_list *list, size_t width) {
  *list = (gt_planner_list){.width = width};
  grow(list);
}

void gt_planner_list_close(gt_planner_list *list) {
  gt_free(list->counts);
  gt_free(list->buckets);
  *list = (gt_planner_list){0};
}

bool gt_planner_list_has(const gt_planner_list *list, const int64_t *counts) {
  return list->buckets[find(list, counts)] != 0;
}

bool gt_planner_list_add(gt_planner_list *list, const int64_t *counts) {
  if (gt_planner_list_has(list, counts)) return false;
  if (list->n == list->capacity) grow(list);
  memcpy(list->counts + list->n * list->width, counts, list->width * sizeof *counts);
  list->buckets[find(list, counts)] = (uint32_t)++list->n;
  return true;
}

/* ---- verdicts ---- */
/* Judges limits by the high figure if it is known, otherwise by the expected time only. */
static gt_planner_verdict judge(const gt_planner_set_search *s, const gt_planner_set *set) {
  const gt_planner_outcome *expected = &set->at[GT_PLANNER_EXPECTED];
  double time_s = expected->figures.wall_s, cost = gt_planner_cost(s->p, expected);
  bool fastest = gt_planner_by_time(s->p);
  double over =
      fmax(time_s / s->judged_s, set->at[GT_PLANNER_HIGH].known ? gt_planner_over(s->p, set) : 0);
  return (gt_planner_verdict){.fits = over <= 1,
                              .over = over,
                              .first = fastest ? time_s : cost,
                              .second = fastest ? cost : time_s};
}

/* ---- the best sets --------------------------------------------------------------------------- */

static void note_best(gt_planner_set_search *s, const gt_planner_set *set) {
  const gt_planner_outcome *expected = &set->at[GT_PLANNER_EXPECTED],
                           *high = &set->at[GT_PLANNER_HIGH];
  s->seen.slower = expected->figures.wall_s / gt_plan_time(&s->problem, s->kept);
  s->seen.high = high->known ? fmax(1, high->figures.wall_s / expected->figures.wall_s) : 1;
  for (size_t r = 0; r < s->p->job->nregions; r++)
    s->seen.egress_usd[r] = expected->cost.regions[r].egress_usd;
}

static void keep(gt_planner_set_search *s, const gt_planner_verdict *v, const gt_planner_set *set) {
  size_t n = s->p->ncounts, at = s->nkept;
  while (at > 0 && gt_planner_better(v, &s->verdicts[at - 1])) at--;
  if (at == GT_PLANNER_KEPT) return;
  if (s->nkept < GT_PLANNER_KEPT) s->nkept++;
  size_t behind = s->nkept - at - 1;
  memmove(s->verdicts + at + 1, s->verdicts + at, behind * sizeof *s->verdicts);
  memmove(s->kept + (at + 1) * n, s->kept + at * n, behind * n * sizeof *s->kept);
  s->verdicts[at] = *v;
  memcpy(s->kept + at * n, set->counts, n * sizeof *s->kept);
  if (at == 0) note_best(s, set);
}

void gt_planner_take_known(gt_planner_set_search *s, const gt_planner_set *set) {
  if (!set->counts || !set->at[GT_PLANNER_EXPECTED].known ||
      !gt_planner_list_add(&s->tried, set->counts))
    return;
  gt_planner_verdict v = judge(s, set);
  s->belied |= gt_planner_belies(s, set);
  keep(s, &v, set);
  s->c->sets++;
}

/* ---- simulating ------------------------------------------------------------------------------ */

static gt_status look(gt_planner_set_search *s, const gt_planner *p, gt_planner_set *set,
                      gt_planner_case which) {
  GT_TRY(gt_planner_simulate(p, s->c, set, which));
  if (which == GT_PLANNER_EXPECTED) {
    int64_t events = set->at[which].part < 1 ? p->max_events : set->forecast.totals.events;
    s->last = GT_PLANNER_EVENTS + (events < p->max_events ? events : p->max_events);
  }
  s->work -= s->last;
  return GT_OK;
}

/* Skips the high figure of a set that is no better by its expected figure. */
gt_status gt_planner_look_at(gt_planner_set_search *s, const gt_planner *p, gt_planner_set *set,
                             gt_planner_verdict *verdict) {
  GT_TRY(look(s, p, set, GT_PLANNER_EXPECTED));
  s->belied |= gt_planner_belies(s, set);
  gt_planner_verdict v = judge(s, set), best = gt_planner_best(s);
  if (gt_planner_limited(p) && (!best.fits || gt_planner_better(&v, &best))) {
    GT_TRY(look(s, p, set, GT_PLANNER_HIGH));
    v = judge(s, set);
  }
  keep(s, &v, set);
  if (set->at[GT_PLANNER_HIGH].known && v.over <= SAFE &&
      (s->safe.over == 0 || gt_planner_better(&v, &s->safe))) {
    s->safe = v;
    memcpy(s->kept + GT_PLANNER_KEPT * p->ncounts, set->counts, p->ncounts * sizeof *s->kept);
  }
  s->c->sets++;
  *verdict = v;
  return GT_OK;
}

gt_status gt_planner_try(gt_planner_set_search *s, const int64_t *counts) {
  gt_planner_verdict verdict;
  if (s->work <= 0 || !gt_planner_list_add(&s->tried, counts) ||
      !gt_planner_can_be_better(s, gt_planner_least(s, counts)))
    return GT_OK;
  gt_planner_set set = {.counts = GT_NEW_ARRAY(int64_t, s->p->ncounts)};
  memcpy(set.counts, counts, s->p->ncounts * sizeof *counts);
  gt_status status = gt_planner_look_at(s, &s->coarse, &set, &verdict);
  gt_planner_set_close(&set);
  return status;
}
